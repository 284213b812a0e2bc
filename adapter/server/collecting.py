"""When Python looks for garbage in circles: while nothing long is being planned.

Promises: no full collection while a long statement is planned or written out, but for one after ``LAST_RESORT`` young
ones without it; otherwise one as soon as ``YOUNG_MAX`` young ones are due to be looked through and nobody plans.  Each
looks only at what was made since the one before.  What is found nowhere is bounded: when what is kept has doubled, all
of it is looked through.

A full collection stops every thread, for 0.25 µs for each object that lives (measured): 50,000 after a start, 300,000
more while an IN of 20,000 is planned, a million once the plan cache is full.  Python begins one whenever what lives
has grown by a quarter, which is in the middle of the longest statements: 0.1 to 0.4 s in which nobody is served.
Nothing much is found either: trees are freed by counting references (:mod:`trees.acyclic`).
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS, YOUNG_PASSES = 700, 10
"""Python's own: objects more than before from which the youngest are looked through, and of these passes the one that
looks through the younger ones too: 2 ms (measured)."""

YOUNG_MAX = 10
"""Passes over the younger ones from which a full one is due: some 77,000 objects that lived through them, or 20 ms."""

LAST_RESORT = 2_000
"""Passes over the younger ones after which a full one is not put off: some 14 million objects made and not freed by
then, or a minute and more of two sessions that plan the longest statements without a pause."""

KEPT_MIN = 200_000
"""Objects kept below which nothing has doubled: looking through them takes 50 ms."""

LOOK_S = 1.0
"""Seconds between looks while nobody asks for plans: what is due is then 20 ms of work, and nobody waits."""


class Collector:
    """This process's collections.  One at most; on the event loop."""

    def __init__(self) -> None:
        self._kept = 0
        self._kept_now_max = 0
        """Of what is kept, those that were freed since still counted.  Python counts by looking at each, 15 ms for a
        million: asked at every look, a tenth of an adapter's processor once it had made 50,000 tables."""

    def start(self) -> None:
        """What was made until now stays for good: later collections, which stop everybody, pass it over."""
        self._look_through(everything=True)
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_PASSES, LAST_RESORT)

    def at_rest(self) -> None:
        """Nothing long is being planned: collect if that is due."""
        if gc.get_count()[2] >= YOUNG_MAX:
            self._look_through(everything=self._doubled())

    def _doubled(self) -> bool:
        enough = 2 * max(self._kept, KEPT_MIN)
        if self._kept_now_max >= enough:
            self._kept_now_max = gc.get_freeze_count()
        return self._kept_now_max >= enough

    def _look_through(self, everything: bool) -> None:
        if everything:
            gc.unfreeze()
        gc.collect()
        self._kept_now_max += len(gc.get_objects())
        gc.freeze()
        if everything:
            self._kept = self._kept_now_max = gc.get_freeze_count()
