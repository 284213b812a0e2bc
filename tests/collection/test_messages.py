"""Messages to rows: formats, keys, envelopes and what comes with a message.  Any bytes are a row or a reason."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from catalog_log.objects import Column, Connection, Source
from catalog_log.objects.reading import Format, Reading
from collection import json_rows
from collection.columns import table_from_rows
from collection.json_rows import BadRow
from collection.messages import registry as asking
from collection.messages.avro_types import fields_of
from collection.messages.csv_lines import fields_in
from collection.messages.formats import header_of
from collection.messages.judging import LARGE_BYTES, Judge, Judged, Keyed, Message
from collection.rows import ROW_BYTES_MAX, decode, encode
from journal.errors import InvalidUsage, Rejected, Unavailable
from schemas.avro_messages import BadSchema, read_schema
from tests.registry import SchemaRegistry
from tests.seeds import seed_of_commit
from values.datatypes.registry import DATATYPES
from values.json_values import BadValue

REGISTRY = "u9"


def source(columns: dict[str, str], value: Format, key: Format | None = None, roles: str = "", envelope: str = "none",
           not_null: Sequence[str] = ()) -> Source:  # fmt: skip
    names = {"k": "key", "v": "value", "b": "both", "p": "partition", "o": "offset", "t": "timestamp", "h": "headers"}
    said = tuple(names[each] for each in roles) or ("value",) * len(columns)
    numbered = tuple(Column(n, t, n not in not_null, id=i) for i, (n, t) in enumerate(columns.items(), 1))
    return Source("u1", "s1", "s", "", numbered, topic="t", format=value.kind, envelope=envelope, errors_id="u2",
                  reading=Reading(value, key, said))  # fmt: skip


def message(value: bytes | None, key: bytes | None = None, **more) -> Message:
    return Message(0, 0, key, value, -1)._replace(**more)


def judged(of: Source, *messages: Message) -> Judged:
    judge = Judge(of)
    found = judge.judge(messages)
    same_at_once(judge, of, messages, found)
    table_from_rows(of.stored, [each.row for each in found.keyed if each.row is not None])
    return found


def same_at_once(judge: Judge, of: Source, messages: Sequence[Message], found: Judged) -> None:
    """What many messages are at once is what each is by itself."""
    rows = table_from_rows(of.stored, found.rows)
    if of.envelope == "none":
        table, bad = judge.table(messages)
        assert bad == found.bad and table.schema == rows.schema
        assert alike(of, table, rows)
        return
    keyed = judge.keyed_table(messages)
    assert keyed.bad == found.bad and keyed.rows.schema == rows.schema
    assert keyed.there == [each.row is not None for each in found.keyed]
    keys = table_from_rows(judge.key_columns, [each.key for each in found.keyed])
    rows = table_from_rows(of.stored, [each.row for each in found.keyed if each.row is not None])
    for one, other in ((keyed.keys, keys), (keyed.rows, rows)):
        assert repr(one.to_pydict()) == repr(other.to_pydict())
    assert alike(of, keyed.rows, rows)


def alike(of: Source, one: pa.Table, other: pa.Table) -> bool:
    """To the byte in which rows are kept, but for what would take seconds to write."""
    if one.nbytes > 1 << 20:
        return one.equals(other)
    return list(encode(of.stored, one, "a")) == list(encode(of.stored, other, "a"))


def why(of: Source, value: bytes | None, **more) -> str:
    found = judged(of, message(value, **more))
    assert not found.rows and not found.keyed
    return found.bad[0].reason


def test_text_and_bytes_are_themselves() -> None:
    text, data = source({"text": "text"}, Format("text")), source({"data": "bytea"}, Format("bytes"))
    assert judged(text, message("é\n".encode()), message(b"")).rows == [("é\n",), ("",)]
    assert judged(data, message(b"\xff\0"), message(b"")).rows == [(b"\xff\0",), (b"",)]
    assert why(text, b"\xff") == "not UTF-8"
    assert why(text, b"a\0") == "text holds the character U+0000"
    assert why(text, None) == why(data, None) == "the record has no value"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("a,b", ["a", "b"]), ("a,,", ["a", None, None]), ('"",x', ["", "x"]), ("", [None]), ("1,2\r\n", ["1", "2"]),
        ('"a,""b"",\nc",d', ['a,"b",\nc', "d"]), ('a"b,c"d,e', ["ab,cd", "e"]), (" a , b", [" a ", " b"]),
        ('"x', BadValue), ("a\nb", BadValue), ('"a"\n"b"', BadValue),
    ],
)  # fmt: skip
def test_a_line_of_csv_has_the_fields_that_copy_reads(line: str, fields) -> None:
    if fields is BadValue:
        with pytest.raises(BadValue):
            fields_in(line, ",")
    else:
        assert fields_in(line, ",") == fields


def test_fields_of_csv_are_read_as_their_types_texts() -> None:
    of = source({"id": "int8", "at": "timestamptz", "price": "numeric(10,2)", "tags": "text[]", "free": "numeric"},
                Format("csv", columns=5, delimiter=";"), not_null=("id",))  # fmt: skip
    rows = judged(of, message(b"1;2024-01-02 03:04+01; 1.005 ;{a,NULL};1.50"), message(b"2;;;;")).rows
    assert rows == [
        (1, datetime(2024, 1, 2, 2, 4, tzinfo=UTC), Decimal("1.01"), ["a", None], "1.50"), (2, None, None, None, None)
    ]  # fmt: skip
    assert why(of, b";;;;") == 'column "id": null in a NOT NULL column'
    assert why(of, b"x;;;;") == 'column "id": invalid input syntax for type bigint: "x"'
    assert why(of, b"1;2") == "it has 2 fields, not 5"
    assert why(of, b"\xff;;;;") == "not UTF-8"


def test_a_header_of_csv_is_no_row_wherever_it_stands_and_no_mistake() -> None:
    csv = Format("csv", columns=2, delimiter=";", header=("id", 'a "b"'))
    of = source({"id": "int8", "n": "text"}, csv)
    headers = [b'id;a "b"', b'id;"a ""b"""', b'\xef\xbb\xbfid;"a ""b"""\r\n', b'"id";"a ""b"""']
    none = [b'id;a ""b""', b'id;"a ""b"""x', b"\xffid;", b'1;"a ""b"""', b'id;"a']
    found = judged(of, *map(message, [headers[1], b"1;x", *headers[1:], none[3], b"x;id", none[2], b"2;"]))
    assert found.rows == [(1, "x"), (1, 'a "b"'), (2, None)] and [each.index for each in found.bad] == [6, 7]
    is_header = header_of(csv)
    assert [is_header(each) for each in headers[1:]] == [True] * 3 and not any(map(is_header, none))
    assert not is_header(headers[0]), "quotes that stand in a field by themselves are none of it"
    keyed = source({"k": "text", "id": "int8", "n": "text"}, csv, Format("text"), "kvv", "upsert")
    found = judged(keyed, message(headers[1]), message(b"1;x", b"a"), message(headers[1], b"a"), message(None, b"b"))
    assert [each.row for each in found.keyed] == [("a", 1, "x"), None] and not found.bad
    assert header_of(Format("csv", columns=2)) is None


