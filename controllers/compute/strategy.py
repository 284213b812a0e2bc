"""How a view is maintained: what its query is a function of, decided from its plan alone.

Promises: :func:`analyse` calls a query incremental only if its change can be computed from its inputs' changes by what
it gives; everything else is worked out again, with the reason.  Controllers do as it says, and EXPLAIN shows it.  Pure.

A query is *linear* in collections (:mod:`plan.deltas`), or in the groups of one GROUP BY (or DISTINCT, or UNION) of
aggregates that can take a row back.  What is grouped is linear in collections or in other groups, to any depth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from controllers.compute.groups import AggregateCall, call_type, refusal
from controllers.compute.spark_text import diff_name
from plan import relations as r
from plan import scalars as s
from plan.deltas import Linear, NotLinear, check_scalar, linear, names_in
from values.types import SqlType, arrow_type

GROUPS = "groups"
"""What a change reads groups by: no collection has such an id."""


TEXT_ALONE = "the catalog keeps its query as spark's text"
"""Of views of formats 1 and 2."""


@dataclass(frozen=True)
class Change:
    """Rows that are linear in ``groups``, or in collections where there are none."""

    linear: Linear
    groups: Grouped | None


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
        return "incremental: linear" if self.change.groups is None else "incremental: aggregate"


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
        return Incremental(_change(unordered(relation), diff), diff)
    except NotLinear as no:
        return Recompute(str(no))


def unordered(core: r.Relation) -> r.Relation:
    """``core`` without an ORDER BY that no LIMIT makes matter: a view has no order."""
    if isinstance(core, r.TopK) and core.limit is None and core.offset is None:
        return core.input
    if isinstance(core, (r.Project, r.Filter)):
        below = unordered(core.input)
        return core if below is core.input else replace(core, input=below)
    return core


def _change(core: r.Relation, diff: str) -> Change:
    found = _grouping(core)
    if found is None:
        return Change(linear(core, diff), None)
    groups = _grouped(found, diff)
    return Change(linear(_instead(core, found, _rows_of(groups)), diff), groups)


def _grouping(core: r.Relation) -> r.Relation | None:
    """What groups rows, if only projections and filters are above it."""
    while isinstance(core, (r.Project, r.Filter)):
        core = core.input
    is_set = isinstance(core, r.SetOp) and core.kind == "union" and not core.all
    return core if is_set or isinstance(core, (r.Reduce, r.Distinct)) else None


def _instead(core: r.Relation, found: r.Relation, other: r.Relation) -> r.Relation:
    return other if core is found else replace(core, input=_instead(core.input, found, other))


def _rows_of(groups: Grouped) -> r.Get:
    kinds = tuple(r.Kind(each, True) for each in groups.types)
    return r.Get(GROUPS, group_names(groups), kinds)


def group_names(groups: Grouped) -> tuple[str, ...]:
    """What the columns of groups are called."""
    return tuple(f"g{place}" for place in range(len(groups.types)))


def _grouped(found: r.Relation, diff: str) -> Grouped:
    if isinstance(found, r.SetOp):
        found = r.Distinct(_all_rows(found))
    if isinstance(found, r.Distinct):
        found = r.Reduce(found.input, tuple(map(found.column, range(len(found.columns)))), ())
    if found.sets is not None:
        raise NotLinear("GROUP BY with grouping sets")
    arguments: list[s.Scalar] = []
    calls = tuple(_call(each, arguments) for each in found.aggregates)
    # A query that only counts rows of one group still needs a column.
    input_ = _change(r.Project(found.input, (*found.keys, *arguments) or (s.number(1),)), diff)
    keys, kinds = (tuple(_held(each) for each in scalars) for scalars in (found.keys, arguments))
    for each, aggregate in zip(calls, found.aggregates, strict=True):
        if (reason := refusal(each, kinds)) is not None:
            raise NotLinear(reason)
        if call_type(each, kinds) != aggregate.type:
            raise NotLinear(f"{each.function} that gives {aggregate.type}")
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


def _call(aggregate: s.Aggregate, arguments: list[s.Scalar]) -> AggregateCall:
    """``aggregate`` as groups have it; its argument goes to ``arguments``."""
    name = _BY_ORDER.get(aggregate.name, aggregate.name)
    if aggregate.within or len(aggregate.arguments) > 1 or name not in _TAKEN_BACK:
        raise NotLinear(f"{name}() cannot take back a row")
    argument = aggregate.arguments[0] if aggregate.arguments else None
    if aggregate.distinct and name not in ("min", "max"):
        if name != "count" or argument is None:
            raise NotLinear("an aggregate over DISTINCT values")
        name = "count_distinct"
    if name == "count" and (argument is None or isinstance(argument, s.Literal) and argument.value is not None):
        name, argument = "count_star", None
    if aggregate.condition is not None:
        value = argument if argument is not None else s.number(1)
        argument = s.case(None, ((aggregate.condition, value),), None)
        name = "count" if name == "count_star" else name
    if argument is None:
        return AggregateCall(name, None)
    if argument not in arguments:
        check_scalar(argument)
        arguments.append(argument)
    return AggregateCall(name, arguments.index(argument))
