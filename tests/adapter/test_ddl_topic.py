"""At most once per request id, answered always: over memory, and over a real broker with several adapters."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from adapter.ddl_topic.topic import DdlTopic, answer
from adapter.execute.build import open_executor
from catalog_log.bootstrap import create_environment
from catalog_log.model import REQUESTS
from journal.clients import make_consumer, make_producer
from journal.names import TopicNames
from journal.topics import ensure_topics, queue_spec
from schemas import codec
from tests.adapter.world import World
from tests.finishing import finished
from tests.journal.muted import Makes


def request(request_id: str, sql: str, **more) -> bytes:
    return json.dumps({"request_id": request_id, "sql": sql, **more}).encode()


async def told(adapter, value, key=None) -> dict:
    return json.loads((await answer(adapter.executor, value, key))[1])


def test_a_request_delivered_again_is_answered_from_the_record_by_any_adapter():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            first = await told(a, request("r1", "create table t (a int)"))
            assert first["status"] == "ok" and first["message"] == "CREATE TABLE"
            assert a.catalog.image.get(REQUESTS, "r1").catalog_ts == first["catalog_ts"]
            assert await told(b, request("r1", "create table t (a int)")) == first
            assert await told(b, request("r1", "drop table t")) == first, "the id counts, not the text"
            assert await a.sql("show tables") == [("t",)]

    finished(story(World()))


def test_the_same_request_in_two_adapters_at_once_is_executed_once():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            for n in range(10):
                value = request(f"r{n}", f"create table t{n} (a int)")
                one, two = await asyncio.gather(told(a, value), told(b, value))
                assert one == two and one["status"] == "ok"
            assert len(await a.sql("show tables")) == 10

    finished(story(World()))


def test_errors_and_garbage_are_answered_and_change_nothing():
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create schema s")
            before = a.catalog.upper()
            for value, sqlstate in (
                (request("r1", "create tabel t"), "42601"),
                (request("r2", "select 1"), "0A000"),
                (request("r3", "drop table nope"), "42P01"),
                (request("r4", "create table x.t (a int)"), "3F000"),
                (request("r5", "create table t (a int)", database="nope"), "3D000"),
                (b"garbage", "08P01"),
            ):
                found = await told(a, value)
                assert (found["status"], found["sqlstate"]) == ("error", sqlstate)
            assert a.catalog.upper() == before
            assert (await told(a, request("r6", "create table t (a int)", schema="s")))["status"] == "ok"
            assert await a.sql("show tables from s") == [("t",)]

    finished(story(World()))


@pytest.mark.integration
def test_on_a_real_broker_two_adapters_share_the_topic(broker):
    async def story():
        names = TopicNames(f"ddl{uuid.uuid4().hex[:12]}")
        replies = f"{names.env}.replies"
        await asyncio.to_thread(create_environment, broker, names, 1)
        await asyncio.to_thread(ensure_topics, broker, [queue_spec(replies, 1)])
        async with open_executor(broker, names, "a") as one, open_executor(broker, names, "b") as two:
            topics = [DdlTopic(broker, names, each) for each in (one, two)]
            for each in topics:
                each.start()
            try:
                await asyncio.to_thread(_produce_requests, broker, names, replies)
                found = await asyncio.to_thread(_read_replies, broker, replies, 43)
            finally:
                for each in topics:
                    await each.close()
            assert {(r, a["status"]) for r, (a, _) in found.items() if r.startswith("r")} == {
                (f"r{n}", "ok") for n in range(20)
            }
            assert found["avro"][0]["status"] == "ok" and found["avro"][1] == b"7"
            assert found["bad"][0]["sqlstate"] == "42601"
            assert found[""][0]["sqlstate"] == "08P01"
            objects = {item.name for item in one._catalog.image.objects()}
            assert {f"t{n}" for n in range(20)} | {"avro"} <= objects

    finished(story())


@pytest.mark.integration
def test_a_reply_topic_that_takes_no_answer_holds_up_nobody(broker, monkeypatch):
    # Whoever waited for the missing topic would wait for longer than this test.
    monkeypatch.setattr("adapter.ddl_topic.topic.REPLY_TIMEOUT_S", 300.0)
    monkeypatch.setattr("adapter.ddl_topic.topic.REPLY_TOPIC_S", 300.0)

    async def story():
        names = TopicNames(f"ddl{uuid.uuid4().hex[:12]}")
        replies = f"{names.replies}.here"
        await asyncio.to_thread(create_environment, broker, names, 1)
        await asyncio.to_thread(ensure_topics, broker, [queue_spec(replies, 1)])
        producer = make_producer(broker)

        def send(request_id: str, sql: str, reply_to: str) -> None:
            producer.produce(names.ddl, request(request_id, sql), headers=[("reply-to", reply_to.encode())])
            assert producer.flush(30) == 0

        async with open_executor(broker, names, "a") as one:
            topic = DdlTopic(broker, names, one)
            topic.start()
            try:
                for n, where in enumerate((f"{names.env}-missing", names.catalog, names.data("u1"), names.oracle)):
                    await asyncio.to_thread(send, f"lost{n}", f"create table lost{n} (a int)", where)
                    await asyncio.wait_for(_made(one, f"lost{n}"), 60)
                await asyncio.to_thread(send, "fine", "create table fine (a int)", replies)
                found = await asyncio.to_thread(_read_replies, broker, replies, 1)
                assert found["fine"][0]["status"] == "ok"
                assert topic.unanswered == 3, "the missing topic may still come"
                image = one._catalog.image
                assert image.stats.malformed == 0, "nothing of ours was written on the catalog"
            finally:
                await topic.close()

    finished(story())


@pytest.mark.integration
def test_requests_are_read_and_answered_though_a_client_lost_its_brokers(broker, monkeypatch):
    consumers, producers = Makes(make_consumer), Makes(make_producer)
    monkeypatch.setattr("adapter.ddl_topic.topic.make_consumer", consumers)
    monkeypatch.setattr("adapter.ddl_topic.topic.make_producer", producers)

    async def story():
        names = TopicNames(f"ddl{uuid.uuid4().hex[:12]}")
        await asyncio.to_thread(create_environment, broker, names, 1)
        sender = make_producer(broker)

        async def send(name: str) -> None:
            sender.produce(names.ddl, request(name, f"create table {name} (a int)"))
            assert await asyncio.to_thread(sender.flush, 30) == 0

        async with open_executor(broker, names, "a") as one:
            topic = DdlTopic(broker, names, one)
            topic.start()
            try:
                await send("before")
                await asyncio.wait_for(_made(one, "before"), 60)
                consumers.made[0].mute()
                await send("after")
                await asyncio.wait_for(_made(one, "after"), 60)
                producers.made[1].mute()
                topic._count_lost()  # as of an answer that did not come to be there
                while len(producers.made) < 3:
                    await asyncio.sleep(0.02)
                await send("again")
                await asyncio.wait_for(_made(one, "again"), 60)
            finally:
                await topic.close()

    finished(story())


async def _made(executor, name):
    while name not in {item.name for item in executor._catalog.image.objects()}:
        await asyncio.sleep(0.02)


def _produce_requests(bootstrap, names, replies):
    producer = make_producer(bootstrap)
    headers = [("reply-to", replies.encode()), ("correlation-id", b"7")]
    values = [request(f"r{n}", f"create table t{n} (a int)") for n in range(20)] * 2
    values.append(codec.encode("ddl_request", {"request_id": "avro", "sql": "create table avro (a int)"}))
    values += [request("bad", "create"), b"\x00garbage"]
    for value in values:
        producer.produce(names.ddl, value, headers=headers)
    assert producer.flush(30) == 0


def _read_replies(bootstrap, topic, wanted) -> dict:
    """The first ``wanted`` answers by request id; a request that was sent twice has two equal ones."""
    from confluent_kafka import TopicPartition

    consumer = make_consumer(bootstrap)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[str, tuple[dict, bytes]] = {}
    count = 0
    try:
        while count < wanted:
            message = consumer.poll(60)
            assert message is not None, f"no more answers after {count}: {sorted(found)}"
            assert message.error() is None, message.error()
            value = json.loads(message.value())
            key = (message.key() or b"").decode()
            if key in found:
                assert found[key][0] == value
            found[key] = (value, dict(message.headers() or []).get("correlation-id"))
            count += 1
    finally:
        consumer.close()
    return found
