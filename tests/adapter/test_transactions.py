"""Transaction blocks as drivers use them: psycopg on the real server, with the executor on logs in memory."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg
import pytest
from psycopg import IsolationLevel, errors

from tests.adapter.test_clients import serving
from tests.adapter.world import World


def run(story):
    """``story(block, other, world)``: a connection that opens blocks by itself, and one that does not."""

    async def bounded():
        world = World()
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(world))
            given = {"host": "127.0.0.1", "port": port, "user": "tidemark", "dbname": "tidemark"}
            block, other = [
                await stack.enter_async_context(await psycopg.AsyncConnection.connect(**given, autocommit=autocommit))
                for autocommit in (False, True)
            ]
            await other.execute("create table t (a int)")
            await other.execute("create table u (a int)")
            await other.execute("create view v as select a from t where a > 0")
            await other.execute("insert into t values (1)")
            await story(block, other, world)

    asyncio.run(asyncio.wait_for(bounded(), 60))


async def one(connection, sql: str):
    return (await (await connection.execute(sql)).fetchone())[0]


@pytest.mark.parametrize("level", [None, *IsolationLevel])
def test_at_which_timestamp_a_block_reads(level):
    async def story(block, other, world):
        await block.set_isolation_level(level)
        seen = await one(block, "select count(*) from t")
        await other.execute("insert into t values (2)")
        await other.execute("insert into u values (3)")
        per_statement = level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        counts = [seen]
        for relation in ("t", "v", "u"):
            counts.append(await one(block, f"select count(*) from {relation}"))
        assert counts == ([1, 2, 2, 1] if per_statement else [1, 1, 1, 0])
        assert await one(other, "select count(*) from t") == 2
        await block.rollback()
        assert await one(block, "select count(*) from u") == 1

    run(story)


def test_a_cursor_and_a_prepared_statement_read_there_too():
    async def story(block, other, world):
        await block.execute("prepare p as select count(*) from t")
        assert await one(block, "execute p") == 1
        await other.execute("insert into t values (2)")
        async with block.cursor(name="c") as cursor:
            await cursor.execute("select a from t")
            assert await cursor.fetchall() == [(1,)]
        assert await one(block, "execute p") == 1
        await block.commit()
        assert await one(block, "execute p") == 2

    run(story)


@pytest.mark.parametrize(
    ("level", "refused"),
    [(None, True), (IsolationLevel.SERIALIZABLE, True), (IsolationLevel.REPEATABLE_READ, False),
     (IsolationLevel.READ_COMMITTED, False)],
)  # fmt: skip
def test_what_a_block_writes_hangs_on_what_it_read(level, refused):
    async def story(block, other, world):
        await block.set_isolation_level(level)
        for table, wanted in (("u", False), ("t", refused)):  # it reads t, also through v, and writes u
            assert await one(block, "select count(*) from v") == 1
            await block.execute("insert into u values (7)")
            await other.execute(f"insert into {table} values (0)")
            if wanted:
                with pytest.raises(errors.SerializationFailure):
                    await block.commit()
            else:
                await block.commit()
        assert await one(other, "select count(*) from u where a = 7") == (1 if refused else 2)

    run(story)


def test_what_was_read_was_written_and_then_dropped():
    async def story(block, other, world):
        assert await one(block, "select count(*) from t") == 1
        await block.execute("insert into u values (7)")
        await other.execute("insert into t values (0)")
        await other.execute("drop table t cascade")
        with pytest.raises(errors.SerializationFailure):
            await block.commit()
        assert await one(other, "select count(*) from u") == 0

    run(story)


def test_a_block_is_not_told_that_its_rows_are_missing():
    async def story(block, other, world):
        await block.execute("insert into t values (5)")
        assert await one(block, "select count(*) from u") == 0
        await block.execute("savepoint s")
        for sql in ("select * from t", "select * from v", "insert into u select a from t"):
            with pytest.raises(errors.FeatureNotSupported, match='reading "t"'):
                await block.execute(sql)
            await block.execute("rollback to s")
        await block.commit()
        assert await one(block, "select count(*) from t") == 2

    run(story)


def test_a_block_that_only_reads_costs_one_barrier():
    async def story(block, other, world):
        before = world.oracle_topic.end
        for _ in range(5):
            await one(block, "select count(*) from t")
        assert world.oracle_topic.end - before == 1

    run(story)
