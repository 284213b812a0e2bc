"""Groups made of changes as they are: equal rows need not be put together before they are counted.  Pure.

A row that was taken back is a change of its own beside the one that it came by, each with its *diff*, and whoever reads
rows must first add up the diffs of equal ones, by all of their columns.  Most of what is asked of many rows needs less.
``count(*)`` is the sum of the diffs, a sum of exact numbers that of the numbers times them, and ``max(x)`` or
``count(DISTINCT x)`` only asks which ``x`` are there: their diffs are added up by the group and ``x`` alone.

Promises: :func:`weighted` gives a query of the same rows in the same columns, which reads changes
(:func:`plan.deltas.linear`, of the version :data:`~plan.deltas.NEW`) where that suffices, and elsewhere what it read.
Sums of floats hang on what is added up and stay; so does what gathers values, and what asks how often they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call
from plan.deltas import NEW, Linear, NotLinear, check_scalar, key_of, linear
from plan.nodes import Node, rewritten, walk
from plan.types import INT8, NUMBER, decimal, is_float, is_integer, is_number

FOLDS_MAX = 16
"""Aggregates of one group: each sum is two of them here.  A sum of numbers with any digits is thirty to begin with."""

DIFF_DIGITS = 19
"""Of a diff as a decimal."""

DIGITS_MAX = 38
"""Of the engine's decimals."""

_OF_WHICH = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"})
"""Of which values there are, however often each is."""

_OF_WHICH_ONCE = frozenset({"count", "sum", *_OF_WHICH})
"""With DISTINCT."""


@dataclass(frozen=True)
class Weighted:
    """``relation`` reads changes in some places; ``groups`` says of each that does which relations' those are, as
    often as it reads them."""

    relation: r.Relation
    groups: tuple[tuple[str, ...], ...]


def weighted(relation: r.Relation, diff: str) -> Weighted | None:
    """``diff`` is what the column of diffs is called where changes are read.  ``None`` where none would be."""
    groups: list[tuple[str, ...]] = []

    def change(node: Node) -> Node | None:
        # What is in an expression, or beside a row, may hang on that row: the engine knows what to do with few such.
        if isinstance(node, s.Scalar) or isinstance(node, r.Join) and node.lateral:
            return node
        if not isinstance(node, (r.Reduce, r.Distinct)):
            return None
        try:
            made = _made(node, diff)
        except NotLinear:
            return None
        read = tuple(key_of(each)[0] for each in walk(made) if isinstance(each, r.Get))
        if read:
            groups.append(read)
        return made if read else None

    made = rewritten(relation, change)
    return Weighted(made, tuple(groups)) if groups else None


def changes_read(relation: r.Relation) -> dict[str, str]:
    """The relations whose changes ``relation`` reads, by the names that these have there."""
    keys = {node.item_id: key_of(node) for node in walk(relation) if isinstance(node, r.Get)}
    return {name: item_id for name, (item_id, version) in keys.items() if item_id and version == NEW}


def _made(node: r.Reduce | r.Distinct, diff: str) -> r.Relation:
    """Raises ``NotLinear`` where it needs the rows themselves."""
    if isinstance(node, r.Distinct):
        node = r.Reduce(node.input, tuple(map(node.column, range(len(node.columns)))), ())
    if node.sets is not None or len(node.aggregates) > FOLDS_MAX:
        raise NotLinear("groups of several choices of keys, or much of each")
    read = linear(node.input, diff)
    for each in (*node.keys, *node.aggregates):
        check_scalar(each)
    if not any(map(_of_which, node.aggregates)):
        return _at_once(node, read)
    return _by_values(node, read)


def _of_which(each: s.Aggregate) -> bool:
    """Whether it asks which values there are, and not how often.  Raises ``NotLinear`` of one that is not known."""
    if each.within or len(each.arguments) > 1:
        raise NotLinear(each.name)
    if any(is_float(value.type) and not isinstance(value, s.Column) for value in each.arguments):
        raise NotLinear("a float that is worked out, of which groups make no difference between 0 and -0")
    if each.name in _OF_WHICH or each.distinct and each.name in _OF_WHICH_ONCE and each.arguments:
        return True
    if each.distinct or each.name not in ("count", "sum"):
        raise NotLinear(each.name)
    return False


@dataclass
class _Folds:
    """What is folded of rows: the same once."""

    found: list[s.Aggregate] = field(default_factory=list)

    def place(self, each: s.Aggregate) -> int:
        if each not in self.found:
            self.found.append(each)
        return self.found.index(each)


