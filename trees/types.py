"""What types do to one another: categories, common types, arithmetic, literals.  Pure tables, no syntax trees.

Postgres decides which operands go together, what a result is called and how many digits it has.  A ``numeric`` of which
that is known before its values are, and fits 38 digits, is a decimal of the engines; any other is free: each value has
digits of its own (:mod:`values.numeric.numerics`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from journal.errors import InvalidUsage
from trees.errors import ambiguous_operator, bad_text, no_operator, out_of_range
from values.bad_text import BadText
from values.blanks import BLANKS
from values.datatypes.registry import CASTS
from values.numeric import numerics
from values.scalars import NOT_FINITE, NUMBER, read_moment
from values.sql_type import NUMERIC_PRECISION_MAX
from values.text.arrays import read_array, show_array
from values.time.clock import show_time
from values.time.digits import fitted_interval
from values.time.interval_words import read_interval
from values.time.intervals import as_interval, show_interval
from values.types import SqlType, row_of

BOOL = SqlType("bool")
INT2 = SqlType("int2")
INT4 = SqlType("int4")
INT8 = SqlType("int8")
FLOAT4 = SqlType("float4")
FLOAT8 = SqlType("float8")
TEXT = SqlType("text")
BYTEA = SqlType("bytea")
DATE = SqlType("date")
TIMESTAMP = SqlType("timestamp")
TIMESTAMPTZ = SqlType("timestamptz")
NUMERIC = SqlType("numeric")
"""Free: what ``numeric`` without a precision is, and what has digits that only its values tell."""
UNKNOWN = SqlType("unknown")
"""A bare string literal, NULL or an untyped parameter: takes the type that its context wants."""
AMBIGUOUS = SqlType("ambiguous")
"""Two columns of a derived relation share this name: an error as soon as somebody means it."""
INTERVAL = SqlType("interval")
TIME = SqlType("time")
UUID = SqlType("uuid")
JSONB = SqlType("jsonb")

_INT_DIGITS = {"int2": 5, "int4": 10, "int8": 20}
"""Spark's decimal precision of an integer type (DecimalType.forType)."""

INT_RANGE = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}

WIDE = Context(prec=120, rounding=ROUND_HALF_UP)
"""Room for every product of two 38-digit numbers and then some, so that only the last step rounds."""

_RANK = {"int2": 0, "int4": 1, "int8": 2, "numeric": 3, "float4": 4, "float8": 5}
_TIME_RANK = {"date": 0, "timestamp": 1, "timestamptz": 2}

def shown(sql_type: SqlType) -> str:
    """The name that Postgres uses for the type in messages (without precision)."""
    if sql_type.is_array:
        return shown(sql_type.element) + "[]"
    return sql_type.name if sql_type in (UNKNOWN, AMBIGUOUS) else row_of(sql_type).shown


def is_text(sql_type: SqlType) -> bool:
    """Whether its values are strings of characters, which text functions take as they are."""
    return sql_type.name in ("text", "varchar", "bpchar")


def is_int(sql_type: SqlType) -> bool:
    return sql_type.name in _INT_DIGITS


def is_number(sql_type: SqlType) -> bool:
    return sql_type.name in _RANK


def is_float(sql_type: SqlType) -> bool:
    return sql_type.name in ("float4", "float8")


def is_time(sql_type: SqlType) -> bool:
    return sql_type.name in _TIME_RANK


def by_row(got: SqlType, wanted: SqlType) -> bool:
    """Whether the row of one of them says how a value of ``got`` becomes one of ``wanted``, wherever that is wanted."""
    return (got.name, wanted.name) in CASTS


def no_comparison(left: SqlType, op: str, right: SqlType, position: int | None = None) -> InvalidUsage:
    """What is said where there is no :func:`common` type: 42725 of two that become each other, otherwise 42883."""
    error = ambiguous_operator if by_row(left, right) and by_row(right, left) else no_operator
    return error(shown(left), op, shown(right), position)


def numeric(precision: int, scale: int) -> SqlType:
    """A decimal of so many digits, ``scale`` of them behind the point; a free numeric where the engines have none."""
    if precision <= NUMERIC_PRECISION_MAX:
        return SqlType("numeric", max(precision, scale, 1), scale)
    return NUMERIC


def as_numeric(sql_type: SqlType) -> SqlType:
    """The numeric type that holds every value of an integer type; numeric itself unchanged."""
    if sql_type.name == "numeric":
        return sql_type
    return SqlType("numeric", _INT_DIGITS[sql_type.name], 0)


