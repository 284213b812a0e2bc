"""Sinks on a real broker: what a consumer of committed records makes of their topics, whatever dies meanwhile."""

from __future__ import annotations

import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import fastavro
import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from catalog_log import model, records
from catalog_log.log import CatalogLog
from catalog_log.objects import Column, Connection, MaterializedView, Sink, Table, numbered
from catalog_log.objects.sink import Registering
from collection.binding import Inline
from collection.columns import DIFF, table_from_rows
from collection.outside import kafka_settings
from collection.rows import encode as encode_rows
from collection.writer import CollectionWriter
from controllers.storage import sink_topic, sinks
from controllers.storage.sink import Sink as RunningSink
from journal import clients
from journal.clients import common_settings
from journal.timestamps import TABLE as TIMELINE
from oracle.checkpoints import CheckpointPolicy
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from oracle.views_records import ViewCommit
from tests.objects import made
from tests.registry import SchemaRegistry
from tests.storage.test_storage_controller import World, eventually

pytestmark = pytest.mark.integration

COLUMNS = numbered((Column("id", "int4", False), Column("name", "text")))
TABLE = Table("u1", "s1", "t", "", COLUMNS)


@pytest.fixture
def world(broker: str, env_name: str) -> Iterator[World]:
    found = World(broker, env_name)
    found.oracle.raise_format().result()
    try:
        yield found
    finally:
        found.close()


def sink(world: World, name: str, envelope: str, key: tuple[int, ...] = (1,), **more: object) -> Sink:
    return Sink(name, "s1", name, "", **{
        "relation_id": "u1", "topic": world.topic(name), "progress_topic": world.topic(f"{name}-progress"),
        "columns": ((1, "id"), (2, "Name")), "key": key, "envelope": envelope, **more,
    })  # fmt: skip


def change(world: World, *rows: tuple[int | None, str | None, int]) -> int:
    """Rows that come and go at one timestamp."""
    columns = tuple([replace(each, nullable=True) for each in COLUMNS])
    table = table_from_rows(columns, [row[:2] for row in rows])
    table = table.append_column(DIFF, [[row[2] for row in rows]])
    [batch] = encode_rows(columns, table, "a")
    inline = (Inline("u1", batch.value, "a", batch.rows),)
    return world.oracle.commit(CommitPart(f"p{random.random()}", inline=inline)).result()


def read(world: World, topic: str) -> list[tuple[bytes | None, dict | None, int, int]]:
    """``(key, value, timestamp, partition)`` of every record of a topic, in the order of their partitions and
    offsets."""
    return [(key, value and json.loads(value), ts, partition) for key, value, ts, partition in raw(world, topic)]


def raw(world: World, topic: str) -> list[tuple[bytes | None, bytes | None, int, int]]:
    """The same as bytes."""
    found = []
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    with closing(clients.make_consumer(world.bootstrap, **settings)) as consumer:
        partitions = sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        ended = set()
        while len(ended) < len(partitions):
            first = consumer.poll(1)
            for message in () if first is None else (first, *consumer.consume(10_000, 0)):
                if message.error() is not None:
                    ended.add(message.partition())
                    continue
                headers = dict(message.headers() or [])
                ts = int(headers.get("tidemark-timestamp", b"-1"))
                found.append((message.key(), message.value(), ts, message.partition()))
    return sorted(found, key=lambda each: each[3])


def noted(world: World, each: Sink) -> int:
    """How far its topic is complete, as a consumer is told."""
    return max([value["timestamp"] for key, value, *_ in read(world, each.progress_topic)
                if isinstance(value, dict) and b"claim" not in key], default=-1)  # fmt: skip


