"""Rows spread over a number of parts so that equal rows are in one, whatever their types.  Pure.

For merging more rows than fit in memory: what cancels out is equal, so each part can be merged by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MIX = np.uint64(0x9E3779B97F4A7C15)
"""Odd, and so are its powers; of the golden ratio, as Knuth has it (TAOCP 6.4)."""

BLOCK_BYTES = 1 << 20
"""Of text, hashed at once: it takes some forty bytes of memory a byte."""

_NULL = np.uint64(0xD6E8FEB86659FD93)


def parts(table: pa.Table, keys: Sequence[int], count: int) -> np.ndarray:
    """For each row a part from 0 to ``count`` - 1, by the columns at ``keys``: the same for rows that are equal.

    Columns of arrays and intervals do not count: rows that differ in these alone are in one part.
    Floats must be canonical (:func:`controllers.changes.canonical`).
    """
    found = np.zeros(table.num_rows, np.uint64)
    with np.errstate(over="ignore"):
        for key in keys:
            column = table.column(key)
            hashed = _hashed(column)
            if hashed is not None:
                found = (found ^ hashed) * _MIX
                found ^= found >> np.uint64(29)
    return (found % np.uint64(count)).astype(np.int64)


def _hashed(column: pa.ChunkedArray) -> np.ndarray | None:
    """A number for each value, the same for equal ones; ``None`` for types that have none here."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        hashed = np.concatenate([_hashed_bytes(chunk) for chunk in column.chunks] or [np.zeros(0, np.uint64)])
    elif pa.types.is_decimal128(kind):
        hashed = np.concatenate([_words(chunk, 2) for chunk in column.chunks] or [np.zeros(0, np.uint64)])
    elif pa.types.is_boolean(kind):
        hashed = pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pa.types.is_float32(kind):
        hashed = _numbers(column, 0.0).astype(np.float32).view(np.uint32).astype(np.uint64)
    elif pa.types.is_float64(kind):
        hashed = _numbers(column, 0.0).view(np.uint64)
    elif pa.types.is_integer(kind):
        hashed = _numbers(column, 0).astype(np.int64).view(np.uint64)
    elif pa.types.is_date32(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        integer = pa.int32() if kind.bit_width == 32 else pa.int64()
        hashed = _numbers(column.cast(integer), 0).astype(np.int64).view(np.uint64)
    else:
        return None
    if column.null_count:
        hashed = np.where(pc.is_null(column).to_numpy(zero_copy_only=False), _NULL, hashed)
    return hashed * _MIX


def _numbers(column: pa.ChunkedArray, instead: float | int) -> np.ndarray:
    return pc.fill_null(column, instead).combine_chunks().to_numpy(zero_copy_only=False)


def _words(chunk: pa.Array, words: int) -> np.ndarray:
    """Of values of so many words each."""
    raw = np.frombuffer(chunk.buffers()[1], np.uint64)[chunk.offset * words :][: len(chunk) * words]
    raw = raw.reshape(len(chunk), words)
    found = np.zeros(len(chunk), np.uint64)
    for word in range(words):
        found = (found ^ raw[:, word]) * _MIX
    return found


def _hashed_bytes(chunk: pa.Array) -> np.ndarray:
    """The sum of each value's bytes, each times a power of an odd number by its place."""
    count = len(chunk)
    if count > 1 and chunk.nbytes > BLOCK_BYTES:
        halves = chunk.slice(0, count // 2), chunk.slice(count // 2)
        return np.concatenate([_hashed_bytes(half) for half in halves])
    offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset :][: count + 1].astype(np.int64)
    lengths = np.diff(offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return np.zeros(count, np.uint64)
    data = np.frombuffer(chunk.buffers()[2], np.uint8)[first:last].astype(np.uint64) + np.uint64(1)
    place = np.arange(last - first) - np.repeat(offsets[:-1] - first, lengths)
    powers = np.cumprod(np.full(int(lengths.max()), _MIX, np.uint64))
    sums = np.zeros(count, np.uint64)
    filled = lengths > 0
    sums[filled] = np.add.reduceat(data * powers[place], (offsets[:-1] - first)[filled])
    return sums


__all__ = ["parts"]
