"""Protocol Buffers to rows: types, presence, what is hostile.  Any bytes are a row or a reason."""

from __future__ import annotations

import math
import random
import re
import struct
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog_log.objects import Source
from catalog_log.objects.reading import Format
from collection.columns import table_from_rows
from collection.messages.judging import Judge, Keyed
from collection.messages.protobuf_types import parts_of
from collection.rows import ROW_BYTES_MAX, encode
from schemas.avro_messages import BadSchema
from schemas.protobuf_messages import SET_BYTES_MAX, TYPES_DEEP_MAX, read_type
from tests.collection.test_messages import judged, mangled, message, same_at_once, source, why
from tests.protobuf import field, file, protobuf, said_set, sent
from tests.seeds import seed_of_commit

WELL_KNOWN = tuple(f"google/protobuf/{each}.proto" for each in ("timestamp", "wrappers", "struct", "duration"))
EN = {"ZERO": 0, "ONE": 1, "UNO": 1}

FLAT = {
    "b": "bool", "i": "int32", "si": "sint32", "xi": "sfixed32", "l": "int64", "sl": "sint64", "xl": "sfixed64",
    "u": "uint32", "xu": "fixed32", "ul": "uint64", "xul": "fixed64", "f": "float", "d": "double", "s": "string",
    "y": "bytes", "e": "enum .p.En", "o": "optional int32", "at": ".google.protobuf.Timestamp",
    "w": ".google.protobuf.UInt64Value", "ws": ".google.protobuf.StringValue",
}  # fmt: skip
FLAT_TYPES = {
    "b": "bool", "i": "int4", "si": "int4", "xi": "int4", "l": "int8", "sl": "int8", "xl": "int8",
    "u": "int8", "xu": "int8", "ul": "numeric(20,0)", "xul": "numeric(20,0)", "f": "float4", "d": "float8",
    "s": "text", "y": "bytea", "e": "text", "o": "int4", "at": "timestamptz", "w": "numeric(20,0)", "ws": "text",
}  # fmt: skip
NESTED = {
    "m": ".p.Flat", "tags": "repeated string", "ns": "repeated uint64", "ms": "repeated .p.Inner",
    "st": ".google.protobuf.Struct",
    "v": ".google.protobuf.Value", "li": ".google.protobuf.ListValue", "du": ".google.protobuf.Duration",
    "own": ".p.Nested",
    "es": "repeated enum .p.En", "ats": "repeated .google.protobuf.Timestamp",
}  # fmt: skip
INNER = {"x": "float", "y": "bytes", "o": "optional string", "e": "enum .p.En", "w": ".google.protobuf.BoolValue"}
ALL = file({"Flat": FLAT, "Inner": INNER, "Nested": NESTED}, imports=WELL_KNOWN, enums={"En": EN})
ENTRY = ALL.message_type[2].nested_type.add(name="KvEntry")
ENTRY.options.map_entry = True
field(ENTRY, 1, "key", "int32")
field(ENTRY, 2, "value", ".p.Inner")
field(ALL.message_type[2], 12, "kv", "repeated .p.Nested.KvEntry")


def flat(not_null: tuple[str, ...] = ()) -> Source:
    return source(FLAT_TYPES, protobuf("p.Flat", ALL), not_null=not_null)


def nested() -> Source:
    return source(dict.fromkeys((*NESTED, "kv"), "jsonb"), protobuf(".p.Nested", ALL))


def test_types_are_ours_and_what_may_be_missing_may_be_null() -> None:
    fields = [part.field for part in parts_of(read_type(said_set(ALL), "p.Flat"))]
    assert {each.name: each.type for each in fields} == FLAT_TYPES
    assert [each.name for each in fields if each.nullable] == ["o", "at", "w", "ws"]
    fields = [part.field for part in parts_of(read_type(said_set(ALL), "p.Nested"))]
    assert {each.type for each in fields} == {"jsonb"}
    assert [each.name for each in fields if not each.nullable] == ["tags", "ns", "ms", "es", "ats", "kv"]