def common(left: SqlType, right: SqlType) -> SqlType | None:
    """The type both sides become in comparisons; ``None`` where there is none."""
    if left == right or right == UNKNOWN:
        return left
    if left == UNKNOWN:
        return right
    if is_number(left) and is_number(right):
        if is_float(left) or is_float(right):
            return FLOAT8 if FLOAT8 in (left, right) else FLOAT4
        if left.name == "numeric" or right.name == "numeric":
            a, b = as_numeric(left), as_numeric(right)
            if a.is_free or b.is_free:
                return NUMERIC
            scale = max(a.scale, b.scale)
            return numeric(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
        return max(left, right, key=lambda t: _RANK[t.name])
    if is_time(left) and is_time(right):
        return max(left, right, key=lambda t: _TIME_RANK[t.name])
    if is_text(left) and is_text(right):
        if left.name == right.name:
            return SqlType(left.name)
        return TEXT if TEXT in (left, right) else SqlType("varchar")
    if left.is_array and right.is_array and left.name == right.name:
        return common(left.element, right.element).array
    return None


def alternative(left: SqlType, right: SqlType) -> SqlType | None:
    """The type of what is the one or the other (CASE, COALESCE, UNION, ARRAY…), ``None`` where there is none.

    As :func:`common`; but of texts, and of types whose rows say how each becomes the other, it is the first, and
    numbers of which some have more digits behind the point than others keep each its own.
    """
    if left.is_array and right.is_array and left.name == right.name:
        both = alternative(left.element, right.element)
        return both if both is None else both.array
    if is_text(left) and is_text(right) and left.name != right.name:
        return SqlType(left.name)
    if by_row(left, right) or by_row(right, left):
        return left if by_row(right, left) else right
    exact = [as_numeric(each) for each in (left, right) if is_number(each) and not is_float(each)]
    if len(exact) == 2 and "numeric" in (left.name, right.name) and len({each.scale for each in exact}) > 1:
        return NUMERIC
    return common(left, right)


def nullif(left: SqlType, right: SqlType) -> SqlType | None:
    """The type of ``NULLIF(left, right)``: what Postgres's ``left = right`` makes of the left one."""
    both = common(left, right)
    if both is None or left == UNKNOWN:
        return TEXT if both is not None and both.name == "varchar" else both
    if left.name == "varchar" and right.name == "bpchar":
        return SqlType("bpchar")
    if left.name == "varchar" or is_text(left) and right == TEXT:
        return TEXT
    if is_float(right) and not is_float(left):
        return FLOAT8
    return as_numeric(left) if right.name == "numeric" and is_int(left) else left


def arithmetic(op: str, left: SqlType, right: SqlType) -> SqlType | None:
    """Type of ``left op right`` for numbers (``op`` one of ``+ - * / %``), or ``None`` if these are not numbers.

    How many digits a quotient has depends on the values (``select_div_scale`` of Postgres's ``numeric.c``).
    """
    if not (is_number(left) and is_number(right)):
        return None
    if is_float(left) or is_float(right):
        return FLOAT4 if left == right == FLOAT4 else FLOAT8
    if is_int(left) and is_int(right):
        return max(left, right, key=lambda t: _RANK[t.name])
    a, b = as_numeric(left), as_numeric(right)
    if a.is_free or b.is_free or op == "/":
        return NUMERIC
    if op in "+-":
        scale = max(a.scale, b.scale)
        return numeric(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
    if op == "*":
        return numeric(a.precision + b.precision + 1, a.scale + b.scale)
    scale = max(a.scale, b.scale)
    if numeric(max(a.precision - a.scale, b.precision - b.scale, 1) + scale, scale).is_free:
        return NUMERIC  # the engines divide decimals of one type, and have none that holds both: they would take floats
    return numeric(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def number_literal(text: str) -> SqlType:
    """The type of a numeric literal: the smallest of int4, int8, a decimal that holds it; else it is a free numeric."""
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent that even Python does not count to
        raise out_of_range("numeric", text) from None
    if re.fullmatch(r"-?\d+", text):
        for candidate in (INT4, INT8):
            if -INT_RANGE[candidate.name] <= value < INT_RANGE[candidate.name]:
                return candidate
    _, digits, exponent = value.as_tuple()
    scale = max(-exponent, 0)
    return numeric(max(len(digits) + max(exponent, 0), scale, 1), scale)


def numeric_text(text: str, position: int | None = None) -> SqlType:
    """The numeric type of a quoted number: its own digits, or free (``NaN``).  22P02 where it is none."""
    value = text.strip(BLANKS)
    if NUMBER.fullmatch(value):
        return as_numeric(number_literal(value.lstrip("+-")))
    if NOT_FINITE.fullmatch(value):
        return NUMERIC
    raise bad_text("numeric", text, position)


def parse_literal(text: str, sql_type: SqlType, instant: Callable[[datetime], datetime] | None = None) -> object:
    """The Python value of a string literal taken as ``sql_type``.  22P02, 22007 or 22003 where it is not one.

    A ``varchar(n)`` is neither cut nor checked here: that depends on what is done with it.  A timestamptz without an
    offset or zone is UTC, or what ``instant`` makes of the local time; ``now`` and its kin are not accepted.
    """
    if sql_type.is_array:
        element = sql_type.element
        return [None if each is None else parse_literal(each, element, instant) for each in _read(read_array, text)]
    if sql_type.fields is not None:
        return _read(lambda given: fitted_interval(read_interval(given, sql_type.fields), sql_type), text)
    if sql_type.name == "numeric":
        return _parse_numeric(text, sql_type)
    if sql_type == TIMESTAMPTZ:
        return _read(lambda given: read_moment(given, instant), text)
    return _read(row_of(sql_type).read, text)


def _read(read: Callable[[str], object], text: str) -> object:
    try:
        return read(text)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def _parse_numeric(text: str, sql_type: SqlType) -> Decimal | str:
    if sql_type.is_free:
        return _read(numerics.read, text)
    value = text.strip(BLANKS)
    if not NUMBER.fullmatch(value) and not NOT_FINITE.fullmatch(value):
        raise bad_text("numeric", text)
    number = Decimal(_read(numerics.read, text))
    if not number.is_finite():
        raise out_of_range("numeric", text)
    if number and number.adjusted() >= sql_type.precision - sql_type.scale:
        raise out_of_range("numeric", text)
    return number


def format_literal(value: object, sql_type: SqlType) -> str:
    """A Python value of ``sql_type`` as text that :func:`parse_literal` reads (of a type of Spark's, its CAST too)."""
    if sql_type.is_array:
        return show_array(None if each is None else format_literal(each, sql_type.element) for each in value)
    if sql_type.name == "time":
        return show_time(int(value))
    if sql_type.name == "interval":
        return show_interval(as_interval(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Decimal):
        return numerics.shown(value)
    return str(value)
