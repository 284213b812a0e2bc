"""A session's zone and queries over system relations: they are the in-process engine's, which reckons in UTC alone.

Promises: in a session whose zone is not UTC such a query may hand moments on, sort, count and compare them with one
another, and take one from another; whatever else could depend on the zone is 0A000.  Decided by types.  Pure.
"""

from __future__ import annotations

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.objects.names import Names
from sql.system.expressions import typed
from sql.system.queries import SystemQuery
from sql.system.types import PgType, shown
from sql.typing.zones import IN_UTC
from trees.functions import display_name
from trees.nodes import position, unnest

_MOMENTS = frozenset({"timestamptz", "_timestamptz"})
_TIMES = _MOMENTS | {"date", "time", "timestamp", "_date", "_time", "_timestamp"}
_AROUND = (
    exp.Alias, exp.Select, exp.Subquery, exp.Ordered, exp.Min, exp.Max, exp.Count, exp.Distinct, exp.Is, exp.Group,
)  # fmt: skip
_BOTH = (exp.Sub, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_IN_NO_ZONE = (exp.Min, exp.Max, exp.Count, exp.CurrentTimestamp)


def check_zone(query: SystemQuery, names: Names) -> None:
    """0A000 where what the query gives could depend on the session's zone, and that is not UTC."""
    if names.zone == "UTC":
        return
    if any(kind.name in _TIMES for kind in query.params.values()):
        raise _refused(names, "a time as a parameter", None)
    for node in query.tree.walk():
        kind = typed(node)
        if kind is None:
            continue
        if isinstance(node, exp.Cast) and kind.name in _TIMES:
            raise _refused(names, f"a cast to {shown(kind.name)}", position(node))
        if isinstance(node, exp.Func) and not isinstance(node, _IN_NO_ZONE) and kind.name in _TIMES:
            if kind.name not in _MOMENTS or next(node.iter_expressions(), None) is not None:  # now() and its kin
                raise _refused(names, f"{display_name(node)}()", position(node))
        if _holds_moments(kind) and not _is_independent(node):
            raise _refused(names, "what is done with a timestamptz", position(node))


def _holds_moments(kind: PgType | None) -> bool:
    return kind is not None and (kind.name in _MOMENTS or any(_holds_moments(each) for _, each in kind.fields))


def _is_independent(node: exp.Expression) -> bool:
    """Whether what is next around a moment, or around a row of some, makes nothing of it that a zone decides."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if isinstance(above, exp.Dot):  # pg_catalog.now(), or a column of a row: which are looked at themselves
        return True
    if typed(node).fields:
        return False
    if isinstance(above, _BOTH):
        return all(_holds_moments(typed(unnest(each))) for each in (above.this, above.expression))
    return above is None or isinstance(above, _AROUND)


def _refused(names: Names, what: str, at: int | None) -> InvalidUsage:
    return InvalidUsage(
        f'{what} by time zone "{names.zone}" is not supported in a query over system relations',
        sqlstate="0A000",
        hint=IN_UTC,
        position=at,
    )
