"""What sessions wrote and have not bound yet is claimed; what they gave up, or that nobody claimed, is not."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest

from adapter.execute import loads
from adapter.execute.claims import Claims, spans
from adapter.server.server import Server
from catalog_log.model import ITEMS
from collection.binding import Run
from journal.errors import Rejected, Unavailable
from oracle.model import Offsets
from oracle.records import GIVING_UP
from oracle.unbound import CLAIM_MS, gaps
from tests.adapter.test_copies import DSN, copied, on_a_loop, rows
from tests.adapter.world import World

DATA = b"".join(b"%d\trow %d\n" % (n, n) for n in range(300))


class Both:
    """An adapter with two clients."""

    def __init__(self, world: World, adapter, one, other) -> None:
        self.world, self.adapter, self.one, self.other = world, adapter, one, other
        self.claims = adapter.executor._claims
        self.oracle = adapter.oracle

    @property
    def table(self) -> str:
        return self.table_of("t")

    def table_of(self, name: str) -> str:
        [found] = [key for key, item in self.adapter.catalog.image.all(ITEMS) if item.name == name]
        return found

    def gaps(self) -> list[Offsets]:
        """Of the table, as a storage controller finds them."""
        bound = self.oracle.state.bound[self.table]
        return [
            Offsets(self.table, Run(topic, partition, lower, upper))
            for topic, partition in bound.coverage if topic
            for lower, upper in gaps(bound, (topic, partition))
        ]  # fmt: skip

    async def passes(self, ms: int) -> None:
        self.world.now_ms += ms
        await self.other.execute("insert into other values (1)")

    def give_up(self) -> None:
        for gap in self.gaps():
            self.oracle.give_up(gap).result(10)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(loads, "BLOCK_BYTES", 1_000)


@asynccontextmanager
async def both():
    world = World()
    async with world.adapter() as a:
        await asyncio.wrap_future(a.oracle.raise_format(GIVING_UP))
        server = Server(a.executor)
        _, port = await server.start("127.0.0.1", 0)
        a.executor.serves(server.session_states)
        try:
            connected = [await psycopg.AsyncConnection.connect(DSN.format(port), autocommit=True) for _ in range(2)]
            one, other = connected
            await one.execute("create table t (a int, b text)")
            await one.execute("create table other (a int)")
            yield Both(world, a, one, other)
            for each in connected:
                await each.close()
        finally:
            await server.stop()


@on_a_loop
async def test_a_load_that_takes_longer_is_claimed_until_it_is_bound():
    async with both() as b:
        async with b.one.cursor() as cursor:
            async with cursor.copy("copy t from stdin") as copy:
                await copy.write(100 * DATA)  # less than the client's library holds back would not be sent
                await copied(b.other, "copy t from stdin", DATA)
                while not b.claims.due():  # it is on its way
                    await asyncio.sleep(0.01)
                for _ in range(3):  # the client takes its time
                    await b.claims.renew()
                    await copied(b.other, "copy t from stdin", DATA)
                    with pytest.raises(Rejected, match="claimed"):
                        b.give_up()
                    await b.passes(CLAIM_MS - 1)
            assert b.claims.due() == () and cursor.statusmessage == "COPY 30000", "it is bound"
        assert await rows(b.one, "select count(*) from t") == [(30_000 + 4 * 300,)]


@on_a_loop
async def test_a_block_that_stays_open_behind_a_load_claims_it_and_one_that_ends_does_not():
    async with both() as b:
        await b.one.execute("begin")
        await copied(b.one, "copy t from stdin", DATA)
        await copied(b.one, "copy other from stdin", b"7\n" * 1_000)
        await copied(b.other, "copy t from stdin", DATA)
        assert {each.collection for each in b.claims.due()} == {b.table, b.table_of("other")}
        await b.claims.renew()
        await b.passes(CLAIM_MS - 1)
        with pytest.raises(Rejected, match="claimed"):
            b.give_up()
        await b.one.execute("commit")
        assert b.claims.due() == () and await rows(b.one, "select count(*) from t") == [(600,)]
        await b.one.execute("begin")
        await copied(b.one, "copy t from stdin", DATA)
        await copied(b.other, "copy t from stdin", DATA)
        await b.claims.renew()
        await b.one.execute("rollback")
        assert b.claims.due() == ()
        await b.passes(2 * CLAIM_MS)
        b.give_up()
        assert b.gaps() == [] and await rows(b.one, "select count(*) from t") == [(900,)]


@on_a_loop
async def test_who_claims_nothing_for_too_long_is_refused_and_nothing_is_visible():
    """As where an adapter was stopped for that long."""
    async with both() as b:
        await b.one.execute("begin")
        await copied(b.one, "copy t from stdin", DATA)
        await b.one.execute("insert into other values (2)")
        await copied(b.other, "copy t from stdin", DATA)
        b.give_up()
        with pytest.raises(psycopg.errors.SerializationFailure):
            await b.one.execute("commit")
        assert await rows(b.one, "select count(*) from t") == [(300,)]
        assert await rows(b.one, "select count(*) from other") == [(0,)]


@on_a_loop
async def test_claims_are_renewed_by_themselves_and_outlive_a_log_that_is_away(monkeypatch):
    async with both() as b:
        claims = Claims(b.oracle, b.adapter.executor.copies.copying, b.adapter.executor.system.sessions, renew_s=0.01)
        asked, told = [], asyncio.Event()

        async def away(unbound: Offsets) -> None:
            asked.append(unbound)
            if len(asked) == 3:
                told.set()
            raise Unavailable("no broker") if len(asked) < 3 else RuntimeError("a mistake")

        claims.start()
        await b.one.execute("begin")
        await copied(b.one, "copy t from stdin", DATA)
        monkeypatch.setattr(b.oracle, "claim_async", away)
        await asyncio.wait_for(told.wait(), 60)
        monkeypatch.undo()
        while not b.oracle.state.claims:
            await asyncio.sleep(0.01)
        await claims.close()
        await b.one.execute("commit")


def test_of_each_write_all_is_claimed_whoever_wrote_in_between():
    runs = [Run("t", 0, 3, 5, "a", 2), Run("t", 0, 9, 10, "a", 1), Run("t", 0, 1, 2, "b", 1), Run("t", 1, 0, 1, "a", 1)]
    assert list(spans("u1", runs)) == [
        Offsets("u1", Run("t", 0, 3, 10, "a")), Offsets("u1", Run("t", 0, 1, 2, "b")),
        Offsets("u1", Run("t", 1, 0, 1, "a")),
    ]  # fmt: skip
