"""Subqueries that name the row around them by equalities, as joins with what they ask.  Pure.

Promises: the same rows.  ``EXISTS (… WHERE r.k = l.k)`` and ``l.v IN (SELECT r.v …)`` are joins with the different keys
of ``r``, ``NOT EXISTS`` a left join that finds none, and ``(SELECT agg(…) … WHERE r.k = l.k)`` a left join with the
groups of ``r`` by its keys.  What names the row around in
another way, and NOT IN, which NULLs make something else of, stay what they are.  (Neumann and Kemper, "Unnesting
Arbitrary Queries", BTW 2015, has the general case.)

It is for who keeps a view by its changes: engines decorrelate by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from plan import relations as r
from plan import scalars as s
from plan.calls import call
from plan.columns import moved, names_outside, replaced
from plan.equal import conjunction, conjuncts, met
from plan.nodes import Node, walk

FOUND = s.truth(True)
"""A column that is NULL where a left join has found no partner."""


def decorrelated(node: Node) -> Node:
    """``node`` and all in it, with joins for the subqueries that may be."""
    found = node.with_parts(decorrelated)
    if isinstance(found, r.Filter):
        return _filter(found)
    if isinstance(found, r.Project):
        joined = _Joined(found.input)
        outputs = tuple(joined.without_queries(each) for each in found.outputs)
        return r.Project(joined.relation, outputs) if joined.relation is not found.input else found
    return found


def _filter(found: r.Filter) -> r.Relation:
    joined, kept = _Joined(found.input), []
    for part in conjuncts(found.condition):
        if not joined.by(part):
            kept.append(joined.without_queries(part))
    if joined.relation is found.input:
        return found
    relation = r.Filter(joined.relation, conjunction(kept)) if kept else joined.relation
    return r.Project(relation, tuple(map(relation.column, range(len(found.columns)))))


class _Joined:
    """A relation to which what subqueries ask is joined, behind its own columns."""

    def __init__(self, relation: r.Relation) -> None:
        self.relation = relation

    def by(self, condition: Node) -> bool:
        """Whether a condition of the rows is a join now."""
        negated = isinstance(condition, s.Call) and condition.name == "not"
        asked = condition.arguments[0] if negated else condition
        if isinstance(asked, s.InRows) and not negated:
            values, relation = asked.values, asked.relation
        elif isinstance(asked, s.Exists):
            values, relation = (), asked.relation
        else:
            return False
        found = _Keyed.of(relation)
        if found is None or not (values or found.outer) or any(_asks(each) for each in (*values, *found.outer)):
            return False
        met_by = [met(found.relation.column(place), value) for place, value in enumerate(values)]
        columns, values = (tuple(each) for each in zip(*met_by, strict=True)) if met_by else ((), ())
        keys = r.Distinct(r.Project(found.relation, (*columns, *found.inner)))
        if not negated:
            self._join("inner", keys, (*values, *found.outer))
            return True
        place = self._join("left", _marked(keys), (*values, *found.outer))
        marker = self.relation.column(place + len(keys.columns))
        self.relation = r.Filter(self.relation, call("is_null", marker))
        return True

    def without_queries(self, scalar: Node) -> Node:
        """``scalar`` with columns for the aggregates that its subqueries ask."""
        if isinstance(scalar, s.ScalarQuery):
            return self._aggregate(scalar) or scalar
        return scalar if isinstance(scalar, r.Relation) else scalar.with_parts(self.without_queries)

    def _aggregate(self, scalar: s.ScalarQuery) -> s.Scalar | None:
        posts, node = [], scalar.relation
        while isinstance(node, r.Project):
            posts.append(node.outputs)
            node = node.input
        if not isinstance(node, r.Reduce) or node.keys or node.sets is not None:
            return None
        found = _Keyed.of(node.input)
        if found is None or not found.outer or any(_asks(each) or names_outside(each) for each in node.aggregates):
            return None
        if any(_asks(each) for outputs in posts for each in outputs):
            return None
        if any(_asks(each) for each in found.outer):
            return None
        groups = r.Reduce(found.relation, tuple(found.inner), node.aggregates)
        place = self._join("left", _marked(groups), tuple(found.outer))
        width = len(found.inner)
        values = tuple(self.relation.column(place + width + at) for at in range(len(node.aggregates)))
        nothing = tuple(_of_no_rows(each) for each in node.aggregates)
        for outputs in reversed(posts):
            values = tuple(_beside(each, values) for each in outputs)
            nothing = tuple(_beside(each, nothing) for each in outputs)
        marker = self.relation.column(place + len(groups.columns))
        return s.case(None, ((call("is_null", marker), nothing[0]),), values[0])

    def _join(self, kind: str, other: r.Relation, values: tuple[s.Scalar, ...]) -> int:
        """Join ``other``, whose first columns are to equal ``values``; where its columns begin."""
        place = len(self.relation.columns)
        equal = [
            call("=", value, s.Column(column.type, column.nullable, place + at))
            for at, (value, column) in enumerate(zip(values, other.columns, strict=False))
        ]
        self.relation = r.Join(kind, self.relation, other, conjunction(equal))
        return place


def _beside(output: s.Scalar, values: tuple[s.Scalar, ...]) -> s.Scalar:
    """``output`` of a subquery's row, whose columns are ``values``, as the row around says it."""

    def change(column: s.Column, depth: int) -> s.Scalar:
        if column.level < depth:
            return column
        if column.level == depth:
            return moved(values[column.position], depth)
        return s.Column(column.type, column.nullable, column.position, column.level - 1)

    return replaced(output, change)


