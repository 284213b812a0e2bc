"""Which files may hold a row that is asked for.  Pure.

Promises: a file of which this says that it holds none holds none; of one of which nothing is known it may.  A file is
judged by all its rows, whatever their diffs: one that is passed over takes its retractions with it, and these are of
rows that nobody asked for either.

What is asked is a conjunction: rows for which each predicate is true, so not those for which one is null.  A predicate
compares a column as its type's values compare; who has it compared as another type's (a ``varchar`` with a ``char``, an
``int8`` with a ``float8``) must not ask here.  A value that has no place in the type's order (a text beside a date)
tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from collection.columns import sql_type
from segments.model import Segment
from segments.statistics import BOUND_BYTES, ColumnStatistics, Probe, form_of, unpacked


class Op(StrEnum):
    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    IN = "in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


class Predicate(NamedTuple):
    """``column op value``; of :attr:`Op.IN` any of ``values``.  A value is as Python or Arrow has it, or ``None``.

    ``key`` and ``type`` are the column's (:func:`segments.statistics.column_keys`).
    """

    key: str
    type: str
    op: Op
    values: tuple[object, ...] = ()


def may_match(segment: Segment, asked: Iterable[Predicate]) -> bool:
    """Whether ``segment`` may hold a row for which all of ``asked`` are true."""
    known = unpacked(segment)
    return all(_may(known, segment.changes, each) for each in asked)


class SegmentIndex:
    """The statistics of many files by column, so that all are judged at once.

    A column's are read when it is first asked for, and take 19 bytes a file where its keys have 8, else 67.
    """

    def __init__(self, files: Sequence[Segment]) -> None:
        self.files = tuple(files)
        self._columns: dict[tuple[str, str], _Bounds] = {}

    def may_match(self, asked: Iterable[Predicate]) -> np.ndarray:
        """For each file whether it may hold a row for which all of ``asked`` are true.

        What it passes over :func:`may_match` does too; of keys with zeros at their end that one may pass over more.
        """
        found = np.ones(len(self.files), np.bool_)
        for each in asked:
            found &= self._bounds(each.key, each.type).may(each)
        return found

    def renewed(self, files: Sequence[Segment]) -> SegmentIndex:
        """Of ``files``; what is known of those that are here is not read again."""
        after = SegmentIndex(files)
        places = {each.path: n for n, each in enumerate(self.files)}
        kept = np.fromiter((places.get(each.path, -1) for each in after.files), np.int64, len(after.files))
        new = [each for each, place in zip(after.files, kept, strict=True) if place < 0]
        order = kept.copy()
        order[kept < 0] = np.arange(len(self.files), len(self.files) + len(new))
        for (key, kind), bounds in self._columns.items():
            after._columns[key, kind] = bounds.joined(_Bounds.of(new, key, kind)).taken(order)
        return after

    def _bounds(self, key: str, kind: str) -> _Bounds:
        found = self._columns.get((key, kind))
        if found is None:
            found = self._columns[key, kind] = _Bounds.of(self.files, key, kind)
        return found


# -- one file ---------------------------------------------------------------------------------------------------------


def _may(known: Mapping[str, ColumnStatistics], changes: int, asked: Predicate) -> bool:
    found = known.get(asked.key)
    if found is None or found.type != asked.type:
        return True
    if asked.op is Op.IS_NULL:
        return found.nulls > 0
    if found.nulls == changes or asked.op is Op.IS_NOT_NULL:
        return found.nulls < changes
    values = [each for each in asked.values if each is not None]
    if not values:
        return False
    probes = _probes(asked.type, values)
    if probes is None or found.lower is None:
        return True
    return any(_ONE[Op.EQUAL if asked.op is Op.IN else asked.op](found, each) for each in probes)


def _probes(kind: str, values: Iterable[object]) -> list[Probe] | None:
    """``None`` where one of ``values`` could be anywhere."""
    form = form_of(sql_type(kind))
    if form is None:
        return None
    probes = []
    for value in values:
        probe = form.probe(value)
        if probe is None:
            return None
        probes.append(probe)
    return probes


def _all_greater(found: ColumnStatistics, key: bytes) -> bool:
    return found.lower > key


def _all_less(found: ColumnStatistics, key: bytes) -> bool:
    return found.upper < key and not (found.is_cut and key.startswith(found.upper))


def _none_less(found: ColumnStatistics, asked: Probe) -> bool:
    return found.lower > asked.upper or (asked.exact and found.lower == asked.upper)


def _none_greater(found: ColumnStatistics, asked: Probe) -> bool:
    return _all_less(found, asked.lower) or (asked.exact and not found.is_cut and found.upper == asked.lower)


_ONE: dict[Op, Callable[[ColumnStatistics, Probe], bool]] = {
    Op.EQUAL: lambda found, asked: not (_all_greater(found, asked.upper) or _all_less(found, asked.lower)),
    Op.LESS: lambda found, asked: not _none_less(found, asked),
    Op.AT_MOST: lambda found, asked: not _all_greater(found, asked.upper),
    Op.GREATER: lambda found, asked: not _none_greater(found, asked),
    Op.AT_LEAST: lambda found, asked: not _all_less(found, asked.lower),
}


# -- many files -------------------------------------------------------------------------------------------------------

_UNKNOWN, _NULLS, _VALUES, _BOUNDED = (np.uint8(1 << n) for n in range(4))
"""Of a file: nothing is known; there are nulls; there are values; their bounds are known."""


class _Bounds(NamedTuple):
    """One column of all files.  A bound is cut or filled with zeros to one width, and its true length stands beside it:
    of two keys the less is never filled to more, and what is equal and as long is equal."""

    flags: np.ndarray
    lower: np.ndarray
    lower_len: np.ndarray
    upper: np.ndarray
    upper_len: np.ndarray

    @classmethod
    def of(cls, files: Sequence[Segment], key: str, kind: str) -> _Bounds:
        form = form_of(sql_type(kind))
        width = BOUND_BYTES if form is None or form.width != 8 else 8
        flags = np.full(len(files), _UNKNOWN, np.uint8)
        bounds: tuple[list[bytes], list[bytes]] = [b""] * len(files), [b""] * len(files)
        for n, each in enumerate(files):
            found = unpacked(each).get(key)
            if found is None or found.type != kind:
                continue
            flags[n] = (_NULLS if found.nulls else 0) | (_VALUES if found.nulls < each.changes else 0)
            if found.lower is not None and found.upper is not None:
                flags[n] |= _BOUNDED
                bounds[0][n], bounds[1][n] = found.lower, found.upper
        (lower, lower_len), (upper, upper_len) = (_filled(each, width) for each in bounds)
        return cls(flags, lower, lower_len, upper, upper_len)

    def may(self, asked: Predicate) -> np.ndarray:
        unknown = (self.flags & _UNKNOWN) > 0
        if asked.op is Op.IS_NULL:
            return unknown | ((self.flags & _NULLS) > 0)
        may = unknown | ((self.flags & _VALUES) > 0)
        if asked.op is Op.IS_NOT_NULL:
            return may
        values = [each for each in asked.values if each is not None]
        if not values:
            return unknown
        probes = _probes(asked.type, values)
        if probes is None:
            return may
        return may & (((self.flags & _BOUNDED) == 0) | self._compared(asked.op, probes))

    def _compared(self, op: Op, probes: Sequence[Probe]) -> np.ndarray:
        width = 8 if self.lower.dtype == np.uint64 else BOUND_BYTES
        lowers, lower_len = _filled([each.lower for each in probes], width)
        uppers, upper_len = _filled([each.upper for each in probes], width)
        if op in (Op.EQUAL, Op.IN):
            # Of these the ones that begin above the least value, or at it, less the ones that end below it.
            return np.searchsorted(np.sort(lowers), self.upper, "right") > np.searchsorted(np.sort(uppers), self.lower)
        [asked] = probes
        if op is Op.AT_MOST:
            return ~(self.lower > uppers[0])
        if op is Op.AT_LEAST:
            return ~(self.upper < lowers[0])
        if op is Op.LESS:
            same = (self.lower == uppers[0]) & (self.lower_len == upper_len[0])
            return ~((self.lower > uppers[0]) | (same & asked.exact))
        same = (self.upper == lowers[0]) & (self.upper_len == lower_len[0]) & (self.upper_len < BOUND_BYTES)
        return ~((self.upper < lowers[0]) | (same & asked.exact))

    def joined(self, other: _Bounds) -> _Bounds:
        return _Bounds(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def taken(self, places: np.ndarray) -> _Bounds:
        return _Bounds(*(each[places] for each in self))


def _filled(keys: Sequence[bytes], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys of one width, and how long they were: at most one more than a bound may be."""
    lengths = np.fromiter((min(len(each), BOUND_BYTES + 1) for each in keys), np.uint8, len(keys))
    if width == 8:
        data = b"".join(each[:8].ljust(8, b"\0") for each in keys)
        return np.frombuffer(data, ">u8").astype(np.uint64), lengths
    return np.array([each[:width] for each in keys], f"S{width}"), lengths