def folded(world: World, each: Sink) -> Counter:
    """The rows that a consumer has."""
    messages = read(world, each.topic)
    for key in {message[0] for message in messages if message[0] is not None}:
        of_key = [(ts, partition) for k, _, ts, partition in messages if k == key]
        assert of_key == sorted(of_key) and len({partition for _, partition in of_key}) == 1, "in order"
    rows: Counter = Counter()
    newest: dict = {}
    for key, value, *_ in messages:
        if each.envelope == "upsert":
            newest[key] = value
        elif each.envelope == "none":
            rows[json.dumps(value)] += 1
        else:
            for side, diff in (("before", -1), ("after", 1)):
                if value[side] is not None:
                    rows[json.dumps(value[side])] += diff
    if each.envelope == "upsert":
        return Counter(json.dumps(value) for value in newest.values() if value is not None)
    assert all(count >= 0 for count in rows.values())
    return +rows


def row(number: int, name: str | None) -> str:
    return json.dumps({"id": number, "Name": name})


def status(controller, name: str) -> dict:
    [found] = [each for each in controller.status()["sinks"] if each["id"] == name]
    return found


def written(controller, name: str, ts: int) -> bool:
    """Whether it says that all through ``ts`` is in the topic."""
    return (status(controller, name)["through"] or 0) >= ts


def test_each_envelope_says_what_the_table_becomes(world: World) -> None:
    upsert = sink(world, "u2", "upsert", partitions=3)
    pairs = sink(world, "u3", "debezium")
    only, keyless = sink(world, "u4", "none", ()), sink(world, "u5", "debezium", ())
    every = (upsert, pairs, only, keyless)
    first = change(world, (1, "a", 1), (2, None, 1))
    world.tell(TABLE, *every)
    controller = world.start()
    eventually(lambda: all(written(controller, each.id, first) for each in every))
    begun = Counter([row(1, "a"), row(2, None)])
    assert [folded(world, each) for each in every] == [begun] * 4
    assert {value["op"] for _, value, *_ in read(world, pairs.topic)} == {"r"}
    assert len({partition for *_, partition in read(world, upsert.topic)} | {0, 1, 2}) == 3

    third = change(world, (3, "c", 1))
    eventually(lambda: written(controller, "u4", third))
    assert folded(world, only) == begun + Counter([row(3, "c")])
    last = change(world, (1, "a", -1), (1, "b", 1), (2, None, -1))
    eventually(lambda: all(written(controller, each.id, last) for each in (upsert, pairs, keyless)))
    left = Counter([row(1, "b"), row(3, "c")])
    assert [folded(world, each) for each in (upsert, pairs, keyless)] == [left] * 3
    assert {(key, json.dumps(value)) for key, value, ts, _ in read(world, upsert.topic) if ts == last} == {
        (b'{"id":1}', row(1, "b")), (b'{"id":2}', "null")}  # fmt: skip
    assert [v["op"] for _, v, ts, _ in read(world, pairs.topic) if ts == last] == ["u", "d"]
    assert [v["op"] for _, v, ts, _ in read(world, keyless.topic) if ts == last] == ["d", "d", "c"]

    failed = eventually(lambda: (found := status(controller, "u4"))["state"] == "failed" and found)
    assert failed["error"].startswith(f"a row went at {last}, which ENVELOPE NONE has no message for")
    told = status(controller, "u2")
    assert (told["state"], told["error"], told["messages"], told["errors"]) == ("running", None, 5, 0)
    assert told["bytes"] > 0 and told["transactions"] >= 3 and told["through"] >= last
    # An idle one goes on telling how far it is complete, and one that is dropped writes no more.
    eventually(lambda: status(controller, "u2")["transactions"] > told["transactions"])
    assert noted(world, upsert) > last
    world.tell("u2", "u3", "u4", "u5")
    eventually(lambda: controller.status()["sinks"] == [])


def test_two_rows_of_a_key_end_that_sink_alone(world: World) -> None:
    wrong, right = sink(world, "u2", "upsert"), sink(world, "u3", "debezium")
    taken = sink(world, "u4", "none", topic=world.names.data("u1"))
    first = change(world, (1, "a", 1))
    world.tell(TABLE, wrong, right, taken)
    controller = world.start()
    eventually(lambda: written(controller, "u2", first))
    twice = change(world, (1, "b", 1))
    later = change(world, (1, "b", -1))
    eventually(lambda: written(controller, "u3", later))
    found = eventually(lambda: (found := status(controller, "u2"))["state"] == "failed" and found)
    assert found["error"] == f'two rows have the key {{"id":1}} at {twice}, and ENVELOPE UPSERT has one of each'
    assert folded(world, wrong) == folded(world, right) == Counter([row(1, "a")])
    assert status(controller, "u4")["error"] == f"topic {taken.topic} is Tidemark's own"


