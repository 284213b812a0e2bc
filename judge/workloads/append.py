"""Lists that only grow, in SQL tables: what order of transactions explains what was read is a search for cycles.

An append is one ``INSERT … SELECT count(*) …``: it reads how many elements there are and writes the next position, and
first committer wins, so it is a real read-write transaction.  A read is one SELECT of several lists.  Keys come in
generations; a worker goes on to the next after some transactions, so that no list grows long however long a run is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count, groupby

from judge.workloads.api import Failed, Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

TABLES = 2
"""List ``k`` is in table ``k % TABLES``.  An append conflicts with every other on its table, so one table alone would
spend the time on conflicts; and a read of two is of one timestamp all the same."""

KEYS = 6
"""Lists of one generation."""

GENERATION_LEN = 40
"""Transactions of a worker before it goes on to the next generation: lists of some dozens of elements."""

APPEND_SHARE = 0.35
"""An append is a query on Spark, a read of one table an index lookup: this keeps the two cores for the others."""

POSITIONS_SHARE = 0.1
"""Of the reads."""

EVERY_LIST = "*"
"""Stands for all lists of a share, in a last read; :meth:`AppendClient.prepare` asks the tables which there are."""


def lists_appended_to(unknown: Invocation | None) -> Sequence[Invocation]:
    """Reads of the lists that a transaction may have appended to."""
    if unknown is None:
        keys = [0]
    else:
        keys = sorted({k for f, k, _ in unknown.value if f == "append"}) if unknown.f == "txn" else []
    return [Invocation("txn", [["r", k, None] for k in keys])] if keys else []


class Append:
    name = "append"
    clients = 4
    clients_quick = 3
    rate = 2.0
    rate_quick = 2.0

    def setup(self, world: World) -> None:
        prepare_world(world, [
            statement for number in range(TABLES) for statement in (
                f"CREATE TABLE lists_{number} (k int NOT NULL, pos bigint NOT NULL, v bigint NOT NULL)",
                f"CREATE INDEX lists_{number}_k ON lists_{number} (k)",
            )
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        appended = count()
        for number in count():
            first = KEYS * (number // GENERATION_LEN)
            if rng.random() < APPEND_SHARE:
                table = rng.randrange(TABLES)
                keys = [key for key in range(first, first + KEYS) if key % TABLES == table]
                chosen = [rng.choice(keys) for _ in range(rng.choice((1, 1, 2, 3)))]
                yield Invocation("txn", [["append", k, worker + workers * next(appended)] for k in chosen])
                continue
            # Also the generation before: others may still append to it, and its lists have an end to be seen.
            keys = range(max(0, first - KEYS), first + KEYS)
            if rng.random() < POSITIONS_SHARE:
                yield Invocation("positions", rng.choice(keys))
                continue
            # Now and then from both tables: then it is a query on Spark, at one timestamp.
            table = rng.randrange(TABLES) if rng.random() < 0.8 else None
            keys = [key for key in keys if table is None or key % TABLES == table]
            yield Invocation("txn", [["r", k, None] for k in sorted(rng.sample(keys, min(len(keys), 3)))])

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("txn", [["r", EVERY_LIST, [worker, workers]]])]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The lists that it appended to, which are in one table: an index answers."""
        return lists_appended_to(unknown)

    def open(self, world: World, worker: int, life: int) -> AppendClient:
        return AppendClient(world, self.name, worker, life)


class AppendClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"txn": self._transaction, "positions": self._positions}

    def prepare(self, invocation: Invocation) -> Invocation:
        """With ``EVERY_LIST`` replaced by the lists of this worker's share that there are."""
        super().prepare(invocation)
        if invocation.f != "txn" or invocation.value[0][1] != EVERY_LIST:
            return invocation
        worker, workers = invocation.value[0][2]
        query = " UNION ALL ".join(f"SELECT DISTINCT k FROM lists_{number}" for number in range(TABLES))
        try:
            keys = sorted(k for (k,) in self.sql.run(query, write=False))
        except Exception:  # it stays as it is, and fails, and is asked again
            return invocation
        return Invocation("txn", [["r", k, None] for k in keys if k // TABLES % workers == worker])

    def _transaction(self, steps: list[list]) -> list[list]:
        if steps and steps[0][0] == "append":
            self.sql.run(append_sql(steps), write=True)
            return steps
        if any(k == EVERY_LIST for _, k, _ in steps):
            raise Failed("NotPrepared", "nobody said which lists there are")
        rows = self.sql.run(read_sql([k for _, k, _ in steps]), write=False) if steps else []
        found: dict[int, list[int]] = {}
        for k, _, v in rows:
            found.setdefault(k, []).append(v)
        return [["r", k, found.get(k, [])] for _, k, _ in steps]

    def _positions(self, key: int) -> list[list[int]]:
        rows = self.sql.run(
            f"SELECT pos, v FROM lists_{key % TABLES} WHERE k = {int(key)} ORDER BY pos, v", write=False
        )
        return [list(row) for row in rows]


def append_sql(steps: Sequence[Sequence]) -> str:
    """One statement for appends to lists of one table; several to one list take positions one behind the other."""
    table = f"lists_{steps[0][1] % TABLES}"
    seen: dict[int, int] = {}
    parts = []
    for _, k, v in steps:
        parts.append(f"SELECT {int(k)}, count(*) + {seen.get(k, 0)}, {int(v)} FROM {table} WHERE k = {int(k)}")
        seen[k] = seen.get(k, 0) + 1
    return f"INSERT INTO {table} {' UNION ALL '.join(parts)}"


def read_sql(keys: Sequence[int]) -> str:
    """One statement for several lists, each in its order (by position, then value)."""
    by_table = groupby(sorted(map(int, keys), key=lambda key: key % TABLES), key=lambda key: key % TABLES)
    parts = [f"SELECT k, pos, v FROM lists_{table} WHERE k IN ({', '.join(map(str, of))})" for table, of in by_table]
    return f"{' UNION ALL '.join(parts)} ORDER BY k, pos, v"
