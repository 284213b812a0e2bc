"""Bindings of one collection: reads, deltas, merging below since."""

import random

import pytest

from journal.errors import InvalidUsage
from oracle.bindings import NOTHING, BoundRuns, bind, coalesce, cover, refused
from oracle.errors import SnapshotTooOld
from oracle.growing import Growing
from tests.oracle.oracle_logs import run


def bound_of(*runs):
    bound = NOTHING
    for ts, each in runs:
        assert refused(bound.coverage, each, False) is None
        bound = bind(bound, ts, each, cover(bound.coverage, each))
    return bound


def offsets(bound_runs):
    return {(r.topic, r.partition, o) for _, r, _ in bound_runs for o in range(r.lower, r.upper)}


def test_reads_see_what_was_bound_at_or_before():
    runs = BoundRuns(bound_of((5, run("a", 0, 2)), (7, run("a", 2, 3)), (9, run("a", 3, 4))), 0, 20)
    assert [b.ts for b in runs.at(6)] == [5]
    assert [b.ts for b in runs.at(7)] == [5, 7]
    assert [b.ts for b in runs.between(7, 9)] == [7]
    assert [b.ts for b in runs.between(8, 21)] == [9]
    assert runs.between(8, 8) == () and runs.between(9, 8) == ()
    assert runs.last_change == 9
    assert [runs.first_change(ts) for ts in (0, 5, 6, 9, 10)] == [5, 5, 7, 9, None]


def test_what_is_not_complete_is_not_readable():
    runs = BoundRuns(bound_of((5, run("a", 0, 2))), 0, 5)
    with pytest.raises(InvalidUsage):
        runs.at(6)
    with pytest.raises(InvalidUsage):
        runs.between(0, 7)
    assert len(runs.between(0, 6)) == 1


def test_merging_keeps_reads_and_bounds_memory():
    bound = bound_of(*((i, run("a", i, i + 1, attempt=f"x{i}")) for i in range(1000)))
    merged = coalesce(bound, 899)
    assert len(merged.base) == 1
    assert merged.base[0].run == run("a", 0, 900, attempt="")
    assert len(merged.recent) == 100
    runs = BoundRuns(merged, 899, 999)
    assert offsets(runs.at(950)) == {("t.data.a", 0, o) for o in range(951)}
    assert len(runs.between(900, 951)) == 51
    with pytest.raises(SnapshotTooOld):
        runs.at(898)
    with pytest.raises(SnapshotTooOld):
        runs.between(899, 951)
    assert runs.first_change(500) == 500, "merged: never later than the truth"
    assert runs.first_change(900) == 900
    assert coalesce(merged, 899) is merged


def test_gaps_partitions_and_topics_stay_apart():
    bound = bound_of((1, run("a", 0, 2)), (2, run("a", 3, 4)), (3, run("b", 2, 3)), (4, run("a", 2, 3, partition=1)))
    assert len(coalesce(bound, 9).base) == 4


def test_an_unknown_row_count_stays_unknown():
    bound = bound_of((1, run("a", 0, 2)), (2, run("a", 2, 4)._replace(rows=-1)))
    assert BoundRuns(bound, 0).row_count == -1
    assert BoundRuns(coalesce(bound, 5), 5).row_count == -1


@pytest.mark.parametrize("seed", range(20))
def test_coverage_is_the_set_of_bound_offsets(seed):
    rng = random.Random(seed)
    coverage = NOTHING.coverage
    bound = set()
    for _ in range(120):
        lower = rng.randrange(60)
        each = run("a", lower, lower + rng.randint(1, 4))
        wanted = set(range(each.lower, each.upper))
        if refused(coverage, each, False):
            assert wanted & bound
            continue
        assert not wanted & bound
        bound |= wanted
        coverage = cover(coverage, each)
        intervals = coverage["t.data.a", 0]
        assert {o for lower, upper in intervals for o in range(lower, upper)} == bound
        assert all(left[1] < right[0] for left, right in zip(intervals, intervals[1:], strict=False))


def test_versions_of_a_sequence_do_not_disturb_each_other():
    one = Growing([1, 2])
    left, right = one.append(3), one.append(4)
    assert (list(one), list(left), list(right)) == ([1, 2], [1, 2, 3], [1, 2, 4])
    assert list(left.append(5)) == [1, 2, 3, 5] and list(left) == [1, 2, 3]
    assert left == Growing([1, 2, 3]) and left != right
    assert left[-1] == 3 and left.slice(1) == [2, 3] and left.slice(0, 99) == [1, 2, 3]
    with pytest.raises(IndexError):
        one[2]
