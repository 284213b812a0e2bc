"""From what keys become to changes of rows: the pure part of ``ENVELOPE UPSERT`` and ``DEBEZIUM``.

Promises: a collection that has at most one row of each key, and the changes that :func:`changed` gives for it, make one
that has exactly what each key was told last.  What a key was in between is nobody's to see: all changes of a batch
become visible at one timestamp.

Keys and rows are taken as Arrow gives them back, canonical (:func:`controllers.changes.canonical`), so that they are
the same whether they were just decoded or read again after a restart.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from catalog_log.objects import Column
from collection.columns import DIFF, Columns, table_from_rows
from collection.messages.judging import Keyed
from controllers.changes import canonical

KEY_BYTES = 20
"""Of a key's hash: of 2^40 keys two are alike with a chance of 2^-81."""

Packed = bytes
"""A row as bytes: the same for equal rows."""


class Changed(NamedTuple):
    """``table`` are the changes, with their diffs; ``puts`` what the keys are afterwards (``None``: nothing)."""

    table: pa.Table
    puts: dict[bytes, Packed | None]


class Keys(NamedTuple):
    """How a source's keys are told apart: its columns, and those of its key with their places."""

    columns: Sequence[Column]
    key_columns: Sequence[Column]
    places: Sequence[int]

    def hashes(self, keyed: Sequence[Keyed]) -> list[bytes]:
        """Of each key."""
        return [_hash(cells) for cells in _as_read(self.key_columns, [each.key for each in keyed])]

    def of_rows(self, table: pa.Table) -> list[tuple[bytes, Packed, int]]:
        """The key's hash, the row and the diff of each change in ``table``: the columns, then the diffs."""
        rows = _cells(table.drop_columns([DIFF]))
        diffs = table.column(DIFF).to_pylist()
        return [
            (_hash(tuple([row[at] for at in self.places])), packed(row), diff)
            for row, diff in zip(rows, diffs, strict=True)
        ]


def changed(keys: Keys, keyed: Sequence[Keyed], hashes: Sequence[bytes], before: Mapping[bytes, Packed]) -> Changed:
    """What ``keyed``, in this order, changes, where ``before`` is what their keys had."""
    given = [each.row for each in keyed if each.row is not None]
    rows = iter(_as_read(keys.columns, given))
    last = {key: None if each.row is None else next(rows) for each, key in zip(keyed, hashes, strict=True)}
    puts = {key: None if row is None else packed(row) for key, row in last.items()}
    changes: list[tuple[object, ...]] = []
    diffs: list[int] = []
    for key, now in puts.items():
        old = before.get(key)
        if old == now:
            continue
        if old is not None:
            changes.append(unpacked(old))
            diffs.append(-1)
        if now is not None:
            changes.append(last[key])
            diffs.append(1)
    table = table_from_rows(keys.columns, changes)
    return Changed(table.append_column(pa.field(DIFF, pa.int64(), nullable=False), pa.array(diffs, pa.int64())), puts)


def packed(row: tuple[object, ...]) -> Packed:
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 5)
    pickler.fast = True  # or equal rows had other bytes where two of their values are one object
    pickler.dump(row)
    return out.getvalue()


def unpacked(row: Packed) -> tuple[object, ...]:
    """What :func:`packed` was given.  Of bytes of this process's own alone."""
    return pickle.loads(row)


def _as_read(columns: Columns, rows: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
    return _cells(table_from_rows(columns, rows))


def _cells(table: pa.Table) -> list[tuple[object, ...]]:
    """Of each row; days and moments as the numbers that Arrow has, which it takes back as what they are."""
    table = canonical(table)
    return list(zip(*[_plain(column).to_pylist() for column in table.columns], strict=True))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    return column


def _hash(key: tuple[object, ...]) -> bytes:
    return hashlib.blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