def test_what_comes_with_a_message_is_columns() -> None:
    of = source({"k": "text", "v": "text", "p": "int4", "o": "int8", "at": "timestamptz", "h": "jsonb"},
                Format("text"), Format("text"), "kvpoth")  # fmt: skip
    given = message(b"x", b"key", partition=3, offset=8, timestamp_ms=1500,
                    headers=[("a", b"1"), ("a", None), ("b", b"\xff"), ("c", b"\0")])  # fmt: skip
    assert judged(of, given).rows == [
        ("key", "x", 3, 8, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
         '[{"key": "a", "value": "1"}, {"key": "a", "value": null}, {"key": "b", "value": {"hex": "ff"}}, '
         '{"key": "c", "value": {"hex": "00"}}]')
    ]  # fmt: skip
    assert judged(of, message(b"x")).rows[0][0] is None, "a key may be missing where it is only shown"
    assert judged(of, message(b"x", timestamp_ms=1 << 62)).rows[0][4] is None
    assert why(of, b"x", key=b"\xff") == "its key: not UTF-8"
    assert why(of, b"x", headers=None) == "its headers have a name that is not UTF-8"
    assert judged(of, message(b"x", headers=[("\0", b"1")])).rows[0][5] == '[{"key": "\ufffd", "value": "1"}]'


def test_of_an_upsert_a_message_says_what_its_key_is_now() -> None:
    of = source({"key": "text", "n": "int8"}, Format("json"), Format("text"), "kv", "upsert")
    found = judged(of, message(b'{"n":1}', b"a"), message(None, b"a"), message(b"no", b"a"), message(b'{"n":1}'))
    assert found.keyed == [Keyed(("a",), ("a", 1)), Keyed(("a",), None)]
    assert found.bad == [BadRow("not valid JSON", 2), BadRow("the record has no key", 3)]


def test_a_key_of_json_is_one_value_however_it_is_written() -> None:
    of = source({"key": "jsonb", "n": "int8"}, Format("json"), Format("json"), "kv", "upsert")
    found = judged(of, message(None, b'{"a":1,"b":2}'), message(None, b'{ "b":2, "a":1 }'), message(None, b"{"))
    assert found.keyed[0] == found.keyed[1] == Keyed(('{"a": 1, "b": 2}',), None)
    assert found.bad[0].reason.startswith("its key: invalid input syntax for type json")


def test_of_debezium_after_is_what_counts() -> None:
    of = source({"key": "text", "n": "int8"}, Format("json"), Format("text"), "kv", "debezium")
    found = judged(
        of, message(b'{"before":null,"after":{"n":1},"op":"c"}', b"a"),
        message(b'{"before":{"n":1},"after":null,"op":"d"}', b"a"), message(None, b"a"),
        message(b'{"op":"c"}', b"a"), message(b'{"after":[]}', b"a"), message(b'{"after":{"n":"x"}}', b"a"),
    )  # fmt: skip
    assert found.keyed == [Keyed(("a",), ("a", 1)), Keyed(("a",), None), Keyed(("a",), None)]
    assert [each.reason for each in found.bad] == [
        'it has no member "after"', 'its member "after" is not a JSON object',
        'column "n": expected an integer, got a string',
    ]  # fmt: skip


