"""The Faust worker that feeds one controller (DESIGN §1).

Promises: exactly one of an environment's workers for a controller acts at a time, and another takes over within
``SESSION_TIMEOUT_S`` of its death, because all of them are one consumer group on the catalog's single partition; a
worker keeps nothing between its lives: it folds the catalog from the start and reads from the command topic what was
sent.  So its offsets are never committed, and two that act at once for a moment do no harm.

Faust gives us the group, the rebalancing and the agent.  Its own state stores, changelogs and web server are off.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from pathlib import Path

import faust

from catalog_log.records import COMMANDS_TOGETHER_FROM
from journal.api import Entry
from journal.errors import TidemarkError
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.process import watch_loop
from subscribers.sender import CommandSender
from subscribers.stepper import Stepper

log = logging.getLogger(__name__)

SESSION_TIMEOUT_S = 6.0
"""How long a dead worker keeps its place: the least that a broker accepts by default."""

HEARTBEAT_S = 2.0

LEAVE_S = 4.0
"""How long a worker that was told to stop says goodbye to its group.  Without that another takes over a session's
time-out later."""

METADATA_AGE_S = 1.0
"""How long it is believed who leads the catalog.  A leader that was deposed without knowing it answers fetches for ever
with nothing new, and only metadata (asked of any broker) tells; one small request a second is what that costs."""


def app_id(names: TopicNames, controller: str) -> str:
    """The consumer group: the same in every worker of a controller, so that one of them acts and the rest stand by."""
    return f"{names.env}.subscriber.{controller}"


def make_app(bootstrap: str, names: TopicNames, controller: str) -> faust.App:
    """A Faust application with everything off that we do not use."""
    return faust.App(
        app_id(names, controller),
        broker=[f"kafka://{address.strip()}" for address in bootstrap.split(",")],
        store="memory://",
        web_enabled=False,
        autodiscover=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        key_serializer="raw",
        value_serializer="raw",
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_heartbeat_interval=HEARTBEAT_S,
        broker_request_timeout=30.0,
        broker_max_poll_records=1000,
        consumer_metadata_max_age_ms=int(1000 * METADATA_AGE_S),
        stream_wait_empty=False,
        # A worker's data directory would hold tables; there are none, but Faust wants to know where.
        # One level only: Faust makes the directory, but not what is above it.
        datadir=str(Path(tempfile.gettempdir()) / f"tidemark-faust-{app_id(names, controller)}"),
    )


class Subscriber:
    """The agent's work: catalog entries in, commands out."""

    def __init__(self, controller: str, sender: CommandSender, catalog_end: int) -> None:
        self._controller = controller
        self._sender = sender
        self._catalog_end = catalog_end
        self._stepper: Stepper | None = None

    async def on_entry(self, entry: Entry) -> None:
        """One record of the catalog topic.  Delivery from the start again means that we were made to act anew."""
        if self._stepper is None or (entry.offset == 0 and self._stepper.next_offset > 0):
            state = await self._sender.learn()
            await self._sender.flush()
            log.info("acting", extra={"controller": self._controller, "frontier": state.frontier})
            self._stepper = Stepper(self._controller, state.frontier, self._catalog_end)
        if entry.offset < self._stepper.next_offset:
            return
        commands = self._stepper.feed(entry)
        if commands:
            genesis = self._stepper.image.genesis
            assert genesis is not None, "commands come of a catalog that was begun"
            await self._sender.send(commands, genesis.format_version >= COMMANDS_TOGETHER_FROM)


async def run(
    bootstrap: str, names: TopicNames, controller: str, commands: KafkaTransport, catalog_end: int,
    stopped: threading.Event, on_ready,
) -> Exception | None:  # fmt: skip
    """Serve until ``stopped``; the exception that ended it earlier, or ``None``.  Calls ``on_ready`` once it serves.

    What fails in Faust ends it, too: its services tell each other of a crash and stand still then, with a process
    around them that looks alive, so that no controller would ever be told anything again.
    """
    loop = asyncio.get_running_loop()
    watch_loop()
    app = make_app(bootstrap, names, controller)
    begin, _ = await loop.run_in_executor(None, commands.bounds)
    sender = CommandSender(commands, loop, begin)
    subscriber = Subscriber(controller, sender, catalog_end)
    failed: asyncio.Future[Exception] = loop.create_future()
    catalog = app.topic(names.catalog, key_type=bytes, value_type=bytes, internal=False, allow_empty=True)

    @app.agent(catalog, name=f"{app_id(names, controller)}.agent")
    async def follow(stream) -> None:
        async for event in stream.noack().events():
            try:
                await subscriber.on_entry(Entry(event.message.offset, event.message.value or b""))
            except Exception as error:  # handed over, not swallowed: Faust would restart the agent past the record
                if not failed.done():
                    failed.set_result(error)
                return

    stop = loop.run_in_executor(None, stopped.wait)
    starting = loop.create_task(app.start())
    try:
        # A broker that is away keeps it starting for as long as that lasts.
        await asyncio.wait({starting, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return None
        starting.result()
        on_ready()
        ended = loop.create_task(app.wait_until_stopped())
        await asyncio.wait({stop, failed, sender.failure, ended}, return_when=asyncio.FIRST_COMPLETED)
        found = next((each.result() for each in (failed, sender.failure) if each.done()), None)
        if found is None and app.crashed:
            reason = app.crash_reason
            found = reason if isinstance(reason, Exception) else RuntimeError(f"faust ended: {reason!r}")
        return found
    finally:
        stopped.set()
        _, left = await asyncio.wait({loop.create_task(app.stop())}, timeout=LEAVE_S)
        if left:
            log.warning("was left behind", extra={"what": "the worker's group"})
        sender.close()


def describe(error: Exception) -> str:
    """One line for a log."""
    return error.message if isinstance(error, TidemarkError) else repr(error)
