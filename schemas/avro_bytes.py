"""Values in Avro's binary form, for who writes many of one kind.  Pure.

Promises: the bytes that fastavro gives (tested beside it).  It looks up a schema, and in a union its branches, for each
value, and so takes three to four times as long for rows of a few columns as who goes column by column.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

NULL, SOME = b"\0", b"\2"
"""Before a value of a union of null and one type, which of the two it is; a null is nothing more."""

FALSE, TRUE = b"\0", b"\1"

_GROUPS = 1 << 14
_LAST = [bytes((n,)) if n < 128 else bytes((n & 127 | 128, n >> 7)) for n in range(_GROUPS)]
"""Whole numbers of up to fourteen bits, seven to a byte."""
_MORE = [bytes((n & 127 | 128, n >> 7 | 128)) for n in range(_GROUPS)]
"""The same where more is to come."""

double = struct.Struct("<d").pack
single = struct.Struct("<f").pack


def long(value: int) -> bytes:
    """An ``int`` or a ``long``: of up to 64 bits, the smallest ones as the shortest."""
    left = value << 1 ^ value >> 63
    if left < _GROUPS:
        return _LAST[left]
    found = b""
    while left >= _GROUPS:
        found += _MORE[left & _GROUPS - 1]
        left >>= 14
    return found + _LAST[left]


def sized(value: bytes) -> bytes:
    """``bytes``."""
    return long(len(value)) + value


def text(value: str) -> bytes:
    """A ``string``."""
    return sized(value.encode())


def number(unscaled: int) -> bytes:
    """A ``decimal`` over bytes, of its digits without their point."""
    return sized(unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True))


def items(values: Sequence[bytes]) -> bytes:
    """An ``array``."""
    return long(len(values)) + b"".join(values) + NULL if values else NULL
