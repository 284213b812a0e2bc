"""Rows as Avro: what a sink's schemas say of its columns, and its rows by them.  Pure.

Promises: equal rows give equal bytes, and :mod:`collection.messages.avro_types` reads them back as the rows that they
were, but for intervals and ``jsonb``, which are records and texts here.

The forms are those in which rows are kept (``values.types.avro_type``), said so that others know them: a ``numeric(p,
s)`` is a ``decimal``, a date, a time, a moment and a ``uuid`` are those; a ``timestamp`` is of no zone, and so
``local-timestamp-micros``; an ``interval`` is a record of its three parts; ``jsonb`` is its text, named as Debezium
names it; a ``numeric`` whose digits nobody has bounded, and whatever else has no form in Avro, is a text, as Postgres
shows it.  What may be NULL is a union of null and its type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Context
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import whole_values
from collection.woven import woven_records
from schemas.avro_bytes import FALSE, NULL, SOME, TRUE, double, items, long, number, single, sized, text
from values.sql_type import SqlType
from values.types import avro_type, carried

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""What may be the name of a field, of a type, and of each part of a full name."""

RESERVED = frozenset(
    "null boolean int long float double bytes string record error enum array map union fixed".split()
)  # fmt: skip
"""Types of Avro's own, of which no other is called so."""

KEY_NAME, VALUE_NAME, ROW_NAME = "row", "envelope", "row"
"""What schemas are called unless something else is said, as Materialize calls them: of keys, of values, and of the rows
in a value that has two."""

_JSON = {"type": "string", "connect.name": "io.debezium.data.Json"}
_SAID: dict[str, object] = {
    "time": {"type": "long", "logicalType": "time-micros"}, "uuid": {"type": "string", "logicalType": "uuid"},
    "jsonb": _JSON,
}  # fmt: skip
"""What those are for others that are carried by another type here."""

_EXACT = Context(prec=100)


class WrittenColumn(NamedTuple):
    """``name`` is what messages call it."""

    name: str
    type: SqlType
    nullable: bool


class Null(Exception):
    """A NULL in a column that may have none."""


def row_schema(
    fullname: str, columns: Sequence[WrittenColumn], null_defaults: bool = False, around: str = ""
) -> dict[str, object]:
    """The record of such rows, as JSON has it.  ``null_defaults``: what may be NULL is so by default; ``around``: what
    a record that it is in is called."""
    types = _Types((_own(fullname), around))
    fields: list[dict[str, object]] = []
    for each in columns:
        said = types.of(each.type)
        field: dict[str, object] = {"name": each.name, "type": ["null", said] if each.nullable else said}
        if each.nullable and null_defaults:
            field["default"] = None
        fields.append(field)
    return {"type": "record", "name": fullname, "fields": fields}


def pair_schema(fullname: str, row: Sequence[WrittenColumn], null_defaults: bool = False) -> dict[str, object]:
    """The record of what a row was and what it is, as Debezium has it."""
    own = _own(fullname)
    named = fullname.removesuffix(own) + (ROW_NAME if own != ROW_NAME else f"{ROW_NAME}_")
    default = {"default": None} if null_defaults else {}
    return {
        "type": "record", "name": fullname, "fields": [
            {"name": "before", "type": ["null", row_schema(named, row, null_defaults, own)], **default},
            {"name": "after", "type": ["null", named], **default},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": "long"},
        ],
    }  # fmt: skip


def _own(fullname: str) -> str:
    """Without its namespace."""
    return fullname.rpartition(".")[2]


class _Types:
    """Types of one schema, in which a name is given once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._interval: str | None = None

    def of(self, sql: SqlType) -> object:
        if sql.is_array:
            return {"type": "array", "items": ["null", self.of(sql.element)]}
        if sql.name == "interval":
            return self._interval_type()
        return _SAID.get(sql.name) or avro_type(sql)

    def _interval_type(self) -> object:
        if self._interval is not None:
            return self._interval
        said = dict(avro_type(SqlType("interval")))
        while said["name"] in self._taken:
            said["name"] += "_"
        self._interval = said["name"]
        return said


# -- rows -------------------------------------------------------------------------------------------------------------

Encode = Callable[[object], bytes]
"""One value, never ``None``, as Arrow has it: of dates and moments the whole number under them."""


class AvroRows:
    """Writes rows of ``columns`` by their schema, without what says which that is."""

    def __init__(self, columns: Sequence[WrittenColumn]) -> None:
        self._columns = columns
        self._encode = [_encoder(each.type) for each in columns]

    def rows(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """One record a row; ``columns`` are those of the writer, one at least.  Raises :class:`Null`."""
        for each, column in zip(self._columns, columns, strict=True):
            if column.null_count and not each.nullable:
                raise Null(each.name)
        padded = [_padded(column, each.type) for each, column in zip(self._columns, columns, strict=True)]
        found = woven_records(padded, [each.nullable for each in self._columns])
        return self.one_by_one(columns) if found is None else found

    def one_by_one(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """As :meth:`rows`, value by value: what that is held against."""
        parts = []
        for each, encode, column in zip(self._columns, self._encode, columns, strict=True):
            values = whole_values(column)
            if each.nullable:
                parts.append([NULL if value is None else SOME + encode(value) for value in values])
            else:
                parts.append(list(map(encode, values)))
        return list(map(b"".join, zip(*parts, strict=True)))


def _padded(column: pa.ChunkedArray, sql: SqlType) -> pa.ChunkedArray:
    """With the blanks that a ``char`` is shown with, as :func:`_encoder` has it."""
    return pc.utf8_rpad(column, width=sql.precision or 0) if sql.name == "bpchar" and not sql.is_array else column


def _encoder(sql: SqlType) -> Encode:
    if sql.is_array:
        one = _encoder(sql.element)
        return lambda value: items([NULL if each is None else SOME + one(each) for each in value])
    if sql.name == "numeric" and not sql.is_free:
        scale = sql.scale
        return lambda value: number(int(value.scaleb(scale, _EXACT)))
    if sql.name == "bpchar":  # kept without the blanks at its end, and shown with them
        length = sql.precision or 0
        return lambda value: text(value.ljust(length))
    if sql.name == "interval":
        return lambda value: b"".join([long(value[part]) for part in ("months", "days", "micros")])
    return _ENCODERS[avro_name(carried(sql))]


def avro_name(sql: SqlType) -> str:
    """What Avro calls the bare value of ``sql``."""
    said = avro_type(sql)
    return said if isinstance(said, str) else said["type"]


_ENCODERS: dict[str, Encode] = {
    "boolean": lambda value: TRUE if value else FALSE, "int": long, "long": long, "float": single, "double": double,
    "bytes": sized, "string": text,
}  # fmt: skip


def as_json(schema: dict[str, object]) -> str:
    """A schema as a registry is told it."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
