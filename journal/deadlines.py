"""Deadlines for many futures at the cost of one mostly sleeping thread.

A thread that is woken for every append would cost more than the append, and a timer for each would keep every finished
one alive until its time.  So owners keep their own pending futures, and this thread asks them every quarter of a
second, while anything is pending, to give up on what is late.  A deadline is kept to that granularity: late, never
early.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TICK_S = 0.25
"""Granularity: an eighth of the shortest wait in use (the 2 s watchdog)."""


class Deadlines:
    """``threaded=False``: nothing happens but by :meth:`expire`, called by a test."""

    def __init__(self, name: str, *, threaded: bool = True) -> None:
        self._sweepers: list[Callable[[float], bool]] = []
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._asleep = threaded
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run, name=f"{name}-deadlines", daemon=True)
            self._thread.start()

    def add_sweeper(self, sweep: Callable[[float], bool]) -> None:
        """Call ``sweep(now)`` at every tick after a :meth:`poke`; it gives up on what is late and says whether
        anything is left."""
        self._sweepers.append(sweep)

    def poke(self) -> None:
        """Something is pending from now on.  Nearly free unless the thread sleeps."""
        if self._asleep:
            self._wake.set()

    def expire(self, now: float | None = None) -> bool:
        """Do what is due at ``now`` (monotonic seconds; default: the present); whether anything is left."""
        now = time.monotonic() if now is None else now
        left = [sweep(now) for sweep in self._sweepers]
        return any(left)

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._asleep = True
            self._wake.clear()
            # What came before the clearing is seen now, what comes later sets the event again.
            if self._stop.is_set():
                return
            left = self.expire()
            self._asleep = not left
            self._wake.wait(TICK_S if left else None)
