"""The bytes of a segment: changes of one collection as Parquet.

Promises: what :func:`encode` wrote, :func:`chunks` gives back, value for value, in the columns that its reader asks
for: a column that was dropped is passed over, one that was added later has what its ``missing`` says, as in rows on a
topic (:mod:`collection.rows`).  Bytes that are not what was written are :class:`Damaged`, never other rows.

A column goes by its id (``c<id>``; by its place in collections whose columns have none and never change), and the
file says of which SQL type each is.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collection.columns import ColumnLike, Columns, diff_schema, sql_type
from collection.rows import Undecodable, missing_values
from journal.errors import FatalLog
from segments.model import Segment
from segments.statistics import column_keys, form_of
from values.types import arrow_type

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 16 << 20
"""Rows, and Arrow's bytes of them, that are in memory at once for whoever reads a file, whichever comes first."""

COMPRESSION = "zstd"
"""Read by every engine."""

BLOCK_BYTES = 1 << 20
"""Of a file, read at once to check it."""

DIFF_FIELD = "diff"
"""What the diffs are called in a file."""

_TYPES = b"tidemark.types"


SORT_COLUMNS = 3
"""So many of the first columns that have an order sort the rows of a file: measured, a million rows take 0.2 s by three
columns, 0.1 s by one.  Nothing else is known of what rows are looked for by where a collection has no key."""

SORTED_BYTES = 1 << 30
"""What is larger is left in the order in which it came: sorted, it is in memory twice, and Arrow takes 2 GB of text."""


class Damaged(FatalLog):
    """A file is not the one that was sealed."""


def in_order(columns: Columns, changes: pa.Table, key: Sequence[int] = ()) -> pa.Table:
    """``changes`` (as :func:`encode` takes them) sorted, so that a piece of the file has few values, and near ones.

    By the columns at ``key`` (each of a type that has an order) before others, where the collection has a key.
    """
    if changes.nbytes > SORTED_BYTES:
        return changes
    forms = [form_of(sql_type(column.type)) for column in columns]
    others = [n for n, form in enumerate(forms) if form is not None and form.exact and n not in key]
    places = [*key, *others[: max(SORT_COLUMNS - len(key), 0)]]
    if not places:
        return changes
    by = pa.Table.from_arrays([changes.column(n) for n in places], names=[str(n) for n in places])
    return changes.take(pc.sort_indices(by, sort_keys=[(name, "ascending") for name in by.column_names]))


def encode(columns: Columns, changes: pa.Table) -> bytes:
    """``changes`` (the columns by position, then the diffs) as the bytes of a file."""
    keys = column_keys(columns)
    fields = [pa.field(key, arrow_type(sql_type(c.type))) for key, c in zip(keys, columns, strict=True)]
    types = json.dumps({key: c.type for key, c in zip(keys, columns, strict=True)})
    schema = pa.schema([*fields, pa.field(DIFF_FIELD, pa.int64(), nullable=False)], metadata={_TYPES: types.encode()})
    table = pa.Table.from_arrays(changes.columns, schema=schema)
    out = io.BytesIO()
    rows = min(ROW_GROUP_ROWS, max(1, table.num_rows * ROW_GROUP_BYTES // max(table.nbytes, 1)))
    pq.write_table(table, out, compression=COMPRESSION, row_group_size=rows, store_schema=True)
    return out.getvalue()


def chunks(segment: Segment, data: bytes, columns: Columns) -> Iterator[pa.Table]:
    """The changes in ``data``, the bytes of ``segment``, in pieces: ``columns``, then the diffs.

    Raises :class:`Damaged` before anything is given, :class:`~collection.rows.Undecodable` for a column of another
    type.
    """
    _check(segment, len(data), zlib.crc32(data))
    yield from _pieces(_opened(segment, pa.BufferReader(data)), columns)


class LocalFile(NamedTuple):
    """A segment as a file of this machine."""

    segment: Segment
    path: Path

    def check(self) -> None:
        """Raises :class:`Damaged` unless it is what was sealed, ``OSError`` where it cannot be read."""
        size, crc32 = 0, 0
        with open(self.path, "rb") as file:
            while block := file.read(BLOCK_BYTES):
                size, crc32 = size + len(block), zlib.crc32(block, crc32)
        _check(self.segment, size, crc32)

    def fields(self, columns: Columns) -> tuple[pa.Field | None, ...]:
        """What it has of each of ``columns``, ``None`` of one that it was written without.  Raises likewise."""
        file = _opened(self.segment, self.path)
        names = _names(file, columns)
        return tuple(None if name is None else file.schema_arrow.field(name) for name in names)

    def chunks(self, columns: Columns) -> Iterator[pa.Table]:
        """As :func:`chunks`, of what was checked."""
        yield from _pieces(_opened(self.segment, self.path), columns)


def _check(segment: Segment, size: int, crc32: int) -> None:
    if (size, crc32) != (segment.size, segment.crc32):
        expected = f"expected {segment.size} with {segment.crc32:08x}"
        raise Damaged(f"file {segment.path} is not what was sealed",
                      detail=f"{size} bytes with check sum {crc32:08x}, {expected}")  # fmt: skip


def _opened(segment: Segment, where: Path | pa.NativeFile) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(where)
        _types(file)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"file {segment.path} cannot be read", detail=str(error)) from error
    return file


def _types(file: pq.ParquetFile) -> dict[str, str]:
    """The SQL type of each of its columns."""
    return json.loads(file.schema_arrow.metadata[_TYPES])


def _names(file: pq.ParquetFile, columns: Columns) -> list[str | None]:
    """What each of ``columns`` is called in the file; ``None`` where it has none such."""
    types, keys = _types(file), column_keys(columns)
    for key, column in zip(keys, columns, strict=True):
        if types.get(key, column.type) != column.type:
            raise Undecodable("rows have a column of another type", detail=f"{column.name}: {types[key]}")
    return [key if key in types else None for key in keys]


def _pieces(file: pq.ParquetFile, columns: Columns) -> Iterator[pa.Table]:
    names, schema = _names(file, columns), diff_schema(columns)
    wanted = [name for name in names if name is not None]
    with file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=[*wanted, DIFF_FIELD])
            arrays = [_values(table, name, column) for name, column in zip(names, columns, strict=True)]
            yield pa.Table.from_arrays([*arrays, table.column(DIFF_FIELD)], schema=schema)


def _values(table: pa.Table, name: str | None, column: ColumnLike) -> pa.ChunkedArray | pa.Array:
    if name is None:
        return missing_values(column, table.num_rows)
    return table.column(name).cast(arrow_type(sql_type(column.type)))
