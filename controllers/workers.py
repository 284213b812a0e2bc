"""Threads for calls that may hang: a call that nobody waits for any more gives its place back at once.

Promises: at most ``size`` calls that somebody waits for run at once, in the order in which they came, and behind them
at most ``left_max`` that were left behind and have not returned (a library that cannot be interrupted holds their
threads).  Where there are more of those, places become fewer until some return.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple


class _Call(NamedTuple):
    function: Callable[[], object]
    future: Future


class Workers:
    """Any thread may call it.  ``begin`` runs on each new thread; threads are daemons and made when needed."""

    def __init__(self, size: int, left_max: int, name: str, begin: Callable[[], object] = lambda: None) -> None:
        self._size = size
        self._left_max = left_max
        self._name = name
        self._begin = begin
        self._ready = threading.Condition()
        self._queue: deque[_Call] = deque()
        self._running: set[Future] = set()
        self._left: set[Future] = set()
        self._threads = 0
        self._idle = 0
        self._closed = False

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def left(self) -> int:
        return len(self._left)

    def submit(self, function: Callable[[], object]) -> Future:
        """What ``function`` returns or raises.  Raises ``RuntimeError`` once closed."""
        future: Future = Future()
        with self._ready:
            if self._closed:
                raise RuntimeError("closed")
            self._queue.append(_Call(function, future))
            self._staff()
            self._ready.notify()
        return future

    def leave(self, future: Future) -> None:
        """Nobody waits for ``future`` any more: it does not begin, or its place goes to the next."""
        if future.cancel():
            with self._ready:
                self._queue = deque(call for call in self._queue if call.future is not future)
            return
        with self._ready:
            if future in self._running and len(self._left) < self._left_max:
                self._left.add(future)
                self._staff()

    def close(self, timeout_s: float | None = None) -> None:
        """Cancel what has not begun and wait for what somebody waits for."""
        with self._ready:
            self._closed = True
            queue, self._queue = self._queue, deque()
            self._ready.notify_all()
        for call in queue:
            call.future.cancel()
        with self._ready:
            self._ready.wait_for(lambda: self._running <= self._left, timeout_s)

    def _staff(self) -> None:
        if self._queue and self._idle == 0 and self._threads - len(self._left) < self._size:
            self._threads += 1
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def _next(self) -> _Call | None:
        """``None``: this thread is one too many, or all is over."""
        with self._ready:
            while True:
                if self._closed or self._threads - len(self._left) > self._size:
                    break
                if self._queue:
                    call = self._queue.popleft()
                    if not call.future.set_running_or_notify_cancel():
                        continue
                    self._running.add(call.future)
                    return call
                self._idle += 1
                self._ready.wait()
                self._idle -= 1
            self._threads -= 1
            return None

    def _serve(self) -> None:
        self._begin()
        while (call := self._next()) is not None:
            try:
                found, error = call.function(), None
            except BaseException as thrown:  # raised to whoever waits
                found, error = None, thrown
            with self._ready:
                self._running.discard(call.future)
                self._left.discard(call.future)
                self._ready.notify_all()
            if error is None:
                call.future.set_result(found)
            else:
                call.future.set_exception(error)
