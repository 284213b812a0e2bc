"""What is counted, or claimed, by an INSERT that meets another: ``ON CONFLICT … DO UPDATE`` and ``… DO NOTHING``.

Unlike ``counters``, whose rows are there from the beginning, every key here begins with a race of those who insert it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

READ_SHARE, CLAIM_SHARE = 0.2, 0.35
"""The rest are increments.  A read is of the counters or of the claims."""

TALLIES = 2
"""Counters that are added to at one time."""

TALLY_LEN, CLAIM_LEN = 30, 2
"""Steps of a worker, and claims of it, until the next ones' turn."""

LAST = 2**31 - 1

COUNT = "INSERT INTO tallies (k, n) VALUES (%s, 1) ON CONFLICT (k) DO UPDATE SET n = tallies.n + 1 RETURNING n"
CLAIM = "INSERT INTO claims (k, token) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING token"
TALLIED = "SELECT k, n FROM tallies WHERE k >= 0"
CLAIMED = "SELECT k, token FROM claims WHERE k >= %s AND k < %s"

CLAIMS_SEEN = 8
"""Keys that a read of claims looks at."""


class Upserts:
    name = "upserts"
    clients = 4
    clients_quick = 3
    rate = 4.0
    rate_quick = 5.0

    def setup(self, world: World) -> None:
        prepare_world(world, [
            "CREATE TABLE tallies (k int PRIMARY KEY, n bigint NOT NULL)",
            "CREATE TABLE claims (k int PRIMARY KEY, token text NOT NULL)",
            "SELECT count(*) FROM tallies, claims",
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        claims = count()
        claimed = 0
        for step in count():
            kind = rng.random()
            if kind < READ_SHARE:
                yield Invocation("counters") if rng.random() < 0.5 else claims_by(claimed)
            elif kind < READ_SHARE + CLAIM_SHARE:
                number = next(claims)
                claimed = number // CLAIM_LEN
                yield Invocation("claim", {"k": claimed, "token": f"{worker}-{number}"})
            else:
                yield Invocation("increment", {"ks": [step // TALLY_LEN * TALLIES + rng.randrange(TALLIES)]})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("counters"), Invocation("claims", {"lower": 0, "upper": LAST})]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        if unknown is None or unknown.f == "increment":
            return [Invocation("counters")]
        return [claims_by(unknown.value["k"])] if unknown.f == "claim" else []

    def open(self, world: World, worker: int, life: int) -> UpsertsClient:
        return UpsertsClient(world, self.name, worker, life)


def claims_by(k: int) -> Invocation:
    """A read of the claims up to that of ``k``."""
    return Invocation("claims", {"lower": max(0, k + 1 - CLAIMS_SEEN), "upper": k + 1})


class UpsertsClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {
            "increment": self._increment, "claim": self._claim, "counters": self._counters, "claims": self._claims,
        }  # fmt: skip

    def _increment(self, value: dict) -> dict[str, list[int]]:
        (k,) = value["ks"]
        rows = self.sql.run(COUNT, (k,), write=True)
        # It gives one row always; what does not is an answer that the checker calls wrong.
        return {"xs": [int(rows[0][0]) if len(rows) == 1 else -len(rows)]}

    def _claim(self, value: dict) -> dict[str, bool]:
        return {"won": bool(self.sql.run(CLAIM, (value["k"], value["token"]), write=True))}

    def _counters(self, _value: None) -> dict[str, int]:
        sums: dict[str, int] = {}
        for k, n in self.sql.run(TALLIED, write=False):
            sums[str(k)] = sums.get(str(k), 0) + int(n)  # of two rows of one key: more than was counted
        return sums

    def _claims(self, value: dict) -> dict[str, list]:
        return {"rows": sorted(map(list, self.sql.run(CLAIMED, (value["lower"], value["upper"]), write=False)))}
