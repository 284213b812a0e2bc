"""Rows to a real topic and back: exact offsets, missing topics, lost ranges, a broker that dies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from decimal import Decimal

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from catalog_log.objects import Column
from collection import reader as reader_module
from collection import writer as writer_module
from collection.binding import BoundRun, Run
from collection.columns import DIFF, table_from_rows, with_diff
from collection.reader import JSON, RunReader
from collection.rows import Undecodable, encode
from collection.writer import CollectionWriter
from journal import clients
from journal.errors import InvalidUsage, Rejected, TidemarkError, Unavailable
from journal.leaders import leaders_of
from journal.names import TopicNames
from journal.topics import data_spec, ensure_topic, journal_spec
from judge.live import shim
from tests.runs import read_runs

pytestmark = pytest.mark.integration

COLUMNS = (Column("id", "int8"), Column("t", "text"), Column("n", "numeric(10,2)"))


def rows(*ids: int) -> list[tuple]:
    return [(i, f"row {i}", Decimal(i) / 4) for i in ids]


def ids(table) -> list[int]:
    return table.column("id").to_pylist()


@pytest.fixture
def names(env_name: str) -> TopicNames:
    return TopicNames(env_name)


@pytest.fixture
def writer(broker: str, names: TopicNames):
    made = CollectionWriter(broker, names)
    yield made
    made.close()


@pytest.fixture
def reader(broker: str):
    made = RunReader(broker)
    yield made
    made.close()


def make(broker: str, names: TopicNames, collection: str) -> None:
    ensure_topic(broker, data_spec(names.data(collection), 1))


def test_what_was_written_is_read_back_by_its_runs_alone(broker, names, writer, reader) -> None:
    make(broker, names, "u1")
    first = writer.write("u1", COLUMNS, rows(1, 2), "a").result(30)
    garbage = writer.write("u1", COLUMNS, rows(66), "dead").result(30)
    second = writer.write("u1", COLUMNS, with_diff(table_from_rows(COLUMNS, rows(1)), -1), "b").result(30)
    assert (first[0].rows, second[0].attempt) == (2, "b")
    table = reader.read(first + second, COLUMNS)
    assert ids(table) == [1, 2, 1]
    assert table.column(DIFF).to_pylist() == [1, 1, -1]
    assert table.column("n").to_pylist()[1] == Decimal("0.50")
    assert ids(reader.read(garbage, COLUMNS)) == [66]
    assert reader.read([], COLUMNS).schema == table.schema


def test_concurrent_writers_get_their_own_offsets(broker, names, writer, reader) -> None:
    make(broker, names, "u1")
    written = [(n, writer.write("u1", COLUMNS, rows(n, n + 1000), f"w{n}")) for n in range(100)]
    runs = {n: done.result(30) for n, done in written}
    offsets = [o for found in runs.values() for r in found for o in range(r.lower, r.upper)]
    assert sorted(offsets) == list(range(100))
    for n in (0, 50, 99):
        assert ids(reader.read(runs[n], COLUMNS)) == [n, n + 1000]
    merged = Run(names.data("u1"), 0, 0, 100, "", 200)
    assert sorted(ids(reader.read([merged], COLUMNS))) == sorted(i for n in range(100) for i in (n, n + 1000))


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_in_any_partition_are_read_where_they_are(broker, names, reader, partitions) -> None:
    """Of writers one after the other, beside what dead ones left anywhere, at the timestamps that were bound."""
    ensure_topic(broker, journal_spec(names.catalog, 1))  # who makes topics asks it for the replicas
    rng = random.Random(partitions)
    bound: list[BoundRun] = []
    expected: Counter = Counter()
    used: set[int] = set()
    for life in range(2):  # and another process after that
        writer = CollectionWriter(broker, names, partitions=partitions)
        try:
            for step in range(20):
                ts = 100 * life + step
                written = [(step, n) for n in range(rng.choice((1, 3, 9_000)))]
                made = table_from_rows(COLUMNS, [(ts, f"row {n}", Decimal(n) / 4) for _, n in written])
                way = rng.choice(("rows", "keyed", "batches"))
                if way == "batches":
                    runs = writer.write_batches("u1", list(encode(COLUMNS, made, f"a{ts}")), f"a{ts}").result(30)
                else:
                    runs = writer.write("u1", COLUMNS, made, f"a{ts}", b"k" if way == "keyed" else None).result(30)
                assert sum(run.rows for run in runs) == len(written)
                assert way == "rows" or len({run.partition for run in runs}) == 1
                used |= {run.partition for run in runs}
                if rng.random() < 0.3:
                    continue  # a writer that died before it bound them
                bound += [BoundRun(ts, run) for run in runs]
                expected.update((ts, ts, f"row {n}") for _, n in written)
        finally:
            writer.close()
    assert used == set(range(partitions))
    rng.shuffle(bound)
    found: Counter = Counter()
    for table, stamps in reader.bound_chunks(bound, COLUMNS):
        found.update(zip(stamps.to_pylist(), ids(table), table.column("t").to_pylist(), strict=True))
    assert found == expected


def test_partitions_that_somebody_added_are_written_and_read(broker, names, writer, reader) -> None:
    make(broker, names, "u1")
    topic = names.data("u1")
    old = writer.write("u1", COLUMNS, rows(1, 2), "a").result(30)
    admin = clients.make_admin(broker)
    for done in admin.create_partitions([NewPartitions(topic, 3)]).values():
        done.result()

    def grown() -> bool | None:
        return len(admin.list_topics(topic, timeout=5).topics[topic].partitions) == 3 or None

    assert clients.known(broker, topic, grown)
    later = CollectionWriter(broker, names)
    try:
        new = [run for n in range(40) for run in later.write("u1", COLUMNS, rows(100 + n), "b").result(30)]
    finally:
        later.close()
    assert {run.partition for run in new} == {0, 1, 2}
    assert writer.write("u1", COLUMNS, rows(3), "c").result(30)[0].rows == 1, "who has not heard of them goes on"
    assert sorted(ids(reader.read([*old, *new], COLUMNS))) == [1, 2, *range(100, 140)]


def test_large_writes_are_many_records_and_come_back_in_chunks(broker, names, writer, reader, monkeypatch) -> None:
    monkeypatch.setattr(reader_module, "CHUNK_RECORDS", 3)
    make(broker, names, "u1")
    (run,) = writer.write("u1", COLUMNS, rows(*range(30_000)), "a").result(30)
    assert run.upper - run.lower > 3
    chunks = list(reader.chunks([run], COLUMNS))
    assert len(chunks) > 1
    assert [i for c in chunks for i in ids(c)] == list(range(30_000))


def test_far_apart_runs_are_sought_not_read_through(broker, names, writer, reader, monkeypatch) -> None:
    monkeypatch.setattr(reader_module, "_GAP_MAX", 2)
    make(broker, names, "u1")
    runs = [writer.write("u1", COLUMNS, rows(n), "a").result(30)[0] for n in range(30)]
    wanted = [runs[0], runs[2], runs[10], runs[29]]
    assert ids(reader.read(reversed(wanted), COLUMNS)) == [0, 2, 10, 29]


def test_a_topic_that_comes_late_is_awaited(broker, names, writer) -> None:
    done = writer.write("u1", COLUMNS, rows(1), "a")
    assert not done.done()
    make(broker, names, "u1")
    assert done.result(30)[0].rows == 1


def test_a_topic_that_never_comes_is_unavailable(broker, names, writer, monkeypatch) -> None:
    monkeypatch.setattr(writer_module, "WRITE_TIMEOUT_S", 0.5)
    with pytest.raises(Unavailable, match="0.5 s"):
        writer.write("u1", COLUMNS, rows(1), "a").result(30)


def test_what_cannot_be_written_is_refused_at_once(broker, names, writer, monkeypatch) -> None:
    assert writer.write("u1", COLUMNS, [], "a").result(0) == []
    with pytest.raises(InvalidUsage):
        writer.write("u1", COLUMNS, [("x", "y", "z")], "a")
    monkeypatch.setattr(writer_module, "PENDING_BYTES_MAX", 10)
    pending = writer.write("u1", COLUMNS, rows(1), "a")
    with pytest.raises(Rejected) as refused:
        writer.write("u1", COLUMNS, rows(2), "b").result(0)
    assert refused.value.sqlstate == "53400"
    assert not pending.done()


def test_ranges_that_kafka_does_not_have_are_an_error_with_the_numbers(broker, names, writer, reader) -> None:
    make(broker, names, "u1")
    for n in range(4):
        writer.write("u1", COLUMNS, rows(n), "a").result(30)
    topic = names.data("u1")
    clients.delete_below(broker, TopicPartition(topic, 0, 2), 30)
    for run in (Run(topic, 0, 1, 4, "a"), Run(topic, 0, 7, 9, "a")):
        with pytest.raises(Unavailable) as gone:
            reader.read([run], COLUMNS)
        assert gone.value.detail == f"partition 0: needed [{run.lower}, {run.upper}), the topic holds [2, 4)"
    assert ids(reader.read([Run(topic, 0, 2, 4, "a")], COLUMNS)) == [2, 3]
    with pytest.raises(Unavailable, match="does not exist"):
        reader.read([Run(names.data("u9"), 0, 0, 1, "a")], COLUMNS)


def test_wrong_attempts_formats_and_overlaps_are_errors(broker, names, writer, reader) -> None:
    make(broker, names, "u1")
    (run,) = writer.write("u1", COLUMNS, rows(1), "a").result(30)
    with pytest.raises(Undecodable):
        reader.read([run._replace(attempt="b")], COLUMNS)
    with pytest.raises(InvalidUsage):
        reader.read([run], COLUMNS, "xml")
    with pytest.raises(InvalidUsage):
        reader.read([run, run], COLUMNS)
    assert ids(reader.read([run], COLUMNS)) == [1]


def test_a_users_json_topic_with_transactions_and_many_partitions(broker, names) -> None:
    topic = f"{names.env}-user"
    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        done.result(30)
    producer = clients.make_producer(broker, **{"transactional.id": names.env})
    producer.init_transactions(30)
    for values, commit in ((b'{"id":1}', b"bad"), True), ((b'{"id":66}',), False), ((b'{"id":2,"t":"x"}',), True):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=1)
        producer.flush(30)
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    # Offsets: 0 1 rows, 2 marker, 3 aborted, 4 marker, 5 row, 6 marker.
    runs = [Run(topic, 1, 0, 6)]
    table = read_runs(broker, runs, COLUMNS, JSON)
    assert ids(table) == [1, 2]
    assert table.column(DIFF).to_pylist() == [1, 1]
    assert ids(read_runs(broker, [Run(topic, 1, 2, 5)], COLUMNS, JSON)) == []
    assert ids(read_runs(broker, [Run(topic, 1, 6, 7)], COLUMNS, JSON)) == []


@pytest.mark.slow
def test_a_broker_that_is_killed_and_comes_back_loses_no_write(make_broker, names) -> None:
    running = make_broker()
    make(running.bootstrap, names, "u1")
    writer, reader = CollectionWriter(running.bootstrap, names), RunReader(running.bootstrap)
    try:
        before = writer.write("u1", COLUMNS, rows(1), "a").result(30)
        os.kill(running.pid, signal.SIGKILL)
        running.wait_gone()
        during = writer.write("u1", COLUMNS, rows(2), "b")
        back = threading.Timer(3.0, running.start)
        back.start()
        started = time.monotonic()
        runs = before + during.result(40)
        assert time.monotonic() - started > 2
        back.join()
        assert ids(reader.read(runs, COLUMNS)) == [1, 2]
    finally:
        reader.close()
        writer.close()


class Hanging:
    """A consumer whose threads wait by a clock that was set back."""

    def __init__(self) -> None:
        self.closing, self.let_go = threading.Event(), threading.Event()

    def close(self) -> None:
        self.closing.set()
        self.let_go.wait()


def test_a_read_goes_on_though_the_consumer_it_gave_up_does_not_close(broker: str) -> None:
    reader, old = RunReader(broker), Hanging()
    reader._consumer.close()
    reader._consumer = old
    try:
        assert reader._renew(broker) is reader._consumer is not old
        assert old.closing.wait(20), "it was let go of, and nobody closes it"
    finally:
        old.let_go.set()
        reader.close()


KAFKAS_DEFAULTS = "auto.create.topics.enable=true\nnum.partitions=1\n"


def test_on_a_broker_with_kafkas_defaults_no_topic_comes_by_being_asked_about(make_broker, names, monkeypatch) -> None:
    """Nobody of ours has a topic made by asking for it, writing to it or reading it; what others made is refused."""
    monkeypatch.setattr(writer_module, "WRITE_TIMEOUT_S", 60.0)  # all that is asked meanwhile on a slow machine
    broker = make_broker(KAFKAS_DEFAULTS).bootstrap
    writer = CollectionWriter(broker, names)
    admin = clients.make_admin(broker)
    reader = clients.make_consumer(broker)
    try:
        early = writer.write("u1", COLUMNS, rows(1), "a")  # as after CREATE TABLE, before storage made the topic
        for client in (admin, clients.make_producer(broker), reader):
            client.list_topics(names.data("u1"), timeout=10)
        reader.assign([TopicPartition(names.data("u1"), 0, 0)])
        assert clients.reach(broker, lambda timeout: leaders_of(broker).bootstrap(names.data("u1"))) is not None
        with pytest.raises(TidemarkError, match="gone|does not exist"):
            read_runs(broker, [Run(names.data("u1"), 0, 0, 1, "a", 1)], COLUMNS)
        assert names.data("u1") not in admin.list_topics(timeout=10).topics
        make(broker, names, "u1")
        assert early.result(60)[0].rows == 1

        # What another client's question made is not written to, until somebody has corrected it.
        others = Producer({"bootstrap.servers": broker, "allow.auto.create.topics": True})
        others.list_topics(names.data("u2"), timeout=10)
        with pytest.raises(Rejected, match="retention.ms is '604800000', expected '-1'") as refused:
            writer.write("u2", COLUMNS, rows(1), "a").result(30)
        assert refused.value.sqlstate == "55000"
        assert writer.check("u2").result(10).message == refused.value.message
        assert writer.write("u1", COLUMNS, rows(2), "b").result(30)[0].rows == 1, "others are none the worse"
        spec = data_spec(names.data("u2"), 1)
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in spec.config.items()
        ]
        for answer in admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, spec.name, incremental_configs=entries)]
        ).values():
            answer.result()
        assert writer.write("u2", COLUMNS, rows(1), "a").result(30)[0].rows == 1
    finally:
        reader.close()
        writer.close()


@pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable()))
def test_a_clock_set_back_holds_up_no_write(broker, names, tmp_path):
    """librdkafka waits by the wall clock: its threads, and whoever polls, waited for the hour to pass again, and what
    was written to a topic that the producer had not met was neither sent nor given up meanwhile."""
    for collection in ("u1", "u2"):
        ensure_topic(broker, data_spec(names.data(collection), 1))
    shift = tmp_path / "shift"
    shift.write_text("0")
    env = shim.preloaded(dict(os.environ), shim.compiled("clock")) | {"TIDEMARK_CLOCK_SHIFT": str(shift)}
    command = [sys.executable, "-m", "tests.collection.clock_set_back", broker, names.env, str(shift), "u1", "u2"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    took_s, closed = ran.stdout.split()
    assert float(took_s) < writer_module.WRITE_TIMEOUT_S / 2 and closed == "closed"
