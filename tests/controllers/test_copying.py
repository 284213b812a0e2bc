"""What executors say of messages of a copied source is what the storage controller would say, and the rows are its."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column, Source
from catalog_log.objects.reading import Format, Reading
from collection.binding import Run, pin
from collection.columns import plain_columns
from collection.messages.judging import Judge, Message
from controllers import copying, judging
from controllers.copying import copied, judge_of, may_be_copied_elsewhere
from controllers.judging import (
    Copying,
    Order,
    Range,
    Verdict,
    decode_order,
    decode_verdict,
    encode_order,
    encode_verdict,
)
from controllers.storage.waves import behind, taken, wave
from journal.errors import InvalidUsage
from schemas.avro_messages import read_schema
from tests.protobuf import file, protobuf, sent

PERSON = {"type": "record", "name": "person", "fields": [
    {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None},
]}  # fmt: skip
OLDER = {"type": "record", "name": "person", "fields": [{"name": "id", "type": "int"}]}
SCHEMAS = {"u9": {1: json.dumps(OLDER), 2: None, 3: json.dumps(PERSON)}}


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def source(columns: tuple[Column, ...], reading: Reading) -> Source:
    columns = tuple(replace(each, id=n) for n, each in enumerate(columns, 1))
    return Source("u1", "s1", "clicks", "", columns, topic="clicks", format=reading.value.kind, envelope="none",
                  errors_id="u2", reading=reading)  # fmt: skip


SOURCES = {
    "json": source(
        (Column("a", "int4", False), Column("b", "text"), Column("p", "int4"), Column("o", "int8"),
         Column("h", "jsonb")),
        Reading(Format("json"), None, ("value", "value", "partition", "offset", "headers")),
    ),
    "csv": source(
        (Column("a", "int4"), Column("b", "text"), Column("at", "timestamptz")),
        Reading(Format("csv", columns=2, header=("a", "b")), None, ("value", "value", "timestamp")),
    ),
    "avro": source(
        (Column("id", "int8", False), Column("name", "text")),
        Reading(Format("avro", schema=json.dumps(PERSON), registry_id="u9"), None, ("value", "value")),
    ),
    "keys": source(
        (Column("k", "text"), Column("v", "bytea", False)),
        Reading(Format("bytes"), Format("text"), ("key", "value")),
    ),
}  # fmt: skip
VALUES = {
    "json": [b'{"a":1}', b'{"a":2,"b":"x"}', b'{"a":null}', b"bad", None, b"", b'{"a":3,"b":"\\u0000"}'],
    "csv": [b"1,x", b"a,b", b"2", b"x,y", None, b"3,\xff", b'4,"q"'],
    "avro": [framed(1, b"\x02"), framed(3, b"\x04\x02\x02a"), framed(3, b"\x04\x00"), framed(2, b"\x02"),
             framed(4, b"\x02"), b"\x00", b"", None, framed(1, b"\x80")],
    "keys": [b"", b"v", b"\x00\xff", None],
}  # fmt: skip
KEYS = [None, b"k", b"", b"\xff"]
HEADERS = [(), (("h", b"1"),), None]


def message(kind: str, partition: int, offset: int, value: int, key: int, headers: int) -> Message:
    return Message(partition, offset, KEYS[key % len(KEYS)], VALUES[kind][value % len(VALUES[kind])], offset * 1000,
                   HEADERS[headers % len(HEADERS)])  # fmt: skip


def order(kind: str, ranges: list[Range], known: dict[str, dict[int, str | None]]) -> Order:
    item = SOURCES[kind]
    asked = Copying("e", item.id, "a/1", item.reading, known if kind == "avro" else {})
    return decode_order(encode_order(Order(item.topic, plain_columns(item.stored), tuple(ranges), 9.0, asked)))


def pieces(messages: list[Message], rng: random.Random):
    at = 0
    while at < len(messages):
        upto = at + rng.randint(1, 7)
        yield messages[at:upto]
        at = upto


class Topic:
    """Rows where tasks write them: one record of each table, among those of others."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.records, self.runs = rng, {}, {}

    def begin(self) -> None:
        self.mine: list[Run] = []

    def put(self, table) -> None:
        if table.num_rows:
            at = len(self.records) + self.rng.randint(0, 2)
            while at in self.records:
                at += 1
            self.records[at] = table.to_pylist()
            self.mine.append(Run("e.data.u1", 0, at, at + 1, "a/1", table.num_rows))


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(sorted(SOURCES)),
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), *[st.integers(0, 20)] * 3), max_size=50),
    st.integers(1, 19), st.integers(0, 1 << 30), st.sampled_from((1 << 20, 200, 1)),
    st.sampled_from((1 << 20, 100, 1)),
)  # fmt: skip
def test_waves_bind_what_this_process_would_have_bound(kind, steps, at_once, seed, bad_bytes, rows_bytes) -> None:
    """Gaps, ranges of any size, bounds on what is told and written, schemas that are learnt late, tasks done twice."""
    rng = random.Random(seed)
    item = SOURCES[kind]
    there: dict[int, list[Message]] = {0: [], 1: []}
    ends = {0: 0, 1: 0}
    for partition, gap, *drawn in steps:
        ends[partition] += gap
        there[partition].append(message(kind, partition, ends[partition] - 1, *drawn))
    topic, positions = Topic(rng), {0: 0, 1: 0}
    known = {"u9": {1: SCHEMAS["u9"][1]}}
    rows, good, bad = [], 0, []
    kept = judging.BAD_BYTES_MAX, copying.ROWS_BYTES_MAX
    judging.BAD_BYTES_MAX, copying.ROWS_BYTES_MAX = bad_bytes, rows_bytes
    try:
        while behind(positions, ends):
            ranges = wave(positions, ends, 10 * at_once, at_once)
            asked, told = order(kind, ranges, known), []
            for each in ranges:
                inside = [m for m in there[each.partition] if each.lower <= m.offset < each.upper]
                for _ in range(rng.randint(1, 2)):  # another task did it, too
                    topic.begin()
                    judge, schemas = judge_of(asked)
                    verdict = copied(judge, schemas, item.topic, each, pieces(inside, rng), topic.put)
                    verdict = verdict._replace(runs=tuple(topic.mine))
                told.append(decode_verdict(asked, each, encode_verdict(verdict)))
            found = taken(item.topic, positions, ranges, told, pin("t1"))
            if not found.runs:  # all at a message of a schema that nobody was told of: who reads it learns it
                assert kind == "avro"
                number = next(n for n in (2, 3, 4) if n not in known["u9"])
                known["u9"][number] = SCHEMAS["u9"].get(number)
            rows += [row for run in found.written for row in topic.records[run.lower]]
            good, bad, positions = good + found.good_count, bad + list(found.bad), found.positions
    finally:
        judging.BAD_BYTES_MAX, copying.ROWS_BYTES_MAX = kept
    assert positions == ends
    judge, everything = Judge(item), [each for partition in there.values() for each in partition]
    judge.know("u9", {n: None if text is None else read_schema(text) for n, text in {**SCHEMAS["u9"], 4: None}.items()})
    table, whole = judge.table(everything)
    assert sorted(map(repr, rows)) == sorted(map(repr, table.to_pylist()))
    assert good == len(everything) - len(whole)
    assert sorted((e.partition, e.offset, e.error) for e in bad) == sorted(
        (everything[each.index].partition, everything[each.index].offset, each.reason) for each in whole
    )


