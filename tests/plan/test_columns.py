"""Columns by places: whose they are, and where they go when a scalar is said elsewhere."""

from __future__ import annotations

from plan.calls import call
from plan.columns import moved, outer_columns, over, own_columns, placed
from plan.relations import UNIT, Filter, Get, Join, Kind, Project
from plan.scalars import Column, exists, number, scalar_query
from plan.types import INT4, TEXT

T = Get("u1", ("a", "b"), (Kind(INT4, True), Kind(TEXT, True)))


def column(position: int, level: int = 0) -> Column:
    return Column(INT4, True, position, level)


def asked(*levels: int):
    """Whether there is a row of ``T`` whose first column is the first one of each of these levels, seen from there."""
    found = T
    for level in levels:
        found = Filter(found, call("=", column(0), column(0, level)))
    return exists(found)


def test_a_subquery_names_the_row_around_it_one_level_out():
    assert list(own_columns(asked(1))) == [0]
    assert list(own_columns(asked(0, 2))) == []
    assert [each.level for each in outer_columns(asked(1, 2).relation)] == [2, 1]


def test_the_right_side_of_a_lateral_join_sees_the_left_one():
    right = Project(UNIT, (call("+", column(1, 1), column(0, 2)),))
    joined = Join("cross", T, right, None, True)
    assert [(each.position, each.level) for each in outer_columns(joined)] == [(0, 1)]
    assert [(each.position, each.level) for each in outer_columns(right)] == [(0, 2), (1, 1)]


def test_a_scalar_is_worked_out_of_other_values():
    values = (number(7), column(3))
    assert over(call("+", column(0), column(1)), values) == call("+", number(7), column(3))
    inside = over(scalar_query(Project(T, (column(1, 1),))), values)
    assert inside == scalar_query(Project(T, (column(3, 1),)))
    assert over(column(0, 1), values) == column(0, 1)


def test_a_scalar_goes_further_in_with_what_it_names():
    assert moved(call("+", column(0), column(1, 1)), 2) == call("+", column(0, 2), column(1, 3))
    assert moved(asked(0, 1, 2), 1) == asked(0, 2, 3)


def test_columns_change_places_in_subqueries_too():
    assert placed(call("+", column(2), scalar_query(Project(T, (column(2, 1),)))), lambda place: place - 1) == call(
        "+", column(1), scalar_query(Project(T, (column(1, 1),)))
    )
