"""What of a collection's bound rows is not in files: the runs that are still read where they were written.  Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from collection.binding import BoundRun, Run
from oracle.bindings import Interval
from segments.fold import Sealed


def unsealed(bound: Iterable[BoundRun], sealed: Sealed) -> Iterator[BoundRun]:
    """``bound`` without the offsets that ``sealed`` has, in the same order.

    What is left of a run that is sealed in part does not say how many rows it has.
    """
    for each in bound:
        intervals = sealed.coverage.get(each.run[:2], ())
        yield from _without(each, intervals) if intervals else (each,)


def _without(bound: BoundRun, intervals: Sequence[Interval]) -> Iterator[BoundRun]:
    run, start = bound.run, bound.run.lower
    first = bisect_right(intervals, start, key=lambda interval: interval[1])  # there may be as many as there are runs
    for at in range(first, len(intervals)):
        lower, upper = intervals[at]
        if lower >= run.upper:
            break
        if lower > start:
            yield bound._replace(run=_part(run, start, lower))
        start = upper
    if start < run.upper:
        yield bound._replace(run=_part(run, start, run.upper))


def _part(run: Run, lower: int, upper: int) -> Run:
    return run if (lower, upper) == (run.lower, run.upper) else run._replace(lower=lower, upper=upper, rows=-1)