def test_of_kafka_connects_messages_that_say_their_schema_the_payload_counts() -> None:
    """As its JsonConverter writes them unless ``schemas.enable`` is off; what it takes away has no value at all."""
    of = source({"key": "jsonb", "n": "int8"}, Format("json"), Format("json"), "kv", "debezium")

    def said(payload: str, **schema: object) -> bytes:
        return f'{{"schema":{json.dumps({"type": "struct", **schema})},"payload":{payload}}}'.encode()

    found = judged(
        of, message(said('{"before":null,"after":{"n":1},"op":"c"}'), said('{"id":1}', name="k.v1")),
        message(said('{"before":{"n":1},"after":null,"op":"d"}'), said('{"id":1}', name="k.v2")),
        message(None, b'{"id": 1}'), message(b'{"after":{"n":2}}', b'{"schema":"public","payload":7}'),
        message(said("[]"), said("1")),
    )  # fmt: skip
    key = ('{"id": 1}',)
    assert found.keyed == [
        Keyed(key, (*key, 1)), Keyed(key, None), Keyed(key, None),
        Keyed(('{"schema": "public", "payload": 7}',), ('{"schema": "public", "payload": 7}', 2)),
    ]  # fmt: skip
    assert [each.reason for each in found.bad] == ['its member "payload" is not a JSON object']


ALL = {
    "type": "record", "name": "all_types", "fields": [
        {"name": name, "type": kind} for name, kind in {
            "b": "boolean", "i": "int", "l": "long", "f": "float", "d": "double", "s": "string", "y": "bytes",
            "fx": {"type": "fixed", "name": "two", "size": 2},
            "e": {"type": "enum", "name": "en", "symbols": ["A"]},
            "dec": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            "big": {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 1},
            "u": {"type": "string", "logicalType": "uuid"}, "day": {"type": "int", "logicalType": "date"},
            "tm": {"type": "int", "logicalType": "time-millis"}, "tu": {"type": "long", "logicalType": "time-micros"},
            "at": {"type": "long", "logicalType": "timestamp-millis"},
            "atu": {"type": "long", "logicalType": "timestamp-micros"},
            "loc": {"type": "long", "logicalType": "local-timestamp-micros"},
            "nano": {"type": "long", "logicalType": "timestamp-nanos"},
            "loca": {"type": "long", "logicalType": "local-timestamp-nanos"},
            "fu": {"type": "fixed", "name": "id", "size": 16, "logicalType": "uuid"},
            "nu": {"type": "fixed", "name": "no_id", "size": 4, "logicalType": "uuid"},
            "ul": ["int", "null", "long"], "ud": ["float", "double", "int"], "us": ["string", "null", "en"],
            "uy": ["bytes", "two"], "ua": {"type": "array", "items": ["int", "long"]},
            "na": {"type": "array", "items": ["null", {"type": "long", "logicalType": "timestamp-nanos"}]},
            "odd": {"type": "long", "logicalType": "nobody-knows"},
            "n": ["null", "int"], "arr": {"type": "array", "items": ["null", "int"]},
            "m": {"type": "map", "values": "double"},
            "r": {"type": "record", "name": "inner", "fields": [{"name": "when", "type": {
                "type": "int", "logicalType": "date"}}, {"name": "x", "type": ["null", "bytes"]}]},
        }.items()
    ],
}  # fmt: skip
TYPES = {
    "b": "bool", "i": "int4", "l": "int8", "f": "float4", "d": "float8", "s": "text", "y": "bytea", "fx": "bytea",
    "e": "text", "dec": "numeric(6,2)", "big": "numeric(60,1)", "u": "uuid", "day": "date", "tm": "time", "tu": "time",
    "at": "timestamptz", "atu": "timestamptz", "loc": "timestamp", "nano": "timestamptz",
    "loca": "timestamp", "fu": "uuid", "nu": "bytea", "ul": "int8", "ud": "float8", "us": "text", "uy": "bytea",
    "ua": "int8[]", "na": "timestamptz[]", "odd": "int8", "n": "int4", "arr": "int4[]", "m": "jsonb", "r": "jsonb",
}  # fmt: skip
SENT = {
    "b": True, "i": -1, "l": 1 << 40, "f": 0.5, "d": 0.1, "s": "é", "y": b"\0", "fx": b"ab", "e": "A",
    "dec": (-12345).to_bytes(3, "big", signed=True), "big": (10**59).to_bytes(30, "big"),
    "u": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "day": 1, "tm": 1000, "tu": 5, "at": 1500, "atu": 7, "loc": 8,
    "nano": -1, "loca": 1_999, "fu": bytes(range(16)), "nu": b"abcd", "ul": 1 << 40, "ud": 3, "us": "A",
    "uy": b"abc", "ua": [1, 1 << 50], "na": [None, 1_000_001],
    "odd": 4, "n": None, "arr": [1, None], "m": {"k": 1e22}, "r": {"when": 1, "x": b"\xff"},
}  # fmt: skip
ROW = (
    True, -1, 1 << 40, 0.5, 0.1, "é", b"\0", b"ab", "A", Decimal("-123.45"), "1" + "0" * 58 + ".0",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", date(1970, 1, 2), 1_000_000, 5,
    datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), datetime(1970, 1, 1, microsecond=7, tzinfo=UTC),
    datetime(1970, 1, 1, microsecond=8), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, microsecond=1), "00010203-0405-0607-0809-0a0b0c0d0e0f", b"abcd", 1 << 40, 3.0, "A", b"abc",
    [1, 1 << 50], [None, datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC)], 4, None, [1, None],
    '{"k": 10000000000000000000000}', '{"x": "\\\\xff", "when": "1970-01-02"}',
)  # fmt: skip


