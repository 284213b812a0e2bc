"""Parameters: what Bind sent, in text or binary, to Python values by type oid.

Pure.  A uuid, a jsonb and a time come as :mod:`values.types` carries them (text, text, microseconds since
midnight), an interval as :class:`values.time.intervals.Interval`, an array as a list.

Errors carry Postgres's SQLSTATEs: 22P02 (text that is not of the type), 22P03 (binary that is not), 22007 (dates and
times that are none), 22003 and 22008 (out of range), 22021 (text that is not UTF-8, or has a NUL), 08P01 (wrong number
of parameters).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from struct import Struct
from zoneinfo import ZoneInfo

from psycopg import adapters
from psycopg.adapt import Transformer
from psycopg.pq import Format

from adapter.encode import text_arrays
from adapter.encode.scalars import DAYS_TO_2000, MICROS_TO_2000
from journal.errors import InvalidUsage
from values.bad_text import BadText
from values.blanks import BLANKS
from values.numeric import numerics
from values.scalars import read_date, read_moment, read_timestamp
from values.text.arrays import read_array
from values.text.jsonb import read_jsonb
from values.text.uuids import hyphened, read_uuid
from values.time.clock import MICROS_PER_DAY, read_time
from values.time.interval_words import read_interval
from values.time.intervals import Interval
from values.time.zones import instant_of
from values.types import ARRAY_OID, OID, single

TEXT_LIKE = {25, 705, 1043, 19, 18, 2275, 114}
"""text, unknown, varchar, name, "char", cstring, json: UTF-8 text in both formats."""

ELEMENT_OID = {array: OID[name] for name, array in ARRAY_OID.items()}
"""The oid of an array's elements."""

NAMES = {
    16: "boolean", 17: "bytea", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 26: "oid", 700: "real",
    701: "double precision", 1042: "character", 1082: "date", 1083: "time", 1186: "interval",
    1114: "timestamp without time zone", 1184: "timestamp with time zone", 1700: "numeric", 2950: "uuid", 3802: "jsonb",
}  # fmt: skip
"""Type names for messages."""

_EPOCH = datetime(1970, 1, 1)
_RANGES = {20: 63, 21: 15, 23: 31}

_INTEGER = re.compile(rb"^\s*([+-]?\d+)\s*$")
_FLOAT = re.compile(r"^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)$", re.IGNORECASE | re.ASCII)


def _invalid(oid: int, shown: str) -> InvalidUsage:
    return InvalidUsage(f'invalid input syntax for type {NAMES.get(oid, oid)}: "{shown[:200]}"', sqlstate="22P02")


def _out_of_range(oid: int, shown: str, sqlstate: str = "22003") -> InvalidUsage:
    return InvalidUsage(f'value "{shown[:200]}" is out of range for type {NAMES.get(oid, oid)}', sqlstate=sqlstate)


def decode_text(raw: bytes) -> str:
    """UTF-8 text without NUL.  Raises 22021."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        shown = raw[e.start : e.start + 4].hex(" ")
        raise InvalidUsage(f'invalid byte sequence for encoding "UTF8": 0x{shown}', sqlstate="22021") from None
    if "\0" in text:
        raise InvalidUsage('invalid byte sequence for encoding "UTF8": 0x00', sqlstate="22021")
    return text


def _integer_text(oid: int) -> Callable[[bytes], int]:
    limit = 1 << _RANGES[oid]

    def decode(raw: bytes) -> int:
        match = _INTEGER.match(raw)
        if not match:
            raise _invalid(oid, raw.decode("utf-8", "replace"))
        if len(match[1]) > 40:  # int() of very long text is quadratic, and Python refuses it beyond 4300 digits
            raise _out_of_range(oid, match[1][:40].decode())
        value = int(match[1])
        if not -limit <= value < limit:
            raise _out_of_range(oid, str(value))
        return value

    return decode


def _oid_text(raw: bytes) -> int:
    match = _INTEGER.match(raw)
    if not match:
        raise _invalid(26, raw.decode("utf-8", "replace"))
    if len(match[1]) > 12 or not -(1 << 31) <= int(match[1]) < 1 << 32:
        raise _out_of_range(26, match[1][:40].decode())
    return int(match[1]) % (1 << 32)


def _bool_text(raw: bytes) -> bool:
    text = decode_text(raw).strip(BLANKS).lower()
    if text and ("true".startswith(text) or "yes".startswith(text) or text in ("on", "1")):
        return True
    if text and ("false".startswith(text) or "no".startswith(text) or text in ("of", "off", "0")):
        return False
    raise _invalid(16, text)


def _float_text(oid: int) -> Callable[[bytes], float]:
    largest, tiny = (3.4028235677973366e38, 0.7006492321624085e-45) if oid == 700 else (float("inf"), 0.0)

    def decode(raw: bytes) -> float:
        text = decode_text(raw).strip(BLANKS)
        if not _FLOAT.match(text):
            raise _invalid(oid, text)
        value = float(text)
        if "n" in text.lower():  # inf or nan, asked for by name
            return value
        mantissa = re.split("[eE]", text)[0]
        if abs(value) >= largest or (abs(value) <= tiny and mantissa.strip("+-0.")):
            raise _out_of_range(oid, text)
        return single(value) if oid == OID["float4"] else value

    return decode


def _numeric_text(text: str) -> Decimal:
    return Decimal(numerics.read(text))


def _bytea_text(raw: bytes) -> bytes:
    if raw.startswith(b"\\x"):
        try:
            return bytes.fromhex(raw[2:].decode("ascii"))
        except ValueError:
            raise _invalid(17, raw.decode("utf-8", "replace")) from None
    out, at = bytearray(), 0
    while at < len(raw):  # the old escape format
        if raw[at] != 0x5C:
            out.append(raw[at])
            at += 1
        elif raw[at + 1 : at + 2] == b"\\":
            out.append(0x5C)
            at += 2
        elif re.fullmatch(rb"[0-3][0-7]{2}", raw[at + 1 : at + 4]):
            out.append(int(raw[at + 1 : at + 4], 8))
            at += 4
        else:
            raise _invalid(17, raw.decode("utf-8", "replace"))
    return bytes(out)


def _moment_text(zone: str) -> Callable[[bytes], datetime]:
    """A text without an offset or a zone is a local time in ``zone``."""
    return _read(lambda text: read_moment(text, lambda local: instant_of(local, ZoneInfo(zone))))


def _read(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A text form of :mod:`collection`'s, with its errors told as the client's."""

    def decode(raw: bytes) -> object:
        try:
            return read(decode_text(raw))
        except BadText as error:
            raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None

    return decode