def test_of_protocol_buffers_too() -> None:
    described = file({"V": {"id": "int64"}})
    reading = Reading(protobuf("p.V", described), None, ("value",))
    item = source((Column("id", "int8"),), reading)
    asked = Order("clicks", plain_columns(item.stored), (Range(0, 0, 2),), 9.0, Copying("e", "u1", "a", reading, {}))
    judge, known = judge_of(decode_order(encode_order(asked)))
    topic = Topic(random.Random(1))
    topic.begin()
    messages = [Message(0, 0, None, sent("p.V", "id: 7", described), 0), Message(0, 1, None, b"\xff", 0)]
    verdict = copied(judge, known, "clicks", Range(0, 0, 2), [messages], topic.put)
    assert (verdict.upper, verdict.good, len(verdict.bad)) == (2, 1, 1)
    assert [*topic.records.values()] == [[{"id": 7}]]


def test_what_takes_secrets_or_a_state_is_not_done_elsewhere() -> None:
    item = SOURCES["avro"]
    assert may_be_copied_elsewhere(item)
    assert not may_be_copied_elsewhere(replace(item, reading=replace(item.reading, connection_id="u8")))
    assert not may_be_copied_elsewhere(replace(item, envelope="upsert"))
    assert not may_be_copied_elsewhere(replace(item, envelope="debezium"))
    assert not may_be_copied_elsewhere(replace(item, reading=None))


