"""Functions that make rows, among what a SELECT puts out.  Pure.

As Postgres has it (its ProjectSet), they are asked of the rows that groups and windows left, and DISTINCT, ORDER BY and
LIMIT are about the rows that they make.  Several make theirs in step: as many as the longest has, NULL behind the end
of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plan import relations as r
from plan import scalars as s
from plan.calls import call, function_of
from plan.calls import struct as row
from plan.nodes import Node, rewritten
from plan.types import INT4, INT8, element_of


@dataclass(frozen=True)
class Item(s.Scalar):
    """One of ``items``, until there are the rows; ``place`` numbers the lists of a statement."""

    items: s.Scalar
    place: int


@dataclass(frozen=True)
class RowNumber(s.Scalar):
    """Which row it is of those that are made of one, from 1."""


ROW_NUMBER = RowNumber(INT8, False)


def item(items: s.Scalar, place: int) -> Item:
    return Item(element_of(items.type), True, items, place)


def with_rows(relation: r.Relation, kept: Sequence[s.Scalar]) -> tuple[r.Relation, list[s.Scalar]]:
    """``relation`` with the rows that :class:`Item` among ``kept`` make of each of its own, and ``kept`` of those."""
    own = {each for value in kept for each in _own(value)}
    found = sorted((each for each in own if isinstance(each, Item)), key=lambda each: each.place)
    if not found:
        return relation, list(kept)
    meant: dict[Node, s.Scalar] = {}
    if len(found) == 1:
        numbered = ROW_NUMBER in own
        made = r.TableFunction(relation, found[0].items, r.Kind(found[0].type, True), numbered)
        meant[found[0]] = made.column(len(relation.columns))
        if numbered:
            meant[ROW_NUMBER] = made.column(len(relation.columns) + 1)
    else:
        made, values = _in_step(relation, [each.items for each in found])
        meant.update(zip(found, values, strict=True))

    def out(node: Node) -> Node | None:
        return meant.get(node, node if isinstance(node, r.Relation) else None)

    return made, [rewritten(each, out) for each in kept]


def _own(value: s.Scalar) -> Iterator[Item | RowNumber]:
    """Those in ``value`` that are of the row itself: not in a subquery."""
    stack: list[Node] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (Item, RowNumber)):
            yield node
        elif not isinstance(node, r.Relation):
            stack += node.parts()


def _in_step(relation: r.Relation, lists: Sequence[s.Scalar]) -> tuple[r.Relation, list[s.Scalar]]:
    """``relation`` with as many rows of each as the longest of ``lists`` has items, and the item of each in them.

    Each list is worked out once a row, as a column: in a function of the items' numbers it would be once an item.
    """
    width = len(relation.columns)
    columns = [relation.column(at) for at in range(width)]
    listed = r.Project(relation, (*columns, *lists))
    made = [listed.column(width + at) for at in range(len(lists))]
    sizes = [call("coalesce", call("size", each), s.number(0)) for each in made]
    most = call("greatest", *sizes)
    number = s.Variable(INT4, True, "i")
    items = row([f"v{at}" for at in range(len(made))], tuple(call("try_element_at", each, number) for each in made))
    numbers = call("sequence", s.number(1), most, s.number(1))
    rows = call("transform", numbers, function_of(("i",), items))
    some = s.case(None, ((call(">", most, s.number(0)), rows),), call("array"))
    found = r.TableFunction(listed, some, r.Kind(items.type, True))
    each = found.column(len(listed.columns))
    return found, [s.field(each, f"v{at}") for at in range(len(made))]
