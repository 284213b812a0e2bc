"""VALIDATE CONNECTION: what is to be told is told, beside the event loop and to so many at a time."""

from __future__ import annotations

import asyncio
import threading

from adapter.execute.asking import AT_ONCE_MAX
from catalog_log.objects import Connection
from embedded.ports import free_ports
from journal.errors import InvalidUsage
from sql.syntax.statements import ValidateConnection
from tests.adapter.stories import refused, until
from tests.adapter.world import World
from tests.finishing import finished


def run(story):
    finished(story(World()))


PLAIN = "create connection c to kafka (broker '127.0.0.1:9', security protocol plaintext)"


def test_what_is_there_is_asked_and_what_it_says_is_told():
    async def story(world):
        async with world.adapter() as a:
            (port,) = free_ports(1)
            await a.sql(f"create connection sr to confluent schema registry (url 'http://127.0.0.1:{port}')")
            await a.sql("create connection n to confluent schema registry (url 'http://127.0.0.1:1', username 'me', "
                        "password secret env 'TIDEMARK_SECRET_NOWHERE')")  # fmt: skip
            await a.sql("create table t (a int)")
            error = await refused(a.sql("validate connection sr"))
            assert error.sqlstate == "08001"
            assert error.message == 'nobody answers where "sr" is to'
            error = await refused(a.sql("validate connection n"))
            assert error.sqlstate == "55000"
            assert "TIDEMARK_SECRET_NOWHERE" in error.message
            assert (await refused(a.sql("validate connection t"))).sqlstate == "42809"
            error = await refused(a.sql("validate connection no"))
            assert error.sqlstate == "42704"
            assert (error.hint, error.position) == ("SHOW CONNECTIONS lists those that there are", 21)
            assert (await refused(a.sql("validate"))).sqlstate == "42601"
            assert (await refused(a.sql("validate connection sr now"))).sqlstate == "42601"

    run(story)


def test_the_loop_goes_on_and_so_many_wait_at_a_time(monkeypatch):
    async def story(world):
        let_go, asked = threading.Event(), []

        def ask(connection: Connection) -> None:
            asked.append(connection)
            assert let_go.wait(30)
            if len(asked) > AT_ONCE_MAX:
                raise InvalidUsage("no", sqlstate="28000")

        async with world.adapter() as a:
            monkeypatch.setattr(a.executor._handlers[ValidateConnection].__self__, "_ask", ask)
            await a.sql(PLAIN)
            waiting = [asyncio.ensure_future(a.sql("validate connection c")) for _ in range(AT_ONCE_MAX)]
            await until(lambda: len(asked) == AT_ONCE_MAX)
            assert await a.sql("select 1") == [(1,)]
            waiting[0].cancel()
            assert (await refused(a.sql("validate connection c"))).sqlstate == "53400"
            let_go.set()
            assert set(await asyncio.gather(*waiting[1:])) == {"VALIDATE CONNECTION"}
            assert (await refused(a.sql("validate connection c"))).sqlstate == "28000"

    run(story)
