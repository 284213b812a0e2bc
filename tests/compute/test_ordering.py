"""Which views go first."""

from __future__ import annotations

import pytest

from controllers.compute.ordering import first_of, levels, some_first

READS = {"u4": ["u1"], "u5": ["u4"], "u6": ["u1"], "u7": ["u5", "u6"], "u8": ["u1"]}
"""u1 is a table."""


def test_each_view_stands_in_a_level_above_what_it_reads():
    assert levels(READS) == [["u4", "u6", "u8"], ["u5"], ["u7"]]


@pytest.mark.parametrize("held, new_max, first", [
    ([], 9, ["u4", "u6", "u8", "u5", "u7"]),
    ([], 1, ["u4"]),
    ([], 2, ["u4", "u6"]),
    (["u8"], 1, ["u4", "u8"]),
    (["u5", "u8"], 0, ["u8"]),
    (["u4", "u5", "u7", "u8"], 0, ["u4", "u8", "u5"]),
    (["u4", "u6", "u8"], 1, ["u4", "u6", "u8", "u5"]),
])  # fmt: skip
def test_what_is_held_goes_with_as_many_others_as_may_and_nobody_before_what_it_reads(held, new_max, first):
    assert some_first(READS, held, new_max) == first


@pytest.mark.parametrize("held, new_max, awaited, first", [
    ([], 1, ["u8"], ["u8"]),
    ([], 2, ["u5"], ["u4", "u5"]),  # what it reads goes before it
    ([], 1, ["u7"], ["u4"]),
    ([], 3, ["u5", "u1", "gone"], ["u4", "u5", "u6"]),  # a table needs no turn; then the others as ever
    (["u4"], 1, ["u7"], ["u4", "u6"]),
    (["u8"], 1, ["u6"], ["u6", "u8"]),
])  # fmt: skip
def test_what_somebody_waits_for_goes_first_with_what_it_reads(held, new_max, awaited, first):
    assert some_first(READS, held, new_max, awaited) == first


def test_everything_has_had_its_turn_after_as_many_steps_as_it_takes():
    held, left, steps = set(), dict(READS), 0
    while left:
        now = some_first(left, held, 2)
        held |= set(now)
        left = {view: reads for view, reads in left.items() if view not in now}
        steps += 1
    assert steps == 3


@pytest.mark.parametrize("some, prime, awaited, first", [
    (["u7", "u8"], [], [], "u8"),
    (["u5", "u4", "u8"], [], [], "u4"),
    (["u4", "u6", "u8"], [], ["u8"], "u8"),
    (["u4", "u6", "u7"], [], ["u7"], "u4"),
    (["u6", "u8", "u7"], [], ["u5", "gone"], "u6"),
    (["u4", "u6", "u8"], ["u8"], ["u6"], "u8"),
    (["u4", "u6", "u8"], ["u6", "u8"], ["u8"], "u8"),
    (["u4", "u5", "u8"], ["u5"], ["u8"], "u4"),  # what it reads is none, and goes before it all the same
    (["u4", "u8"], ["u6"], ["u8"], "u8"),
])  # fmt: skip
def test_where_only_one_may_go_it_is_what_was_there_or_is_waited_for_or_what_that_reads(some, prime, awaited, first):
    assert first_of(READS, some, prime, awaited) == first
