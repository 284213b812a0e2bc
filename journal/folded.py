"""The shell that all journals share: one thread reads a topic and applies a pure fold; everybody reads the state.

Promises: ``state`` is the fold of a prefix of the log, only ever moves forward, and may be read from any thread
without waiting.  Subscribers are told of a batch after the state that contains it is visible.  Everything is bounded:
waiters, and how long each waits.

It does not append: that is :class:`journal.link.Link`'s.  Callbacks run on the reader thread: they must be short and
must never wait for a future of the same journal.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from journal.api import Entry, Subscription, Transport
from journal.deadlines import Deadlines
from journal.errors import FatalLog, InvalidUsage, Rejected, Unavailable

WAITERS_MAX = 10_000
"""Futures of :meth:`FoldedJournal.when`: each costs a predicate call per batch, about 2 ms for all of them."""


S = TypeVar("S")
O = TypeVar("O")  # noqa: E741 - S and O are the state and the outcome
Fold = Callable[[S, Entry], tuple[S, O | None]]


class FoldedJournal(Generic[S, O]):
    """Folds ``transport`` from ``from_offset`` on, starting with ``initial``.

    ``start=False`` leaves reading to :meth:`start`, so that subscribers registered before it miss nothing.
    ``threaded=False`` leaves deadlines to ``deadlines.expire`` (tests).  ``fold_all`` may fold a whole batch at once,
    equal to ``fold`` one by one, or return ``None`` to have it folded so.  The journal owns the transport, and closes
    it.
    """

    def __init__(
        self,
        transport: Transport,
        fold: Fold[S, O],
        initial: S,
        from_offset: int = 0,
        *,
        name: str = "journal",
        start: bool = True,
        threaded: bool = True,
        waiters_max: int = WAITERS_MAX,
        fold_all: Callable[[S, Sequence[Entry]], tuple[S, Sequence[O]] | None] | None = None,
    ) -> None:
        self.transport = transport
        self.name = name
        self.failure: Future[Exception] = Future()
        """Given the exception that stopped this journal, if one ever does."""
        self.deadlines = Deadlines(name, threaded=threaded)
        self._fold = fold
        self._fold_all = fold_all
        # Together in one tuple, so that nobody ever sees a state with another one's offset.
        self._position: tuple[S, int] = (initial, from_offset)
        self._failed: Exception | None = None
        self._waiters_max = waiters_max
        self._waiters: dict[int, tuple[Callable[[S], bool], Future[S], float, float]] = {}
        self._waiter_ids = itertools.count()
        self._subscribers: tuple[Callable[[S, S, Sequence[O]], None], ...] = ()
        self._lock = threading.Lock()
        self._subscription: Subscription | None = None
        self.deadlines.add_sweeper(self._give_up)
        if start:
            self.start()

    def start(self) -> FoldedJournal[S, O]:
        """Begin to read.  Once."""
        if self._subscription is not None:
            raise InvalidUsage(f"{self.name} is being read already")
        self._subscription = self.transport.subscribe(self.next_offset, self._on_entries, self.fail)
        return self

    @property
    def state(self) -> S:
        """The newest folded state: immutable, safe to keep."""
        return self._position[0]

    @property
    def position(self) -> tuple[S, int]:
        """``(state, next offset)`` that belong together."""
        return self._position

    @property
    def next_offset(self) -> int:
        """Every record below this offset has been folded into :attr:`state`."""
        return self._position[1]

    @property
    def failed(self) -> Exception | None:
        """The exception after which nothing works any more, or ``None``."""
        return self._failed

    def when(self, predicate: Callable[[S], bool], timeout_s: float) -> Future[S]:
        """The first state from now on for which ``predicate`` (pure, quick) holds; perhaps the present one.

        Fails with ``Unavailable`` 57014 after ``timeout_s``, ``Rejected`` 53300 if too many wait already.
        """
        done: Future[S] = Future()
        done.set_running_or_notify_cancel()
        with self._lock:
            state, failed = self.state, self._failed
            holds = failed is None and predicate(state)
            full = len(self._waiters) >= self._waiters_max
            if failed is None and not holds and not full:
                waiter = next(self._waiter_ids)
                self._waiters[waiter] = (predicate, done, time.monotonic() + timeout_s, timeout_s)
        if failed is not None:
            done.set_exception(failed)
        elif holds:
            done.set_result(state)
        elif full:
            done.set_exception(Rejected(f"too many wait for {self.name}", sqlstate="53300",
                                        detail=f"the limit is {self._waiters_max}"))  # fmt: skip
        else:
            self.deadlines.poke()
        return done

    def when_offset(self, offset: int, timeout_s: float) -> Future[S]:
        """The state once every record below ``offset`` is folded."""
        return self.when(lambda _state: self.next_offset >= offset, timeout_s)

    def caught_up(self, timeout_s: float) -> Future[S]:
        """The state once everything is folded that the topic held when this was called (advisory: DESIGN I4)."""
        return self.when_offset(self.transport.bounds()[1], timeout_s)

    def subscribe(self, callback: Callable[[S, S, Sequence[O]], None]) -> Callable[[], None]:
        """Call ``callback(old_state, new_state, outcomes)`` after each batch; returns what ends that.

        A callback that raises stops the journal: a subscriber that missed
        a change would be wrong for ever.
        """
        with self._lock:
            self._subscribers = (*self._subscribers, callback)

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers = tuple(c for c in self._subscribers if c is not callback)

        return unsubscribe

    def fail(self, error: Exception) -> None:
        """Stop for good: everybody who waits and everything later fails with ``error``."""
        with self._lock:
            if self._failed is not None:
                return
            self._failed = error
        for done in self._take_all():
            done.set_exception(error)
        self.failure.set_result(error)

    def close(self) -> None:
        """Stop reading and close the transport."""
        if self._subscription is not None:
            self._subscription.close()
        self.transport.close()
        self.deadlines.close()
        with self._lock:
            if self._failed is None:
                self._failed = Unavailable(f"{self.name} is closed")
        for done in self._take_all():
            done.set_exception(Unavailable(f"{self.name} is closed"))

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        if self._failed is not None:
            return
        state, next_offset = self._position
        old = state
        fold, outcomes = self._fold, []
        try:
            if entries[0].offset < next_offset:
                raise FatalLog(f"{self.name} went back to offset {entries[0].offset} from {next_offset}")
            together = None if self._fold_all is None else self._fold_all(state, entries)
            if together is not None:
                state, outcomes = together
            else:
                for entry in entries:
                    state, outcome = fold(state, entry)
                    if outcome is not None:
                        outcomes.append(outcome)
        except Exception as error:
            self.fail(error)
            return
        self._position = (state, entries[-1].offset + 1)
        if self._waiters:
            self._wake_waiters(state)
        try:
            for callback in self._subscribers:
                callback(old, state, outcomes)
        except Exception as error:
            self.fail(error)

    def _wake_waiters(self, state: S) -> None:
        woken: list[tuple[Future[S], Exception | None]] = []
        with self._lock:
            for waiter, (predicate, done, _, _) in list(self._waiters.items()):
                try:
                    if not predicate(state):
                        continue
                    woken.append((done, None))
                except Exception as error:
                    woken.append((done, error))
                del self._waiters[waiter]
        for done, error in woken:
            if error is None:
                done.set_result(state)
            else:
                done.set_exception(error)

    def _give_up(self, now: float) -> bool:
        """Fail what is late; whether anything is left.  For ``Deadlines``."""
        late: list[tuple[Future, Exception]] = []
        with self._lock:
            for waiter, (_, done, deadline, timeout_s) in list(self._waiters.items()):
                if deadline <= now:
                    del self._waiters[waiter]
                    late.append((done, Unavailable(f"{self.name} did not get there within {timeout_s:g} s",
                                                   sqlstate="57014")))  # fmt: skip
        for done, error in late:
            done.set_exception(error)
        return bool(self._waiters)

    def _take_all(self) -> list[Future[S]]:
        with self._lock:
            waiting = [done for _, done, _, _ in self._waiters.values()]
            self._waiters.clear()
        return waiting
