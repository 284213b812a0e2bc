"""Commands onto their topic: what is lost on the way is sent again, also when nothing follows it."""

from __future__ import annotations

import asyncio

import pytest

from catalog_log.objects import Table
from controllers import commands_log
from controllers.commands import Command, Kind
from controllers.commands_log import decode, encode
from journal.errors import Indeterminate, Unavailable
from journal.memory import MemoryTopic, MemoryTransport
from journal.timestamps import CatalogTs
from journal.unreliable import Faults, UnreliableTransport
from subscribers import sender
from subscribers.sender import CommandSender

NOTHING_WORKS = Faults(1.0, 0, 0, 0)
EVERYTHING_WORKS = Faults(0, 0, 0, 0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "RESEND_S", 0.02)


def advance(lower: int) -> Command:
    return Command(CatalogTs(lower), 0, Kind.ADVANCE_CATALOG_FRONTIER, frontier=CatalogTs(lower + 1),
                   lower=CatalogTs(lower))  # fmt: skip


def lossy() -> UnreliableTransport:
    return UnreliableTransport(MemoryTransport(MemoryTopic()), 1, EVERYTHING_WORKS)


async def begun_with_a_loss() -> tuple[UnreliableTransport, CommandSender]:
    """A sender whose first command was lost, on a transport that works from now on."""
    transport = lossy()
    commands = CommandSender(transport, asyncio.get_running_loop())
    transport.faults = NOTHING_WORKS
    await commands.send([advance(0)])
    transport.faults = EVERYTHING_WORKS
    return transport, commands


async def until(holds, timeout_s: float = 5.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():
            await asyncio.sleep(0.005)


def test_a_lost_command_is_sent_again_though_nothing_follows_it() -> None:
    """The bad story: a leader is deposed under the last command of the day, and its controller never hears of it."""

    async def story() -> None:
        transport, commands = await begun_with_a_loss()
        await until(lambda: commands.state.frontier == 1)
        assert transport.renewals >= 1
        commands.close()

    asyncio.run(story())


def test_what_never_gets_there_ends_the_process_instead_of_being_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(sender, "GIVE_UP_S", 0.1)

    async def story() -> None:
        transport = lossy()
        commands = CommandSender(transport, asyncio.get_running_loop())
        transport.faults = NOTHING_WORKS
        await commands.send([advance(0)])
        async with asyncio.timeout(5):
            assert isinstance(await commands.failure, Unavailable)
        with pytest.raises(Unavailable):
            await commands.flush()
        commands.close()

    asyncio.run(story())


def test_a_reader_that_stopped_ends_it_too() -> None:
    async def story() -> None:
        commands = CommandSender(lossy(), asyncio.get_running_loop())
        error = Indeterminate("the topic is gone")
        commands._on_error(error)
        async with asyncio.timeout(5):
            assert await commands.failure is error
        commands.close()

    asyncio.run(story())


def test_what_arrives_is_not_sent_again() -> None:
    async def story() -> None:
        transport = lossy()
        commands = CommandSender(transport, asyncio.get_running_loop())
        for lower in range(20):
            await commands.send([advance(lower)])
        await commands.flush()
        await asyncio.sleep(0.1)
        assert commands.state.frontier == 20
        assert transport.fates == ["works"] * 20
        commands.close()

    asyncio.run(story())


def test_what_was_sent_is_known_when_it_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of others' commands, and of one that is there twice, the bytes are read; what nobody reads back is let go."""
    read: list[bytes] = []
    monkeypatch.setattr(commands_log, "decode", lambda value: (read.append(value), decode(value))[1])

    async def story() -> None:
        topic = MemoryTopic()
        commands = CommandSender(MemoryTransport(topic), asyncio.get_running_loop())
        await commands.send([advance(0), advance(1)])
        await commands.flush()
        assert not read and commands.state.frontier == 2
        other = MemoryTransport(topic)
        for each in (advance(2), advance(0)):
            other.append(encode(each))
        await until(lambda: len(read) == 2)
        assert read == [encode(advance(2)), encode(advance(0))] and commands.state.frontier == 3
        await commands.send([advance(3)])
        await commands.flush()
        await until(lambda: not commands._unread)
        assert len(read) == 2
        commands.close()

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(5))
def test_whichever_records_of_many_get_lost_all_commands_get_there(seed: int) -> None:
    """Those of one timestamp are five records; another subscriber has sent some of them already."""
    tables = [Table(f"u{n}", "s1", f"t{n}", "") for n in range(450)]
    told = [Command(CatalogTs(9), n, Kind.CREATE, each.id, each) for n, each in enumerate(tables)]
    told.append(Command(CatalogTs(9), len(told), Kind.ADVANCE_CATALOG_FRONTIER, frontier=CatalogTs(10)))

    async def story() -> None:
        topic = MemoryTopic()
        for each in told[: 37 * seed]:
            topic.append(encode(each))
        transport = UnreliableTransport(MemoryTransport(topic), seed, Faults(0.4, 0.2, 0.1, 0.1))
        commands = CommandSender(transport, asyncio.get_running_loop())
        await commands.send(told, together=True)
        async with asyncio.timeout(20):
            await commands.flush()
        assert commands.state.frontier == 10 and len(commands.state.objects) == len(tables)
        commands.close()

    asyncio.run(story())


def test_a_lost_command_is_sent_again_though_others_go_on_coming() -> None:
    """The bad story: what follows it lands and cannot be taken, and keeps the topic from ever being silent."""

    async def story() -> None:
        _, commands = await begun_with_a_loss()
        lower = 0
        async with asyncio.timeout(2):
            while not commands.state.frontier:
                lower += 1
                await commands.send([advance(lower)])
                await asyncio.sleep(sender.RESEND_S / 4)
        commands.close()

    asyncio.run(story())


def test_never_more_than_a_window_is_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "RESEND_S", 60)

    async def story() -> None:
        topic = MemoryTopic(manual=True)
        commands = CommandSender(MemoryTransport(topic), asyncio.get_running_loop())
        sending = asyncio.create_task(commands.send([advance(lower) for lower in range(5 * sender.WINDOW // 2)]))
        ends = []
        while not sending.done():
            await asyncio.sleep(0)
            if topic.end > commands.state.frontier:
                ends.append(topic.end)
                assert topic.end - commands.state.frontier <= sender.WINDOW
                topic.pump()
        topic.pump()
        await commands.flush()
        assert ends[0] == sender.WINDOW and topic.end == commands.state.frontier == 5 * sender.WINDOW // 2
        commands.close()

    asyncio.run(story())
