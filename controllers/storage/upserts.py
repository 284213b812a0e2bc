"""From what keys become to changes of rows: the pure part of ``ENVELOPE UPSERT`` and ``DEBEZIUM``.

Promises: a collection that has at most one row of each key, and the changes that :func:`changed` gives for it, make one
that has exactly what each key was told last.  What a key was in between is nobody's to see: all changes of a batch
become visible at one timestamp.

Keys and rows are taken as Arrow gives them back, canonical (:func:`controllers.changes.canonical`), so that they are
the same whether they were just decoded or read again after a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog_log.objects import Column
from collection.columns import DIFF, Columns, arrow_schema, diff_schema, sql_type
from collection.messages.judging import KeyedTable
from collection.row_bytes import row_bytes, rows_of
from controllers.changes import canonical
from values.jsonb_keys import shortest, shortest_number
from values.types import SqlType

KEY_BYTES = 20
"""Of a key's hash: of 2^40 keys two are alike with a chance of 2^-81.  A key that is shorter is its own."""

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
    as_written: bool = False
    """Whether ``1`` and ``1.0`` are two, as they once were: a source may have rows of both from then."""

    def hashes(self, keys: pa.Table) -> list[bytes]:
        """Of each of ``keys``, which has their columns; equal ones are alike, however they are written."""
        alike = keys
        for place, column in enumerate(self.key_columns):
            shortest = None if self.as_written else _SHORTEST.get(sql_type(column.type))
            # Without a point there is but one way to show a value.
            if shortest is not None and pc.any(pc.match_substring(keys.column(place), ".")).as_py():
                texts = [None if text is None else shortest(text) for text in keys.column(place).to_pylist()]
                alike = alike.set_column(place, alike.schema.field(place), pa.array(texts, alike.schema.types[place]))
        return list(map(_hash, row_bytes(self.key_columns, canonical(alike))))

    def of_rows(self, table: pa.Table) -> list[tuple[bytes, Packed, int]]:
        """The key's hash, the row and the diff of each change in ``table``: the columns, then the diffs."""
        rows = canonical(table.drop_columns([DIFF]))
        keys = self.hashes(rows.select(list(self.places)))
        return list(zip(keys, row_bytes(self.columns, rows), table.column(DIFF).to_pylist(), strict=True))


def changed(keys: Keys, told: KeyedTable, hashes: Sequence[bytes], before: Mapping[bytes, Packed]) -> Changed:
    """What ``told``, in this order, changes, where ``hashes`` are its keys' and ``before`` is what these had."""
    rows = canonical(told.rows)
    packed = row_bytes(keys.columns, rows)
    there = np.array(told.there, bool)
    at = np.where(there, np.cumsum(there) - 1, _NO_ROW)
    last = dict(zip(hashes, at.tolist(), strict=True))
    puts = {key: None if place == _NO_ROW else packed[place] for key, place in last.items()}
    went: list[Packed] = []
    places: list[int] = []
    """Of what changes, in order: of ``went`` as -1, -2, …, of ``rows`` as they are."""
    for place, now, old in zip(last.values(), puts.values(), map(before.get, puts), strict=True):
        if old == now:
            continue
        if old is not None:
            went.append(old)
            places.append(-len(went))
        if now is not None:
            places.append(place)
    return Changed(_taken(keys.columns, rows, went, np.array(places, np.int64)), puts)


def _taken(columns: Columns, rows: pa.Table, went: Sequence[Packed], places: np.ndarray) -> pa.Table:
    """Of ``went`` and ``rows`` those at ``places``, with their diffs."""
    schema = arrow_schema(columns)
    held = [rows_of(columns, went), pa.Table.from_arrays(rows.columns, schema=schema)]
    there = pa.concat_tables(held if went else held[1:]).combine_chunks()
    found = there.take(pa.array(np.where(places < 0, -1 - places, places + len(went)), pa.int64()))
    diffs = pa.array(np.where(places < 0, -1, 1).astype(np.int64))
    return pa.Table.from_arrays([*found.columns, diffs], schema=diff_schema(columns))


_NO_ROW = -1
"""In which place a key has none."""

_SHORTEST = {SqlType("jsonb"): shortest, SqlType("numeric"): shortest_number}
"""Of types that are kept as texts, and of which several are the same value (``1.0`` and ``1.00``)."""


def _hash(key: bytes) -> bytes:
    return key if len(key) < KEY_BYTES else hashlib.blake2b(key, digest_size=KEY_BYTES).digest()
