"""Joins by what subqueries say of both sides' rows, as filters over joins; by values asked of one side's, as columns
of it.  Pure.

Promises: the same rows.  ``a JOIN b ON a.k = b.k AND EXISTS (… a.k + b.v …)`` is ``(a JOIN b ON a.k = b.k) WHERE EXISTS
(… a.k + b.v …)``, and in ``a LEFT JOIN b ON b.k = (SELECT … a.v …)`` the subquery is a column of ``a``.  Spark takes
subqueries in a join's condition only as predicates, and of one side (4.1).  Outer joins by what a subquery says of both
stay what they are, and Spark refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plan import relations as r
from plan import scalars as s
from plan.columns import names_outside, own_columns, placed
from plan.equal import conjunction, conjuncts
from plan.nodes import Node, walk


def joined_by(node: Node) -> Node:
    """``node``, and all in it, with no subqueries in the conditions of its joins that need not be there."""
    found = node.with_parts(joined_by)
    if not isinstance(found, r.Join) or found.condition is None or not _asks(found.condition):
        return found
    return _filtered(found) if found.kind == "inner" else _of_sides(found)


def _filtered(found: r.Join) -> r.Relation:
    parts = list(conjuncts(found.condition))
    plain = [each for each in parts if not _asks(each)]
    asking = [each for each in parts if _asks(each)]
    return r.Filter(replace(found, condition=conjunction(plain or [s.truth(True)])), conjunction(asking))


def _of_sides(found: r.Join) -> r.Relation:
    """The values that are asked of a side come behind its own columns."""
    width, whole = len(found.left.columns), len(found.columns)
    of_left: list[s.Scalar] = []
    of_right: list[s.Scalar] = []
    columns: dict[s.Scalar, int] = {}
    """Of both, as places behind all columns; where they really are is known once all are found."""

    def below(part: Node) -> Node:
        if not isinstance(part, s.ScalarQuery):
            return part if isinstance(part, r.Relation) else part.with_parts(below)
        places = set(own_columns(part))
        if not places and not names_outside(part) or min(places, default=0) < width <= max(places, default=0):
            return part  # asked once, or of both
        if part not in columns:
            columns[part] = whole + len(columns)
            side = of_left if max(places, default=0) < width else of_right
            side.append(part)
        return s.Column(part.type, part.nullable, columns[part])

    condition = below(found.condition)
    if not columns:
        return found
    made = whole + len(of_left)
    moved_to = {columns[each]: width + at for at, each in enumerate(of_left)}
    moved_to |= {columns[each]: made + at for at, each in enumerate(of_right)}
    moved_to |= {place: place + len(of_left) for place in range(width, whole)}
    changed = replace(
        found,
        left=_with(found.left, of_left),
        right=_with(found.right, [placed(each, lambda place: place - width) for each in of_right]),
        condition=placed(condition, lambda place: moved_to.get(place, place)),
    )
    kept = (*range(width), *range(width + len(of_left), made))
    return r.Project(changed, tuple(map(changed.column, kept)))


def _with(side: r.Relation, values: Sequence[s.Scalar]) -> r.Relation:
    return r.Project(side, (*map(side.column, range(len(side.columns))), *values)) if values else side


def _asks(scalar: Node) -> bool:
    return any(isinstance(each, r.Relation) for each in walk(scalar))
