"""The storage controller on a real broker: topics, sources, trouble, crashes, restarts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow.flight as flight
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from catalog_log import log as catalog_log_module
from catalog_log import model, records
from catalog_log.bootstrap import NEXT_ITEM_ID, create_environment
from catalog_log.log import CatalogLog
from catalog_log.objects import ERRORS_COLUMNS, MATERIALIZED_VIEW, Column, Errors, Item, Source, Table
from collection.binding import Binding, Inline
from collection.columns import table_from_rows
from collection.reader import JSON, RunReader
from collection.rows import encode as encode_rows
from collection.writer import CollectionWriter
from controllers import commands_log
from controllers.at_work import open_at_work
from controllers.command_topic import open_command_topic
from controllers.commands import STORAGE, Command, Kind
from controllers.commands_log import encode
from controllers.node_status import act
from controllers.storage import mover
from controllers.storage.controller import StorageController
from journal import clients
from journal.checkpoint import CheckpointStore
from journal.errors import Rejected
from journal.names import TopicNames
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle
from oracle.model import CommitPart
from tests.journal.muted import Makes
from tests.objects import made
from tests.runs import read_runs

pytestmark = pytest.mark.integration

COLUMNS = (Column("id", "int4", False), Column("t", "text"))


def eventually(look: Callable[[], object], timeout_s: float = 40) -> object:
    """What ``look`` gives once it is true."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


class World:
    """An environment, its command log, users' topics, and controllers that live and die."""

    def __init__(self, bootstrap: str, env: str) -> None:
        self.bootstrap, self.env = bootstrap, env
        self.names = TopicNames(env)
        create_environment(bootstrap, self.names)
        catalog = CatalogLog.open(bootstrap, self.names, "test")
        allocated = records.put(model.SETTINGS, NEXT_ITEM_ID, model.Setting("100"))
        catalog.compare_and_append(catalog.upper(), catalog.upper() + 1, [allocated]).result()
        catalog.close()
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.producer = clients.make_producer(bootstrap)
        self.commands = open_command_topic(bootstrap, self.names, STORAGE)
        self.oracle = Oracle.open(bootstrap, self.names, "test", lambda: 0)
        self.frontier = 0
        self.running: list[tuple[threading.Thread, threading.Event, StorageController]] = []

    def tell(self, *changes: Item | str) -> None:
        """One catalog timestamp's commands."""
        ts = self.frontier + 9
        sent = [
            Command(ts, n, Kind.DROP, c, None, None, self.frontier) if isinstance(c, str)
            else Command(ts, n, Kind.CREATE, c.id, c, None, self.frontier)
            for n, c in enumerate(changes)
        ]  # fmt: skip
        sent.append(
            Command(ts, len(changes), Kind.ADVANCE_CATALOG_FRONTIER, frontier=ts + 1, lower=self.frontier)
        )  # fmt: skip
        for command in sent:
            self.commands.append(encode(command)).result()
        self.frontier = ts + 1

    def source(self, object_id: str, topic: str) -> tuple[Item, Item]:
        """A source and its errors collection ``<id>0``."""
        topic = self.topic(topic)
        errors = Errors(f"{object_id}0", "s1", f"{object_id}_errors", "", ERRORS_COLUMNS, source_id=object_id)
        return Source(object_id, "s1", object_id, "", COLUMNS, topic=topic, format="json", envelope="none",
                      errors_id=errors.id), errors  # fmt: skip

    def topic(self, name: str) -> str:
        return f"{self.env}-user-{name}"

    def make_topic(self, name: str, partitions: int = 1) -> None:
        for done in self.admin.create_topics([NewTopic(self.topic(name), partitions, 1)]).values():
            done.result()

    def make_anew(self, name: str) -> None:
        for done in self.admin.delete_topics([self.topic(name)]).values():
            done.result()
        eventually(lambda: self.topic(name) not in self.admin.list_topics(timeout=5).topics)
        self.make_topic(name)
        self.producer = clients.make_producer(self.bootstrap)  # the old one would go on counting

    def produce(self, name: str, *values: bytes | None, partition: int = 0) -> None:
        failed = []
        for value in values:
            self.producer.produce(self.topic(name), value, partition=partition,
                                  on_delivery=lambda e, _m: failed.append(e) if e else None)  # fmt: skip
        assert self.producer.flush(30) == 0
        assert not failed

    def topics(self) -> set[str]:
        """Data topics of the environment, by id."""
        prefix = self.names.data("")
        return {t[len(prefix) :] for t in self.admin.list_topics(timeout=10).topics if t.startswith(prefix)}

    def start(self, **options: object) -> StorageController:
        controller = StorageController(self.bootstrap, self.names, **options)
        stopped, ready = threading.Event(), threading.Event()
        thread = threading.Thread(target=controller.run, args=(stopped, lambda _address: ready.set()), daemon=True)
        thread.start()
        self.running.append((thread, stopped, controller))
        assert ready.wait(60)
        return controller

    def stop(self) -> None:
        for _, stopped, _ in self.running:
            stopped.set()
        for thread, _, _ in self.running:
            thread.join(60)
            assert not thread.is_alive()
        self.running.clear()

    def close(self) -> None:
        """Stop what runs, and let go of the logs."""
        self.stop()
        self.oracle.close()
        self.commands.close()

    def rows(self, source: Item) -> list[tuple]:
        state = self.oracle.barrier().result()
        runs = [b.run for b in state.bindings(source.id).at(state.last_ts)]
        table = read_runs(self.bootstrap, runs, source.columns, JSON)
        assert sum(r.rows for r in runs) == table.num_rows
        return sorted(zip(table.column("id").to_pylist(), table.column("t").to_pylist(), strict=True))

    def errors(self, errors: Item) -> list[tuple]:
        state = self.oracle.barrier().result()
        runs = [b.run for b in state.bindings(errors.id).at(state.last_ts)]
        table = read_runs(self.bootstrap, runs, errors.columns)
        return sorted(zip(*(table.column(c.name).to_pylist() for c in errors.columns), strict=True),
                      key=lambda row: row[3:])  # fmt: skip

    def bound(self, source: Item) -> int:
        """Records bound, of all partitions."""
        return sum(self.oracle.barrier().result().bindings(source.id).ends().values())


