"""How a view is maintained: what its query is a function of, decided from its plan alone.

Promises: :func:`analyse` calls a query incremental only if its change can be computed from its inputs' changes by what
it gives; everything else is worked out again, with the reason.  Controllers do as it says, and EXPLAIN shows it.  Pure.

A query is *linear* (:mod:`plan.deltas`) in collections and in groups: those of a GROUP BY of aggregates that can take a
row back, of DISTINCT, UNION, EXCEPT or INTERSECT, and the keys by which an outer join finds partners.  What is grouped
is linear again, to any depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controllers.compute.groups import AggregateCall, call_type, refusal
from controllers.compute.spark_text import diff_name
from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call
from plan.decorrelated import decorrelated
from plan.deltas import Linear, NotLinear, check_scalar, linear, names_in
from plan.inlining import inlined
from plan.nodes import Node, rewritten, walk
from values.types import SqlType, arrow_type

READS_MAX = 4
"""Places in which a WITH query is read that is kept in each of them."""

PLACES_MAX = 64
"""Places in which a query reads collections, those in groups among them: summands are as many, each as large as the
query."""

OUTER_MAX = 3
"""Outer joins of one query.  Each says its left side three times, so what is told of them grows by that with each:
three take 15 ms to be analysed and compiled, and DuckDB's words for them 0.5 s where they are needed."""

GROUPS = "groups"
"""Begins what groups are read by: no collection has such an id."""

"""Of views of formats 1 and 2."""


@dataclass(frozen=True)
class Change:
    """Rows that are linear in collections and in ``groups``, by what these are read by."""

    linear: Linear
    groups: Mapping[str, Grouped]


@dataclass(frozen=True)
class Grouped:
    """``input`` gives the keys, the arguments of the aggregates, and the diff."""

    input: Change
    keys: tuple[SqlType, ...]
    arguments: tuple[SqlType, ...]
    calls: tuple[AggregateCall, ...]

    @property
    def types(self) -> tuple[SqlType, ...]:
        """Of a group's row: its keys, and what the calls give."""
        return (*self.keys, *(call_type(each, self.arguments) for each in self.calls))


@dataclass(frozen=True)
class Incremental:
    """``diff`` is what the column of diffs is called in all that is read."""

    change: Change
    diff: str

    @property
    def name(self) -> str:
        return "incremental: aggregate" if self.change.groups else "incremental: linear"


@dataclass(frozen=True)
class Recompute:
    """The query at the new timestamp, compared with what the view holds."""

    reason: str

    @property
    def name(self) -> str:
        return f"recompute: {self.reason}"


Strategy = Incremental | Recompute


def analyse(relation: r.Relation) -> Strategy:
    """The strategy for a view whose query is ``relation``."""
    diff = diff_name(names_in(relation))
    try:
        core = decorrelated(inlined(unordered(relation), READS_MAX))
        _check_size(core)
        found = _change(core, diff)
        if not found.linear.summands:
            raise NotLinear("it reads no collection")
        return Incremental(found, diff)
    except NotLinear as no:
        return Recompute(str(no))


def _check_size(core: r.Relation) -> None:
    """Before anything is made of it that grows faster than it does."""
    nodes = list(walk(core))
    places = sum(isinstance(node, r.Get) for node in nodes)
    if places > PLACES_MAX:
        raise NotLinear(f"collections occur in {places} places, more than {PLACES_MAX}")
    outer = sum(isinstance(node, r.Join) and node.kind in ("left", "right", "full") for node in nodes)
    if outer > OUTER_MAX:
        raise NotLinear(f"{outer} outer joins, more than {OUTER_MAX}")


def unordered(core: r.Relation) -> r.Relation:
    """``core`` without an ORDER BY that no LIMIT makes matter: a view has no order."""
    if isinstance(core, r.TopK) and core.limit is None and core.offset is None:
        return core.input
    if isinstance(core, (r.Project, r.Filter)):
        below = unordered(core.input)
        return core if below is core.input else replace(core, input=below)
    return core


def _change(core: r.Relation, diff: str) -> Change:
    found: dict[r.Relation, tuple[r.Get, Grouped]] = {}

    def leaf(node: r.Relation) -> r.Get | None:
        grouping = _grouping(node)
        if grouping is None:
            return None
        if grouping not in found:
            groups = _grouped(grouping, diff)
            kinds = tuple(r.Kind(each, True) for each in groups.types)
            found[grouping] = r.Get(f"{GROUPS}{len(found)}", group_names(groups), kinds), groups
        return found[grouping][0]

    made = linear(rewritten(core, _set_as_groups), diff, leaf)
    return Change(made, {get.item_id: groups for get, groups in found.values()})


