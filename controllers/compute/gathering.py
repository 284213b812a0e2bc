"""What a query's aggregates would gather in memory, asked before they do.  Pure: of plans, and made of plans.

``array_agg``, ``string_agg``, the percentiles and a list over a window hold a group's values in Spark's heap
until the group is whole, and nothing of Spark's bounds that: its JVM ends.  So whoever runs a query first asks, by
queries that stream (:func:`questions`), how much that would be, and refuses what is too much (54000) before any of it
is taken.  Spark holds many groups at a time, so what counts is the sum of the :data:`GROUPS_AT_ONCE` largest; where
all rows together are few enough, which is asked first and costs a third of that, nobody needs to know.

Of a subquery that names outer columns the conditions with such names are left out: what they compare for equality makes
the groups, as in Spark's own plan.  Where an outer column is needed to read the subquery at all (``unnest`` of it),
nothing is asked; what is gathered there are the items of one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from functions.aggregates import AGGREGATES, COUNTED
from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call
from plan.columns import names_outside, placed
from plan.equal import conjunction, conjuncts
from plan.nodes import Node, walk
from plan.types import INT8, TEXT

GATHERED_BYTES_MAX = 128 << 20
"""Of what one query gathers at a time: an eighth of Spark's heap, for four reads and a tick run beside one another."""

ITEM_BYTES = 96
"""Of an item besides its value: Spark's row, its array, the place in the list."""

GROUPS_AT_ONCE = 128
"""Spark's own number (``objectHashAggregate.sortBased.fallbackThreshold``): above it, it sorts and holds one."""

_HOLDING = {
    **{row.engine: row.held == COUNTED for row in AGGREGATES if row.held},
    "collect_set": True,
    "tm_percentile_disc": True,
}
"""The aggregates that gather, by their names in plans, and whether they hold equal values once.  The last two are what
the binder makes of ``array_agg(DISTINCT …)`` and of ``percentile_disc``."""


class Question(NamedTuple):
    """Queries of one row and one column: bytes that are held."""

    at_most: r.Query
    """Never less than ``exactly``."""
    exactly: r.Query


def questions(query: r.Query) -> list[Question]:
    """What to ask of the relations that ``query`` reads, of inner operators first."""
    asked: list[Question] = []
    for node, lets in reversed(list(_within(query.relation))):
        for held in _together(_gathered(node)):
            if (made := _question(node.input, held, lets)) is not None:
                asked.append(made)
    return asked


_Lets = tuple[r.Let, ...]


def _within(relation: r.Relation) -> Iterator[tuple[r.Relation, _Lets]]:
    """Each operator that may gather, from outside inwards, and the WITH queries that it sees, the outermost first."""
    todo: list[tuple[Node, _Lets]] = [(relation, ())]
    while todo:
        node, lets = todo.pop()
        if isinstance(node, (r.Reduce, r.Window)):
            yield node, lets
        if isinstance(node, r.Let):
            todo.append((node.body, (*lets, node)))
            todo.append((node.value, (*lets, node) if node.recursive else lets))
        else:
            todo += [(part, lets) for part in reversed(list(node.parts()))]


# -- what is gathered -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gathered:
    """What one aggregate holds of a row, of which rows, by which groups."""

    values: tuple[s.Scalar, ...]
    condition: s.Scalar | None
    keys: tuple[s.Scalar, ...]
    once: bool


def _gathered(node: r.Relation) -> Iterator[_Gathered]:
    """Of each aggregate of ``node`` itself that gathers."""
    if isinstance(node, r.Reduce):
        # Of several ways to group, one may be all rows.
        found = [(each, node.keys if node.sets is None else ()) for each in node.aggregates]
    else:
        found = [(each.function, each.partition) for each in node.calls]
    for function, keys in found:
        if function.name in _HOLDING:
            once = _HOLDING[function.name] or function.distinct
            yield _Gathered(_values(function), function.condition, keys, once)


def _values(function: s.Aggregate) -> tuple[s.Scalar, ...]:
    """What is held of each row: what hangs on the row, or the only value that there is."""
    given = (*function.arguments, *(each.key for each in function.within))
    return tuple(each for each in given if any(isinstance(node, s.Column) for node in walk(each))) or given[:1]


def _together(held: Iterable[_Gathered]) -> list[list[_Gathered]]:
    """Those that go by the same groups, beside one another; each that holds equal values once by itself."""
    beside: dict[object, list[_Gathered]] = {}
    for n, each in enumerate(held):
        beside.setdefault(n if each.once else each.keys, []).append(each)
    return list(beside.values())


# -- how much of it ---------------------------------------------------------------------------------------------------


