"""Bytes of a message to cells, format by format.  Pure.

Promises: the verdict on bytes is a function of them, of the columns and of the schema that they were written with, and
is a row or a reason, for any bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from catalog_log.objects import Column
from catalog_log.objects.reading import AVRO, BYTES, CSV, JSON, PROTOBUF, TEXT, Format
from collection.columns import Columns, arrow_schema, sql_type
from collection.json_rows import BadRow, Members, decode_json, decode_members, planned, unwrapped
from collection.messages import avro_types, protobuf_types
from collection.messages.avro_columns import column_from, column_of
from collection.messages.avro_lockstep import lockstep
from collection.messages.csv_lines import fields_in
from collection.rows import ROW_BYTES_MAX
from schemas import protobuf_messages
from schemas.avro_messages import BadMessage, BadSchema, Schema, read_schema, reading
from values.bad_text import BadText
from values.from_json import text_converter
from values.json_values import BadValue, string
from values.text.jsonb import digits_meant, of_json, parse_jsonb, plain_jsonb, plain_jsonbs

Cells = tuple[object, ...]
Decode = Callable[[bytes], "Cells | BadRow"]
Many = Callable[[Sequence[bytes]], "Members | None"]

Writers = Mapping[int, Schema | None]
"""Of one registry: schemas by their ids, ``None`` of an id that it does not know or that is no schema for us."""

MAGIC_LEN = 5
"""A zero, and the schema's id: Confluent's wire format."""

WRITERS_MAX = 10_000
"""Schemas of writers that are remembered with how they are read."""


class Decoder(NamedTuple):
    """``decode`` gives the cells of a value's columns.  ``registry_id``: who knows what its values were written with;
    then ``know`` is told that before they are decoded."""

    decode: Decode
    registry_id: str = ""
    know: Callable[[Writers], None] = lambda writers: None
    many: Many | None = None
    """The same of many values at once, which is faster; what it gives is nothing where one of them is in doubt."""


def decoder(format: Format, columns: Columns, member: str = "") -> Decoder:
    """What reads ``columns``, in their order, from values of ``format``.

    ``member``: they are what is in the value's member of that name, which must be there and may be null: then the
    cells are none.  Raises ``BadSchema`` for a schema that does not give them.
    """
    if format.kind == JSON:
        if any(map(_may_grow, columns)):
            return Decoder(_json(columns, member))
        return Decoder(_json(columns, member), many=lambda values: decode_members(values, columns, member))
    if format.kind == AVRO:
        return _avro(format, columns, member)
    assert not member, f"{format.kind} has no members"
    if format.kind == PROTOBUF:
        return _protobuf(format, columns)
    return Decoder({TEXT: _text, BYTES: _bytes, CSV: _csv}[format.kind](format, columns))


def header_of(format: Format) -> Callable[[bytes], bool] | None:
    """What tells whether a value is a header, and so no row: one whose fields are those names, wherever it stands, with
    or without a byte order mark before it.  ``None`` where there is no such."""
    if not format.header:
        return None
    wanted, first = list(format.header), format.header[0].replace('"', '""').encode()

    def is_header(data: bytes) -> bool:
        if first not in data and b'"' not in data:  # as nearly all: that costs a tenth of reading their fields
            return False
        try:
            return fields_in(data.decode("utf-8-sig"), format.delimiter) == wanted
        except (UnicodeDecodeError, BadValue):
            return False

    return is_header


def json_key(columns: Columns, may_say_schema: bool = False) -> Decoder:
    """What reads a key that is JSON of any kind, as ``columns``, which are one ``jsonb``.

    Of one that says its own schema, where it may (:func:`unwrapped`), that is what is in it: a schema that becomes
    another makes no other key.
    """
    schema = arrow_schema(columns)

    def decode(data: bytes) -> Cells | BadRow:
        plain = plain_jsonb(data)
        if plain is not None:
            return (plain,)
        try:
            found = parse_jsonb(data.decode())
            return (of_json(unwrapped(found) if may_say_schema else found),)
        except UnicodeDecodeError:
            return BadRow("not UTF-8")
        except BadText as error:
            return BadRow(error.message)

    def many(values: Sequence[bytes]) -> Members | None:
        plain = plain_jsonbs(values)
        return None if plain is None else Members(pa.table([pa.array(plain, pa.string())], schema=schema), [], [])

    return Decoder(decode, many=many)


def schema_ids(values: Iterable[bytes | None]) -> set[int]:
    """The schemas that ``values`` say they were written with."""
    return {
        int.from_bytes(value[1:MAGIC_LEN], "big")
        for value in values
        if value is not None and len(value) >= MAGIC_LEN and not value[0]
    }


def _json(columns: Columns, member: str = "") -> Decode:
    plan = planned(columns, once=True)
    if not any(map(_may_grow, columns)):
        return lambda data: decode_json(data, plan, member)

    def decode(data: bytes) -> Cells | BadRow:
        # ``1e131071`` is written out where it is kept: a message of a megabyte would take ten gigabytes of memory.
        if b"e" in data or b"E" in data:
            meant = digits_meant(data.decode("utf-8", "replace"))
            if meant > ROW_BYTES_MAX:
                return BadRow(f"its numbers have some {meant} digits, a row has at most {ROW_BYTES_MAX} bytes")
        return decode_json(data, plan, member)

    return decode


def _may_grow(column: Column) -> bool:
    """Whether what is kept of a value may be any number of times as long as what was sent."""
    kind = sql_type(column.type)
    return kind.name == "jsonb" or kind.is_array or kind.is_free


def _text(_format: Format, columns: Columns) -> Decode:
    def decode(data: bytes) -> Cells | BadRow:
        try:
            return (string(data.decode()),)
        except UnicodeDecodeError:
            return BadRow("not UTF-8")
        except BadValue as error:
            return BadRow(str(error))

    return decode


def _bytes(_format: Format, columns: Columns) -> Decode:
    return lambda data: (data,)


def _csv(format: Format, columns: Columns) -> Decode:
    plan = [(each.name, each.nullable, text_converter(sql_type(each.type))) for each in columns]

    def decode(data: bytes) -> Cells | BadRow:
        try:
            fields = fields_in(data.decode(), format.delimiter)
        except UnicodeDecodeError:
            return BadRow("not UTF-8")
        except BadValue as error:
            return BadRow(str(error))
        if len(fields) != len(plan):
            return BadRow(f"it has {len(fields)} fields, not {len(plan)}")
        return _cells(plan, fields)

    return decode


def _cells(plan: Sequence[tuple[str, bool, Callable[[object], object]]], values: Iterable[object]) -> Cells | BadRow:
    row = []
    for (name, nullable, convert), value in zip(plan, values, strict=True):
        if value is None:
            if not nullable:
                return BadRow(f'column "{name}": null in a NOT NULL column')
        else:
            try:
                value = convert(value)
            except BadValue as error:
                return BadRow(f'column "{name}": {error}')
        row.append(value)
    return tuple(row)


def _avro(format: Format, columns: Columns, member: str) -> Decoder:
    reader = read_schema(format.schema)
    found = avro_types.fields_of(member_of(reader.tree, member) if member else reader.tree)
    whole = len(found) == 1 and isinstance(found[0], avro_types.Field) and found[0].name == avro_types.WHOLE
    plan = []
    for column in columns:
        field = found[0] if whole else avro_types.named(found, column.name)
        if not isinstance(field, avro_types.Field):
            raise BadSchema(field or f"it has no field {column.name}")
        plan.append((field.of(column.type) or field, column))
    cells = [(column.name, column.nullable, field.convert) for field, column in plan]
    names = [field.name for field, _ in plan]
    schema = arrow_schema(columns)
    # A name or a symbol stands in each of many values: those are measured one by one before they are written out.
    flat = not any(map(_may_grow, columns))

    def table(values: Sequence[object]) -> Members | None:
        if not flat:
            return None
        empty: list[int] = []
        if member:
            inner = [value[member] for value in values]
            empty = [place for place, value in enumerate(inner) if value is None]
            values = [value for value in inner if value is not None]
        arrays = []
        for field, column in plan:
            its = values if whole else [value[field.name] for value in values]
            array = column_of(field, column.nullable, its)
            if array is None:
                return None
            arrays.append(array)
        return Members(pa.Table.from_arrays(arrays, schema=schema), empty, [])

    reads = lockstep(reader.tree, names, member) if flat and not whole else None

    def at_once(values: Sequence[bytes], begin: int) -> Members | None:
        """By fields of all of them, where they were written by the reader's own schema; otherwise nothing."""
        found = None if reads is None else reads.of(values, begin)
        if found is None:
            return None
        empty: list[int] = []
        if member:
            found = found.fields[member]
            empty = [] if found.there is None else np.flatnonzero(~found.there).tolist()
        arrays = []
        for field, column in plan:
            its = found.fields[field.name].array
            array = None if its is None else column_from(field, column.nullable, its)
            if array is None:
                return None
            arrays.append(array)
        return Members(pa.Table.from_arrays(arrays, schema=schema), empty, [])

    def row(value: object) -> Cells | BadRow:
        if member:
            value = value[member]
            if value is None:
                return ()
        return _cells(cells, (value,) if whole else (value[name] for name in names))

    if not format.registry_id:
        read = reading(reader, reader)

        def decode_inline(data: bytes) -> Cells | BadRow:
            try:
                return row(read(data, 0))
            except BadMessage as error:
                return BadRow(str(error))

        def many_inline(values: Sequence[bytes]) -> Members | None:
            found = at_once(values, 0)
            if found is not None:
                return found
            try:
                return table([read(each, 0) for each in values])
            except BadMessage:
                return None

        return Decoder(decode_inline, many=many_inline)
    known: dict[int, Callable[[bytes, int], object] | str] = {}
    own: set[int] = set()
    """Those of them that say what the reader's does."""

    def know(writers: Writers) -> None:
        if len(known) > WRITERS_MAX:
            known.clear()
            own.clear()
        for number, writer in writers.items():
            if number in known and not isinstance(known[number], str):
                continue
            if writer is None:
                known[number] = f"its registry has no Avro schema {number} that can be read here"
                continue
            try:
                known[number] = reading(writer, reader)
                if writer.physical == reader.physical:
                    own.add(number)
            except BadMessage as error:
                known[number] = str(error)

    def decode(data: bytes) -> Cells | BadRow:
        if len(data) < MAGIC_LEN or data[0]:
            return BadRow("it does not begin with the id of a schema")
        read = known[int.from_bytes(data[1:MAGIC_LEN], "big")]
        if isinstance(read, str):
            return BadRow(read)
        try:
            return row(read(data, MAGIC_LEN))
        except BadMessage as error:
            return BadRow(str(error))

    def many(values: Sequence[bytes]) -> Members | None:
        [head, *others] = {each[:MAGIC_LEN] for each in values}
        if not others and len(head) == MAGIC_LEN and not head[0] and int.from_bytes(head[1:], "big") in own:
            at_one = at_once(values, MAGIC_LEN)
            if at_one is not None:
                return at_one
        found = []
        for each in values:
            if len(each) < MAGIC_LEN or each[0]:
                return None
            read = known[int.from_bytes(each[1:MAGIC_LEN], "big")]
            if isinstance(read, str):
                return None
            try:
                found.append(read(each, MAGIC_LEN))
            except BadMessage:
                return None
        return table(found)

    return Decoder(decode, format.registry_id, know, many)


