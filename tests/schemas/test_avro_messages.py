"""Schemas and messages of others: what is read by them, and that nothing hostile is more than refused."""

from __future__ import annotations

import io
import json
import random

import fastavro
import pytest

from schemas.avro_messages import (
    DEPTH_MAX,
    SCHEMA_CHARS_MAX,
    TYPES_MAX,
    BadMessage,
    BadSchema,
    Schema,
    read_schema,
    reading,
)
from tests.seeds import seed_of_commit

ORDER = {
    "type": "record", "name": "order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "state", "symbols": ["new", "paid"]}},
        {"name": "before", "type": ["null", "state"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": "double"}},
    ],
}  # fmt: skip
VALUE = {"id": 7, "note": "é", "amount": b"\x01\x00", "state": "paid", "before": "new", "tags": ["a", "b"],
         "more": {"x": 1.5}}  # fmt: skip


def schema(said: object) -> Schema:
    return read_schema(json.dumps(said))


def record(*fields: tuple, name: str = "r") -> dict:
    return {"type": "record", "name": name, "fields": [
        {"name": n, "type": t} | ({"default": d[0]} if d else {}) for n, t, *d in fields
    ]}  # fmt: skip


def written(of: Schema, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, of.physical, value)
    return out.getvalue()


def test_a_value_is_as_avro_carries_it() -> None:
    of = schema(ORDER)
    assert reading(of, of)(b"..." + written(of, VALUE), 3) == VALUE
    assert of.tree["fields"][4]["type"] == [
        {"type": "null"}, {"type": "enum", "name": "shop.state", "symbols": ["new", "paid"]}
    ], "a name is what it names"  # fmt: skip


def test_the_reader_sees_what_it_knows_of_by_avros_rules() -> None:
    old = schema(record(("id", "int"), ("gone", "string"), ("w", "float")))
    new = schema(record(("id", "long"), ("w", "double"), ("added", ["null", "string"], None), ("n", "int", 5)))
    found = reading(old, new)(written(old, {"id": 3, "gone": "x", "w": 0.5}), 0)
    assert found == {"id": 3, "w": 0.5, "added": None, "n": 5}


@pytest.mark.parametrize(
    ("writer", "reader", "value"),
    [
        (record(("id", "string")), record(("id", "long")), {"id": "x"}),
        (record(("id", "long")), record(("id", "long"), ("added", "string")), {"id": 1}),
        (record(("id", ["null", "string"])), record(("id", "string")), {"id": None}),
        (
            record(("s", {"type": "enum", "name": "e", "symbols": ["a", "b"]})),
            record(("s", {"type": "enum", "name": "e", "symbols": ["a"]})),
            {"s": "b"},
        ),
    ],
)
def test_what_does_not_fit_is_said_of_the_message(writer, reader, value) -> None:
    writer, reader = schema(writer), schema(reader)
    with pytest.raises(BadMessage):
        reading(writer, reader)(written(writer, value), 0)


def decimal(scale: int) -> dict:
    return {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": scale}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (decimal(2), decimal(3)),
        ("bytes", decimal(2)),
        ("int", {"type": "int", "logicalType": "date"}),
        ({"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"}),
        ({"type": "int", "logicalType": "time-millis"}, "long"),
        (["null", decimal(2)], ["null", decimal(1)]),
        ({"type": "array", "items": decimal(2)}, {"type": "array", "items": decimal(1)}),
        ({"type": "map", "values": decimal(2)}, {"type": "map", "values": decimal(1)}),
        (["null", decimal(2)], "string"),
    ],
)
def test_bare_numbers_that_mean_something_else_do_not_fit(one, other) -> None:
    for writer, reader in ((one, other), (other, one)):
        with pytest.raises(BadMessage, match="f has another logical type"):
            reading(schema(record(("f", writer))), schema(record(("f", reader))))
        reading(schema(record(("f", writer))), schema(record(("f", writer), ("g", "int", 1))))


