"""The demo's own checks: that they accept what is right, and above all that they refuse what is wrong."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest

from demo import flights as data
from demo.corrections import after, needed
from demo.views import (
    differences,
    expected_carriers,
    expected_corrected,
    expected_groups,
    expected_makers,
    expected_route_days,
    mean_is_exact,
)
from demo.watch import judge

YEAR = 336_776


DONE = 20
"""Transactions of the desk, which need 800 flights."""


def answer(visible: int, done: int = DONE) -> list[tuple]:
    """A right answer to the frame query over the first ``visible`` flights, as psycopg gives it."""
    carriers = expected_carriers(visible)
    rows: list[tuple] = [
        ("carrier", key, name, flights, arrived, total, total / arrived if arrived else None)
        for (key, name), (flights, arrived, total) in carriers.items()
    ]
    sums = [sum(row[i] or 0 for row in carriers.values()) for i in range(3)]
    rows.append(("routes", None, str(expected_groups(visible)), *map(Decimal, sums), None))
    rows.append(("source", None, None, *sums, None))
    rows += [("corrected", *key, *map(Decimal, row), None) for key, row in expected_corrected(carriers, done).items()]
    corrected = [each.corrected for each in after(done).values() if each.corrected is not None]
    rows.append(
        ("corrections", None, None, len(after(done)), len(corrected), sum(corrected) if corrected else None, None)
    )
    rows.append(("desk", None, None, done, None, None, None))
    return rows


def judged(rows: list[tuple], over: int = DONE, begun: int = DONE) -> list[str]:
    return judge(rows, 0.1, over, begun).wrong


@pytest.mark.parametrize(("visible", "done"), [(0, 0), (1, 0), (1000, 20), (50_001, 205)])
def test_a_right_answer_is_accepted(visible: int, done: int) -> None:
    frame = judge(answer(visible, done), 0.1, done, done + 1)
    assert frame.wrong == []
    assert (frame.visible, frame.done) == (visible, done)


def spoil(rows: list[tuple], part: str, column: int, change) -> list[tuple]:
    at = next(i for i, row in enumerate(rows) if row[0] == part)
    row = list(rows[at])
    row[column] = change(row[column])
    return [*rows[:at], tuple(row), *rows[at + 1 :]]


@pytest.mark.parametrize(
    ("part", "column", "change"),
    [
        ("carrier", 3, lambda n: n + 1), ("carrier", 4, lambda n: n - 1), ("carrier", 5, lambda n: n + 1),
        ("carrier", 6, lambda mean: np.nextafter(mean, np.inf)), ("carrier", 6, lambda _mean: None),
        ("carrier", 2, lambda _name: "Somebody Else's Airline"), ("routes", 2, lambda n: str(int(n) - 1)),
        ("routes", 3, lambda n: n - 1), ("routes", 5, lambda n: n + 1), ("source", 3, lambda n: n + 1),
        ("corrected", 3, lambda n: n - 1), ("corrected", 4, lambda n: n + 1), ("corrected", 5, lambda n: n + 1),
        ("corrections", 3, lambda n: n + 1), ("corrections", 4, lambda n: n - 1), ("corrections", 5, lambda n: n + 1),
        ("desk", 3, lambda n: n - 1), ("desk", 3, lambda n: n + 1),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_refused(part: str, column: int, change) -> None:
    assert judged(spoil(answer(1000), part, column, change), over=0, begun=100)


def test_views_at_two_timestamps_are_refused() -> None:
    """Each part is right for some prefix, but not all for the same one (I9)."""
    early, late = answer(1000), answer(1001)
    for part in ("carrier", "routes", "corrected"):
        assert judged([row for row in early if row[0] != part] + [row for row in late if row[0] == part])
    corrected = answer(1000, DONE + 1)
    for part in ("corrected", "corrections", "desk"):
        mixed = [row for row in early if row[0] != part] + [row for row in corrected if row[0] == part]
        assert judged(mixed, 0, 100), part


def test_corrections_that_were_acknowledged_are_seen_and_none_that_nobody_made() -> None:
    assert not judged(answer(1000), DONE, DONE)
    assert judged(answer(1000), DONE + 1, DONE + 1) and judged(answer(1000), DONE - 1, DONE - 1)


def test_no_flight_is_corrected_before_it_is_there() -> None:
    assert max(after(DONE)) < needed(DONE - 1) <= 1000
    assert judged(answer(max(after(DONE))))


@pytest.mark.parametrize("done", [1, 5, 24, 250])
def test_what_the_desk_leaves_follows_from_its_number(done: int) -> None:
    """One step after the other, as it is reached from states that are kept."""
    assert after(done) != after(done - 1)
    assert all(each < needed(done - 1) for each in after(done))
    assert {each.cancelled for each in after(250).values()} == {False, True}
    assert max(each.revision for each in after(250).values()) > 3


def test_a_carrier_twice_or_missing_is_refused() -> None:
    rows = answer(1000)
    assert judged([rows[0], *rows])
    assert judged(rows[1:])
    corrected = next(row for row in rows if row[0] == "corrected")
    assert judged([corrected, *rows])
    assert judged([row for row in rows if row is not corrected])


def test_groups_agree_with_the_whole_computation() -> None:
    for visible in (0, 1, 999, YEAR, YEAR + 7, 3 * YEAR):
        assert expected_groups(visible) == len(expected_route_days(visible))


def test_a_second_pass_doubles_everything() -> None:
    once, twice = expected_carriers(YEAR), expected_carriers(2 * YEAR)
    assert sum(row[0] for row in once.values()) == YEAR
    assert {k: tuple(2 * n for n in row) for k, row in once.items()} == twice
    makers = expected_makers(2 * YEAR)
    assert makers == [(name, 2 * count, 2 * seats) for name, count, seats in expected_makers(YEAR)]


def test_a_place_in_the_topic_says_which_flight_it_is() -> None:
    assert data.value_at(5) == data.value_at(5 + YEAR)
    row = json.loads(data.value_at(5))
    assert list(row) == list(data.COLUMNS)
    assert all(value is None or isinstance(value, int | str) for value in row.values())


def test_unknown_values_are_null() -> None:
    cancelled = int(np.flatnonzero(data.flights()["dep_time"].isna().to_numpy())[0])
    row = json.loads(data.value_at(cancelled))
    assert row["dep_time"] is None and row["arr_delay"] is None


@pytest.mark.parametrize(
    ("mean", "arrived", "total", "exact"),
    [
        (0.1, 10, 1, True), (0.10000000000000002, 10, 1, False), (None, 0, None, True),
        (None, 10, 1, False), (0.0, 0, None, False), (Decimal("0.333"), 3, 1, True), (Decimal("0.334"), 3, 1, False),
    ],
)  # fmt: skip
def test_means(mean: object, arrived: int, total: int | None, exact: bool) -> None:
    assert mean_is_exact(mean, arrived, total) is exact


def test_differences_name_what_is_wrong() -> None:
    expected = {("a",): (2, 1, 5), ("b",): (1, 0, None)}
    assert differences({("a",): (2, 1, 5, 5.0), ("b",): (1, 0, None, None)}, expected) == []
    found = differences({("a",): (2, 1, 6, 6.0), ("c",): (1, 1, 1, 1.0)}, expected)
    assert len(found) == 3
