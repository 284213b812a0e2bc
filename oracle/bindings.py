"""Which offsets of a collection are visible at which data timestamp (DESIGN §5), for one collection.  Pure.

Promises (I5): for ``since <= ts``, ``at(ts)`` never changes once ``ts`` is complete, and is the same for every
reader.  Memory is bounded: runs at or below ``since`` are merged into one per stretch of adjacent offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import immutables

from collection.binding import INLINE, PIN, RETIRED, BoundRun, Inline, Run, pinned
from journal.errors import InvalidUsage
from oracle.errors import Reason, SnapshotTooOld
from oracle.growing import Growing

Interval = tuple[int, int]
Partition = tuple[str, int]
"""A partition of a topic."""


def _ts_of(bound: BoundRun) -> int:
    return bound.ts


class Bound(NamedTuple):
    """All that the fold keeps of one collection.

    ``base`` are the merged runs at or below ``since`` in order of (topic, partition, lower); their ``ts`` is the
    newest of what was merged.  ``recent`` are the others in order of ``ts``.  ``coverage`` says, for every partition,
    which offsets are bound at all, as disjoint ascending intervals that do not touch.
    """

    base: tuple[BoundRun, ...] = ()
    recent: Growing[BoundRun] = Growing()
    coverage: immutables.Map[Partition, tuple[Interval, ...]] = immutables.Map()
    last_change: int | None = None


NOTHING = Bound()


def refused(coverage: immutables.Map, run: Run, contiguous: bool) -> tuple[Reason, str] | None:
    """Why ``run`` may not be bound over ``coverage``, or ``None``."""
    intervals = coverage.get((run.topic, run.partition), ())
    if not intervals:
        return None
    end = intervals[-1][1]
    if contiguous and run.lower != end:
        return Reason.NOT_CONTIGUOUS, f"{run.topic}/{run.partition} is bound up to {end}, the run starts at {run.lower}"
    if run.lower >= end:
        return None
    found = met(intervals, run)
    return None if found is None else (Reason.OVERLAP, overlap(run, found))


def met(intervals: Sequence[Interval], run: Run) -> Interval | None:
    """The first of ``intervals``, disjoint and ascending, that has some of the offsets of ``run``."""
    at = bisect_right(intervals, (run.lower, run.lower)) - 1
    for lower, upper in intervals[max(at, 0) : at + 2]:
        if lower < run.upper and run.lower < upper:
            return lower, upper
    return None


def overlap(run: Run, found: Interval) -> str:
    """What is told of ``run`` where it was :func:`met`."""
    return f"{run.topic}/{run.partition} [{run.lower}, {run.upper}) meets [{found[0]}, {found[1]})"


def cover(coverage: immutables.Map, run: Run) -> immutables.Map:
    """``coverage`` with ``run`` added (which must not overlap it); touching intervals are merged."""
    partition = (run.topic, run.partition)
    intervals = coverage.get(partition, ())
    at = bisect_right(intervals, (run.lower, run.upper))
    before, after = at - 1, at
    lower, upper = run.lower, run.upper
    first, last = at, at
    if before >= 0 and intervals[before][1] == lower:
        lower, first = intervals[before][0], before
    if after < len(intervals) and intervals[after][0] == upper:
        upper, last = intervals[after][1], after + 1
    return coverage.set(partition, (*intervals[:first], (lower, upper), *intervals[last:]))


def bind(bound: Bound, ts: int, run: Run, coverage: immutables.Map) -> Bound:
    """``bound`` with ``run`` visible from ``ts`` on; ``coverage`` already has the run."""
    return Bound(bound.base, bound.recent.append(BoundRun(ts, run)), coverage, ts)


def carry(bound: Bound, ts: int, rows: Inline) -> Bound:
    """``bound`` with rows visible from ``ts`` on that the log carries itself, under the next running number."""
    intervals = bound.coverage.get((INLINE, 0), ())
    number = intervals[-1][1] if intervals else 0
    run = Run(INLINE, 0, number, number + 1, rows.attempt, rows.rows)
    coverage = bound.coverage.set((INLINE, 0), ((0, number + 1),))
    return Bound(bound.base, bound.recent.append(BoundRun(ts, run, rows.value)), coverage, ts)


def carried(bound: Bound) -> Iterator[BoundRun]:
    """The runs whose rows the log carries, in the order of their numbers."""
    yield from carried_for_good(bound)
    yield from (each for each in bound.recent if each.value)


def carried_for_good(bound: Bound) -> Iterator[BoundRun]:
    """Those of them that are at or below ``since``."""
    # No name of a topic is before theirs; what is retired of them has no rows here any more.
    yield from (each for each in takewhile(lambda each: each.run.topic == INLINE, bound.base) if each.value)


def move(
    bound: Bound, places: Mapping[int, Run], coverage: immutables.Map, of_base: bool = True
) -> tuple[Bound, list[BoundRun], int] | None:
    """``bound`` where the batches of those numbers are the records of those runs (one each), at the same timestamps,
    what these batches were, and how many of them, which come first, were at or below ``since``; ``None`` unless the log
    carries them all.  ``coverage`` already has the runs.
    ``of_base``: whether such may be at or below ``since`` (:data:`oracle.records.CARRIED_SEALED`).

    Writers and rows stay as the batches say: who moves them says nothing new about them.

    Costs what is moved and what came after it, not what there is: a busy table has some hundred thousand recent runs,
    of which the newest are moved several times a second, and everybody who folds waits for it.
    """
    lowest = min(places, default=0)
    found: dict[int, int] = {}
    recent = bound.recent
    for index in range(len(recent) - 1, -1, -1):
        each = recent[index]
        if each.value:
            if each.run.lower in places:
                found[index] = each.run.lower
            if each.run.lower <= lowest:
                break
    taken = [recent[index] for index in reversed(found)]
    base, settled = bound.base, 0
    if len(found) < len(places):
        old = [each for each in carried_for_good(bound) if each.run.lower in places] if of_base else []
        if len(found) + len(old) < len(places):
            return None
        gone = frozenset(each.run.lower for each in old)
        stay = [each for each in base if not each.value or each.run.lower not in gone]
        base = _merged((*stay, *(_put(each, places) for each in old)))
        taken, settled = [*old, *taken], len(old)
    recent = recent.replaced({index: _put(recent[index], places) for index in found})
    return Bound(base, recent, coverage, bound.last_change), taken, settled


def _put(carried: BoundRun, places: Mapping[int, Run]) -> BoundRun:
    run = carried.run
    return BoundRun(carried.ts, places[run.lower]._replace(attempt=run.attempt, rows=run.rows))


def retire(bound: Bound, run: Run) -> Bound | tuple[Reason, str]:
    """``bound`` where all that was bound in ``run``, at or below ``since``, is one run whose rows are in files alone;
    or why it is not.

    What was given up in between (:mod:`oracle.unbound`) is part of it, else runs with such between them would stay
    apart for ever, and each reader looks at all of them.
    """
    partition = run.topic, run.partition
    told = f"{run.topic}/{run.partition} [{run.lower}, {run.upper})"
    if not any(lower <= run.lower and run.upper <= upper for lower, upper in bound.coverage.get(partition, ())):
        return Reason.NOT_THERE, f"{told} is not all bound or given up"
    meets = [each for each in bound.base if each.run[:2] == partition and _meet(each.run, run)]
    if any(each.run[:2] == partition and _meet(each.run, run) for each in bound.recent):
        return Reason.NOT_THERE, f"some of {told} may still be told apart"
    if not meets or any(each.run.lower < run.lower or run.upper < each.run.upper for each in meets):
        return Reason.NOT_THERE, f"{told} are no whole runs"
    if any(pinned(each.run) is not None for each in meets):
        return Reason.NOT_THERE, f"{told} is of a user's topic"
    whole = Run(*partition, run.lower, run.upper, RETIRED, _rows_in(meets))
    one = BoundRun(max(each.ts for each in meets), whole)
    gone = frozenset(each.run for each in meets)
    base = sorted((one, *(each for each in bound.base if each.run not in gone)), key=lambda each: each.run[:3])
    return bound._replace(base=tuple(base))


def _meet(one: Run, other: Run) -> bool:
    return one.lower < other.upper and other.lower < one.upper


def coalesce(bound: Bound, since: int) -> Bound:
    """``bound`` with everything at or below ``since`` merged.  Reads at ``ts >= since`` do not change."""
    split = bound.recent.first_after(since, _ts_of)
    if not split:
        return bound
    base = _merged((*bound.base, *bound.recent.slice(0, split)))
    return Bound(base, Growing(bound.recent.slice(split)), bound.coverage, bound.last_change)


def _merged(runs: Iterable[BoundRun]) -> tuple[BoundRun, ...]:
    merged: list[BoundRun] = []
    for each in sorted(runs, key=lambda each: each.run[:3]):
        if merged and _adjacent(merged[-1].run, each.run):
            each = _merge(merged.pop(), each)
        merged.append(each)
    return tuple(merged)


def _adjacent(left: Run, right: Run) -> bool:
    if left.topic != right.topic or left.partition != right.partition or left.upper != right.lower:
        return False
    if left.topic == INLINE:  # their rows are theirs alone
        return False
    if RETIRED in (left.attempt, right.attempt):
        return False
    return pinned(left) == pinned(right) or not left.attempt or not right.attempt


def _merge(left: BoundRun, right: BoundRun) -> BoundRun:
    """One run for two that touch.

    Runs of different attempts merge too, and then name none: every offset between them is bound, so the attempt (which
    tells a writer's rows from a dead writer's garbage) has nothing left to decide, and a table of a million single-row
    inserts would otherwise keep a million runs for ever.  A pin stays, also beside a run that is older than pins: it is
    true of all of a source's offsets.  (No verdict looks at an attempt: releases that merge otherwise still agree.)
    """
    one, two = left.run, right.run
    rows = one.rows + two.rows if one.rows >= 0 and two.rows >= 0 else -1
    pins = {each for each in (one.attempt, two.attempt) if each.startswith(PIN)}
    attempt = one.attempt if one.attempt == two.attempt else pins.pop() if pins else ""
    run = Run(one.topic, one.partition, one.lower, two.upper, attempt, rows)
    return BoundRun(max(left.ts, right.ts), run)


def _rows_in(runs: Iterable[BoundRun]) -> int:
    """Of all of them together, -1 if any does not say."""
    counts = [each.run.rows for each in runs]
    return -1 if any(count < 0 for count in counts) else sum(counts)


class BoundRuns(NamedTuple):
    """What readers see of a collection's bindings.  ``complete`` is the newest timestamp that may be read.

    A run whose ``attempt`` is empty is not to be checked against one (a user's own topic, or merged history).
    """

    bound: Bound
    since: int
    complete: int | None = None

    def at(self, ts: int) -> tuple[BoundRun, ...]:
        """All runs visible at ``ts``.

        Raises :class:`~oracle.errors.SnapshotTooOld` below ``since``, and ``InvalidUsage`` above ``complete`` (what
        is not complete could still change under the reader, I5).
        """
        self._check(ts)
        if ts < self.since:
            raise SnapshotTooOld("snapshot too old", detail=f"asked for {ts}, the oldest that is kept is {self.since}")
        return (*self.bound.base, *self.bound.recent.slice(0, self.bound.recent.first_after(ts, _ts_of)))

    def between(self, lower_ts: int, upper_ts: int) -> tuple[BoundRun, ...]:
        """The runs with ``lower_ts <= ts < upper_ts``: the delta between two snapshots.

        ``lower_ts <= 0`` is "from the start".  Raises :class:`~oracle.errors.SnapshotTooOld` where runs that old were
        merged and some may belong to the range, ``InvalidUsage`` where ``upper_ts - 1`` is not complete.
        """
        if upper_ts <= lower_ts:
            return ()
        self._check(upper_ts - 1)
        if lower_ts <= 0:
            return self.at(upper_ts - 1)
        newest_merged = max((each.ts for each in self.bound.base), default=-1)
        if lower_ts <= newest_merged:
            raise SnapshotTooOld("snapshot too old",
                                 detail=f"changes from {lower_ts} on are merged up to {newest_merged}")  # fmt: skip
        recent = self.bound.recent
        return tuple(
            recent.slice(recent.first_at_or_after(lower_ts, _ts_of), recent.first_at_or_after(upper_ts, _ts_of))
        )

    def first_change(self, from_ts: int) -> int | None:
        """A timestamp at or after ``from_ts`` with no change in ``[from_ts, it)``; ``None`` if nothing changed since.

        It is the first change, exactly, unless that was merged: then it is ``from_ts`` itself (never later than the
        truth, so whoever takes it for the first change waits too long rather than too short).
        """
        last = self.bound.last_change
        if last is None or last < from_ts:
            return None
        if any(each.ts >= from_ts for each in self.bound.base):
            return from_ts
        at = self.bound.recent.first_at_or_after(from_ts, _ts_of)
        return self.bound.recent[at].ts

    @property
    def last_change(self) -> int | None:
        """The newest timestamp at which anything was bound, or ``None``."""
        return self.bound.last_change

    @property
    def row_count(self) -> int:
        """Rows in all runs together, -1 if any run does not say."""
        return _rows_in((*self.bound.base, *self.bound.recent))

    def pins(self) -> frozenset[str]:
        """The ids of the topics that the runs say they are of: one, or none where no run says."""
        runs = (each.run for each in (*self.bound.base, *self.bound.recent))
        return frozenset(found for run in runs if (found := pinned(run)) is not None)

    def end(self, topic: str, partition: int) -> int | None:
        """Where the bindings of a partition end: the offset at which a source goes on.  ``None`` if it has none."""
        intervals = self.bound.coverage.get((topic, partition))
        return intervals[-1][1] if intervals else None

    def ends(self) -> dict[Partition, int]:
        """:meth:`end` of every bound partition."""
        return {partition: intervals[-1][1] for partition, intervals in self.bound.coverage.items()}

    def _check(self, ts: int) -> None:
        if self.complete is not None and ts > self.complete:
            raise InvalidUsage(f"timestamp {ts} is not complete", detail=f"complete up to {self.complete}")