def test_values_of_each_type() -> None:
    full = (
        "b: true i: -1 si: -2147483648 xi: 2147483647 l: -9223372036854775808 sl: 5 xl: 6 u: 4294967295 xu: 7 "
        "ul: 18446744073709551615 xul: 8 f: 0.5 d: 0.1 s: 'é' y: '\\000\\377' e: UNO o: 0 "
        "at { seconds: -1 nanos: 999999999 } w { value: 18446744073709551615 } ws { }"
    )
    of = flat(not_null=("b", "s"))
    rows = judged(of, message(sent("p.Flat", full, ALL)), message(b"")).rows
    assert rows[0] == (
        True, -1, -(1 << 31), (1 << 31) - 1, -(1 << 63), 5, 6, (1 << 32) - 1, 7, Decimal((1 << 64) - 1), Decimal(8),
        0.5, 0.1, "é", b"\0\xff", "ONE", 0, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        Decimal((1 << 64) - 1), "",
    )  # fmt: skip
    none = (None,) * 4
    assert rows[1] == (False, 0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), Decimal(0), 0.0, 0.0, "", b"", "ZERO", *none)
    assert sum(each.rows for each in encode(of.stored, table_from_rows(of.stored, rows), "a")) == 2


def test_what_is_nested_is_jsonb_with_every_field() -> None:
    text = (
        "tags: 'a' tags: '' ns: 18446744073709551615 ms { x: 0.1 y: '\\377' w { } } ms { o: 'n' e: ONE } "
        "st { fields { key: 'k' value { list_value { values { number_value: 3 } values { number_value: 0.5 } "
        "values { null_value: NULL_VALUE } values { } values { bool_value: true } } } } } "
        "v { string_value: 'x' } li { } du { seconds: 1 } own { own { } } es: ONE es: ZERO "
        "ats { seconds: 1 nanos: 1000 } "
        "kv { key: -1 value { x: 1.5 } }"
    )
    row = judged(nested(), message(sent("p.Nested", text, ALL))).rows[0]
    found = dict(zip((*NESTED, "kv"), row, strict=True))
    assert found["m"] is None and found["tags"] == '["a", ""]' and found["ns"] == "[18446744073709551615]"
    assert found["ms"] == (
        '[{"e": "ZERO", "o": null, "w": false, "x": 0.1, "y": "\\\\xff"}, '
        '{"e": "ONE", "o": "n", "w": null, "x": 0.0, "y": "\\\\x"}]'
    )
    assert found["st"] == '{"k": [3, 0.5, null, null, true]}' and found["v"] == '"x"' and found["li"] == "[]"
    assert found["du"] == '{"nanos": 0, "seconds": 1}' and found["es"] == '["ONE", "ZERO"]'
    assert found["ats"] == '["1970-01-01T00:00:01.000001+00:00"]'
    assert found["kv"] == '{"-1": {"e": "ZERO", "o": null, "w": null, "x": 1.5, "y": "\\\\x"}}'
    assert found["own"].count('"own"') == 2 and '"own": null' in found["own"]
    assert judged(nested(), message(b"")).rows == [
        (None, "[]", "[]", "[]", None, None, None, None, None, "[]", "[]", "{}")
    ]


def test_unknown_fields_are_passed_over_and_unknown_numbers_of_an_enum_are_shown() -> None:
    more = file({"Flat": {**FLAT, "later": "string"}}, enums={"En": {**EN, "SEVEN": 7}}, imports=WELL_KNOWN[:2])
    data = sent("p.Flat", "i: 5 e: SEVEN later: 'x'", more)
    row = judged(flat(), message(data)).rows[0]
    assert row[1] == 5 and row[15] == "7"


def test_proto2_has_defaults_of_its_own_and_fields_that_must_be_there() -> None:
    made = file({"M": {"r": "required int32", "n": "int32", "s": "string", "own": ".p.M"}}, syntax="proto2")
    field(made.message_type[0], 5, "de", "int32", default="42")
    field(made.message_type[0], 6, "HasField", "int32")
    columns = {"r": "int4", "n": "int4", "s": "text", "own": "jsonb", "de": "int4", "HasField": "int4"}
    fields = [part.field for part in parts_of(read_type(said_set(made), "p.M"))]
    assert {each.name: each.type for each in fields} == columns
    assert [each.nullable for each in fields] == [False, True, True, True, False, True]
    of = source(columns, protobuf("p.M", made))
    assert judged(of, message(b"\x08\1"), message(b"\x08\1\x30\2\x28\3")).rows == [
        (1, None, None, None, 42, None), (1, None, None, None, 3, 2)
    ]  # fmt: skip
    assert why(of, b"\x10\1") == "it lacks fields that its type requires: r"
    assert why(of, b"\x08\1\x22\2\x10\1") == "it lacks fields that its type requires: own.r"
    assert why(of, b"\x08\1\x1a\1\xff") == 'column "s": not UTF-8'
    short = source({"r": "int4", "s": "text"}, protobuf("p.M", made))
    assert why(short, b"\x08\1\x1a\1\xff") == 'column "s": not UTF-8'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s: 'a\\000'", 'column "s": text holds the character U+0000'),
        ("at { seconds: 253402300800 }", 'column "at": timestamp out of range'),
        ("at { seconds: 9223372036854775807 }", 'column "at": timestamp out of range'),
        ("at { nanos: -1 }", "timestamp out of range"), ("at { nanos: 1000000000 }", "timestamp out of range"),
    ],
)  # fmt: skip
def test_values_that_are_none_here_are_said(text: str, reason: str) -> None:
    assert why(flat(), sent("p.Flat", text, ALL)) == reason


