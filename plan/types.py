"""Types of what engines reckon with: those that carry a column's, and what is made of them only on the way.

A value that is kept has a :class:`~values.types.SqlType` that an engine has (``carried``).  Between two functions
there may also be rows of several fields, lists of them, and an engine's own span of time, which nothing keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from values.sql_type import NUMERIC_PRECISION_MAX
from values.types import SqlType

BOOL, INT2, INT4, INT8 = (SqlType(name) for name in ("bool", "int2", "int4", "int8"))
FLOAT4, FLOAT8, TEXT, BYTEA = (SqlType(name) for name in ("float4", "float8", "text", "bytea"))
DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL = (SqlType(name) for name in ("date", "timestamp", "timestamptz", "interval"))
NOTHING = SqlType("unknown")
"""Of a NULL that nobody has given a type."""
SPAN = SqlType("span")
"""What engines add to a time.  It is made of numbers and never kept."""
NUMBER = SqlType("numeric")
"""Of a parameter: a number with digits of its own, which is written as it was given."""


@dataclass(frozen=True)
class Row:
    """Values side by side, by names."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return f"row({', '.join(f'{name} {kind}' for name, kind in self.fields)})"


@dataclass(frozen=True)
class ListOf:
    """A list of what no column's array has as its items."""

    element: Type

    def __str__(self) -> str:
        return f"{self.element}[]"


@dataclass(frozen=True)
class Native:
    """What carries a type of the system's relations (``oid``, ``regclass``, ``json``), by the word of the engine that
    answers for them.  No controller is sent one (:mod:`plan.codec`)."""

    word: str

    def __str__(self) -> str:
        return self.word.lower()


Type = SqlType | Row | ListOf | Native

_PARTS = (("months", INT4), ("days", INT4), ("micros", INT8))
_INTEGERS = {"int2": 5, "int4": 10, "int8": 20}
"""How many digits a decimal has that holds each."""
_RANK = {"int2": 0, "int4": 1, "int8": 2, "float4": 3, "float8": 4}
_TIMES = {"date": 0, "timestamp": 1, "timestamptz": 2}
_SCALE_LEFT = 6
"""Digits behind the point that a product or quotient keeps where there are too many (Spark's DecimalType)."""


def list_of(element: Type) -> Type:
    """The list of such elements: an array, where a column may have it."""
    if isinstance(element, SqlType) and not element.is_array and element not in (NOTHING, SPAN):
        return element.array
    return ListOf(element)


def element_of(kind: Type) -> Type:
    """What a list is of."""
    if isinstance(kind, ListOf):
        return kind.element
    return kind.element if isinstance(kind, SqlType) and kind.is_array else NOTHING


def row_of(fields: Iterable[tuple[str, Type]]) -> Type:
    """The row of such fields: an interval, where they are its own."""
    found = tuple(fields)
    return INTERVAL if found == _PARTS else Row(found)


def field_of(kind: Type, name: str) -> Type:
    """The type of a row's field, an interval's among them."""
    return next(found for each, found in fields_of(kind) if each == name)


def fields_of(kind: Type) -> tuple[tuple[str, Type], ...]:
    """A row's fields."""
    return _PARTS if kind == INTERVAL else kind.fields if isinstance(kind, Row) else ()


def is_list(kind: Type) -> bool:
    return isinstance(kind, ListOf) or isinstance(kind, SqlType) and kind.is_array


def is_number(kind: Type) -> bool:
    return isinstance(kind, SqlType) and (kind.name in _RANK or kind.name == "numeric")


def is_float(kind: Type) -> bool:
    return kind in (FLOAT4, FLOAT8)


def is_integer(kind: Type) -> bool:
    return isinstance(kind, SqlType) and kind.name in _INTEGERS


def decimal(precision: int, scale: int) -> SqlType:
    """The decimal that holds so many digits, or as many of them as there can be: those before the point first."""
    if precision > NUMERIC_PRECISION_MAX:
        scale = max(NUMERIC_PRECISION_MAX - (precision - scale), min(scale, _SCALE_LEFT))
        precision = NUMERIC_PRECISION_MAX
    return SqlType("numeric", precision, scale)


def as_decimal(kind: SqlType) -> SqlType:
    """The decimal that holds every value of an exact number's type."""
    return SqlType("numeric", _INTEGERS[kind.name], 0) if kind.name in _INTEGERS else kind


def reckoned(op: str, left: SqlType, right: SqlType) -> SqlType:
    """What ``left op right`` of numbers is, ``op`` one of ``+ - * / %``."""
    if NUMBER in (left, right):
        return NUMBER
    if is_float(left) or is_float(right):
        return left if left == right else FLOAT8
    if is_integer(left) and is_integer(right):
        return FLOAT8 if op == "/" else max(left, right, key=lambda kind: _RANK[kind.name])
    a, b = as_decimal(left), as_decimal(right)
    before = max(a.precision - a.scale, b.precision - b.scale)
    scale = max(a.scale, b.scale)
    if op == "*":
        return decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if op == "/":
        scale = max(_SCALE_LEFT, a.scale + b.precision + 1)
        return decimal(a.precision - a.scale + b.scale + scale, scale)
    if op == "%":
        return decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return decimal(before + scale + 1, scale)


def common(kinds: Iterable[Type]) -> Type:
    """The type of what is one of several values: the first, where they are not of one family."""
    found: Type = NOTHING
    for kind in kinds:
        found = _wider(found, kind)
    return found


def _wider(one: Type, other: Type) -> Type:
    if one == NOTHING or other == one:
        return other
    if other == NOTHING:
        return one
    if is_list(one) and is_list(other):
        return list_of(_wider(element_of(one), element_of(other)))
    if not (isinstance(one, SqlType) and isinstance(other, SqlType)):
        return one
    if is_number(one) and is_number(other):
        if NUMBER in (one, other):
            return NUMBER
        if is_float(one) or is_float(other):
            return FLOAT8
        if is_integer(one) and is_integer(other):
            return max(one, other, key=lambda kind: _RANK[kind.name])
        a, b = as_decimal(one), as_decimal(other)
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    if one.name in _TIMES and other.name in _TIMES:
        return max(one, other, key=lambda kind: _TIMES[kind.name])
    return one if one != TEXT else other


def of_number(text: str) -> SqlType:
    """What a bare number is: the smallest integer from 32 bits that holds it, or a decimal of its digits."""
    digits, _, fraction = text.lstrip("+-").partition(".")
    if "." not in text:
        for kind, bits in ((INT4, 31), (INT8, 63)):
            if -(1 << bits) <= int(text) < (1 << bits):
                return kind
    before = len(digits.lstrip("0"))
    return SqlType("numeric", max(before + len(fraction), len(fraction), 1), len(fraction))
