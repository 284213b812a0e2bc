"""Rows as Avro's bytes, all rows of a column at a time: as fastavro writes them one by one, many times as fast.  Pure.

Promises: :func:`woven` gives the bytes that fastavro gives for the same changes (:mod:`collection.rows`), row after
row, or ``None`` for columns of a type that it does not know: arrays and intervals, and decimals beyond eight bytes.

Each column is a few *strands*: for every row some bytes, none in many.  They are written out beside each other, one
strand after the other, at the places where each row has them.  Most columns have no NULL, and numbers of a few bytes:
what is done for each byte that there might be, and for each row that might have none, took two thirds of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from collection.columns import one_array
from collection.gathered import put, taken

WOVEN_ROWS_MIN = 256
"""So many are encoded all at a time, which costs a column some 0.1 ms to begin with; fewer one by one."""

WOVEN_BYTES_MAX = 64 << 20
"""Of Arrow: while it is woven, each byte is there three times."""

_NULL, _VALUE = 0, 2
"""Which branch of its union a value is, as Avro writes 0 and 1."""


class Strand(NamedTuple):
    """``data`` holds the bytes of all rows, row by row ``sizes`` of them: one number where that is of all."""

    data: np.ndarray
    sizes: np.ndarray | int


class Woven(NamedTuple):
    """The rows' bytes; row ``n`` is ``data[ends[n - 1]:ends[n]]``."""

    data: bytes
    ends: np.ndarray


def woven(columns: Sequence[pa.Array], diffs: pa.Array) -> Woven | None:
    """The rows of ``columns``, none of them in chunks, each behind its diff."""
    return _beside([_number(diffs.to_numpy(zero_copy_only=False).astype(np.int64))], columns, None, len(diffs))


def woven_records(columns: Sequence[pa.ChunkedArray], unions: Sequence[bool]) -> list[bytes] | None:
    """Each row of ``columns`` as a record; ``unions`` says which of them may be NULL, others have none.  ``None`` also
    where there are few rows, or too much of them."""
    rows = len(columns[0])
    if rows < WOVEN_ROWS_MIN or sum(column.nbytes for column in columns) > WOVEN_BYTES_MAX:
        return None
    found = _beside([], [one_array(column) for column in columns], unions, rows)
    if found is None:
        return None
    data, ends = found.data, found.ends.tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _beside(
    strands: list[Strand], columns: Sequence[pa.Array], unions: Sequence[bool] | None, rows: int
) -> Woven | None:
    """So many rows of ``columns`` behind ``strands``; ``unions`` as :func:`woven_records` has them, or all are."""
    for place, column in enumerate(columns):
        found = _column(column)
        if found is None:
            return None
        strands += found if unions is None or unions[place] else found[1:]
    return _together(strands, rows)


def long_bytes(value: int) -> bytes:
    """``value`` as Avro writes it."""
    return _number(np.array([value], np.int64)).data.tobytes()


def _together(strands: Sequence[Strand], rows: int) -> Woven:
    """``strands`` of so many rows, beside each other."""
    sizes = np.full(rows, sum(each for _, each in strands if isinstance(each, int)), np.int64)
    for _, each in strands:
        if not isinstance(each, int):
            sizes += each
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if rows else 0, np.uint8)
    places = ends - sizes
    for data, each in strands:
        if isinstance(each, int):
            for place in range(each):
                out[places + place] = data[place::each]
        else:
            put(out, places, each, data)
        places = places + each
    return Woven(out.tobytes(), ends)


def _column(column: pa.Array) -> list[Strand] | None:
    """As its branches, which say what is NULL, and the values that are none."""
    there = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    branches = np.full(len(column), _VALUE, np.uint8) if there is None else np.where(there, _VALUE, _NULL)
    find = next((find for is_it, find in _KINDS if is_it(column.type)), None)
    values = None if find is None else find(column, there)
    return None if values is None else [Strand(branches.astype(np.uint8), 1), *values]


There = np.ndarray | None
"""Which rows have a value; ``None`` where all have."""


def _integers(column: pa.Array, there: There) -> list[Strand]:
    wide = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return [_number(_numbers(wide.cast(pa.int64()), there), there)]


