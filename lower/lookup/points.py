"""Which key of an index a plan fixes, so that it reads the rows of that key alone.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from catalog_log.objects import Index, Relation
from lower.lookup.asked import Lookup
from lower.lookup.lowering import Below, conjuncts_of, fixed_by, lookup
from lower.lookup.portable import Form, NotPortable, Portable
from lower.lookup.seen import places_read
from plan import relations as r
from plan import scalars as s
from plan.calls import is_definite, unknown
from plan.nodes import walk
from values.types import SqlType

Key = tuple[tuple[object, ...], ...]
"""Expressions for the columns of an index, as :class:`lower.lookup.asked.Lookup` has them."""


def point(
    plan: r.Relation, relation: Relation, indexes: Sequence[Index], params: Mapping[int, SqlType]
) -> tuple[Index, Key] | None:
    """One of ``indexes`` of ``relation`` and its whole key, where ``plan`` reads rows with that key, and nothing else.

    Whatever else it asks of them leaves rows out at most, so it need not be known what that is.
    """
    if not isinstance(plan, r.Project) or any(isinstance(node, r.Relation) for node in _within(plan.outputs)):
        return None
    portable = Portable(params)
    conjuncts: list[Form] = []
    try:
        below = Below.of(plan.input, ())
    except NotPortable:
        return None
    if below.get.item_id != relation.id or any(isinstance(node, r.Relation) for node in _within(below.conditions)):
        return None
    for each in _terms(below.conditions):
        try:
            conjuncts += conjuncts_of(portable.of(each)[0])
        except NotPortable:
            continue
    for index in indexes:
        fixed = fixed_by(index, conjuncts, relation)
        if len(fixed) == len(index.key):
            return index, tuple([value for value, _ in fixed])
    return None


def one_row(
    plan: r.Relation, relation: Relation, indexes: Sequence[Index], params: Mapping[int, SqlType]
) -> Lookup | None:
    """What finds the row of ``relation`` that ``plan`` reads, by the whole key of one of ``indexes``, which are unique:
    where the plan reads it in one place, nothing else, and makes nothing of it that hangs on the clock or on chance.
    Its residual is for an adapter to evaluate; where it has none, an engine works out the plan itself."""
    places = places_read(plan, params)
    if not indexes or places is None or [each.item_id for each in places] != [relation.id]:
        return None
    if not all(is_definite(node) and unknown(node) is None for node in walk(plan)):
        return None
    for index in indexes:
        fixed = fixed_by(index, list(places[0].conditions), relation)
        if len(fixed) == len(index.key):
            found = lookup(plan, relation, [index], params, here=True)
            return found or Lookup(index.id, relation.id, tuple([value for value, _ in fixed]), {})
    return None


def _within(scalars: Sequence[s.Scalar]) -> Iterator[object]:
    return (node for each in scalars for node in walk(each))


def _terms(conditions: Sequence[s.Scalar]) -> Iterator[s.Scalar]:
    """What they say together, one by one: a chain of ANDs is as deep in a plan as it is long."""
    stack = list(reversed(conditions))
    while stack:
        each = stack.pop()
        if isinstance(each, s.Call) and each.name == "and":
            stack += reversed(each.arguments)
        else:
            yield each