@pytest.fixture
def world(broker: str, env_name: str, request, monkeypatch) -> Iterator[World]:
    monkeypatch.setattr(records, "FORMAT_VERSION", getattr(request, "param", records.FORMAT_VERSION))
    made = World(broker, env_name)
    try:
        yield made
    finally:
        made.close()


def state_of(controller: StorageController, source_id: str) -> tuple[str, str | None]:
    (found,) = [s for s in controller.status()["sources"] if s["id"] == source_id]
    return found["state"], found["error"]


def test_rows_and_errors_are_bound_together(world: World) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks", 2)
    world.produce("clicks", b'{"id":1,"t":"a"}', b"nonsense", b'{"id":"x"}')
    world.produce("clicks", b'{"id":2}', None, partition=1)
    world.tell(source, errors)
    controller = world.start()
    eventually(lambda: world.bound(source) == 5)
    assert world.rows(source) == [(1, "a"), (2, None)]
    assert world.errors(errors) == [
        ("not valid JSON", "nonsense", source.topic, 0, 1),
        ('column "id": expected an integer, got a string', '{"id":"x"}', source.topic, 0, 2),
        ("the record has no value", None, source.topic, 1, 1),
    ]

    def counted() -> bool:
        (status,) = controller.status()["sources"]
        assert status["behind"] != 0 or status["lag_ms"] == 0
        return (
            status["good_rows"], status["bad_rows"], status["state"], status["behind"], status["ends"]
        ) == (2, 3, "running", 0, {0: 3, 1: 2})  # fmt: skip

    eventually(counted)
    state = world.oracle.state
    changed = {b.ts for i in (source, errors) for b in state.bindings(i.id).at(state.last_ts)}
    assert state.last_change(errors.id) in changed