def test_a_target_that_is_away_delays_its_sink_alone_and_what_it_needs_is_kept(world: World, monkeypatch) -> None:
    connection = Connection("u9", "s1", "far", "", to="kafka", options=(
        ("broker", world.bootstrap), ("security protocol", "PLAINTEXT")))  # fmt: skip
    away = threading.Event()
    monkeypatch.setattr(sinks, "kafka_settings", lambda said: kafka_settings(
        {**said, "broker": "127.0.0.1:1"} if away.is_set() else said))  # fmt: skip
    monkeypatch.setattr(sink_topic, "ANSWER_S", 1.0)
    monkeypatch.setattr("controllers.storage.sink.BACKOFF_MAX_S", 0.5)
    with closing(CatalogLog.open(world.bootstrap, world.names, "test")) as catalog:
        upper = catalog.upper()
        catalog.compare_and_append(upper, upper + 1, [records.put(model.ITEMS, "u9", connection)]).result()
    far, near = sink(world, "u2", "upsert", connection_id="u9"), sink(world, "u3", "upsert")
    first = change(world, (1, "a", 1))
    world.tell(TABLE, far, near)
    controller = world.start(policy=CheckpointPolicy(retain_ms=0))
    eventually(lambda: written(controller, "u2", first) and written(controller, "u3", first))
    assert folded(world, far) == Counter([row(1, "a")])
    away.set()
    genesis = controller._catalog.image.genesis
    other = sink_topic.SinkTopic(far, genesis.topic_id, lambda: common_settings(world.bootstrap), lambda: False)
    with closing(other) as topic:
        assert topic.claim() >= first, "which shuts it out"
    stamps = [change(world, (1, "abcd"[n], -1), (1, "abcd"[n + 1], 1)) for n in range(3)]
    eventually(lambda: written(controller, "u3", stamps[-1]))
    eventually(lambda: "do not answer" in (status(controller, "u2")["error"] or ""))
    assert status(controller, "u2")["state"] == "failed" and status(controller, "u2")["lag_ms"] > 0
    policy = controller._sinks.holding(CheckpointPolicy(retain_ms=0))
    # A checkpoint waits for the catalog first, and time passes.
    world.oracle.advance(TIMELINE, world.oracle.state.last_ts + 60_000).result()
    world.oracle.checkpoint(policy)
    assert world.oracle.state.since < stamps[0], "what it has not written is still told apart"
    away.clear()
    eventually(lambda: written(controller, "u2", stamps[-1]))
    assert [(v["Name"], ts) for _, v, ts, _ in read(world, far.topic)][1:] == [*zip("bcd", stamps, strict=True)]
    monkeypatch.setattr(sinks, "HELD_MS_MAX", 0)
    last_ts = world.oracle.state.last_ts
    assert controller._sinks.holding(CheckpointPolicy(retain_ms=5)).since(last_ts) == last_ts - 5, "not for ever"


def test_a_view_is_written_as_its_cluster_commits_it(world: World) -> None:
    view = MaterializedView("u6", "s1", "v", "", COLUMNS, query=made("view", "x", on=("u1",), defined=True).query,
                            cluster_id="default")  # fmt: skip
    each = sink(world, "u2", "debezium", relation_id="u6")
    views = ViewsLog.open(world.bootstrap, world.names, "test")
    writer = CollectionWriter(world.bootstrap, world.names)
    try:
        ts = change(world, (1, "a", 1))
        world.tell(TABLE, view, each)
        controller = world.start()
        eventually(lambda: status(controller, "u2")["error"] == "materialized view v is not complete yet")
        epoch = views.claim("default").result()
        runs = writer.write("u6", COLUMNS, table_from_rows(COLUMNS, [(1, "a")]), "w").result()
        views.commit("default", epoch, ts, [ViewCommit("u6", 0, tuple(runs), None)]).result()
        eventually(lambda: written(controller, "u2", ts))
        assert folded(world, each) == Counter([row(1, "a")])
        broken = change(world, (2, "b", 1))
        views.commit("default", epoch, broken, [ViewCommit("u6", ts + 1, (), "division by zero")]).result()
        eventually(lambda: status(controller, "u2")["error"] == "division by zero")
        assert status(controller, "u2")["state"] == "waiting" and noted(world, each) < broken
    finally:
        writer.close()
        views.close()


