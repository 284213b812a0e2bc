"""Tasks of Spark's say of a source's records what this process would say, or it is said why they do not."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from catalog_log.model import NODES, Node
from catalog_log.objects import Column
from collection.binding import Run
from collection.columns import plain_columns
from collection.reader import RunReader
from controllers.compute import judging_desk as module
from controllers.compute.judging_desk import AT_ONCE_MAX, JudgingDesk
from controllers.compute.server import ComputeServer
from controllers.judging import Order, Range, judged
from controllers.storage.executors import Executors
from journal import clients
from journal.errors import InvalidUsage, Rejected, TidemarkError, Unavailable

pytestmark = [pytest.mark.spark, pytest.mark.integration]

COLUMNS = plain_columns((Column("k", "int4", False, id=1), Column("v", "text", id=2)))
RANGES = (Range(0, 0, 90), Range(1, 5, 200), Range(0, 90, 91), Range(0, 91, 300))


@pytest.fixture
def order(broker: str, env_name: str) -> Order:
    """Of a topic of two partitions with bad records and what an aborted transaction left."""
    topic = f"{env_name}-clicks"
    admin = clients.make_admin(broker)
    for done in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        done.result()
    producer = Producer({"bootstrap.servers": broker, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    for ended in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for n in range(240):
            value = b"bad" if n % 17 == 5 else None if n % 29 == 3 else b'{"k":%d,"v":"v"}' % n
            producer.produce(topic, value, partition=n % 2)
        producer.flush(30)
        ended(30)
    return Order(topic, COLUMNS, RANGES, 60.0)


@pytest.fixture
def desk(spark, broker: str) -> Iterator[JudgingDesk]:
    made = JudgingDesk(spark, broker, here=True)
    yield made
    made.close()


def served(desk: JudgingDesk) -> ComputeServer:
    return ComputeServer("127.0.0.1", 0, None, dict, 0, judging=desk)


def asking(*servers: ComputeServer) -> Executors:
    nodes = [(f"compute/{n}", Node("compute", str(n), each.address, f"i{n}", 1)) for n, each in enumerate(servers)]
    return Executors(lambda: SimpleNamespace(all=lambda what: iter(nodes) if what == NODES else iter(())))


def test_verdicts_of_tasks_are_those_of_this_process(desk: JudgingDesk, order: Order, broker: str) -> None:
    with closing(RunReader(broker)) as reader:
        here = [
            judged(order.topic, COLUMNS, asked, reader.values(Run(order.topic, *asked))) for asked in order.ranges
        ]  # fmt: skip
    server = served(desk)
    assert asking(server).judge(order) == desk.judge(order) == here
    assert sum(len(each.bad) for each in here) > 10 and sum(each.good for each in here) > 200
    assert desk.status() == {"under_way": 0, "records": 2 * sum(each.good + len(each.bad) for each in here)}
    server.shutdown()


def test_what_executors_in_this_process_would_do_is_left_to_who_asks(spark, broker: str, order: Order) -> None:
    desk = JudgingDesk(spark, broker)
    with pytest.raises(InvalidUsage) as refused:
        desk.judge(order)
    assert refused.value.sqlstate == "0A000"
    server = served(desk)
    ask = asking(server)
    assert ask.judge(order) is None and list(ask._unable) == ["i0"]
    server.shutdown()
    assert ask.judge(order) is None, "it is not asked again, though nobody is there"


def test_what_lacks_a_package_is_not_asked_again(desk: JudgingDesk, order: Order, monkeypatch) -> None:
    monkeypatch.setattr(module, "TASK_MODULE", "controllers.compute.not_there")
    for _ in range(2):
        with pytest.raises(InvalidUsage) as refused:
            desk.judge(order)
        assert refused.value.sqlstate == "0A000"


@pytest.mark.parametrize("ranges", [((0, 0, 10), (2, 0, 10)), ((0, 0, 10_000),)])
def test_what_cannot_be_read_is_said(desk: JudgingDesk, order: Order, ranges) -> None:
    """A partition that is not there, and offsets that nobody has written: neither is waited for any longer than for
    an answer."""
    asked = order._replace(ranges=tuple(Range(*each) for each in ranges), timeout_s=5.0)
    started = time.monotonic()
    with pytest.raises(TidemarkError) as failed:
        desk.judge(asked)
    assert not isinstance(failed.value, InvalidUsage) or failed.value.sqlstate == "57014"
    assert time.monotonic() - started < 25
    assert desk.status()["under_way"] == 0 and desk.judge(order)


def test_no_more_orders_than_it_may_are_under_way_and_closing_ends_them(
    desk: JudgingDesk, order: Order, monkeypatch
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    real = module.answers

    def slow(*given):
        begun.release()
        assert go_on.wait(60)
        return real(*given)

    monkeypatch.setattr(module, "answers", slow)
    with ThreadPoolExecutor(AT_ONCE_MAX) as pool:
        under_way = [pool.submit(desk.judge, order) for _ in range(AT_ONCE_MAX)]
        for _ in range(AT_ONCE_MAX):
            assert begun.acquire(timeout=30)
        monkeypatch.setattr(module, "PLACE_S", 0.1)
        with pytest.raises(Rejected) as refused:
            desk.judge(order)
        assert refused.value.sqlstate == "53300" and desk.status()["under_way"] == AT_ONCE_MAX
        desk.close()
        go_on.set()
        for each in under_way:
            assert isinstance(each.exception(60), TidemarkError)
    with pytest.raises(Unavailable):
        desk.judge(order)
