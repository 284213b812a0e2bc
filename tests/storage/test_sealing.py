"""What is to be sealed, merged and cut."""

from __future__ import annotations

import random

import immutables
import pytest

from collection.binding import BoundRun, Inline, Run
from controllers.storage.sealing import (
    FILE_ROWS,
    MERGED_BYTES,
    MERGED_LOADED,
    RECORD_ROWS,
    Shape,
    cut_below,
    cuts,
    needed,
    old,
    parts_of,
    rows,
    taken,
    to_merge,
    to_rewrite,
    total,
)
from oracle.bindings import NOTHING, Bound, bind, carry, coalesce, cover
from segments.fold import Sealed
from segments.model import Segment

BATCHES, OBJECTS = Shape(True), Shape(False)


def bound(*runs: tuple[int, int, int], since: int = 0) -> Bound:
    """Of ``(ts, lower, upper)``."""
    found = NOTHING
    for ts, lower, upper in runs:
        run = Run("t", 0, lower, upper, f"a{lower}", upper - lower)
        found = bind(found, ts, run, cover(found.coverage, run))
    return coalesce(found, since)


def sealed(*intervals: tuple[int, int], files: tuple[Segment, ...] = ()) -> Sealed:
    coverage = immutables.Map()
    for lower, upper in intervals:
        coverage = cover(coverage, Run("t", 0, lower, upper))
    return Sealed(0, coverage, files)


def file(changes: int, net: int | None = None, size: int = 1, loaded: int = 1) -> Segment:
    net = changes if net is None else net
    return Segment("p", size, loaded, changes, net, net == changes, 0)


def test_only_what_is_old_and_on_a_topic_is_to_be_sealed() -> None:
    found = carry(bound((1, 0, 3), (5, 3, 4), (9, 4, 6), since=1), 9, Inline("u1", b"rows", "a", 1))
    assert [each.run[2:4] for each in old(found, sealed(), 5)] == [(0, 3), (3, 4)]
    assert [each.run[2:4] for each in old(found, sealed((0, 2)), 9)] == [(2, 3), (3, 4), (4, 6)]
    assert old(found, sealed((0, 3)), 1) == []


def test_a_record_counts_for_some_rows_at_least() -> None:
    assert rows(Run("t", 0, 0, 4, "a", 1_000), BATCHES) == 1_000
    assert rows(Run("t", 0, 0, 4, "a", 4), BATCHES) == rows(Run("t", 0, 0, 4), BATCHES) == 4 * RECORD_ROWS
    assert rows(Run("t", 0, 0, 4), OBJECTS) == 4


def test_what_is_too_much_at_once_is_taken_in_parts() -> None:
    runs = [BoundRun(1, Run("t", 0, 0, 100)), BoundRun(1, Run("t", 1, 0, 50))]
    assert taken(runs, OBJECTS, 1_000) == runs
    assert [each.run[1:4] for each in taken(runs, OBJECTS, 120)] == [(0, 0, 100), (1, 0, 20)]
    assert [each.run[1:4] for each in taken(runs, OBJECTS, 30)] == [(0, 0, 30)]
    assert [each.run[1:4] for each in taken([BoundRun(1, Run("t", 0, 5, 6, "", 10**6))], BATCHES, 30)] == [(0, 5, 6)]
    assert total(taken(runs, OBJECTS, 100), OBJECTS) == 100


def test_neighbours_merge_until_each_is_four_times_the_next() -> None:
    assert to_merge([]) is None and to_merge([file(9)]) is None
    assert to_merge([file(100), file(25)]) is None
    assert to_merge([file(99), file(25)]) == (file(99), file(25))
    assert to_merge([file(3), file(3), file(1)]) == (file(3), file(1))
    assert to_merge([file(FILE_ROWS), file(FILE_ROWS)]) is None, "what is full stays"
    assert to_merge([file(3, size=MERGED_BYTES), file(3)]) is None
    assert to_merge([file(3, loaded=MERGED_LOADED), file(3)]) is None, "however little room it takes in the store"


