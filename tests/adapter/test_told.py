"""What a client is told of a statement's columns and parameters, on an adapter that has not heard of an ALTER yet.

The other adapter has acknowledged it, so every answer must be of the catalog in force: no client that asks for the
first time may meet "cached plan must not change result type", whichever messages its driver sends.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg
import pytest
from psycopg import errors

from adapter.server.server import Server
from tests.adapter.world import World
from tests.adapter_wire import frontend as f
from tests.adapter_wire.loopback import Raw
from tests.finishing import finished


class Lagging:
    """Has an adapter prepare and plan by the catalog as it is now, until its next barrier; counts how often it did."""

    def __init__(self, adapter) -> None:
        images = adapter.executor.images
        self._catalog, self._present, self._barrier = adapter.catalog, images.known, images.barrier
        self.image, self.times = None, 0
        images.known, images.barrier = self._as_it_was, self._asked

    def fall_behind(self) -> None:
        self.image, self.times = self._catalog.image, 0

    async def _as_it_was(self, upper):
        if self.image is None or self.times == 2:
            return await self._present(upper)
        self.times += 1
        return self.image

    async def _asked(self):
        self.image = None
        return await self._barrier()


def run(story):
    async def bounded():
        world = World()
        async with AsyncExitStack() as stack:
            other, ours = [await stack.enter_async_context(world.adapter(name)) for name in ("other", "ours")]
            server = Server(ours.executor)
            _, port = await server.start("127.0.0.1", 0)
            stack.push_async_callback(server.stop)
            client = await psycopg.AsyncConnection.connect(
                host="127.0.0.1", port=port, user="tidemark", dbname="tidemark", autocommit=True
            )
            await stack.enter_async_context(client)
            await other.sql("create table t (a int, b int)")
            await other.sql("insert into t values (1, 2)")
            await client.execute("select count(*) from t")
            await story(other.sql, client, Lagging(ours))

    finished(bounded())


async def simple(client):
    return await (await client.execute("select * from t")).fetchall()


async def with_a_parameter(client):
    return await (await client.execute("select * from t where a = %s", [1])).fetchall()


async def prepared_by_name(client):
    return await (await client.execute("select * from t where 1 = %s", [1], prepare=True)).fetchall()


async def in_binary(client):
    return await (await client.cursor(binary=True).execute("select * from t")).fetchall()


async def by_cursor(client):
    async with client.transaction(), client.cursor(name="c") as cursor:
        await cursor.execute("select * from t")
        return await cursor.fetchall()


async def by_prepare(client):
    await client.execute("prepare p as select * from t")
    return await (await client.execute("execute p")).fetchall()


DESCRIBED = f.parse("select * from t", "s"), f.describe("S", "s"), f.SYNC
RUN = f.bind(statement="s"), f.execute(), f.SYNC


async def described_and_then_run(client):
    """asyncpg's way: the statement is described, which tells how to decode what comes."""
    with await asyncio.to_thread(Raw, client.info) as wire:
        told = dict(await asyncio.to_thread(wire.ask, *DESCRIBED))["T"]
        answer = dict(await asyncio.to_thread(wire.ask, *RUN))
        assert "D" in answer, answer
        values = f.row(answer["D"])
        assert int.from_bytes(told[:2]) == len(values)
        return [tuple(int(v) if v.isdigit() else v.decode() for v in values)]


WAYS = [simple, with_a_parameter, prepared_by_name, in_binary, by_cursor, by_prepare, described_and_then_run]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    ("altered", "row"),
    [("add column c text default 'new'", (1, 2, "new")), ("drop column b", (1,)), ("rename column b to x", (1, 2))],
)
def test_the_first_answer_is_of_the_catalog_in_force(way, altered, row):
    async def story(other, client, lagging):
        lagging.fall_behind()
        await other(f"alter table t {altered}")
        assert await way(client) == [row]
        assert lagging.times, "the statement was prepared by what the catalog was"

    run(story)


@pytest.mark.parametrize("prepare", [False, True])
def test_a_parameter_is_read_as_what_it_is_by_now(prepare):
    """``'x'`` was no integer, and ``'7'`` would have been one: b is text now."""

    async def story(other, client, lagging):
        for value in ("x", "7"):
            await other("drop table t")
            await other("create table t (a int, b int)")
            await client.execute("select count(*) from t")
            lagging.fall_behind()
            for action in ("drop column b", "add column b text"):
                await other(f"alter table t {action}")
            await client.execute(f"insert into t (b) values (%s) -- {value}", [value], prepare=prepare)
            assert lagging.times
            found = await client.execute(f"select b from t where b = %s -- {value}", [value], prepare=prepare)
            assert await found.fetchall() == [(value,)]

    run(story)


def test_formats_are_counted_by_the_columns_that_there_are():
    async def story(other, client, lagging):
        with await asyncio.to_thread(Raw, client.info) as wire:
            lagging.fall_behind()
            await other("alter table t add column c int default 3")
            asked = f.parse("select * from t"), f.bind(results=(1, 1, 1)), f.execute(), f.SYNC
            kinds = "".join([kind for kind, _ in await asyncio.to_thread(wire.ask, *asked)])
        assert kinds == "12DCZ" and lagging.times

    run(story)


def test_what_was_told_stays_or_is_refused():
    async def story(other, client, lagging):
        await client.execute("prepare p as select * from t")
        assert await prepared_by_name(client) == [(1, 2)]
        with await asyncio.to_thread(Raw, client.info) as wire:
            await asyncio.to_thread(wire.ask, *DESCRIBED)
            await other("alter table t add column c int")
            kind, body = (await asyncio.to_thread(wire.ask, *RUN))[-2]
            assert (kind, f.fields(body)["C"]) == ("E", "0A000")
        for again in (prepared_by_name(client), client.execute("execute p")):
            with pytest.raises(errors.FeatureNotSupported, match="cached plan must not change result type"):
                await again
        await client.execute("deallocate all")
        assert await prepared_by_name(client) == [(1, 2, None)]

    run(story)
