"""SELECT: at a barrier or without one, by whoever has the rows, and ended when nobody waits for it."""

from __future__ import annotations

import asyncio

import pytest

from adapter.state.session_state import SessionState
from tests.adapter.stories import HeldTransport, refused, run


def test_a_select_waits_for_the_catalog_that_is_in_force():
    async def story(world):
        slow = HeldTransport(world.catalog_topic)
        async with world.adapter("slow", slow) as a, world.adapter("b") as b:
            slow.held = True
            await b.sql("create table t (a int)")
            await b.sql("insert into t values (7)")
            reading = asyncio.create_task(a.sql("select a from t"))
            asking = asyncio.create_task(a.sql("create table if not exists t (a int)"))
            await asyncio.sleep(0.05)
            assert not reading.done() and not asking.done()
            slow.release()
            assert await reading == [(7,)]
            assert await asking == "CREATE TABLE"

    run(story)


def test_a_serializable_session_reads_without_a_barrier():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            session = SessionState(99)
            session.set_variable("tidemark.isolation", "serializable")
            before = world.oracle_topic.end
            assert await a.sql("select a from t", session=session) == []
            assert world.oracle_topic.end == before
            assert a.peeks.asked[-1].as_of is None

    run(story)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_serializable_session_reads_what_it_wrote_also_of_a_controller_that_is_behind(grouped):
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            writer, other = SessionState(98), SessionState(99)
            for each in (writer, other):
                each.set_variable("tidemark.isolation", "serializable")
            await a.sql("insert into t values (1)")
            a.peeks.complete = a.oracle.state.last_ts
            if grouped:
                await asyncio.gather(*(a.sql(f"insert into t values ({n})", session=writer) for n in (2, 3)))
            else:
                writer.defers_writes = True
                await a.sql("insert into t values (2), (3)", session=writer)
                await a.executor.commit(writer)
            await a.sql("create view v as select a from t", session=writer)
            for relation in ("t", "v"):
                assert await a.sql(f"select a from {relation} order by a", session=writer) == [(1,), (2,), (3,)]
                assert await a.sql(f"select a from {relation}", session=other) == [(1,)], "it never waits"
            await a.sql("insert into t values (4)")
            a.peeks.complete = None
            assert len(await a.sql("select a from t", session=writer)) == 4, "its write is a bound, not the time"

    run(story)


def test_a_lookup_answers_as_spark_would():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int, b numeric(6,2), c text, d timestamptz)")
            await a.sql("insert into t values (1, 1.5, 'x', '2024-01-01'), (2, null, 'y', null), (3, 2.5, null, now())")
            queries = [
                "select * from t where a = 1",
                "select a, b * 2 from t where b > 1 order by b * 2 desc limit 1",
                "select count(*), sum(b), min(c), max(a), sum(a), count(b) from t",
                "select c from t where c is null",
                "select a from t where a in (1, 3) or c = 'y' order by a desc",
                "select sum(b) from t where a > 10",
                "select a from t where d = '2024-01-01 00:00:00+00'",
                "select a from t order by a offset 1",
                "select a + 1, -5, 'k' from t where not a = 1 order by 1",
            ]
            by_spark = [await a.sql(q) for q in queries]
            assert all(peek.lookup is None for peek in a.peeks.asked)
            await a.sql("create index on t (a)")
            asked = len(a.peeks.asked)
            assert [await a.sql(q) for q in queries] == by_spark
            assert all(peek.lookup is not None for peek in a.peeks.asked[asked:])

    run(story)


def test_a_constant_that_never_ends_is_interrupted_and_one_that_is_too_large_is_refused():
    async def story(world):
        async with world.adapter() as a:
            text = "select sum(a * b) from generate_series(1, 1000000) a, generate_series(1, 1000000) b"
            endless = asyncio.create_task(a.sql(text))
            await asyncio.sleep(0.2)
            endless.cancel()
            with pytest.raises(asyncio.CancelledError):
                await endless
            assert await a.sql("select 1") == [(1,)]
            huge = await refused(a.sql("select a, repeat('x', 1000) from generate_series(1, 300000) a"))
            assert huge.sqlstate in ("54000", "53200")

    run(story)
