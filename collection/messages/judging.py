"""Which messages of a topic are rows of a copied source, and of which key: the pure part of copying.

Promises: each message gets one verdict, which is a function of its bytes, of the source and of the schemas that it was
written with.  Under ``ENVELOPE UPSERT`` and ``DEBEZIUM`` a verdict is what its key is from there on: a row or none.

Of Debezium ``after`` alone is believed: ``before`` is missing where a database does not log it, and a message that
comes twice, as any may, would take one row away twice.  What a key had before is known anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog_log.objects import Column, Source
from catalog_log.objects.reading import (
    BOTH,
    DEBEZIUM,
    HEADERS,
    JSON,
    KEY,
    METADATA,
    NONE,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    VALUE,
)
from collection.columns import arrow_schema, table_from_rows
from collection.json_rows import BadRow, Members
from collection.messages.formats import Cells, Decoder, Writers, decoder, header_of, json_key, schema_ids
from collection.rows import ROW_BYTES_MAX
from values.bad_text import BadText
from values.text.jsonb import of_json

AFTER = "after"

LARGE_BYTES = 32 * 1024
"""Of a message from which on its row is measured by itself."""

SIZE_MAX = ROW_BYTES_MAX - LARGE_BYTES
"""Of a row as it is measured: what its record has beside it is less than the difference."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Message(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Sequence[tuple[str, bytes | None]] | None = ()
    """``None`` where they cannot be read."""


class Keyed(NamedTuple):
    """What a key is from a message on: a row, or nothing (``None``)."""

    key: Cells
    row: Cells | None


class KeyedTable(NamedTuple):
    """What :class:`Keyed` are, as columns: the keys in the order of the messages, which of them have a row, and those
    rows."""

    keys: pa.Table
    there: list[bool]
    rows: pa.Table
    bad: list[BadRow]


class Judged(NamedTuple):
    """``rows`` under ``ENVELOPE NONE``, otherwise ``keyed``, each in the order of the messages; the others are
    ``bad``, but for headers, which are nothing."""

    rows: list[Cells]
    keyed: list[Keyed]
    bad: list[BadRow]


