"""Columns by their places: which a node names, and how it names others.  Pure functions of nodes.

A node is looked at from outside: what level 0 is there.  Inside of a subquery, and on the right of a lateral join, the
same row is one level further out; inside of a relation nothing names level 0 of who reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plan.nodes import Node, walk
from plan.relations import Join, Relation
from plan.scalars import Column, Scalar

Change = Callable[[Column, int], Scalar]
"""What takes a column's place, which stands ``depth`` levels inside."""


def replaced(node: Node, change: Change, depth: int = 0) -> Node:
    """``node`` with each column as ``change`` has it: a scalar's own row is ``depth`` levels out."""
    if isinstance(node, Column):
        return change(node, depth)
    if isinstance(node, Join) and node.lateral:
        return node.with_parts(lambda part: replaced(part, change, depth + (part is node.right)))
    return node.with_parts(lambda part: replaced(part, change, depth + _enters(node, part)))


def _enters(node: Node, part: Node) -> int:
    """Whether what is the row of ``node`` is one further out in ``part``: a subquery's relation."""
    return int(isinstance(node, Scalar) and isinstance(part, Relation))


def outer_columns(relation: Relation) -> Iterator[Column]:
    """Columns of rows around ``relation``, each with its level counted from there: 1 is the next one."""
    for column, depth in _columns(relation, 0):
        if column.level > depth:
            yield Column(column.type, column.nullable, column.position, column.level - depth)


def own_columns(scalar: Scalar) -> Iterator[int]:
    """The places of the row that ``scalar`` is worked out of, also inside of its subqueries."""
    for column, depth in _columns(scalar, 0):
        if column.level == depth:
            yield column.position


def names_outside(node: Node) -> bool:
    """Whether a scalar names a row around the one that it is worked out of, or a relation any around it."""
    return any(column.level > depth for column, depth in _columns(node, 0))


def has_subqueries(node: Node) -> bool:
    """Whether some relation in ``node`` may name the row of another: a subquery's, or on a lateral join's right."""
    for each in walk(node):
        if isinstance(each, Join) and each.lateral:
            return True
        if isinstance(each, Scalar) and any(isinstance(part, Relation) for part in each.parts()):
            return True
    return False


def _columns(node: Node, depth: int) -> Iterator[tuple[Column, int]]:
    stack = [(node, depth)]
    while stack:
        found, at = stack.pop()
        if isinstance(found, Column):
            yield found, at
        lateral = isinstance(found, Join) and found.lateral
        for part in found.parts():
            inside = part is found.right if lateral else _enters(found, part)
            stack.append((part, at + inside))


def moved(scalar: Scalar, by: int) -> Scalar:
    """``scalar`` as it is said ``by`` levels further in."""

    def change(column: Column, depth: int) -> Column:
        if column.level < depth:
            return column
        return Column(column.type, column.nullable, column.position, column.level + by)

    return replaced(scalar, change) if by else scalar


def over(scalar: Scalar, values: tuple[Scalar, ...]) -> Scalar:
    """``scalar`` of a row whose columns are ``values``."""

    def change(column: Column, depth: int) -> Scalar:
        return moved(values[column.position], depth) if column.level == depth else column

    return replaced(scalar, change)


def placed(scalar: Scalar, places: Callable[[int], int]) -> Scalar:
    """``scalar`` of a row that has its columns at other places."""

    def change(column: Column, depth: int) -> Scalar:
        if column.level != depth:
            return column
        return Column(column.type, column.nullable, places(column.position), column.level)

    return replaced(scalar, change)
