"""Parameters: what Bind sent, in text or binary, to Python values by type oid.

Pure.  A value comes as the row of its type reads it (:mod:`values.datatypes.row`), an array as a list.

Errors carry Postgres's SQLSTATEs: 22P02 (text that is not of the type), 22P03 (binary that is not), 22007 (dates and
times that are none), 22003 and 22008 (out of range), 22021 (text that is not UTF-8, or has a NUL), 08P01 (wrong number
of parameters).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from struct import Struct
from typing import NoReturn
from zoneinfo import ZoneInfo

from adapter.encode import text_arrays
from journal.errors import InvalidUsage
from values.bad_text import BadText, bad_text, cut_short
from values.datatypes.registry import BY_OID
from values.scalars import read_moment
from values.text.arrays import read_array
from values.time.zones import instant_of
from values.types import ARRAYS, OID
from values.wire import packed, receive_text

TEXT_LIKE = {705, 19, 18, 2275, 114}
"""unknown, name, "char", cstring, json: UTF-8 text in both formats, beside the types that a column can have."""

_OID = 26

_NUMBERED = {_OID, 28, 29}
"""oid, xid, cid."""

_REGISTERED = {24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096}
"""regproc, regclass and their kin: a name or a number in text, an oid in binary."""

_MOMENT = OID["timestamptz"]

REMEMBERED_MAX = 64
"""Parameters up to which a statement's decoders are kept for its next execution: some 10 KiB, of 1,024 statements."""

_INTEGER = re.compile(r"\s*([+-]?\d+)\s*", re.ASCII)


def _told(read: Callable) -> Callable:
    """``read``, with what it raises of a value told as the client's."""

    def decode(given: object) -> object:
        try:
            return read(given)
        except BadText as error:
            raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None

    return decode


decode_text = _told(receive_text)
"""UTF-8 text without NUL.  Raises 22021."""


def _of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return _told(lambda raw: read(receive_text(raw)))


def _read_oid(text: str) -> int:
    match = _INTEGER.fullmatch(text)
    if not match:
        raise bad_text("oid", text)
    if len(match[1]) > 12 or not -(1 << 31) <= int(match[1]) < 1 << 32:
        raise BadText(f'value "{cut_short(match[1])}" is out of range for type oid', "22003")
    return int(match[1]) % (1 << 32)


def _moment_text(zone: str) -> Callable[[bytes], datetime]:
    """A text without an offset or a zone is a local time in ``zone``."""
    return _of_text(lambda text: read_moment(text, lambda local: instant_of(local, ZoneInfo(zone))))


_ARRAY_HEAD, _ARRAY_BOUNDS = Struct("!iiI"), Struct("!ii")


def _array_text(oid: int, zone: str) -> Callable[[bytes], list]:
    element = _text_decoder(ARRAYS[oid].oid, zone)

    def decode(raw: bytes) -> list:
        texts = _of_text(read_array)(raw)
        return [None if each is None else element(each.encode()) for each in texts]

    return decode


def _array_binary(oid: int, number: int) -> Callable[[bytes], list]:
    """One dimension from 1 on, or none.  Other lengths than the bytes have are a ``ValueError``."""
    wanted = ARRAYS[oid].oid

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
            found.append(None if length < 0 else _decode_binary(wanted, number, raw[at : at + length]))
            at += max(length, 0)
        if at != len(raw):
            raise ValueError
        return found

    return decode


_BINARY: dict[int, tuple[int, Callable[[bytes], object]]] = {
    **{oid: (row.length, _told(row.receive)) for oid, row in BY_OID.items()},
    **dict.fromkeys(_NUMBERED, (4, packed("I")[0])),
    **dict.fromkeys(_REGISTERED, (4, lambda raw: str(packed("I")[0](raw)))),
    **{oid: (-1, decode_text) for oid in TEXT_LIKE},
}
"""Oid to (exact length or -1, decoder)."""

_TEXT: dict[int, Callable[[bytes], object]] = {
    **{oid: _of_text(row.read) for oid, row in BY_OID.items()},
    **dict.fromkeys(_NUMBERED, _of_text(_read_oid)),
    **dict.fromkeys(_REGISTERED, decode_text),
    **{oid: decode_text for oid in TEXT_LIKE},
}


def _known(oid: int) -> bool:
    return oid in _TEXT or oid in ARRAYS


def _text_decoder(oid: int, zone: str) -> Callable[[bytes], object]:
    if oid in ARRAYS:
        return _array_text(oid, zone)
    return _moment_text(zone) if oid == _MOMENT else _TEXT[oid]


def _decode_binary(oid: int, number: int, raw: bytes) -> object:
    size, decoder = (-1, _array_binary(oid, number)) if oid in ARRAYS else _BINARY[oid]
    if size < 0 or len(raw) == size:
        try:
            return decoder(raw)
        except ValueError:
            pass
    name = "oid" if oid in _NUMBERED else BY_OID[oid].shown if oid in BY_OID else oid
    raise InvalidUsage(
        f"incorrect binary data format in bind parameter {number}", sqlstate="22P03",
        detail=f"{len(raw)} bytes for a value of type {name}",
    )  # fmt: skip


def decode_binary(oid: int, raw: bytes) -> object:
    """A value that is no parameter's, but a field's of a row that is copied.  22P03."""
    try:
        return _decode_binary(oid, 0, raw)
    except InvalidUsage as error:
        if error.sqlstate == "22P03":
            raise InvalidUsage("incorrect binary data format", sqlstate="22P03", detail=error.detail) from None
        raise


def _array(oid: int, number: int, raw: bytes) -> str:
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
    if not raw:
        return ()
    remembers = len(oids) <= REMEMBERED_MAX
    decoders = (_decoders if remembers else _decoders.__wrapped__)(tuple(oids), tuple(formats), zone)
    return tuple([None if data is None else decode(data) for decode, data in zip(decoders, raw, strict=True)])


@lru_cache(maxsize=1024)
def _decoders(oids: tuple[int, ...], formats: tuple[int, ...], zone: str) -> list[Callable[[bytes], object]]:
    codes = formats if len(formats) > 1 else (formats[0] if formats else 0,) * len(oids)
    return [_decoder(oid, code, number, zone) for number, (oid, code) in enumerate(zip(oids, codes, strict=True), 1)]


def _decoder(oid: int, code: int, number: int, zone: str) -> Callable[[bytes], object]:
    """Reads parameter ``number``; one that is NULL may be of a type that nobody reads."""
    if oid in text_arrays.ELEMENTS and oid not in ARRAYS:
        return partial(_array, oid, number) if code else decode_text
    if not _known(oid):
        return partial(_not_read, oid, number)
    return partial(_decode_binary, oid, number) if code else _text_decoder(oid, zone)


def _not_read(oid: int, number: int, _raw: bytes) -> NoReturn:
    raise InvalidUsage(
        f"parameter ${number} is of a type that is not supported (oid {oid})", sqlstate="0A000",
        hint="cast it in the statement, such as $1::text",
    )  # fmt: skip