@pytest.fixture
def registry():
    made = SchemaRegistry()
    yield made
    made.close()


def avro(said: object, registry_id: str = "") -> Format:
    return Format("avro", schema=json.dumps(said), registry_id=registry_id)


def test_avros_types_are_ours(registry) -> None:
    number = registry.register("t-value", ALL)
    assert {each.name: each.type for each in fields_of(read_schema(json.dumps(ALL)).tree)} == TYPES
    of = source(TYPES, avro(ALL), not_null=("b",))
    data = registry.encode(number, SENT)[5:]
    assert judged(of, message(data)).rows == [ROW]
    table = table_from_rows(of.stored, [ROW])
    assert sum(each.rows for each in encode(of.stored, table, "a")) == 1


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("dec", b"\x0f\xff\xff", "more than the 6 digits of its schema"), ("u", "no", "invalid input syntax"),
        ("day", 1 << 30, "date out of range"), ("tm", -1, "time out of range"), ("tu", 86_400_000_001, "time out"),
        ("at", 1 << 60, "timestamp out of range"), ("s", "a\0", "U+0000"), ("m", {"k": float("nan")}, "nan is not"),
        ("m", {"\0": 1.0}, "u0000"),
    ],
)  # fmt: skip
def test_values_that_are_none_here_are_said_of_their_columns(field, value, reason, registry) -> None:
    number = registry.register("t-value", ALL)
    found = why(source(TYPES, avro(ALL)), registry.encode(number, SENT | {field: value})[5:])
    assert found.startswith(f'column "{field}": ') and reason in found


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        *((of, "several types") for of in (
            ["int", "string"], ["double", "long"], ["boolean", "int"], ["string", "bytes"],
            ["int", {"type": "long", "logicalType": "timestamp-millis"}],
            ["bytes", {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}],
        )),
        ("null", "always null"), (["null"], "several types"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2000, "scale": 0}, "2000 digits"),
        ({"type": "map", "values": ["int", "string"]}, "several types"),
    ],
)  # fmt: skip
def test_fields_that_give_no_column_say_why(kind, reason) -> None:
    tree = read_schema(json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": kind}]})).tree
    (found,) = fields_of(tree)
    assert isinstance(found, str) and found.startswith("f: ") and reason in found


def test_what_had_no_meaning_once_is_bare_where_its_column_says_so(registry) -> None:
    """As of sources that are older than what it means, and of who wants every digit."""
    bare = {"nano": "int8", "loca": "int8", "fu": "bytea", "na": "int8[]"}
    of = source(bare, avro(ALL), not_null=("nano",))
    data = registry.encode(registry.register("t-value", ALL), SENT)[5:]
    assert judged(of, message(data)).rows == [(-1, 1_999, SENT["fu"], [None, 1_000_001])]


@pytest.mark.parametrize("zone", ["timestamp-nanos", "local-timestamp-nanos"])
def test_nanoseconds_are_cut_at_once_as_one_by_one(zone: str, registry) -> None:
    row = {"type": "record", "name": "r", "fields": [
        {"name": "t", "type": ["null", {"type": "long", "logicalType": zone}]}]}  # fmt: skip
    kind = "timestamptz" if zone == "timestamp-nanos" else "timestamp"
    of = source({"t": kind}, avro(row))
    nanos = [0, 1, 999, 1000, -1, -999, -1000, -1001, (1 << 63) - 1, -(1 << 63), None]
    number = registry.register("t-value", row)
    found = judged(of, *(message(registry.encode(number, {"t": each})[5:]) for each in nanos))
    start = datetime(1970, 1, 1, tzinfo=UTC if kind == "timestamptz" else None)
    assert found.rows == [(None if each is None else start + timedelta(microseconds=each // 1000),) for each in nanos]


def person(*more: dict) -> dict:
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}, *more]
    return {"type": "record", "name": "person", "fields": fields}


def test_messages_are_read_by_the_schema_that_they_name(registry) -> None:
    first = registry.register("t-value", person())
    later = registry.register("t-value", person({"name": "age", "type": "int", "default": 0}))
    wrong = registry.register("t-value", {"type": "record", "name": "person", "fields": [{"name": "x", "type": "int"}]})
    judge = Judge(source({"id": "int8", "name": "text"}, avro(person(), REGISTRY), not_null=("id",)))
    messages = [
        message(registry.encode(first, {"id": 1, "name": "a"})),
        message(registry.encode(later, {"id": 2, "name": None, "age": 5})),
        message(registry.encode(wrong, {"x": 1})),
        message(b"\0\0\0\0\x63abc"), message(b""), message(b"\1\0\0\0\1"), message(b"\0\0\0\0\1"),
    ]  # fmt: skip
    assert judge.schemas(messages) == {REGISTRY: {first, later, wrong, 0x63}}
    writers = {n: read_schema(registry.schemas[n]["schema"]) for n in (first, later, wrong)}
    judge.know(REGISTRY, {**writers, 0x63: None})
    found = judge.judge(messages)
    assert found.rows == [(1, "a"), (2, None)]
    reasons = [each.reason for each in found.bad]
    assert [each.index for each in found.bad] == [2, 3, 4, 5, 6]
    assert "does not fit" in reasons[0] and reasons[1] == "its registry has no Avro schema 99 that can be read here"
    assert reasons[2] == reasons[3] == "it does not begin with the id of a schema"
    assert reasons[4].startswith("not a value of its schema")


def test_an_id_that_was_unknown_may_be_known_later(registry) -> None:
    number = registry.register("t-value", person())
    judge = Judge(source({"id": "int8", "name": "text"}, avro(person(), REGISTRY)))
    given = [message(registry.encode(number, {"id": 1, "name": "a"}))]
    judge.know(REGISTRY, {number: None})
    assert judge.judge(given).bad
    judge.know(REGISTRY, {number: read_schema(registry.schemas[number]["schema"])})
    assert judge.judge(given).rows == [(1, "a")]


KEY = {"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}


def test_a_key_in_the_value_is_one_column_and_must_be_the_same(registry) -> None:
    keys, values = registry.register("t-key", KEY), registry.register("t-value", person())
    of = source({"id": "int8", "name": "text"}, avro(person()), avro(KEY), "bv", "upsert")
    one = registry.encode(keys, {"id": 1})[5:]
    found = judged(of, message(registry.encode(values, {"id": 1, "name": "x"})[5:], one),
                   message(registry.encode(values, {"id": 2, "name": "x"})[5:], one), message(None, one))  # fmt: skip
    assert found.keyed == [Keyed((1,), (1, "x")), Keyed((1,), None)]
    assert found.bad == [BadRow('column "id" is another in the key than in the value', 1)]


def test_debezium_of_avro(registry) -> None:
    envelope = {"type": "record", "name": "envelope", "fields": [
        {"name": "before", "type": ["null", person()], "default": None},
        {"name": "after", "type": ["null", "person"], "default": None}, {"name": "op", "type": "string"},
    ]}  # fmt: skip
    number = registry.register("t-value", envelope)
    of = source({"key": "text", "id": "int8", "name": "text"}, avro(envelope), Format("text"), "kvv", "debezium")
    row = {"id": 1, "name": "x"}
    found = judged(of, message(registry.encode(number, {"before": None, "after": row, "op": "c"})[5:], b"a"),
                   message(registry.encode(number, {"before": row, "after": None, "op": "d"})[5:], b"a"))  # fmt: skip
    assert found.keyed == [Keyed(("a",), ("a", 1, "x")), Keyed(("a",), None)]
    with pytest.raises(BadSchema, match="no field after"):
        Judge(replace(of, reading=replace(of.reading, value=avro(person()))))


def test_a_schema_of_one_value_has_one_column(registry) -> None:
    number = registry.register("t-value", {"type": "string"})
    of = source({"anything": "text"}, avro({"type": "string"}))
    assert judged(of, message(registry.encode(number, "x")[5:])).rows == [("x",)]


def test_a_row_that_is_too_large_is_a_bad_one_and_no_smaller_one_is() -> None:
    text, data = source({"text": "text"}, Format("text")), source({"data": "bytea"}, Format("bytes"))
    most = ROW_BYTES_MAX - LARGE_BYTES
    for of, each in ((text, b"x"), (data, b"\xff")):
        (row,) = judged(of, message(each * most)).rows
        list(encode(of.stored, table_from_rows(of.stored, [row]), "a"))
        assert "bytes, at most" in why(of, each * (most + 1))
    many = source({"v": "text", "h": "jsonb"}, Format("text"), roles="vh")
    assert "bytes, at most" in why(many, b"", headers=[("a", b"\xff" * 100)] * 30_000)


TEXTS = [
    "infinity", "NaN", "-1.5e10", "2020-01-01", "0001-01-01 BC", "2020-01-01 10:00:00.123456+02", "epoch", "24:00",
    "{1,2}", "{{1}}", '{"a":1}', "1 day 2 months", "t", "\\x00", "127.0.0.1/8", "294276-12-31", "10000-01-01", "1e400",
    "99999999999999999999", "178956970 years", "", " ", "é\0", "0x10", "9999-12-31 23:59:59.9999999",
]  # fmt: skip


@pytest.mark.parametrize("kind", [*DATATYPES, *(f"{name}[]" for name in DATATYPES), "numeric(38,10)", "timestamptz(1)"])
def test_any_text_of_csv_is_a_value_that_can_be_kept_or_a_reason(kind: str) -> None:
    rng = random.Random(seed_of_commit())
    of = source({"a": kind}, Format("csv", columns=1, delimiter="\x01"))
    judge, lines = Judge(of), list(TEXTS)
    for _ in range(300):
        text = list(rng.choice(TEXTS))
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(2)] = [rng.choice('0123456789-:.,{}"\\ ae+infNT')]
        lines.append("".join(text))
    lines += ["{" + line + "}" for line in lines if kind.endswith("[]")]
    found = judge.judge([message(line.encode()) for line in lines])
    assert len(found.rows) + len(found.bad) == len(lines)
    table = table_from_rows(of.stored, found.rows)
    batches = list(encode(of.stored, table, "a"))
    assert decode(of.stored, [each.value for each in batches]).num_rows == len(found.rows) > 0


@pytest.mark.parametrize(
    "listed", [("id",), ("id", "name"), ("at",), ("day", "t"), ("id", "name", "at", "day", "t", "f")]
)
def test_many_messages_at_once_are_what_each_is_by_itself(listed, registry) -> None:
    rng = random.Random(seed_of_commit())
    kinds = {"id": ("int", "int4"), "name": (["null", "string"], "text"), "f": ("float", "float4"),
             "at": ({"type": "long", "logicalType": "timestamp-millis"}, "timestamptz"),
             "day": ({"type": "int", "logicalType": "date"}, "date"),
             "t": (["null", {"type": "long", "logicalType": "time-micros"}], "time")}  # fmt: skip
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": kinds[n][0]} for n in listed]}
    number = registry.register("t-value", schema)
    of = source({n: kinds[n][1] for n in listed} | {"o": "int8"}, avro(schema, REGISTRY),
                roles="v" * len(listed) + "o", not_null=listed[-1:])  # fmt: skip
    given = {"id": lambda: rng.randrange(-5, 5), "name": lambda: rng.choice([None, "a", "é"] + ["\0"] * odd),
             "f": lambda: rng.choice([0.5, -0.0, float("inf")]),
             "at": lambda: rng.choice([-62_135_596_800_000, 253_402_300_799_999] + [253_402_300_800_000] * odd),
             "day": lambda: rng.choice([-719_162, 2_932_896] + [2_932_897, -719_163] * odd),
             "t": lambda: rng.choice([0, 86_399_999_999] + [None, -1, 86_400_000_000] * odd)}  # fmt: skip
    judge = Judge(of)
    judge.know(REGISTRY, {number: read_schema(json.dumps(schema))})
    for odd in (0, 0, 0, 1, 1):
        messages = [message(registry.encode(number, {n: given[n]() for n in listed}), offset=at) for at in range(20)]
        found = judge.judge(messages)
        assert odd or len(found.rows) == 20 - sum(each.reason.endswith("NOT NULL column") for each in found.bad)
        same_at_once(judge, of, messages, found)
        assert (judge._at_once(messages) is None) is bool(found.bad)
    assert judge._at_once([]) is None and judge._at_once([message(None)]) is None


def mangled(rng: random.Random, good: bytes) -> bytes:
    """``good`` with up to three places of it others, longer or shorter."""
    data = bytearray(good)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
    return bytes(data)


def test_any_bytes_are_a_row_or_a_reason(registry) -> None:
    rng = random.Random(seed_of_commit())
    number = registry.register("t-value", ALL)
    csv = Format("csv", columns=2)
    sources = [
        (source({"a": "text"}, Format("text")), b"abc"), (source({"a": "int8", "b": "date"}, csv), b'1,"2020-01-01"'),
        (source(TYPES, avro(ALL)), registry.encode(number, SENT)[5:]),
        (source({"key": "jsonb", "n": "int8"}, Format("json"), Format("json"), "kv", "debezium"), b'{"after":{"n":1}}'),
    ]  # fmt: skip
    for of, good in sources:
        judge, messages = Judge(of), []
        for _ in range(1000):
            data = mangled(rng, good)
            messages.append(message(data, data if rng.random() < 0.5 else b"1"))
        found = judge.judge(messages)
        same_at_once(judge, of, messages, found)
        assert len(found.rows) + len(found.keyed) + len(found.bad) == 1000
        rows = found.rows or [each.row for each in found.keyed if each.row is not None]
        assert sum(each.rows for each in encode(of.stored, table_from_rows(of.stored, rows), "a")) == len(rows) > 0
        table_from_rows(judge.key_columns, [each.key for each in found.keyed])


GOOD = (
    b'{"id":%d,"n":1,"x":0.5,"t":"a"}',
    b'{"n":null,"id":%d,"x":-0.0,"t":"\\u00e9\\n","more":{"id":[3]}}',
    b'{"id":%d,"n":2}',
)
BAD = (
    b'{"id":%d,"n":1e400}', b'{"id":%d,"n":99999999999999999999}', b'{"id":%d,"x":1e999}', b'{"id":%d,"t":7}',
    b'{"id":%d,"n":NaN}', b'{"id":%d,"t":"\xff"}', b'{"id":%d,"t":"\\u0000"}', b'{"id":%d,"t":{"a":[]}}',
    b'{"id":%d,"t":"\x7f0"}', b'{"id":%d', b'%d', b'[%d]', b'{"id":%d}{"id":1}', b'{"id":1%d,"n":1}',
    b'{"id":%d,"n":1,"n":null,"n":5}', b' {"id":%d}', b'{"id":%d,"t":"\\ud800"}',
)  # fmt: skip


def around(rng: random.Random, row: bytes) -> bytes:
    """``row`` as Debezium has it, mostly."""
    before = rng.choice([b"null", b'{"id":1,"n":"other"}', b'{"x":1e400}', b"[]", row])
    odd = [b'{"after":%b,"before":%b}', b'{"before":%b,"After":%b}', b'{"after":%b,"after":%b}',
           b'{"before":%b,"after":null,"x":%b}']  # fmt: skip
    return rng.choice([b'{"before":%b,"after":%b,"op":"u"}'] * 6 + odd) % (before, row)


@pytest.mark.parametrize("envelope", ["upsert", "debezium"])
@pytest.mark.parametrize("roles", ["bvvv", "kvvv", "bvvvhpot"])
def test_many_keys_at_once_are_what_each_is_among_any_others(envelope: str, roles: str, monkeypatch) -> None:
    """Rows, tombstones, what is no row or no key, a key that is another in its value, in pieces of eight."""
    monkeypatch.setattr(json_rows, "_CHUNK_ROWS", 8)
    rng = random.Random(seed_of_commit())
    types = {
        "id": "int8",
        "n": "int4",
        "x": "float8",
        "t": "text",
        "h": "jsonb",
        "p": "int4",
        "o": "int8",
        "at": "timestamptz",
    }
    if roles[0] == "k":
        types = {"key": "int8"} | {name: types[name] for name in ("n", "x", "t")}
    of = source(dict(list(types.items())[: len(roles)]), Format("json"), Format("csv", columns=1), roles, envelope)
    judge, quick = Judge(of), 0
    for _ in range(150):
        odd, messages = rng.choice([0, 0, 0.05, 0.5]), []
        for place in range(rng.randrange(1, 40)):
            number = rng.randrange(6)
            row = rng.choice(BAD if rng.random() < odd else GOOD) % number
            value = around(rng, row) if envelope == "debezium" else row
            key: bytes | None = b"%d" % number
            if rng.random() < odd:
                key = rng.choice([None, b"x", b"", b"1,2", b"%d" % (number + 1), b"9" * 30, b"\xff"])
            more = {"offset": place, "timestamp_ms": rng.choice([-1, 0, 1_700_000_000_000])}
            if rng.random() < odd / 10:
                more |= rng.choice(
                    [{"headers": None}, {"value": value + b" " * LARGE_BYTES}, {"key": b"1" * LARGE_BYTES + b"1"}]
                )
            given = {"value": None if rng.random() < 0.1 else value, "key": key} | more
            messages.append(message(None)._replace(**given))
        same_at_once(judge, of, messages, judge.judge(messages))
        quick += judge._keyed_at_once(messages) is not None
    assert 30 < quick < 150, "both ways were tried"


def test_what_is_short_where_it_comes_and_long_where_it_is_kept_is_measured_before_it_takes_memory() -> None:
    number = "1e131071"
    for kind, value in (("jsonb", f"[{','.join([number] * 40)}]"), ("numeric[]", f"[{','.join([number] * 40)}]")):
        of = source({"v": kind}, Format("json"))
        assert "digits" in why(of, f'{{"v": {value}}}'.encode())
        short = f'{{"v": [1e1000, 2], "other": "{number * 40}"}}'.encode()
        assert len(judged(of, message(short)).rows) == 1  # what texts hold is no number
        assert "digits" in why(of, f'{{"v": [{",".join([number] * 100_000)}]}}'.encode())  # ten gigabytes
    of = source({f"c{n}": "numeric" for n in range(40)}, Format("csv", columns=40, delimiter=","))
    assert "bytes, at most" in why(of, ",".join([number] * 40).encode())
    member = source({"key": "text", "v": "jsonb"}, Format("json"), Format("text"), "kv", "debezium")
    assert "digits" in why(member, f'{{"after": {{"v": [{",".join([number] * 40)}]}}}}'.encode(), key=b"k")


def test_what_a_schema_says_in_many_words_of_few_bytes_is_measured_too() -> None:
    symbol = {"type": "enum", "name": "e", "symbols": ["S" * 200_000]}
    named = {"type": "record", "name": "q", "fields": [{"name": "N" * 200_000, "type": "boolean"}]}
    for kind, item in (("text[]", symbol), ("jsonb", named)):
        whole = {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": item}}]}
        of = source({"a": kind}, avro_text(whole))
        assert len(judged(of, message(b"\x02\0\0")).rows) == 1
        assert "bytes" in why(of, b"\x3c" + b"\0" * 31)  # thirty of them, six megabytes
        assert "bytes" in why(of, b"\xe0\xd4\x03" + b"\0" * 30_001)  # thirty thousand, six gigabytes
    flat = {"type": "record", "name": "r", "fields": [{"name": f"f{n}", "type": symbol if not n else "e"}
                                                      for n in range(30)]}  # fmt: skip
    of = source({f"f{n}": "text" for n in range(30)}, avro_text(flat))
    assert "bytes" in why(of, b"\0" * 30)


def test_a_key_that_is_no_number_is_the_same_in_the_value() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "k", "type": "double"}]}
    of = source({"k": "float8"}, avro_text(schema), avro_text(schema), "b", "upsert")
    nan, zero, less = (struct.pack("<d", each) for each in (float("nan"), 0.0, -0.0))
    judge = Judge(of)
    found = judge.judge([message(nan, nan), message(zero, less), message(None, nan), message(zero, nan)])
    assert [each.row is None for each in found.keyed] == [False, False, True] and len(found.bad) == 1


