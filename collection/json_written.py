"""Rows as JSON objects: what a sink writes.  Pure.

Promises: equal rows give equal bytes, and :mod:`collection.json_rows` reads them back as the rows that they were, but
for floats that are not finite, which are strings here (JSON has none) and no row there.

The forms: a boolean, an integer and a finite float as JSON has them; a numeric as a string, since most readers take a
number for a float and lose its digits; bytes in Postgres's hex form; a ``jsonb`` as the value that it is; an array as
one; NULL as null; anything else as a string, in Postgres's own text, but that dates and times of day are joined by
``T`` and a moment is in UTC with ``+00:00``, as ISO 8601 has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from math import isfinite

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import one_array, whole_values
from collection.json_columns import Write, texts
from values.scalars import show_float4, show_float8
from values.sql_type import SqlType
from values.types import row_of

AT_ONCE_BYTES_MAX = 1 << 30
"""Of rows in JSON that are written column by column, at most: a text of Arrow's has no more than twice that."""

BYTES_OF_ONE, BYTES_OF_VALUE = 50, 64
"""In JSON at most, of one byte of Arrow's (an array of truths has eight in a byte, and each is ``false,``), and of a
value that takes none there, or a few."""

AT_ONCE_ROWS_MIN = 64
"""So many are written column by column, which costs a column some 20 µs to begin with; fewer value by value."""


class RowWriter:
    """Writes rows of columns that are called so and are of these types."""

    def __init__(self, columns: Sequence[tuple[str, SqlType]]) -> None:
        self._heads = [("{" if n == 0 else ",") + encode_basestring(name) + ":" for n, (name, _) in enumerate(columns)]
        self._types = [sql for _, sql in columns]
        self._width = sum(len(head.encode()) + BYTES_OF_VALUE for head in self._heads)
        self._writes = [_writer(sql) for sql in self._types]

    def rows(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """One object a row; ``columns`` are those of the writer, one at least."""
        rows = len(columns[0])
        if rows >= AT_ONCE_ROWS_MIN:
            at_most = BYTES_OF_ONE * sum(column.nbytes for column in columns) + self._width * rows
            if at_most <= AT_ONCE_BYTES_MAX:
                return self._at_once(columns)
        return self.one_by_one(columns)

    def _at_once(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        parts: list[pa.Array | pa.Scalar] = []
        for head, sql, write, column in zip(self._heads, self._types, self._writes, columns, strict=True):
            found = texts(one_array(column), sql, write)
            if found is None:
                values = whole_values(column)
                found = pa.array([None if value is None else write(value) for value in values], pa.string())
            parts += [pa.scalar(head), pc.fill_null(found, "null") if found.null_count else found]
        return pc.binary_join_element_wise(*parts, pa.scalar("}"), "").cast(pa.binary()).to_pylist()

    def one_by_one(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """As :meth:`rows`, value by value: what that is held against."""
        parts = [
            [head + "null" if value is None else head + write(value) for value in whole_values(column)]
            for head, write, column in zip(self._heads, self._writes, columns, strict=True)
        ]
        return [("".join(row) + "}").encode() for row in zip(*parts, strict=True)]


def _writer(sql: SqlType) -> Write:
    if sql.is_array:
        element = _writer(sql.element)
        return lambda value: "[" + ",".join(["null" if each is None else element(each) for each in value]) + "]"
    if sql.name in _WRITERS:
        return _WRITERS[sql.name]
    show = row_of(sql).show
    if sql.name == "bpchar":  # kept without the blanks at its end, and shown with them
        length = sql.precision or 0
        return lambda value: encode_basestring(show(value).ljust(length))
    return lambda value: encode_basestring(show(value))


def _float(show: Callable[[float], str]) -> Write:
    return lambda value: show(value) if isfinite(value) else encode_basestring(show(value))


def _moment(name: str, behind: str = "") -> Write:
    show = row_of(SqlType(name)).show

    def write(value: object) -> str:
        shown = show(value)
        if shown.endswith(" BC") or " " not in shown:  # which no ISO 8601 has, nor infinity
            return encode_basestring(shown)
        return '"' + shown.replace(" ", "T", 1) + behind + '"'

    return write


_WRITERS: dict[str, Write] = {
    "bool": lambda value: "true" if value else "false",
    "int2": str, "int4": str, "int8": str,
    "float4": _float(show_float4), "float8": _float(show_float8),
    "jsonb": str,
    "timestamp": _moment("timestamp"), "timestamptz": _moment("timestamptz", ":00"),
}  # fmt: skip
