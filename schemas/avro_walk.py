"""Where a value of Avro ends, by the schema that it was written with.  Pure.

Promises: :func:`walk` raises :class:`BadValue` or ``IndexError`` for bytes that are no value, and reads all that is.

fastavro, which gives the values, takes more than there is: a negative branch of a union or symbol of an enum is counted
from the end, a number of more than 64 bits loses those, and what is passed over because the reader has no such field
may be longer than the message.  Each of them would be a row that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Walk = Callable[[bytes, int], int]
"""From where a value begins to where it ends; that may be behind the bytes' own end by no more than a fixed size."""

LONG_BYTES_MAX = 10
"""Of a number of 64 bits, seven in each; the last has one."""


class BadValue(ValueError):
    """The text says what is wrong with it."""


def walk(tree: Any) -> Walk:
    """``tree``: as of :class:`schemas.avro_messages.Schema`."""
    return _Walks().of(tree)


class _Walks:
    """Of each named type once, wherever it is used: what is small may name itself out."""

    def __init__(self) -> None:
        self._named: dict[str, Walk] = {}

    def of(self, tree: Any) -> Walk:
        if isinstance(tree, list):
            return _union([self.of(each) for each in tree])
        kind = tree["type"]
        if kind == "record":
            found = self._named.get(tree["name"])
            if found is None:
                found = self._named[tree["name"]] = _record([self.of(each["type"]) for each in tree["fields"]])
            return found
        if kind == "array":
            return _items(self.of(tree["items"]))
        if kind == "map":
            return _items(_record([_sized, self.of(tree["values"])]))
        return _enum(tree) if kind == "enum" else _wide(tree["size"]) if kind == "fixed" else _KINDS[kind]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """And where it ends."""
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    bits, shift, begin = byte & 0x7F, 7, at
    while byte & 0x80:
        at += 1
        byte = data[at]
        bits |= (byte & 0x7F) << shift
        shift += 7
        if at - begin == LONG_BYTES_MAX - 1 and byte > 1:
            raise BadValue("a number of more than 64 bits")
    return bits >> 1 ^ -(bits & 1), at + 1


def _long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < 0x80 else _number(data, at)[1]


def _sized(data: bytes, at: int) -> int:
    size, at = _number(data, at)
    if not 0 <= size <= len(data) - at:
        raise BadValue(f"{size} bytes where {len(data) - at} are left")
    return at + size


def _wide(size: int) -> Walk:
    return lambda _, at: at + size


def _union(branches: Sequence[Walk]) -> Walk:
    def read(data: bytes, at: int) -> int:
        branch, at = _number(data, at)
        if not 0 <= branch < len(branches):
            raise BadValue(f"branch {branch} of a union of {len(branches)}")
        return branches[branch](data, at)

    return read


def _enum(tree: Mapping[str, Any]) -> Walk:
    count = len(tree["symbols"])

    def read(data: bytes, at: int) -> int:
        symbol, at = _number(data, at)
        if not 0 <= symbol < count:
            raise BadValue(f"symbol {symbol} of an enum of {count}")
        return at

    return read


def _record(fields: Sequence[Walk]) -> Walk:
    def read(data: bytes, at: int) -> int:
        for field in fields:
            at = field(data, at)
        return at

    return read


def _items(item: Walk) -> Walk:
    """Blocks of items, each after how many it has; below 0, so many the other way and then its bytes."""

    def read(data: bytes, at: int) -> int:
        while True:
            count, at = _number(data, at)
            if not count:
                return at
            end = None
            if count < 0:
                size, at = _number(data, at)
                end = at + size
            for _ in range(abs(count)):
                at = item(data, at)
                if at > len(data):  # of a fixed size alone: others have noticed
                    raise BadValue("items where no bytes are left")
            if end is not None and at != end:
                raise BadValue("a block that has other bytes than it says")

    return read


_KINDS: Mapping[str, Walk] = {
    "null": _wide(0), "boolean": _wide(1), "int": _long, "long": _long, "float": _wide(4), "double": _wide(8),
    "string": _sized, "bytes": _sized,
}  # fmt: skip
