"""Commands onto a controller's topic, until they are seen there.

Promises: what was given to :meth:`CommandSender.send` ends up closed on the topic, or ``failure`` is given the reason
(and every later call raises it).  It folds the topic itself, as the controller does, and goes by nothing but that: an
answer that is lost, a record that lands twice or late, another subscriber that sends the same, all come to the same
(see :mod:`controllers.protocol`).

Some ``WINDOW`` commands at most are unseen at once.  Lost ones are settled by :class:`~journal.settling.SameAgain`: all
that is unseen is sent again, in order, through a fresh producer, for a command is taken once, where it continues the
log.  What followed a lost command has landed and was passed over: so acknowledgements say nothing here, and also where
nobody reports a loss the topic must move on within ``RESEND_S``.  The command that got lost may be the last one for
days.
After ``GIVE_UP_S`` it is ``Unavailable`` and the process is better restarted.

The shell around :class:`~journal.sender.Sender` is our own: a worker lives on one asyncio loop, where the threads of
:class:`~journal.link.Link` would cost it a wake-up for each command.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from controllers.commands import Command
from controllers.commands_log import TOGETHER_MAX, CommandFold, records_of
from controllers.protocol import ControllerState
from journal.api import Entry, Transport
from journal.errors import Unavailable
from journal.process import close_all
from journal.sender import Effect, Failed, LaneSpec, Renew, Send, Sender
from journal.settling import Flight, SameAgain

log = logging.getLogger(__name__)

WINDOW = 1000
"""Unseen commands: at 34,000 records a second (FACTS) they are seen within 30 ms, and a resend stays cheap."""

RESEND_S = 2.0
"""The watchdog of FACTS: a healthy broker answers in milliseconds, a deposed leader never."""

CLOSE_TIMEOUT_S = 2.0
"""For the topic's reader, which looks every tenth of a second."""

GIVE_UP_S = 60.0
"""Twice as long as a reader survives an absent broker."""

LANE = LaneSpec("command", items_max=1, flights_max=WINDOW)


def seen(state: ControllerState, flights: Iterable[Flight]) -> Iterable[Flight]:
    """Those whose commands are on the topic, whoever sent them."""
    return takewhile(lambda flight: state.has(flight.payload.commands[-1]), flights)


class Told(NamedTuple):
    """A record: commands that follow each other, and its value."""

    commands: Sequence[Command]
    value: bytes


class CommandSender:
    """Runs on one asyncio loop; the topic's reader thread reports to it.  ``begin`` is where the topic begins."""

    def __init__(self, transport: Transport, loop: asyncio.AbstractEventLoop, begin: int = 0) -> None:
        self._transport = transport
        self._loop = loop
        self._fold = CommandFold()
        self._next_offset = begin
        self._sender = Sender("", [LANE], SameAgain(seen), deadline_ms=int(1000 * GIVE_UP_S),
                              unanswered_ms=int(1000 * RESEND_S))  # fmt: skip
        self._unread: dict[bytes, Sequence[Command]] = {}
        """What was sent and was not read back: it is known what those bytes say."""
        self._moved = asyncio.Event()
        self._failed: Exception | None = None
        self.failure: asyncio.Future[Exception] = loop.create_future()
        """Given what stopped it, if anything ever does."""
        self._ticking: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task | None = None
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

    async def send(self, commands: Sequence[Command], together: bool = False) -> None:
        """Put ``commands`` (a whole timestamp, in order) on the topic; returns when few enough are unseen.

        ``together``: as of :func:`~controllers.commands_log.records_of`.
        """
        for begin in range(0, len(commands), WINDOW):
            some = commands[begin : begin + WINDOW]
            self._step(partial(self._submit, [Told(*each) for each in records_of(some, together)]))
            await self._unseen(WINDOW // TOGETHER_MAX if together else WINDOW)

    async def flush(self) -> None:
        """Return when everything given has been seen on the topic."""
        await self._unseen(0)

    def close(self) -> None:
        """Stop reading and sending, within ``CLOSE_TIMEOUT_S``.  The transport is the caller's."""
        for each in (self._ticking, self._renewing):
            if each is not None:
                each.cancel()
        close_all({"commands' reader": self._subscription.close}, CLOSE_TIMEOUT_S)

    async def _unseen(self, at_most: int) -> None:
        """Wait until at most so many are unseen.  Raises what stopped us."""
        self._look()
        while self._failed is not None or self._sender.backlog > at_most:
            await self._wait(RESEND_S)

    def _submit(self, told: Sequence[Told], now_ms: int) -> Sequence[Effect]:
        for each in told:
            self._sender.submit(LANE.name, each, each, 0, now_ms, hold=True)
        return self._sender.flush(now_ms)

    def _step(self, event: Callable[[int], Sequence[Effect]]) -> None:
        """Tell the sender of an event and perform the effects."""
        if self._failed is not None:
            return
        try:
            for effect in event(int(1000 * time.monotonic())):
                match effect:
                    case Send(flight):
                        self._append(flight)
                    case Renew():
                        log.warning("sending commands again", extra={"unseen": self._sender.backlog})
                        self._renewing = self._loop.create_task(self._renew(), name="command-renewing")
                    case Failed([told, *_], _):
                        where = f"frontier {self.state.frontier}, next is {told.commands[0]}"
                        raise Unavailable("the commands do not get onto their topic", detail=where)
        except Exception as error:  # handed over to whoever calls next, and to ``failure``
            self._fail(error)
        if self._ticking is None and self._sender.backlog:
            self._ticking = self._loop.call_later(RESEND_S / 8, self._tick)

    def _tick(self) -> None:
        self._ticking = None
        self._step(self._sender.tick)

    def _look(self) -> None:
        self._step(partial(self._sender.folded, [self.state]))

    async def _renew(self) -> None:
        try:
            await self._loop.run_in_executor(None, self._transport.renew)
        except Exception as error:  # as above
            self._fail(error)
        self._step(self._sender.renewed)

    def _append(self, flight: Flight) -> None:
        token = flight.token

        def on_sent(answer: Future[int]) -> None:
            # A refusal is one more way for a command not to get there.
            if answer.exception() is not None:
                self._wake(lambda: self._step(partial(self._sender.unanswered, token)))

        told = flight.payload
        self._unread[told.value] = told.commands
        self._transport.append(told.value).add_done_callback(on_sent)

    async def _wait(self, timeout_s: float) -> bool:
        """Whether the topic brought anything within ``timeout_s``.  Raises what stopped us."""
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
            self._fold.take(entry, self._unread.pop(entry.value, None))
        self._next_offset = entries[-1].offset + 1
        self._wake(self._on_moved)

    def _on_moved(self) -> None:
        self._look()
        if not self._sender.backlog:
            self._unread.clear()  # of what got lost, and was there already
        self._moved.set()

    def _on_error(self, error: Exception) -> None:
        """On the reader's thread."""
        self._wake(lambda: self._fail(error))

    def _fail(self, error: Exception) -> None:
        if self._failed is None:
            self._failed = error
            self.failure.set_result(error)
        self._moved.set()

    def _wake(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass
