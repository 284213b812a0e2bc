"""A reader that keeps what it was given, and lets a test wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from journal.api import Entry, Transport

PATIENCE_S = 40.0
"""For things that must happen: far above what a busy machine needs."""


class Collector:
    """Subscribes to ``transport`` and keeps entries and errors."""

    def __init__(self, transport: Transport, from_offset: int = 0) -> None:
        self.entries: list[Entry] = []
        self.errors: list[Exception] = []
        self._changed = threading.Condition()
        self.subscription = transport.subscribe(from_offset, self._on_entries, self._on_error)

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        with self._changed:
            self.entries.extend(entries)
            self._changed.notify_all()

    def _on_error(self, error: Exception) -> None:
        with self._changed:
            self.errors.append(error)
            self._changed.notify_all()

    def until(self, holds: Callable[[Collector], bool], timeout_s: float = PATIENCE_S) -> Collector:
        with self._changed:
            assert self._changed.wait_for(lambda: holds(self), timeout_s), f"only {len(self.entries)}, {self.errors}"
        return self

    def values(self, count: int) -> list[bytes]:
        """The first ``count`` values, once they are there."""
        self.until(lambda c: len(c.entries) >= count)
        return [entry.value for entry in self.entries[:count]]
