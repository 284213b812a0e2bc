"""A view's answer equals its query's over the view's inputs, at one timestamp: asked in one statement, side by side.

Views of several kinds, kept in several ways: some incrementally, some by running the query again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

EVENTS, CUSTOMERS = "views_events", "views_customers"

_SUMS = f"SELECT customer, count(*) AS n, sum(amount) AS total FROM {EVENTS} GROUP BY customer"
_OVER = "SELECT count(*) AS customers, sum(n) AS n, sum(total) AS total"

KEYS = {EVENTS: ("id", 0), CUSTOMERS: ("name", 1)}
"""The column whose value no two rows of a table share, and its place."""

VIEWS: dict[str, tuple[str, str]] = {
    "views_filter": ("id, amount", f"SELECT id, amount FROM {EVENTS} WHERE id % 40 = 0"),
    "views_sums": ("customer, n, total", _SUMS),
    "views_join": (
        "id, name",
        f"SELECT e.id, c.name FROM {EVENTS} AS e JOIN {CUSTOMERS} AS c ON c.customer = e.customer WHERE e.id % 40 = 1",
    ),
    "views_distinct": ("amount", f"SELECT DISTINCT amount FROM {EVENTS}"),
    # Run again at every change: the others are kept by their changes.
    "views_top": ("id, amount", f"SELECT id, amount FROM {EVENTS} ORDER BY amount DESC, id LIMIT 5"),
    "views_over": ("customers, n, total", f"{_OVER} FROM views_sums"),
}  # fmt: skip
"""Name -> its columns, and its query as it was created."""

ASKED = {**{name: query for name, (_, query) in VIEWS.items()},
         "views_over": f"{_OVER} FROM ({_SUMS}) AS s"}  # fmt: skip
"""What the query is over tables alone: a view over a view is held against them too."""

CUSTOMER_IDS = 10
AMOUNTS = 30
"""Few of each, so that groups and duplicates meet; answers stay short however many rows there are."""

NAMED_MAX = 15
"""Customers that one worker names: rows of the join come from either side."""

INSERT_SHARE = 0.4
ROWS_LEN_MAX = 4


class Views:
    name = "views"
    clients = 3
    clients_quick = 2
    rate = 0.8
    rate_quick = 0.8

    def setup(self, world: World) -> None:
        prepare_world(world, [
            f"CREATE TABLE {EVENTS} (id bigint NOT NULL, customer int NOT NULL, amount int)",
            f"CREATE TABLE {CUSTOMERS} (customer int NOT NULL, name text NOT NULL)",
            *(f"CREATE INDEX {table}_{key} ON {table} ({key})" for table, (key, _) in KEYS.items()),
            *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, (_, query) in VIEWS.items()),
            *map(compare_sql, VIEWS),
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        ids = count()
        named = 0
        while True:
            if rng.random() > INSERT_SHARE:
                yield Invocation("compare", {"view": rng.choice(tuple(VIEWS))})
            elif named < NAMED_MAX and rng.random() < 0.1:
                yield Invocation("insert", {"rows": [[rng.randrange(CUSTOMER_IDS), f"{worker}-{named}"]],
                                            "table": CUSTOMERS})  # fmt: skip
                named += 1
            else:
                rows = [
                    [worker + workers * next(ids), rng.randrange(CUSTOMER_IDS),
                     None if rng.random() < 0.05 else rng.randrange(AMOUNTS)]
                    for _ in range(rng.randint(1, ROWS_LEN_MAX))
                ]  # fmt: skip
                yield Invocation("insert", {"rows": rows, "table": EVENTS})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("compare", {"view": view}) for n, view in enumerate(VIEWS) if n % workers == worker]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """Whether the first of its rows is there; all of them came in one statement."""
        if unknown is None:
            return [Invocation("row", {"table": EVENTS, "is": 0})]
        if unknown.f != "insert":
            return []
        table, row = unknown.value["table"], unknown.value["rows"][0]
        return [Invocation("row", {"table": table, "is": row[KEYS[table][1]]})]

    def open(self, world: World, worker: int, life: int) -> ViewsClient:
        return ViewsClient(world, self.name, worker, life)


class ViewsClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"insert": self._insert, "compare": self._compare, "row": self._row}

    def _insert(self, value: dict) -> None:
        rows = value["rows"]
        places = ", ".join(f"({', '.join(['%s'] * len(row))})" for row in rows)
        self.sql.run(
            f"INSERT INTO {value['table']} VALUES {places}", [each for row in rows for each in row], write=True
        )

    def _row(self, value: dict) -> dict[str, int]:
        key, _ = KEYS[value["table"]]
        ((n,),) = self.sql.run(
            f"SELECT count(*) FROM {value['table']} WHERE {key} = %s", (value["is"],), write=False
        )  # fmt: skip
        return {"n": int(n)}

    def _compare(self, value: dict) -> dict[str, list[list]]:
        found: dict[str, list[list]] = {"view": [], "query": []}
        for tag, *row in self.sql.run(compare_sql(value["view"]), write=False):
            found[tag].append([int(each) if isinstance(each, Decimal) else each for each in row])
        return {tag: sorted(rows, key=lambda row: [(each is None, each or 0) for each in row])
                for tag, rows in found.items()}  # fmt: skip


def compare_sql(view: str) -> str:
    """One statement that gives a view's rows and its query's, told apart by the first column."""
    columns = VIEWS[view][0]
    return (
        f"SELECT 'view' AS tag, {columns} FROM {view} UNION ALL SELECT 'query', {columns} FROM ({ASKED[view]}) AS asked"
    )
