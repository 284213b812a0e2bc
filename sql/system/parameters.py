"""Parameters of queries over system relations: as what values of a client's are read, and how they stand there.  Pure.

Promises: a value that is put into a typed tree has there the type that its place gave the parameter, as a literal
without a type would have; so nothing is typed again for each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from journal.errors import InvalidUsage
from lower.spark.lowering import plain_limits
from sql.system.expressions import TYPED
from sql.system.queries import SystemQuery, written
from sql.system.types import REGISTERED, ROWS, UNKNOWN, PgType, element_of, is_textual
from trees.nodes import copied, literal
from trees.types import format_literal, numeric_text
from values.datatypes.registry import DATATYPES
from values.types import SqlType

_TEXT, _OID = SqlType("text"), SqlType("int8")

_READ = frozenset({"name", "char", "cstring", "json", "_name", "_char", "_oid", "oidvector", *REGISTERED})
"""Types that are no column's of a user's, and whose values clients may send."""


def read_as(kind: PgType) -> tuple[SqlType, int | None]:
    """The type of ``values.types`` as which a parameter's values come, and the oid that a client is told, where that is
    another one.  What nobody here reads is told as text."""
    name = kind.name
    if name in DATATYPES:
        return SqlType(name), None
    if name in ("oid", "xid", "cid"):
        return _OID, ROWS[name].oid
    if name in _READ or element_of(name) in DATATYPES:
        return _TEXT, ROWS[name].oid
    return _TEXT, None


def filled(query: SystemQuery, values: Sequence[object | None], types: Mapping[int, SqlType]) -> exp.Expression:
    """A copy of the query's tree with ``values``, which came as ``types``.  08P01 where one is missing."""
    holder = exp.Paren(this=copied(query.tree))
    for node in list(holder.find_all(exp.Parameter)):
        number = int(node.this.this)
        if number > len(values):
            raise InvalidUsage(f"no value was given for parameter ${number}", sqlstate="08P01")
        kind = query.params[number]
        made = _stands(values[number - 1], kind, types[number])
        above = node.parent
        if isinstance(above, exp.Cast) and isinstance(made, exp.Cast) and above.meta.get(TYPED) == kind:
            made = made.this
        node.replace(made)
    plain_limits(holder)
    return holder.this


def _stands(value: object | None, kind: PgType, sql_type: SqlType) -> exp.Expression:
    """A value in the place of a parameter."""
    if value is None:
        return _cast(exp.null(), kind)
    if isinstance(value, list):
        element = element_of(kind.name) or "text"
        text = format_literal(value, SqlType(element if element in DATATYPES else "text").array)
        return _cast(exp.Literal.string(text), kind)
    if kind.name in ("interval", "time"):  # what carries them elsewhere is no interval and no time here
        return _cast(exp.Literal.string(format_literal(value, sql_type)), kind)
    if kind.name not in DATATYPES or is_textual(kind.name):
        return _cast(exp.Literal.string(str(value)), kind)
    if kind.name == "numeric":
        sql_type = numeric_text(format(Decimal(value), "f"))
    made = literal(value, sql_type)
    made.meta[TYPED] = kind
    return made


def _cast(value: exp.Expression, kind: PgType) -> exp.Expression:
    value.meta[TYPED] = UNKNOWN
    if kind == UNKNOWN or is_textual(kind.name) and not isinstance(value, exp.Null):
        value.meta[TYPED] = kind
        return value
    made = exp.Cast(this=value, to=written(kind.name))
    made.meta[TYPED] = kind
    return made