def test_a_wider_number_in_a_union_means_what_it_meant() -> None:
    for writer, reader in ((["null", "int"], ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
                           ({"type": "int", "logicalType": "date"}, ["null", "long"]),
                           ({"type": "int", "logicalType": "date"}, ["null", "double"])):  # fmt: skip
        with pytest.raises(BadMessage, match="f has another logical type"):
            reading(schema(record(("f", writer))), schema(record(("f", reader))))
    old, new = schema(record(("f", ["null", "int"]))), schema(record(("f", ["null", "long"])))
    assert reading(old, new)(written(old, {"f": 5}), 0) == {"f": 5}


def test_a_field_that_an_alias_is_of_is_the_same_place() -> None:
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    old = schema(record(("was", millis)))

    def renamed(kind: dict) -> Schema:
        return schema({"type": "record", "name": "r", "fields": [{"name": "f", "aliases": ["was"], "type": kind}]})

    assert reading(old, renamed(millis))(written(old, {"was": 5}), 0) == {"f": 5}
    with pytest.raises(BadMessage, match="f has another logical type"):
        reading(old, renamed(micros))


PAIR = record(("n", "int", 3), ("b", "bytes", "\xff"), name="pair")


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("bytes", "\xff\0", b"\xff\0"),
        (decimal(1), "\x01\x00", b"\x01\x00"),
        ({"type": "fixed", "name": "f", "size": 2}, "\xff\x01", b"\xff\x01"),
        (["bytes", "null"], "\xff", b"\xff"),
        (["null", "bytes"], "\xff", b"\xff"),
        ("double", 1, 1.0),
        (PAIR, {}, {"n": 3, "b": b"\xff"}),
        (PAIR, {"b": "\x01"}, {"n": 3, "b": b"\x01"}),
        ({"type": "array", "items": "bytes"}, ["\xff"], [b"\xff"]),
        ({"type": "map", "values": ["null", "bytes"]}, {"a": "\xff", "b": None}, {"a": b"\xff", "b": None}),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "A", "A"),
    ],
)
def test_a_default_is_a_value_as_avro_carries_it(kind, default, value) -> None:
    old, new = schema(record(("id", "int"))), schema(record(("id", "int"), ("d", kind, default)))
    found = reading(old, new)(written(old, {"id": 1}), 0)["d"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", "x"), ("int", None), ("int", 1.5), ("long", 1 << 63), ("boolean", 1), ("string", 5),
        ("bytes", "\u0100"),
        ({"type": "fixed", "name": "f", "size": 2}, "x"), ({"type": "enum", "name": "e", "symbols": ["A"]}, "B"),
        (record(("n", "int"), name="pair"), {}), ({"type": "array", "items": "int"}, {}), (["null", "int"], "x"),
    ],
)  # fmt: skip
def test_a_default_that_is_no_value_is_none_and_who_does_not_need_it_is_read(kind, default) -> None:
    old, new = schema(record(("id", "int"))), schema(record(("id", "int"), ("d", kind, default)))
    with pytest.raises(BadMessage, match="d"):
        reading(old, new)(written(old, {"id": 1}), 0)
    assert reading(old, old)(written(old, {"id": 1}), 0) == {"id": 1}
    whole = schema(record(("d", "int", default), ("id", "int")))
    assert reading(whole, old)(written(whole, {"id": 1, "d": 2}), 0) == {"id": 1}, "of a writer's nobody asks"


ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
ARRAY = {"type": "array", "items": "int"}


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        (["null", "int"], b"\x01\x02", "branch -1 of a union of 2"),
        (["null", "int"], b"\x04\x02", "branch 2 of a union of 2"),
        (ENUM, b"\x01", "symbol -1 of an enum of 2"),
        (ENUM, b"\x04", "symbol 2 of an enum of 2"),
        ({"type": "array", "items": ["null", ENUM]}, b"\x04\x00\x02\x03\x00", "symbol -2"),
        ("long", b"\xff" * 9 + b"\x02", "more than 64 bits"),
        ("long", b"\xff" * 10 + b"\x00", "more than 64 bits"),
        ("long", b"\xff", "ends too soon"),
        ("string", b"\x05abcdef", "-3 bytes where 6 are left"),
        ("bytes", b"\x0eabc", "7 bytes where 3 are left"),
        ("double", b"1234567", "ends too soon"),
        ({"type": "fixed", "name": "x", "size": 4}, b"abc", "ends too soon"),
        ({"type": "array", "items": "float"}, b"\xfe\xff\xff\xff\x0f", "no bytes are left"),
        ({"type": "map", "values": "int"}, b"\x02\x01", "-1 bytes"),
        (ARRAY, b"\x01\x02\x02\x00", None),
        (ARRAY, b"\x01\x04\x02\x00", "other bytes than it says"),
        (ARRAY, b"\x01\x7f\x02\x00", "other bytes than it says"),
        ("long", b"\xff" * 9 + b"\x01", None),
    ],
)
def test_what_is_none_of_its_schema_is_refused_whether_anybody_asks_for_it_or_not(kind, data: bytes, why) -> None:
    writer, other = schema(record(("f", kind))), schema(record(("g", "int", 1)))
    for reader in (writer, other):
        read = reading(writer, reader)
        if why is None:
            read(b"head" + data, 4)
            continue
        with pytest.raises(BadMessage, match=why):
            read(b"head" + data, 4)


