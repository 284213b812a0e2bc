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

from collection.columns import whole_values
from values.scalars import show_float4, show_float8
from values.sql_type import SqlType
from values.types import row_of

Write = Callable[[object], str]
"""One value, never ``None``, as Arrow has it (a moment as the whole number under it), in JSON."""


class RowWriter:
    """Writes rows of columns that are called so and are of these types."""

    def __init__(self, columns: Sequence[tuple[str, SqlType]]) -> None:
        self._heads = [("{" if n == 0 else ",") + encode_basestring(name) + ":" for n, (name, _) in enumerate(columns)]
        self._writes = [_writer(sql) for _, sql in columns]

    def rows(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """One object a row; ``columns`` are those of the writer, one at least."""
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
