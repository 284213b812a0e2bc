"""Rows that a sink writes are Avro, and are read back as the rows that they were, by us and by others."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal

import fastavro
import pytest

from catalog_log.objects import Column
from collection.columns import sql_type, table_from_rows
from collection.messages.avro_types import Field, fields_of
from collection.messages.avro_written import (
    AvroRows,
    Null,
    WrittenColumn,
    as_json,
    pair_schema,
    row_schema,
)
from schemas.avro_bytes import long, number
from schemas.avro_messages import read_schema, reading
from tests.collection.test_json_written import VALUES, many, value
from values.types import row_of


def written(*columns: tuple[str, str, bool]) -> list[WrittenColumn]:
    return [WrittenColumn(name, sql_type(kind), nullable) for name, kind, nullable in columns]


def encoded(columns: list[WrittenColumn], rows: list[tuple]) -> list[bytes]:
    table = table_from_rows([Column(each.name, str(each.type)) for each in columns], rows)
    return AvroRows(columns).rows(table.columns)


def others(columns: list[WrittenColumn], data: bytes, **more: object) -> dict:
    """As anybody reads it."""
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(row_schema("a.b.row", columns, **more)))


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_value_of_each_type_comes_back(name: str) -> None:
    columns = written(("a", name, True), ("many", f"{name}[]", True), ("b", "int4", False))
    values = [value(name, text) for text in VALUES[name]]
    rows = [(each, [each, None], 7) for each in values] + [(None, None, 0), (None, [], -1)]
    table = table_from_rows([Column(each.name, str(each.type)) for each in columns], rows)
    data = AvroRows(columns).rows(table.columns)
    assert len(set(data)) == len({repr(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)})
    schema = read_schema(as_json(row_schema("row", columns)))
    read = reading(schema, schema)
    first, many, last = fields_of(schema.tree)
    assert isinstance(first, Field) and isinstance(many, Field) and (first.nullable, last.nullable) == (True, False)
    found = [read(each, 0) for each in data]
    assert [each["b"] for each in found] == [row[2] for row in rows]
    if name == "interval":  # a record, and a record in a record is jsonb where it is read
        assert first.type == "jsonb" and [each["a"] for each in found] == table.column(0).to_pylist()
        return
    texts = sql_type(name).is_free or sql_type(name).name in ("jsonb", "bpchar", "varchar", "macaddr", "macaddr8")
    assert first.type == ("text" if texts else {"int2": "int4"}.get(name, name))
    shown = _texts if sql_type(name).name == "bpchar" else lambda got, _: got
    got = [None if each["a"] is None else first.convert(each["a"]) for each in found]
    as_kept = table_from_rows([Column("a", first.type)], [(each,) for each in got]).column(0).to_pylist()
    assert repr(shown(as_kept, name)) == repr(table.column(0).to_pylist())
    lists = [None if each["many"] is None else many.convert(each["many"]) for each in found]
    as_kept = table_from_rows([Column("a", many.type)], [(each,) for each in lists]).column(0).to_pylist()
    wanted = table.column(1).to_pylist()
    if sql_type(name).name == "bpchar":
        as_kept = [each and _texts(each, name) for each in as_kept]
    assert repr(as_kept) == repr(wanted)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("name", sorted(VALUES))
def test_all_at_once_is_the_same_as_one_by_one(name: str, nulls: bool) -> None:
    table = many(name, nulls)
    for some in ((0, 2), (0, 1, 2)):  # without lists, which go one by one, and with them
        columns = [written(("a", name, nulls), ("many", f"{name}[]", True), ("n", "int8", False))[at] for at in some]
        arrays, rows = [table.column(at) for at in some], AvroRows(columns)
        assert rows.rows(arrays) == rows.one_by_one(arrays)
    if nulls:
        strict = AvroRows(written(("a", name, False)))
        with pytest.raises(Null, match="^a$"):
            strict.rows(table.columns[:1])


def _texts(values: list[str | None], name: str) -> list[str | None]:
    """Without the blanks that a char is shown with."""
    length = sql_type(name).precision or 0
    assert all(each is None or len(each) >= length for each in values)
    return [each and row_of(sql_type(name)).read(each) for each in values]


def test_the_schemas_that_a_registry_is_told() -> None:
    columns = written(
        ("id", "int8", False), ("n", "numeric(8,2)", True), ("i", "interval", True), ("j", "interval", False),
        ("d", "jsonb", True), ("t", "time", False), ("u", "uuid[]", True),
    )  # fmt: skip
    uuid = {"type": "string", "logicalType": "uuid"}
    interval = {
        "type": "record",
        "name": "Interval",
        "fields": [
            {"name": "months", "type": "int"},
            {"name": "days", "type": "int"},
            {"name": "micros", "type": "long"},
        ],
    }
    fields = [
        {"name": "id", "type": "long"},
        {"name": "n", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}]},
        {"name": "i", "type": ["null", interval]}, {"name": "j", "type": "Interval"},
        {"name": "d", "type": ["null", {"type": "string", "connect.name": "io.debezium.data.Json"}]},
        {"name": "t", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "u", "type": ["null", {"type": "array", "items": ["null", uuid]}]},
    ]  # fmt: skip
    assert row_schema("com.acme.Row", columns) == {"type": "record", "name": "com.acme.Row", "fields": fields}
    assert [("default" in each) for each in row_schema("row", columns, True)["fields"]] == [c.nullable for c in columns]
    pair = pair_schema("com.acme.Change", columns)
    assert [each["name"] for each in pair["fields"]] == ["before", "after", "op", "ts_ms"]
    assert pair["fields"][0]["type"] == ["null", {"type": "record", "name": "com.acme.row", "fields": fields}]
    assert pair["fields"][1]["type"] == ["null", "com.acme.row"]
    for fullname in ("envelope", "row", "a.row", "Interval", "x.Interval", "row_"):
        for made in (row_schema, pair_schema):
            fastavro.parse_schema(made(fullname, columns, True))
            read_schema(as_json(made(fullname, columns, True)))
    assert as_json(pair) == as_json(json.loads(as_json(pair)))


def test_others_read_what_logical_types_mean() -> None:
    columns = written(
        ("n", "numeric(38,9)", True), ("d", "date", False), ("z", "timestamptz", True), ("w", "timestamp", True),
        ("t", "time", True), ("u", "uuid", True), ("c", "char(4)", True), ("f", "numeric", True),
    )  # fmt: skip
    number = Decimal("-12345678901234567890123456789.123456789")
    moment = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    uuid = "00000000-0000-0000-0000-0000000000ff"
    row = (number, dt.date(1, 1, 1), moment.replace(tzinfo=dt.UTC), dt.datetime(1, 1, 1), 86_399_999_999, uuid, "ab",
           "1.500")  # fmt: skip
    [data] = encoded(columns, [row])
    found = others(columns, data)
    assert str(found.pop("u")) == uuid
    assert found == {"n": number, "d": row[1], "z": row[2], "w": row[3], "t": dt.time(23, 59, 59, 999999), "c": "ab  ",
                     "f": "1.500"}  # fmt: skip


def test_a_null_where_there_may_be_none_is_told() -> None:
    with pytest.raises(Null, match="^b$"):
        encoded(written(("a", "int4", True), ("b", "text", False)), [(None, "x"), (1, None)])


def test_whole_numbers_of_any_size_are_as_fastavro_has_them() -> None:
    edges = {sign * (1 << bits) + more for bits in range(64) for sign in (1, -1) for more in (-1, 0, 1)}
    for whole in sorted(each for each in edges if -(1 << 63) <= each < 1 << 63):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, "long", whole)
        assert long(whole) == out.getvalue(), whole
        schema = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
        assert fastavro.schemaless_reader(io.BytesIO(number(whole)), schema) == Decimal(whole).scaleb(-2)