def _marked(relation: r.Relation) -> r.Relation:
    return r.Project(relation, (*map(relation.column, range(len(relation.columns))), FOUND))


def _of_no_rows(aggregate: s.Aggregate) -> s.Scalar:
    if aggregate.name == "count":
        return s.Literal(aggregate.type, False, "0")
    return s.Literal(aggregate.type, True, None)


@dataclass(frozen=True)
class _Keyed:
    """A subquery's relation that names nothing around it, and which scalars of it are to equal which of the row
    around."""

    relation: r.Relation
    inner: list[s.Scalar]
    outer: list[s.Scalar]

    @staticmethod
    def of(relation: r.Relation) -> _Keyed | None:
        """``None`` where it names the row around it otherwise.

        Its own columns stay the first; those of ``inner`` may be behind them.
        """
        if not names_outside(relation):
            return _Keyed(relation, [], [])
        if isinstance(relation, r.Project):
            below = _Keyed.of(relation.input)
            if below is None or any(names_outside(each) for each in relation.outputs):
                return None
            made = r.Project(below.relation, (*relation.outputs, *below.inner))
            width = len(relation.outputs)
            return _Keyed(made, [made.column(width + at) for at in range(len(below.inner))], below.outer)
        if not isinstance(relation, r.Filter):
            return None
        below = _Keyed.of(relation.input)
        if below is None:
            return None
        kept, inner, outer = [], list(below.inner), list(below.outer)
        for part in conjuncts(relation.condition):
            pair = _pair(part)
            if pair is not None:
                inner.append(pair[0])
                outer.append(pair[1])
            elif names_outside(part):
                return None
            else:
                kept.append(part)
        made = r.Filter(below.relation, conjunction(kept)) if kept else below.relation
        return _Keyed(made, inner, outer)


def _pair(part: Node) -> tuple[s.Scalar, s.Scalar] | None:
    """A scalar of the subquery's own row, and the one of the row around that it is to equal, as that row says it."""
    if not isinstance(part, s.Call) or part.name != "=":
        return None
    for mine, theirs in (part.arguments, part.arguments[::-1]):
        levels = {each.level for each in walk(theirs) if isinstance(each, s.Column)}
        if levels == {1} and not _asks(theirs) and not names_outside(mine) and not _asks(mine):
            return met(mine, moved(theirs, -1))
    return None


def _asks(scalar: Node) -> bool:
    return any(isinstance(each, r.Relation) for each in walk(scalar))
