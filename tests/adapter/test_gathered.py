"""What a block has written, as one entry of each table for the rows that come and one for those that go."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa

from adapter.execute.inserter import Inserter
from adapter.execute.rows import ON_LOOP_ROWS_MAX, Rows, gathered
from journal.timestamps import DataTs
from oracle.model import KeyRange
from tests.adapter.test_copies import client, on_a_loop, rows
from tests.adapter.test_uniques import Indexed
from tests.sql.doubles import ddl, empty_image

IMAGE = ddl(empty_image(), "create table t (a int, b text)", "create table u (a int, b text)")
T, U = (IMAGE.item_by_name("s1", name) for name in ("t", "u"))


def entry(table, *values: tuple[int, str], gone: bool = False, **more) -> Rows:
    names = ["c0", "c1"] if gone else ["a", "b"]
    arrays = [pa.array([a for a, _ in values], pa.int32()), pa.array([b for _, b in values], pa.string())]
    return Rows(table, pa.table(arrays, names=names), 5, removed=table.columns if gone else None, **more)


def bag(entries) -> Counter:
    found: Counter = Counter()
    for each in entries:
        for row in zip(*(column.to_pylist() for column in each.rows.columns), strict=True):
            found[each.table.id, each.removed is None, row] += 1
    return found


def test_the_rows_are_the_same_and_hang_on_all_that_each_did():
    on = object(), object()
    written = [
        entry(T, (1, "x"), planned_on=(on[0],), read_ts=DataTs(9), reads=("t",), points=frozenset([b"1"])),
        entry(T, (1, "x"), gone=True, planned_on=(on[0],), read_ts=DataTs(7), ranges=(KeyRange("u", b"a", b"b"),)),
        entry(U, (1, "x")),
        replace(entry(T, (2, "y"), (1, "x"), planned_on=(on[1],), reads=("u", "t")), catalog_upper=3),
        entry(T, (2, "y"), gone=True, read_ts=DataTs(8), points=frozenset([b"2"])),
    ]
    found = gathered(written)
    assert bag(found) == bag(written) and len(found) == 3
    come, gone, other = found
    assert (come.catalog_upper, come.read_ts, come.reads) == (3, 9, ("t", "u"))
    assert come.planned_on == on and come.points == {b"1"}
    assert (gone.read_ts, gone.points, gone.ranges) == (7, {b"2"}, (KeyRange("u", b"a", b"b"),))
    assert other is written[2], "what is alone is as it was"


def test_what_is_large_goes_by_itself():
    large = entry(T, *[(n, "x") for n in range(ON_LOOP_ROWS_MAX + 1)])
    assert gathered([large, large, entry(T, (1, "x")), entry(T, (2, "x"))])[:2] == [large, large]


@on_a_loop
async def test_a_block_of_many_statements_is_a_commit_of_few_entries():
    world = Indexed()
    async with client(world, "create table t (k int primary key, n int)", autocommit=False) as c:
        for key in range(5):
            await c.execute(f"insert into t values ({key}, 0)".encode())
            await c.execute(f"update t set n = n + 1 where k = {key}".encode())
            await c.execute("update t set n = n + 1 where k = 0")
        await c.execute("delete from t where k = 3")
        committed, commit = [], Inserter.commit

        def noted(inserter, entries, *rest):
            committed.extend(entries)
            return commit(inserter, entries, *rest)

        with patch.object(Inserter, "commit", noted):
            await c.commit()
        assert [(each.removed is None, each.rows.num_rows) for each in committed] == [(True, 15), (False, 11)]
        assert await rows(c, "select * from t order by k") == [(0, 6), (1, 1), (2, 1), (4, 1)]
