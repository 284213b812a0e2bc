"""Assignment casts: what may be put into a column without saying so, and how it is rounded."""

from __future__ import annotations

from sqlglot import exp

from collection.types import SqlType
from sql import types as t
from sql.errors import mismatch
from sql.nodes import cast, position


def assignable(got: SqlType, wanted: SqlType) -> bool:
    """Whether Postgres would cast ``got`` to ``wanted`` on assignment."""
    if got == wanted or got == t.UNKNOWN or wanted == t.TEXT:
        return True
    if t.is_number(got) and t.is_number(wanted):
        return True
    return t.is_time(got) and t.is_time(wanted)


def assign(node: exp.Expression, got: SqlType, wanted: SqlType, column: str) -> exp.Expression:
    """``node`` cast to ``wanted`` as an assignment casts.  42804 where it does not."""
    if not assignable(got, wanted):
        raise mismatch(
            f'column "{column}" is of type {t.shown(wanted)} but expression is of type {t.shown(got)}',
            position(node),
            hint="you will need to rewrite or cast the expression",
        )
    if t.is_int(wanted) and (t.is_float(got) or got.name == "numeric"):
        rounded = "BROUND" if t.is_float(got) else "ROUND"
        node = exp.Anonymous(this=rounded, expressions=[node.copy(), exp.Literal.number(0)])
    return node.copy() if got == wanted else cast(node.copy(), wanted)
