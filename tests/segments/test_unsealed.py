"""What is still read where it was written: everything that is in no file, and nothing else."""

from __future__ import annotations

import random

import immutables

from collection.binding import INLINE, BoundRun, Run
from oracle.bindings import cover
from segments.fold import Sealed
from segments.unsealed import unsealed


def sealed(*runs: Run) -> Sealed:
    coverage = immutables.Map()
    for each in runs:
        coverage = cover(coverage, each)
    return Sealed(coverage=coverage)


def test_runs_without_sealed_offsets_stay_as_they_are() -> None:
    runs = [BoundRun(1, Run("t", 0, 0, 5, "a", 9)), BoundRun(2, Run("t", 1, 0, 5, "b", 9))]
    assert list(unsealed(runs, sealed(Run("t", 0, 5, 7), Run("x", 0, 0, 9)))) == runs


def test_a_run_that_is_sealed_in_part_does_not_say_its_rows() -> None:
    [left, right] = unsealed([BoundRun(1, Run("t", 0, 0, 9, "a", 90))], sealed(Run("t", 0, 2, 4)))
    assert left == BoundRun(1, Run("t", 0, 0, 2, "a", -1)) and right == BoundRun(1, Run("t", 0, 4, 9, "a", -1))


def test_rows_that_the_log_carries_are_in_no_file() -> None:
    carried = BoundRun(1, Run(INLINE, 0, 0, 1, "a", 1), b"rows")
    assert list(unsealed([carried], sealed(Run(INLINE or "t", 0, 0, 1)) if INLINE else Sealed())) == [carried]


def test_random_runs_are_split_to_the_offset() -> None:
    rng = random.Random(3)
    for _ in range(500):
        coverage, hidden = immutables.Map(), set()
        for _ in range(rng.randint(0, 5)):
            lower = rng.randint(0, 40)
            run = Run("t", 0, lower, lower + rng.randint(1, 8))
            if not hidden & set(range(run.lower, run.upper)):
                coverage = cover(coverage, run)
                hidden |= set(range(run.lower, run.upper))
        runs, at = [], 0
        while at < 40:
            lower = at + rng.randint(0, 3)
            at = lower + rng.randint(1, 12)
            runs.append(BoundRun(at, Run("t", 0, lower, at)))
        found = list(unsealed(runs, Sealed(coverage=coverage)))
        offsets = [(each.ts, o) for each in found for o in range(each.run.lower, each.run.upper)]
        assert offsets == [(e.ts, o) for e in runs for o in range(e.run.lower, e.run.upper) if o not in hidden]
        assert all(each.run.upper > each.run.lower for each in found)