def _numbers(column: pa.Array, there: There) -> np.ndarray:
    """Its values, 0 for a NULL."""
    return (column if there is None else column.fill_null(0)).to_numpy(zero_copy_only=False)


def _number(values: np.ndarray, there: There = None) -> Strand:
    """Seven bits a byte, the least first, the sign in the lowest."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    most = int(bits.max()) if len(bits) else 0
    if most < 1 << 7:
        return _those_of(bits.astype(np.uint8), there)
    width = -(-most.bit_length() // 7)
    if width <= 4:  # as all do in most columns
        bits = bits.astype(np.uint32)
    sizes = np.ones(len(bits), np.int64)
    for n in range(1, width):
        sizes += bits >= bits.dtype.type(1 << 7 * n)
    groups = np.empty((len(bits), width), np.uint8)
    for n in range(width):
        groups[:, n] = (bits >> bits.dtype.type(7 * n)) & bits.dtype.type(0x7F)
        if n < width - 1:
            groups[:, n] |= np.where(n < sizes - 1, 0x80, 0).astype(np.uint8)
    if there is None and int(sizes.min()) == width:
        return Strand(groups.reshape(-1), width)
    if there is not None:
        sizes = np.where(there, sizes, 0)
    return Strand(groups[np.arange(width) < sizes[:, None]], sizes)


def _those_of(values: np.ndarray, there: There) -> Strand:
    """The bytes of ``values``, of those that are there; all of one width."""
    width = values.dtype.itemsize
    if there is None:
        return Strand(values.view(np.uint8), width)
    return Strand(values[there].view(np.uint8), np.where(there, width, 0))


def _fixed(column: pa.Array, there: There, kind: str) -> list[Strand]:
    return [_those_of(np.ascontiguousarray(_numbers(column, there).astype(kind)), there)]


def _truths(column: pa.Array, there: There) -> list[Strand]:
    values = (column if there is None else column.fill_null(False)).to_numpy(zero_copy_only=False)
    return [_those_of(values.astype(np.uint8), there)]


def _texts(column: pa.Array, there: There) -> list[Strand]:
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64)
    held = np.frombuffer(data or b"", np.uint8)
    sizes = np.diff(bounds) if there is None else np.where(there, np.diff(bounds), 0)
    if sizes.sum() == bounds[-1] - bounds[0]:
        found = held[bounds[0] : bounds[-1]]
    else:  # bytes that are behind no value
        found = taken(held, bounds[:-1], sizes)
    return [_number(sizes, there), Strand(found, sizes)]


def _decimals(column: pa.Array, there: There) -> list[Strand] | None:
    """As many bytes as hold the number without its sign, and one more where that takes the first bit."""
    halves = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset).reshape(-1, 2)
    low, high = halves[:, 0], halves[:, 1]
    if there is not None:
        low, high = np.where(there, low, 0), np.where(there, high, 0)
    if not np.array_equal(high, low >> 63):
        return None
    size = np.where(low < 0, -low, low).view(np.uint64)
    width = int(size.max()).bit_length() // 8 + 1 if len(size) else 1
    sizes = np.ones(len(size), np.int64)
    for n in range(1, width):
        sizes += size >= np.uint64(1 << 8 * n - 1)
    if there is not None:
        sizes = np.where(there, sizes, 0)
    sign, rest = (high & 0xFF).astype(np.uint8)[:, None], low.astype(">i8").view(np.uint8).reshape(-1, 8)
    whole = rest[:, 8 - width :] if width <= 8 else np.concatenate([sign, rest], 1)
    return [_number(sizes, there), Strand(whole[np.arange(width) >= width - sizes[:, None]], sizes)]


_KINDS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, There], list[Strand] | None]]] = [
    (lambda t: pa.types.is_signed_integer(t) or pa.types.is_date32(t) or pa.types.is_timestamp(t), _integers),
    (pa.types.is_boolean, _truths),
    (lambda t: pa.types.is_string(t) or pa.types.is_binary(t), _texts),
    (pa.types.is_decimal128, _decimals),
    (pa.types.is_float32, lambda column, there: _fixed(column, there, "<f4")),
    (pa.types.is_float64, lambda column, there: _fixed(column, there, "<f8")),
]
