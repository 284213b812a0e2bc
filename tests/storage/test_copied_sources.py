"""Sources that are copied, on a real broker that takes in whom it knows, with a registry: trouble, restarts, kills."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewPartitions

from catalog_log import model, records
from catalog_log.log import CatalogLog
from catalog_log.objects import ERRORS_COLUMNS, Column, Connection, Errors, Item, Secret, Source
from catalog_log.objects.reading import Format, Reading
from collection.reader import RunReader
from journal import clients
from segments.store import open_store
from tests.protobuf import file, protobuf, sent
from tests.registry import SchemaRegistry
from tests.seeds import seed_of_commit
from tests.storage.test_storage_controller import World, eventually, state_of
from tests.storage.test_storage_process import end, start

pytestmark = pytest.mark.integration

PERSON = {"type": "record", "name": "person", "fields": [
    {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None},
]}  # fmt: skip
OLDER = {"type": "record", "name": "person", "fields": [{"name": "id", "type": "int"}]}
KEY = {"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}


class Copying(World):
    """A world with connections in its catalog."""

    def connect(self, *connections: Connection) -> None:
        catalog = CatalogLog.open(self.bootstrap, self.names, "test")
        puts = [records.put(model.ITEMS, each.id, each) for each in connections]
        catalog.compare_and_append(catalog.upper(), catalog.upper() + 1000, puts).result()
        catalog.close()

    def copied(self, topic: str, columns: tuple[Column, ...], reading: Reading, envelope: str = "none") -> Source:
        """``u1``, and its errors ``u2``, of which the controller is told."""
        errors = Errors("u2", "s1", "s_errors", "", ERRORS_COLUMNS, source_id="u1")
        columns = tuple(replace(each, id=n) for n, each in enumerate(columns, 1))
        source = Source("u1", "s1", "s", "", columns, topic=self.topic(topic), format=reading.value.kind,
                        envelope=envelope, errors_id=errors.id, reading=reading)  # fmt: skip
        self.tell(source, errors)
        return source

    def send(self, topic: str, *records: tuple, partition: int = 0) -> None:
        """``(key, value)``, with headers behind them if there are any."""
        failed = []
        for key, value, *headers in records:
            self.producer.produce(self.topic(topic), value, key, partition=partition, headers=headers,
                                  on_delivery=lambda e, _m: failed.append(e) if e else None)  # fmt: skip
        assert self.producer.flush(30) == 0 and not failed

    def contents(self, source: Source, ts: int | None = None) -> dict[tuple, int]:
        """Each row with how often it is there, at ``ts`` or now."""
        return sums(row for row in self.changes(source) if ts is None or row[0] <= ts)

    def changes(self, source: Source) -> list[tuple]:
        """``(timestamp, row, diff)`` of all that was ever bound."""
        state = self.oracle.barrier().result()
        reader = RunReader(self.bootstrap)
        try:
            return [
                (ts, tuple(row), diff)
                for table, stamps in reader.bound_chunks(state.bindings(source.id).at(state.last_ts), source.stored)
                for ts, (*row, diff) in zip(
                    stamps.to_pylist(), zip(*(c.to_pylist() for c in table.columns), strict=True), strict=True
                )
            ]
        finally:
            reader.close()

    def taken(self, source: Item) -> int:
        """Records that were judged, of all partitions."""
        return sum(self.oracle.barrier().result().bindings(source.progress_id).ends().values())


def sums(changes) -> dict[tuple, int]:
    found: dict[tuple, int] = {}
    for _, row, diff in changes:
        found[row] = found.get(row, 0) + diff
    return {row: count for row, count in found.items() if count}


@contextmanager
def copying(broker: str, env_name: str) -> Iterator[Copying]:
    """One that is stopped and closed at the end."""
    made = Copying(broker, env_name)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def world(broker: str, env_name: str) -> Iterator[Copying]:
    with copying(broker, env_name) as made:
        yield made


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    made = SchemaRegistry()
    yield made
    made.close()


def sasl(address: str, secret: str) -> Connection:
    return Connection("u8", "s1", "k", "", to="kafka", options=(
        ("broker", address), ("security protocol", "SASL_PLAINTEXT"), ("sasl mechanisms", "PLAIN"),
        ("sasl username", "me"), ("sasl password", Secret("env", secret)),
    ))  # fmt: skip


def of_registry(registry: SchemaRegistry) -> Connection:
    return Connection("u9", "s1", "r", "", to="confluent-schema-registry", options=(("url", registry.url),))


def test_a_topic_elsewhere_is_copied_as_whom_its_connection_says(world: Copying, both_doors, monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.source.METADATA_TIMEOUT_S", 1.0)
    monkeypatch.setattr("controllers.storage.source.LOOK_AGAIN_S", 0.3)
    monkeypatch.setattr("controllers.storage.source_thread.BACKOFF_MAX_S", 0.5)
    monkeypatch.setenv("TIDEMARK_SECRET_KAFKA", "hunter3")
    world.connect(sasl(both_doors[1], "TIDEMARK_SECRET_KAFKA"))
    world.make_topic("lines", 2)
    world.send("lines", (b"a", b"zero"), (b"b", b"one", ("h", b"1")), (b"c", b"\xff"))
    reading = Reading(Format("text"), Format("text"), ("key", "value", "partition", "offset", "headers"), "u8", (1, 0))
    columns = (Column("key", "text"), Column("text", "text", False), Column("partition", "int4", False),
               Column("offset", "int8", False), Column("headers", "jsonb", False))  # fmt: skip
    source = world.copied("lines", columns, reading)
    controller = world.start()
    refused = eventually(lambda: state_of(controller, "u1")[1])
    assert state_of(controller, "u1")[0] == "failed" and refused == 'what "k" is to does not take us in'
    monkeypatch.setenv("TIDEMARK_SECRET_KAFKA", "hunter2")  # a secret is what is in its place now
    eventually(lambda: world.taken(source) == 3)
    assert world.contents(source) == {("b", "one", 0, 1, '[{"key": "h", "value": "1"}]'): 1}, "from START OFFSET on"
    assert [row[:1] + row[3:] for row in world.errors(replace_id(source, "u2"))] == [("not UTF-8", 0, 2)]
    world.admin.create_partitions([NewPartitions(source.topic, 3)])[source.topic].result()
    eventually(lambda: 2 in world.admin.list_topics(source.topic, timeout=5).topics[source.topic].partitions)
    world.producer = clients.make_producer(world.bootstrap)
    world.send("lines", (None, b"late"), partition=2)
    eventually(lambda: world.taken(source) == 4)
    (status,) = controller.status()["sources"]
    eventually(lambda: state_of(controller, "u1") == ("running", None))
    assert (None, "late", 2, 0, "[]") in world.contents(source)
    assert world.topics() == {"u1", "u2"}
    world.tell("u1", "u2")
    eventually(lambda: not world.topics())
    progress = source.progress_id
    eventually(lambda: progress not in world.oracle.barrier().result().bound or not controller.status()["sources"])


def replace_id(source: Source, item_id: str) -> Errors:
    return Errors(item_id, "s1", "s_errors", "", ERRORS_COLUMNS, source_id=source.id)


def test_avro_by_a_registry_that_goes_and_comes(world: Copying, registry, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.source_thread.BACKOFF_MAX_S", 0.3)
    world.connect(of_registry(registry))
    world.make_topic("people", 2)
    keys, values, older = (registry.register(s, v) for s, v in
                           (("people-key", KEY), ("people-value", PERSON), ("people-value", OLDER)))  # fmt: skip

    def said(number: int, name: str | None | bool, by: int = values) -> tuple[bytes, bytes | None]:
        value = None if name is False else registry.encode(by, {"id": number, "name": name})
        return registry.encode(keys, {"id": number}), value

    begun = said(1, "a"), said(2, "b"), said(1, "c"), (b"", b""), said(7, "x", older), (None, b"x")
    world.send("people", *begun)
    unknown = said(4, None)[0], b"\0\0\0\0\x63x"
    world.send("people", said(3, "d"), unknown, said(5, "e"), said(5, False), partition=1)
    both = Format("avro", schema=json.dumps(KEY), registry_id="u9"), Format("avro", schema=json.dumps(PERSON),
                                                                           registry_id="u9")  # fmt: skip
    columns = (Column("id", "int8", False), Column("name", "text"))
    registry.away = True
    source = world.copied("people", columns, Reading(both[1], both[0], ("both", "value")), "upsert")
    store = open_store(f"file://{tmp_path}/store", world.env)
    controller = world.start(store=store, seal_rows=1 << 30)
    assert eventually(lambda: state_of(controller, "u1")[1]) == 'nobody answers where "r" is to'
    assert world.taken(source) == 0, "what nobody could judge is not lost"
    registry.away = False
    eventually(lambda: world.taken(source) == 10)
    assert world.contents(source) == {(1, "c"): 1, (2, "b"): 1, (3, "d"): 1, (7, None): 1}
    errors = world.errors(replace_id(source, "u2"))
    assert [(row[3], row[4]) for row in errors] == [(0, 3), (0, 5), (1, 1)]
    assert errors[1][0] == "the record has no key" and "no Avro schema 99" in errors[2][0]
    world.stop()  # and what keys were is made of the rows
    world.send("people", said(1, "z"), said(2, False), said(2, False), said(9, "new"))
    controller = world.start(store=store, seal_rows=1 << 30)
    eventually(lambda: world.taken(source) == 14)
    now = {(1, "z"): 1, (3, "d"): 1, (7, None): 1, (9, "new"): 1}
    assert world.contents(source) == now
    # How far it is behind is looked at after the commit that others see.
    (status,) = eventually(lambda: [each for each in controller.status()["sources"] if each["behind"] == 0])
    assert (status["good_rows"], status["bad_rows"]) == (4, 0)
    world.make_anew("people")
    world.send("people", said(1, "other"))
    _, told = eventually(lambda: (found := state_of(controller, "u1"))[0] == "failed" and found, 60)
    assert "was deleted and made anew" in told or "it lost what was read" in told  # by what was asked first
    assert world.contents(source) == now, "nothing of another topic"


def test_protobuf_is_copied_by_the_type_that_its_source_has(world: Copying) -> None:
    said = file({"K": {"id": "int64"}, "V": {"id": "int64", "name": "optional string", "tags": "repeated string"}})
    later = file({"V": {"id": "int64", "name": "optional string", "tags": "repeated string", "more": "bytes"}})
    world.make_topic("protos", 2)

    def of(number: int, text: str | None, by=said) -> tuple[bytes, bytes | None]:
        value = None if text is None else sent("p.V", f"id: {number} {text}", by)
        return sent("p.K", f"id: {number}", said), value

    begun = of(1, "name: 'a'"), of(2, "tags: 'x' tags: 'y'"), of(1, "name: 'c'"), of(3, ""), of(3, None)
    world.send("protos", *begun, (of(4, "")[0], b"\xff"), (None, of(4, "")[1]), (of(4, "")[0], of(5, "")[1]))
    world.send("protos", of(0, "more: 'new'", later), partition=1)
    columns = (Column("id", "int8", False), Column("name", "text"), Column("tags", "jsonb", False))
    reading = Reading(protobuf("p.V", said), protobuf("p.K", said), ("both", "value", "value"))
    source = world.copied("protos", columns, reading, "upsert")
    controller = world.start()
    eventually(lambda: world.taken(source) == 9)
    assert world.contents(source) == {(0, None, "[]"): 1, (1, "c", "[]"): 1, (2, None, '["x", "y"]'): 1}
    errors = world.errors(replace_id(source, "u2"))
    assert [(row[3], row[4]) for row in errors] == [(0, 5), (0, 6), (0, 7)]
    assert errors[0][0].startswith("not a message of its type") and errors[1][0] == "the record has no key"
    world.stop()  # and what keys were is made of the rows
    world.send("protos", of(1, None), of(2, "name: 'z'"))
    controller = world.start()
    eventually(lambda: world.taken(source) == 11)
    assert world.contents(source) == {(0, None, "[]"): 1, (2, "z", "[]"): 1}
    (status,) = eventually(lambda: [each for each in controller.status()["sources"] if each["behind"] == 0])
    assert (status["good_rows"], status["bad_rows"]) == (2, 0)


def test_killed_again_and_again_each_key_is_what_it_was_told_last(world: Copying) -> None:
    rng = random.Random(seed_of_commit())
    world.make_topic("told", 2)
    reading = Reading(Format("json"), Format("text"), ("key", "value"))
    columns = (Column("key", "text", False), Column("n", "int8"))
    source = world.copied("told", columns, reading, "upsert")
    model: dict[str, int] = {}
    sent = 0
    child = start(world.bootstrap, world.env)
    try:
        for round_ in range(3):
            for partition in (0, 1):
                told = []
                for _ in range(300):
                    key, n = f"{partition}-{rng.randrange(30)}", rng.randrange(1000)
                    if rng.random() < 0.3:
                        model.pop(key, None)
                        told.append((key.encode(), None))
                    else:
                        model[key] = n
                        told.append((key.encode(), json.dumps({"n": n}).encode()))
                    sent += 1
                world.send("told", *told, partition=partition)
            if round_ < 2:
                wanted = sent - rng.randrange(1, 500)
                eventually(lambda wanted=wanted: world.taken(source) >= wanted, 120)
                child.send_signal(signal.SIGKILL)
                child.wait()
                child = start(world.bootstrap, world.env)
        eventually(lambda: world.taken(source) == sent, 120)
    finally:
        end(child)
    assert world.contents(source) == {(key, n): 1 for key, n in model.items()}
    changes = world.changes(source)
    for ts in sorted({ts for ts, _, _ in changes}):
        rows = sums(each for each in changes if each[0] <= ts)
        assert set(rows.values()) <= {1} and len({key for key, _ in rows}) == len(rows), "one row a key at all times"