@pytest.mark.parametrize(
    "change",
    [
        {"env": ""}, {"env": "a/b"}, {"env": 7}, {"collection": ""}, {"collection": None}, {"attempt": ""},
        {"attempt": "\ud800"}, {"reading": "{}"}, {"reading": "[]"}, {"reading": 7}, {"reading": "[" * 100_000},
        {"schemas": []}, {"schemas": {"u9": []}}, {"schemas": {"u9": {"x": None}}}, {"schemas": {"u9": {"1": 7}}},
        {"schemas": {"": {}}},
        {"reading": Reading(Format("json"), None, ("value",)).text()},
        {"reading": Reading(Format("json"), None, ("value", "wood")).text()},
    ],
)  # fmt: skip
def test_what_is_no_order_of_copying_is_said(change) -> None:
    raw = json.loads(encode_order(order("avro", [Range(0, 3, 9)], SCHEMAS)))
    with pytest.raises(InvalidUsage) as refused:
        decode_order(json.dumps({**raw, "copying": {**raw["copying"], **change}}).encode())
    assert refused.value.sqlstate == "08P01"


@pytest.mark.parametrize(
    "change",
    [
        {"schemas": {"u9": {"1": "{"}}},
        {"reading": Reading(Format("wood"), None, ("value", "value")).text()},
        {"reading": Reading(Format("avro", schema="7", registry_id="u9"), None, ("value", "value")).text()},
        {"reading": Reading(Format("protobuf", schema="zz"), None, ("value", "value")).text()},
    ],
)  # fmt: skip
def test_what_nobody_can_judge_by_is_said(change) -> None:
    raw = json.loads(encode_order(order("avro", [Range(0, 3, 9)], SCHEMAS)))
    asked = decode_order(json.dumps({**raw, "copying": {**raw["copying"], **change}}).encode())
    with pytest.raises(InvalidUsage) as refused:
        judge_of(asked)
    assert refused.value.sqlstate == "08P01"


@pytest.mark.parametrize(
    "raw",
    [
        {"upper": 2}, {"upper": 10}, {"runs": [[0, 0, 1, 6]]}, {"runs": [[0, 0, 1, 0]]}, {"runs": [[0, 1, 1, 2]]},
        {"runs": [[-1, 0, 1, 2]]}, {"runs": [[0, 0, 1]]}, {"runs": [[0, 0, 1, True]]}, {"runs": [[0, "0", 1, 2]]},
        {"runs": [[0, 0, 5, 1], [0, 4, 6, 1]]}, {"runs": [[0, 0, 1, 1]] * 2}, {"runs": 7}, {"runs": [7]},
        {"runs": [[0, 0, 1 << 63, 2]]}, {"runs": [[1, n, n + 1, 1] for n in range(judging.RUNS_MAX + 1)]},
    ],
)  # fmt: skip
def test_nobody_can_say_so_of_rows(raw) -> None:
    asked = order("json", [Range(0, 3, 9)], {})
    said = {"upper": 9, "good": 5, "bad": [], "runs": [], **raw}
    with pytest.raises(ValueError):
        decode_verdict(asked, Range(0, 3, 9), json.dumps(said).encode())
    decode_verdict(asked, Range(0, 3, 9), json.dumps({**said, "upper": 9, "runs": [[0, 0, 1, 2]]}).encode())


def test_runs_are_of_whom_was_asked_and_of_nobody_else() -> None:
    asked = order("json", [Range(0, 3, 9)], {})
    body = encode_verdict(Verdict(9, 5, (), (Run("other", 1, 2, 4, "b", 5),)))
    assert decode_verdict(asked, Range(0, 3, 9), body).runs == (Run("e.data.u1", 1, 2, 4, "a/1", 5),)
    with pytest.raises(ValueError):
        decode_verdict(asked._replace(copying=None), Range(0, 3, 9), body)


def test_a_commit_binds_no_more_runs_than_it_may(monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.waves.RUNS_MAX", 3)
    ranges = [Range(0, 0, 10), Range(0, 10, 20), Range(1, 0, 10)]
    of = [(Run("e.data.u1", 0, n, n + 1, "a", 1), Run("e.data.u1", 0, n + 1, n + 2, "a", 1)) for n in (0, 2, 4)]
    verdicts = [Verdict(10, 2, (), of[0]), Verdict(20, 2, (), of[1]), Verdict(10, 1, (), of[2][:1])]
    found = taken("clicks", {0: 0, 1: 0}, ranges, verdicts, "pin")
    assert found.positions == {0: 10, 1: 10} and found.written == (*of[0], *of[2][:1])
