"""Values of Postgres's types as a plan has them: what carries each, how one becomes another, how it is shown.  Pure.

Promises: a scalar of type ``t`` has the plan's type ``carrier(t)``.  An oid that is shown as a name (``regclass``) is
the oid; where a name becomes one, or one a name, the plan has a call of ours (``regclass_in``, ``regclass_out``…),
which whoever knows the session gives a meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

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
    is_number,
    list_of,
    of_number,
)
from sql.system.types import NAMED, VECTORS, PgType, element_of, is_textual
from trees.errors import unsupported
from values.bad_text import BadText
from values.scalars import NUMBER
from values.text.arrays import read_array

OID, JSON, TIME, SPAN = Native("UINTEGER"), Native("JSON"), Native("TIME"), Native("INTERVAL")
NUMERIC = Native("DECIMAL")
"""Of numbers that are exact: as many digits as the engine gives them."""

_CARRIERS: dict[str, Type] = {
    "bool": BOOL, "int2": INT2, "int4": INT4, "int8": INT8, "float4": FLOAT4, "float8": FLOAT8, "bytea": BYTEA,
    "date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "time": TIME, "interval": SPAN,
    "numeric": NUMERIC, "oid": OID, **dict.fromkeys(NAMED, OID), "xid": INT8, "cid": INT8, "json": JSON, "jsonb": JSON,
    "int2vector": ListOf(Native("USMALLINT")), "oidvector": ListOf(Native("UBIGINT")), "unknown": TEXT,
}  # fmt: skip

DIGITS_MAX = 38
"""Of a number that is written out, as the engine has them."""

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
        exact = isinstance(value.type, Native) or is_number(value.type)
        return value if exact or value.type == NOTHING else _number(value)
    return s.cast(value, kind)


def number(written: str) -> s.Literal:
    """A number as it is written, without a type: an integer where it is one.  0A000 where it has too many digits."""
    _, _, power = written.lower().partition("e")
    if power and len(power.lstrip("+-").lstrip("0")) <= 2:  # else it is not even written out
        written, power = format(Decimal(written), "f"), ""
        written += "" if "." in written else "."
    kind = None if power else of_number(written)
    if kind is None or kind.name == "numeric" and kind.precision > DIGITS_MAX:
        raise unsupported(f"a number of more than {DIGITS_MAX} digits in a query over system relations")
    return s.Literal(kind, False, written.rstrip("."))


def _number(value: s.Scalar) -> s.Scalar:
    if isinstance(value, s.Literal) and value.value is not None and NUMBER.fullmatch(value.value.strip()):
        written = value.value.strip().lstrip("+")
        return number(written if "." in written or "e" in written.lower() else f"{written}.")
    return s.cast(value, NUMERIC)


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
        return _array(value, target) if of_text else as_carried(value, kind)
    if kind == TEXT:
        return _text(value, source, target)
    if kind == BYTEA:
        return _bytes(value, source)
    if source.name == "regproc":
        return as_carried(call(OID, "tm_proc_oid", value), kind)
    if target.declared is not None and name == "numeric" and not target.declared.is_free:
        return s.cast(value, target.declared)
    return as_carried(value, kind)


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
        return as_carried(call(ListOf(Native("VARCHAR")), "tm_array_in", value), carrier(target))
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
    return as_carried(value, TEXT)
