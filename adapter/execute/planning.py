"""Where long statements are parsed and planned: beside the event loop, which serves everybody else meanwhile.

Promises: whatever is planned here is given up when its caller is cancelled (a cancel request, statement_timeout, the
end of the session) and after ``plan_s_max`` seconds of work (54001); a long one never keeps a short one waiting, since
each of the two has a thread; and while a thread works, it lets go of Python's lock often enough for the loop.

Planning is pure, so an exception may end it at any place: it is thrown into the thread from outside, as a signal would
be.  Turned down: processes.  A plan is a function of what the catalog answers, so either the catalog of every image or
each question would have to travel, and the tree with its answer; it costs the loop more to read a plan from a pipe than
to share Python's lock with whoever makes it.

A full collection of Python's cyclic garbage stops every thread, and takes 0.1 s or more while the tree of a very long
statement lives: so none happens then (:mod:`adapter.server.collecting`), and trees do without
(:mod:`trees.acyclic`).
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

from journal.errors import Rejected, Unavailable
from trees.budget import too_complex

ON_LOOP_CHARS_MAX = 200
"""A shorter text is planned where it is asked: 20 ms at most (1.5 for an everyday one), and going to a
thread and back costs 0.1 ms and a turn of the loop.  A one-row INSERT and what drivers ask are shorter."""

LONG_CHARS = 8_000
"""From here a text is for the other thread.  8,000 characters are planned in a second at most (measured: 1,000 ORs)."""

PLAN_S_MAX = 10.0
"""Seconds of one statement's planning.  20,000 items of an IN or 2,000 ORs take 3.5 of one core (measured)."""

WAITING_MAX = 1_000
"""Statements that wait for a thread: every session has one at a time at most, so this is a fifth of all sessions."""

LARGE_MAX = 2
"""Large statements that are being written out for DuckDB at once; as many threads share Python's lock with the loop."""

SWITCH_S = 0.0005
"""How long a thread may keep Python's lock while another waits.  By default it is 5 ms, and the loop needs the lock
five times for one SELECT 1: 25 ms beside one planner."""

P = ParamSpec("P")
T = TypeVar("T")


class _GivenUp(BaseException):
    """Thrown into a thread whose work nobody waits for.  No ``except Exception`` holds it."""


class _Job:
    """One call.  ``give_up`` may come at any time, from any thread."""

    def __init__(self, call: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.done: asyncio.Future = loop.create_future()
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._given_up = False
        self.began_s: float | None = None
        self.late = False

    def begin(self) -> bool:
        with self._lock:
            self.began_s = time.monotonic()
            self._thread = None if self._given_up else threading.get_ident()
            return not self._given_up

    def end(self) -> None:
        """What was thrown into this thread is raised here, if it was not before: never later."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and self._given_up:
            # Raised, not taken back.  Python looks in every frame of every thread for what is on its way until it finds
            # something, also after that was taken back; and where somebody profiles or traces, looking has no end.
            try:
                _throw(thread)  # a thread has room for one: this one takes the place of what is on its way
                while True:
                    pass
            except _GivenUp:
                pass

    def give_up(self) -> None:
        with self._lock:
            if not self._given_up:
                self._given_up = True
                if self._thread is not None:
                    _throw(self._thread)


def _throw(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_GivenUp))


class _Worker:
    """A thread, and what waits for it, first come first served: no session has two statements in it."""

    def __init__(self, name: str, plan_s_max: float) -> None:
        self.waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._plan_s_max = plan_s_max
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (job := self.waiting.get()) is not None:
            try:
                self._do(job)
            except _GivenUp:  # between two lines of ours: nobody waits for it
                continue
            finally:
                del job  # a tree is not kept until the next one comes

    def _do(self, job: _Job) -> None:
        value, error = None, None
        try:
            if not job.begin():
                return
            try:
                value = job.call()
            finally:
                job.end()
        except _GivenUp:
            if not job.late:
                return
            error = too_complex(f"planning it takes longer than {self._plan_s_max:g} s")
        except BaseException as raised:
            error = raised
        try:
            job.loop.call_soon_threadsafe(_resolve, job.done, value, error)
        except RuntimeError:
            pass  # the loop was closed: nobody waits any more


def _resolve(done: asyncio.Future, value: object, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(value)
    else:
        done.set_exception(error)


class Planner:
    """Threads for planning.  Used from one event loop."""

    def __init__(self, plan_s_max: float = PLAN_S_MAX) -> None:
        self._plan_s_max = plan_s_max
        self._workers: dict[bool, _Worker] = {}
        self._waiting = 0
        self._switch_s: float | None = None
        self._closed = False
        self._large = asyncio.Semaphore(LARGE_MAX)
        self.at_rest: Callable[[], None] = lambda: None
        """Called between statements, when nothing is being planned; set by whoever has work for such a moment."""

    async def run(self, chars: int, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """``call(…)``, which must be pure, for a statement of ``chars`` characters.

        Raises what it raises; 54001 where it takes too long, 53300 where too many wait.  Given up if cancelled.
        """
        if self._closed:
            raise Unavailable("the adapter is shutting down")
        if self._waiting >= WAITING_MAX:
            raise Rejected("too many statements are waiting to be planned", sqlstate="53300",
                           detail=f"{self._waiting} wait in this adapter", hint="try again")  # fmt: skip
        long = chars > LONG_CHARS
        if long not in self._workers:
            self._workers[long] = _Worker("planner-long" if long else "planner", self._plan_s_max)
        job = _Job(lambda: call(*args, **named), asyncio.get_running_loop())
        self._begun()
        timer = job.loop.call_later(self._plan_s_max, self._look, job)
        try:
            self._workers[long].waiting.put(job)
            return await job.done
        finally:
            timer.cancel()
            job.give_up()
            self._ended()

    def _look(self, job: _Job) -> None:
        """Give ``job`` up if it has worked for too long; it may have waited for a while before."""
        left_s = self._plan_s_max if job.began_s is None else job.began_s + self._plan_s_max - time.monotonic()
        if left_s <= 0:
            job.late = True
            job.give_up()
        elif not job.done.done():
            job.loop.call_later(left_s, self._look, job)

    @asynccontextmanager
    async def sharing(self, large: bool) -> AsyncIterator[None]:
        """Within it something about a statement is done in a thread of its own; where it is ``large``, in turn with
        others of its kind, and so that the loop has its share."""
        if not large:
            yield
            return
        async with self._large:
            self._begun()
            try:
                yield
            finally:
                self._ended()

    def close(self) -> None:
        """End the threads once they are through with what they have."""
        self._closed = True
        for worker in self._workers.values():
            worker.waiting.put(None)

    def rest(self) -> None:
        """Let :attr:`at_rest` know if nothing is being planned now."""
        if self._waiting == 0:
            self.at_rest()

    def _begun(self) -> None:
        self.rest()
        self._waiting += 1
        if self._waiting == 1:
            self._switch_s = sys.getswitchinterval()
            sys.setswitchinterval(min(SWITCH_S, self._switch_s))

    def _ended(self) -> None:
        self._waiting -= 1
        if self._waiting == 0 and self._switch_s is not None:
            sys.setswitchinterval(self._switch_s)
