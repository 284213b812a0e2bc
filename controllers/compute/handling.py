"""A controller's core under one lock: its threads bring it events one at a time."""

from __future__ import annotations

import threading

from controllers.compute.core import Core, Effect, Event
from controllers.peeks.peek import Peek
from journal.timestamps import DataTs


class Handling:
    """Any thread.  What comes of an event is carried out without the lock, by who brought it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()

    def handle(self, event: Event) -> list[Effect]:
        """:meth:`Core.handle`."""
        with self._lock:
            return self._core.handle(event)

    def at_once(self, peek: Peek) -> DataTs | None:
        """:meth:`Core.at_once`."""
        with self._lock:
            return self._core.at_once(peek)

    def waiting(self) -> int:
        """:meth:`Core.waiting`."""
        with self._lock:
            return self._core.waiting()

    def deadline_ms(self) -> int | None:
        """:meth:`Core.deadline_ms`."""
        with self._lock:
            return self._core.deadline_ms()

    @property
    def epoch(self) -> int:
        """By which the cluster's outputs are ours to write."""
        return self._core.epoch
