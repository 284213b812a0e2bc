"""What the codecs of this package need to know of a column, and Arrow tables made to fit.

Pure.  Any object with ``name``, ``type`` (the text of a SQL type), ``nullable``, ``id`` and ``missing`` is a column
here; the catalog's own :class:`catalog_log.objects.Column` is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import pyarrow as pa

from journal.errors import InvalidUsage
from values.types import SqlType, arrow_type, parse_type

DIFF = "__diff".ljust(64, "_")
"""The extra int64 column of a table of changes: +1 puts a row, -1 takes one away, +n and -n do so n times.

It stands beside columns that are called as a user called them, so no user can call one so: identifiers have at most 63
bytes (``sql/statements/ddl.py``).  It is in no record: rows keep their diff in a field of its own
(``collection/rows.py``)."""


class ColumnLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def id(self) -> int: ...
    @property
    def missing(self) -> bytes | None: ...


Columns = Sequence[ColumnLike]


class PlainColumn(NamedTuple):
    """A column without the catalog's classes: for executors, who are sent it."""

    name: str
    type: str
    nullable: bool
    id: int = 0
    missing: bytes | None = None


def plain_columns(columns: Columns) -> tuple[PlainColumn, ...]:
    return tuple(PlainColumn(c.name, c.type, c.nullable, c.id, c.missing) for c in columns)


@lru_cache(maxsize=4096)
def sql_type(text: str) -> SqlType:
    """:func:`values.types.parse_type`, remembered (4096 distinct texts: far above what a catalog declares)."""
    return parse_type(text)


def arrow_schema(columns: Columns) -> pa.Schema:
    """The Arrow schema of a collection's rows, without ``__diff``."""
    return pa.schema([pa.field(c.name, arrow_type(sql_type(c.type)), nullable=True) for c in columns])


def diff_schema(columns: Columns) -> pa.Schema:
    """The Arrow schema of a collection's changes: its columns, then ``__diff``."""
    return arrow_schema(columns).append(pa.field(DIFF, pa.int64(), nullable=False))


def table_from_rows(columns: Columns, rows: Sequence[Sequence[object]]) -> pa.Table:
    """``rows`` (one value per column, Python's natural types) as an Arrow table without ``__diff``.

    Raises ``InvalidUsage`` 22000 where a value does not fit its column's type.
    """
    schema = arrow_schema(columns)
    arrays = []
    for index, field in enumerate(schema):
        try:
            arrays.append(pa.array([row[index] for row in rows], type=field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidUsage(f'a value does not fit column "{field.name}" of type {columns[index].type}',
                               sqlstate="22000", detail=str(error)) from error  # fmt: skip
    return pa.Table.from_arrays(arrays, schema=schema)


def with_diff(table: pa.Table, diff: int = 1) -> pa.Table:
    """``table`` with a constant diff as its last column, or unchanged where it has one already."""
    if DIFF in table.column_names:
        return table
    return table.append_column(
        pa.field(DIFF, pa.int64(), nullable=False), pa.repeat(pa.scalar(diff, pa.int64()), table.num_rows)
    )


def fit(columns: Columns, table: pa.Table) -> pa.Table:
    """``table`` by position as exactly ``columns`` plus ``__diff`` (+1 where it has none).

    Values are cast safely (nothing is rounded, nothing overflows).  Raises ``InvalidUsage`` 22000 where that fails and
    23502 where a NOT NULL column holds a null.
    """
    wanted = diff_schema(columns)
    table = with_diff(table)
    data = [place for place, name in enumerate(table.column_names) if name != DIFF]
    if len(data) != len(columns):
        raise InvalidUsage(f"expected {len(columns)} columns, got {len(data)}", sqlstate="42804")
    arrays = []
    for column, position, field in zip(columns, data, wanted, strict=False):
        values = table.column(position)
        if values.type != field.type:
            try:
                values = values.cast(field.type)
            except pa.ArrowException as error:
                raise InvalidUsage(f'a value does not fit column "{column.name}" of type {column.type}',
                                   sqlstate="22000", detail=str(error)) from error  # fmt: skip
        if not column.nullable and values.null_count:
            raise InvalidUsage(f'null value in column "{column.name}" violates not-null constraint', sqlstate="23502")
        arrays.append(values)
    arrays.append(table.column(DIFF).cast(pa.int64()))
    return pa.Table.from_arrays(arrays, schema=wanted)


def whole_values(column: pa.ChunkedArray) -> list[object]:
    """The values of ``column`` as Python has them, with whole numbers for dates and moments: days and microseconds
    since 1970, as Avro carries them, whose range is wider than that of Python's own."""
    return column.cast(_whole(column.type)).to_pylist()


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """``column`` without its chunks; of texts at most two gigabytes."""
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _whole(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.list_(_whole(kind.value_type)) if pa.types.is_list(kind) else kind