def _protobuf(format: Format, columns: Columns) -> Decoder:
    of = type_of(format)
    by_name = {part.field.name: part for part in protobuf_types.parts_of(of)}
    parts = [by_name.get(column.name) for column in columns]
    for part, column in zip(parts, columns, strict=True):
        if part is None:
            raise BadSchema(f"it has no field {column.name}")
    read, raws = protobuf_messages.reading(of), [part.raw for part in parts]
    cells = [(column.name, column.nullable, part.field.convert) for part, column in zip(parts, columns, strict=True)]
    schema = arrow_schema(columns)

    def decode(data: bytes) -> Cells | BadRow:
        try:
            message = read(data)
            return _cells(cells, [raw(message) for raw in raws])
        except (BadMessage, BadValue) as error:
            return BadRow(str(error))

    def many(values: Sequence[bytes]) -> Members | None:
        arrays = []
        try:
            messages = [read(each) for each in values]
            for part, column in zip(parts, columns, strict=True):
                array = column_of(part.field, column.nullable, [part.raw(each) for each in messages])
                if array is None:
                    return None
                arrays.append(array)
        except (BadMessage, BadValue):
            return None
        return Members(pa.Table.from_arrays(arrays, schema=schema), [], [])

    # What may grow is measured message by message before it is kept.
    return Decoder(decode, many=None if any(part.long for part in parts) else many)


def type_of(format: Format) -> Descriptor:
    """The message type of ``PROTOBUF``.  Raises ``BadSchema``."""
    try:
        data = bytes.fromhex(format.schema)
    except ValueError:
        raise BadSchema("it is not in hex") from None
    return protobuf_messages.read_type(data, format.message)


def member_of(tree: object, member: str) -> object:
    """The schema of a record's field without null.  Raises ``BadSchema``."""
    fields = {each["name"]: each["type"] for each in tree["fields"]} if _is_record(tree) else {}
    found = fields.get(member)
    if found is None:
        raise BadSchema(f"it has no field {member}")
    others = [each for each in found if each["type"] != "null"] if isinstance(found, list) else [found]
    if len(others) != 1 or others[0]["type"] != "record":
        raise BadSchema(f"its field {member} is no record")
    return others[0]


def is_record(format: Format) -> bool:
    """Whether values have fields, which are columns.  Raises ``BadSchema``."""
    return format.kind == PROTOBUF or format.kind == AVRO and _is_record(read_schema(format.schema).tree)


def _is_record(tree: object) -> bool:
    return isinstance(tree, dict) and tree["type"] == "record"
