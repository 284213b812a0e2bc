"""A view that puts out more than its controller takes: as it runs, and killed while tasks write."""

from __future__ import annotations

import time
import uuid
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Consumer, TopicPartition

from catalog_log.objects import Column, Definition, MaterializedView, Reference, Table
from collection.binding import Binding
from oracle.client import wall_clock_ms
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from tests.compute.test_controller import START_S, World, view

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(600)]

ROWS = 700_000
"""Of some 100 bytes, twice what stays, and more than ticks wait for."""

MADE_S = 300

KS = (Column("k", "int8", id=1), Column("s", "text", id=2))
K = (Column("k", "int8", id=1),)
LARGE = MaterializedView(
    "u3", "s1", "u3", "create materialized view u3 as select k, s from t where k >= 0", KS,
    query=Definition((Reference(("t",), "u1", "public", ("k", "s")),), ("u1",)), cluster_id="default",
)  # fmt: skip
SMALL = view("u4", "SELECT k FROM u2 WHERE k > 0", K, "u2")


@pytest.fixture
def world(broker, env_name, tmp_path):
    found = World(broker, env_name, tmp_path / "data")
    yield found
    found.close()


def insert_many(world: World, table: str) -> None:
    runs = []
    for first in range(0, ROWS, 100_000):
        keys = pa.array(range(first, first + 100_000), pa.int64())
        words = pc.binary_join_element_wise(keys.cast(pa.string()), pa.scalar("x" * 80), "-")
        runs += world.writer.write(table, KS, pa.table({"k": keys, "s": words}), uuid.uuid4().hex).result(60)
    part = CommitPart(uuid.uuid4().hex, tuple(Binding(table, run) for run in runs), proposed_ts=wall_clock_ms())
    world.oracle.commit(part).result(40)


def await_rows_on(world: World, view_id: str) -> int:
    """How many records there are, once there are some."""
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": "nobody"})
    deadline = time.monotonic() + MADE_S
    try:
        while not (end := consumer.get_watermark_offsets(TopicPartition(world.names.data(view_id), 0), timeout=10)[1]):
            assert time.monotonic() < deadline, world.process.log.read_text()[-5000:]
            time.sleep(0.05)
    finally:
        consumer.close()
    return end


def test_it_is_made_beside_the_ticks_and_again_by_the_next_life_where_one_was_killed(world):
    process = world.start()
    world.send(Table("u1", "s1", "t", "", KS), Table("u2", "s1", "o", "", K), SMALL)
    insert_many(world, "u1")
    world.send(LARGE)
    garbage = await_rows_on(world, "u3")
    # Others tick on meanwhile.
    world.insert("u2", (1,), (0,))
    assert world.read("SELECT k FROM u4", "u4") == Counter({(1,): 1})
    assert not process.status()["views"]["u3"]["hydrated"]
    process.child.kill()
    process.child.wait(30)
    again = world.start()
    deadline = time.monotonic() + START_S + MADE_S
    while not again.status()["views"]["u3"]["hydrated"]:
        assert time.monotonic() < deadline, again.log.read_text()[-5000:]
        time.sleep(0.2)
    asked = "SELECT COUNT(*), COUNT(DISTINCT k), MIN(k), MAX(k), MAX(LENGTH(s)) FROM u3"
    assert world.read(asked, "u3") == Counter({(ROWS, ROWS, 0, ROWS - 1, 87): 1})
    assert "tasks wrote what they found" in again.log.read_text()
    assert again.status()["views"]["u3"]["error"] is None
    views = ViewsLog.open(world.bootstrap, world.names, "test")
    runs = views.state.view("u3").runs.at(world.oracle.state.last_ts)
    views.close()
    assert min(each.run.lower for each in runs) >= garbage and sum(each.run.rows for each in runs) == ROWS
    # It goes on from there as any other.
    world.insert("u1", (-1, "no"), (ROWS, "yes"))
    assert world.read("SELECT s FROM u3 WHERE k >= 700000", "u3") == Counter({("yes",): 1})