def _grouping(node: r.Relation) -> r.Reduce | None:
    """The groups that ``node`` is."""
    if isinstance(node, r.SetOp) and node.kind == "union" and not node.all:
        node = r.Distinct(_all_rows(node))
    if isinstance(node, r.Distinct):
        return r.Reduce(node.input, tuple(map(node.column, range(len(node.columns)))), ())
    return node if isinstance(node, r.Reduce) else None


def _set_as_groups(node: Node) -> Node | None:
    """EXCEPT and INTERSECT as the groups of both sides' rows that are on one, or on both."""
    if not isinstance(node, r.SetOp) or node.kind == "union" or node.all:
        return None
    width, kinds = len(node.columns), node.columns
    sides = []
    for number, side in enumerate((node.left, node.right)):
        side = rewritten(side, _set_as_groups)
        typed = s.as_types(map(side.column, range(width)), (kind.type for kind in kinds))
        sides.append(r.Project(side, (*typed, s.number(number))))
    both = r.SetOp("union", True, *sides)
    keys = tuple(map(both.column, range(width)))
    counts = (aggregate("count", (), condition=call("=", both.column(width), s.number(side))) for side in (0, 1))
    groups = r.Reduce(both, keys, tuple(counts))
    here, there = groups.column(width), groups.column(width + 1)
    other = call("=" if node.kind == "except" else ">", there, s.number(0))
    chosen = r.Filter(groups, call("and", call(">", here, s.number(0)), other))
    return r.Project(chosen, tuple(map(chosen.column, range(width))))


def group_names(groups: Grouped) -> tuple[str, ...]:
    """What the columns of groups are called."""
    return tuple(f"g{place}" for place in range(len(groups.types)))


def _grouped(found: r.Reduce, diff: str) -> Grouped:
    if found.sets is not None:
        raise NotLinear("GROUP BY with grouping sets")
    arguments: list[s.Scalar] = []
    calls = tuple(_call(each, arguments) for each in found.aggregates)
    # A query that only counts rows of one group still needs a column.
    input_ = _change(r.Project(found.input, (*found.keys, *arguments) or (s.number(1),)), diff)
    keys, kinds = (tuple(_held(each) for each in scalars) for scalars in (found.keys, arguments))
    for each, wanted in zip(calls, found.aggregates, strict=True):
        if (reason := refusal(each, kinds)) is not None:
            raise NotLinear(reason)
        if call_type(each, kinds) != wanted.type:
            raise NotLinear(f"{each.function} that gives {wanted.type}")
    return Grouped(input_, keys, kinds, calls)


def _all_rows(node: r.Relation) -> r.Relation:
    """``node``, of which one of each row is kept, with the others too: what removes duplicates below need not."""
    if isinstance(node, r.SetOp) and node.kind == "union":
        return replace(node, all=True, left=_all_rows(node.left), right=_all_rows(node.right))
    return node.input if isinstance(node, r.Distinct) else node


def _held(scalar: s.Scalar) -> SqlType:
    """The type of what groups hold."""
    kind = scalar.type
    try:
        arrow_type(kind)
    except (KeyError, ValueError, AttributeError) as error:
        raise NotLinear(f"groups by, or folds, what is of type {kind}") from error
    return kind


_BY_ORDER = {"bool_and": "min", "bool_or": "max"}
"""True is more than false."""

_TAKEN_BACK = frozenset({"count", "sum", "avg", "min", "max"})


def _call(found: s.Aggregate, arguments: list[s.Scalar]) -> AggregateCall:
    """``found`` as groups have it; its argument goes to ``arguments``."""
    name = _BY_ORDER.get(found.name, found.name)
    if found.within or len(found.arguments) > 1 or name not in _TAKEN_BACK:
        raise NotLinear(f"{name}() cannot take back a row")
    argument = found.arguments[0] if found.arguments else None
    if found.distinct and name not in ("min", "max"):
        if name != "count" or argument is None:
            raise NotLinear("an aggregate over DISTINCT values")
        name = "count_distinct"
    if name == "count" and (argument is None or isinstance(argument, s.Literal) and argument.value is not None):
        name, argument = "count_star", None
    if found.condition is not None:
        value = argument if argument is not None else s.number(1)
        argument = s.case(None, ((found.condition, value),), None)
        name = "count" if name == "count_star" else name
    if argument is None:
        return AggregateCall(name, None)
    if argument not in arguments:
        check_scalar(argument)
        arguments.append(argument)
    return AggregateCall(name, arguments.index(argument))