class Judge:
    """Of one source.  Raises ``BadSchema`` where its formats cannot give its columns: the catalog has such none."""

    def __init__(self, source: Source) -> None:
        reading = source.reading
        assert reading is not None, f"{source.id} is read where it is"
        columns = list(zip(source.stored, reading.roles, strict=True))
        self._columns = source.stored
        self.key_columns: list[Column] = [column for column, role in columns if role in (KEY, BOTH)]
        """Those of the key, in the order of the source's."""
        self.key_places = [place for place, (_, role) in enumerate(columns) if role in (KEY, BOTH)]
        """Where they are in a row."""
        value_columns = [column for column, role in columns if role in (VALUE, BOTH)]
        self._shared = [
            (self.key_columns.index(column), value_columns.index(column), column.name)
            for column, role in columns
            if role == BOTH
        ]
        self._own_keys = [place for place, column in enumerate(self.key_columns) if column not in value_columns]
        self._envelope = source.envelope
        debezium = source.envelope == DEBEZIUM
        self._key: Decoder | None = None
        if self.key_columns and reading.key is not None:
            is_json = reading.key.kind == JSON
            self._key = json_key(self.key_columns, debezium) if is_json else decoder(reading.key, self.key_columns)
        self._value = decoder(reading.value, value_columns, AFTER if debezium else "")
        self._is_header = header_of(reading.value)
        self._metadata = [_METADATA[role] for _, role in columns if role in METADATA]

    def schemas(self, messages: Iterable[Message]) -> dict[str, set[int]]:
        """The ids of the schemas that it must be told (:meth:`know`) before it judges ``messages``, by registry."""
        found: dict[str, set[int]] = {}
        for registry_id, values in (
            (self._value.registry_id, (each.value for each in messages)),
            (self._key.registry_id if self._key is not None else "", (each.key for each in messages)),
        ):
            if registry_id:
                found.setdefault(registry_id, set()).update(schema_ids(values))
        return found

    def know(self, registry_id: str, writers: Writers) -> None:
        for each in (self._value, self._key):
            if each is not None and each.registry_id == registry_id:
                each.know(writers)

    def table(self, messages: Sequence[Message]) -> tuple[pa.Table, list[BadRow]]:
        """Under ``ENVELOPE NONE``, what :meth:`judge` gives, with the rows as a table; faster where nothing is in
        doubt."""
        found = self._at_once(messages)
        if found is not None:
            return found
        judged = self.judge(messages)
        return table_from_rows(self._columns, judged.rows), judged.bad

    def _at_once(self, messages: Sequence[Message]) -> tuple[pa.Table, list[BadRow]] | None:
        if self._key is not None:
            return None
        found = self._values_at_once(messages)
        if found is None:
            return None
        gone = {each.index for each in found.bad}
        table = self._with_metadata(found.rows, [each for at, each in enumerate(messages) if at not in gone])
        return None if _may_be_large(table) else (table, found.bad)

    def keyed_table(self, messages: Sequence[Message]) -> KeyedTable:
        """What :meth:`judge` gives under ``ENVELOPE UPSERT`` and ``DEBEZIUM``, faster where nothing is in doubt."""
        found = self._keyed_at_once(messages)
        if found is not None:
            return found
        judged = self.judge(messages)
        keys = table_from_rows(self.key_columns, [each.key for each in judged.keyed])
        rows = table_from_rows(self._columns, [each.row for each in judged.keyed if each.row is not None])
        return KeyedTable(keys, [each.row is not None for each in judged.keyed], rows, judged.bad)

    def _keyed_at_once(self, messages: Sequence[Message]) -> KeyedTable | None:
        many = self._value.many
        if self._key is None or self._is_header is not None or many is None:
            return None
        if not messages or any(map(_is_large, messages)):
            return None
        told, of, bad = self._keys(messages)
        values: list[bytes] = []
        valued: list[int] = []
        """Which of ``told`` each of ``values`` is of."""
        for place, index in enumerate(of):
            value = messages[index].value
            if value is not None:
                values.append(value)
                valued.append(place)
        found = many(values) if values else None
        if found is None:
            return None
        none = {valued[at] for at in found.empty} | {valued[each.index] for each in found.bad}
        having = [place for place in valued if place not in none] if none else valued
        rows = self._with_keys(found.rows, told if len(having) == len(of) else told.take(pa.array(having, pa.int64())))
        if rows is None:
            return None
        if self._metadata:
            rows = self._with_metadata(rows, [messages[of[place]] for place in having])
        if _may_be_large(rows):
            return None
        has = np.zeros(len(of), bool)
        has[having] = True
        if found.bad:
            lost = [valued[each.index] for each in found.bad]
            bad += [BadRow(each.reason, of[place]) for each, place in zip(found.bad, lost, strict=True)]
            bad.sort(key=lambda each: each.index)
            judged = np.delete(np.arange(len(of)), lost)
            told, has = told.take(pa.array(judged, pa.int64())), has[judged]
        return KeyedTable(told, has.tolist(), rows, bad)

    def _keys(self, messages: Sequence[Message]) -> tuple[pa.Table, Sequence[int], list[BadRow]]:
        """Those of ``messages`` that have one, which message each is of, and why the others have none."""
        assert self._key is not None, "there are some"
        given = [each.key for each in messages]
        if self._key.many is not None and None not in given:
            found = self._key.many(given)
            if found is not None and found.rows.num_rows == len(messages):
                return found.rows, range(len(messages)), []
        keys: list[Cells] = []
        of: list[int] = []
        bad: list[BadRow] = []
        for index, key in enumerate(given):
            cells = _key(self._key, self.key_columns, key, self._envelope)
            if isinstance(cells, BadRow):
                bad.append(BadRow(cells.reason, index))
            else:
                keys.append(cells)
                of.append(index)
        return table_from_rows(self.key_columns, keys), of, bad

    def _values_at_once(self, messages: Sequence[Message]) -> Members | None:
        """The values of ``messages``, which all have one."""
        many = self._value.many
        if many is None or not messages or any(map(_is_large, messages)):
            return None
        values = [each.value for each in messages]
        return None if None in values else many(values)

    def _with_keys(self, rows: pa.Table, of_keys: pa.Table) -> pa.Table | None:
        """``rows`` behind the columns that are in their keys alone; ``None`` where another may be another in the key
        than in the value."""
        for at, place, _ in self._shared:
            if not _alike(of_keys.column(at), rows.column(place)):
                return None
        columns = [of_keys.column(at) for at in self._own_keys] + rows.columns
        return pa.Table.from_arrays(columns, schema=pa.schema(list(arrow_schema(self._columns))[: len(columns)]))

    def _with_metadata(self, rows: pa.Table, messages: Sequence[Message]) -> pa.Table:
        """``rows``, one of each of ``messages``, with what is said of them."""
        if not self._metadata:
            return rows
        columns = self._columns[len(self._columns) - len(self._metadata) :]
        more = table_from_rows(columns, [tuple([of(each) for of in self._metadata]) for each in messages])
        return pa.Table.from_arrays([*rows.columns, *more.columns], schema=arrow_schema(self._columns))

    def judge(self, messages: Sequence[Message]) -> Judged:
        rows: list[Cells] = []
        keyed: list[Keyed] = []
        bad: list[BadRow] = []
        for index, message in enumerate(messages):
            if self._is_header is not None and message.value is not None and self._is_header(message.value):
                continue
            found = self._one(message)
            if isinstance(found, BadRow):
                bad.append(BadRow(found.reason, index))
            elif self._envelope == NONE:
                rows.append(found)
            else:
                keyed.append(found)
        return Judged(rows, keyed, bad)

    def _one(self, message: Message) -> Cells | Keyed | BadRow:
        if message.headers is None:
            return BadRow("its headers have a name that is not UTF-8")
        key: Cells | BadRow = ()
        if self._key is not None:
            key = _key(self._key, self.key_columns, message.key, self._envelope)
            if isinstance(key, BadRow):
                return key
        if message.value is None:
            return BadRow("the record has no value") if self._envelope == NONE else Keyed(key, None)
        value = self._value.decode(message.value)
        if isinstance(value, BadRow):
            return value
        if self._envelope == DEBEZIUM and not value:
            return Keyed(key, None)
        for at, place, name in self._shared:
            if key[at] != value[place] and not _both_nan(key[at], value[place]):
                return BadRow(f'column "{name}" is another in the key than in the value')
        row = (*(key[at] for at in self._own_keys), *value, *(each(message) for each in self._metadata))
        # However short the message is: an exponent, or a schema's symbol, is short where it comes and long where kept.
        size = sum(map(_size, row))
        if size > SIZE_MAX:
            return BadRow(f"its row has some {size} bytes, at most {SIZE_MAX} are kept")
        return row if self._envelope == NONE else Keyed(key, row)


