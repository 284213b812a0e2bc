"""Rows as plain Python tuples, alike for everybody who keys by them: the arrangement, the lookup, the group state.

Promises: two values that Spark's GROUP BY puts into one group are one value here (NULL is ``None``, every NaN is the
one ``NAN``, -0.0 is 0.0), hash and compare equal, and come back as the Arrow type they came from.  Dates travel as
days and timestamps as microseconds since the epoch, because Spark's range of them is wider than Python's; an array is
a tuple of its elements and an interval a tuple of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate

import pyarrow as pa

from journal.errors import InvalidUsage
from values.scalars import single
from values.types import SqlType, arrow_type

Row = tuple[object, ...]

NAN = float("nan")
"""The one NaN: being one object, it equals itself inside tuples and dictionaries."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)

INT_BITS = {"int2": 16, "int4": 32, "int8": 64}


def canonical(value: object, sql_type: SqlType) -> object:
    """``value`` (of an index key, of a literal) in the form that rows here hold.

    A value that its column can never hold (1.5 for an ``int4``) stays what it is and equals no row's value.
    """
    if value is None:
        return None
    if isinstance(value, float):
        return canonical_float(value)
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return (moment - _EPOCH) // _MICROSECOND
    if isinstance(value, date):
        days = value.toordinal() - _EPOCH_DAY
        return days * 86_400_000_000 if sql_type.name in ("timestamp", "timestamptz") else days
    if isinstance(value, str) and sql_type.name != "text":
        return parse_literal(value, sql_type)
    return value


def canonical_float(value: float) -> float:
    return NAN if value != value else value + 0.0


def parse_literal(text: str, sql_type: SqlType) -> object:
    """The value that ``text`` writes in ``sql_type``.  Raises ``InvalidUsage`` 22P02 where it writes none."""
    try:
        match sql_type.name:
            case "bool":
                return {"t": True, "true": True, "f": False, "false": False}[text.strip().lower()]
            case "int2" | "int4" | "int8":
                return int(text)
            case "numeric":
                return Decimal(text)
            case "float4":
                return canonical_float(single(float(text)))
            case "float8":
                return canonical_float(float(text))
            case "bytea":
                return bytes.fromhex(text.removeprefix("\\x"))
            case "date":
                return date.fromisoformat(text).toordinal() - _EPOCH_DAY
            case "timestamp" | "timestamptz":
                return canonical(datetime.fromisoformat(text), sql_type)
            case _:
                return text
    except (ValueError, KeyError, ArithmeticError) as error:
        raise InvalidUsage(
            f'invalid input syntax for type {sql_type}: "{text}"', sqlstate="22P02"
        ) from error


def to_rows(table: pa.Table) -> list[Row]:
    """The rows of ``table`` as plain tuples."""
    if table.num_columns == 0:
        return [()] * table.num_rows
    return list(zip(*(to_values(column) for column in table.columns), strict=True))


def to_values(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_list(kind) or pa.types.is_struct(kind):
        return [None if v is None else _tuple(v, kind) for v in column.to_pylist()]
    values = column.to_pylist()
    if pa.types.is_floating(kind):
        return [None if v is None else canonical_float(v) for v in values]
    return values


def _tuple(value: dict | list, kind: pa.DataType) -> Row:
    if isinstance(value, dict):
        return tuple(value.values())
    if not value:
        return ()
    elements = pa.chunked_array([pa.array(value, kind.value_type)])
    return tuple(to_values(elements))


def to_column(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """The inverse of :func:`to_values`."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_list(kind):
        offsets = [0, *accumulate(0 if v is None else len(v) for v in values)]
        elements = to_column([each for v in values if v is not None for each in v], kind.value_type)
        absent = pa.array([v is None for v in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, kind, mask=absent)
    if pa.types.is_decimal(kind):
        # Arrow refuses to rescale a Decimal that has more digits than the type; ours are exact, so quantize is safe.
        return pa.array(values, kind)
    return pa.array(values, kind)


def to_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """``rows`` as Arrow, of ``schema``, which has a column at least."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.record_batch([to_column(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def to_table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """``rows`` as an Arrow table of ``schema``."""
    # Made by way of a batch: ``pa.table`` of columns and a schema takes ten times as long for a few rows.
    return pa.Table.from_batches([to_batch(rows, schema)]) if len(schema) else pa.table({})


def schema_of(types: Sequence[SqlType], names: Iterable[str] | None = None) -> pa.Schema:
    """An Arrow schema with columns of ``types``, named ``c0``, ``c1``… unless ``names`` are given."""
    names = list(names) if names is not None else [f"c{i}" for i in range(len(types))]
    return pa.schema([pa.field(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])


def order_key(value: object) -> object:
    """A key by which non-NULL values of one type sort as Spark and Postgres sort them: NaN above every number."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value
