"""Values of Postgres's types as a plan has them: what carries each, how one becomes another, how it is shown.  Pure.

Promises: a scalar of type ``t`` has the plan's type ``carrier(t)``.  An oid that is shown as a name (``regclass``) is
the oid; where a name becomes one, or one a name, the plan has a call of ours (``regclass_in``, ``regclass_out``…),
which whoever knows the session gives a meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from journal.errors import InvalidUsage
from plan import scalars as s
from plan.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NOTHING,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    ListOf,
    Native,
    Row,
    Type,
    is_integer,
    list_of,
    of_number,
)
from plan.types import element_of as element_of_list
from sql.system.types import NAMED, VECTORS, PgType, element_of, is_textual
from values.bad_text import BadText
from values.numeric import numerics
from values.text.arrays import read_array
from values.types import SqlType

OID, JSON, TIME, SPAN = Native("UINTEGER"), Native("JSON"), Native("TIME"), Native("INTERVAL")
NUMERIC = Native("VARCHAR")
"""Of numbers that are exact: their texts, as a user's free numerics have (:mod:`sql.system.exact`)."""

_CARRIERS: dict[str, Type] = {
    "bool": BOOL, "int2": INT2, "int4": INT4, "int8": INT8, "float4": FLOAT4, "float8": FLOAT8, "bytea": BYTEA,
    "date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "time": TIME, "interval": SPAN,
    "numeric": NUMERIC, "oid": OID, **dict.fromkeys(NAMED, OID), "xid": INT8, "cid": INT8, "json": JSON, "jsonb": JSON,
    "int2vector": ListOf(Native("USMALLINT")), "oidvector": ListOf(Native("UBIGINT")), "unknown": TEXT,
}  # fmt: skip

INTEGERS = frozenset({"int2", "int4", "int8"})


def carrier(kind: PgType) -> Type:
    """What carries values of ``kind``: of all that is not in the table, its text."""
    if kind.name == "record":
        return Row(tuple((name, carrier(field)) for name, field in kind.fields))
    found = _CARRIERS.get(kind.name)
    if found is None and (element := element_of(kind.name)) is not None:
        return list_of(carrier(PgType(element)))
    return found or TEXT


def call(kind: PgType | Type, name: str, *arguments: s.Scalar) -> s.Call:
    """A call that gives a value of ``kind``."""
    return s.Call(carrier(kind) if isinstance(kind, PgType) else kind, True, name, tuple(arguments))


def null(kind: PgType) -> s.Scalar:
    return s.Literal(carrier(kind), True, None)


def text(value: str) -> s.Literal:
    return s.Literal(TEXT, False, value)


def as_carried(value: s.Scalar, kind: Type) -> s.Scalar:
    """``value`` as it is carried by ``kind``."""
    if value.type == kind or kind == NOTHING or isinstance(kind, Row):
        return value
    if kind == NUMERIC:
        return _number(value)
    if kind == ListOf(NUMERIC) and element_of_list(value.type) == TEXT:
        return call(kind, "tm_numeric_array", value)
    if value.type == NUMERIC and value != s.Literal(NUMERIC, True, None):
        return _of_number(value, kind)
    return s.cast(value, kind)


def number(written: str) -> s.Literal:
    """A number as it is written, without a type: an integer where it is one that has room in 64 bits."""
    if written.isdigit() and (kind := of_number(written)).name != "numeric":
        return s.Literal(kind, False, written)
    return _read(written)


def _read(written: str) -> s.Literal:
    """22P02 for what is no number, 22003 where it has too many digits."""
    try:
        return s.Literal(NUMERIC, False, numerics.read(written))
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


_OF_FLOATS = {FLOAT4: "tm_numeric_of_float4", FLOAT8: "tm_numeric_of_float8"}


def _number(value: s.Scalar) -> s.Scalar:
    """A number of any type, or a text, as one with digits of its own."""
    if isinstance(value, s.Literal) and (value.value is None or value.type == TEXT or is_integer(value.type)):
        return s.Literal(NUMERIC, True, None) if value.value is None else _read(value.value)
    if value.type in _OF_FLOATS:
        return call(NUMERIC, _OF_FLOATS[value.type], value)
    if value.type in (TEXT, JSON):
        return call(NUMERIC, "tm_numeric", s.cast(value, TEXT) if value.type == JSON else value)
    return s.cast(value, NUMERIC)


def _of_number(value: s.Scalar, kind: Type) -> s.Scalar:
    if kind in (FLOAT4, FLOAT8):
        return call(kind, f"tm_{kind.name}", value)
    if is_integer(kind):
        return s.cast(call(INT8, "tm_numeric_int", value, text(kind.name)), kind)
    return s.cast(value, kind)