def test_what_is_no_message_is_said() -> None:
    assert why(flat(), b"\xff").startswith("not a message of its type (")
    assert why(flat(), b"\x72\1\xff").startswith("not a message of its type (")  # s of proto3, no UTF-8
    assert why(flat(), None) == "the record has no value"
    assert why(flat(not_null=("o",)), b"") == 'column "o": null in a NOT NULL column'
    assert "nan is not JSON" in why(nested(), sent("p.Nested", "ms { x: nan }", ALL))
    assert 'column "tags": ' in why(nested(), sent("p.Nested", "tags: '\\000'", ALL))


def wrapped(tag: int, data: bytes) -> bytes:
    size, found = len(data), bytearray([tag])
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes([*found, size]) + data


def test_messages_in_each_other_are_bounded_by_protobuf_and_by_jsonb() -> None:
    own = 9 << 3 | 2
    data = b""
    reasons = []
    of = nested()
    for depth in range(150):
        found = judged(of, message(data))
        reasons.append(found.bad[0].reason if found.bad else "")
        data = wrapped(own, data)
        assert depth < 90 or len(reasons[depth]) == 0 or "MaxDepth" in reasons[depth]
    assert not any(reasons[:100]) and all("MaxDepth" in each for each in reasons[101:])
    several = source({"r": "jsonb"}, protobuf("p.R", file({"R": {"r": "repeated .p.R"}})))
    data = b""
    for depth in range(99):
        found = judged(several, message(data))
        assert ("jsonb nested deeper than 128" in found.bad[0].reason) if depth > 63 else found.rows
        data = wrapped(10, data)
    lists = b""
    for _ in range(45):  # a list in a value: four levels of messages, two of jsonb
        lists = wrapped(1 << 3 | 2, wrapped(6 << 3 | 2, lists))
    assert judged(of, message(wrapped(7 << 3 | 2, lists))).rows


def test_a_small_message_whose_names_are_many_is_refused_before_it_takes_memory() -> None:
    wide = {f"{'n' * 200}{n}": "int32" for n in range(1000)}
    made = file({"M": {"ms": "repeated .p.Wide", "one": ".p.Wide"}, "Wide": wide})
    of = source({"ms": "jsonb", "one": "jsonb"}, protobuf("p.M", made))
    assert judged(of, message(b"\x0a\0\x12\0")).rows
    assert "as jsonb it has more than" in why(of, b"\x0a\0" * 500_000)  # half a billion names
    symbol = file({"M": {"es": "repeated enum .p.En", "e": "enum .p.En"}}, enums={"En": {"S" * 100_000: 0}})
    assert "as jsonb it has more than" in why(
        source({"es": "jsonb"}, protobuf("p.M", symbol)), b"\x0a\x7f" + b"\0" * 127
    )
    of = source({"e": "text"}, protobuf("p.M", symbol))
    assert Judge(of)._value.many is None and judged(of, message(b"")).rows == [("S" * 100_000,)]


def test_types_may_stand_in_each_other_so_deep_and_no_deeper() -> None:
    def chain(types: int, last: str):
        fields = {f"M{n}": {"a": f".p.M{n + 1}"} for n in range(types - 1)}
        return file(fields | {f"M{types - 1}": {"a": last}})

    for last in ("int32", ".p.M0"):
        of = source({"a": "jsonb"}, protobuf("p.M0", chain(TYPES_DEEP_MAX, last)))
        assert judged(of, message(b"\x0a\2\x0a\0")).rows == [('{"a": {"a": null}}',)]
        for types in (TYPES_DEEP_MAX + 1, 4_000):
            with pytest.raises(BadSchema, match="message types that stand in each other"):
                read_type(said_set(chain(types, last)), "p.M0")
    extending = file({"M": {"a": ".p.N0"}} | {f"N{n}": {"a": "int32"} for n in range(300)}, syntax="proto2")
    for n, each in enumerate(extending.message_type[1:-1]):  # each has in it an extension of the next
        each.extension_range.add(start=100, end=200)
        each.extension.add(name="x", number=100, extendee=f".p.N{n + 1}", type=5, label=1)
    extending.message_type[-1].extension_range.add(start=100, end=200)
    with pytest.raises(BadSchema, match="message types that stand in each other"):
        read_type(said_set(extending), "p.M")


