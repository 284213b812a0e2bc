"""The text forms of booleans, bytes, floats, dates and moments, read as Postgres reads them.  Pure.

Literals, parameters and casts of texts read by these alike, whatever engine a cast is in: what engines take themselves
is more (``2024``, ``1.5d``), less (``on``), or something else (a date with anything behind it, ``1e400`` as Infinity).
All raise ``BadText``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from collection.bad_text import BadText, bad_text, cut_short
from collection.types import single
from collection.zones import instant_of, zone_named
from journal.errors import InvalidUsage

Instant = Callable[[datetime], datetime]
"""The moment in UTC, without a zone, at which clocks show a local time."""

UNBOUNDED = frozenset({"infinity", "+infinity", "-infinity"})
"""Dates and timestamps of Postgres's that neither Spark nor Avro has: refused with 22008, as are years before 1."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
"""Python's own readers take more than Postgres does, ``1_0`` for one."""

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def read_bool(text: str) -> bool:
    """Any unique prefix of true, yes, on, 1 and their opposites."""
    word = text.strip().lower()
    if word and any(full.startswith(word) for full in _TRUE) and word != "o":
        return True
    if word and any(full.startswith(word) for full in _FALSE) and word != "o":
        return False
    raise bad_text("boolean", text)


# -- floats -----------------------------------------------------------------------------------------------------------


def read_float8(text: str) -> float:
    return _float(text, "double precision", float)


def read_float4(text: str) -> float:
    return _float(text, "real", _single)


def _single(value: str) -> float:
    try:
        return single(float(value))
    except InvalidUsage:
        return float("inf")


def _float(text: str, shown: str, read: Callable[[str], float]) -> float:
    value = text.strip()
    if NOT_FINITE.fullmatch(value):
        return float(value)
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
            raise bad_text("bytea", text) from error
    if re.sub(_ESCAPED, "", text).count("\\"):
        raise bad_text("bytea", text)
    return re.sub(_ESCAPED.encode(), _unescaped, text.encode())


_ESCAPED = r"\\(\\|[0-3][0-7]{2})"
"""A backslash, or a byte in octal."""


def _unescaped(found: re.Match[bytes]) -> bytes:
    return b"\\" if found[1] == b"\\" else bytes([int(found[1], 8)])


# -- times ------------------------------------------------------------------------------------------------------------

_FRACTION = re.compile(r"(:\d\d)(\.\d{7,})", re.ASCII)
"""More digits than Python reads."""

_DATE_AND_OFFSET = re.compile(r"(?<!\S)(\d{4}-\d\d-\d\d)\s*([+-]\d\d(?::?\d\d)?)$", re.ASCII)
"""Which Python takes for a time of day behind a separator."""

_OURS = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{8})(?:[ T]\d\d:?\d\d.*)?", re.ASCII)
"""Of what Python reads, what Postgres does too: no weeks, no hour without its minutes."""

_LIKE_A_TIME = re.compile(r"\d{4,}-\d\d-\d\d(?:[ T]+\d\d:[ \d:.+-]*)?( BC)?", re.ASCII | re.IGNORECASE)
"""What is of the form, and says what there is not: a 30th of February."""

_NAMED_ZONE = re.compile(r"(.*\d)\s+([A-Za-z]+(?:/[A-Za-z0-9_+-]+)+)\s*", re.ASCII)
"""A time and the name of a zone.  Abbreviations are not read: which offset one means is a setting in Postgres."""


def read_date(text: str) -> date:
    return _time(text, "date").date()


def read_timestamp(text: str) -> datetime:
    """What an offset says counts for nothing."""
    return _time(text, "timestamp without time zone").replace(tzinfo=None)


def read_moment(text: str, instant: Instant | None = None) -> datetime:
    """In UTC.  What names neither an offset nor a zone is UTC, or what ``instant`` makes of the local time."""
    named = _NAMED_ZONE.fullmatch(text)
    if named is None:
        return _moment(_time(text, "timestamp with time zone"), instant, text)
    zone = zone_named(named[2])
    if zone is None:
        raise BadText(f'time zone "{named[2].lower()}" not recognized', "22023")
    return _moment(_time(named[1], "timestamp with time zone"), lambda local: instant_of(local, zone), text)


def _moment(found: datetime, instant: Instant | None, text: str) -> datetime:
    try:
        if found.tzinfo:
            return found.astimezone(UTC)
        return (found if instant is None else instant(found)).replace(tzinfo=UTC)
    except OverflowError as error:
        raise _beyond(text) from error


def _time(text: str, shown: str) -> datetime:
    """What a date, a timestamp or a moment says, with a zone where it names an offset."""
    value = re.sub(r"\s+(utc|z)$", "+00:00", text.strip(), flags=re.I)
    value = _DATE_AND_OFFSET.sub(r"\1 00:00\2", value)
    value = re.sub(r"([+-]\d\d)$", r"\1:00", value) if re.search(r"\d:\d.*[+-]\d\d$", value) else value
    value, fraction = _FRACTION.sub(r"\1", value), _FRACTION.search(value)
    try:
        if _OURS.fullmatch(value) is None:
            raise ValueError
        found = datetime.fromisoformat(value)
        if fraction is not None and shown != "date":
            found += timedelta(microseconds=round(float(fraction[2]) * 1_000_000))  # as Postgres rounds it
    except OverflowError as error:
        raise _beyond(text) from error
    except ValueError as error:
        if text.strip().lower() in UNBOUNDED or _LIKE_A_TIME.fullmatch(value):
            raise _beyond(text) from error
        raise BadText(bad_text(shown, text).message, "22007") from error
    return found


def _beyond(text: str) -> BadText:
    return BadText(f'date/time field value out of range: "{cut_short(text)}"', "22008")


# -- as engines carry them --------------------------------------------------------------------------------------------

_EPOCH, _MICRO = datetime(1970, 1, 1), timedelta(microseconds=1)


def date_micros(text: str) -> int:
    """The beginning of a date in microseconds since 1970."""
    return (datetime.combine(read_date(text), datetime.min.time()) - _EPOCH) // _MICRO


def timestamp_micros(text: str) -> int:
    return (read_timestamp(text) - _EPOCH) // _MICRO


def moment_micros(text: str) -> int:
    return (read_moment(text).replace(tzinfo=None) - _EPOCH) // _MICRO