def _char(raw: bytes) -> str:
    """The blanks at the end of a ``char`` mean nothing, and are not kept."""
    return decode_text(raw).rstrip(" ")


def _uuid_binary(raw: bytes) -> str:
    return hyphened(raw.hex())


def _jsonb_binary(raw: bytes) -> str:
    if raw[:1] != b"\1":
        raise ValueError
    return _read(read_jsonb)(raw[1:])


def _time_binary(raw: bytes) -> int:
    micros = int.from_bytes(raw, "big", signed=True)
    if not 0 <= micros <= MICROS_PER_DAY:
        raise _out_of_range(1083, f"{micros} microseconds", "22008")
    return micros


_interval_struct = Struct("!qii")


def _interval_binary(raw: bytes) -> Interval:
    micros, days, months = _interval_struct.unpack(raw)
    return Interval(months, days, micros)


_ARRAY_HEAD, _ARRAY_BOUNDS = Struct("!iiI"), Struct("!ii")


def _array_text(oid: int, zone: str) -> Callable[[bytes], list]:
    element = _text_decoder(ELEMENT_OID[oid], zone)

    def decode(raw: bytes) -> list:
        texts = _read(read_array)(raw)
        return [None if each is None else element(each.encode()) for each in texts]

    return decode


def _array_binary(oid: int, number: int) -> Callable[[bytes], list]:
    """One dimension from 1 on, or none.  Other lengths than the bytes have are a ``ValueError``."""
    wanted = ELEMENT_OID[oid]

    def decode(raw: bytes) -> list:
        if len(raw) < 12:
            raise ValueError
        dimensions, _, element = _ARRAY_HEAD.unpack_from(raw)
        if element != wanted:
            raise InvalidUsage(f"wrong element type in array: {element} instead of {wanted}", sqlstate="42804")
        if dimensions == 0 and len(raw) == 12:
            return []
        if dimensions != 1 or len(raw) < 20:
            raise InvalidUsage("arrays of more than one dimension are not supported", sqlstate="0A000")
        count, lower = _ARRAY_BOUNDS.unpack_from(raw, 12)
        if lower != 1:
            raise InvalidUsage("arrays with a lower bound of their own are not supported", sqlstate="0A000")
        if not 0 <= count <= (len(raw) - 20) // 4:
            raise ValueError
        found: list[object] = []
        at = 20
        for _ in range(count):
            length = int.from_bytes(raw[at : at + 4], "big", signed=True)
            at += 4
            if length < -1 or at + max(length, 0) > len(raw):
                raise ValueError
            found.append(None if length < 0 else _decode_binary(wanted, raw[at : at + length], number))
            at += max(length, 0)
        if at != len(raw):
            raise ValueError
        return found

    return decode


_numeric_loader = Transformer(adapters).get_loader(1700, Format.BINARY)


def _numeric_binary(raw: bytes) -> Decimal:
    if len(raw) < 8 or len(raw) != 8 + 2 * int.from_bytes(raw[:2], "big"):
        raise ValueError
    if any(int.from_bytes(raw[at : at + 2], "big") > 9999 for at in range(8, len(raw), 2)):
        raise ValueError
    if len(raw) > 8 + 2 * 300:  # 1,200 digits; far beyond range, and not worth computing
        raise _out_of_range(1700, f"{len(raw)} bytes")
    return _numeric_loader.load(raw)


