"""Rows as the details of errors show them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from adapter.encode.values import encoder_for
from adapter.state.interfaces import OutputColumn
from catalog_log.objects import Column
from collection.columns import sql_type
from values.types import SqlType

VALUE_BYTES_MAX = 64
"""Of each value, as in Postgres; what is longer is cut, which three dots say."""


def texts_of(types: Sequence[SqlType], cells: Sequence[pa.Array | pa.ChunkedArray], zone: str) -> list[str | None]:
    """The first of each of ``cells``, which are values of these types, as a session in ``zone`` is shown them."""
    shown = tuple([OutputColumn(f"c{at}", kind) for at, kind in enumerate(types)])
    row = [cell.slice(0, 1) for cell in cells]
    row = [cell.combine_chunks() if isinstance(cell, pa.ChunkedArray) else cell for cell in row]
    batch = pa.RecordBatch.from_arrays(row, names=[each.name for each in shown])
    written = encoder_for(shown, (0,) * len(shown), zone).written(batch)
    return [None if cell[0].as_py() is None else bytes(cell[0].as_py()).decode() for cell in written]


def row_text(columns: Sequence[Column], rows: pa.Table, at: int, zone: str) -> str:
    """``(1, null, …)``: row ``at`` of ``rows``."""
    texts = texts_of([sql_type(column.type) for column in columns], rows.slice(at, 1).columns, zone)
    return f"({', '.join('null' if text is None else _cut(text) for text in texts)})"


def _cut(text: str) -> str:
    data = text.encode()
    return text if len(data) <= VALUE_BYTES_MAX else data[:VALUE_BYTES_MAX].decode(errors="ignore") + "..."
