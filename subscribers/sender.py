"""Commands onto a controller's topic, until they are seen there.

Promises: what was given to :meth:`CommandSender.send` ends up closed on the topic, or ``failure`` is given the reason
(and every later call raises it).  It folds the topic itself, as the controller does, and goes by nothing but that: an
answer that is lost, a record that lands twice or late, another subscriber that sends the same, all come to the same
(see :mod:`controllers.protocol`).

At most ``WINDOW`` commands are unseen at once.  Where the topic does not move on for ``RESEND_S``, everything unseen is
sent again through a fresh producer, by a task of its own: the command that got lost may be the last one for days.
After ``GIVE_UP_S`` it is ``Unavailable`` and the process is better restarted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from controllers.commands import Command
from controllers.commands_log import CommandFold, encode
from controllers.protocol import ControllerState
from journal.api import Entry, Transport
from journal.errors import Unavailable
from journal.process import close_all

log = logging.getLogger(__name__)

WINDOW = 1000
"""Unseen commands: at 34,000 records a second (FACTS) they are seen within 30 ms, and a resend stays cheap."""

RESEND_S = 2.0
"""The watchdog of FACTS: a healthy broker answers in milliseconds, a deposed leader never."""

CLOSE_TIMEOUT_S = 2.0
"""For the topic's reader, which looks every tenth of a second."""

GIVE_UP_S = 60.0
"""Twice as long as a reader survives an absent broker."""


class CommandSender:
    """Runs on one asyncio loop; the topic's reader thread reports to it.  ``begin`` is where the topic begins."""

    def __init__(self, transport: Transport, loop: asyncio.AbstractEventLoop, begin: int = 0) -> None:
        self._transport = transport
        self._loop = loop
        self._fold = CommandFold()
        self._next_offset = begin
        self._unseen: deque[Command] = deque()
        self._moved = asyncio.Event()
        self._failed: Exception | None = None
        self.failure: asyncio.Future[Exception] = loop.create_future()
        """Given what stopped it, if anything ever does."""
        self._settling: asyncio.Task | None = None
        self._subscription = transport.subscribe(begin, self._on_entries, self._on_error)

    @property
    def state(self) -> ControllerState:
        """The controller's state as the topic has it, so far as read."""
        return self._fold.state

    async def learn(self) -> ControllerState:
        """The state at the topic's present end or later.  Raises ``Unavailable`` or what stopped the reader."""
        end = (await self._loop.run_in_executor(None, self._transport.bounds))[1]
        deadline = time.monotonic() + GIVE_UP_S
        while self._next_offset < end:
            if not await self._wait(RESEND_S) and time.monotonic() > deadline:
                raise Unavailable(f"the command topic was not read up to {end}", detail=f"got to {self._next_offset}")
        return self.state

    async def send(self, commands: Sequence[Command]) -> None:
        """Put ``commands`` (whole timestamps, in order) on the topic; returns when few enough are unseen."""
        for command in commands:
            self._unseen.append(command)
            self._append(command)
        if self._unseen and (self._settling is None or self._settling.done()):
            self._settling = self._loop.create_task(self._settle(), name="command-settling")
        await self._seen(WINDOW)

    async def flush(self) -> None:
        """Return when everything given has been seen on the topic."""
        await self._seen(0)

    def close(self) -> None:
        """Stop reading and sending, within ``CLOSE_TIMEOUT_S``.  The transport is the caller's."""
        if self._settling is not None:
            self._settling.cancel()
        close_all({"commands' reader": self._subscription.close}, CLOSE_TIMEOUT_S)

    async def _seen(self, unseen_max: int) -> None:
        """Wait until at most so many are unseen.  Raises what stopped us."""
        if self._failed is not None:
            raise self._failed
        self._drop_seen()
        while len(self._unseen) > unseen_max:
            await self._wait(RESEND_S)
            self._drop_seen()

    async def _settle(self) -> None:
        """Send what is unseen again for as long as the topic does not move on; ends when nothing is unseen."""
        try:
            moved_at = sent_at = time.monotonic()
            self._drop_seen()
            while self._unseen:
                before = self.state.next_id()
                # What follows a lost command lands and cannot be taken: records alone are no progress.
                await self._wait(max(0.0, sent_at + RESEND_S - time.monotonic()))
                now = time.monotonic()
                if self.state.next_id() != before:
                    moved_at = sent_at = now
                elif now >= sent_at + RESEND_S:
                    if now > moved_at + GIVE_UP_S:
                        raise Unavailable(
                            "the commands do not get onto their topic",
                            detail=f"frontier {self.state.frontier}, next is {self._unseen[0]}",
                        )
                    log.warning("sending commands again", extra={"unseen": len(self._unseen)})
                    sent_at = now
                    await self._loop.run_in_executor(None, self._transport.renew)
                    for command in self._unseen:
                        self._append(command)
                self._drop_seen()
        except Exception as error:  # handed over to whoever calls next, and to ``failure``
            self._fail(error)

    def _append(self, command: Command) -> None:
        # Whether it landed is read from the topic; a failed append is one that is not seen and is sent again.
        self._transport.append(encode(command)).add_done_callback(lambda done: done.exception())

    def _drop_seen(self) -> None:
        frontier, opened, ordinal = self.state.next_id()
        while self._unseen:
            first = self._unseen[0]
            if first.catalog_ts < frontier or (first.catalog_ts == opened and first.ordinal < ordinal):
                self._unseen.popleft()
            else:
                break

    async def _wait(self, timeout_s: float) -> bool:
        """Whether the topic brought anything within ``timeout_s``.  Raises what stopped the reader."""
        if self._failed is not None:
            raise self._failed
        self._moved.clear()
        try:
            await asyncio.wait_for(self._moved.wait(), timeout_s)
        except TimeoutError:
            return False
        if self._failed is not None:
            raise self._failed
        return True

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        """On the reader's thread; the state is replaced whole, so the loop may look at any time."""
        for entry in entries:
            self._fold.take(entry)
        self._next_offset = entries[-1].offset + 1
        self._wake()

    def _on_error(self, error: Exception) -> None:
        """On the reader's thread."""
        self._wake(lambda: self._fail(error))

    def _fail(self, error: Exception) -> None:
        if self._failed is None:
            self._failed = error
            self.failure.set_result(error)
        self._moved.set()

    def _wake(self, call: Callable[[], None] | None = None) -> None:
        try:
            self._loop.call_soon_threadsafe(call or self._moved.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass
