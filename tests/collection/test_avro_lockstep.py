"""Avro read field by field of many values is what fastavro reads of each, or nothing."""

from __future__ import annotations

import io
import json
import random

import fastavro
import pyarrow as pa
import pytest

from catalog_log.objects.reading import Format
from collection.messages.avro_lockstep import Found, lockstep
from collection.messages.judging import Judge
from schemas.avro_messages import BadMessage, read_schema, reading
from tests.collection.test_messages import mangled, message, same_at_once, source
from tests.seeds import seed_of_commit

KINDS = ("int", "long", "boolean", "float", "double", "string", "bytes")


def scalar(rng: random.Random, kind: str) -> object:
    if kind == "int":
        return rng.choice([0, 1, -1, 63, 64, -65, (1 << 31) - 1, -(1 << 31), rng.randrange(1 << 20)])
    if kind == "long":
        return rng.choice([0, -64, 8191, 8192, (1 << 62) - 1, -(1 << 62), rng.randrange(-(1 << 40), 1 << 40)])
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("float", "double"):
        return rng.choice([0.0, -0.0, 1.5, float("inf"), -(2.0**100)])
    text = "".join(rng.choice("ab\0é😀") for _ in range(rng.choice([0, 1, 3, 70])))
    return text if kind == "string" else text.encode()


def made(rng: random.Random, depth: int, number: list[int]) -> tuple[dict, dict[str, object]]:
    """A record's schema, and the kinds of its fields: texts, or again such."""
    fields, kinds = [], {}
    for at in range(rng.randrange(1, 5)):
        kind: object = rng.choice(KINDS)
        said: object = kind
        if depth and rng.random() < 0.3:
            said, kind = made(rng, depth - 1, number)
        if rng.random() < 0.5:
            said, kind = rng.choice([["null", said], [said, "null"]]), (kind,)
        fields.append({"name": f"f{at}", "type": said})
        kinds[f"f{at}"] = kind
    number[0] += 1
    return {"type": "record", "name": f"r{number[0]}", "fields": fields}, kinds


def value(rng: random.Random, kinds: object) -> object:
    if isinstance(kinds, tuple):
        return None if rng.random() < 0.3 else value(rng, kinds[0])
    if isinstance(kinds, dict):
        return {name: value(rng, each) for name, each in kinds.items()}
    return scalar(rng, kinds)


def encoded(schema: object, given: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, given)
    return out.getvalue()


@pytest.mark.parametrize("seed", range(60))
def test_any_values_of_any_schema_it_knows(seed: int) -> None:
    rng = random.Random(seed)
    said, kinds = made(rng, 2, [0])
    schema = read_schema(json.dumps(said))
    one, parsed = reading(schema, schema), fastavro.parse_schema(said)
    bare = {name: each[0] if isinstance(each, tuple) else each for name, each in kinds.items()}
    plain = [name for name, each in bare.items() if isinstance(each, str)]
    wanted = rng.sample(plain, rng.randint(0, len(plain)))
    at_once = lockstep(schema.tree, wanted)
    assert at_once is not None
    for odd in (False, False, True):
        data = [encoded(parsed, value(rng, kinds)) for _ in range(rng.choice([1, 2, 50]))]
        if odd:
            data[rng.randrange(len(data))] = mangled(rng, data[0])
        try:
            values = [one(each, 0) for each in data]
        except BadMessage:
            assert at_once.of(data) is None
            continue
        found = at_once.of([b"12345" + each for each in data], 5)
        assert found is not None or odd
        if found is not None:
            for name in wanted:
                assert repr(found.fields[name].array.to_pylist()) == repr([each[name] for each in values])


def member(found: Found, name: str) -> list[object]:
    inner = found.fields["after"]
    there = iter(inner.fields[name].array.to_pylist())
    return [next(there) if has else "gone" for has in (inner.there.tolist() if inner.there is not None else [True] * 3)]