def drawn(rng: random.Random, depth: int, count: list[int]) -> tuple[object, object]:
    """A type of any kind, and a value of it."""
    count[0] += 1
    kind = rng.choice(["null", "boolean", "int", "long", "double", "string", "bytes", "enum", "fixed"]
                      + ["record", "array", "map", "union"] * (depth > 0))  # fmt: skip
    name = f"n{count[0]}"
    match kind:
        case "null":
            return "null", None
        case "boolean":
            return kind, rng.random() < 0.5
        case "int" | "long":
            return kind, rng.choice([0, -1, 64, -65, (1 << 31) - 1, -(1 << 31), *((-(1 << 63),) * (kind == "long"))])
        case "double":
            return kind, rng.random()
        case "string" | "bytes":
            said = "é" * rng.choice([0, 1, 100])
            return kind, said if kind == "string" else said.encode()
        case "enum":
            return {"type": kind, "name": name, "symbols": ["A", "B"]}, rng.choice("AB")
        case "fixed":
            return {"type": kind, "name": name, "size": 3}, b"abc"
        case "record":
            inner = [drawn(rng, depth - 1, count) for _ in range(rng.randrange(1, 4))]
            fields = [{"name": f"f{n}", "type": each} for n, (each, _) in enumerate(inner)]
            return {"type": kind, "name": name, "fields": fields}, {f"f{n}": each for n, (_, each) in enumerate(inner)}
        case "union":
            inner, value = drawn(rng, depth - 1, count)
            alone = inner == "null" or isinstance(inner, list)
            return (inner, value) if alone else (["null", inner], rng.choice([None, value]))
    inner, value = drawn(rng, depth - 1, count)
    if kind == "map":
        return {"type": kind, "values": inner}, {f"k{n}": value for n in range(rng.choice([0, 1, 3]))}
    if inner == "null" or isinstance(inner, dict) and inner["type"] == "record":
        inner, value = "int", 5  # what may take no bytes is in no array
    return {"type": kind, "items": inner}, [value] * rng.choice([0, 1, 3])


def test_whatever_is_written_by_a_schema_is_walked_to_its_end() -> None:
    rng = random.Random(seed_of_commit())
    for _ in range(300):
        said, value = drawn(rng, 4, [0])
        of, other = schema(record(("f", said))), schema(record(("g", "int", 1)))
        data = written(of, {"f": value})
        assert reading(of, of)(b"xx" + data, 2) == {"f": value}
        assert reading(of, other)(data, 0) == {"g": 1}
        if data:
            with pytest.raises(BadMessage):
                reading(of, other)(data[:-1], 0)
        with pytest.raises(BadMessage, match="left over|not a value"):
            reading(of, other)(data + b"\0", 0)


