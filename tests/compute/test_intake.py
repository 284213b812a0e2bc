"""What is much on topics comes into a relation by Spark's tasks as it would by this process, whatever it is."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from catalog_log.objects import Column, Item, Table
from collection.binding import Binding, Run
from collection.columns import table_from_rows, with_diff
from collection.writer import CollectionWriter
from controllers.arrangements.tuples import to_rows
from controllers.compute import intake as module
from controllers.compute.chunks import Fetched
from controllers.compute.feed import Feed
from controllers.compute.intake import Intake
from controllers.compute.relation import Relation
from controllers.compute.spark_text import text
from journal import clients
from journal.errors import TidemarkError, Unavailable
from journal.timestamps import DataTs
from oracle.client import wall_clock_ms
from oracle.model import CommitPart
from tests.compute.test_outlet import World
from tests.objects import made

pytestmark = [pytest.mark.spark, pytest.mark.integration]

K, V = Column("k", "int4", id=1), Column("v", "text", id=2)
LATER = Column("w", "float8", id=3)
OLD = Table("u1", "s1", "t", "", (K, V))
NEW = Table("u1", "s1", "t", "", (K, LATER, V))
HERE, BY_TASKS = 1 << 60, 1
RANGE_ROWS = 150


@pytest.fixture
def world(broker, env_name) -> Iterator[World]:
    found = World(broker, env_name)
    found.writer.close()
    found.writer = CollectionWriter(broker, found.names, partitions=3)
    yield found
    found.close()


def held(world: World, spark, item: Item, scratch: Path, much: int, *through: int) -> list[Counter]:
    """What there is at each of its timestamps, after it was brought to each of ``through``."""
    scratch = scratch / uuid.uuid4().hex
    scratch.mkdir()
    feed = Feed(world.bootstrap, world.oracle, world.views, intake=Intake(world.bootstrap, much, RANGE_ROWS))
    relation = Relation(spark, item.id, item.stored, scratch)
    try:
        found = []
        for ts in through:
            feed.catch_up(relation, item, DataTs(ts))
            there: Counter = Counter()
            for table in relation.changes(DataTs(-1), DataTs(ts)):
                for *row, at, diff in to_rows(table):
                    there[at, *row] += diff
            found.append(Counter({row: n for row, n in there.items() if n}))
            assert relation.count == sum(there.values())
        parts = sum(isinstance(chunk, Fetched) for chunk in relation._chunks)
        assert (parts > 0) == (much == BY_TASKS), relation._chunks
        with relation.snapshot(DataTs(through[-1])) as snapshot:
            counted = spark.sql(f"SELECT COUNT(*) FROM ({text(snapshot.rows())})").collect()[0][0]
        assert counted == sum(found[-1].values()), "Spark reads the same files"
        return found
    finally:
        relation.close()
        feed.close()
        assert list(scratch.iterdir()) == []


def test_a_tables_history_is_the_same_by_tasks(world: World, spark, tmp_path: Path) -> None:
    """Several schemas, rows that go again, several partitions, and what dead writers left between."""
    rng = random.Random(7)
    there: list[tuple] = []
    stamps = []
    for step in range(12):
        item = OLD if step < 6 else NEW
        put = [(n, f"{step} {n}") for n in range(rng.choice((1, 40, 300)))]
        rows = [(k, v) if item is OLD else (k, rng.choice((None, -0.0, float("nan"), 1.5)), v) for k, v in put]
        if rng.random() < 0.4:
            world.writer.write("u1", item.columns, rows, "dead").result(40)
        stamps.append(world.insert("u1", item.columns, rows))
        if there and rng.random() < 0.7:
            gone = with_diff(table_from_rows(OLD.columns, there[::2]), -1)
            stamps.append(world.insert("u1", OLD.columns, gone))
            there = there[1::2]
        if item is OLD:
            there += put
    for item, through in ((OLD, stamps[4:5]), (NEW, [stamps[4], stamps[-1]])):
        by_tasks = held(world, spark, item, tmp_path, BY_TASKS, *through)
        assert repr(sorted(by_tasks[-1].items(), key=repr)) == repr(
            sorted(held(world, spark, item, tmp_path, HERE, *through)[-1].items(), key=repr)
        )
        assert by_tasks[-1]


def test_a_sources_backlog_is_the_same_by_tasks(world: World, spark, tmp_path: Path) -> None:
    """Rows that are none, two partitions, and what an aborted transaction left."""
    source = made("source", "u2", columns=(K, V), topic=f"{world.names.env}-clicks")
    admin = clients.make_admin(world.bootstrap)
    for done in admin.create_topics([NewTopic(source.topic, 2, 1)]).values():
        done.result()
    producer = Producer({"bootstrap.servers": world.bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    for ended in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for n in range(200):
            value = b"bad" if n % 17 == 5 else None if n % 29 == 3 else json.dumps({"k": n, "v": f"v{n}"}).encode()
            producer.produce(source.topic, value, partition=n % 2)
        producer.flush(30)
        ended(30)
    consumer = clients.make_consumer(world.bootstrap)
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(source.topic, p), timeout=10)[1] for p in (0, 1)]
    finally:
        consumer.close()
    stamps = []
    for part in (0, 1, 2):
        bindings = tuple(
            Binding(source.id, Run(source.topic, p, end * part // 3, end * (part + 1) // 3), contiguous=True)
            for p, end in enumerate(ends)
        )
        asked = CommitPart(uuid.uuid4().hex, bindings=bindings, proposed_ts=wall_clock_ms())
        stamps.append(world.oracle.commit(asked).result(40))
    by_tasks = held(world, spark, source, tmp_path, BY_TASKS, stamps[0], stamps[2])
    assert by_tasks == held(world, spark, source, tmp_path, HERE, stamps[0], stamps[2])
    assert 300 < sum(by_tasks[-1].values()) < 400


def test_what_cannot_be_read_is_the_same_error_by_tasks(world: World, spark, tmp_path: Path) -> None:
    source = made("source", "u2", columns=(K, V), topic=f"{world.names.env}-gone")
    binding = Binding(source.id, Run(source.topic, 0, 0, 500, "", 500), contiguous=True)
    ts = world.oracle.commit(CommitPart("p", bindings=(binding,), proposed_ts=wall_clock_ms())).result(40)
    said = []
    for much in (BY_TASKS, HERE):
        with pytest.raises(TidemarkError) as found:
            held(world, spark, source, tmp_path, much, ts)
        said.append((type(found.value), found.value.sqlstate, found.value.message))
    assert said[0] == said[1] and said[0][:2] == (Unavailable, "58P01")


def test_executors_that_lack_a_package_leave_it_to_this_process(
    world: World, spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TASK_MODULE", "controllers.compute.not_there")
    ts = world.insert("u1", OLD.columns, [(n, "x") for n in range(500)])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    feed = Feed(world.bootstrap, world.oracle, world.views, intake=Intake(world.bootstrap, 1, 100))
    relation = Relation(spark, "u1", OLD.columns, scratch)
    feed.catch_up(relation, OLD, DataTs(ts))
    assert relation.count == 500 and not feed._intake.takes([])
    relation.close()
    feed.close()
