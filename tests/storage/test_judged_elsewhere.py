"""A source that is far behind on a real broker, and a cluster that judges for it: well, badly, or not at all.

The cluster is a controller's server whose judging is the tasks' own code, in threads instead of executors;
``tests/compute/test_judging_desk.py`` has Spark do it, and ``test_standalone.py`` workers that have nothing of ours.
"""

from __future__ import annotations

import json
import pickle
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pyarrow.flight as flight
import pytest
from confluent_kafka import Producer

from catalog_log.log import CatalogLog
from catalog_log.model import Node
from catalog_log.objects import Column, Source
from catalog_log.objects.reading import Format, Reading
from controllers.compute.judged_ranges import answer, packed
from controllers.judging import Order, decode_order, encode_order, encode_verdict
from controllers.nodes import register
from controllers.peeks.peek_codec import encode_error
from controllers.storage import backlog as backlog_module
from controllers.storage import waves
from journal.errors import InvalidUsage, Unavailable
from tests.registry import SchemaRegistry
from tests.storage.test_copied_sources import OLDER, PERSON, Copying, copying, of_registry
from tests.storage.test_storage_controller import World, eventually, state_of

pytestmark = pytest.mark.integration

COUNT = 3_000


def refuse(*_: object) -> list[bytes]:
    raise flight.FlightServerError(encode_error(InvalidUsage("they never can", sqlstate="0A000")))


def fail(*_: object) -> list[bytes]:
    raise flight.FlightServerError(encode_error(Unavailable("offsets are gone", sqlstate="58P01")))


class Cluster(flight.FlightServerBase):
    """One that is in the catalog; ``says`` what it does instead of judging."""

    def __init__(self, world: World, says: Callable[[Cluster, Order], list[bytes]] | None = None) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.bootstrap = world.bootstrap
        self.orders: list[Order] = []
        self.says = says
        self.name = f"c{uuid.uuid4().hex[:6]}"
        catalog = CatalogLog.open(world.bootstrap, world.names, "cluster")
        register(catalog, Node("compute", self.name, f"grpc://127.0.0.1:{self.port}", uuid.uuid4().hex, 1))
        catalog.close()

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        assert action.type == "judge"
        order = decode_order(action.body.to_pybytes())
        self.orders.append(order)
        said = self.judged(order) if self.says is None else self.says(self, order)
        return [*map(flight.Result, said)]

    def judged(self, order: Order) -> list[bytes]:
        plain = (self.bootstrap, encode_order(order))
        found = []
        for each in order.ranges:
            asked, told = pickle.loads(answer(plain, packed(each), "t"))  # noqa: S301 - our own
            assert asked == each
            found.append(encode_verdict(told.checked()))
        return found


@pytest.fixture
def small_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "BACKLOG_RECORDS", COUNT // 10)
    monkeypatch.setattr(waves, "RANGES", 8)
    monkeypatch.setattr(waves, "RANGE_RECORDS", 100)
    monkeypatch.setattr(waves, "FIRST_RECORDS", 20)
    monkeypatch.setattr(waves, "LEAST_RECORDS", 10)
    monkeypatch.setattr("controllers.storage.source.BATCH_ROWS_MAX", 50)


@pytest.fixture
def world(broker: str, env_name: str, small_waves: None) -> Iterator[World]:
    made = World(broker, env_name)
    try:
        yield made
    finally:
        made.close()


def by_executors(controller) -> int:
    return sum(each["by_executors"] for each in controller.status()["sources"])


