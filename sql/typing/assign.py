"""Assignment casts: what may be put into a column without saying so, and how it is rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sql.typing.casts import converted, text_of
from trees import types as t
from trees.errors import mismatch
from trees.nodes import position
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.zones import Zone


def assignable(got: SqlType, wanted: SqlType) -> bool:
    """Whether Postgres would cast ``got`` to ``wanted`` on assignment."""
    if got == wanted or got == t.UNKNOWN or t.is_text(wanted):
        return True
    if t.is_number(got) and t.is_number(wanted) or t.by_row(got, wanted):
        return True
    if got.is_array and wanted.is_array:
        return assignable(got.element, wanted.element)
    if wanted == t.TIME:
        return got in (t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL)
    return t.is_time(got) and t.is_time(wanted) or (got, wanted) == (t.TIME, t.INTERVAL)


def assign(
    node: exp.Expression, got: SqlType, wanted: SqlType, column: str, zone: Zone | None = None
) -> exp.Expression:
    """``node`` cast to ``wanted`` as an assignment casts in ``zone`` (``None``: in UTC).

    Not for a length, which the values are held to later.  42804 where there is no such cast.
    """
    if not assignable(got, wanted):
        raise mismatch(
            f'column "{column}" is of type {t.shown(wanted)} but expression is of type {t.shown(got)}',
            position(node),
            hint="you will need to rewrite or cast the expression",
        )
    if t.is_text(wanted):
        return text_of(node, got, zone)
    if wanted.is_array and t.is_text(wanted.element):  # a cast would cut what is too long
        wanted = t.TEXT.array
    return node.copy() if got == wanted else converted(node, got, wanted, zone)
