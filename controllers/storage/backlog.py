"""What one source is far behind with, judged by clusters' executors instead of its own thread, a wave at a time.

Promises: what it gives is to be bound as it is, as if this process had read and judged the same records; where nobody
judges, or too little comes of it, it gives nothing and asks again after a while, and a source goes on by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from controllers.judging import Order, Range, Verdict
from controllers.storage import waves
from controllers.storage.remap import Prepared

WAVE_S_MAX = 120.0
"""For one wave, which takes one executor ten seconds; one that hydrates a large view first is not waited for."""

AGAIN_S, AGAIN_S_MAX = 5.0, 300.0
"""Until executors are asked again, twice as long each time that nothing comes of it."""


Ordered = Callable[[Sequence[Range], float], Order | None]
"""What executors are told that are to judge ranges within so many seconds."""


class Judges(Protocol):
    """Who judges (:class:`controllers.storage.executors.Executors`)."""

    def judge(self, order: Order) -> list[Verdict] | None: ...


class Backlog:
    """Of one source.  Used by one thread."""

    def __init__(self, judges: Judges, at_once: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``at_once``: offsets of a range at first."""
        self._judges = judges
        self._at_once = at_once
        self._clock = clock
        self._again_s = AGAIN_S
        self._not_before = 0.0

    def is_due(self, records: int | None) -> bool:
        """Whether executors should be asked of a source that is so far behind, as far as anybody knows."""
        return records is not None and records >= waves.BACKLOG_RECORDS and self._clock() >= self._not_before

    def judged(
        self, positions: Mapping[int, int], ends: Mapping[int, int], pin: str, ordered: Ordered
    ) -> Prepared | None:  # fmt: skip
        """The next wave from ``positions`` on and below ``ends``, up to where everything can be read now."""
        much = self.is_due(waves.behind(positions, ends))
        ranges = waves.wave(positions, ends, waves.RANGES * self._at_once, self._at_once) if much else []
        # There are no ranges, too, where it is much in all and little of each partition.
        order = ordered(ranges, WAVE_S_MAX) if ranges else None
        verdicts = self._judges.judge(order) if order is not None else None
        if order is None or verdicts is None:
            self.leave()
            return None
        self._at_once = waves.next_records(self._at_once, ranges, verdicts)
        found = waves.taken(order.topic, positions, ranges, verdicts, pin)
        if waves.is_poor(ranges, found):
            self.leave()
        else:
            self._again_s = AGAIN_S
        return found if found.runs else None

    def leave(self) -> None:
        """Nothing came of it: not again for a while."""
        self._not_before = self._clock() + self._again_s
        self._again_s = min(2 * self._again_s, AGAIN_S_MAX)