def _question(input_: r.Relation, held: Sequence[_Gathered], lets: _Lets) -> Question | None:
    """How many bytes ``held`` of the rows of ``input_`` come to; ``None`` where only an outer row can tell."""
    reading = _uncorrelated(input_)
    if reading is None:
        return None
    size = reduce(lambda left, right: call("+", left, right), map(_size, held))
    keys = (*held[0].keys, *reading.equal)
    outputs = [size, *keys]
    if held[0].once:
        outputs += [_where(held[0], each, s.Literal(each.type, True, None)) for each in held[0].values]
    rows: r.Relation = r.Project(reading.relation, tuple(outputs))
    if held[0].once:
        rows = r.Distinct(rows)
    found = (_total(r.Project(reading.relation, (size,))), _total(_largest(rows, len(keys))))
    asked = [r.Query(_with(lets, each), ("held",)) for each in found]
    return None if any(names_outside(each.relation) for each in asked) else Question(*asked)


def _largest(rows: r.Relation, width: int) -> r.Relation:
    """What the largest groups of ``rows`` hold: their first column, by the ``width`` columns behind it."""
    if not width:
        return rows
    keys = tuple(rows.column(1 + place) for place in range(width))
    groups = r.Reduce(rows, keys, (aggregate("sum", (rows.column(0),)),))
    order = (s.Sort(groups.column(width), descending=True, nulls_first=False),)
    return r.Project(r.TopK(groups, order, s.number(GROUPS_AT_ONCE)), (groups.column(width),))


def _total(rows: r.Relation) -> r.Relation:
    """The sum of the first column; 0 of no rows."""
    total = r.Reduce(rows, (), (aggregate("sum", (rows.column(0),)),))
    return r.Project(total, (call("coalesce", total.column(0), _bytes(0)),))


def _size(held: _Gathered) -> s.Scalar:
    """The bytes of one row: as text, which no value's form in memory is much larger than."""
    size: s.Scalar = _bytes(ITEM_BYTES)
    for value in held.values:
        size = call("+", size, call("coalesce", call("octet_length", s.cast(value, TEXT)), s.number(0)))
    return _where(held, size, _bytes(0))


def _where(held: _Gathered, value: s.Scalar, otherwise: s.Scalar) -> s.Scalar:
    return value if held.condition is None else s.case(None, ((held.condition, value),), otherwise)


def _bytes(count: int) -> s.Scalar:
    return s.cast(s.number(count), INT8)


def _with(lets: _Lets, relation: r.Relation) -> r.Relation:
    """``relation`` within those of ``lets`` that it reads."""
    for let in reversed(lets):
        if any(isinstance(node, r.Named) and node.name == let.name for node in walk(relation)):
            relation = r.Let(let.name, let.value, relation, let.recursive)
    return relation


# -- of a subquery ----------------------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """Rows without the conditions that name a row around them, and what those compare for equality."""

    relation: r.Relation
    equal: tuple[s.Scalar, ...] = ()


def _uncorrelated(relation: r.Relation) -> _Reading | None:
    """``relation`` as more rows than any outer row sees of it: its own columns are the first ones.  ``None`` where an
    outer column is in the rows themselves."""
    if not names_outside(relation):
        return _Reading(relation)
    if isinstance(relation, r.Filter):
        below = _uncorrelated(relation.input)
        return below and _filtered(below, conjuncts(relation.condition))
    if isinstance(relation, r.Project):
        below = _uncorrelated(relation.input)
        if below is None or any(map(names_outside, relation.outputs)):
            return None
        made = r.Project(below.relation, (*relation.outputs, *below.equal))
        return _Reading(made, tuple(made.column(len(relation.outputs) + at) for at in range(len(below.equal))))
    if isinstance(relation, r.Join) and relation.kind in ("inner", "cross") and not relation.lateral:
        left, right = _uncorrelated(relation.left), _uncorrelated(relation.right)
        return left and right and _joined(relation, left, right)
    return None


def _filtered(below: _Reading, conditions: Iterable[s.Scalar]) -> _Reading:
    kept: list[s.Scalar] = []
    equal = list(below.equal)
    for condition in conditions:
        if not names_outside(condition):
            kept.append(condition)
        elif isinstance(condition, s.Call) and condition.name == "=":
            equal += [side for side in condition.arguments if not names_outside(side) and _hangs_on_row(side)]
    return _Reading(r.Filter(below.relation, conjunction(kept)) if kept else below.relation, tuple(equal))


def _joined(join: r.Join, left: _Reading, right: _Reading) -> _Reading:
    """The pairs of both sides' rows, with the columns that ``join`` has first."""
    width, between = len(join.left.columns), len(left.relation.columns)
    pairs = r.Join("cross", left.relation, right.relation)
    places = (*range(width), *(between + at for at in range(len(join.right.columns))))
    equal = (*left.equal, *(placed(each, lambda place: between + place) for each in right.equal))
    made = r.Project(pairs, (*map(pairs.column, places), *equal))
    found = _Reading(made, tuple(made.column(len(places) + at) for at in range(len(equal))))
    return found if join.condition is None else _filtered(found, conjuncts(join.condition))


def _hangs_on_row(scalar: s.Scalar) -> bool:
    return any(isinstance(node, s.Column) for node in walk(scalar))