def test_a_schema_that_names_itself_out_is_walked_by_as_many_steps_as_it_has_words() -> None:
    said: object = "int"
    for n in range(12):
        fields = [{"name": "a", "type": said}, {"name": "b", "type": f"r{n - 1}" if n else "int"}]
        said = {"type": "record", "name": f"r{n}", "fields": fields}
    of = schema(said)
    assert reading(of, of)(b"\0" * (1 << 12), 0)


def test_any_bytes_are_a_value_or_are_refused() -> None:
    rng = random.Random(seed_of_commit())
    of = schema(ORDER)
    read, good = reading(of, of), written(of, VALUE)
    refused = 0
    for _ in range(20_000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(3):
                case 0:
                    data[at:] = b""
                case 1:
                    data[at : at + 1] = rng.randbytes(1)
                case _:
                    data[at:at] = rng.randbytes(rng.randrange(12))
        try:
            assert set(read(bytes(data), 0)) == set(VALUE)
        except BadMessage:
            refused += 1
    assert refused > 10_000
    for begin in range(len(good)):
        with pytest.raises(BadMessage):
            read(good[:begin], 0)
    with pytest.raises(BadMessage, match="2 bytes are left over"):
        read(good + b"xx", 0)


def nested(depth: int) -> object:
    found: object = "int"
    for n in range(depth):
        found = record(("x", found), name=f"r{n}")
    return found


def wide(count: int) -> dict:
    """Records that each hold the last twice: some hundred characters that are 2^count types."""
    fields = [("f0", record(("x", "int"), name="r0"))]
    for n in range(1, count):
        fields.append((f"f{n}", record(("a", f"r{n - 1}"), ("b", f"r{n - 1}"), name=f"r{n}")))
    return record(*fields, name="all")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{", "no Avro schema"),
        ("5", "no Avro schema"),
        ('"nope"', "names nope"),
        ('{"type": "record"}', "name"),
        (json.dumps(record(("next", ["null", "r"]))), "holds itself"),
        (json.dumps({"type": "array", "items": "null"}), "takes no bytes"),
        (json.dumps({"type": "array", "items": record()}), "takes no bytes"),
        (json.dumps({"type": "array", "items": record(("n", {"type": "fixed", "name": "f", "size": 0}))}), "no bytes"),
        (json.dumps(nested(DEPTH_MAX + 2)), "nested deeper"),
        (json.dumps(wide(30)), f"more than {TYPES_MAX}"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        (json.dumps("x" * SCHEMA_CHARS_MAX), "characters"),
    ],
)
def test_schemas_that_no_message_is_read_by(said: str, why: str) -> None:
    with pytest.raises(BadSchema, match=why):
        read_schema(said)


def test_a_logical_type_that_does_not_say_what_it_must_counts_as_the_bare_value() -> None:
    bare = schema({"type": "bytes"})
    for said in ({"logicalType": "decimal"}, {"logicalType": "decimal", "precision": 3, "scale": None},
                 {"logicalType": "decimal", "precision": "3"}, {"logicalType": []}, {"logicalType": {}}):  # fmt: skip
        try:
            of = schema({"type": "bytes", **said})
        except BadSchema:
            continue  # fastavro itself may look at precisions
        assert of.tree == bare.tree and reading(bare, of)(b"\x02\x07", 0) == b"\x07", said


def test_a_union_in_a_union_is_no_schema() -> None:
    for said in ([[], "int"], ["null", ["int"]], [{"type": ["int", "null"]}, "string"]):
        with pytest.raises(BadSchema):
            schema(said)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_what_no_column_can_be_called_is_no_field(name: str) -> None:
    with pytest.raises(BadSchema):
        schema(record((name, "int")))


def test_half_of_a_surrogate_pair_is_in_no_value() -> None:
    for said in ({"type": "enum", "name": "e", "symbols": ["\ud800"]}, record(("a", "string", "\udfff"))):
        with pytest.raises(BadSchema):
            schema(said)
