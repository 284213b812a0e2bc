"""What one source is far behind with, judged by clusters' executors instead of its own thread, a wave at a time.

Promises: what it gives is to be bound as it is, as if this process had read and judged the same records; where nobody
judges, or too little comes of it, it gives nothing and asks again after a while, and a source goes on by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from catalog_log.objects import Source
from controllers.judging import Order, Verdict, judged_columns
from controllers.storage import waves
from controllers.storage.remap import Prepared

WAVE_S_MAX = 120.0
"""For one wave, which takes one executor ten seconds; one that hydrates a large view first is not waited for."""

AGAIN_S, AGAIN_S_MAX = 5.0, 300.0
"""Until executors are asked again, twice as long each time that nothing comes of it."""


class Judges(Protocol):
    """Who judges (:class:`controllers.storage.executors.Executors`)."""

    def judge(self, order: Order) -> list[Verdict] | None: ...


class Backlog:
    """Of one source that is read in place.  Used by one thread."""

    def __init__(self, item: Source, judges: Judges, clock: Callable[[], float] = time.monotonic) -> None:
        self._item = item
        self._judges = judges
        self._clock = clock
        self._again_s = AGAIN_S
        self._not_before = 0.0

    def is_due(self, records: int | None) -> bool:
        """Whether executors should be asked of a source that is so far behind, as far as anybody knows."""
        return records is not None and records >= waves.BACKLOG_RECORDS and self._clock() >= self._not_before

    def judged(self, positions: Mapping[int, int], ends: Mapping[int, int], pin: str) -> Prepared | None:
        """The next wave from ``positions`` on and below ``ends``, up to where everything can be read now."""
        much = self.is_due(waves.behind(positions, ends))
        ranges = waves.wave(positions, ends, waves.WAVE_RECORDS, waves.RANGE_RECORDS) if much else []
        order = Order(self._item.topic, judged_columns(self._item.stored), tuple(ranges), WAVE_S_MAX)
        # There are no ranges, too, where it is much in all and little of each partition.
        verdicts = self._judges.judge(order) if ranges else None
        if verdicts is None:
            self.leave()
            return None
        found = waves.taken(self._item.topic, positions, ranges, verdicts, pin)
        if waves.is_poor(ranges, found):
            self.leave()
        else:
            self._again_s = AGAIN_S
        return found

    def leave(self) -> None:
        """Nothing came of it: not again for a while."""
        self._not_before = self._clock() + self._again_s
        self._again_s = min(2 * self._again_s, AGAIN_S_MAX)
