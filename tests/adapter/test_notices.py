"""What a client is told while its statement runs, or beside its answer: over the real server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg

from tests.adapter.test_clients import serving
from tests.adapter.world import StorePeeks, World
from tests.finishing import finished


def run(story):
    """``story(connection, heard, world)``: ``heard`` gets each notice when it arrives."""

    async def bounded():
        world = World()
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(world))
            heard: asyncio.Queue[str] = asyncio.Queue()
            connection = await stack.enter_async_context(
                await psycopg.AsyncConnection.connect(
                    host="127.0.0.1", port=port, user="tidemark", dbname="tidemark", autocommit=True
                )
            )
            connection.add_notice_handler(lambda diag: heard.put_nowait(diag.message_primary))
            await story(connection, heard, world)

    finished(bounded())


def test_who_waits_for_a_cluster_that_is_away_is_told_while_it_waits(monkeypatch):
    async def story(connection, heard, world):
        await connection.execute("create table t (a int)")
        came_back = asyncio.Event()
        real = StorePeeks.peek

        async def away(self, peek, cluster_id, deadline_s, waits=None):
            waits("it is away")
            await came_back.wait()
            return await real(self, peek, cluster_id, deadline_s)

        monkeypatch.setattr(StorePeeks, "peek", away)
        asked = asyncio.create_task(connection.execute("select * from t"))
        assert await heard.get() == "it is away", "before the answer, which may be a minute away"
        assert not asked.done()
        came_back.set()
        assert await (await asked).fetchall() == []

    run(story)


def test_a_source_over_no_topic_is_made_and_its_maker_is_told():
    async def story(connection, heard, world):
        world.topics |= {"there": True, "gone": False}
        for topic in ("there", "gone", "unknown"):
            await connection.execute(f"create source {topic} (a int) from kafka topic '{topic}' format json")
        assert heard.qsize() == 1
        assert heard.get_nowait() == 'topic "gone" does not exist yet'

    run(story)
