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

import pyarrow as pa
import pyarrow.parquet as pq

from collection.columns import ColumnLike, Columns, diff_schema, sql_type
from collection.rows import Undecodable, has_ids, missing_values
from journal.errors import FatalLog
from segments.model import Segment
from values.types import arrow_type

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 16 << 20
"""Rows, and Arrow's bytes of them, that are in memory at once for whoever reads a file, whichever comes first."""

COMPRESSION = "zstd"
"""Read by every engine."""

_TYPES = b"tidemark.types"
_DIFF = "diff"


class Damaged(FatalLog):
    """A file is not the one that was sealed."""


def encode(columns: Columns, changes: pa.Table) -> bytes:
    """``changes`` (the columns by position, then the diffs) as the bytes of a file."""
    keys = _keys(columns)
    fields = [pa.field(key, arrow_type(sql_type(c.type))) for key, c in zip(keys, columns, strict=True)]
    types = json.dumps({key: c.type for key, c in zip(keys, columns, strict=True)})
    schema = pa.schema([*fields, pa.field(_DIFF, pa.int64(), nullable=False)], metadata={_TYPES: types.encode()})
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
    found = len(data), zlib.crc32(data)
    if found != (segment.size, segment.crc32):
        raise Damaged(f"file {segment.path} is not what was sealed",
                      detail="{} bytes with check sum {:08x}, expected {} with {:08x}".format(
                          *found, segment.size, segment.crc32))  # fmt: skip
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        types = json.loads(file.schema_arrow.metadata[_TYPES])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"file {segment.path} cannot be read", detail=str(error)) from error
    keys = _keys(columns)
    for key, column in zip(keys, columns, strict=True):
        if types.get(key, column.type) != column.type:
            raise Undecodable("rows have a column of another type", detail=f"{column.name}: {types[key]}")
    wanted = [key for key in keys if key in types]
    schema = diff_schema(columns)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=[*wanted, _DIFF])
        arrays = [_values(table, key, column) for key, column in zip(keys, columns, strict=True)]
        yield pa.Table.from_arrays([*arrays, table.column(_DIFF)], schema=schema)


def _keys(columns: Columns) -> Sequence[str]:
    return [f"c{c.id}" for c in columns] if has_ids(columns) else [f"p{n}" for n in range(len(columns))]


def _values(table: pa.Table, key: str, column: ColumnLike) -> pa.ChunkedArray | pa.Array:
    if key not in table.column_names:
        return missing_values(column, table.num_rows)
    return table.column(key).cast(arrow_type(sql_type(column.type)))