def test_a_record_that_may_be_null() -> None:
    row = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "a", "type": ["null", "string"]}, {"name": "b", "type": "int"}],
    }
    said = {
        "type": "record",
        "name": "e",
        "fields": [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "row"]}],
    }
    tree, parsed = read_schema(json.dumps(said)).tree, fastavro.parse_schema(said)
    at_once = lockstep(tree, ["a"], "after")
    pairs = [({"a": "x", "b": 1}, None), (None, {"a": "y", "b": 2}), ({"a": None, "b": 3}, {"a": None, "b": 4})]
    for some, wanted in ((pairs, ["gone", "y", None]), (pairs[:1] * 3, ["gone"] * 3), (pairs[1:2] * 3, ["y"] * 3)):
        found = at_once.of([encoded(parsed, {"before": before, "after": after}) for before, after in some])
        assert member(found, "a") == wanted


def test_what_it_does_not_know_it_does_not_read() -> None:
    array, some = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
    fixed, enum = {"type": "fixed", "name": "f", "size": 2}, {"type": "enum", "name": "e", "symbols": ["A"]}
    for kind in (array, some, ["int", "string"], ["null", "int", "string"], fixed, enum):
        said = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": kind}]}
        assert lockstep(read_schema(json.dumps(said)).tree, ["a"]) is None
    assert lockstep(read_schema('"int"').tree, []) is None
    whole = lockstep(
        read_schema('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}').tree, ["a"]
    )
    assert whole.of([b"\x02", b"\xff" * 9 + b"\x01"]) is None, "of ten bytes"
    assert whole.of([b"\x02", b"\x80\x00"]).fields["a"].array == pa.array([1, 0])
    for bad in (b"", b"\x80", b"\x02\x02"):
        assert whole.of([b"\x02", bad]) is None and whole.of([bad, b"\x02"]) is None


@pytest.mark.parametrize("seed", range(20))
def test_debezium_and_upsert_in_avro_at_once_are_what_each_is(seed: int) -> None:
    rng = random.Random(seed_of_commit() + seed)
    date = {"type": "int", "logicalType": "date"}
    said_of = {"id": "long", "t": ["null", "string"], "x": ["float", "null"], "d": date}
    fields = [{"name": name, "type": each} for name, each in said_of.items()]
    row = {"type": "record", "name": "row", "fields": fields}
    sides = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "row"]}]
    pair = {"type": "record", "name": "e", "fields": [*sides, {"name": "op", "type": "string"}]}
    key = {"type": "record", "name": "k", "fields": fields[:1]}
    types = {"id": "int8", "t": "text", "x": "float4", "d": "date"}
    kinds = {"id": "long", "t": ("string",), "x": ("float",), "d": "int"}
    quick = 0
    for envelope, said in (("debezium", pair), ("upsert", row), ("none", row)):
        keyed = envelope != "none"
        format = Format("avro", schema=json.dumps(said))
        of_key = Format("avro", schema=json.dumps(key)) if keyed else None
        roles = "bvvv" if keyed else "vvvv"
        of = source(types, format, of_key, roles, envelope, not_null=rng.choice([(), ("t",)]))
        judge, whole, own = Judge(of), fastavro.parse_schema(said), fastavro.parse_schema(key)
        for odd in (0, 0, 0.05, 0.3):
            messages = []
            for _ in range(40):
                one = value(rng, kinds)
                if rng.random() >= odd:  # U+0000 is in no text here, and no date so far away
                    one |= {"t": (one["t"] or "").replace("\0", ""), "d": one["d"] % 50_000}
                given = {"before": rng.choice([None, one]), "after": rng.choice([None, one, one]), "op": "u"}
                data = encoded(whole, given if envelope == "debezium" else one)
                number = one["id"] if rng.random() >= odd else 5
                if rng.random() < odd:
                    data = mangled(rng, data)
                its_key = encoded(own, {"id": number}) if keyed else None
                messages.append(message(data if rng.random() > 0.05 else None, its_key))
            same_at_once(judge, of, messages, judge.judge(messages))
            values = [each.value for each in messages if each.value is not None]
            quick += judge._value.many(values) is not None
    assert quick
