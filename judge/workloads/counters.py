"""Numbers that only ever go up by one: ``UPDATE … SET x = x + 1``, of one row that everybody wants and of one's own.

A statement by itself that met another is made anew by the adapter, a bounded number of times; a block is refused.  Each
says by RETURNING what it made of the number, so that every one has a place of its own among all others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from judge.workloads.api import Invocation, World
from judge.workloads.asking import Asking, carried_out
from judge.workloads.sql_client import SqlClient, prepare_world

CONTENDED = 2
"""Counters that everybody adds to: 0, 1, …; worker ``w``'s own one is ``CONTENDED + w``."""

OWN_MAX = 8
"""Counters of workers' own that there are."""

READ_SHARE = 0.25
OWN_SHARE = 0.3
"""Of the increments: of the worker's own counter alone."""

BLOCK_SHARE = 0.2
"""Of the increments: one of each kind, in a transaction block."""

INCREMENT = "UPDATE counters SET x = x + 1 WHERE k = %s RETURNING x"
READ = "SELECT k, x FROM counters"


def steps(rng: random.Random, worker: int) -> Iterator[list[int] | None]:
    """The counters that one increment adds to, or ``None``: a read of all.  Pure."""
    own = CONTENDED + worker % OWN_MAX
    while True:
        drawn = rng.random()
        if drawn < READ_SHARE:
            yield None
            continue
        wanted, kind = rng.randrange(CONTENDED), rng.random()
        yield [own] if kind < OWN_SHARE else [wanted, own] if kind < OWN_SHARE + BLOCK_SHARE else [wanted]


def increments(ks: Sequence[int]) -> Asking:
    """One statement for each counter, and what they became."""
    xs = []
    for k in ks:
        rows = yield INCREMENT, (k,)
        # A counter is one row for ever; what is not is an answer that the checker calls wrong.
        xs.append(int(rows[0][0]) if len(rows) == 1 else -len(rows))
    return {"xs": xs}


class Counters:
    name = "counters"
    clients = 4
    clients_quick = 3
    rate = 2.5
    rate_quick = 2.5

    def setup(self, world: World) -> None:
        rows = ", ".join(f"({k}, 0)" for k in range(CONTENDED + OWN_MAX))
        prepare_world(world, [
            "CREATE TABLE counters (k int NOT NULL, x bigint NOT NULL)",
            "CREATE INDEX counters_k ON counters (k)",
            f"INSERT INTO counters VALUES {rows}",
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for ks in steps(rng, worker):
            yield Invocation("counters") if ks is None else Invocation("increment", {"ks": ks})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("counters")]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """All of them, by the index: what one was told is not told apart from what another was."""
        return [Invocation("counters")] if unknown is None or unknown.f == "increment" else []

    def open(self, world: World, worker: int, life: int) -> CountersClient:
        return CountersClient(world, self.name, worker, life)


class CountersClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"increment": self._increment, "counters": self._counters}

    def _increment(self, value: dict) -> dict[str, list[int]]:
        if len(value["ks"]) == 1:
            return carried_out(increments(value["ks"]), lambda sql, given: self.sql.run(sql, given, write=True))
        with self.sql.block(writes=True) as run:
            return carried_out(increments(value["ks"]), run)

    def _counters(self, _value: None) -> dict[str, int]:
        return {str(k): int(x) for k, x in self.sql.run(f"{READ} WHERE k < {CONTENDED + OWN_MAX}", write=False)}

