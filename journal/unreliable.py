"""A transport that does to appends what a network does, reproducibly: for tests.

Each append meets one of these fates, drawn from the seed: it works; it is *lost* (``Indeterminate``, never happens);
it is *unanswered* (``Indeterminate``, but it happened); it is *late* (``Indeterminate``, and it happens after a few
further appends of anybody); it is *doubled* (it works, and a second copy lands later, as when a hung producer sends
again).  Batches are delivered cut at random places.

Time plays no part: what is late lands after a number of appends, or when :meth:`land_all` is called.  The same seed
and the same calls give the same log.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from journal.api import Entry, Subscription, Transport
from journal.errors import Indeterminate

LATE_APPENDS_MAX = 6
"""What is late lands after at most this many further appends."""


class Faults(NamedTuple):
    """Probabilities of each fate; what is left works."""

    lost: float = 0.1
    unanswered: float = 0.1
    late: float = 0.1
    doubled: float = 0.1


class UnreliableTransport:
    """``inner`` behind a bad network.  ``seed`` decides everything."""

    def __init__(self, inner: Transport, seed: int, faults: Faults = Faults()) -> None:  # noqa: B008 - immutable
        self.inner = inner
        self.seed = seed
        self.faults = faults
        self.fates: list[str] = []
        """What became of each append, in order."""
        self.renewals = 0
        self._random = random.Random(seed)
        self._cuts = random.Random(seed + 1)  # of its own: batches depend on threads, fates must not
        self._late: list[tuple[int, bytes]] = []
        self._lock = threading.RLock()

    def append(self, value: bytes) -> Future[int]:
        with self._lock:
            self._land(1)
            fate = self._draw()
            self.fates.append(fate)
            if fate in ("late", "doubled"):
                self._late.append((self._random.randint(1, LATE_APPENDS_MAX), value))
            if fate in ("lost", "late"):
                return _unanswered(fate)
            sent = self.inner.append(value)
            return _unanswered(fate) if fate == "unanswered" else sent

    def land_all(self) -> None:
        """Whatever is late lands now."""
        with self._lock:
            self._land(LATE_APPENDS_MAX)

    def subscribe(
        self,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
    ) -> Subscription:
        def cut(entries: Sequence[Entry]) -> None:
            lower = 0
            while lower < len(entries):
                with self._lock:
                    upper = lower + self._cuts.randint(1, len(entries) - lower)
                on_entries(entries[lower:upper])
                lower = upper

        return self.inner.subscribe(from_offset, cut, on_error)

    def bounds(self) -> tuple[int, int]:
        return self.inner.bounds()

    def cut(self, below_offset: int) -> None:
        self.inner.cut(below_offset)

    def renew(self) -> None:
        self.renewals += 1
        self.inner.renew()

    def close(self) -> None:
        self.inner.close()

    def _draw(self) -> str:
        drawn = self._random.random()
        for fate, probability in self.faults._asdict().items():
            drawn -= probability
            if drawn < 0:
                return fate
        return "works"

    def _land(self, appends: int) -> None:
        late, self._late = self._late, []
        for left, value in late:
            if left <= appends:
                self.inner.append(value)
            else:
                self._late.append((left - appends, value))


def _unanswered(fate: str) -> Future[int]:
    done: Future[int] = Future()
    done.set_exception(Indeterminate("no answer", detail=f"simulated: {fate}"))
    return done
