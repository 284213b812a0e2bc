"""Was anything that this transaction read written after it read it?  First committer wins (DESIGN §4).  Pure.

One manager per collection; inside it writes are kept by key range.  Promises: a conflict is never missed, and none is
reported that is not one.  What cannot be told any more (the window is bounded) is refused as too old, never guessed.
It does not see writes of other parts of the same transaction: a part never conflicts with itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import immutables

from oracle.errors import Reason
from oracle.growing import Growing
from oracle.model import KeyRange

KEY_WRITES_MAX = 16_384
"""Key-range writes remembered per collection: some 2 MB at 100-byte keys.  At 1,000 keyed commits a second that is 16 s
of history, and a transaction reads its ``read_ts`` milliseconds before it commits."""


class KeyWrite(NamedTuple):
    ts: int
    lower: bytes | None
    upper: bytes | None


def _ts_of(write: KeyWrite) -> int:
    return write.ts


def is_point(lower: bytes | None, upper: bytes | None) -> bool:
    """Whether a range is of one key."""
    return lower is not None and upper == lower + b"\0"


class Manager(NamedTuple):
    """The writes of one collection.  ``keyed`` is complete above ``floor``.

    ``points`` and ``ranges`` are what ``keyed`` says, so that a key is looked up and not looked for: a commit that has
    read a thousand keys would otherwise be compared with each of thousands of writes, by everybody who folds the log.
    """

    floor: int = 0
    whole: int = -1
    """Newest write that did not say which keys."""
    last: int = -1
    """Newest write of any kind."""
    keyed: Growing[KeyWrite] = Growing()
    points: immutables.Map[bytes, int] = immutables.Map()
    """Of each single key in it: its newest write."""
    ranges: Growing[KeyWrite] = Growing()
    """The writes of ``keyed`` that are not of a single key."""

    @classmethod
    def of(cls, floor: int, whole: int, last: int, keyed: Growing[KeyWrite]) -> Manager:
        """One of what is kept."""
        points = immutables.Map({each.lower: each.ts for each in keyed if is_point(each.lower, each.upper)})
        wide = Growing(each for each in keyed if not is_point(each.lower, each.upper))
        return cls(floor, whole, last, keyed, points, wide)

    def check(self, read: KeyRange, read_ts: int) -> tuple[Reason, str] | None:
        """Why a reader of ``read`` at ``read_ts`` may not commit, or ``None``."""
        if self.last <= read_ts:
            return None
        if (read.lower is None and read.upper is None) or self.whole > read_ts:
            return Reason.READ_CONFLICT, f"{read.collection} was written at {self.last}, after {read_ts}"
        if (ts := self._written(read, read_ts)) is not None:
            return Reason.READ_CONFLICT, f"keys of {read.collection} were written at {ts}, after {read_ts}"
        if read_ts < self.floor:
            return Reason.SNAPSHOT_TOO_OLD, f"{read.collection}: writes up to {self.floor} are no longer told apart"
        return None

    def _written(self, read: KeyRange, read_ts: int) -> int | None:
        """When a key of ``read`` was written after ``read_ts``."""
        looked = self.keyed
        if is_point(read.lower, read.upper):
            if (ts := self.points.get(read.lower, -1)) > read_ts:
                return ts
            looked = self.ranges
        return next((w.ts for w in looked.slice(looked.first_after(read_ts, _ts_of)) if overlap(read, w)), None)

    def write(self, ts: int, ranges: Iterable[KeyRange]) -> Manager:
        """With a write at ``ts`` of the given ranges; of no range at all: of the whole collection."""
        floor, whole, _, keyed, points, wide = self
        named, changed = False, points.mutate()
        for each in ranges:
            named = True
            if each.lower is None and each.upper is None:
                whole = ts
            else:
                write = KeyWrite(ts, each.lower, each.upper)
                keyed = keyed.append(write)
                if is_point(each.lower, each.upper):
                    changed[each.lower] = ts
                else:
                    wide = wide.append(write)
        if not named:
            whole = ts
        if len(keyed) > KEY_WRITES_MAX:
            kept = keyed.slice(len(keyed) - KEY_WRITES_MAX // 2)
            return Manager.of(keyed[len(keyed) - KEY_WRITES_MAX // 2 - 1].ts, whole, ts, Growing(kept))
        return Manager(floor, whole, ts, keyed, changed.finish(), wide)

    def forget_through(self, ts: int) -> Manager:
        """Without the writes at or below ``ts``, which no admissible ``read_ts`` can be older than."""
        split = self.keyed.first_after(ts, _ts_of)
        return Manager.of(self.floor, self.whole, self.last, Growing(self.keyed.slice(split))) if split else self


def overlap(read: KeyRange, write: KeyWrite) -> bool:
    """Whether two half-open key ranges share a key."""
    return (read.lower is None or write.upper is None or read.lower < write.upper) and (
        write.lower is None or read.upper is None or write.lower < read.upper
    )


EMPTY_MANAGER = Manager()

Managers = immutables.Map
"""``Map[collection, Manager]``."""


def check(managers: Managers, reads: Iterable[KeyRange], read_ts: int) -> tuple[Reason, str] | None:
    """The first reason why a transaction that read ``reads`` at ``read_ts`` may not commit, or ``None``."""
    for read in reads:
        manager = managers.get(read.collection)
        if manager is not None and (found := manager.check(read, read_ts)):
            return found
    return None


def record(managers: Managers, ts: int, written: Iterable[str], ranges: Iterable[KeyRange]) -> Managers:
    """``managers`` after a write at ``ts`` to the collections ``written``, narrowed by the ``ranges`` that name one."""
    by_collection: dict[str, list[KeyRange]] = {collection: [] for collection in written}
    for each in ranges:
        by_collection.setdefault(each.collection, []).append(each)
    with managers.mutate() as changed:
        for collection, narrowed in by_collection.items():
            changed[collection] = changed.get(collection, EMPTY_MANAGER).write(ts, narrowed)
        return changed.finish()


def forget_through(managers: Managers, since: int) -> Managers:
    """Drop what no reader at ``since`` or later can conflict with."""
    with managers.mutate() as changed:
        for collection, manager in managers.items():
            if manager.last <= since:
                del changed[collection]
            else:
                changed[collection] = manager.forget_through(since)
        return changed.finish()
