"""Recording what an oracle gave out, from many threads, and a notation for it.  The laws themselves (I3) are
``judge/checkers/oracle_laws.py``: record first, judge later.

An operation is ``(start, end, timeline, kind, ts)`` with times from one clock that never stands still.
"""

from __future__ import annotations

import itertools
import threading

from judge.checkers.oracle_laws import APPLY, COMMIT, READ, WRITE, Given, violations

__all__ = ["APPLY", "COMMIT", "READ", "WRITE", "History", "parse", "violations"]


class History:
    """Records operations from many threads."""

    def __init__(self):
        self.ops = []
        self._clock = itertools.count()
        self._lock = threading.Lock()

    def now(self):
        with self._lock:
            return next(self._clock)

    def add(self, start, timeline, kind, ts):
        with self._lock:
            self.ops.append(Given(start, next(self._clock), timeline, kind, ts))


def parse(text):
    """A history in a short notation: ``w5[0,1] r5[2,3] a4[1,9] c7[4,5]``; ``[2,]`` was never answered."""
    kinds = {"w": WRITE, "r": READ, "a": APPLY, "c": COMMIT}
    ops = []
    for word in text.split():
        ts, times = word[1:-1].split("[")
        start, end = times.split(",")
        ops.append(Given(int(start), int(end) if end else None, "g", kinds[word[0]], int(ts)))
    return ops
