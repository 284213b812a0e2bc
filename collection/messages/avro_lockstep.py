"""Many values of one Avro schema, field after field of all of them at once.  Pure.

Promises: what :class:`Lockstep` gives is what fastavro reads of each value by that schema, as Arrow has it, or nothing:
where one of them is no value, is longer or shorter than it says, or has a number of more than nine bytes, whoever asked
goes value by value.

Where a message begins is known, so the numbers that are first in each of two thousand are found by a few steps of
numpy's, then where the next field begins in each, and so on: fastavro takes 2.2 µs for a message of five fields, and
what it gives has to be made columns still.  Records, what may be null, and what is neither list, map, enum nor fixed
are read so; of any other schema there is no :func:`lockstep`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from collection.gathered import taken

LONG_BYTES_MAX = 9
"""Of a number that is read so: 62 bits and a sign.  A tenth byte may have bits that are none of it."""

_PAD = bytes(16)
"""Behind the last message: what it says may be past its end is read before that is noticed."""


class Found(NamedTuple):
    """Of a type, the value of each message that has one there."""

    array: pa.Array | None
    """``None`` of a record."""
    fields: Mapping[str, Found]
    """Of a record."""
    there: np.ndarray | None
    """Which messages have a value, of those asked; ``None``: all.  ``array`` has null for the others, and ``fields``
    are of those alone that have one."""


class _Doubt(Exception):
    """One of them may be no value."""


class _Cursor:
    """Where each message is read at."""

    def __init__(self, data: np.ndarray, at: np.ndarray, ends: np.ndarray) -> None:
        self.data, self.at, self.ends = data, at, ends

    def skip(self, sizes: np.ndarray | int) -> None:
        self.at = self.at + sizes
        if (self.at > self.ends).any():
            raise _Doubt

    def byte(self) -> np.ndarray:
        found = self.data[self.at]
        self.skip(1)
        return found

    def long(self) -> np.ndarray:
        first = self.data[self.at]
        bits = (first & 0x7F).astype(np.int64)
        left = np.flatnonzero(first & 0x80)
        sizes = np.ones(len(first), np.int64)
        at = self.at
        for n in range(1, LONG_BYTES_MAX + 1):
            if not len(left):
                break
            if n == LONG_BYTES_MAX:
                raise _Doubt
            places = at[left] + n
            if (places >= self.ends[left]).any():
                raise _Doubt
            more = self.data[places]
            bits[left] |= (more & 0x7F).astype(np.int64) << 7 * n
            sizes[left] += 1
            left = left[(more & 0x80) != 0]
        self.skip(sizes)
        return (bits >> 1) ^ -(bits & 1)

    def part(self, which: np.ndarray) -> _Cursor:
        return _Cursor(self.data, self.at[which], self.ends[which])


Read = Callable[[_Cursor], Found]


class Lockstep:
    def __init__(self, read: Read) -> None:
        self._read = read

    def of(self, values: Sequence[bytes], begin: int = 0) -> Found | None:
        """The values in ``values``, one at least, each from ``begin`` on."""
        ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) + begin
        cursor = _Cursor(np.frombuffer(b"".join([*values, _PAD]), np.uint8), starts, ends)
        try:
            cursor.skip(0)
            found = self._read(cursor)
        except (_Doubt, pa.ArrowException):
            return None
        return found if np.array_equal(cursor.at, ends) else None


def lockstep(tree: object, wanted: Sequence[str], member: str = "") -> Lockstep | None:
    """What reads values of a record's schema ``tree`` (:class:`schemas.avro_messages.Schema`), or of its field
    ``member`` if that is any, for their fields ``wanted``: others are passed over."""
    if not isinstance(tree, dict) or tree["type"] != "record":
        return None
    if member:
        read = _record(tree, lambda name: _any(_type(tree, name), frozenset(wanted) if name == member else frozenset()))
    else:
        read = _record(tree, lambda name: _any(_type(tree, name), None if name in wanted else frozenset()))
    return None if read is None else Lockstep(read)


def _type(tree: Mapping[str, object], name: str) -> object:
    return next(each["type"] for each in tree["fields"] if each["name"] == name)


def _any(tree: object, wanted: frozenset[str] | None) -> Read | None:
    """``wanted``: the fields of a record that are asked for; none of them, and no value; ``None``: the value is."""
    if isinstance(tree, list):
        return _union(tree, wanted)
    kind = tree["type"]
    if kind == "record":
        fields = wanted or frozenset()
        return _record(tree, lambda name: _any(_type(tree, name), None if name in fields else frozenset()))
    made = _KINDS.get(kind)
    return None if made is None else made(wanted is None)


def _record(tree: Mapping[str, object], of: Callable[[str], Read | None]) -> Read | None:
    names = [each["name"] for each in tree["fields"]]
    reads = [of(name) for name in names]
    if not names or any(each is None for each in reads):
        return None

    def read(cursor: _Cursor) -> Found:
        return Found(None, {name: each(cursor) for name, each in zip(names, reads, strict=True)}, None)

    return read


def _union(tree: Sequence[object], wanted: frozenset[str] | None) -> Read | None:
    kinds = [each["type"] for each in tree]
    if len(tree) != 2 or kinds.count("null") != 1:
        return None
    null = kinds.index("null")
    one = _any(tree[1 - null], wanted)
    if one is None:
        return None

    def read(cursor: _Cursor) -> Found:
        branch = cursor.byte()
        if ((branch != 0) & (branch != 2)).any():
            raise _Doubt
        there = branch == 2 * (1 - null)
        if there.all():
            return one(cursor)
        which = np.flatnonzero(there)
        part = cursor.part(which)
        array, fields, inner = one(part)
        assert inner is None, "no union is in a union"
        at = cursor.at.copy()
        at[which] = part.at
        cursor.at = at
        if array is not None:
            places = np.cumsum(there) - 1
            array = array.take(pa.array(places, pa.int64(), mask=~there))
        return Found(array, fields, there)

    return read


_NOTHING = Found(None, {}, None)


def _longs(wanted: bool) -> Read:
    def read(cursor: _Cursor) -> Found:
        found = cursor.long()
        return Found(pa.array(found), {}, None) if wanted else _NOTHING

    return read


def _truths(wanted: bool) -> Read:
    def read(cursor: _Cursor) -> Found:
        found = cursor.byte()
        if (found > 1).any():
            raise _Doubt
        return Found(pa.array(found == 1), {}, None) if wanted else _NOTHING

    return read


def _fixed(kind: str) -> Callable[[bool], Read]:
    width = np.dtype(kind).itemsize

    def made(wanted: bool) -> Read:
        def read(cursor: _Cursor) -> Found:
            at = cursor.at
            cursor.skip(width)
            if not wanted:
                return _NOTHING
            raw = cursor.data[at[:, None] + np.arange(width)]
            # As Python has a single, too: what has no number has other bits then.
            return Found(pa.array(raw.view(kind).reshape(-1).astype(np.float64)), {}, None)

        return read

    return made


def _sized(kind: pa.DataType) -> Callable[[bool], Read]:
    def made(wanted: bool) -> Read:
        def read(cursor: _Cursor) -> Found:
            sizes = cursor.long()
            if (sizes < 0).any() or (sizes > cursor.ends - cursor.at).any():
                raise _Doubt
            at = cursor.at
            cursor.skip(sizes)
            if not wanted and kind != pa.string():
                return _NOTHING
            bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            if bounds[-1] > np.iinfo(np.int32).max:
                raise _Doubt
            data = taken(cursor.data, at, sizes)
            buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
            found = pa.Array.from_buffers(kind, len(sizes), buffers)
            if kind == pa.string():
                found.validate(full=True)  # also of what nobody wants: who reads one by one would not take it
            return Found(found, {}, None) if wanted else _NOTHING

        return read

    return made


_KINDS: Mapping[str, Callable[[bool], Read]] = {
    "int": _longs, "long": _longs, "boolean": _truths, "float": _fixed("<f4"), "double": _fixed("<f8"),
    "string": _sized(pa.string()), "bytes": _sized(pa.binary()),
}  # fmt: skip
