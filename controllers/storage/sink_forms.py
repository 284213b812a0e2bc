"""In which bytes a sink says rows, keys and what became of a row: JSON, or Avro by the schemas of a registry.  Pure.

Promises: two keys are equal where, and only where, their bytes are, for as long as the sink lives.  A row is said in
two steps, by itself and in its message, since what became of one may hold two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from catalog_log.objects import Relation, Sink
from catalog_log.objects.sink import AVRO, DEBEZIUM
from collection.columns import sql_type
from collection.json_written import RowWriter
from collection.messages.avro_written import (
    KEY_NAME,
    VALUE_NAME,
    AvroRows,
    WrittenColumn,
    as_json,
    pair_schema,
    row_schema,
)
from schemas.avro_bytes import NULL, SOME, long, text
from schemas.avro_messages import read_schema, reading

Register = Callable[[str, str, str], int]
"""The id of a schema: of which subject, as text, and which level of compatibility that gets where it has none."""

_MAGIC = b"\0"
"""Before the id of a schema."""


class Form(Protocol):
    def prepare(self, register: Register) -> None:
        """Before anything is written: have others know how it is said.  May raise what ``register`` raises."""

    def rows(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """Rows of the sink's columns.  Raises :class:`Null`; once that column is :meth:`widened` they are said."""

    def keys(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        """The keys of messages.  Raises :class:`Null`: how a key is said never changes, or one row would have two."""

    def widened(self, column: str) -> None:
        """A value of ``column`` may be NULL from now on: to be prepared anew."""

    def value(self, row: bytes) -> bytes:
        """The value of a message that has a row."""

    def values(self, rows: Sequence[bytes]) -> Sequence[bytes]:
        """Those of many."""

    def pair(self, ts: int, op: str, before: bytes | None, after: bytes | None) -> bytes:
        """The value of one that has what a row was and what it is."""

    def shown(self, said: bytes, key: bool = False) -> str:
        """A row, or a key, for a person."""


def form_of(sink: Sink, relation: Relation) -> Form:
    """How ``sink`` says what it writes of ``relation``."""
    now = {column.id: column for column in relation.stored}
    begun = sink.registering.nullable if sink.registering is not None else ()
    ever = {*begun, *(sink.registering.widened if sink.registering is not None else ())}
    columns = [WrittenColumn(name, sql_type(now[number].type), now[number].nullable or number in ever)
               for number, name in sink.columns]  # fmt: skip
    places = {number: place for place, (number, _) in enumerate(sink.columns)}
    key = [columns[places[number]]._replace(nullable=number in begun) for number in sink.key]
    return AvroForm(sink, columns, key) if sink.format == AVRO else JsonForm(columns, key)


class JsonForm:
    def __init__(self, columns: Sequence[WrittenColumn] = (), key: Sequence[WrittenColumn] = ()) -> None:
        self.rows = RowWriter([(each.name, each.type) for each in columns]).rows
        self.keys = RowWriter([(each.name, each.type) for each in key]).rows
        self._behind = _Behind(lambda ts, op: b',"op":"%b","ts_ms":%d}' % (op.encode(), ts))

    def prepare(self, register: Register) -> None:
        """JSON says itself what it is."""

    def widened(self, column: str) -> None:
        """In JSON anything may be null."""

    def value(self, row: bytes) -> bytes:
        return row

    def values(self, rows: Sequence[bytes]) -> Sequence[bytes]:
        return rows

    def pair(self, ts: int, op: str, before: bytes | None, after: bytes | None) -> bytes:
        return b"".join((b'{"before":', before or b"null", b',"after":', after or b"null", self._behind.of(ts, op)))

    def shown(self, said: bytes, key: bool = False) -> str:
        return said.decode(errors="replace")


class AvroForm:
    """As Confluent's serializers have it: before each value, and each key, the id of its schema."""

    def __init__(self, sink: Sink, columns: Sequence[WrittenColumn], key: Sequence[WrittenColumn]) -> None:
        assert sink.registering is not None, sink
        self._told = sink.registering
        self._topic = sink.topic
        self._value_schema = pair_schema if sink.envelope == DEBEZIUM else row_schema
        self._columns, self._key = tuple(columns), tuple(key)
        self._rows, self._keys = AvroRows(columns), AvroRows(key)
        self._of_key = self._of_value = b""
        self._behind = _Behind(lambda ts, op: text(op) + long(ts))

    def prepare(self, register: Register) -> None:
        told = self._told
        if self._key:
            schema = as_json(row_schema(told.key_name or KEY_NAME, self._key, told.null_defaults))
            self._of_key = _head(register(f"{self._topic}-key", schema, told.key_compatibility))
        schema = as_json(self._value_schema(told.value_name or VALUE_NAME, self._columns, told.null_defaults))
        self._of_value = _head(register(f"{self._topic}-value", schema, told.value_compatibility))

    def widened(self, column: str) -> None:
        self._columns = tuple([each._replace(nullable=each.nullable or each.name == column) for each in self._columns])
        self._rows = AvroRows(self._columns)

    def rows(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        return self._rows.rows(columns)

    def keys(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        assert self._of_key, "prepare it first"
        return [self._of_key + each for each in self._keys.rows(columns)]

    def value(self, row: bytes) -> bytes:
        assert self._of_value, "prepare it first"
        return self._of_value + row

    def values(self, rows: Sequence[bytes]) -> Sequence[bytes]:
        assert self._of_value, "prepare it first"
        head = self._of_value
        return [head + row for row in rows]

    def pair(self, ts: int, op: str, before: bytes | None, after: bytes | None) -> bytes:
        sides = [NULL if each is None else SOME + each for each in (before, after)]
        return self.value(b"".join([*sides, self._behind.of(ts, op)]))

    def shown(self, said: bytes, key: bool = False) -> str:
        schema = read_schema(as_json(row_schema("row", self._key if key else self._columns)))
        return str(reading(schema, schema)(said, len(self._of_key) if key else 0))


class _Behind:
    """What stands behind the rows of a message, which those of one timestamp have in common."""

    def __init__(self, made: Callable[[int, str], bytes]) -> None:
        self._made = made
        self._ts: int | None = None
        self._found: dict[str, bytes] = {}

    def of(self, ts: int, op: str) -> bytes:
        if ts != self._ts:
            self._ts, self._found = ts, {}
        found = self._found.get(op)
        if found is None:
            found = self._found[op] = self._made(ts, op)
        return found


def _head(number: int) -> bytes:
    return _MAGIC + number.to_bytes(4, "big")