def read_avro(world: World, registry: SchemaRegistry, topic: str) -> list[tuple[object, object, int]]:
    """``(key, value, timestamp)`` as Confluent's deserializer has them: by the schema whose id they begin with."""
    def value(data: bytes | None) -> object:
        if data is None:
            return None
        assert data[:1] == b"\0"
        schema = fastavro.parse_schema(json.loads(registry.schemas[int.from_bytes(data[1:5], "big")]["schema"]))
        return fastavro.schemaless_reader(io.BytesIO(data[5:]), schema)

    return [(value(key), value(data), ts) for key, data, ts, _ in raw(world, topic)]


def test_avro_is_written_by_schemas_that_a_registry_has(world: World, monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.sink.BACKOFF_MAX_S", 0.5)
    with closing(SchemaRegistry()) as registry:
        options = (("url", registry.url),)
        connection = Connection("u9", "s1", "sr", "", to="confluent-schema-registry", options=options)
        with closing(CatalogLog.open(world.bootstrap, world.names, "test")) as catalog:
            upper = catalog.upper()
            catalog.compare_and_append(upper, upper + 1, [records.put(model.ITEMS, "u9", connection)]).result()
        registering = Registering("u9", value_name="a.V", value_compatibility="FULL", nullable=(2,))
        upsert = sink(world, "u2", "upsert", format="avro", registering=registering)
        pairs = sink(world, "u3", "debezium", format="avro", registering=Registering("u9", nullable=(2,)))
        registry.away = True
        first = change(world, (1, "a", 1), (2, None, 1))
        world.tell(TABLE, upsert, pairs)
        controller = world.start()
        # Without its registry nothing is written, and it is asked again.
        eventually(lambda: 'nobody answers where "sr" is to' in (status(controller, "u2")["error"] or ""))
        registry.away = False
        eventually(lambda: all(written(controller, each, first) for each in ("u2", "u3")))
        begun = [(key, value) for key, value, _ in read_avro(world, registry, upsert.topic)]
        assert begun == [({"id": 1}, {"id": 1, "Name": "a"}), ({"id": 2}, {"id": 2, "Name": None})]
        assert sorted(registry.subjects) == sorted(f"{each.topic}-{part}" for each in (upsert, pairs)
                                                   for part in ("key", "value"))  # fmt: skip
        assert registry.levels == {f"{upsert.topic}-value": "FULL"}

        last = change(world, (1, "a", -1), (1, "b", 1), (2, None, -1))
        eventually(lambda: all(written(controller, each, last) for each in ("u2", "u3")))
        assert [each for each in read_avro(world, registry, upsert.topic) if each[2] == last] == [
            ({"id": 1}, {"id": 1, "Name": "b"}, last), ({"id": 2}, None, last)]  # fmt: skip
        assert [value for _, value, ts in read_avro(world, registry, pairs.topic) if ts == last] == [
            {"before": {"id": 1, "Name": "a"}, "after": {"id": 1, "Name": "b"}, "op": "u", "ts_ms": last},
            {"before": {"id": 2, "Name": None}, "after": None, "op": "d", "ts_ms": last}]  # fmt: skip
        world.stop()

        # A process that begins finds its schemas there; what a registry does not take is said, and tried again.
        versions = {subject: list(numbers) for subject, numbers in registry.subjects.items()}
        subject = f"{world.topic('u4')}-value"
        registry.register(subject, {"type": "record", "name": "other", "fields": [{"name": "x", "type": "int"}]})
        other = sink(world, "u4", "none", (), format="avro", registering=Registering("u9", nullable=(2,)))
        world.tell(other)
        controller = world.start()
        eventually(lambda: "incompatible" in (status(controller, "u4")["error"] or ""))
        assert status(controller, "u4")["state"] == "failed" and subject in status(controller, "u4")["error"]
        third = change(world, (3, "c", 1))
        eventually(lambda: written(controller, "u2", third))
        assert {each: registry.subjects[each] for each in versions} == versions
        registry.levels[subject] = "NONE"
        eventually(lambda: written(controller, "u4", third))
        assert sorted(value["id"] for _, value, _ in read_avro(world, registry, other.topic)) == [1, 3]
        # A column that became nullable is so in a new version; of the key it cannot be.
        fourth = change(world, (None, "d", 1))
        eventually(lambda: written(controller, "u4", fourth))
        assert read_avro(world, registry, other.topic)[-1] == (None, {"id": None, "Name": "d"}, fourth)
        assert len(registry.subjects[subject]) == 3
        eventually(lambda: "of its key has become NULL" in (status(controller, "u3")["error"] or ""))


def process(world: World) -> subprocess.Popen:
    child = subprocess.Popen(
        [sys.executable, "-m", "controllers.storage", "--kafka", world.bootstrap, "--env", world.env],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TIDEMARK_PARENT_PIPE": "1", "TIDEMARK_LOG": "error"},
    )  # fmt: skip
    assert select.select([child.stdout], [], [], 60)[0] and "ready" in child.stdout.readline()
    return child


def drawn_changes(draw: random.Random, there: dict[int, str]) -> list[tuple[int, str, int]]:
    """Of three of twenty keys another name, or none; ``there`` are the rows, which are so afterwards."""
    changes = []
    for number in draw.sample(range(20), 3):
        before, after = there.pop(number, None), draw.choice(["x", "y", "z", None])
        if before == after:
            there.update({} if before is None else {number: before})
            continue
        changes += [] if before is None else [(number, before, -1)]
        if after is not None:
            there[number] = after
            changes.append((number, after, 1))
    return changes


@pytest.mark.long
def test_killed_again_and_again_each_change_is_there_once(world: World) -> None:
    draw = random.Random(7)
    every = sink(world, "u2", "upsert", partitions=2), sink(world, "u3", "debezium")
    world.tell(TABLE, *every)
    there: dict[int, str] = {}

    def write(count: int) -> int:
        for _ in range(count):
            changes = drawn_changes(draw, there)
            last = change(world, *changes) if changes else 0
        return last

    write(5)
    for killed in range(3):
        child = process(world)
        before = [noted(world, each) for each in every]
        write(10)
        if killed:  # the first may die before anything is there
            eventually(lambda was=before: all(noted(world, each) > at for each, at in zip(every, was, strict=True)))
            write(10 * killed)
        child.send_signal(signal.SIGKILL)
        child.wait()
    last = world.oracle.barrier().result().last_ts
    child = process(world)
    eventually(lambda: all(noted(world, each) >= last for each in every))
    child.stdin.close()
    assert child.wait(30) == 0
    left = Counter(row(number, name) for number, name in there.items())
    assert [folded(world, each) for each in every] == [left, left]
    for each in every:
        seen = Counter((key, ts) for key, _, ts, _ in read(world, each.topic))
        assert max(seen.values()) == 1, "of one key one message a timestamp"


def test_the_sink_begins_where_it_was_though_another_one_wrote_meanwhile(world: World) -> None:
    """Two controllers: each shuts the other out, and nothing is there twice."""
    each = sink(world, "u2", "upsert")
    world.tell(TABLE, each)
    one, two = world.start(), world.start()
    for number in range(10):
        last = change(world, (number, "a", 1))
        eventually(lambda at=last: noted(world, each) >= at)
    assert [value["id"] for _, value, *_ in read(world, each.topic)] == list(range(10))
    assert {type(s) for c in (one, two) for s in c._sinks._sinks.values()} == {RunningSink}