def test_a_source_whose_consumer_lost_its_brokers_goes_on_with_another(world: World, monkeypatch) -> None:
    makes = Makes(clients.make_consumer)
    monkeypatch.setattr("controllers.storage.brokers.make_consumer", makes)
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks")
    world.produce("clicks", b'{"id":1,"t":"a"}')
    world.tell(source, errors)
    controller = world.start()
    eventually(lambda: world.bound(source) == 1)
    [consumer] = makes.made
    consumer.mute()
    world.produce("clicks", b'{"id":2,"t":"b"}')
    eventually(lambda: world.bound(source) == 2)
    assert world.rows(source) == [(1, "a"), (2, "b")]
    eventually(lambda: state_of(controller, "u1") == ("running", None))
    assert len(makes.made) == 2, "the second one hears of its broker, and is left alone"


@pytest.mark.parametrize("world", [records.INLINE_FROM - 1], indirect=True)
def test_where_old_code_may_wait_for_them_topics_follow_the_objects_and_foreign_ones_stay(world: World) -> None:
    table, view = Table("u1", "s1", "t", ""), made(MATERIALIZED_VIEW, "u2", "v")
    gone = Table("u3", "s1", "g", "")
    foreign = NewTopic(world.names.data("foreign"), 1, 1)
    for done in world.admin.create_topics([foreign, NewTopic(world.names.data("u3"), 1, 1)]).values():
        done.result()
    world.tell(gone)
    world.tell("u3", table)
    world.start()
    eventually(lambda: world.topics() == {"u1", "foreign"})
    world.tell(view)
    eventually(lambda: world.topics() == {"u1", "u2", "foreign"})
    world.tell("u1")
    eventually(lambda: world.topics() == {"u2", "foreign"})
    world.stop()
    world.tell("u2", Table("u4", "s1", "t4", ""))
    world.start()
    eventually(lambda: world.topics() == {"u4", "foreign"})


def test_a_missing_topic_is_waited_for_and_others_go_on(world: World) -> None:
    (missing, its_errors), (there, errors) = world.source("u1", "later"), world.source("u2", "now")
    world.make_topic("now")
    world.tell(missing, its_errors, there, errors)
    controller = world.start()
    world.produce("now", b'{"id":7}')
    eventually(lambda: world.bound(there) == 1)
    assert eventually(lambda: state_of(controller, "u1")[1]) == f"topic {missing.topic} does not exist yet"
    assert state_of(controller, "u1")[0] == "waiting"
    world.make_topic("later")
    world.produce("later", b'{"id":8}')
    eventually(lambda: world.bound(missing) == 1)
    assert state_of(controller, "u1") == ("running", None)


