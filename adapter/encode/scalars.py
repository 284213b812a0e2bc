"""One value at a time: what each SQL value is in Postgres's text and binary formats.

Pure, and the reference: :mod:`adapter.encode.values` encodes whole columns and must give the same bytes.  Values are
what Arrow holds: temporal values are integers (days or microseconds since 1970-01-01, microseconds since midnight), all
else is the Python value, an interval a dictionary of its parts and an array a list.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isinf, isnan
from struct import Struct
from zoneinfo import ZoneInfo

from psycopg import adapters
from psycopg.adapt import PyFormat

from adapter.encode import text_arrays
from journal.errors import InvalidUsage
from values.scalars import show_float4, show_float8
from values.text.arrays import show_array
from values.time.clock import show_time
from values.time.intervals import Interval, show_interval
from values.time.zones import offset_text
from values.types import OID, SqlType

DAYS_TO_2000 = 10_957
"""Days from 1970-01-01, Arrow's epoch, to 2000-01-01, Postgres's."""

MICROS_TO_2000 = DAYS_TO_2000 * 86_400_000_000

MICROS_PER_DAY = 86_400_000_000

Encode = Callable[[object], bytes]

_INTERVAL = Struct("!qii").pack
_I2, _I4, _I8, _F4, _F8, _U4 = (Struct(f"!{c}").pack for c in "hiqfdI")

_ordinal_epoch = date(1970, 1, 1).toordinal()
_epoch = datetime(1970, 1, 1)


def float8_text(value: float) -> bytes:
    return show_float8(value).encode()


def float4_text(value: float) -> bytes:
    return show_float4(value).encode()


FLOAT_DIGITS = {"float4": 6, "float8": 15}
"""Digits that every value of the type has (C's ``FLT_DIG``, ``DBL_DIG``): what ``extra_float_digits`` 0 shows."""


def float_rounded(name: str, extra: int) -> Encode:
    """A float's text where ``extra_float_digits`` is ``extra``, 0 or less: so many digits, as ``%g`` has them."""
    digits = max(1, FLOAT_DIGITS[name] + extra)

    def encode(value: float) -> bytes:
        if isnan(value) or isinf(value):
            return float8_text(value)
        return b"%.*g" % (digits, value)

    return encode


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the proleptic Gregorian calendar, for any day number (H. Hinnant's days algorithms).

    Year 0 is 1 BC.
    """
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _date_parts(days: int) -> tuple[str, str]:
    """The date and the era's suffix."""
    ordinal = days + _ordinal_epoch
    if 1 <= ordinal <= 3_652_059:
        return date.fromordinal(ordinal).isoformat(), ""
    year, month, day = civil(days)
    if year > 0:
        return f"{year:04d}-{month:02d}-{day:02d}", ""
    return f"{1 - year:04d}-{month:02d}-{day:02d}", " BC"


def date_text(days: int) -> bytes:
    return "".join(_date_parts(days)).encode()


def _timestamp_parts(micros: int) -> tuple[str, str]:
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text, era = _date_parts(days)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{text} {minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{tail}", era


def timestamp_text(micros: int) -> bytes:
    return "".join(_timestamp_parts(micros)).encode()


def timestamptz_text(zone: str) -> Encode:
    if zone == "UTC":

        def in_utc(micros: int) -> bytes:
            text, era = _timestamp_parts(micros)
            return f"{text}+00{era}".encode()

        return in_utc
    info = ZoneInfo(zone)

    def in_zone(micros: int) -> bytes:
        try:
            at = (_epoch + timedelta(microseconds=micros)).replace(tzinfo=UTC)
            offset = round(at.astimezone(info).utcoffset().total_seconds())
        except OverflowError:  # beyond Python's calendar: no zone has rules there, so it is shown in UTC
            offset = 0
        text, era = _timestamp_parts(micros + offset * 1_000_000)
        return f"{text}{offset_text(offset)}{era}".encode()

    return in_zone


def _shifted(pack: Callable[[int], bytes], epoch: int, what: str) -> Encode:
    lowest = -(2**31) if pack is _I4 else -(2**63)

    def encode(value: int) -> bytes:
        if value - epoch < lowest:
            raise InvalidUsage(f"{what} out of range", sqlstate="22008")
        return pack(value - epoch)

    return encode


_numeric_binary = adapters.get_dumper(Decimal, PyFormat.BINARY)(Decimal, None)


def _text(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else str(value).encode()


def _oid_binary(value: object) -> bytes:
    try:
        return _U4(int(value))
    except ValueError:
        raise InvalidUsage(f"{value!r} has no binary format", sqlstate="0A000") from None


TEXT: dict[str, Encode] = {
    "bool": lambda v: b"t" if v else b"f",
    "int2": _text,
    "int4": _text,
    "int8": _text,
    "float4": float4_text,
    "float8": float8_text,
    "numeric": lambda v: f"{v:f}".encode(),
    "text": _text,
    "bytea": lambda v: b"\\x" + v.hex().encode(),
    "varchar": _text,
    "uuid": _text,
    "jsonb": _text,
    "date": date_text,
    "time": lambda v: show_time(v).encode(),
    "timestamp": timestamp_text,
    "interval": lambda v: show_interval(Interval(**v)).encode(),
}

BINARY: dict[str, Encode] = {
    "bool": lambda v: b"\1" if v else b"\0",
    "int2": _I2,
    "int4": _I4,
    "int8": _I8,
    "float4": _F4,
    "float8": _F8,
    "numeric": lambda v: bytes(_numeric_binary.dump(v)),
    "text": _text,
    "bytea": bytes,
    "varchar": _text,
    "uuid": lambda v: bytes.fromhex(v.replace("-", "")),
    "jsonb": lambda v: b"\1" + v.encode(),
    "date": _shifted(_I4, DAYS_TO_2000, "date"),
    "timestamp": _shifted(_I8, MICROS_TO_2000, "timestamp"),
    "timestamptz": _shifted(_I8, MICROS_TO_2000, "timestamp"),
    "time": _I8,
    "interval": lambda v: _INTERVAL(v["micros"], v["days"], v["months"]),
}

OID_LIKE = frozenset({24, 26, 2205})
"""regproc, oid, regclass: four unsigned bytes in binary, whatever holds them."""


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
        inner = OID[sql_type.element.name]
        element = encoder(sql_type.element, inner, binary, zone, extra_digits)
        return _array_binary(element, inner) if binary else _array_text(element)
    if binary and oid in OID_LIKE:
        return _oid_binary
    if sql_type.name == "bpchar":
        return _padded(sql_type.precision)
    if sql_type.is_free:
        return (lambda v: BINARY["numeric"](Decimal(v))) if binary else _text
    if binary:
        if oid in text_arrays.ELEMENTS and sql_type.name == "text":
            return text_arrays.binary(oid)
        return BINARY[sql_type.name]
    if extra_digits < 1 and sql_type.name in FLOAT_DIGITS:
        return float_rounded(sql_type.name, extra_digits)
    return timestamptz_text(zone) if sql_type.name == "timestamptz" else TEXT[sql_type.name]
