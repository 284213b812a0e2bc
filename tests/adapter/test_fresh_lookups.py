"""Reads by key where the index has not come so far: what was committed since is laid over what it has."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from unittest.mock import patch

import psycopg
import pytest

from adapter.execute import recent_rows
from adapter.execute.laid_over import Keyed
from adapter.execute.recent_rows import RecentRows
from adapter.state.session_state import SessionState
from collection.binding import Move, Run
from collection.columns import DIFF
from collection.rows import decode
from controllers.arrangements.tuples import to_rows
from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from tests.adapter.blocks_by_key import SETUP, blocks, run_block
from tests.adapter.test_copies import client, on_a_loop, rows
from tests.adapter.test_uniques import Indexed, Looking, run
from tests.adapter.world import Answer, World
from tests.seeds import seed_of_commit

TABLE = "create table t (k int primary key, n int, x text)"


class Late(Looking):
    """Of indexes that stand still, or are up to ``lag`` timestamps behind; whoever does not take that is told "not
    now"."""

    lag = 0
    stands: int | None = None
    wrong = False
    chance = random.Random(1)

    async def lookup(self, peek, cluster_id):
        self.looked += 1
        state = self.oracle.state
        newest = max(state.last_ts - self.chance.randrange(self.lag + 1), state.since)
        newest = newest if self.stands is None else min(self.stands, newest)
        as_of = newest if peek.as_of is None else min(peek.as_of, newest)
        if as_of < (peek.as_of or 0) and not peek.behind:
            return None
        if self.wrong and as_of < state.last_ts:
            raise InvalidUsage("division by zero", sqlstate="22012")
        return Answer(self._lookup(peek.lookup, self._relation(peek.lookup.relation_id, state, as_of)), as_of)


class Following(Late):
    lag = 8


@asynccontextmanager
async def opened(*setup: str, world: type[Late] = Late):
    """A connection to an adapter whose indexes stand as they are now, and what plays its cluster."""
    found = []

    class Noted(world):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            found.append(self)

    class Here(World):
        answers = Noted

    async with client(Here(), *setup) as connection:
        peeks = found[0]
        peeks.stands = peeks.oracle.state.last_ts
        peeks.asked.clear()
        peeks.looked = 0
        yield connection, peeks