def test_long_defaults_are_counted_before_they_take_memory() -> None:
    made = file({"M": {"ms": "repeated .p.S", "s": ".p.S"}, "S": {"x": "int32"}}, syntax="proto2")
    for number, (name, kind) in enumerate({"d": "string", "y": "bytes"}.items(), 2):
        field(made.message_type[1], number, name, kind, default="D" * 50_000)
    of = source({"ms": "jsonb", "s": "jsonb"}, protobuf("p.M", made))
    assert judged(of, message(b"\x0a\0\x12\0")).rows
    data = b"\x0a\0" * 5_000
    tracemalloc.start()
    try:
        reason = why(of, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "as jsonb it has more than" in reason
    assert peak < 4 * ROW_BYTES_MAX  # three quarters of a gigabyte, uncounted
    of = source({"d": "text"}, protobuf("p.S", made))
    assert Judge(of)._value.many is None and judged(of, message(b"")).rows == [("D" * 50_000,)]


def test_a_float_in_jsonb_has_the_digits_that_say_it() -> None:
    of = source({"ms": "jsonb"}, protobuf("p.Nested", ALL))
    rng, kept = random.Random(seed_of_commit()), 0
    singles = [0.1, -103.217316, 16777216.0, 3.4028234663852886e38, -3.40282e38, 1.4e-45, 9.8765432e-5, 1.00000012]
    singles += [struct.unpack("<f", rng.randbytes(4))[0] for _ in range(500)]
    for each in filter(math.isfinite, singles):
        said = struct.pack("<f", each)
        (row,) = judged(of, message(b"\x22\5\x0d" + said)).rows  # ms is the fourth field
        digits = re.search(r'"x": (-?[0-9.]+)', row[0])[1]
        assert struct.pack("<f", float(digits)) == said or not float(digits)  # -0 is 0 in jsonb
        kept += 1
        assert len(digits.replace(".", "").replace("-", "").strip("0")) <= 9
    assert kept > 8


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "p.M", "it has no files"), (b"\xff", "p.M", "it is no FileDescriptorSet"),
        (b" " * (SET_BYTES_MAX + 1), "p.M", "at most 262144 are read"),
        (said_set(file({"M": {"a": "int32"}})), "p.N", 'it has no message "p.N", but p.M'),
        (said_set(file({"M": {"a": "int32"}}, package="")), "", 'it has no message "", but M'),
        (said_set(file({"M": {}})), "p.M", 'its message "p.M" has no fields'),
        (said_set(file({"M": {"a": "int32"}}, imports=["q.proto"])), "p.M", "it lacks the file q.proto"),
        (said_set(file({"M": {"a": "int32"}}, imports=["p.proto"])), "p.M", "imports itself"),
        (said_set(file({"M": {"a": "int32"}}, imports=["q.proto"]),
                  file({"N": {"a": "int32"}}, "q.proto", "q", imports=["p.proto"])), "p.M", "imports itself"),
        (said_set(file({"M": {"a": ".p.Nope"}})), "p.M", "its file p.proto: "),
        (said_set(file({"M": {"a": "int32"}})).replace(b"p.proto", b"\xff.proto"), "p.M", "whose name is not UTF-8"),
        (said_set(file({"M": {"a": "int32"}}, imports=["p.proto"])).replace(b"\x1a\7p", b"\x1a\7\xff"), "p.M",
         "whose name is not UTF-8"),
        (said_set(file({"M\0": {"a": "int32"}})), "p.M", "its file p.proto: "),
        (said_set(file({"M": {"a": "int32"}}), file({"M": {"a": "int32"}}, "q.proto")), "p.M", "its file q.proto: "),
    ],
)  # fmt: skip
def test_descriptors_that_no_message_is_read_by(data: bytes, name: str, reason: str) -> None:
    with pytest.raises(BadSchema) as error:
        read_type(data, name)
    assert reason in str(error.value)


