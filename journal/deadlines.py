"""Deadlines for many futures at the cost of one mostly sleeping thread.

A thread that is woken for every append would cost more than the append.  This one looks every quarter of a second while
something is pending and sleeps otherwise, so a deadline is kept to that granularity: late, never early.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

TICK_S = 0.25
"""Granularity: an eighth of the shortest wait in use (the 2 s watchdog)."""


class Deadlines:
    """Calls back when a deadline passes.  ``threaded=False``: only :meth:`expire` does, called by a test."""

    def __init__(self, name: str, *, threaded: bool = True) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._seq = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._asleep = True
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run, name=f"{name}-deadlines", daemon=True)
            self._thread.start()

    def after(self, timeout_s: float, on_expired: Callable[[], None]) -> None:
        """Call ``on_expired`` once, ``timeout_s`` from now.  It must know by itself whether it is still wanted."""
        with self._lock:
            self._seq += 1
            heapq.heappush(self._heap, (time.monotonic() + timeout_s, self._seq, on_expired))
            if self._asleep:
                self._asleep = False
                self._wake.set()

    def expire(self, now: float | None = None) -> None:
        """Call back for every deadline at or before ``now`` (monotonic seconds; default: the present)."""
        now = time.monotonic() if now is None else now
        due = []
        with self._lock:
            while self._heap and self._heap[0][0] <= now:
                due.append(heapq.heappop(self._heap)[2])
        for on_expired in due:
            on_expired()

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                if not self._heap:
                    self._asleep = True
                    self._wake.clear()
            if self._asleep:
                self._wake.wait()
            else:
                self._stop.wait(TICK_S)
            self.expire()
