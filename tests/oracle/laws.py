"""The laws of a timestamp oracle (I3) as a judge of histories: record first, judge later.

An operation is ``(start, end, timeline, kind, ts)`` with times from one clock that never stands still; ``end`` is
``None`` for one that was never answered (it may have happened, so it asks nothing of others, and only an ``apply``
of it could help a reader: then the reader's ts is merely larger than it must be).
"""

from __future__ import annotations

import itertools
import threading
from typing import NamedTuple

READ, WRITE, APPLY, COMMIT = "read", "write", "apply", "commit"
"""A commit is a write that is applied at once; parts that were committed together share its timestamp."""


class Op(NamedTuple):
    start: int
    end: int | None
    timeline: str
    kind: str
    ts: int


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
            self.ops.append(Op(start, next(self._clock), timeline, kind, ts))


def violations(ops):
    """Every breach of I3 in ``ops``, as text; empty if the laws hold."""
    found = []
    for timeline in {op.timeline for op in ops}:
        found += _violations([op for op in ops if op.timeline == timeline and op.end is not None])
    return found


def _violations(ops):
    found = []
    writes = [op for op in ops if op.kind == WRITE]
    if len({op.ts for op in writes}) != len(writes):
        found.append("two write_ts are equal")
    by_end = sorted(ops, key=lambda op: op.end)
    newest = {
        READ: None,
        WRITE: None,
        APPLY: None,
        COMMIT: None,
    }  # the finished operation of each kind with the largest ts
    ended = 0
    for op in sorted(ops, key=lambda op: op.start):
        while ended < len(by_end) and by_end[ended].end < op.start:
            other = by_end[ended]
            if newest[other.kind] is None or newest[other.kind].ts < other.ts:
                newest[other.kind] = other
            ended += 1
        if op.kind in (WRITE, COMMIT):
            earlier = (newest[READ], newest[WRITE], newest[COMMIT])
            found += [f"{op} is not above {e}" for e in earlier if e and e.ts >= op.ts]
        if op.kind == READ:
            earlier = (newest[APPLY], newest[COMMIT], newest[READ])
            found += [f"{op} is below {e}" for e in earlier if e and e.ts > op.ts]
    return found


def parse(text):
    """A history in a short notation: ``w5[0,1] r5[2,3] a4[1,9] c7[4,5]``; ``[2,]`` was never answered."""
    kinds = {"w": WRITE, "r": READ, "a": APPLY, "c": COMMIT}
    ops = []
    for word in text.split():
        ts, times = word[1:-1].split("[")
        start, end = times.split(",")
        ops.append(Op(int(start), int(end) if end else None, "g", kinds[word[0]], int(ts)))
    return ops
