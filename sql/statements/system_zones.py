"""A session's zone and queries over system relations: they are the in-process engine's, which reckons in UTC alone.

Promises: in a session whose zone is not UTC such a query may hand moments on, sort, count and compare them with one
another, and take one from another; whatever else could depend on the zone is 0A000.  Nothing types such a query here,
so it is told by where moments come from (columns, ``now()``, casts, functions about time) and what is around them.
"""

from __future__ import annotations

import re

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.objects.names import Names
from sql.typing.zones import IN_UTC, has_moments
from trees.functions import display_name
from trees.nodes import position, unnest
from trees.types import is_time
from values.types import SqlType

_KINDS = re.compile(
    "Date|Time|Day|Month|Year|Week|Hour|Minute|Second|Quarter|Extract|Unix|Julian|^Ts[A-Z]|MakeInterval"
)
"""Words in the names of the parser's nodes that are about time."""

_NAMES = re.compile(
    r".*((?<!up)date|time|day|month|year|week|hour|minute|second|quarter|epoch|isodow|decade|centur|millen|now).*|age|to_days|"
    r"to_char|today|justify_.*|pg_postmaster_start_time|pg_conf_load_time|last_xact_.*"
)
"""And of functions'."""

_NOW = re.compile(r"now|(current|clock|statement|transaction)_timestamp|pg_postmaster_start_time|pg_conf_load_time")
_AROUND = (exp.Paren, exp.Alias, exp.Select, exp.Ordered, exp.Min, exp.Max, exp.Count, exp.Distinct, exp.Is, exp.Group)
_BOTH = (exp.Sub, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TEMPORAL = re.compile(r"(date|time|timestamp)\w*( with(out)? time zone)?(\[\])*", re.I)


def check_system_query(ast: exp.Expression, names: Names, params: dict[int, SqlType]) -> None:
    """0A000 where what a query over system relations gives could depend on the session's zone, and that is not UTC."""
    if names.zone == "UTC":
        return
    if any(is_time(kind) or has_moments(kind) for kind in params.values()):
        raise _refused(names, "a time as a parameter", None)
    nodes = list(ast.walk())
    read = {each.name.lower() for each in nodes if isinstance(each, exp.Table)}
    moments = {
        column
        for relations in names.system.values()
        for name in read & relations.keys()
        for column, kind in relations[name].items()
        if kind == "timestamptz"
    }
    while True:  # a subquery hands moments on by the names that it gives them
        named = {each.alias.lower() for each in nodes if isinstance(each, exp.Alias) and _gives(each.this, moments)}
        if named <= moments:
            break
        moments |= named
    if moments or any(_is_now(each) for each in nodes):  # a relation's name stands for its whole rows
        moments |= {
            each.alias_or_name.lower() for each in nodes if isinstance(each, (exp.Table, exp.Subquery, exp.CTE))
        }
    for node in nodes:
        if isinstance(node, exp.Cast) and _TEMPORAL.fullmatch(node.to.sql("postgres")):
            raise _refused(names, f"a cast to {node.to.sql('postgres').lower()}", position(node))
        if isinstance(node, exp.Func) and not isinstance(node, exp.Cast) and about_time(node) and not _is_now(node):
            raise _refused(names, f"{display_name(node)}()", position(node))
        if _is_moment(node, moments) and not _independent(node, moments):
            raise _refused(names, "what is done with a timestamptz", position(node))


def about_time(node: exp.Func) -> bool:
    """Whether the function takes or gives times, as its name says.  What takes anything is judged by its arguments."""
    return _KINDS.search(type(node).__name__) is not None or _NAMES.fullmatch(display_name(node)) is not None


def _is_now(node: exp.Expression) -> bool:
    return isinstance(node, exp.CurrentTimestamp) or (
        isinstance(node, exp.Func) and _NOW.fullmatch(display_name(node)) is not None
    )


def _is_moment(node: exp.Expression, moments: set[str]) -> bool:
    return _is_now(node) or isinstance(node, exp.Column) and node.name.lower() in moments


def _gives(node: exp.Expression, moments: set[str]) -> bool:
    """Whether the value may be a moment: what a difference or a test gives is none."""
    inner = unnest(node)
    if isinstance(inner, (exp.Predicate, exp.Sub, exp.Count)):
        return False
    return any(_is_moment(each, moments) for each in inner.walk())


def _independent(node: exp.Expression, moments: set[str]) -> bool:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if isinstance(above, exp.Dot):  # pg_catalog.now()
        return _independent(above, moments)
    if isinstance(above, _BOTH):
        return all(_is_moment(unnest(each), moments) for each in (above.this, above.expression))
    if isinstance(above, (exp.Min, exp.Max)):
        return _independent(above, moments)
    return above is None or isinstance(above, _AROUND)


def _refused(names: Names, what: str, at: int | None) -> InvalidUsage:
    return InvalidUsage(
        f'{what} by time zone "{names.zone}" is not supported in a query over system relations',
        sqlstate="0A000",
        hint=IN_UTC,
        position=at,
    )
