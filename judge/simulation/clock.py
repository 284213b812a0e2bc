"""Time, chance and threads of the simulated world: a schedule of events, and stand-ins for what the product takes them
from.

Promises: within :func:`virtual` the product's modules see the world's clock, its ids and its deadlines, and start no
thread; outside of it nothing is changed.  One world at a time and in one thread.

The stand-ins replace names in the product's modules (``time``, ``uuid``, ``Deadlines``) and nothing of their logic.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import logging
from asyncio import events
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import adapter.execute.inserter
import adapter.execute.reads
import catalog_log.log
import controllers.storage.mover
import journal.folded
import journal.link
import subscribers.sender

MS = 1_000_000
S = 1000 * MS
TICK_NS = 250 * MS
"""Granularity of the product's deadlines (``journal.deadlines.TICK_S``)."""


class Schedule:
    """What happens when, and to which process: a heap.  Ties go by the order of asking, so a run has one order."""

    def __init__(self) -> None:
        self.now = 0
        """Nanoseconds since the world began."""
        self.steps = 0
        self._heap: list[tuple[int, int, Any, Callable, tuple]] = []
        self._seq = 0

    def at(self, time: int, owner: Any, call: Callable, *args: Any) -> None:
        """``call(*args)`` at ``time``, unless ``owner`` (a process) is dead by then; later if it is paused."""
        self._seq += 1
        heapq.heappush(self._heap, (time if time > self.now else self.now, self._seq, owner, call, args))

    def after(self, delay: int, owner: Any, call: Callable, *args: Any) -> None:
        self._seq += 1
        heapq.heappush(self._heap, (self.now + delay, self._seq, owner, call, args))

    def step(self) -> bool:
        """Do the next thing; False where there is none."""
        if not self._heap:
            return False
        self.now, _, owner, call, args = heapq.heappop(self._heap)
        self.steps += 1
        if owner is None:
            call(*args)
        elif owner.alive:
            if owner.paused:
                owner.backlog.append((call, args))
            else:
                call(*args)
                if owner.loop.ready:
                    owner.loop.run_ready()
        return True


class SimDeadlines:
    """``journal.deadlines.Deadlines`` on the world's schedule: same methods, same granularity, no thread."""

    def __init__(self, name: str, *, threaded: bool = True) -> None:
        self._owner = ACTIVE.booting
        self._schedule: Schedule = self._owner.world.schedule
        self._sweepers: list[Callable[[float], bool]] = []
        self._sweeping = False
        self._closed = False

    def add_sweeper(self, sweep: Callable[[float], bool]) -> None:
        self._sweepers.append(sweep)

    def poke(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            self._schedule.after(TICK_NS, self._owner, self._sweep)

    def close(self) -> None:
        self._closed = True

    def _sweep(self) -> None:
        self._sweeping = False
        if self._closed:
            return
        left = [sweep(self._schedule.now / S) for sweep in self._sweepers]
        if any(left):
            self.poke()


class SimLoop(asyncio.BaseEventLoop):
    """A process's event loop: ready callbacks run when the world lets the process act, timers on the world's clock,
    and what would go to another thread is done on the spot."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self._owner = owner
        self._due: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._asked = False
        self.ready: deque = self._ready

    def time(self) -> float:
        return self._owner.world.schedule.now / S

    def call_at(self, when, callback, *args, context=None):
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        # A nanosecond late rather than early: a timer that finds itself early would ask again for ever.
        self._owner.world.schedule.at(int(when * S) + 1, self._owner, self._fire, handle)
        return handle

    def call_soon(self, callback, *args, context=None):
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def run_in_executor(self, executor, func, *args):
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_exception_handler(self, context) -> None:
        """Tasks of a killed process are dropped as they are; what the product's own tasks raise is kept."""
        error = context.get("exception")
        if error is not None and self._owner.alive:
            self._owner.world.broken(f"{self._owner.name}: {context.get('message')}: {error!r}")

    def run_ready(self) -> None:
        ready = self._ready
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while ready and self._owner.alive:
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
        finally:
            events._set_running_loop(before)

    def _fire(self, handle: asyncio.TimerHandle) -> None:
        if not handle._cancelled:
            self._ready.append(handle)

    def _timer_handle_cancelled(self, handle) -> None:
        pass

    def _process_events(self, event_list) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def __del__(self) -> None:
        pass


class _Active:
    """The world that runs now, and the process that is being made."""

    booting: Any = None
    schedule: Schedule | None = None
    ids = 0


ACTIVE = _Active()


def _monotonic() -> float:
    return ACTIVE.schedule.now / S


def _uuid4() -> SimpleNamespace:
    ACTIVE.ids += 1
    return SimpleNamespace(hex=f"{ACTIVE.ids:012x}".ljust(32, "0"))


_TIME = SimpleNamespace(monotonic=_monotonic)
_UUID = SimpleNamespace(uuid4=_uuid4)


@contextmanager
def virtual(schedule: Schedule, *patches: Any) -> Iterator[None]:
    """Have the product's modules live in ``schedule``'s world; ``patches`` are further ``mock.patch`` objects.

    Meanwhile Python looks for no garbage in cycles: a world makes next to none (2 MB in 30,000 steps), and looking
    through all that a process holds, again and again, took some 5 % of the time.
    """
    before = ACTIVE.booting, ACTIVE.schedule, ACTIVE.ids
    ACTIVE.booting, ACTIVE.schedule, ACTIVE.ids = None, schedule, 0
    collects = gc.isenabled()
    gc.disable()
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    applied = []
    standing = [
        mock.patch.object(journal.folded, "time", _TIME),
        mock.patch.object(journal.folded, "Deadlines", SimDeadlines),
        mock.patch.object(journal.link, "time", _TIME),
        mock.patch.object(journal.link, "uuid", _UUID),
        mock.patch.object(catalog_log.log, "uuid", _UUID),
        mock.patch.object(subscribers.sender, "time", _TIME),
        mock.patch.object(adapter.execute.reads, "time", _TIME),
        mock.patch.object(adapter.execute.reads, "uuid", _UUID),
        mock.patch.object(adapter.execute.inserter, "uuid", _UUID),
        mock.patch.object(controllers.storage.mover, "uuid", _UUID),
    ]
    try:
        for each in (*standing, *patches):
            each.start()
            applied.append(each)
        yield
    finally:
        for each in reversed(applied):
            each.stop()
        logging.disable(disabled)
        if collects:
            gc.enable()
        ACTIVE.booting, ACTIVE.schedule, ACTIVE.ids = before
