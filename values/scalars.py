"""The text forms of booleans, numbers, bytes, dates and moments, read as Postgres reads them, floats also shown.  Pure.

Literals, parameters and casts of texts read by these alike, whatever engine a cast is in: what engines take themselves
is more (``2024``, ``1.5d``), less (``on``), or something else (a date with anything behind it, ``1e400`` as Infinity).
All raise ``BadText``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isinf, isnan

import numpy as np

from journal.errors import InvalidUsage
from values.bad_text import BadText, bad_text, cut_short
from values.blanks import BLANKS
from values.time.date_words import Read, not_carried, read_date_words, read_words

Instant = Callable[[datetime], datetime]
"""The moment in UTC, without a zone, at which clocks show a local time."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
"""Python's own readers take more than Postgres does, ``1_0`` for one."""

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def read_bool(text: str) -> bool:
    """Any unique prefix of true, yes, on, 1 and their opposites."""
    word = text.strip(BLANKS).lower()
    if word and any(full.startswith(word) for full in _TRUE) and word != "o":
        return True
    if word and any(full.startswith(word) for full in _FALSE) and word != "o":
        return False
    raise bad_text("boolean", text)


# -- integers ---------------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX = 40
"""``int()`` of very long text is quadratic, and Python refuses it beyond 4,300 digits, be they zeros in front."""


def _integer(shown: str, bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def read(text: str) -> int:
        digits = text.strip(BLANKS)
        if not _INTEGER.fullmatch(digits):
            raise bad_text(shown, text)
        if len(digits) > _DIGITS_MAX:
            sign = digits[0] if digits[0] in "+-" else ""
            digits = sign + (digits.lstrip("+-0") or "0")
        value = int(digits) if len(digits) <= _DIGITS_MAX else limit
        if not -limit <= value < limit:
            raise BadText(f'value "{cut_short(text)}" is out of range for type {shown}', "22003")
        return value

    return read


read_int2, read_int4, read_int8 = _integer("smallint", 16), _integer("integer", 32), _integer("bigint", 64)


# -- floats -----------------------------------------------------------------------------------------------------------


def single(value: float) -> float:
    """``value`` as a ``float4`` has it.  Raises ``InvalidUsage`` 22003 where that has none so large."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise InvalidUsage(f'value "{value}" is out of range for type real', sqlstate="22003") from None


def read_float8(text: str) -> float:
    return _float(text, "double precision", float)


def read_float4(text: str) -> float:
    return _float(text, "real", _single)


FIXED_POWERS = {"float4": (-4, 6), "float8": (-4, 15)}
"""Postgres prints a float in fixed notation where its shortest digits' power of ten is in this half-open range
(ryu's f2s.c and d2s.c), else as ``1e+15``."""


def show_float8(value: float) -> str:
    """The shortest digits that are read as ``value`` again, laid out as Postgres does.

    Above 2**53 Postgres's own digits are one longer now and then (its ryu excludes interval bounds); same value.
    """
    shortest = repr(float(value))
    if 1e-4 <= abs(value) < 1e15:  # Python lays these out alike, but for a point that nothing stands behind
        return shortest.removesuffix(".0")
    return _laid_out(value, shortest, FIXED_POWERS["float8"])


def show_float4(value: float) -> str:
    """The same for a single."""
    return _laid_out(value, str(np.float32(value)), FIXED_POWERS["float4"])


def _laid_out(value: float, shortest: str, fixed_powers: tuple[int, int]) -> str:
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0"
    power = exponent + len(digits) - 1
    if fixed_powers[0] <= power < fixed_powers[1]:
        return f"{Decimal(shortest).normalize():f}"
    mantissa = "".join(map(str, digits))
    point = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{minus}{mantissa[0]}{point}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _single(value: str) -> float:
    try:
        return single(float(value))
    except InvalidUsage:
        return float("inf")


_HEXADECIMAL = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.IGNORECASE)
"""What C reads as a number too: ``0x1.8p3``."""


def _of_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def _float(text: str, shown: str, read: Callable[[str], float]) -> float:
    value = text.strip(BLANKS)
    if NOT_FINITE.fullmatch(value):
        return float(value)
    if _HEXADECIMAL.fullmatch(value):
        number = read(repr(_of_hexadecimal(value)))
        if number in (float("inf"), float("-inf")) or not number and value.lower().split("p")[0].strip("+-0x."):
            raise BadText(f'value "{cut_short(text)}" is out of range for type {shown}', "22003")
        return number
    if not NUMBER.fullmatch(value):
        raise bad_text(shown, text)
    number = read(value)
    vanished = number == 0 and re.split("[eE]", value)[0].strip("+-0.")
    if vanished or number in (float("inf"), float("-inf")):
        raise BadText(f'value "{cut_short(text)}" is out of range for type {shown}', "22003")
    return number


# -- bytes ------------------------------------------------------------------------------------------------------------


def read_bytea(text: str) -> bytes:
    r"""``\x00ff``, or the older form: any text, with ``\\`` and bytes in octal."""
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError as error:
            raise BadText(f'invalid hexadecimal data: "{cut_short(text)}"', "22023") from error
    if re.sub(_ESCAPED, "", text).count("\\"):
        raise bad_text("bytea", text)
    return re.sub(_ESCAPED.encode(), _unescaped, text.encode())


_ESCAPED = r"\\(\\|[0-3][0-7]{2})"
"""A backslash, or a byte in octal."""


def _unescaped(found: re.Match[bytes]) -> bytes:
    return b"\\" if found[1] == b"\\" else bytes([int(found[1], 8)])


# -- times ------------------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)
"""What most texts are, and Python's own reader takes as Postgres does, ten times as fast."""


def _plain(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _PLAIN.fullmatch(text) else None
    except ValueError:
        return None


def read_date(text: str) -> date:
    found = _plain(text)
    return read_date_words(text) if found is None else found.date()


def read_timestamp(text: str) -> datetime:
    """What an offset says counts for nothing."""
    found = _plain(text)
    return read_words(text, "timestamp").local if found is None else found


def read_moment(text: str, instant: Instant | None = None) -> datetime:
    """In UTC.  What names neither an offset nor a zone is UTC, or what ``instant`` makes of the local time."""
    found = _plain(text)
    read = read_words(text, _MOMENT) if found is None else Read(found, None)
    try:
        if read.offset is not None:
            return (read.local - read.offset).replace(tzinfo=UTC)
        return (read.local if instant is None else instant(read.local)).replace(tzinfo=UTC)
    except OverflowError as error:
        raise not_carried(text, _MOMENT) from error


_MOMENT = "timestamp with time zone"


# -- as engines carry them --------------------------------------------------------------------------------------------

_EPOCH, _MICRO = datetime(1970, 1, 1), timedelta(microseconds=1)


def date_micros(text: str) -> int:
    """The beginning of a date in microseconds since 1970."""
    return (datetime.combine(read_date(text), datetime.min.time()) - _EPOCH) // _MICRO


def timestamp_micros(text: str) -> int:
    return (read_timestamp(text) - _EPOCH) // _MICRO


def moment_micros(text: str) -> int:
    return (read_moment(text).replace(tzinfo=None) - _EPOCH) // _MICRO
