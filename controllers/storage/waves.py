"""What of a source's topic executors judge at a time, and what is bound of it.  Pure.

A *wave* is a number of ranges, each for a task.  What is bound of it are, of each partition, the first of its ranges as
far as they were judged: bindings are contiguous, and what is behind a gap is judged again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collection.binding import Run
from collection.error_rows import ErrorRow
from controllers.judging import RUNS_MAX, Range, Verdict
from controllers.storage.remap import Prepared

RANGE_RECORDS = 200_000
"""Of one task: half a second of judging, thrice what a task takes to begin."""

RANGES = 20
"""Of one wave, which is one commit: four million records at most, ten seconds of one executor.  Whoever reads the
source has as much to take in at once, and reads it by tasks as well (``controllers.compute.intake``)."""

FIRST_RECORDS = RANGE_RECORDS // 8
"""Of one task of a source that is copied, at first: what is behind where a task must stop, since its rows are long,
was written for nothing."""

LEAST_RECORDS = RANGE_RECORDS // 40
"""Of one task, however early the last ones stopped."""

BACKLOG_RECORDS = 2_000_000
"""From which on executors are asked: what this process judges itself in five to ten seconds, and the least that keeps
ten tasks busy."""

LITTLE = 10
"""What is less than one such part of a range costs a task more to begin with than to judge: of a thousand partitions
with ten records each this process has read all in less time."""

POOR = 4
"""A wave of which less than one such part could be bound was not worth its while: many records are no rows, and what is
told of them is bounded.  That is done here for a time."""


def behind(positions: Mapping[int, int], ends: Mapping[int, int]) -> int:
    """Offsets that are to be judged."""
    return sum(max(0, ends.get(partition, 0) - at) for partition, at in positions.items())


def wave(positions: Mapping[int, int], ends: Mapping[int, int], records: int, at_once: int) -> list[Range]:
    """From ``positions`` on and below ``ends``, at most about ``records`` offsets, ``at_once`` of them in a range, of
    whatever partition is furthest behind.  Those of one partition are in order and without a gap; what is little is
    left out."""
    found: list[Range] = []
    left = {partition: ends.get(partition, 0) - at for partition, at in positions.items()}
    while left and records > 0:
        partition, most = max(left.items(), key=lambda each: (each[1], -each[0]))
        if most < max(1, at_once // LITTLE):
            break
        upper = ends[partition] - most + min(most, at_once)
        found.append(Range(partition, ends[partition] - most, upper))
        left[partition] -= min(most, at_once)
        records -= min(most, at_once)
    return found


def taken(
    topic: str, positions: Mapping[int, int], ranges: Sequence[Range], verdicts: Sequence[Verdict], topic_pin: str
) -> Prepared:
    """What is to be bound of ``verdicts``, one of each of ``ranges``, which were a :func:`wave` of ``positions``."""
    after = dict(positions)
    good: dict[int, int] = {}
    bad: list[ErrorRow] = []
    written: list[Run] = []
    for asked, verdict in zip(ranges, verdicts, strict=True):
        partition = asked.partition
        if after[partition] != asked.lower or verdict.upper == asked.lower:
            continue  # the one before it was not judged to its end, or it was not judged at all
        if len(written) + len(verdict.runs) > RUNS_MAX:
            continue
        after[partition] = verdict.upper
        good[partition] = good.get(partition, 0) + verdict.good
        bad += verdict.bad
        written += verdict.runs
    runs = tuple(
        Run(topic, partition, positions[partition], after[partition], topic_pin, rows)
        for partition, rows in sorted(good.items())
    )
    return Prepared(runs, tuple(bad), sum(good.values()), after, tuple(written))


def next_records(at_once: int, ranges: Sequence[Range], verdicts: Sequence[Verdict]) -> int:
    """Of a range of the next wave, after one of ``at_once``: as many as tasks came to where some stopped early,
    otherwise twice as many as before."""
    came = [
        verdict.upper - asked.lower
        for asked, verdict in zip(ranges, verdicts, strict=True) if verdict.upper < asked.upper
    ]  # fmt: skip
    if came:
        return max(sum(came) // len(came), LEAST_RECORDS)
    return min(2 * at_once, RANGE_RECORDS)


def is_poor(ranges: Sequence[Range], prepared: Prepared) -> bool:
    """Whether too little of the wave could be bound."""
    bound = sum(run.upper - run.lower for run in prepared.runs)
    return POOR * bound < sum(each.upper - each.lower for each in ranges)