def produced(world: World, name: str, count: int, first: int = 0) -> tuple[list[tuple], list[tuple]]:
    """Rows, and bad values, over three partitions, with what aborted transactions left between."""
    producer = Producer({"bootstrap.servers": world.bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    rows, bad = [], []
    for at in range(first, first + count, 100):
        for ended in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for n in range(at, min(at + 100, first + count)):
                value = b"bad%d" % n if n % 41 == 3 else json.dumps({"id": n, "t": f"t{n}"}).encode()
                producer.produce(world.topic(name), value, partition=n % 3)
            producer.flush(30)
            ended(30)
        rows += [(n, f"t{n}") for n in range(at, min(at + 100, first + count)) if n % 41 != 3]
        bad += [f"bad{n}" for n in range(at, min(at + 100, first + count)) if n % 41 == 3]
    return rows, bad


def caught_up(world: World, controller, source, rows: list[tuple]) -> None:
    eventually(lambda: controller.status()["sources"][0]["behind"] == 0)
    eventually(lambda: len(world.rows(source)) == len(rows))
    assert world.rows(source) == sorted(rows)


def test_what_is_far_behind_is_judged_by_a_cluster_and_bound_once(world: World) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks", 3)
    rows, bad = produced(world, "clicks", COUNT)
    cluster = Cluster(world)
    world.tell(source, errors)
    controller = world.start()
    caught_up(world, controller, source, rows)
    assert sorted(value for _, value, *_ in world.errors(errors)) == sorted(bad)
    assert COUNT - 200 <= by_executors(controller) <= COUNT and len(cluster.orders) >= 3
    [status] = controller.status()["sources"]
    assert (status["good_rows"], status["bad_rows"], status["state"]) == (len(rows), len(bad), "running")
    # What comes after it is read here, and nobody is asked for so little.
    asked = len(cluster.orders)
    more, _ = produced(world, "clicks", 100, COUNT)
    caught_up(world, controller, source, rows + more)
    assert len(cluster.orders) == asked
    cluster.shutdown()


def test_where_a_cluster_does_not_judge_the_source_goes_on_by_itself(world: World) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks", 3)
    rows, bad = produced(world, "clicks", COUNT)
    cluster = Cluster(world, fail)
    world.tell(source, errors)
    controller = world.start()
    caught_up(world, controller, source, rows)
    assert by_executors(controller) == 0 and len(cluster.orders) == 1
    assert sorted(value for _, value, *_ in world.errors(errors)) == sorted(bad)
    cluster.shutdown()


def test_one_that_cannot_is_passed_over_for_one_that_can(world: World, monkeypatch) -> None:
    monkeypatch.setattr(backlog_module, "AGAIN_S", 0.0)
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks", 3)
    rows, _ = produced(world, "clicks", COUNT)
    gone = Cluster(world)
    gone.shutdown()
    clusters = [Cluster(world, refuse), Cluster(world)]
    world.tell(source, errors)
    controller = world.start()
    caught_up(world, controller, source, rows)
    unable, able = clusters
    assert len(unable.orders) <= 1 and len(able.orders) >= 3 and gone.orders == []
    assert by_executors(controller) >= COUNT // 2
    for each in clusters:
        each.shutdown()


def test_what_an_open_transaction_holds_back_is_not_asked_for(world: World) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks")
    world.produce("clicks", *[b'{"id":1}'] * COUNT)
    producer = Producer({"bootstrap.servers": world.bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(source.topic, b'{"id":2}', partition=0)
    producer.flush(30)
    world.produce("clicks", *[b'{"id":3}'] * COUNT)
    cluster = Cluster(world)
    world.tell(source, errors)
    controller = world.start()
    eventually(lambda: world.bound(source) == COUNT)
    assert all(each.upper <= COUNT for order in cluster.orders for each in order.ranges) and cluster.orders
    producer.commit_transaction(30)
    eventually(lambda: len(world.rows(source)) == 2 * COUNT + 1)
    assert state_of(controller, "u1") == ("running", None)
    cluster.shutdown()


def test_two_controllers_and_one_that_stops_in_the_middle_bind_each_range_once(world: World) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks", 3)
    rows, bad = produced(world, "clicks", COUNT)
    asked, go_on = threading.Event(), threading.Event()

    def slow(cluster: Cluster, order: Order) -> list[bytes]:
        found = cluster.judged(order)
        asked.set()
        assert go_on.wait(60)
        return found

    cluster = Cluster(world, slow)
    world.tell(source, errors)
    world.start()
    assert asked.wait(60)
    for _, stopped, _ in world.running:
        stopped.set()
    controller = world.start()
    go_on.set()
    caught_up(world, controller, source, rows)
    assert sorted(value for _, value, *_ in world.errors(errors)) == sorted(bad)
    world.stop()
    cluster.shutdown()


def test_a_topic_that_is_made_anew_under_a_wave_is_not_bound(world: World) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks")
    world.produce("clicks", *[b'{"id":1}'] * COUNT)
    anew = threading.Event()

    def made_anew(cluster: Cluster, order: Order) -> list[bytes]:
        if not anew.is_set():
            world.make_anew("clicks")
            world.produce("clicks", *[b'{"id":7}'] * COUNT)
            anew.set()
        return cluster.judged(order)

    cluster = Cluster(world, made_anew)
    world.tell(source, errors)
    controller = world.start()
    error = eventually(lambda: (found := state_of(controller, "u1"))[0] == "failed" and found[1])
    assert "made anew" in error and anew.is_set()
    assert world.bound(source) <= 100, "the two batches that were read before, and nothing of the new topic"
    cluster.shutdown()


def test_where_what_was_judged_cannot_be_bound_they_are_not_asked_again_at_once(world: World, monkeypatch) -> None:
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks", 3)
    rows, _ = produced(world, "clicks", COUNT)

    def bind(*_: object) -> None:
        raise Unavailable("the oracle is away")

    monkeypatch.setattr("controllers.storage.source.Source._bind", bind)
    cluster = Cluster(world)
    world.tell(source, errors)
    controller = world.start()
    caught_up(world, controller, source, rows)
    assert len(cluster.orders) == 1 and by_executors(controller) == 0
    cluster.shutdown()


def test_a_source_most_of_whose_records_are_no_rows_goes_on_by_itself(world: World, monkeypatch) -> None:
    monkeypatch.setattr("controllers.judging.BAD_BYTES_MAX", 100)
    source, errors = world.source("u1", "clicks")
    world.make_topic("clicks")
    world.produce("clicks", *[b"bad"] * COUNT)
    cluster = Cluster(world)
    world.tell(source, errors)
    controller = world.start()
    eventually(lambda: len(world.errors(errors)) == COUNT)
    assert [offset for *_, offset in world.errors(errors)] == list(range(COUNT))
    assert 0 < by_executors(controller) < 10 and len(cluster.orders) == 1
    cluster.shutdown()


class Lines:
    """A copied source, what was sent to it and what should come of it."""

    def __init__(self, world: Copying, reading: Reading, columns: tuple[Column, ...]) -> None:
        self.world = world
        world.make_topic("lines", 3)
        self.reading, self.columns = reading, columns
        self.expected: Counter = Counter()
        self.ends = [0] * 3
        self.bad = 0
        self.source: Source

    def send(self, records: Iterable[tuple[bytes | None, tuple | None]]) -> None:
        """Values, and what is in the rows that they are, but for the partition and the offset."""
        for n, (value, row) in enumerate(records):
            partition = n % 3
            self.world.producer.produce(self.world.topic("lines"), value, partition=partition)
            if row is None:
                self.bad += 1
            else:
                self.expected[(*row, partition, self.ends[partition])] += 1
            self.ends[partition] += 1
        assert self.world.producer.flush(30) == 0

    def tell(self) -> None:
        self.source = self.world.copied("lines", self.columns, self.reading)

    def are_there(self, count: int) -> None:
        eventually(lambda: self.world.taken(self.source) == count)
        assert self.world.contents(self.source) == dict(self.expected)


JSON_LINES = (
    Reading(Format("json"), None, ("value", "value", "partition", "offset")),
    (Column("id", "int4", False), Column("t", "text"), Column("p", "int4", False), Column("o", "int8", False)),
)


def some_json(count: int) -> list[tuple[bytes, tuple | None]]:
    return [
        (b"bad", None) if n % 41 == 3 else (json.dumps({"id": n, "t": f"t{n}"}).encode(), (n, f"t{n}"))
        for n in range(count)
    ]


@pytest.fixture
def copies(broker: str, env_name: str, small_waves: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copying]:
    monkeypatch.setattr(waves, "RANGE_RECORDS", 300)  # each task has a client that reads, and another that writes
    monkeypatch.setattr(waves, "FIRST_RECORDS", 150)
    with copying(broker, env_name) as made:
        yield made


def judged_twice(cluster: Cluster, order: Order) -> list[bytes]:
    """As where a task is tried again after it has written: what the second says counts."""
    cluster.judged(order)
    return cluster.judged(order)


def judged_and_dead(cluster: Cluster, order: Order) -> list[bytes]:
    """As where a cluster dies once its tasks have written."""
    cluster.judged(order)
    return fail()


@pytest.mark.parametrize("says", [judged_twice, judged_and_dead])
def test_rows_of_a_copied_source_are_written_by_a_cluster_and_bound_once(copies: Copying, says) -> None:
    lines = Lines(copies, *JSON_LINES)
    lines.send(some_json(COUNT))
    cluster = Cluster(copies, says)
    lines.tell()
    controller = copies.start()
    lines.are_there(COUNT)
    good = sum(lines.expected.values())
    eventually(lambda: [(each["good_rows"], each["bad_rows"]) for each in controller.status()["sources"]]
               == [(good, lines.bad)])  # fmt: skip
    judged = by_executors(controller)
    assert judged == 0 if says is judged_and_dead else COUNT - 500 <= judged <= COUNT
    cluster.shutdown()


def test_two_controllers_and_a_cluster_copy_each_message_once(copies: Copying) -> None:
    lines = Lines(copies, *JSON_LINES)
    lines.send(some_json(COUNT))
    asked, go_on = threading.Event(), threading.Event()

    def slow(cluster: Cluster, order: Order) -> list[bytes]:
        found = cluster.judged(order)
        asked.set()
        assert go_on.wait(60)
        return found

    cluster = Cluster(copies, slow)
    lines.tell()
    copies.start()
    assert asked.wait(60)
    for _, stopped, _ in copies.running:
        stopped.set()
    copies.start()
    go_on.set()
    lines.are_there(COUNT)
    copies.stop()
    cluster.shutdown()


def test_a_schema_that_comes_late_is_learnt_here_and_executors_go_on(copies: Copying, monkeypatch) -> None:
    monkeypatch.setattr(backlog_module, "AGAIN_S", 0.0)
    registry = SchemaRegistry()
    copies.connect(of_registry(registry))
    older, newer = registry.register("lines-value", OLDER), registry.register("lines-value", PERSON)
    reading = Reading(Format("avro", schema=json.dumps(PERSON), registry_id="u9"), None,
                      ("value", "value", "partition", "offset"))  # fmt: skip
    columns = (Column("id", "int8", False), Column("name", "text"), *JSON_LINES[1][2:])
    lines = Lines(copies, reading, columns)
    lines.send((registry.encode(older, {"id": 1}), (1, None)) for _ in range(COUNT))
    lines.send((registry.encode(newer, {"id": 2, "name": "a"}), (2, "a")) for _ in range(COUNT))
    lines.send([(b"\0\0\0\0\x77\x02", None)] * 3)
    cluster = Cluster(copies)
    lines.tell()
    controller = copies.start()
    lines.are_there(2 * COUNT + 3)
    assert by_executors(controller) >= COUNT
    told = {frozenset(order.copying.schemas["u9"]) for order in cluster.orders}
    assert frozenset({older}) in told and frozenset({older, newer}) in told
    cluster.shutdown()
    registry.close()


def test_a_source_dropped_under_a_wave_leaves_no_topic(copies: Copying) -> None:
    lines = Lines(copies, *JSON_LINES)
    lines.send(some_json(COUNT))
    asked, go_on = threading.Event(), threading.Event()

    def slow(cluster: Cluster, order: Order) -> list[bytes]:
        found = cluster.judged(order)
        asked.set()
        assert go_on.wait(60)
        return found

    cluster = Cluster(copies, slow)
    lines.tell()
    controller = copies.start()
    assert asked.wait(60)
    copies.tell("u1", "u2")
    go_on.set()
    topic = copies.names.data("u1")
    eventually(lambda: not controller.status()["sources"])
    eventually(lambda: topic not in copies.admin.list_topics(timeout=5).topics)
    cluster.shutdown()