def test_any_descriptors_are_a_type_or_are_refused() -> None:
    rng = random.Random(seed_of_commit())
    good, read = said_set(ALL), 0
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        try:
            found = read_type(bytes(data), "p.Nested")
        except BadSchema:
            continue
        read += 1
        columns = {part.field.name: part.field.type for part in parts_of(found)}
        judged(
            source(columns, Format("protobuf", schema=data.hex(), message="p.Nested")),
            message(b""),
            message(b"\x12\1a"),
        )
    assert 0 < read < 2000


@pytest.mark.parametrize(
    "fields",
    [
        {"key": "int32"}, {"key": "float", "value": "int32"}, {"value": "int32", "key": "int32"},
        {"key": "int32", "value": "repeated int32"},
    ],
)  # fmt: skip
def test_an_entry_of_a_map_that_is_none_is_refused(fields: dict[str, str]) -> None:
    made = file({"M": {"m": "repeated .p.Entry"}, "Entry": fields})
    made.message_type[1].options.map_entry = True
    with pytest.raises(BadSchema, match="a map without a key and a value"):
        read_type(said_set(made), "p.M")


def test_files_stand_in_any_order_and_what_comes_with_protobuf_is_protobufs() -> None:
    first = file(
        {"M": {"a": ".q.N", "at": ".google.protobuf.Timestamp"}}, imports=["q.proto", "r.proto", WELL_KNOWN[0]]
    )
    second = file({"N": {"a": "int32"}}, "q.proto", "q", imports=["r.proto"])
    third = file({"O": {"a": "int32"}}, "r.proto", "r")
    hostile = file(
        {"Timestamp": {"seconds": "string", "nanos": ".google.protobuf.Timestamp"}}, WELL_KNOWN[0], "google.protobuf"
    )
    data = said_set(first, second, third, hostile)
    assert [part.field.type for part in parts_of(read_type(data, "p.M"))] == ["jsonb", "timestamptz"]
    # One of that name in another file is what it says.
    other = file({"Timestamp": {"seconds": "string"}}, "mine.proto", "google.protobuf")
    first = file({"M": {"at": ".google.protobuf.Timestamp"}}, imports=["mine.proto"])
    assert [part.field.type for part in parts_of(read_type(said_set(first, other), "p.M"))] == ["jsonb"]


def test_sources_do_not_share_names() -> None:
    one, other = file({"M": {"a": "int32"}}), file({"M": {"a": "string"}})
    assert judged(source({"a": "int4"}, protobuf("p.M", one)), message(b"\x08\1")).rows == [(1,)]
    assert judged(source({"a": "text"}, protobuf("p.M", other)), message(b"\x0a\1x")).rows == [("x",)]


def test_keys_are_messages_too() -> None:
    made = file({"K": {"id": "int64"}, "V": {"id": "int64", "n": "string"}})
    of = source({"id": "int8", "n": "text"}, protobuf("p.V", made), protobuf("p.K", made), "bv", "upsert")
    found = judged(of, message(b"\x08\1\x12\1x", b"\x08\1"), message(None, b"\x08\1"), message(b"\x08\2", b"\x08\1"),
                   message(b"", b"\xff"), message(b"", b""))  # fmt: skip
    assert found.keyed == [Keyed((1,), (1, "x")), Keyed((1,), None), Keyed((0,), (0, ""))]
    assert found.bad[0].reason == 'column "id" is another in the key than in the value'
    assert found.bad[1].reason.startswith("its key: not a message of its type")


def test_any_bytes_are_a_row_or_a_reason() -> None:
    rng = random.Random(seed_of_commit())
    sources = [
        (flat(), sent("p.Flat", "i: 5 s: 'abc' e: ONE o: 3 at { seconds: 5 } ws { value: 'x' }", ALL)),
        (nested(), sent("p.Nested", "tags: 'a' ms { x: 1 o: 'y' } kv { key: 1 value { } } m { i: 1 }", ALL)),
    ]
    for of, good in sources:
        judge = Judge(of)
        messages = [message(mangled(rng, good)) for _ in range(1000)]
        found = judge.judge(messages)
        same_at_once(judge, of, messages, found)
        for each in messages:  # by themselves as well, since a batch with a bad one is judged one by one
            same_at_once(judge, of, [each], judge.judge([each]))
        assert len(found.rows) + len(found.bad) == 1000 and found.rows and found.bad
        table = table_from_rows(of.stored, found.rows)
        assert sum(each.rows for each in encode(of.stored, table, "a")) == len(found.rows)


def test_formats_of_other_kinds_have_no_member_of_it() -> None:
    with pytest.raises(BadSchema, match="no field nope"):
        Judge(source({"nope": "int4"}, protobuf("p.Flat", ALL)))
    assert Format("text").message == ""