def _date_binary(raw: bytes) -> date:
    days = int.from_bytes(raw, "big", signed=True) + DAYS_TO_2000
    try:
        return date(1970, 1, 1) + timedelta(days=days)
    except OverflowError:
        raise _out_of_range(1082, f"{days} days", "22008") from None


def _timestamp_binary(oid: int) -> Callable[[bytes], datetime]:
    zone = UTC if oid == 1184 else None

    def decode(raw: bytes) -> datetime:
        micros = int.from_bytes(raw, "big", signed=True) + MICROS_TO_2000
        try:
            return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=zone)
        except OverflowError:
            raise _out_of_range(oid, f"{micros} microseconds", "22008") from None

    return decode


def _fixed(form: str) -> tuple[int, Callable[[bytes], object]]:
    struct = Struct(form)
    return struct.size, lambda raw: struct.unpack(raw)[0]


_BINARY: dict[int, tuple[int | None, Callable[[bytes], object]]] = {
    16: _fixed("!?"), 17: (None, bytes), 20: _fixed("!q"), 21: _fixed("!h"), 23: _fixed("!i"), 26: _fixed("!I"),
    700: _fixed("!f"), 701: _fixed("!d"), 1082: (4, _date_binary), 1114: (8, _timestamp_binary(1114)),
    1184: (8, _timestamp_binary(1184)), 1700: (None, _numeric_binary), 2950: (16, _uuid_binary),
    3802: (None, _jsonb_binary), 1042: (None, _char), 1083: (8, _time_binary), 1186: (16, _interval_binary),
    **{oid: (None, decode_text) for oid in TEXT_LIKE},
}  # fmt: skip
"""Oid to (exact length or ``None``, decoder)."""

_TEXT: dict[int, Callable[[bytes], object]] = {
    16: _bool_text, 17: _bytea_text, 20: _integer_text(20), 21: _integer_text(21), 23: _integer_text(23),
    26: _oid_text, 700: _float_text(700), 701: _float_text(701), 1082: _read(read_date), 1114: _read(read_timestamp),
    1700: _read(_numeric_text), 2950: _read(read_uuid), 3802: _read(read_jsonb), 1042: _char, 1083: _read(read_time),
    1186: _read(read_interval),
    **{oid: decode_text for oid in TEXT_LIKE},
}  # fmt: skip


def _known(oid: int) -> bool:
    return oid in _TEXT or oid == 1184 or oid in ELEMENT_OID


def _text_decoder(oid: int, zone: str) -> Callable[[bytes], object]:
    if oid in ELEMENT_OID:
        return _array_text(oid, zone)
    return _moment_text(zone) if oid == 1184 else _TEXT[oid]


def _decode_binary(oid: int, raw: bytes, number: int) -> object:
    size, decoder = (None, _array_binary(oid, number)) if oid in ELEMENT_OID else _BINARY[oid]
    if size is None or len(raw) == size:
        try:
            return decoder(raw)
        except ValueError:
            pass
    name = NAMES.get(oid, oid)
    raise InvalidUsage(
        f"incorrect binary data format in bind parameter {number}", sqlstate="22P03",
        detail=f"{len(raw)} bytes for a value of type {name}",
    )  # fmt: skip


def _array(oid: int, raw: bytes, number: int) -> str:
    try:
        return text_arrays.text(oid, raw)
    except ValueError as error:
        raise InvalidUsage(
            f"incorrect binary data format in bind parameter {number}", sqlstate="22P03", detail=str(error)
        ) from error


def decode_params(
    oids: Sequence[int], formats: Sequence[int], raw: Sequence[bytes | None], zone: str = "UTC"
) -> tuple[object | None, ...]:
    """The values of a Bind message.  ``formats``: none (all text), one for all, or one each."""
    if len(raw) != len(oids):
        raise InvalidUsage(
            f"bind message supplies {len(raw)} parameters, but prepared statement requires {len(oids)}",
            sqlstate="08P01",
        )
    values: list[object | None] = []
    for index, (oid, data) in enumerate(zip(oids, raw, strict=True)):
        code = formats[index] if len(formats) > 1 else formats[0] if formats else 0
        if data is None:
            values.append(None)
        elif oid in text_arrays.ELEMENTS and oid not in ELEMENT_OID:
            values.append(_array(oid, data, index + 1) if code else decode_text(data))
        elif not _known(oid):
            raise InvalidUsage(
                f"parameter ${index + 1} is of a type that is not supported (oid {oid})", sqlstate="0A000",
                hint="cast it in the statement, such as $1::text",
            )  # fmt: skip
        elif code:
            values.append(_decode_binary(oid, data, index + 1))
        else:
            values.append(_text_decoder(oid, zone)(data))
    return tuple(values)
