"""INSERT … ON CONFLICT: what is there is updated or left, once for each statement that was acknowledged."""

from __future__ import annotations

import asyncio
import random

import pytest

from adapter.state.session_state import SessionState
from journal.errors import Conflict, TidemarkError
from lower.duckdb import constants
from lower.duckdb.constants import text_of
from tests.adapter.stories import before_commit, refused
from tests.adapter.test_uniques import Indexed, Newest, between_looks, parts_of, run
from tests.adapter.world import World

COUNT = "insert into t values ($1, 1) on conflict (k) do update set n = t.n + excluded.n"


async def counters(a):
    await a.sql("create table t (k int primary key, n int default 0, b text unique)")


def test_rows_are_added_updated_or_left_out_and_returned_in_their_order():
    async def story(world):
        async with world.adapter() as a:
            await counters(a)
            assert await a.sql("insert into t values (1, 1), (2, 2) on conflict do nothing") == "INSERT 0 2"
            told = await a.sql("insert into t values (3, 3), (1, 9), (3, 4), (4, 4) on conflict do nothing returning k")
            assert told == [(3,), (4,)]
            mixed = (
                "insert into t as x values (9, 1), (2, 5), (8, 1), (1, 7) on conflict (k) "
                "do update set n = x.n + excluded.n where x.n > 1 returning k, n"
            )
            assert await a.sql(mixed) == [(9, 1), (2, 7), (8, 1)]
            assert (await refused(a.sql("insert into t values (5, 1), (5, 2) on conflict (k) do update set n = 0"))
                    ).sqlstate == "21000"  # fmt: skip
            assert await a.sql("select k, n from t order by k") == [(1, 1), (2, 7), (3, 3), (4, 4), (8, 1), (9, 1)]

    run(story)


def test_an_update_is_made_of_the_row_that_is_there_when_it_is_committed():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            before_commit(a, lambda: b.sql(COUNT, 1))
            assert await a.sql(COUNT + " returning n", 1) == [(2,)], "it was to be added, and was there then"
            before_commit(a, lambda: b.sql("update t set n = 10 where k = 1"))
            assert await a.sql(COUNT + " returning n", 1) == [(11,)]
            before_commit(a, lambda: b.sql("delete from t where k = 1"))
            assert await a.sql(COUNT + " returning n", 1) == [(1,)]
            before_commit(a, lambda: b.sql(COUNT, 2))
            refused_before = a.oracle.state.stats.parts_refused
            assert await a.sql(COUNT, 3) == "INSERT 0 1"
            assert a.oracle.state.stats.parts_refused == refused_before, "another key is no conflict"

    run(story)