def test_a_partition_added_later_is_read_from_its_beginning(world: World, monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.source.LOOK_AGAIN_S", 0.2)
    source, errors = world.source("u1", "growing")
    world.make_topic("growing")
    world.tell(source, errors)
    world.start()
    world.produce("growing", b'{"id":1}')
    eventually(lambda: world.bound(source) == 1)
    for done in world.admin.create_partitions([NewPartitions(source.topic, 2)]).values():
        done.result()
    eventually(lambda: len(world.admin.list_topics(source.topic, timeout=5).topics[source.topic].partitions) == 2)
    world.producer = clients.make_producer(world.bootstrap)  # the old one does not know the partition for a while
    world.produce("growing", b'{"id":2}', partition=1)
    eventually(lambda: world.bound(source) == 2)
    assert [i for i, _ in world.rows(source)] == [1, 2]


def test_records_that_retention_took_before_they_were_read_stop_that_source_alone(world: World) -> None:
    (cut, cut_errors), (fine, fine_errors) = world.source("u1", "cut"), world.source("u2", "fine")
    for name in ("cut", "fine"):
        world.make_topic(name)
    world.tell(cut, cut_errors, fine, fine_errors)
    world.start()
    world.produce("cut", b'{"id":1}')
    eventually(lambda: world.bound(cut) == 1)
    world.stop()
    world.produce("cut", *[b'{"id":2}'] * 4)
    clients.delete_below(world.bootstrap, TopicPartition(cut.topic, 0, 3), 30)
    controller = world.start()
    error = eventually(lambda: state_of(controller, "u1")[1])
    assert error == (f"topic {cut.topic} partition 0 was bound up to offset 1, but kafka holds [3, 5): "
                     "its retention removed records before they were read")  # fmt: skip
    assert state_of(controller, "u1")[0] == "failed"
    (told,) = [s for s in controller.status()["sources"] if s["id"] == "u1"]
    assert told["behind"] == 4 and told["lag_ms"] > 0, "what is unread is told, though nothing goes on"
    world.produce("fine", b'{"id":9}')
    eventually(lambda: world.bound(fine) == 1)
    assert world.bound(cut) == 1


def test_a_topic_made_anew_is_another_topic_for_storage_and_for_readers(world: World, monkeypatch) -> None:
    """While its source runs, and while nothing runs; with fewer and with more records than were bound."""
    monkeypatch.setattr("controllers.storage.source.LOOK_AGAIN_S", 0.5)
    (live, live_errors), (down, down_errors) = world.source("u1", "live"), world.source("u2", "down")
    for name in ("live", "down"):
        world.make_topic(name)
        world.produce(name, b'{"id":1}', b"bad", b'{"id":2}')
    world.tell(live, live_errors, down, down_errors)
    controller = world.start()
    eventually(lambda: world.bound(live) == world.bound(down) == 3)

    world.make_anew("live")
    world.produce("live", *[b'{"id":7}'] * 9)
    error = eventually(lambda: (found := state_of(controller, "u1"))[0] == "failed" and found[1])
    world.stop()
    world.make_anew("down")
    world.produce("down", *[b'{"id":7}'] * 9)
    controller = world.start()
    for source, errors in ((live, live_errors), (down, down_errors)):
        error = eventually(lambda s=source: (found := state_of(controller, s.id))[0] == "failed" and found[1])
        assert "was deleted and made anew" in error
        assert world.bound(source) == 3, "nothing of the new topic"
        assert len(world.errors(errors)) == 1, "what is ours stays"
        with pytest.raises(Rejected, match="rows of topic .* are gone") as caught:
            world.rows(source)
        assert caught.value.sqlstate == "58P01" and "made anew" in caught.value.detail
    # ALTER SOURCE … RESET, as it comes here: another source and other errors on the same topic.
    again, again_errors = world.source("u3", "live")
    world.tell("u10", "u1", again, again_errors)
    eventually(lambda: world.bound(again) == 9)
    assert world.rows(again) == [(7, None)] * 9


def test_a_topic_that_lost_its_end_stays_failed_though_it_grows_again(world: World, monkeypatch) -> None:
    source, errors = world.source("u1", "short")
    world.make_topic("short")
    world.produce("short", *[b'{"id":1}'] * 3)
    world.tell(source, errors)
    controller = world.start()
    eventually(lambda: world.bound(source) == 3)
    (reader,) = controller._sources.values()
    ends = [(0, 2)]
    real = reader._watermarks
    monkeypatch.setattr(reader, "_watermarks", lambda *given: ends.pop() if ends else real(*given))
    reader._moved.set()  # it begins anew, as after an election
    assert "lost" in eventually(lambda: (found := state_of(controller, "u1"))[0] == "failed" and found[1])
    world.produce("short", b'{"id":2}')
    eventually(lambda: reader.begun > 2)
    assert state_of(controller, "u1")[0] == "failed"
    assert world.bound(source) == 3


def test_two_controllers_and_restarts_neither_lose_nor_double(world: World) -> None:
    source, errors = world.source("u1", "busy")
    world.make_topic("busy", 2)
    world.tell(source, errors)
    count = 0
    for round_number in range(3):
        world.start()
        if round_number == 1:
            world.start()
        for _ in range(20):
            world.produce("busy", *(b'{"id":%d}' % (count + n) for n in range(10)), partition=count % 2)
            world.produce("busy", b"bad", partition=(count + 1) % 2)
            count += 10
        world.stop()
    world.start()
    eventually(lambda: world.bound(source) == count + count // 10)
    assert [i for i, _ in world.rows(source)] == list(range(count))
    assert len(world.errors(errors)) == count // 10


def test_a_dropped_source_is_forgotten_and_the_users_topic_stays(world: World) -> None:
    source, errors = world.source("u1", "kept")
    world.make_topic("kept")
    world.tell(source, errors)
    world.start()
    world.produce("kept", b'{"id":1}', b"bad")
    eventually(lambda: world.bound(source) == 2)
    world.tell("u10", "u1")
    eventually(lambda: world.topics() == set())
    assert "u1" in world.oracle.barrier().result().bound, "somebody may have read it before its last write"
    world.oracle.checkpoint(CheckpointPolicy(retain_ms=0))  # and then nobody may any more
    eventually(lambda: not {"u1", "u10"} & set(world.oracle.barrier().result().bound))
    eventually(lambda: world.topics() == set())
    assert source.topic in world.admin.list_topics(timeout=5).topics


def test_a_source_that_is_called_otherwise_reads_on(world: World) -> None:
    source, errors = world.source("u1", "renamed")
    world.make_topic("renamed")
    world.tell(source, errors)
    controller = world.start()
    world.produce("renamed", b'{"id":1}')
    eventually(lambda: world.bound(source) == 1)
    world.tell(replace(source, name="otherwise", schema_id="s2"), replace(errors, name="otherwise_errors"))
    world.produce("renamed", b'{"id":2}')
    eventually(lambda: world.bound(source) == 2)

    def counted_on() -> bool:
        """It is the reader that it was, and began nothing anew."""
        (status,) = controller.status()["sources"]
        return (status["name"], status["state"], status["good_rows"]) == ("otherwise", "running", 2)

    eventually(counted_on)
    assert world.topics() == set()


def test_time_goes_on_and_the_oracle_is_checkpointed(world: World) -> None:
    before = world.oracle.barrier().result().last_ts
    controller = world.start(checkpoint_every=5)
    eventually(lambda: world.oracle.barrier().result().last_ts > before + 1000)
    eventually(lambda: controller._oracle._checkpoints.newest_offset > 0)


def test_its_status_is_served(world: World) -> None:
    world.start()
    catalog = CatalogLog.open(world.bootstrap, world.names, "test")
    node = catalog.image.get(model.NODES, "storage/")
    catalog.close()
    client = flight.FlightClient(node.address)
    (result,) = client.do_action(flight.Action("status", b""))
    assert json.loads(result.body.to_pybytes())["incarnation"] == node.incarnation
    with pytest.raises(flight.FlightError):
        list(client.do_action(flight.Action("nonsense", b"")))
    client.close()


def test_the_oracle_is_checkpointed_by_its_bytes_too(world: World, monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.controller.CHECKPOINT_EVERY_BYTES", 50_000)
    world.oracle.raise_format().result()
    controller = world.start()
    for n in range(4):
        assert controller._oracle._checkpoints.newest_offset == 0
        world.oracle.commit(CommitPart(f"p{n}", inline=(Inline("u1", bytes(15_000), "a", 1),))).result()
    eventually(lambda: controller._oracle._checkpoints.newest_offset > 0)
    assert controller._oracle.records_since_checkpoint < 50


def test_commands_are_cut_and_the_catalog_is_checkpointed_while_it_runs(world, monkeypatch):
    monkeypatch.setattr(commands_log, "COMPACT_EVERY", 5)
    monkeypatch.setattr(commands_log, "CUT_AFTER_S", 0.0)
    monkeypatch.setattr(catalog_log_module, "CHECKPOINT_EVERY", 1)
    world.start()
    for number in range(10):
        item = Table(f"u{number}", "s1", f"t{number}", "", COLUMNS)
        world.tell(item, *([f"u{number - 1}"] if number else []))
    eventually(lambda: world.commands.bounds()[0] > 0)
    checkpoints = CheckpointStore(world.bootstrap, world.names.checkpoints(world.names.catalog))
    eventually(checkpoints.load)
    world.stop()
    # Who begins now is told of nothing that is gone, and goes on.
    again = world.start()
    assert again.status()["objects"] == 1 and again.status()["catalog_frontier"] == world.frontier
    world.tell(Table("u20", "s1", "t20", "", COLUMNS), "u9")
    eventually(lambda: again.status()["catalog_frontier"] == world.frontier)


def test_a_source_that_ends_the_controller_twice_is_left_alone_until_it_is_asked_for(world):
    world.make_topic("bad")
    world.make_topic("fine")
    bad, bad_errors = world.source("u1", "bad")
    fine, fine_errors = world.source("u2", "fine")
    world.tell(bad, bad_errors, fine, fine_errors)
    world.produce("bad", b'{"id": 1, "t": "poison"}')
    for life in range(2):
        at_work = open_at_work(world.bootstrap, world.names, STORAGE, f"life {life}").begin()
        with pytest.raises(SystemExit), at_work.on(["u1"]):
            raise SystemExit  # what a kill leaves behind: a note, and no word after it
        at_work.close()
    controller = world.start()
    world.produce("fine", b'{"id": 2, "t": "x"}')
    eventually(lambda: world.bound(fine) == 1)
    told = eventually(lambda: [s for s in controller.status()["sources"] if s["id"] == "u1" and s["error"]])
    assert told[0]["state"] == "failed" and "quarantine" in told[0]["error"] and world.bound(bad) == 0
    assert controller.status()["quarantined"] == ["u1"]
    client = flight.FlightClient(controller._server.address)
    assert json.loads(act(client, "retry", 10, b"u1")) is True and json.loads(act(client, "retry", 10, b"u1")) is False
    eventually(lambda: world.bound(bad) == 1)


def test_rows_that_the_log_carries_are_moved_to_their_topic_and_read_alike(world: World, monkeypatch) -> None:
    monkeypatch.setattr(mover, "COLLECTION_BYTES", 2_000)
    table = made("table", "u1", "t", columns=COLUMNS)
    world.tell(table)
    world.oracle.raise_format().result()
    stamps = []

    def insert(lower: int, upper: int) -> None:
        for n in range(lower, upper):
            rows = table_from_rows(COLUMNS, [(n, f"row {n}")])
            [batch] = encode_rows(COLUMNS, rows, f"a{n}")
            inline = (Inline(table.id, batch.value, f"a{n}", batch.rows),)
            stamps.append(world.oracle.commit(CommitPart(f"p{n}", inline=inline)).result())

    def at(ts: int) -> list[int]:
        bound = world.oracle.state.bindings(table.id).at(ts)
        with closing(RunReader(world.bootstrap)) as reader:
            found = [table for table, _ in reader.bound_chunks(bound, COLUMNS)]
        return sorted(n for table in found for n in table.column("id").to_pylist())

    insert(0, 20)
    before = {ts: at(ts) for ts in stamps}
    assert before[stamps[-1]] == list(range(20))
    controller = world.start()
    eventually(lambda: world.oracle.barrier().result().held_bytes == 0)
    moved = {"held_bytes": 0, "collections": 0, "moved": 20}
    eventually(lambda: controller.status()["carried"] == moved)  # it hears of it by a client of its own
    assert {ts: at(ts) for ts in stamps} == before
    assert world.topics() == {"u1"}
    insert(20, 23)  # few: they stay in the log
    world.oracle.checkpoint(CheckpointPolicy(slack_records=0))
    world.stop()
    fresh = Oracle.open(world.bootstrap, world.names, "fresh", lambda: 0)
    try:
        assert fresh.state.held == world.oracle.barrier().result().held and fresh.state.held_bytes > 0
    finally:
        fresh.close()
    insert(23, 40)
    world.start()
    eventually(lambda: world.oracle.barrier().result().held_bytes == 0)
    assert at(stamps[-1]) == list(range(40)) and at(stamps[21]) == list(range(22))


def test_a_table_has_no_topic_until_something_large_is_written_to_it(world: World) -> None:
    table, other, view = (made(kind, f"u{n}", f"t{n}", columns=COLUMNS) for n, kind in
                          ((1, "table"), (2, "table"), (3, "materialized_view")))  # fmt: skip
    world.tell(table, other, view)
    world.start()
    writer = CollectionWriter(world.bootstrap, world.names)
    try:
        rows = table_from_rows(COLUMNS, [(n, "x") for n in range(1000)])
        [run] = writer.write(table.id, COLUMNS, rows, "a").result(30)
        world.oracle.commit(CommitPart("p", (Binding(table.id, run),))).result()
        writer.write(view.id, COLUMNS, rows, "b").result(30)
        writer.write("u4", COLUMNS, rows, "of a writer that was late").result(30)
    finally:
        writer.close()
    assert world.topics() == {"u1", "u3", "u4"}
    world.tell("u1", "u2", "u3")
    eventually(lambda: world.topics() == {"u4"})
    world.stop()
    world.start()
    eventually(lambda: world.topics() == set())
