"""A table that is written to less often than history is kept, and views over it, of both kinds.

The fault ``day`` is what it is there for: history goes, so that ``since`` is beyond these views, and everybody is
restarted.  A view must then be what its query is, with the next row as with the last one of the day before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.keyed import COLUMNS, KEYS, KeyedClient, compare_sql, insert, looks, sums
from judge.workloads.sql_client import prepare_world

TABLE, SEEN = "idle_rows", "idle_seen"

VIEWS = {
    "idle_sums": sums(TABLE),
    # Run again at every change, and compared with what there was.
    "idle_again": f"{sums(TABLE)} ORDER BY k LIMIT {KEYS + 1}",
}
"""Name -> its query; each says ``(k, total, n)``."""

COMPARES = {name: compare_sql(name, "k, total, n", sums(TABLE)) for name in VIEWS}

COMPARES_MAX = 3
"""After each insert."""


class Idle:
    name = "idle"
    clients = 1
    clients_quick = 1
    rate = 0.15
    rate_quick = 0.5
    """A row every twenty seconds, some fifteen for each day of a run: it has to lie idle for as long as nobody writes
    between two restarts, not for longer."""

    def setup(self, world: World) -> None:
        prepare_world(world, [
            f"CREATE TABLE {TABLE} {COLUMNS}",
            f"CREATE TABLE {SEEN} (id text NOT NULL)",
            f"CREATE INDEX {SEEN}_id ON {SEEN} (id)",
            *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()),
            *COMPARES.values(),
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for number in count():
            yield insert(worker, number, rng.randrange(KEYS), rng.randrange(100))
            for _ in range(rng.randint(1, COMPARES_MAX)):
                yield Invocation("compare", {"view": rng.choice(tuple(VIEWS))})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """A row after the last day too."""
        if worker:
            return []
        last = Invocation("insert", {"id": "last", "rows": [[0, 1]]})
        return [last, *(Invocation("compare", {"view": view}) for view in VIEWS)]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        return looks(SEEN, unknown)

    def open(self, world: World, worker: int, life: int) -> KeyedClient:
        return KeyedClient(world, self.name, worker, life, TABLE, COMPARES, SEEN)