@on_a_loop
async def test_changes_by_key_one_after_the_other_wait_for_no_index():
    async with opened(TABLE, "insert into t select g, g * 10, 'x' from generate_series(1, 9) g") as (c, peeks):
        for _ in range(5):
            assert (await c.execute("update t set n = n + 1 where k = 7")).rowcount == 1
        assert peeks.looked == 5, "each asked once, for what it lays the others' rows over"
        await c.execute("update t set x = upper(x) || n::text, n = case when n > 5 then n * 2 end where k = 7")
        assert await rows(c, "select * from t where k = 7") == [(7, 150, "X75")]
        assert (await c.execute("update t set k = 17 where k = 7")).rowcount == 1
        assert await rows(c, "select * from t where k = 7") == []
        assert await rows(c, "select n from t where k = 17") == [(150,)]
        assert (await c.execute("delete from t where k = 8")).rowcount == 1
        assert (await c.execute("delete from t where k = 8")).rowcount == 0
        await c.execute("insert into t values (8, 0, 'new')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await c.execute("insert into t values (17, 0, 'there')")
        await c.execute("insert into t values (8, 1, 'b') on conflict (k) do update set n = t.n + 1, x = excluded.x")
        assert await rows(c, "select * from t where k = 8") == [(8, 1, "b")]
        assert await rows(c, "select count(*), sum(n) from t where k = 17") == [(1, 150)]
        async with c.transaction():
            assert await rows(c, "select n from t where k = 17") == [(150,)]
            await c.execute("update t set n = n + 1 where k = 17")
            assert await rows(c, "select n from t where k = 17") == [(151,)]
        assert await rows(c, "select n from t where k = 17") == [(151,)]
        await c.execute("truncate t")
        peeks.asked.clear()
        assert await rows(c, "select * from t where k = 17") == [] and peeks.asked == []


@on_a_loop
async def test_a_block_reads_at_its_own_time_and_not_what_was_committed_since():
    async with opened(TABLE, "insert into t values (1, 0, 'x')") as (c, peeks):
        async with c.transaction():
            await c.execute("set transaction isolation level repeatable read")
            assert await rows(c, "select n from t where k = 1") == [(0,)]
            async with client_beside(c) as other:
                await other.execute("update t set n = 1 where k = 1")
                await other.execute("update t set n = 2 where k = 1")
            assert await rows(c, "select n from t where k = 1") == [(0,)]
            peeks.stands += 1
            assert await rows(c, "select n from t where k = 1") == [(0,)]
        assert await rows(c, "select n from t where k = 1") == [(2,)] and peeks.asked == []


@asynccontextmanager
async def client_beside(connection):
    async with await psycopg.AsyncConnection.connect(
        f"host=127.0.0.1 port={connection.info.port} user=tidemark dbname=tidemark", autocommit=True
    ) as other:
        yield other


@on_a_loop
async def test_what_is_not_in_the_log_is_waited_for():
    """A large commit, many of them, and an error of a row that is another one by now."""
    async with opened(TABLE, "insert into t values (1, 1, 'x')") as (c, peeks):
        await c.execute("insert into t select g, g, repeat('y', 100) from generate_series(2, 400) g")
        assert await rows(c, "select n from t where k = 2") == [(2,)] and len(peeks.asked) == 1
        peeks.stands = peeks.oracle.state.last_ts
        await c.execute("update t set n = 5 where k = 1")
        assert await rows(c, "select n from t where k = 1") == [(5,)] and len(peeks.asked) == 1
        peeks.wrong = True
        assert await rows(c, "select n from t where k = 1") == [(5,)] and len(peeks.asked) == 2
        peeks.wrong = False
        with patch.object(recent_rows, "DECODED_BYTES_MAX", 10):
            peeks.asked.clear()
            for _ in range(3):
                await c.execute("update t set n = n + 1 where k = 1")
            assert peeks.asked
        peeks.asked.clear()
        assert await rows(c, "select n from t where k = 1") == [(8,)] and peeks.asked == []


@on_a_loop
async def test_columns_that_come_and_go_in_between():
    async with opened(TABLE, "insert into t values (1, 1, 'x')") as (c, peeks):
        await c.execute("update t set n = 2 where k = 1")
        await c.execute("alter table t add column y int default 7")
        peeks.stands = None  # of an index of other columns nobody says how it stood
        assert await rows(c, "select * from t where k = 1") == [(1, 2, "x", 7)]
        peeks.stands = peeks.oracle.state.last_ts
        await c.execute("update t set y = y + n where k = 1")
        assert await rows(c, "select * from t where k = 1") == [(1, 2, "x", 9)]
        await c.execute("alter table t drop column n")
        await c.execute("update t set y = y + 1 where k = 1")
        assert await rows(c, "select * from t where k = 1") == [(1, "x", 10)]


@on_a_loop
async def test_random_statements_have_the_same_answers_however_far_behind_an_index_is():
    class Here(World):
        answers = Following

    for block in blocks(seed_of_commit(), 2, 40):
        alone = [each for each in block if each.split()[0] not in ("begin", "commit", "rollback", "savepoint")]
        found = []
        for world in (World, Here):
            async with client(world(), *SETUP) as connection:
                found.append(await run_block(connection, alone))
        assert found[0] == found[1]


def test_changes_are_those_between_two_times():
    """Against all rows of both times, by every key; what was moved out of the log, or merged in it, nobody knows."""
    chance = random.Random(seed_of_commit())

    async def story(world):
        async with world.adapter("a") as a:
            await a.sql("create table t (k int primary key, n int)")
            table = next(each for each in a.catalog.image.objects() if each.name == "t")
            index = next(each for each in a.catalog.image.objects() if getattr(each, "relation_id", "") == table.id)
            first = a.oracle.state.last_ts
            for _ in range(30):
                key = chance.randrange(5)
                await a.sql(f"insert into t values ({key}, 0) on conflict (k) do update set n = t.n + 1")
            state, recent = a.oracle.state, RecentRows()
            runs = state.bindings(table.id)

            def at(ts, key):
                values = [value for _, _, value in runs.at(ts)]
                found = decode(table.columns, values)
                rows = zip(to_rows(found.drop_columns([DIFF])), found.column(DIFF).to_pylist(), strict=True)
                return counted((row, diff) for row, diff in rows if row[0] == key)

            for _ in range(100):
                after, through = sorted(chance.choices(range(first, state.last_ts + 1), k=2))
                key = chance.randrange(6)
                changes = recent.changes(state, Keyed(table, index, (key,)), DataTs(after), DataTs(through))
                assert counted([*at(after, key).items(), *changes]) == at(through, key)
            keyed = Keyed(table, index, (1,))
            assert recent.changes(state, Keyed(table, index, (None,)), first, state.last_ts) == []
            assert recent.changes(state, keyed, first, DataTs(state.last_ts + 1)) is None, "which may change yet"
            last = [each for each in runs.at(state.last_ts) if each.value][-1]
            moved = Move(table.id, last.run.lower, Run("env.data.x", 0, 0, 1, last.run.attempt, 1))
            await asyncio.wrap_future(a.oracle.move(moved))
            state = a.oracle.state
            assert RecentRows().changes(state, keyed, first, state.last_ts) is None
            assert recent.changes(state, keyed, first, state.last_ts) is not None, "which it had read before"

    run(story, World())


@pytest.mark.parametrize(("bound", "most"), [("BYTES_MAX", 2_000), ("ALL_BYTES_MAX", 3_000), ("INDEXES_MAX", 2)])
def test_what_is_kept_is_bounded_and_the_answers_are_the_same(bound, most):
    async def story(world):
        async with world.adapter("a") as a:
            for name in "tuv":
                await a.sql(f"create table {name} (k int primary key, x text)")
            first, recent, whole = a.oracle.state.last_ts, RecentRows(), RecentRows()
            image = a.catalog.image
            tables = [each for each in image.objects() if each.name in "tuv"]
            indexes = {each.relation_id: each for each in image.objects() if hasattr(each, "relation_id")}
            before = {each.id: first for each in tables}
            for n in range(40):
                await a.sql(f"insert into {'tuv'[n % 3]} values ({n}, repeat('x', 200))")
                state = a.oracle.state
                with patch.object(recent_rows, bound, most):
                    for each in tables:
                        keyed, after = Keyed(each, indexes[each.id], (n,)), before[each.id]
                        found = recent.changes(state, keyed, after, state.last_ts)
                        assert found == whole.changes(state, keyed, first, state.last_ts)
                        if n % 5 == 0:
                            before[each.id] = state.last_ts
                kept = [each.size for each in recent._kept.values()]
                assert bound != "BYTES_MAX" or max(kept) <= most + 1_500, "and what came since the last look"
                assert bound != "ALL_BYTES_MAX" or sum(kept[:-1]) <= most
                assert bound != "INDEXES_MAX" or len(kept) <= most

    run(story, World())


def counted(changes):
    found = {}
    for row, diff in changes:
        found[row] = found.get(row, 0) + diff
    return {row: count for row, count in found.items() if count}


class Standing(World):
    answers = Late


def knowing(adapter, state):
    """``adapter`` as if it had heard of nothing behind ``state`` but for what a barrier tells it."""
    return patch.object(type(adapter.executor.images), "newest", state)


def records(world, since):
    return len(list(world.oracle_topic.read(since)))


def test_a_change_by_key_is_one_record_and_holds_what_it_read_against_what_came_before():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(TABLE)
            await a.sql("insert into t values (1, 0, 'x'), (2, 0, 'x')")
            for change, left in (
                ("update t set n = n + 1 where k = 1", [(1,)]),
                ("update t set n = n + 1 where k = 1 returning n", [(2,)]),
                ("delete from t where k = 1", []),
            ):
                since = world.oracle_topic.end
                await a.sql(change)
                assert records(world, since) == 1, change
                assert await a.sql("select n from t where k = 1") == left
            await b.sql("select 1")
            old = b.oracle.state
            await a.sql("insert into t values (3, 0, 'new')")
            await a.sql("update t set n = 10 where k = 2")
            with knowing(b, old):
                assert await b.sql("update t set n = n + 1 where k = 3") == "UPDATE 1", "which it had not heard of"
                assert await b.sql("update t set n = n + 1 where k = 2 returning n") == [(11,)]
            old = b.oracle.state
            await a.sql("update t set n = 0 where k = 2")
            await a.sql("delete from t where k = 3")
            with knowing(b, old):
                assert await b.sql("update t set n = n + 1 where k = 3") == "UPDATE 0"
                assert await b.sql("update t set n = n + 2147483640 where k = 2") == "UPDATE 1", "too large before"
                assert await b.sql("delete from t where k = 3") == "DELETE 0"
            old = b.oracle.state
            await a.sql("alter table t add column y int default 4")
            with knowing(b, old):
                assert await b.sql("update t set y = y + 1 where k = 2 returning *") == [(2, 2147483640, "x", 5)]
            since = world.oracle_topic.end
            assert await a.sql("update t set n = 1 where k = 9") == "UPDATE 0"
            assert records(world, since) == 1, "a barrier's"

    run(story, Indexed(), Standing())


def test_counts_of_adapters_that_know_little_of_each_other_lose_nothing():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(TABLE)
            await a.sql("insert into t values (1, 0, 'x')")
            await b.sql("select 1")
            old = b.oracle.state

            async def count(adapter):
                session = SessionState(id(adapter))
                for _ in range(10):
                    assert await adapter.sql("update t set n = n + 1 where k = 1", session=session) == "UPDATE 1"

            with knowing(b, old):  # of either, which is as bad as it can be
                await asyncio.gather(count(a), count(b))
            assert await a.sql("select n from t where k = 1") == [(20,)]

    run(story, Indexed(), Standing())
