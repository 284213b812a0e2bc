"""Lists that grow row by row in a table with a primary key, of which blocks read ranges, in any order.

A row is an element of a list, its key the list and the element; an append is an ``INSERT … SELECT count(*) …``,
which reads the list's range of keys and puts a row into it that was not there: a phantom to whoever reads that range
beside it.  Lists are neighbours in one table, so commits meet by ranges alone.  What blocks mean together is a search
for cycles (``judge/checkers/list_append.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from judge.workloads.api import World
from judge.workloads.asking import Asking
from judge.workloads.sql_client import prepare_world
from judge.workloads.transactions import Transactions, TransactionsClient

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


class Ranges(Transactions):
    name = "ranges"

    def setup(self, world: World) -> None:
        prepare_world(world, [f"CREATE TABLE {TABLE} {COLUMNS}"])

    def open(self, world: World, worker: int, life: int) -> RangesClient:
        return RangesClient(world, self.name, worker, life)


class RangesClient(TransactionsClient):
    def asked(self, steps: Sequence[Sequence]) -> Asking:
        return asked(steps)

    def lists(self, worker: int, workers: int) -> list[int]:
        keys = sorted(k for (k,) in self.sql.run(LISTS, write=False))
        return [k for k in keys if k % workers == worker]
