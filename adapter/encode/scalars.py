"""One value at a time: what each SQL value is in Postgres's text and binary formats, for a column and a session.

Pure, and the reference: :mod:`adapter.encode.values` encodes whole columns and must give the same bytes.  Values are
what Arrow holds: temporal values are integers (days or microseconds since 1970-01-01, microseconds since midnight), all
else is the Python value, an interval a dictionary of its parts and an array a list.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import isinf, isnan
from struct import Struct
from zoneinfo import ZoneInfo

from adapter.encode import text_arrays
from journal.errors import InvalidUsage
from values.bad_text import BadText
from values.scalars import show_float8
from values.text import named_oids
from values.text.arrays import show_array
from values.time.shown import show_moment
from values.time.zones import offset_text
from values.types import SqlType, row_of

Encode = Callable[[object], bytes]

_I4, _U4 = (Struct(f"!{c}").pack for c in "iI")

_epoch = datetime(1970, 1, 1)


FLOAT_DIGITS = {"float4": 6, "float8": 15}
"""Digits that every value of the type has (C's ``FLT_DIG``, ``DBL_DIG``): what ``extra_float_digits`` 0 shows."""


def float_rounded(name: str, extra: int) -> Encode:
    """A float's text where ``extra_float_digits`` is ``extra``, 0 or less: so many digits, as ``%g`` has them."""
    digits = max(1, FLOAT_DIGITS[name] + extra)

    def encode(value: float) -> bytes:
        if isnan(value) or isinf(value):
            return show_float8(value).encode()
        return b"%.*g" % (digits, value)

    return encode


def timestamptz_text(zone: str) -> Encode:
    if zone == "UTC":
        return lambda micros: show_moment(micros, "+00").encode()
    info = ZoneInfo(zone)

    def in_zone(micros: int) -> bytes:
        try:
            at = (_epoch + timedelta(microseconds=micros)).replace(tzinfo=UTC)
            offset = round(at.astimezone(info).utcoffset().total_seconds())
        except OverflowError:  # beyond Python's calendar: no zone has rules there, so it is shown in UTC
            offset = 0
        return show_moment(micros + offset * 1_000_000, offset_text(offset)).encode()

    return in_zone


def _oid_binary(value: object) -> bytes:
    try:
        return _U4(named_oids.oid_of(value))
    except ValueError:
        raise InvalidUsage(f"{value!r} has no binary format", sqlstate="0A000") from None


def shown(sql_type: SqlType) -> Encode:
    """As its row shows it."""
    show = row_of(sql_type).show
    return lambda value: show(value).encode()


def sent(sql_type: SqlType) -> Encode:
    """As its row sends it.  Raises ``InvalidUsage`` 22008."""
    send = row_of(sql_type).send

    def encode(value: object) -> bytes:
        try:
            return send(value)
        except BadText as error:
            raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None

    return encode


OID_LIKE = frozenset({24, 26, 28, 29, *named_oids.OIDS})
"""regproc, oid, xid, cid, regclass and its kin: four unsigned bytes in binary, whatever holds them."""

_AS_TEXT = frozenset({18, 19, 25, 114, 194, 1042, 1043, 2275, 2278})
"""Types of the system's relations whose binary form is their text."""


def _no_binary(oid: int) -> Encode:
    def encode(value: object) -> bytes:
        raise InvalidUsage(f"there is no binary format of the type {oid} here", sqlstate="0A000", hint="ask for text")

    return encode


def _name_shown(value: str) -> bytes:
    return named_oids.name_of(value).encode()


def _padded(length: int | None) -> Encode:
    """``char(n)`` is kept without the blanks at its end, and shown with them."""
    return lambda v: v.ljust(length or 0).encode()


def _array_text(element: Encode) -> Encode:
    def encode(values: list) -> bytes:
        return show_array(None if v is None else element(v).decode() for v in values).encode()

    return encode


_ARRAY_HEAD, _ARRAY_BOUNDS, _ELEMENT_NULL = Struct("!iiI").pack, Struct("!ii").pack, _I4(-1)


def _array_binary(element: Encode, oid: int) -> Encode:
    """One dimension from 1 on; an empty array has none."""

    def encode(values: list) -> bytes:
        if not values:
            return _ARRAY_HEAD(0, 0, oid)
        parts = [_ARRAY_HEAD(1, int(None in values), oid), _ARRAY_BOUNDS(len(values), 1)]
        for value in values:
            data = None if value is None else element(value)
            parts.append(_ELEMENT_NULL if data is None else _I4(len(data)) + data)
        return b"".join(parts)

    return encode


def encoder(sql_type: SqlType, oid: int, binary: bool, zone: str, extra_digits: int = 1) -> Encode:
    """How one non-null value of a column is written.  ``extra_digits``: as ``extra_float_digits``."""
    if sql_type.is_array:
        inner = row_of(sql_type.element).oid
        element = encoder(sql_type.element, inner, binary, zone, extra_digits)
        return _array_binary(element, inner) if binary else _array_text(element)
    if binary and oid in OID_LIKE:
        return _oid_binary
    if sql_type.name == "bpchar":
        return _padded(sql_type.precision)
    if binary:
        of_array = oid in text_arrays.ELEMENTS and sql_type.name == "text"
        if of_array:
            return text_arrays.binary(oid)
        if oid != row_of(sql_type).oid and sql_type.name == "text" and oid not in _AS_TEXT:
            return _no_binary(oid)
        return sent(sql_type)
    if oid in named_oids.OIDS:
        return _name_shown
    if extra_digits < 1 and sql_type.name in FLOAT_DIGITS:
        return float_rounded(sql_type.name, extra_digits)
    return timestamptz_text(zone) if sql_type.name == "timestamptz" else shown(sql_type)