def test_what_is_left_out_is_so_for_a_row_that_is_there_now():
    """The adapter has not heard yet that the row is gone: it asks before it leaves anything out."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            await a.sql("insert into t values (1, 1)")
            state = a.oracle.state
            await b.sql("delete from t where k = 1")
            newest = type(a.executor.images).newest_ts
            type(a.executor.images).newest_ts = property(lambda self: state.last_ts)
            try:
                assert await a.sql("insert into t values (1, 5) on conflict do nothing returning n") == [(5,)]
            finally:
                type(a.executor.images).newest_ts = newest
            parts = parts_of(a)
            assert await a.sql("insert into t values (1, 6) on conflict do nothing") == "INSERT 0 0"
            assert not parts, "nothing is written then"

    run(story)


def test_a_block_meets_its_own_rows():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            await a.sql("insert into t values (1, 10)")
            session = a.session
            session.transaction.begin()

            async def inside(text, *params):
                session.defers_writes = True
                try:
                    return await a.sql(text, *params)
                finally:
                    session.defers_writes = False

            assert await inside(COUNT + " returning n", 2) == [(1,)]
            assert await inside(COUNT + " returning n", 2) == [(2,)]
            assert await inside(COUNT + " returning n", 1) == [(11,)]
            assert await inside(COUNT + " returning n", 1) == [(12,)]
            assert await inside("delete from t where k = 1") == "DELETE 1"
            assert await inside(COUNT + " returning n", 1) == [(1,)]
            assert await inside("insert into t values (2, 0) on conflict do nothing") == "INSERT 0 0"
            await a.executor.commit(session)
            session.transaction.end()
            assert await b.sql("select k, n from t order by k") == [(1, 1), (2, 2)]

            session.transaction.begin()
            assert await inside(COUNT, 1) == "INSERT 0 1"
            await b.sql(COUNT, 1)
            with pytest.raises(Conflict) as caught:
                await a.executor.commit(session)
            assert caught.value.sqlstate == "40001"
            session.transaction.end()
            assert await b.sql("select n from t where k = 1") == [(2,)]

    run(story, World())


def test_a_blocks_own_rows_of_what_the_table_was_are_a_conflict():
    """The block cannot be committed: its client is told to do it again, and not that a column of ours is missing."""

    async def story(world):
        async with world.adapter() as a:
            await counters(a)
            session = a.session
            session.transaction.begin()
            session.defers_writes = True
            await a.sql(COUNT, 1)
            session.defers_writes = False
            await a.sql("alter table t add column c int", session=SessionState(99))
            for text in (COUNT, "insert into t values ($1, 0) on conflict do nothing"):
                session.defers_writes = True
                assert (await refused(a.sql(text, 1))).sqlstate == "40001"
                session.defers_writes = False
            assert await a.sql(COUNT, 1, session=SessionState(98)) == "INSERT 0 1"

    run(story, World())


@pytest.mark.parametrize("then", ["do nothing", "(k) do update set n = 0 where false"])
def test_a_serializable_block_hangs_on_rows_that_it_left_as_they_are(then):
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            await a.sql("create table other (n int)")
            await a.sql("insert into t values (1), (2)")
            session = a.session
            for level, left, changed, stays in (
                ("serializable", 1, 2, True),
                ("serializable", 2, 2, False),
                ("repeatable read", 1, 1, True),
            ):
                session.transaction.begin()
                session.set_variable("transaction_isolation", level)
                session.defers_writes = True
                assert await a.sql(f"insert into t values ({left}) on conflict {then}") == "INSERT 0 0"
                await a.sql("insert into other values (1)")
                session.defers_writes = False
                await b.sql("update t set n = n + 1 where k = $1", changed)
                if stays:
                    await a.executor.commit(session)
                else:
                    assert (await refused(a.executor.commit(session))).sqlstate == "40001"
                session.transaction.end()
                session.buffer.cut(0)

    run(story, World())


@pytest.mark.parametrize("seed", range(2))
def test_every_count_that_was_acknowledged_is_there(seed):
    """Sessions on two adapters count up the same few rows, which others take away: nothing is lost, nothing twice."""

    async def story(world):
        rng = random.Random(seed)
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            counted = gone = 0

            async def client(adapter):
                nonlocal counted, gone
                session = SessionState(rng.randrange(1 << 30))
                for _ in range(10):
                    await asyncio.sleep(rng.random() / 500)
                    try:
                        if rng.random() < 0.2:
                            for row in await adapter.sql(
                                "delete from t where k = $1 returning n", rng.randrange(3), session=session
                            ):
                                gone += row[0]
                        elif rng.random() < 0.5:
                            await adapter.sql(COUNT, rng.randrange(3), session=session)
                            counted += 1
                        else:
                            two = COUNT.replace("1)", "1), ($2, 2)")
                            await adapter.sql(two, *rng.sample(range(3), 2), session=session)
                            counted += 3
                    except TidemarkError as error:
                        assert error.sqlstate == "40001", error

            await asyncio.gather(*(client(adapter) for adapter in (a, b) * 3))
            rows = await b.sql("select k, n from t")
            assert len({k for k, _ in rows}) == len(rows)
            assert sum(n for _, n in rows) == counted - gone

    run(story, Indexed())


def test_errors_of_a_stale_catalog_are_not_told():
    """The constraint that was meant is dropped while the statement runs: it is planned again, and says so."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            before_commit(a, lambda: b.sql("alter table t drop constraint t_pkey"))
            assert (await refused(a.sql(COUNT, 1))).sqlstate == "42P10"

    run(story)


def test_a_row_that_where_left_as_it_is_keeps_its_key():
    async def story(world):
        async with world.adapter() as a:
            await counters(a)
            await a.sql("insert into t values (1), (2)")
            taken = "on conflict (k) do update set k = 2 where excluded.n = 7"
            for values in ("(1, 7), (2, 8)", "(2, 8), (1, 7)"):
                error = await refused(a.sql(f"insert into t values {values} {taken}"))
                assert (error.sqlstate, error.detail) == ("23505", "Key (k)=(2) already exists.")
            assert await a.sql("select k, n from t order by k") == [(1, 0), (2, 0)]

    run(story)


def test_of_two_who_update_a_row_to_the_same_nobody_hears_of_a_duplicate():
    """The keys are looked up one after the other: what the other one has made of the row is not in its way."""

    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await counters(a)
            await a.sql("insert into t values (1, 0, 'old')")
            same = "insert into t values (1, 0, 'new') on conflict (k) do update set b = excluded.b, n = t.n + 1"
            between_looks(a, lambda: b.sql(same))
            assert await a.sql(same) == "INSERT 0 1"
            assert await b.sql("select * from t") == [(1, 2, "new")]

    run(story, Newest())


def test_long_values_of_rows_are_not_written_out_for_an_engine(monkeypatch):
    """An array of 20,000 items took gigabytes as text, once for each place that named its column."""
    lengths: list[int] = []

    def noted(query):
        text = text_of(query)
        lengths.append(len(text))
        return text

    monkeypatch.setattr(constants, "text_of", noted)

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (k int primary key, n int[], b text)")
            await a.sql("insert into t values (1, $1, $2)", list(range(5_000)), "é" * 5_000)
            inserted = len(lengths)
            change = "insert into t values (1, '{7}') on conflict (k) do update set n[2] = t.n[4] + 5, b = t.b || t.b"
            assert await a.sql(f"{change} returning n[2], n[5000], length(b)") == [(8, 4999, 10_000)]
            assert await a.sql("update t set b = b returning cardinality(n), n[1:3], t.n || 1 = n") == [
                (5_000, [0, 8, 2], False)
            ]
            assert await a.sql("insert into t select 2, n, b from t returning k + 1, cardinality(n)") == [(3, 5_000)]
        assert all(each < 5_000 for each in lengths[inserted:])

    run(story)
    assert lengths
