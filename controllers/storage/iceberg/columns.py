"""Columns as a sink into Iceberg writes them: from what carries a type here to what its type there is.  Pure.

Promises: two rows become equal ones only where they are equal, and no digit or sign is lost.  A value of which Iceberg
has none (24:00 as a time of day) is :class:`~controllers.storage.sinking.SinkRefused`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import DIFF
from controllers.storage.sinking import SinkRefused
from values.sql_type import SqlType
from values.types import iceberg_type

DAY_US = 86_400_000_000

ARROW = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "uuid": pa.binary(16), "date": pa.date32(), "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", tz="UTC"), "binary": pa.binary(),
}  # fmt: skip
"""What carries Iceberg's types."""

DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")


def arrow_of(iceberg: str) -> pa.DataType:
    """What carries a type of Iceberg's."""
    if iceberg.startswith("list<"):
        return pa.list_(arrow_of(iceberg[5:-1]))
    decimal = DECIMAL.fullmatch(iceberg)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else ARROW[iceberg]


class Columns:
    """Columns of these types, each with what the table calls it."""

    def __init__(self, columns: Sequence[tuple[str, SqlType]]) -> None:
        """Of types that Iceberg has."""
        self.names = [name for name, _ in columns]
        self._types = [sql for _, sql in columns]
        self.iceberg = [iceberg_type(sql) or "" for sql in self._types]
        assert all(self.iceberg), columns
        fields = [pa.field(f"c{place}", arrow_of(kind)) for place, kind in enumerate(self.iceberg)]
        self.schema = pa.schema(fields)
        """Of rows in files, by position."""

    def written(self, changes: pa.Table) -> pa.Table:
        """``changes`` (the columns, then ``__diff``) in ``schema`` with ``__diff``."""
        its = zip(changes.columns, self._types, self.names, self.schema.types, strict=False)
        arrays = [self._written(column, sql, name, kind) for column, sql, name, kind in its]
        return pa.Table.from_arrays([*arrays, changes.column(DIFF)], [*self.schema.names, DIFF])

    def _written(self, column: pa.ChunkedArray, sql: SqlType, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        element = sql.element if sql.is_array else sql
        if element.name == "time" or element.name == "uuid" or element.name == "bpchar" and element.precision:
            make = _MAKERS[element.name](element, name)
            if sql.is_array:
                values = [value if value is None else list(map(make, value)) for value in column.to_pylist()]
            else:
                values = list(map(make, column.to_pylist()))
            if element.name == "time":  # as the numbers under them
                whole = pa.list_(pa.int64()) if sql.is_array else pa.int64()
                return pa.chunked_array([pa.array(values, whole).cast(kind)])
            return pa.chunked_array([pa.array(values, kind)])
        return column.cast(kind)


def _time(element: SqlType, name: str) -> Callable[[int | None], int | None]:
    def make(value: int | None) -> int | None:
        if value is not None and value >= DAY_US:
            raise SinkRefused(f'column "{name}" has the time 24:00:00, which Iceberg has not')
        return value

    return make


def _uuid(element: SqlType, name: str) -> Callable[[str | None], bytes | None]:
    return lambda value: None if value is None else bytes.fromhex(value.replace("-", ""))


def _char(element: SqlType, name: str) -> Callable[[str | None], str | None]:
    # Kept without the blanks at its end, and shown with them.
    return lambda value: None if value is None else value.ljust(element.precision or 0)


_MAKERS = {"time": _time, "uuid": _uuid, "bpchar": _char}


def comparable(column: pa.ChunkedArray) -> list[object] | None:
    """The values of a column (no two alike, without NULL and NaN) in their order, as the bounds of files have them;
    ``None`` where files have no bounds of its type."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        return None
    if pa.types.is_floating(kind):
        column = column.filter(pc.fill_null(pc.invert(pc.is_nan(column)), False))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())  # whose range is wider than Python's
    return sorted(pc.unique(column.drop_null()).to_pylist())
