"""A topic that was deleted and made anew under a source: nobody is answered from a mixture, and a reset begins anew."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import NewTopic

from catalog_log.objects import SOURCE, Column, Item, Table
from collection.binding import Binding, Run, pin, pinned
from collection.reader import RunReader
from controllers.peeks.peek_codec import decode_error
from journal import clients
from journal.errors import Rejected
from oracle.model import CommitPart
from tests.compute.test_crashes import KV, Node, reader_of, view
from tests.compute.test_idle_views import World, held
from tests.objects import made

pytestmark = [pytest.mark.spark, pytest.mark.integration]


class Sources(World):
    """With sources on real topics.  ``bind`` is what storage does."""

    def __init__(self, monkeypatch, broker: str, topic: str) -> None:
        super().__init__(monkeypatch)
        self.topic, self.admin, self.bootstrap = topic, clients.make_admin(broker), broker
        ours, world = reader_of(self.rows), self

        class Reader:
            """Rows of sources are Kafka's, the others lie in a list."""

            def __init__(self, bootstrap) -> None:
                self.kafka = RunReader(world.bootstrap)

            def bound_chunks(self, bound, columns, format_):
                reader = self.kafka if pinned(bound[0].run) else ours(None)
                return reader.bound_chunks(bound, columns, format_)

            def close(self) -> None:
                self.kafka.close()

        monkeypatch.setattr("controllers.compute.feed.RunReader", Reader)

    def make(self, *values: bytes) -> str:
        """A topic with these records; its id."""
        self.admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result()
        producer = clients.make_producer(self.bootstrap)
        for value in values:
            producer.produce(self.topic, value, partition=0)
        assert producer.flush(30) == 0
        return str(self.describe().result().topic_id)

    def describe(self):
        return self.admin.describe_topics(TopicCollection([self.topic]))[self.topic]

    def delete(self) -> None:
        self.admin.delete_topics([self.topic])[self.topic].result()
        deadline = time.monotonic() + 30
        while self.topic in self.admin.list_topics(timeout=5).topics:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def bind(self, source: str, topic_id: str, lower: int, upper: int) -> int:
        self.now += 1
        binding = Binding(source, Run(self.topic, 0, lower, upper, pin(topic_id), upper - lower), True)
        return self.oracle.commit(CommitPart(f"{source}{lower}", (binding,), self.now)).result(10)


def source(source_id: str, topic: str) -> Item:
    return made(SOURCE, source_id, "src", columns=KV, topic=topic)


COUNTS = (Column("k", "int4"), Column("n", "int8"))
JOINED = "SELECT a.k, a.v + b.v AS v FROM {0} AS a JOIN u2 AS b ON a.k = b.k"
COUNTED = "SELECT k, COUNT(*) AS n FROM {0} GROUP BY k"


def test_after_a_restart_no_view_mixes_the_topic_that_is_gone_with_the_one_that_is_there(
    broker, env_name, spark, tmp_path, monkeypatch
):
    topic = f"{env_name}-user"
    world = Sources(monkeypatch, broker, topic)
    items = [source("u1", topic), Table("u2", "s1", "t", "", KV), view("u3", COUNTED.format("u1"), COUNTS, "u1"),
             view("u4", JOINED.format("u1"), KV, "u1", "u2"), view("u5", "SELECT k, v FROM u2", KV, "u2")]  # fmt: skip
    first = world.make(b'{"k":1,"v":5}', b'{"k":1,"v":6}')
    world.bind("u1", first, 0, 2)
    world.insert("u2", (1, 100, 1))
    node = Node(spark, tmp_path / "first", world.oracle, world.views, world.rows, items)
    node.tick()
    was = {"u3": Counter({(1, 2): 1}), "u4": Counter({(1, 105): 1, (1, 106): 1}), "u5": Counter({(1, 100): 1})}
    assert {v: held(world, v) for v in was} == was
    node.close()

    # Anew, with as many records as were bound; compute restarts, then the other input of a view changes.
    world.delete()
    second = world.make(b'{"k":1,"v":70}', b'{"k":1,"v":80}', b'{"k":1,"v":90}')
    assert second != first
    node = Node(spark, tmp_path / "again", world.oracle, world.views, world.rows, items)
    ts = world.insert("u2", (1, 200, 1))
    with pytest.raises(Rejected) as gone:
        node.inventory.relation_through("u1", ts)
    assert gone.value.sqlstate == "58P01" and "made anew" in gone.value.detail
    node.tick()
    told = decode_error(world.views.state.view("u4").error)
    assert told.sqlstate == "58P01" and "RESET" in told.hint
    assert held(world, "u4") == was["u4"], "nothing was made of both"
    # What was made of what is gone stays as it was, and what has nothing to do with it goes on.
    assert held(world, "u3") == was["u3"] and world.views.state.view("u3").error is None
    assert held(world, "u5") == Counter({(1, 100): 1, (1, 200): 1})
    node.close()

    # ALTER SOURCE … RESET CASCADE, as it comes here: everything under other ids, on what is there.
    anew = [source("u11", topic), items[1], view("u13", COUNTED.format("u11"), COUNTS, "u11"),
            view("u14", JOINED.format("u11"), KV, "u11", "u2"), items[4]]  # fmt: skip
    world.bind("u11", second, 0, 3)
    node = Node(spark, tmp_path / "reset", world.oracle, world.views, world.rows, anew)
    node.tick()
    assert held(world, "u13") == Counter({(1, 3): 1})
    assert held(world, "u14") == Counter((1, a + b) for a in (70, 80, 90) for b in (100, 200))
    assert not any(world.views.state.view(v).error for v in ("u13", "u14", "u5"))
    node.close()
    world.close()
