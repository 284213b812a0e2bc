"""Arrays and vectors that catalog relations hold, which arrive in Postgres's text form: in binary for who asks for it.

Pure.  asyncpg reads everything in binary, and pgjdbc a statement from its fifth run on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct

_I2, _I4, _I8, _U4, _F4, _F8 = (Struct(f"!{c}").pack for c in "hiqIfd")

ELEMENTS: dict[int, tuple[int, Callable[[str], bytes]]] = {
    1000: (16, lambda text: b"\1" if text == "t" else b"\0"),
    1002: (18, str.encode),
    1003: (19, str.encode),
    1005: (21, lambda text: _I2(int(text))),
    1007: (23, lambda text: _I4(int(text))),
    1009: (25, str.encode),
    1015: (1043, str.encode),
    1021: (700, lambda text: _F4(float(text))),
    1022: (701, lambda text: _F8(float(text))),
    1016: (20, lambda text: _I8(int(text))),
    1028: (26, lambda text: _U4(int(text))),
    22: (21, lambda text: _I2(int(text))),
    30: (26, lambda text: _U4(int(text))),
}
"""Oid of an array (or, 22 and 30, of int2vector and oidvector) to its element's oid and encoder."""

VECTORS = frozenset({22, 30})
"""Their text is separated by spaces, and their first subscript is 0."""

_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}]+)')


def items(text: str) -> list[str | None]:
    """The elements of a one-dimensional array's text form: ``{a,"b c",NULL}``."""
    return [
        re.sub(r"\\(.)", r"\1", quoted) if not plain else None if plain.upper() == "NULL" else plain
        for quoted, plain in _ITEM.findall(text[1:-1])
    ]


_DECODE: dict[int, Callable[[bytes], str]] = {
    16: lambda raw: "t" if raw == b"\1" else "f",
    **dict.fromkeys((18, 19, 25, 1043), bytes.decode),
    26: lambda raw: str(int.from_bytes(raw, "big")),
    **dict.fromkeys((20, 21, 23), lambda raw: str(int.from_bytes(raw, "big", signed=True))),
}


def text(oid: int, raw: bytes) -> str:
    """The text form of a one-dimensional array of type ``oid`` that came in binary.  Raises ``ValueError``."""
    if len(raw) < 12 or int.from_bytes(raw[:4], "big") not in (0, 1):
        raise ValueError("not a one-dimensional array")
    element = int.from_bytes(raw[8:12], "big")
    if element != ELEMENTS[oid][0] or element not in _DECODE:
        raise ValueError(f"elements of type {element} in an array of type {oid}")
    found, at = [], 20
    while at + 4 <= len(raw):
        length = int.from_bytes(raw[at : at + 4], "big", signed=True)
        at += 4
        if length < 0:
            found.append("NULL")
            continue
        if at + length > len(raw):
            raise ValueError("cut short")
        value = _DECODE[element](raw[at : at + length])
        found.append('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"')
        at += length
    return "{" + ",".join(found) + "}"


def binary(oid: int) -> Callable[[str], bytes]:
    """How a value of array type ``oid`` is written in binary, from its text."""
    element, encode = ELEMENTS[oid]
    lower = 0 if oid in VECTORS else 1

    def write(text: str) -> bytes:
        found = text.split() if oid in VECTORS else items(text)
        head = _I4(1 if found else 0) + _I4(int(None in found)) + _U4(element)
        if not found:
            return head
        parts = [head, _I4(len(found)), _I4(lower)]
        for each in found:
            data = None if each is None else encode(each)
            parts.append(_I4(-1) if data is None else _I4(len(data)) + data)
        return b"".join(parts)

    return write
