"""The four anomalies that no number of adapters may show (DESIGN §2): each step of a table's short life is taken
through another adapter than the step before it.

After an acknowledged CREATE an INSERT or a SELECT says that the table is missing; a SELECT misses acknowledged rows; an
index is in the catalog and its controller does not know it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import Sql, prepare_world

ROWS_LEN_MAX = 4

GROUND = "x_ground"
"""A table that nobody writes or drops."""

SELECT_SHARE = 0.4
"""A select after that many of the inserts: each is a query on Spark."""


class Anomalies:
    name = "anomalies"
    clients = 4
    clients_quick = 3
    rate = 6.0
    rate_quick = 6.0

    def setup(self, world: World) -> None:
        """One empty table; the others are the workload."""
        prepare_world(world, [
            f"CREATE TABLE {GROUND} (k int NOT NULL, v int NOT NULL)",
            f"CREATE INDEX {GROUND}_k ON {GROUND} (k)",
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        rows = count()
        for number in count():
            table = f"x{worker}_{number}"
            yield Invocation("create", {"table": table})
            indexed = False
            for _ in range(rng.randint(1, ROWS_LEN_MAX)):
                yield Invocation("insert", {"table": table, "row": next(rows)})
                if rng.random() < SELECT_SHARE:
                    yield Invocation("select_index" if indexed else "select", {"table": table})
                if not indexed and rng.random() < 0.5:
                    indexed = True
                    yield Invocation("index", {"table": table})
                    yield Invocation("select_index", {"table": table})
            yield Invocation("drop", {"table": table})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return []

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The rows of the table, and a look at one that is always there and indexed: the other may be gone or not."""
        ground = Invocation("select_index", {"table": GROUND})
        if unknown is None or unknown.f in ("select", "select_index"):
            return [ground] if unknown is None else []
        return [ground, Invocation("select", {"table": unknown.value["table"]})]

    def open(self, world: World, worker: int, life: int) -> AnomaliesClient:
        return AnomaliesClient(world, worker, life)


class AnomaliesClient:
    """One session at each adapter, asked in turn."""

    def __init__(self, world: World, worker: int, life: int) -> None:
        self._sessions = [Sql(world, f"judge-anomalies-{worker}", n, only=True) for n in range(len(world.dsns))]
        self._at = (worker + life) % len(self._sessions)

    @property
    def node(self) -> str:
        return self._sessions[self._at].node

    def prepare(self, invocation: Invocation) -> Invocation:
        """As it is; but from now on the next adapter is asked."""
        self._at = (self._at + 1) % len(self._sessions)
        return invocation

    def invoke(self, invocation: Invocation) -> dict[str, list[int]] | None:
        sql, table = self._sessions[self._at], invocation.value["table"]
        match invocation.f:
            case "create":
                # The key is the same in every row: a lookup by it gives all of them, from the index.
                sql.run(f"CREATE TABLE {table} (k int NOT NULL, v int NOT NULL)", write=True)
            case "insert":
                sql.run(f"INSERT INTO {table} VALUES (0, %s)", (invocation.value["row"],), write=True)
            case "index":
                sql.run(f"CREATE INDEX {table}_k ON {table} (k)", write=True)
            case "drop":
                sql.run(f"DROP TABLE {table} CASCADE", write=True)
            case "select" | "select_index":
                # Without the index it is the same statement, answered by Spark.
                rows = sql.run(f"SELECT v FROM {table} WHERE k = 0", write=False)
                return {"rows": sorted(v for (v,) in rows)}
        return None

    def close(self) -> None:
        for each in self._sessions:
            each.close()
