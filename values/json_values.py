"""One JSON value to one SQL value: the rules, type by type.

Pure and deterministic: the verdict depends on the bytes and the column's type alone, never on a library's taste, the
stack's depth or the machine.  :mod:`values.from_json` picks a column's rule and :mod:`collection.json_rows` applies it,
whose columnar path must agree.

The rules: an integer is a JSON number without fraction or exponent, or any that is whole (``1.0``, ``1e3``) where a
value is read once and for all (``once``: what is read again and again must be what it was when it was counted, by an
older release as well); a float is any JSON number that is finite in the
type; numeric is a JSON number or a string that spells one, rounded half away from zero to the scale as Postgres does;
text is a JSON string without U+0000; bytea is a string in Postgres's hex form (``\\x00ff``); dates and timestamps are
ISO-8601 strings, years 1 to 9999, at most microseconds (further digits of the fraction are dropped); uuid, time and
interval are strings in any form that Postgres reads; varchar(n) and char(n) are text that is not too long, but for
blanks at its end; jsonb is any JSON value but null, which is NULL as everywhere; an array is a JSON array of its
element's.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

from values.bad_text import BadText
from values.numeric import numerics


class Number(str):
    """A JSON number as it was written, so that no digit is lost before its column's type is known."""

    __slots__ = ()


class BadValue(ValueError):
    """The value is not one of the type's.  The text says what was expected, in a person's words."""


Converter = Callable[[object], object]
"""From a parsed JSON value, never None, to a value as Python has it.  Raises ``BadValue``."""

_INT_LIMITS = {"int2": (-(1 << 15), (1 << 15) - 1), "int4": (-(1 << 31), (1 << 31) - 1),
               "int8": (-(1 << 63), (1 << 63) - 1)}  # fmt: skip

_DIGITS_MAX = 19
"""Of an ``int8``."""

_INT = re.compile(r"-?[0-9]{1,19}\Z")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:(Z)|([+-])([0-9]{2})(?::?([0-9]{2}))?)?\Z",
    re.ASCII,
)

_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
"""Enough digits for any numeric(38,s) before rounding: literals beyond 150 characters are refused first."""

_LITERAL_LEN_MAX = 150
_OFFSET_HOURS_MAX = 15
"""Postgres's own bound for a zone offset: 15:59."""


