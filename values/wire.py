"""Values in Postgres's binary formats (the ``…send`` and ``…recv`` functions of its source), one at a time.  Pure.

What is read is a value as Python has it, what is written one as Arrow holds it: days or microseconds since 1970, an
interval as a dictionary of its parts.  Bytes that are no value are a ``ValueError``, values out of range ``BadText``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from struct import Struct

from values.bad_text import BadText
from values.text.jsonb import read_jsonb
from values.text.uuids import hyphened
from values.time.clock import MICROS_PER_DAY
from values.time.intervals import Interval

DAYS_TO_2000 = 10_957
"""Days from 1970-01-01, Arrow's epoch, to 2000-01-01, Postgres's."""

MICROS_TO_2000 = DAYS_TO_2000 * 86_400_000_000

_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1)
_INTERVAL = Struct("!qii")

Send = Callable[[object], bytes]
Receive = Callable[[bytes], object]


def packed(form: str) -> tuple[Receive, Send]:
    """How a number of a fixed width is read and written; ``form`` as :mod:`struct` has it."""
    struct = Struct(f"!{form}")
    return lambda raw: struct.unpack(raw)[0], struct.pack


# -- texts and bytes --------------------------------------------------------------------------------------------------


def send_text(value: str) -> bytes:
    return value.encode()


def receive_text(raw: bytes) -> str:
    """UTF-8 text without NUL.  Raises ``BadText`` 22021."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        shown = raw[e.start : e.start + 4].hex(" ")
        raise BadText(f'invalid byte sequence for encoding "UTF8": 0x{shown}', "22021") from None
    if "\0" in text:
        raise BadText('invalid byte sequence for encoding "UTF8": 0x00', "22021")
    return text


def receive_char(raw: bytes) -> str:
    """The blanks at the end of a ``char`` mean nothing, and are not kept."""
    return receive_text(raw).rstrip(" ")


def send_uuid(value: str) -> bytes:
    return bytes.fromhex(value.replace("-", ""))


def receive_uuid(raw: bytes) -> str:
    return hyphened(raw.hex())


def send_jsonb(value: str) -> bytes:
    return b"\1" + value.encode()


def receive_jsonb(raw: bytes) -> str:
    if raw[:1] != b"\1":
        raise ValueError
    return read_jsonb(receive_text(raw[1:]))


# -- times ------------------------------------------------------------------------------------------------------------


def _since_2000(form: str, epoch: int, what: str) -> Send:
    struct = Struct(f"!{form}")
    lowest = -(1 << (8 * struct.size - 1))

    def send(value: int) -> bytes:
        if value - epoch < lowest:
            raise BadText(f"{what} out of range", "22008")
        return struct.pack(value - epoch)

    return send


send_date = _since_2000("i", DAYS_TO_2000, "date")
send_timestamp = _since_2000("q", MICROS_TO_2000, "timestamp")


def receive_date(raw: bytes) -> date:
    days = int.from_bytes(raw, "big", signed=True) + DAYS_TO_2000
    try:
        return _EPOCH_DAY + timedelta(days=days)
    except OverflowError:
        raise BadText(f'value "{days} days" is out of range for type date', "22008") from None


def receive_timestamp(raw: bytes) -> datetime:
    return _moment(raw, None, "timestamp without time zone")


def receive_timestamptz(raw: bytes) -> datetime:
    return _moment(raw, UTC, "timestamp with time zone")


def _moment(raw: bytes, zone: tzinfo | None, shown: str) -> datetime:
    micros = int.from_bytes(raw, "big", signed=True) + MICROS_TO_2000
    try:
        return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=zone)
    except OverflowError:
        raise BadText(f'value "{micros} microseconds" is out of range for type {shown}', "22008") from None


def receive_time(raw: bytes) -> int:
    micros = int.from_bytes(raw, "big", signed=True)
    if not 0 <= micros <= MICROS_PER_DAY:
        raise BadText(f'value "{micros} microseconds" is out of range for type time', "22008")
    return micros


def send_interval(value: dict[str, int]) -> bytes:
    return _INTERVAL.pack(value["micros"], value["days"], value["months"])


def receive_interval(raw: bytes) -> Interval:
    micros, days, months = _INTERVAL.unpack(raw)
    return Interval(months, days, micros)