def _key(key: Decoder, columns: Sequence[Column], given: bytes | None, envelope: str) -> Cells | BadRow:
    if given is None:
        if envelope == NONE:
            return (None,) * len(columns)
        return BadRow("the record has no key")
    found = key.decode(given)
    if isinstance(found, BadRow):
        return BadRow(f"its key: {found.reason}")
    return found


def _both_nan(one: object, other: object) -> bool:
    return one != one and other != other


def _alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether both are of one type and equal everywhere, beyond doubt."""
    return one.type == other.type and not pa.types.is_floating(one.type) and one.equals(other)


def _is_large(message: Message) -> bool:
    """Whether its row is to be measured by itself, or its headers cannot be read."""
    _, _, key, value, _, headers = message
    if headers is None or key is not None and len(key) > LARGE_BYTES:
        return True
    size = 0 if value is None else len(value)
    if headers:
        size += sum(len(name) + len(each or b"") for name, each in headers)
    return size > LARGE_BYTES


def _may_be_large(table: pa.Table) -> bool:
    """Whether one of its rows may have more than ``SIZE_MAX`` bytes."""
    if table.nbytes <= SIZE_MAX:
        return False
    widest = 20 * table.num_columns
    for column in table.columns:
        if pa.types.is_nested(column.type):
            return True
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            widest += pc.max(pc.binary_length(column)).as_py() or 0
    return widest > SIZE_MAX


def _size(cell: object) -> int:
    """About the bytes of a value as rows have it; never less by more than a few."""
    if isinstance(cell, str):
        return 4 * len(cell) if not cell.isascii() else len(cell)
    if isinstance(cell, (bytes, bytearray)):
        return len(cell)
    if isinstance(cell, (list, tuple)):
        return 10 + sum(1 + _size(each) for each in cell)
    if isinstance(cell, Mapping):
        return sum(map(_size, chain.from_iterable(cell.items())))
    return 20


def _headers(message: Message) -> str:
    """``[{"key": …, "value": …}, …]`` in their order; a value is text where it is text without U+0000, and otherwise
    ``{"hex": …}``."""
    found = []
    for name, value in message.headers or ():
        shown: object = None
        if value is not None:
            try:
                shown = value.decode()
                if "\0" in shown:
                    raise ValueError
            except ValueError:
                shown = {"hex": value.hex()}
        found.append({"key": name.replace("\0", "\ufffd"), "value": shown})
    try:
        return of_json(found)
    except BadText:  # half of a surrogate pair in a name, which is told as what it is not
        safe = [{**each, "key": each["key"].encode("utf-8", "replace").decode()} for each in found]
        return of_json(safe)


def _timestamp(message: Message) -> datetime | None:
    """``None`` where a message says none, or none that is a time."""
    try:
        return None if message.timestamp_ms < 0 else _EPOCH + timedelta(milliseconds=message.timestamp_ms)
    except OverflowError:
        return None


_METADATA: Mapping[str, Callable[[Message], object]] = {
    PARTITION: lambda message: message.partition,
    OFFSET: lambda message: message.offset,
    TIMESTAMP: _timestamp,
    HEADERS: _headers,
}