def test_each_part_that_is_in_memory_is_of_bounded_rows_and_bytes() -> None:
    assert parts_of([file(FILE_ROWS)]) == 1 and parts_of([file(FILE_ROWS), file(1)]) == 2
    assert parts_of([file(3, loaded=MERGED_LOADED), file(3)]) == 2


def test_files_are_written_anew_where_half_of_them_cancels_out() -> None:
    assert not to_rewrite(sealed(files=(file(1_000),)), 10)
    assert not to_rewrite(sealed(files=(file(1_000), file(210, -210))), 10)
    assert to_rewrite(sealed(files=(file(1_000), file(1_000, -400))), 10)
    assert to_rewrite(sealed(files=(file(100, 0), file(100, 0))), 10), "also where nothing is left"


@pytest.mark.parametrize(
    ("runs", "files", "with_garbage", "without"),
    [
        ([], [], 0, 0),
        ([(0, 9)], [], 0, 0),
        ([(0, 9)], [(0, 4)], 4, 4),
        ([(0, 9)], [(0, 9)], 9, 9),
        ([(0, 9)], [(4, 9)], 0, 0),
        ([(0, 5), (7, 9), (12, 20)], [(0, 5), (12, 20)], 7, 5),
        ([(0, 5), (7, 9), (12, 20)], [(0, 5), (7, 9), (12, 15)], 15, 5),
        ([(3, 9)], [(3, 9)], 9, 0),
        ([(3, 9)], [], 3, 0),
    ],
)
def test_nothing_that_somebody_needs_is_cut(
    runs: list[tuple[int, int]], files: list[tuple[int, int]], with_garbage: int, without: int
) -> None:
    found = bound(*((1, *each) for each in runs), since=1)
    lowest = needed(found, sealed(*files), "t")
    assert cut_below(found, lowest, ("t", 0), True) == with_garbage
    assert cut_below(found, lowest, ("t", 0), False) == without
    assert cut_below(found, lowest, ("another", 0), True) == 0
    assert cuts(found, sealed(*files), "t", True) == ({0: with_garbage} if with_garbage else {})
    assert cuts(found, sealed(*files), "another", True) == {}


def test_each_partition_is_cut_by_itself() -> None:
    found, files = NOTHING, immutables.Map()
    for partition, through in enumerate((0, 4, 9)):
        run = Run("t", partition, 0, 9, "a", 9)
        found = bind(found, 1, run, cover(found.coverage, run))
        files = cover(files, run._replace(upper=through)) if through else files
    other = Run("tt", 7, 0, 9, "a", 9)
    found = bind(found, 1, other, cover(found.coverage, other))
    assert cuts(coalesce(found, 1), Sealed(0, cover(files, other), ()), "t", False) == {1: 4, 2: 9}


def test_random_topics_are_cut_below_what_is_bound_and_in_no_file() -> None:
    rng = random.Random(5)
    for _ in range(1_000):
        runs, at = [], 0
        for _ in range(rng.randint(1, 5)):
            at += rng.choice((0, 0, 1, 3))
            upper = at + rng.randint(1, 5)
            runs.append((at, upper))
            at = upper
        there = {o for lower, upper in runs for o in range(lower, upper)}
        files = sorted(rng.sample(sorted(there), rng.randint(0, len(there))))
        found = bound(*((1, *each) for each in runs), since=1)
        kept = sealed(*((o, o + 1) for o in files))
        wanted, lowest = there - set(files), needed(found, kept, "t")
        for garbage in (True, False):
            cut = cut_below(found, lowest, ("t", 0), garbage)
            assert not any(o < cut for o in wanted)
            if not garbage:
                assert set(range(cut)) <= there
        assert cut_below(found, lowest, ("t", 0), True) == min(wanted, default=max(there) + 1)