def kind_of(value: object) -> str:
    """What JSON calls ``value``, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, Number):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def _expected(what: str, value: object) -> BadValue:
    return BadValue(f"expected {what}, got {kind_of(value)}")


def reading(read: Callable) -> Converter:
    """``read``, which raises ``BadText``, as a converter."""

    def convert(given: object) -> object:
        try:
            return read(given)
        except BadText as error:
            raise BadValue(error.message) from None

    return convert


def array_of(element: Converter) -> Converter:
    def convert(value: object) -> list[object]:
        if not isinstance(value, list):
            raise _expected("an array", value)
        return [None if each is None else element(each) for each in value]

    return convert


def boolean(value: object) -> bool:
    if value is True or value is False:
        return value
    raise _expected("a boolean", value)


def _integer(name: str, once: bool) -> Converter:
    low, high = _INT_LIMITS[name]

    def convert(value: object) -> int:
        if type(value) is not Number:
            raise _expected("an integer", value)
        if _INT.match(value):
            number = int(value)
        elif value.lstrip("-").isdigit():
            raise BadValue(f"{name} out of range")
        elif not once:
            raise BadValue("expected an integer, got a number with a fraction or an exponent")
        else:
            number = _whole(value)
        if not low <= number <= high:
            raise BadValue(f"{name} out of range")
        return number

    return convert


def _whole(text: str) -> int:
    """The integer that a JSON number is; one that is too large for any type is some other that is."""
    mantissa, _, exponent = text.lower().partition("e")
    before, _, behind = mantissa.lstrip("-").partition(".")
    digits = (before + behind).lstrip("0")
    if not digits:
        return 0
    plain = digits.rstrip("0")
    size = exponent.lstrip("+-").lstrip("0")
    if len(size) <= 9:  # a message has fewer digits than more of them move the point by
        moved = -int(size or 0) if exponent.startswith("-") else int(size or 0)
        zeros = moved - len(behind) + len(digits) - len(plain)
    else:
        zeros = -1 if exponent.startswith("-") else _DIGITS_MAX
    if zeros < 0:
        raise BadValue("expected an integer, got a number with a fraction")
    number = int(plain) * 10**zeros if len(plain) + zeros <= _DIGITS_MAX else 10**_DIGITS_MAX
    return -number if text.startswith("-") else number


int2, int4, int8 = (_integer(name, False) for name in _INT_LIMITS)
INTEGERS_ONCE = {name: _integer(name, True) for name in _INT_LIMITS}
"""Those of values that are read once and for all."""


def float8(value: object) -> float:
    if type(value) is not Number:
        raise _expected("a number", value)
    number = float(value)
    if math.isinf(number):
        raise BadValue("float8 out of range")
    return number


def float4(value: object) -> float:
    number = float8(value)
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise BadValue("float4 out of range") from None


def _number_text(value: object) -> str:
    """The digits of a JSON number, or of a string that is one."""
    if not isinstance(value, str):
        raise _expected("a number", value)
    if len(value) > _LITERAL_LEN_MAX:
        raise BadValue("numeric out of range")
    if not _DECIMAL.match(value):
        raise BadValue("expected a number, got a string that is not one")
    return value


def decimal_of(precision: int, scale: int) -> Converter:
    unit = Decimal(1).scaleb(-scale)
    bound = Decimal(10) ** (precision - scale)

    def convert(value: object) -> Decimal:
        text = _number_text(value)
        try:
            number = _EXACT.create_decimal(text)
            if number and number.adjusted() >= 39:
                raise BadValue("numeric out of range")
            number = number.quantize(unit, context=_EXACT)
        except ArithmeticError:
            raise BadValue("numeric out of range") from None
        if not -bound < number < bound:
            raise BadValue("numeric out of range")
        return number if number else abs(number)

    return convert


_read_free = reading(numerics.read)


def free_numeric(value: object) -> str:
    return _read_free(_number_text(value))


def string(value: object) -> str:
    if type(value) is not str:
        raise _expected("a string", value)
    if "\x00" in value:
        raise BadValue("text holds the character U+0000")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise BadValue("text holds half of a surrogate pair") from None
    return value


_HEX = re.compile(r"\\x(?:[0-9a-fA-F]{2})*\Z")


def bytea(value: object) -> bytes:
    if type(value) is not str:
        raise _expected("a string", value)
    if not _HEX.match(value):
        raise BadValue("expected bytes in hex form (\\x00ff)")
    return bytes.fromhex(value[2:])


def date(value: object) -> dt.date:
    if type(value) is not str:
        raise _expected("a string", value)
    match = _DATE.match(value)
    if not match:
        raise BadValue("expected a date (YYYY-MM-DD)")
    try:
        return dt.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise BadValue("date out of range") from None


def timestamp(value: object) -> dt.datetime:
    moment, offset = _moment(value)
    if offset:
        raise BadValue("a timestamp without time zone cannot have a zone offset")
    return moment


def timestamptz(value: object) -> dt.datetime:
    moment, offset = _moment(value)
    try:
        return (moment - dt.timedelta(minutes=offset or 0)).replace(tzinfo=dt.UTC)
    except OverflowError:
        raise BadValue("timestamp out of range") from None


def _moment(value: object) -> tuple[dt.datetime, int | None]:
    """The wall clock and the zone offset in minutes (``None`` where none was written; ``Z`` is 0)."""
    if type(value) is not str:
        raise _expected("a string", value)
    match = _TIMESTAMP.match(value)
    if not match:
        raise BadValue("expected a timestamp (YYYY-MM-DDTHH:MM:SS)")
    year, month, day, hour, minute, second, fraction, zulu, sign, zone_hours, zone_minutes = match.groups()
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        moment = dt.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micros)
    except ValueError:
        raise BadValue("timestamp out of range") from None
    if zulu:
        return moment, 0
    if sign is None:
        return moment, None
    hours, minutes = int(zone_hours), int(zone_minutes or 0)
    if hours > _OFFSET_HOURS_MAX or minutes > 59:
        raise BadValue("zone offset out of range")
    return moment, (hours * 60 + minutes) * (-1 if sign == "-" else 1)
