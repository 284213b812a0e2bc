"""What the workloads ``idle`` and ``poison`` share: rows ``(id, k, v)``, and views that sum them by ``k``.

A compare asks a view and its query in one statement, so at one timestamp; a row is looked after by its id, which an
index answers.  That index may be of a table beside (``seen``), written in the same transaction: one of the table itself
would have its rows in memory as of now, whatever became of their history.
"""

from __future__ import annotations

from collections.abc import Mapping

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient

COLUMNS = "(id text NOT NULL, k bigint NOT NULL, v bigint NOT NULL)"
KEYS = 3


def sums(table: str) -> str:
    return f"SELECT k, sum(v) AS total, count(*) AS n FROM {table} GROUP BY k"


def insert(worker: int, number: int, k: int, v: int) -> Invocation:
    """One row, whose id no other one has."""
    return Invocation("insert", {"id": f"{worker}-{number}", "rows": [[k, v]]})


def looks(table: str, unknown: Invocation | None) -> list[Invocation]:
    """``Workload.settling``."""
    if unknown is None:
        return [Invocation("row", {"table": table, "is": "none"})]
    return [Invocation("row", {"table": table, "is": unknown.value["id"]})] if unknown.f == "insert" else []


def compare_sql(view: str, columns: str, query: str) -> str:
    return f"SELECT 'view' AS side, {columns} FROM {view} UNION ALL SELECT 'query', {columns} FROM ({query}) AS asked"


class KeyedClient(SqlClient):
    """``compares``: the statement that compares a view, by the view's name."""

    def __init__(
        self, world: World, name: str, worker: int, life: int, table: str, compares: Mapping[str, str], seen: str = ""
    ) -> None:
        super().__init__(world, name, worker, life)
        self._table = table
        self._seen = seen
        self._compares = compares
        self.handlers = {"insert": self._insert, "compare": self._compare, "row": self._row}

    def _insert(self, value: dict) -> None:
        ((k, v),) = value["rows"]
        row = f"INSERT INTO {self._table} VALUES (%s, %s, %s)", (value["id"], k, v)
        if not self._seen:
            self.sql.run(*row, write=True)
            return
        seen = f"INSERT INTO {self._seen} VALUES (%s)", (value["id"],)
        self.sql.all([("BEGIN", None), row, seen, ("COMMIT", None)], commits=3)

    def _compare(self, value: dict) -> dict[str, list[list]]:
        found: dict[str, list[list]] = {"view": [], "query": []}
        for side, *row in self.sql.run(self._compares[value["view"]], write=False):
            found[side].append([None if each is None else int(each) for each in row])
        return {side: sorted(rows, key=str) for side, rows in found.items()}

    def _row(self, value: dict) -> dict[str, int]:
        ((n,),) = self.sql.run(f"SELECT count(*) FROM {value['table']} WHERE id = %s", (value["is"],), write=False)
        return {"n": int(n)}
