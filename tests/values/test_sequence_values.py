"""The values of a sequence: taken in reserves of whatever size, they are those that come one by one."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as some

from values.numeric.sequence_values import Position, Steps, count_of, taken


def one_by_one(steps: Steps, at: Position, count: int) -> list[int]:
    """What PostgreSQL's nextval gives, said the long way."""
    found: list[int] = []
    last, was_given = at.last, at.given
    for _ in range(count):
        value = last + steps.increment if was_given else last
        if not steps.lowest <= value <= steps.highest:
            if not steps.cycle:
                break
            value = steps.lowest if steps.increment > 0 else steps.highest
        found.append(value)
        last, was_given = value, True
    return found


@some.composite
def sequences(draw):
    lowest = draw(some.integers(-20, 20))
    highest = draw(some.integers(lowest + 1, lowest + 30))
    increment = draw(some.integers(-9, 9).filter(bool))
    start = draw(some.integers(lowest, highest))
    return Steps(increment, lowest, highest, draw(some.booleans())), Position(start, draw(some.booleans()))


@given(sequences(), some.lists(some.integers(0, 40), max_size=6))
def test_reserves_of_any_size_are_the_values_that_come_one_by_one(sequence, sizes) -> None:
    steps, at = sequence
    expected = one_by_one(steps, at, sum(sizes))
    found: list[int] = []
    for size in sizes:
        runs, at = taken(steps, at, size)
        assert count_of(runs) <= size and all(runs)
        found += chain.from_iterable(runs)
    assert found == expected
    assert all(map(steps.holds, found))


@given(sequences(), some.integers(1, 200))
def test_without_a_cycle_no_value_comes_twice_and_what_is_missing_is_not_there(sequence, count) -> None:
    steps, at = sequence
    runs, behind = taken(Steps(steps.increment, steps.lowest, steps.highest), at, count)
    values = list(chain.from_iterable(runs))
    assert len(set(values)) == len(values)
    if len(values) < count:
        assert taken(Steps(steps.increment, steps.lowest, steps.highest), behind, 1) == ((), behind)


@given(some.integers(), some.booleans(), some.integers(0))
def test_a_position_comes_back_from_its_text(last, was_given, times) -> None:
    at = Position(last, was_given, times)
    assert Position.of_text(at.text()) == at


@pytest.mark.parametrize("text", ["", "1", "1 1", "1 1 1 1", "a 1 1", "1  1"])
def test_what_is_no_position_is_refused(text) -> None:
    with pytest.raises(ValueError):
        Position.of_text(text)


def test_to_be_put_somewhere_ends_the_reserves_of_before() -> None:
    at = Position(5, True, 2)
    assert at.put(1, False) == Position(1, False, 3) and at.put(5, True) != at


def test_the_largest_of_all_is_a_value_and_nothing_comes_behind_it() -> None:
    steps = Steps(7, 1, (1 << 63) - 1)
    runs, at = taken(steps, Position((1 << 63) - 3), 3)
    assert [list(run) for run in runs] == [[(1 << 63) - 3]]
    assert taken(steps, at, 1)[0] == ()
