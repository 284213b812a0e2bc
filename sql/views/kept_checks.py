"""A CHECK as it is kept: from what its user meant to what an engine is told, and to what is shown today.  Pure.

The catalog keeps the condition as it was written, and which columns its names meant
(:class:`catalog_log.objects.Check`), as it does of views.  So it is shown as the columns are called now, and every
process plans it by its own code.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from catalog_log.objects import Check, Reference, Table
from plan import relations as r
from sql.binding.bind import Bound, bind_kept, folded
from sql.objects.called import Objects
from sql.objects.identifiers import quoted
from sql.syntax.to_tree import parse_tokens
from sql.syntax.tokens import tokenize
from sql.views.kept_views import Unplanned, inline_views, planned_as
from trees import types as t
from trees.budget import bounded
from trees.errors import untold

TABLE = "?row"
"""What its table is called in the query that a condition becomes: as no column is."""

PLANNED_MAX = 256
"""Tables whose checks are remembered as plans: some 10 KB each."""


def condition_of(text: str) -> exp.Expression:
    """The condition that was written so."""
    return parse_tokens(tokenize(text), text)


def check_today(check: Check, table: Table) -> str:
    """The condition of a check of ``table``, its columns called as they are called now."""
    called = {column.id: column.name for column in table.columns}
    now = {name: called[column_id] for name, column_id in check.reads if column_id in called}
    if all(name == other for name, other in now.items()):
        return check.sql
    parts, done = [], 0
    named = [column.this for column in condition_of(check.sql).find_all(exp.Column)]
    for each in sorted(named, key=lambda each: each.meta["start"]):
        name = folded(each)
        if now.get(name, name) != name:
            parts += [check.sql[done : each.meta["start"]], quoted(now[name])]
            done = each.meta["end"] + 1
    return "".join([*parts, check.sql[done:]])


def bound_condition(condition: exp.Expression, table: Table, zone: str = "UTC") -> Bound:
    """``condition``, in which no column is qualified, as the output of a query over ``table``.

    Raises as :func:`~sql.binding.bind.bind_kept`: what hangs on the ``zone`` of whoever defines it is refused.
    """
    return _bound([condition], table, zone)


def _bound(conditions: list[exp.Expression], table: Table, zone: str) -> Bound:
    outputs = [
        exp.Alias(this=each.copy(), alias=exp.to_identifier(f"c{at}", quoted=True))
        for at, each in enumerate(conditions)
    ]
    source = exp.Table(this=exp.to_identifier(TABLE, quoted=True))
    names = tuple([column.name for column in table.columns])
    reference = Reference((TABLE,), table.id, "", names, tuple([column.id for column in table.columns]))
    query = exp.Select(expressions=outputs, from_=exp.From(this=source))
    return bind_kept(query, [reference], _objects(table), zone, [t.BOOL] * len(conditions))


def _objects(table: Table) -> Objects:
    return Objects(lambda object_id: table if object_id == table.id else None)


@lru_cache(maxsize=PLANNED_MAX)
def checks_query(table: Table, names: tuple[str, ...]) -> r.Query:
    """The plan that gives for each row of ``table`` whether it keeps the checks called ``names``: NULL is as true.

    Raises ``InvalidUsage`` where one cannot be planned (any more).
    """
    by_name = {each.name: each for each in table.checks}
    return planned([condition_of(check_today(by_name[name], table)) for name in names], table)


@bounded
def planned(conditions: list[exp.Expression], table: Table) -> r.Query:
    """The plan that gives for each row of ``table`` the values of ``conditions``."""
    bound = _bound(conditions, table, "UTC")
    objects = _objects(table)
    _, query = planned_as(inline_views(bound.tree, bound.relations, objects), {}, objects)
    if isinstance(query, Unplanned):
        raise untold("this check", query.why)
    return query
