"""Inserts written together: who shares a write, who waits for whom, and what becomes of a group that fails."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pyarrow as pa
import pytest

from adapter.execute.write_groups import ENTRY_BYTES_MAX, GROUP_ENTRIES_MAX, WriteGroups
from journal.errors import Indeterminate, Unavailable
from tests.finishing import finished


class Entry(NamedTuple):
    table: object
    rows: pa.Table

    @property
    def size(self):
        return self.rows.nbytes


TABLE, OTHER = ["t"], ["t"]  # equal, and not the same: as after an ALTER


def entry(*values, table=TABLE):
    return Entry(table, pa.table({"x": pa.array(values, pa.int64())}))


class Log:
    """Writes and commits when it is told to."""

    def __init__(self):
        self.written, self.committed = [], []
        self.may_write, self.may_commit = asyncio.Event(), asyncio.Event()
        self.error = None
        self.groups = WriteGroups(self.merge, self.write, self.commit)

    def merge(self, entries):
        return Entry(entries[0].table, pa.concat_tables([each.rows for each in entries]))

    async def write(self, merged):
        self.written.append(merged.rows.column(0).to_pylist())
        await self.may_write.wait()
        if self.error is not None and not self.may_commit.is_set():
            raise self.error
        return len(self.written)

    async def commit(self, merged, written):
        await self.may_commit.wait()
        if self.error is not None:
            raise self.error
        self.committed.append(merged.rows.column(0).to_pylist())
        return 100 + written

    def ask(self, *entries):
        return [asyncio.ensure_future(self.groups.commit(each)) for each in entries]

    async def until_written(self, count):
        while len(self.written) < count:
            await asyncio.sleep(0)


def play(story):
    finished(story(Log()))


def test_those_who_come_together_are_one_write_and_other_tables_are_none_of_theirs():
    async def story(log):
        log.may_write.set(), log.may_commit.set()
        asked = log.ask(entry(1), entry(2, 3), entry(4, table=OTHER), entry(5))
        assert await asyncio.gather(*asked) == [101, 101, 102, 101]
        assert log.written == [[1, 2, 3, 5], [4]]
        assert await asyncio.gather(*log.ask(entry(6))) == [103], "and later ones are served as well"

    play(story)


def test_those_who_come_while_a_group_is_written_are_the_next_and_wait_for_no_commit():
    async def story(log):
        (first,) = log.ask(entry(1))
        await log.until_written(1)
        later = log.ask(*(entry(n) for n in range(2, GROUP_ENTRIES_MAX + 5)))
        await asyncio.sleep(0)
        assert log.written == [[1]]
        log.may_write.set()
        await log.until_written(3)
        assert [len(each) for each in log.written] == [1, GROUP_ENTRIES_MAX, 3], "though nothing is committed yet"
        assert not first.done()
        log.may_commit.set()
        assert await asyncio.gather(first, *later) == [101] + [102] * GROUP_ENTRIES_MAX + [103] * 3

    play(story)


def test_a_group_is_bounded_in_bytes_and_a_large_entry_is_none():
    async def story(log):
        log.may_write.set(), log.may_commit.set()
        large = ENTRY_BYTES_MAX // 8
        assert log.groups.takes(entry(*range(large))) and not log.groups.takes(entry(*range(large + 1)))
        await asyncio.gather(*log.ask(*[entry(*range(large))] * 6))
        assert [len(each) // large for each in log.written] == [4, 2]

    play(story)


@pytest.mark.parametrize("stage", ("write", "commit"))
def test_all_of_a_group_hear_why_it_failed_and_the_next_one_is_served(stage):
    async def story(log):
        log.error = Unavailable("no broker") if stage == "write" else Indeterminate("who knows")
        log.may_write.set()
        if stage == "commit":
            log.may_commit.set()
        found = await asyncio.gather(*log.ask(entry(1), entry(2)), return_exceptions=True)
        assert found == [log.error] * 2 and log.committed == []
        log.error = None
        log.may_commit.set()
        assert await asyncio.gather(*log.ask(entry(3))) == [102] and log.committed == [[3]]

    play(story)


def test_one_who_left_takes_nothing_with_it():
    async def story(log):
        gone, stays = log.ask(entry(1), entry(2))
        await log.until_written(1)
        gone.cancel()
        log.may_write.set(), log.may_commit.set()
        assert await stays == 101 and log.committed == [[1, 2]]

    play(story)