@dataclass(frozen=True)
class _Total:
    """Of an aggregate that adds up: in which places among the folds what it adds up is, and, where it is NULL of no
    values, how many there are."""

    of: s.Aggregate
    sum: int
    count: int | None

    def value(self, sums: Sequence[s.Scalar]) -> s.Scalar:
        """Of the sums of the folds, the same places."""
        if self.count is None:
            return s.cast(_or_zero(sums[self.sum]), self.of.type)
        there = call("<>", _or_zero(sums[self.count]), _zero())
        return s.case(None, ((there, s.cast(sums[self.sum], self.of.type)),), None)


def _total(each: s.Aggregate, diff: s.Scalar, folds: _Folds) -> _Total:
    value = each.arguments[0] if each.arguments else None
    conditions = () if each.condition is None else (each.condition,)
    if value is not None and value.nullable:
        conditions = (*conditions, _is_there(value))
    counted = folds.place(aggregate("sum", (_where(conditions, diff),)))
    if each.name == "count":
        return _Total(each, counted, None)
    assert value is not None, each
    return _Total(each, folds.place(aggregate("sum", (_where(conditions, _times(value, diff)),))), counted)


def _times(value: s.Scalar, diff: s.Scalar) -> s.Scalar:
    """``value`` times ``diff``, exactly.  Raises ``NotLinear`` where the engine could not."""
    kind = value.type
    if is_integer(kind):
        return call("*", s.cast(value, INT8), diff)
    if not is_number(kind) or is_float(kind) or kind == NUMBER:
        raise NotLinear(f"sum of {kind}")
    if kind.scale and kind.precision + DIFF_DIGITS + 1 > DIGITS_MAX:
        raise NotLinear(f"sum of {kind}")
    return call("*", value, s.cast(diff, decimal(DIFF_DIGITS, 0)))


def _where(conditions: Sequence[s.Scalar], value: s.Scalar) -> s.Scalar:
    for condition in reversed(conditions):
        value = s.case(None, ((condition, value),), None)
    return value


def _is_there(value: s.Scalar) -> s.Scalar:
    return call("not", call("is_null", value))


def _zero() -> s.Scalar:
    return s.cast(s.number(0), INT8)


def _or_zero(count: s.Scalar) -> s.Scalar:
    return call("coalesce", count, _zero())


def _there(groups: r.Relation, rows: int) -> r.Relation:
    """Those of ``groups`` that have rows: so many as the column ``rows`` says."""
    return r.Filter(groups, call("<>", groups.column(rows), _zero()))


def _at_once(node: r.Reduce, read: Linear) -> r.Relation:
    """Of aggregates that all add up."""
    full, wide = read.full, len(node.keys)
    diff = full.column(len(full.columns) - 1)
    folds = _Folds([aggregate("sum", (diff,))])
    totals = [_total(each, diff, folds) for each in node.aggregates]
    groups: r.Relation = r.Reduce(full, node.keys, tuple(folds.found))
    if wide:
        groups = _there(groups, wide)
    sums = [groups.column(wide + at) for at in range(len(folds.found))]
    return r.Project(groups, (*map(groups.column, range(wide)), *(each.value(sums) for each in totals)))


def _by_values(node: r.Reduce, read: Linear) -> r.Relation:
    """Of aggregates some of which ask what values there are: by these too at first."""
    full, wide = read.full, len(node.keys)
    diff = full.column(len(full.columns) - 1)
    values: list[s.Scalar] = []

    def place(value: s.Scalar) -> int:
        if value not in values:
            values.append(value)
        return wide + values.index(value)

    folds = _Folds([aggregate("sum", (diff,))])
    plan: list[_Total | tuple[s.Aggregate, int]] = []
    for each in node.aggregates:
        if _of_which(each):
            # NULL is none of the values, and an argument may fail where its condition is not true.
            conditions = () if each.condition is None else (each.condition,)
            plan.append((each, place(_where(conditions, each.arguments[0]))))
        else:
            plan.append(_total(each, diff, folds))
    rows = wide + len(values)
    inner = _there(r.Reduce(full, (*node.keys, *values), tuple(folds.found)), rows)
    outer_folds: list[s.Aggregate] = [aggregate("sum", (inner.column(rows + at),)) for at in range(len(folds.found))]
    places = []
    for each in plan:
        if isinstance(each, _Total):
            places.append(None)
            continue
        of, value = each
        places.append(len(outer_folds))
        outer_folds.append(replace(of, arguments=(inner.column(value),), condition=None))
    outer = r.Reduce(inner, tuple(map(inner.column, range(wide))), tuple(outer_folds))
    sums = [outer.column(wide + at) for at in range(len(folds.found))]
    found = [
        each.value(sums) if isinstance(each, _Total) else outer.column(wide + place)
        for each, place in zip(plan, places, strict=True)
    ]
    return r.Project(outer, (*map(outer.column, range(wide)), *found))
