"""Rows one by one as bytes, and back: for who keeps rows by themselves.  Pure.

Promises: rows of equal values have equal bytes, rows of others have others (floats must be canonical, as
:func:`controllers.changes.canonical` makes them), and :func:`rows_of` gives the rows back.  A row is what it is in a
record of :mod:`collection.rows`, without its diff.  The bytes say nothing of the columns: whoever keeps them over a
change of these has kept nothing.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache

import fastavro
import pyarrow as pa

from collection.columns import Columns, arrow_schema, sql_type
from collection.rows import defined_once, from_physical, physical, to_physical
from collection.unwoven import Field, unwoven
from collection.woven import WOVEN_BYTES_MAX, WOVEN_ROWS_MIN, long_bytes, woven_records
from values.types import avro_type


def row_bytes(columns: Columns, table: pa.Table) -> list[bytes]:
    """Each row of ``table``, which has ``columns`` by position."""
    found = woven_records(table.columns, [True] * len(columns))
    return one_by_one(columns, table) if found is None else found


def one_by_one(columns: Columns, table: pa.Table) -> list[bytes]:
    """As :func:`row_bytes`, row by row: what that is held against."""
    schema, _ = _schemas(_types(columns))
    values = [to_physical(table.column(at), sql_type(each.type)) for at, each in enumerate(columns)]
    names = [_name(at) for at in range(len(columns))]
    found = []
    for row in zip(*values, strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, dict(zip(names, row, strict=True)))
        found.append(out.getvalue())
    return found


def rows_of(columns: Columns, rows: Sequence[bytes]) -> pa.Table:
    """What :func:`row_bytes` was given."""
    if not rows:
        return arrow_schema(columns).empty_table()
    few = len(rows) < WOVEN_ROWS_MIN or sum(map(len, rows)) > WOVEN_BYTES_MAX
    found = None if few else _unwoven(columns, rows)
    return rows_one_by_one(columns, rows) if found is None else found


def rows_one_by_one(columns: Columns, rows: Sequence[bytes]) -> pa.Table:
    """As :func:`rows_of`, value by value: what that is held against."""
    _, schema = _schemas(_types(columns))
    data = b"".join([long_bytes(len(rows)), *rows, _END])
    read = fastavro.schemaless_reader(io.BytesIO(data), schema, None)
    arrays = [from_physical([row[_name(at)] for row in read], sql_type(each.type)) for at, each in enumerate(columns)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def _unwoven(columns: Columns, rows: Sequence[bytes]) -> pa.Table | None:
    schema = arrow_schema(columns)
    types = [physical(avro_type(sql_type(each.type))) for each in columns]
    fields = [Field(avro, field.type) for avro, field in zip(types, schema, strict=True)]
    found = unwoven(_COMES.join([b"", *rows]), len(rows), fields)
    return None if found is None else pa.Table.from_arrays(found.columns, schema=schema)


_END = b"\0"
"""Of an array."""

_COMES = long_bytes(1)
"""The diff of a row, before it."""


def _types(columns: Columns) -> tuple[str, ...]:
    return tuple([each.type for each in columns])


def _name(place: int) -> str:
    return f"c{place}"


@lru_cache(maxsize=1024)
def _schemas(types: tuple[str, ...]) -> tuple[object, object]:
    """Of one row, and of many."""
    defined: set[str] = set()
    said = [defined_once(physical(avro_type(sql_type(text))), defined) for text in types]
    fields = [{"name": _name(at), "type": ["null", each]} for at, each in enumerate(said)]
    row = {"type": "record", "name": "Row", "fields": fields}
    return fastavro.parse_schema(row), fastavro.parse_schema({"type": "array", "items": row})