def avro_text(schema: object) -> Format:
    return Format("avro", schema=json.dumps(schema))


def test_what_a_registry_cannot_say_of_a_number_holds_up_nobody(registry, monkeypatch) -> None:
    of = Connection("u9", "s1", "r", "", to="confluent-schema-registry", options=(("url", registry.url),))
    # Who asks for what is no int of Java's is told that there is no such page, as by what is no registry.
    assert asking.schema(of, 1 << 31) is asking.schema(of, (1 << 32) - 1) is None and not registry.asked
    assert asking.schema(of, 77) is None and registry.asked == ["/schemas/ids/77"]
    assert asking.schema(of, registry.register("deep", "[" * 100_000)) is None
    assert asking.schema(of, registry.register("long", json.dumps({"type": "string", "doc": "é" * 200_000}))) is None
    with pytest.raises(InvalidUsage, match="longer than"):
        asking.newest(of, "long")
    monkeypatch.setattr(asking, "from_registry", lambda *_: (200, b"[" * 100_000))
    with pytest.raises(InvalidUsage, match="no schema registry"):
        asking.schema(of, 77)


def test_a_registry_is_told_schemas_and_says_what_it_does_not_take(monkeypatch) -> None:
    one, other = (json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]})
                  for kind in (["null", "int"], "int"))  # fmt: skip
    with closing(SchemaRegistry()) as registry:
        of = Connection("u9", "s1", "sr", "", to="confluent-schema-registry", options=(("url", registry.url),))
        first = asking.register(of, "a b/c-value", one, "FULL")
        assert registry.subjects == {"a b/c-value": [first]} and registry.levels == {"a b/c-value": "FULL"}
        assert asking.register(of, "a b/c-value", one, "NONE") == first, "and the level is whose it was"
        assert registry.levels == {"a b/c-value": "FULL"}
        with pytest.raises(Rejected) as error:
            asking.register(of, "a b/c-value", other)
        assert error.value.sqlstate == "55000" and error.value.detail.startswith("409: Schema being registered")
        with pytest.raises(Rejected, match="does not take the schema of subject"):
            asking.register(of, "d", '{"type":"nothing"}')
        registry.away = True
        with pytest.raises(Unavailable) as error:
            asking.register(of, "d", one)
        assert error.value.sqlstate == "08001"
    for status, body in (
        (200, b"[]"), (200, b'{"id":"1"}'), (200, b'{"id":true}'), (200, b'{"id":-1}'), (200, b'{"id":4294967296}'),
        (200, b"<html>"), (404, b"{}"), (200, b"[" * 100_000), (500, b'{"error_code":"x"}'),
    ):  # fmt: skip
        monkeypatch.setattr(asking, "to_registry", lambda *_, found=(status, body): found)
        with pytest.raises(InvalidUsage, match="is no schema registry"):
            asking.register(of, "d", one)


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ({"type": "int", "logicalType": "time-millis"}, 43_200_000, '"12:00:00"'),
        ({"type": "long", "logicalType": "time-micros"}, 1_500_000, '"00:00:01.5"'),
        ({"type": "long", "logicalType": "time-micros"}, 86_400_000_000, '"24:00:00"'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 1}, b"\x00\x80", "12.8"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 1}, b"\x00\x80", "12.8"),
        ("float", 0.1, "0.1"), ("float", 1e10, "10000000000"), ("double", 0.1, "0.1"),
        ({"type": "int", "logicalType": "date"}, 1, '"1970-01-02"'), ("boolean", True, "true"), ("int", 7, "7"),
    ],
)  # fmt: skip
def test_what_is_in_a_record_in_a_record_is_shown_as_json_has_it(kind, value, shown, registry) -> None:
    """As PostgreSQL's ``to_jsonb`` has them, the digits of doubles and of seconds apart."""
    inner = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": kind}]}
    schema = {"type": "record", "name": "outer", "fields": [{"name": "r", "type": inner}]}
    number = registry.register("nested", schema)
    data = registry.encode(number, {"r": {"x": value}})[5:]
    assert judged(source({"r": "jsonb"}, avro(schema)), message(data)).rows == [(f'{{"x": {shown}}}',)]


def test_the_last_moment_of_a_day_is_a_time(registry) -> None:
    schema = {"type": "record", "name": "t", "fields": [{"name": "t", "type": ALL_TIME}]}
    number = registry.register("times", schema)
    data = registry.encode(number, {"t": 86_400_000_000})[5:]
    assert judged(source({"t": "time"}, avro(schema)), message(data)).rows == [(86_400_000_000,)]


ALL_TIME = {"type": "long", "logicalType": "time-micros"}
