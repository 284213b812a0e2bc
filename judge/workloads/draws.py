"""Values of sequences, drawn by many through all adapters: ``nextval`` of one, and a serial column's DEFAULT.

The serial column has no constraint, so that a value which was given twice is two rows and not a refusal.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

NEXTVAL_SHARE, READ_SHARE = 0.6, 0.1
"""The rest are inserts, of one row or several."""

ROWS_MAX = 4

NEXTVAL = "SELECT nextval('draws_seq')"
READ = "SELECT id, token FROM drawn WHERE"


class Draws:
    name = "draws"
    clients = 4
    clients_quick = 3
    rate = 5.0
    rate_quick = 8.0

    def setup(self, world: World) -> None:
        prepare_world(world, [
            "CREATE SEQUENCE draws_seq",
            "CREATE TABLE drawn (id bigserial, token text NOT NULL)",
            "CREATE INDEX drawn_id ON drawn (id)",
            "CREATE INDEX drawn_token ON drawn (token)",
            "SELECT count(*) FROM drawn",
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        tokens, last = count(), "none"
        while True:
            kind = rng.random()
            if kind < NEXTVAL_SHARE:
                yield Invocation("nextval")
            elif kind < NEXTVAL_SHARE + READ_SHARE:
                yield Invocation("drawn", {"token": last})
            else:
                given = [f"{worker}-{next(tokens)}" for _ in range(rng.randint(1, ROWS_MAX))]
                last = given[0]
                yield Invocation("insert", {"tokens": given})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("drawn", {})]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The first row of an insert.  A value that nobody heard of is a gap, which shows nothing."""
        if unknown is None:
            return [Invocation("drawn", {"token": "none"})]
        return [Invocation("drawn", {"token": unknown.value["tokens"][0]})] if unknown.f == "insert" else []

    def open(self, world: World, worker: int, life: int) -> DrawsClient:
        return DrawsClient(world, self.name, worker, life)


class DrawsClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self._name = f"{worker}-{life}"
        self.handlers = {"nextval": self._nextval, "insert": self._insert, "drawn": self._drawn}

    def _told(self, xs: list[int]) -> dict:
        return {"xs": xs, "session": f"{self._name}-{self.sql.sessions}"}

    def _nextval(self, _value: None) -> dict:
        """Not as a write: whoever hears no value has none, and what becomes of that value is nobody's business."""
        return self._told([int(x) for (x,) in self.sql.run(NEXTVAL, write=False)])

    def _insert(self, value: dict) -> dict:
        rows = ", ".join(["(%s)"] * len(value["tokens"]))
        text = f"INSERT INTO drawn (token) VALUES {rows} RETURNING id"
        return self._told([int(x) for (x,) in self.sql.run(text, value["tokens"], write=True)])

    def _drawn(self, value: dict) -> dict[str, list]:
        where, given = ("token = %s", (value["token"],)) if value else ("id >= 0", None)
        return {"rows": sorted(map(list, self.sql.run(f"{READ} {where}", given, write=False)))}
