"""MERGE by key: where ON says all columns of a key of the table, which keys its source asks for.  Pure.

Only rows of those keys can match then, so whoever runs the statement looks them up instead of reading the table, and
the commit hangs on these keys alone: those that no row has among them, since WHEN NOT MATCHED hangs on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import Table
from journal.errors import InvalidUsage
from sql.binding.bind import folded
from sql.objects.names import ImageLike, Names, column_types
from sql.objects.uniques import Unique, uniques_of
from sql.statements.plans import ChangePlan, InsertPlan, SelectPlan
from sql.statements.select import plan_select
from values.types import SqlType

KEYS_MAX = 1000
"""Keys that are looked up one by one, at a quarter of a millisecond each where their index answers; with more of them
the table is read."""

_WIDER = {"int2": ("int2",), "int4": ("int2", "int4"), "int8": ("int2", "int4", "int8")}
"""Of keys that are integers: types whose values they have all."""

_KEPT = frozenset({"text", "varchar", "bool", "date", "timestamp", "timestamptz", "uuid", "bytea"})
"""Types of which a key is looked up by a value of the same type."""


@dataclass(frozen=True)
class Keyed:
    """``keys`` gives the keys of ``unique`` that a row of ``table`` must have to match one of the source: up to one
    more than ``KEYS_MAX``."""

    table: Table
    unique: Unique
    keys: SelectPlan


def keyed(
    main: exp.Expression, plans: Sequence[SelectPlan | InsertPlan | ChangePlan], image: ImageLike, names: Names,
    params: dict[int, SqlType],
) -> Keyed | None:  # fmt: skip
    """``main`` is the query over the table and its source that counts what matches; ``plans`` its own and those of the
    clauses.  ``None`` where the whole table is read: by no key, or once more by a subquery or the source."""
    table = next((_table(plan) for plan in plans if not isinstance(plan, SelectPlan)), None)
    if not isinstance(table, Table) or table.dropped or not isinstance(main, exp.Select):
        return None
    if any(_reads(query, table) != 1 for plan in plans for query in _queries(plan)):
        return None
    target = main.args["from_"].this
    called = folded(target.args["alias"].this) if target.args.get("alias") else folded(target.this)
    types = column_types(table)
    fixed: dict[str, exp.Expression] = {}
    for one, other in _equal(main.args["where"].this):
        for column, value in ((one, other), (other, one)):
            if _is_of(column, called, types) and not any(_is_of(e, called, types) for e in value.find_all(exp.Column)):
                if value.find(exp.Query, exp.Subquery, exp.Exists) is None:
                    fixed.setdefault(folded(column.this), value)
    for unique in uniques_of(table, image):
        wanted = [column.name for column in unique.columns]
        if unique.index.since is None and all(name in fixed for name in wanted):
            plan = _keys(main, [fixed[name] for name in wanted], image, names, params)
            if plan is not None and _fit(plan, [types[name] for name in wanted]) and table.id not in plan.inputs:
                return Keyed(table, unique, plan)
    return None


def _keys(
    main: exp.Select, values: Sequence[exp.Expression], image: ImageLike, names: Names, params: dict[int, SqlType]
) -> SelectPlan | None:
    """``values`` of the rows of the source of ``main``: different ones, and no more than tell that they are many."""
    first, *rest = [each.copy() for each in main.args["joins"]]
    query = exp.Select(
        expressions=[each.copy() for each in values], from_=exp.From(this=first.this), distinct=exp.Distinct(),
        limit=exp.Limit(expression=exp.Literal.number(KEYS_MAX + 1)),
    )  # fmt: skip
    query.set("joins", rest)
    for key in ("laterals", "with_"):
        part = main.args.get(key)
        if part:
            query.set(key, [each.copy() for each in part] if isinstance(part, list) else part.copy())
    try:
        plan = plan_select(query, image, names, dict(params))
    except InvalidUsage:
        return None  # the statement itself is planned otherwise, which says what is wrong, if anything is
    simple = plan.kind in ("constant", "given", "peek") and not (plan.volatile or plan.draws or plan.reads)
    return plan if simple else None


def _fit(plan: SelectPlan, wanted: Sequence[SqlType]) -> bool:
    """Whether each value that ``plan`` gives is a value of the key as it is compared there."""
    for got, want in zip([column.type for column in plan.columns], wanted, strict=True):
        if got.is_array or want.is_array:
            return False
        if want.name in ("text", "varchar"):
            if got.name not in ("text", "varchar"):
                return False
        elif got.name not in _WIDER.get(want.name, (want.name,) if want.name in _KEPT else ()):
            return False
    return True


def _equal(condition: exp.Expression) -> Iterator[tuple[exp.Expression, exp.Expression]]:
    """What ``condition`` says to be equal, whatever else it says."""
    stack = [condition]
    while stack:
        each = stack.pop()
        if isinstance(each, exp.Paren):
            stack.append(each.this)
        elif isinstance(each, exp.And):
            stack += [each.expression, each.this]
        elif isinstance(each, exp.EQ):
            sides = each.this.unnest(), each.expression.unnest()
            if all(isinstance(side, exp.Tuple) for side in sides):
                both = zip(sides[0].expressions, sides[1].expressions, strict=False)
                yield from ((one.unnest(), other.unnest()) for one, other in both)
            else:
                yield sides


def _is_of(column: exp.Expression, called: str, types: dict[str, SqlType]) -> bool:
    """Whether it is a column of the table, which is ``called`` so.  Without a relation's name it is, if there is one of
    that name: of two the statement is refused."""
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        return False
    relation = column.args.get("table")
    return folded(relation) == called if relation is not None else folded(column.this) in types


def _table(plan: InsertPlan | ChangePlan) -> object:
    return plan.table if isinstance(plan, InsertPlan) else plan.changes[0].table


def _queries(plan: SelectPlan | InsertPlan | ChangePlan) -> list[SelectPlan]:
    if isinstance(plan, SelectPlan):
        return [plan]
    if isinstance(plan, InsertPlan):
        return [] if plan.query is None else [plan.query.reads or plan.query]
    return [change.query for change in plan.changes]


def _reads(query: SelectPlan, table: Table) -> int:
    """How often ``query`` reads ``table``."""
    return sum(each.name == table.id for each in query.tree.find_all(exp.Table))
