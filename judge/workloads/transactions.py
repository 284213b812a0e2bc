"""Lists that grow in place, in transaction blocks: reads and writes of several lists in several tables, in any order.

A list is one row, its elements a text; an append is ``UPDATE … SET v = v || x``, or the INSERT of its row where there
is none yet.  So every append reads and takes back what it changes, and a block reads what it wrote itself, also what it
then took back to a savepoint.  What blocks mean together is a search for cycles (``judge/checkers/list_append.py``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from judge.workloads.api import Failed, Invocation, World
from judge.workloads.append import lists_appended_to
from judge.workloads.asking import Asking, carried_out
from judge.workloads.sql_client import SqlClient, prepare_world

TABLES = 4
"""List ``k`` is in table ``k % TABLES``: who reads one table and writes another can miss what another block does the
other way round."""

KEYS = 8
"""Lists of one generation."""

GENERATION_LEN = 25
"""Blocks of a worker before it goes on to the next generation: lists of some dozens of elements."""

STEPS_MAX = 4
"""Of a block."""

READ_ONLY_SHARE = 0.35
APPEND_SHARE = 0.5
"""Of the steps of the other blocks."""

UNDO_SHARE = 0.1
"""Of the steps: appends that are taken back to a savepoint."""

LOOK_SHARE = 0.5
"""Of the appends: those whose list is read right after."""


def blocks(rng: random.Random, worker: int, workers: int) -> Iterator[list[list]]:
    """The steps of one block after the other: ``["append", k, v]``, ``["undo", k, v]``, ``["r", k, null]``.  Pure."""
    appended = count()
    for number in count():
        first = KEYS * (number // GENERATION_LEN)
        if rng.random() < READ_ONLY_SHARE:
            # Also the generation before, which others may still append to.
            keys = range(max(0, first - KEYS), first + KEYS)
            yield [["r", k, None] for k in sorted(rng.sample(keys, min(len(keys), rng.randint(2, STEPS_MAX))))]
            continue
        steps: list[list] = []
        for _ in range(rng.randint(1, STEPS_MAX)):
            k, drawn = rng.randrange(first, first + KEYS), rng.random()
            if drawn < APPEND_SHARE:
                steps.append(["append", k, worker + workers * next(appended)])
            elif drawn < APPEND_SHARE + UNDO_SHARE:
                steps.append(["undo", k, worker + workers * next(appended)])
            if drawn >= APPEND_SHARE or rng.random() < LOOK_SHARE:
                steps.append(["r", k, None])
        yield steps


def table_of(key: int) -> str:
    return f"kept_{int(key) % TABLES}"


def read_sql(key: int) -> str:
    return f"SELECT v FROM {table_of(key)} WHERE k = %s"


def append_sql(key: int) -> str:
    return f"UPDATE {table_of(key)} SET v = v || %s WHERE k = %s RETURNING v"


def first_sql(key: int) -> str:
    return f"INSERT INTO {table_of(key)} VALUES (%s, %s)"


def element(value: int) -> str:
    return f",{int(value)}"


def elements(rows: Sequence[Sequence[str]]) -> list[int]:
    """A list's elements: of its row, or of its rows, should there be several by mistake."""
    return [int(each) for (text,) in sorted(rows) for each in text.split(",") if each]


def asked(steps: Sequence[Sequence]) -> Asking:
    """The statements of a block, and its steps with the reads filled."""
    found = []
    for what, key, value in steps:
        if what == "r":
            found.append(["r", key, elements((yield read_sql(key), (key,)))])
            continue
        if what == "undo":
            yield "SAVEPOINT before", ()
        if not (yield append_sql(key), (element(value), key)):
            yield first_sql(key), (key, element(value))
        if what == "undo":
            yield "ROLLBACK TO before", ()
        found.append([what, key, value])
    return found


class Transactions:
    name = "transactions"
    clients = 4
    clients_quick = 3
    rate = 2.0
    rate_quick = 2.0

    def setup(self, world: World) -> None:
        prepare_world(world, [
            statement for number in range(TABLES) for statement in (
                f"CREATE TABLE kept_{number} (k int NOT NULL, v text NOT NULL)",
                f"CREATE INDEX kept_{number}_k ON kept_{number} (k)",
            )
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for steps in blocks(rng, worker, workers):
            yield Invocation("txn", steps)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """The newest lists, whose appends may not have been seen; elder ones were read while they were of use."""
        return [Invocation("everything", [worker, workers])]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The lists that it appended to: an index answers."""
        return lists_appended_to(unknown)

    def open(self, world: World, worker: int, life: int) -> TransactionsClient:
        return TransactionsClient(world, self.name, worker, life)


class TransactionsClient(SqlClient):
    """Of blocks over lists, wherever these are."""

    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"txn": self._transaction, "everything": self._everything}

    def asked(self, steps: Sequence[Sequence]) -> Asking:
        """The statements of a block, and its steps with the reads filled."""
        return asked(steps)

    def lists(self, worker: int, workers: int) -> list[int]:
        """The lists that there are of this worker's share.  Raises what a read does."""
        query = " UNION ALL ".join(f"SELECT k FROM kept_{number}" for number in range(TABLES))
        keys = sorted({k for (k,) in self.sql.run(query, write=False)})
        return [k for k in keys if k // TABLES % workers == worker]

    def prepare(self, invocation: Invocation) -> Invocation:
        """``everything`` becomes a block that reads the lists of this worker's share that there are."""
        super().prepare(invocation)
        if invocation.f != "everything":
            return invocation
        try:
            keys = self.lists(*invocation.value)
        except Exception:  # it stays as it is, and fails, and is asked again
            return invocation
        return Invocation("txn", [["r", k, None] for k in keys])

    def _everything(self, _value: Any) -> None:
        raise Failed("NotPrepared", "nobody said which lists there are")

    def _transaction(self, steps: list[list]) -> list[list]:
        writes = any(step[0] == "append" for step in steps)
        with self.sql.block(writes=writes) as run:
            return carried_out(self.asked(steps), run)
