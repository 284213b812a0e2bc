"""A journal's client with group commit and settled answers: the shell around :class:`journal.sender.Sender`.

Promises: as the sender's, from any thread; futures are completed after the state that contains their record is
visible in ``journal.state``.  Waiters of one asyncio loop that are answered by one record cost one wake-up of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from journal.errors import InvalidUsage, Rejected, TidemarkError, Unavailable
from journal.folded import FoldedJournal
from journal.sender import (
    DEADLINE_MS,
    FENCE,
    Effect,
    Failed,
    Folded,
    LaneSpec,
    Renew,
    Send,
    Sender,
    Served,
)
from journal.settling import Fence, Flight, Item, Policy, Token

log = logging.getLogger(__name__)

Answer = Any
"""A result, or a ``TidemarkError`` to fail with."""


class AsyncWaiter(NamedTuple):
    """Coroutines that wait in ``loop`` for the same answer, mostly one."""

    loop: asyncio.AbstractEventLoop
    futures: Sequence[asyncio.Future]


class Lane(NamedTuple):
    """How the work of one lane becomes a record and an outcome becomes answers.  All three are pure but for ``encode``,
    which may read what this process knows."""

    spec: LaneSpec
    encode: Callable[[Token, Sequence[Any]], bytes]
    answer: Callable[[Any, Sequence[Any]], Sequence[Answer]]
    """``answer(outcome, payloads)``: one answer per payload."""


def unique_writer(writer_id: str) -> str:
    """``writer_id`` with an ending that no other opening of a process ever had: incarnations start at 1 in each."""
    return f"{writer_id}.{uuid.uuid4().hex[:12]}"


class Link:
    """Sends the work of ``lanes`` through ``journal``, and settles lost answers as ``policy`` says.

    The journal must not be reading yet; :meth:`start` starts it.  Closing the link closes the journal.
    """

    def __init__(
        self,
        journal: FoldedJournal,
        writer: str,
        lanes: Sequence[Lane],
        policy: Policy,
        *,
        deadline_ms: int = DEADLINE_MS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.journal = journal
        self._clock = clock or time.monotonic
        self._lanes = {lane.spec.name: lane for lane in lanes}
        if isinstance(policy, Fence):
            encode = policy.encode
            self._lanes[FENCE] = Lane(LaneSpec(FENCE), lambda token, _nothing: encode(token), lambda *_: ())
        self._sender = Sender(writer, [lane.spec for lane in lanes], policy, deadline_ms=deadline_ms)
        self._lock = threading.Lock()
        self._flushing: set[asyncio.AbstractEventLoop] = set()
        """Loops that will flush before they wait for anything again."""
        self._asking: dict[asyncio.AbstractEventLoop, dict[str, list[asyncio.Future]]] = {}
        """Who in such a loop asks a lane the same; nothing of it is submitted yet."""
        journal.subscribe(self._on_folded)
        journal.deadlines.add_sweeper(self._tick)
        journal.failure.add_done_callback(lambda failed: self._stop(failed.result()))

    def start(self) -> Link:
        """Begin to read the journal."""
        self.journal.start()
        return self

    def call(self, lane: str, payload: Any, weight: int = 0) -> Future:
        """Do ``payload``; its answer.  Fails as :mod:`journal.sender` says."""
        done: Future = Future()
        done.set_running_or_notify_cancel()  # a caller's cancel must not make set_result raise on the reader thread
        try:
            self._submit(lane, payload, done, weight)
        except TidemarkError as error:
            done.set_exception(error)
        return done

    def call_async(self, lane: str, payload: Any, weight: int = 0) -> asyncio.Future:
        """As :meth:`call`, for a coroutine of the running loop to await.  Cancelling it leaves the work alone.

        The record is sent once the loop has run everybody who is ready now.  Sent at once it would carry the first
        caller alone, and all the others, who are usually woken together, would wait for it and then for theirs.
        """
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._submit(lane, payload, AsyncWaiter(loop, (future,)), weight, hold=True)
        self._flush_soon(loop)
        return future

    def ask_async(self, lane: str) -> asyncio.Future:
        """As :meth:`call_async`, of work without payload whose answer is everybody's: callers who are ready at once are
        one.  Each cancels for itself.

        It is submitted when the loop has run them all, hence after each of them called.
        """
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._asking.setdefault(loop, {}).setdefault(lane, []).append(future)
        self._flush_soon(loop)
        return future

    def close(self) -> None:
        """Stop: what waits fails with ``Unavailable``, what may be in the log with ``Indeterminate``."""
        self._stop(Unavailable(f"{self.journal.name} is closed"))
        self.journal.close()

    def _flush_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._flushing:
            self._flushing.add(loop)
            loop.call_soon(self._flush, loop)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flushing.discard(loop)
        for lane, futures in self._asking.pop(loop, {}).items():
            try:
                self._submit(lane, None, AsyncWaiter(loop, futures), 0, hold=True)
            except TidemarkError as error:
                _answer_in_loop([(futures, error)])
        self._step(self._sender.flush)

    def _submit(self, lane: str, payload: Any, waiter: Any, weight: int, hold: bool = False) -> None:
        with self._lock:
            effects = self._sender.submit(lane, payload, waiter, weight, self._now_ms(), hold=hold)
            sent = self._append_all(effects) if effects else ()
        self.journal.deadlines.poke()
        if effects:
            self._perform(effects, sent)

    def _on_folded(self, _old: Any, _new: Any, outcomes: Sequence[Any]) -> None:
        self._step(lambda now_ms: self._sender.folded(outcomes, now_ms))

    def _tick(self, now: float) -> bool:
        """For ``Deadlines``: whether anything is left to look after."""
        self._step(lambda _now_ms: self._sender.tick(int(now * 1000)))
        return self._sender.backlog > 0

    def _stop(self, error: Exception) -> None:
        if not isinstance(error, TidemarkError):
            error = Unavailable(f"{self.journal.name} stopped", detail=f"{type(error).__name__}: {error}")
        self._step(lambda _now_ms: self._sender.close(error))

    def _step(self, event: Callable[[int], Sequence[Effect]]) -> None:
        """Tell the sender of an event and perform the effects."""
        with self._lock:
            effects = event(self._now_ms())
            sent = self._append_all(effects)
        self._perform(effects, sent)

    def _append_all(self, effects: Sequence[Effect]) -> list[tuple[Token, Future[int]]]:
        """Append the records among ``effects``, under the lock: a writer's records must come in the order of their
        numbers, for the folds refuse one that comes after a later one."""
        return [(effect.flight.token, self._append(effect.flight)) for effect in effects if type(effect) is Send]

    def _perform(self, effects: Sequence[Effect], sent: Sequence[tuple[Token, Future[int]]]) -> None:
        """Everything else, without the lock, for it may call us back."""
        for token, answer in sent:
            answer.add_done_callback(lambda answer, token=token: self._on_sent(token, answer))
        for effect in effects:
            match effect:
                case Renew():
                    self._renew()
                case Folded(flight, outcome):
                    answers = self._lanes[flight.lane].answer(outcome, [item.payload for item in flight.items])
                    self._deliver(flight.items, answers)
                case Served(lane, items):
                    self._deliver(items, self._lanes[lane].answer(None, [item.payload for item in items]))
                case Failed(waiters, error):
                    _answer_all([(waiter, error) for waiter in waiters])

    def _append(self, flight: Flight) -> Future[int]:
        payloads = [item.payload for item in flight.items]
        try:
            return self.journal.transport.append(self._lanes[flight.lane].encode(flight.token, payloads))
        except Exception as error:  # handed to whoever waits for this record, not swallowed
            return _failed(error)

    def _renew(self) -> None:
        try:
            self.journal.transport.renew()
        except Exception as error:  # the producer that there is has another try, and says itself what it is good for
            log.warning("the producer is not renewed", extra={"journal": self.journal.name, "reason": repr(error)})
        self._step(self._sender.renewed)

    def _on_sent(self, token: Token, answer: Future[int]) -> None:
        error = answer.exception()
        if error is None:
            with self._lock:
                self._sender.acknowledged(token)
        elif isinstance(error, Rejected | Unavailable | InvalidUsage):
            self._step(lambda now_ms: self._sender.refused(token, error, now_ms))
        else:
            self._step(lambda now_ms: self._sender.unanswered(token, now_ms))

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _deliver(self, items: Sequence[Item], answers: Sequence[Answer]) -> None:
        _answer_all([(item.waiter, answer) for item, answer in zip(items, answers, strict=True)
                     if item.waiter is not None])  # fmt: skip


def _failed(error: Exception) -> Future[int]:
    """A future that failed before anything was sent: what raised here left nothing in the log."""
    if not isinstance(error, TidemarkError):
        error = Rejected("the record could not be written", detail=f"{type(error).__name__}: {error}")
    done: Future[int] = Future()
    done.set_exception(error)
    return done


def _answer_all(pairs: Sequence[tuple[Any, Answer]]) -> None:
    """Complete every waiter; those of one loop with one wake-up of it."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Sequence[asyncio.Future], Answer]]] = {}
    for waiter, answer in pairs:
        if isinstance(waiter, AsyncWaiter):
            loops.setdefault(waiter.loop, []).append((waiter.futures, answer))
        elif isinstance(answer, BaseException):
            waiter.set_exception(answer)
        else:
            waiter.set_result(answer)
    for loop, group in loops.items():
        try:
            loop.call_soon_threadsafe(_answer_in_loop, group)
        except RuntimeError:
            # The loop was closed and its coroutines with it: nobody waits, and what was done stays done.
            continue


def _answer_in_loop(group: Sequence[tuple[Sequence[asyncio.Future], Answer]]) -> None:
    for futures, answer in group:
        failed = isinstance(answer, BaseException)
        for future in futures:
            if future.done():
                continue  # cancelled meanwhile
            if failed:
                future.set_exception(answer)
            else:
                future.set_result(answer)
