"""Views that rows poison: one whose query fails on a row, and one that ends its controller (the fault ``poison``).

Worker 0 poisons the first now and then, and some time after that gives it a new definition, to which the old row does
no harm; then it answers again, until the next row.  All insert and compare; who asks a poisoned view is told.

What ends a controller is the fault ``poison`` (``judge/live/calamities.py``), once in a run: nothing that is
let through does so by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Failed, Invocation, Unknown, World
from judge.workloads.keyed import COLUMNS, KEYS, KeyedClient, compare_sql, insert, looks, sums
from judge.workloads.sql_client import prepare_world

TABLE, TRAP = "poison_rows", "poison_trap"
SPARED, FAILING, ENDING = "poison_spared", "poison_failing", "poison_ending"

MARK = 131313
"""In the query of the view that a row of ``TRAP`` poisons: what compute's trap (``judge/live/trap.py``) knows it
by."""

BEGIN = 1000
"""Definition ``g`` of the failing view fails on ``v = -(BEGIN + g)``, and on nothing else."""


def bad(generation: int) -> int:
    return -(BEGIN + generation)


def definition(generation: int) -> str:
    """The sums, as long as nobody has written ``bad(generation)``."""
    harm = f"100 / (v + {BEGIN + generation})"
    return f"SELECT k, sum(v + 0 * ({harm})) AS total, count(*) AS n FROM {TABLE} GROUP BY k"


def renew(generation: int) -> Invocation:
    return Invocation("renew", {"view": FAILING, "value": bad(generation), "as": definition(generation)})


ENDS = f"SELECT max(k + {MARK}) AS n FROM {TRAP}"
HARMLESS = f"SELECT max(k) AS n FROM {TRAP}"
"""A new definition for what was poisoned for good."""

COMPARES = {
    **{name: compare_sql(name, "k, total, n", sums(TABLE)) for name in (SPARED, FAILING)},
    # Nobody says what it must be: it has an answer or has none.
    ENDING: f"SELECT 'view' AS side, n FROM {ENDING} WHERE n < 0",
}

BETWEEN_MIN, BETWEEN_MAX = 3, 6
"""Operations of worker 0 between a row and the new definition, and between that and the next row."""

INSERT_SHARE = 0.3


class Poison:
    name = "poison"
    clients = 2
    clients_quick = 2
    rate = 0.3
    rate_quick = 1.0
    """A new definition a minute: each is some seconds of Spark."""

    def setup(self, world: World) -> None:
        prepare_world(world, [
            f"CREATE TABLE {TABLE} {COLUMNS}",
            f"CREATE INDEX {TABLE}_id ON {TABLE} (id)",
            f"CREATE TABLE {TRAP} (k bigint NOT NULL)",
            f"CREATE MATERIALIZED VIEW {SPARED} AS {sums(TABLE)}",
            f"CREATE MATERIALIZED VIEW {FAILING} AS {definition(0)}",
            f"CREATE MATERIALIZED VIEW {ENDING} AS {ENDS}",
            *COMPARES.values(),
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        numbers = count()

        def some() -> Iterator[Invocation]:
            for _ in range(rng.randint(BETWEEN_MIN, BETWEEN_MAX)):
                if rng.random() < INSERT_SHARE:
                    yield insert(worker, next(numbers), rng.randrange(KEYS), rng.randrange(100, 200))
                else:
                    yield Invocation("compare", {"view": rng.choice((SPARED, SPARED, FAILING, FAILING, ENDING))})

        for generation in count():
            yield from some()
            if worker == 0:
                yield insert(worker, next(numbers), rng.randrange(KEYS), bad(generation))
                yield Invocation("compare", {"view": FAILING})
                yield from some()
                yield renew(generation + 1)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """Everything has an answer again where it has a definition that no row fails."""
        if worker:
            return []
        return [
            # No row is like this one: nobody wrote so many bad ones.
            renew(BEGIN),
            Invocation("renew", {"view": ENDING, "value": None, "as": HARMLESS}),
            *(Invocation("compare", {"view": view}) for view in COMPARES),
        ]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """Of a new definition nothing: no read of a row says whether it is there."""
        return looks(TABLE, unknown)

    def open(self, world: World, worker: int, life: int) -> PoisonClient:
        return PoisonClient(world, self.name, worker, life)


class PoisonClient(KeyedClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life, TABLE, COMPARES)
        self.handlers["renew"] = self._renew

    def _renew(self, value: dict) -> None:
        """Drop the view and create it anew: two statements, so what failed after the first has happened in part."""
        self.sql.run(f"DROP MATERIALIZED VIEW IF EXISTS {value['view']}", write=True)
        try:
            self.sql.run(f"CREATE MATERIALIZED VIEW {value['view']} AS {value['as']}", write=True)
        except Failed as failed:
            raise Unknown(failed.code, f"dropped, and not created: {failed}") from failed
