"""What a load generator is to who runs it, and the few things that all of them do with Arrow.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from catalog_log.objects import Column
from collection.columns import DIFF, diff_schema

BATCH_EVENTS_MAX = 20_000
"""Events that are made at once: some 15 ms of work."""

BATCH_BYTES_MAX = 4 << 20
"""Of rows that are made at once, about: a writer takes sixteen times as much (``collection.writer.PENDING_BYTES_MAX``),
of all sources."""


LATEST_US = 253_402_300_799_999_999
"""The last moment that a timestamptz has here, microseconds since 1970: the end of the year 9999."""


class Core(Protocol):
    """One relation of a generator."""

    @property
    def batch(self) -> int:
        """How many events may be made at once."""

    def changes(self, lower: int, upper: int) -> pa.Table:
        """What the events ``[lower, upper)`` change, in their order: the relation's columns, then the diffs."""


class AtFirst:
    """A relation of so many events of its own, all of which come with event 0."""

    def __init__(self, core: Core, events: int) -> None:
        self._core, self._events = core, events
        self.batch = core.batch

    def changes(self, lower: int, upper: int) -> pa.Table:
        return self._core.changes(0, self._events if lower == 0 < upper else 0)


def batch_of(bytes_each: int) -> int:
    """How many events of at most ``bytes_each`` may be made at once."""
    return max(1, min(BATCH_EVENTS_MAX, BATCH_BYTES_MAX // max(1, bytes_each)))


def changes_of(columns: Sequence[Column], arrays: Sequence[object], diffs: np.ndarray | None = None) -> pa.Table:
    """``arrays`` as the values of ``columns``; without ``diffs`` each is a row that comes."""
    schema = diff_schema(columns)
    made = [each if isinstance(each, pa.Array) else pa.array(each) for each in arrays]
    count = len(made[0])
    made.append(pa.array(np.ones(count, np.int64) if diffs is None else diffs, pa.int64()))
    cast = [each.cast(field.type) for each, field in zip(made, schema, strict=True)]
    return pa.Table.from_arrays(cast, schema=schema)


def moments(micros: np.ndarray) -> pa.Array:
    """Microseconds since 1970 as timestamptz."""
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))


def texts(chars: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """The first ``lengths`` bytes, ASCII, of each row of ``chars``."""
    return _variable(pa.string(), chars, lengths)


def blobs(chars: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """The first ``lengths`` bytes of each row of ``chars``."""
    return _variable(pa.binary(), chars, lengths)


def _variable(kind: pa.DataType, chars: np.ndarray, lengths: np.ndarray) -> pa.Array:
    count, width = chars.shape
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    data = chars[np.arange(width) < lengths[:, None]] if width else np.zeros(0, np.uint8)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))])


__all__ = [
    "BATCH_BYTES_MAX", "BATCH_EVENTS_MAX", "DIFF", "LATEST_US", "AtFirst", "Core", "batch_of", "blobs", "changes_of",
    "moments", "texts",
]  # fmt: skip
