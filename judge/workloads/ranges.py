"""Lists that grow row by row in a table with a primary key, of which blocks read ranges, in any order.

A row is an element of a list, its key the list and the element; an append is an ``INSERT … SELECT count(*) …``,
which reads the list's range of keys and puts a row into it that was not there: a phantom to whoever reads that range
beside it.  Lists are neighbours in one table, so commits meet by ranges alone.  What blocks mean together is a search
for cycles (``judge/checkers/list_append.py``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from judge.workloads.api import Failed, Invocation, World
from judge.workloads.append import lists_appended_to
from judge.workloads.asking import Asking, carried_out
from judge.workloads.sql_client import SqlClient, prepare_world
from judge.workloads.transactions import blocks

TABLE = "ranged"

COLUMNS = "(k bigint NOT NULL, v bigint NOT NULL, pos bigint NOT NULL, PRIMARY KEY (k, v))"

READ = f"SELECT pos, v FROM {TABLE} WHERE k BETWEEN %s AND %s"
APPEND = f"INSERT INTO {TABLE} SELECT %s::bigint, %s::bigint, count(*) FROM {TABLE} WHERE k = %s::bigint"
LISTS = f"SELECT DISTINCT k FROM {TABLE}"


def asked(steps: Sequence[Sequence]) -> Asking:
    """The statements of a block, and its steps with the reads filled."""
    found = []
    for what, key, value in steps:
        if what == "r":
            rows = yield READ, (key, key)
            found.append(["r", key, [int(v) for _, v in sorted(rows)]])
            continue
        if what == "undo":
            yield "SAVEPOINT before", ()
        yield APPEND, (key, value, key)
        if what == "undo":
            yield "ROLLBACK TO before", ()
        found.append([what, key, value])
    return found


class Ranges:
    name = "ranges"
    clients = 4
    clients_quick = 3
    rate = 2.0
    rate_quick = 2.0

    def setup(self, world: World) -> None:
        prepare_world(world, [f"CREATE TABLE {TABLE} {COLUMNS}"])

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for steps in blocks(rng, worker, workers):
            yield Invocation("txn", steps)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """The newest lists, whose appends may not have been seen; elder ones were read while they were of use."""
        return [Invocation("everything", [worker, workers])]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The lists that it appended to: the key's index answers."""
        return lists_appended_to(unknown)

    def open(self, world: World, worker: int, life: int) -> RangesClient:
        return RangesClient(world, self.name, worker, life)


class RangesClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"txn": self._transaction, "everything": self._everything}

    def prepare(self, invocation: Invocation) -> Invocation:
        """``everything`` becomes a block that reads the lists of this worker's share that there are."""
        super().prepare(invocation)
        if invocation.f != "everything":
            return invocation
        worker, workers = invocation.value
        try:
            keys = sorted(k for (k,) in self.sql.run(LISTS, write=False))
        except Exception:  # it stays as it is, and fails, and is asked again
            return invocation
        return Invocation("txn", [["r", k, None] for k in keys if k % workers == worker])

    def _everything(self, _value: Any) -> None:
        raise Failed("NotPrepared", "nobody said which lists there are")

    def _transaction(self, steps: list[list]) -> list[list]:
        writes = any(step[0] == "append" for step in steps)
        with self.sql.block(writes=writes) as run:
            return carried_out(asked(steps), run)