def cast(value: s.Scalar, source: PgType, target: PgType) -> s.Scalar:
    """``value::target``.  22P02 for a text that is no array."""
    name, kind = target.name, carrier(target)
    if name == "unknown" or name == "record":
        return value
    if isinstance(value, s.Literal) and value.value is None:
        return null(target)
    of_text = source.name == "unknown" or is_textual(source.name)
    if name in NAMED:
        return _named(value, name, of_text)
    if element_of(name) is not None:
        made = _array(value, target) if of_text else as_carried(value, kind)
        return made if target.declared is None else _items_kept(made, target)
    if kind == TEXT:
        return _text(value, source, target)
    if kind == BYTEA:
        return _bytes(value, source)
    if source.name == "regproc":
        return as_carried(call(OID, "tm_proc_oid", value), kind)
    made = as_carried(value, kind)
    return made if target.declared is None else _kept(made, target.declared)


def _kept(value: s.Scalar, declared: SqlType) -> s.Scalar:
    """``value`` with as many digits as were declared."""
    digits = [s.number(each) for each in (declared.precision, declared.scale) if each is not None]
    if not digits:
        return value
    if declared.name == "numeric":
        return call(NUMERIC, "tm_numeric_kept" if declared.is_free else "tm_numeric_limited", value, *digits)
    if declared.name == "time":
        micros = call(INT8, "tm_time_limited", call(INT8, "epoch_us", value), *digits)
        return s.cast(call(TEXT, "tm_time_text", micros), TIME)
    if declared.name in ("timestamp", "timestamptz"):
        micros = call(INT8, "tm_moment_limited", call(INT8, "unix_micros", value), *digits)
        return as_carried(call(TIMESTAMP, "tm_moment", micros), value.type)
    return value


def _items_kept(value: s.Scalar, target: PgType) -> s.Scalar:
    kind = PgType(element_of(target.name), declared=target.declared.element)
    each = s.Variable(carrier(kind), True, "x")
    made = s.Lambda(carrier(kind), True, ("x",), cast(each, PgType(kind.name), kind))
    return call(value.type, "transform", value, made)


def _named(value: s.Scalar, name: str, of_text: bool) -> s.Scalar:
    """``regclass`` and its kin are an oid that is shown as a name."""
    if not of_text:
        return as_carried(value, OID)
    if isinstance(value, s.Literal) and value.value.isdigit():
        return s.cast(s.Literal(INT8, False, value.value), OID)
    return call(OID, f"{name}_in", value)


def _bytes(value: s.Scalar, source: PgType) -> s.Scalar:
    """``\\x6162`` and what else is written for bytes."""
    return call(BYTEA, "tm_bytea", as_carried(value, TEXT)) if source.name != "bytea" else value


def _text(value: s.Scalar, source: PgType, target: PgType) -> s.Scalar:
    found = shown(value, source)
    limit = target.declared.precision if target.declared is not None and target.name in ("varchar", "bpchar") else None
    return found if limit is None else call(TEXT, "left", found, s.number(limit))


def _array(value: s.Scalar, target: PgType) -> s.Scalar:
    """An array from its text form."""
    element = PgType(element_of(target.name))
    if not isinstance(value, s.Literal):
        return as_carried(call(TEXT.array, "tm_array_in", value), carrier(target))
    spaced = target.name in VECTORS and not value.value.startswith("{")  # what came in binary is written as an array
    items = value.value.split() if spaced else _items(value.value)
    made = [null(element) if each is None else cast(text(each), PgType("text"), element) for each in items]
    return as_carried(array(made, element), carrier(target))


def array(items: Sequence[s.Scalar], element: PgType) -> s.Scalar:
    """``ARRAY[items]``."""
    inner = carrier(element)
    made = s.Call(ListOf(inner) if items else NOTHING, False, "array", tuple(as_carried(each, inner) for each in items))
    return replace(made, type=list_of(inner)) if items else s.cast(made, list_of(inner))


def _items(written: str) -> Sequence[str | None]:
    """22P02 for what is no array."""
    try:
        return read_array(written)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def put_out(value: s.Scalar, kind: PgType) -> s.Scalar:
    """The text that a value is sent as: of a truth another one than its cast gives."""
    if kind.name != "bool":
        return shown(value, kind)
    return s.Case(TEXT, True, None, ((value, text("t")), (call(BOOL, "not", value), text("f"))), None)


def shown(value: s.Scalar, kind: PgType) -> s.Scalar:
    """The text of a value, as Postgres shows it."""
    if isinstance(value, s.Literal) and value.value is None:
        return s.Literal(TEXT, True, None)
    if kind.name in VECTORS:
        return call(TEXT, "tm_vector_out", value)
    if element_of(kind.name) is not None:
        return call(TEXT, "tm_array_out", value)
    if kind.name in NAMED:
        return call(TEXT, f"{kind.name}_out", value)
    if kind.name == "bytea":
        return call(TEXT, "tm_bytea_text", value)
    if value.type in (FLOAT4, FLOAT8):
        return call(TEXT, f"tm_{value.type.name}_text", value)
    return as_carried(value, TEXT)
