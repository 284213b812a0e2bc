"""DDL by any Kafka producer: a request id is executed at most once, however often it is sent.

The same request is sent twice on purpose, again when no answer comes, and again much later; every answer to an id must
be the same one, and the log must hold the id once.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import count

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from journal.clients import common_settings
from journal.names import TopicNames
from judge.workloads.api import OP_TIMEOUT_S, Failed, Invocation, Unknown, World
from judge.workloads.log_client import create_topic

AGAIN_SHARE = 0.15
"""Requests that were sent before and are sent again, as operations of their own."""

TWICE_SHARE = 0.3
"""Of the operations: those that produce their request twice at once."""

REMEMBERED = 20
"""How far back an old request is taken from."""

TABLE_EVERY = 10

RESEND_S = 8.0
"""Without an answer for so long, the request is sent again: an adapter that died has left the group by then (10 s
session timeout, of which some was over), and there is time left for the answer."""

POLL_S = 0.5

SETTLED_CLASSES = ("22", "23", "2B", "3D", "3F", "42", "0A", "54")
"""Answers that judge the statement itself, and would be the same again.  Others (nobody there, a conflict) may be
followed by a success: a request whose adapter dies before it commits its offset is executed by the next one."""


def reply_topic(world: World) -> str:
    return f"{world.env}.replies.judge"


class Requests:
    name = "requests"
    clients = 2
    clients_quick = 2
    rate = 1.0
    rate_quick = 1.5

    def setup(self, world: World) -> None:
        create_topic(world, reply_topic(world), 1)

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        sent: list[dict] = []
        for number in count():
            while sent and rng.random() < AGAIN_SHARE:
                yield Invocation("request", {**rng.choice(sent[-REMEMBERED:]), "copies": 1})
            name = f"rq_{worker}_{number}"
            sql = (
                f"CREATE TABLE {name} (a int NOT NULL)" if number % TABLE_EVERY == 0 else
                f"CREATE VIEW {name} AS SELECT {number} AS a"
            )  # fmt: skip
            request = {"id": f"{worker}-{number}", "sql": sql, "name": name}
            sent = [*sent, request][-REMEMBERED:]
            yield Invocation("request", {**request, "copies": 2 if rng.random() < TWICE_SHARE else 1})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return []

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The same request again, which is executed only if it was not: its answer says so.  Where nothing is unknown
        the log, which is recorded, is what shows requests."""
        return [] if unknown is None else [Invocation("request", {**unknown.value, "copies": 1})]

    def open(self, world: World, worker: int, life: int) -> RequestsClient:
        return RequestsClient(world)


class RequestsClient:
    """A producer of requests, and a reader of the reply topic from where it ended when this client began."""

    node = "ddl"

    def __init__(self, world: World) -> None:
        self._topic = TopicNames(world.env).ddl
        self._replies = reply_topic(world)
        self._producer = Producer(
            {
                **common_settings(world.kafka),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "delivery.timeout.ms": int((OP_TIMEOUT_S - 1) * 1000),
            }
        )
        self._consumer = Consumer(
            {**common_settings(world.kafka), "group.id": "judge-unused", "enable.auto.commit": False,
             "auto.offset.reset": "latest", "allow.auto.create.topics": False}
        )  # fmt: skip
        try:
            # Where it ends now, asked for here: an answer that comes before the first poll would be missed otherwise.
            _, end = self._consumer.get_watermark_offsets(TopicPartition(self._replies, 0), timeout=OP_TIMEOUT_S / 2)
        except KafkaException as error:
            self._consumer.close()
            raise Failed("NotConnected", str(error)) from error
        self._consumer.assign([TopicPartition(self._replies, 0, end)])

    def invoke(self, invocation: Invocation) -> dict[str, object]:
        value = invocation.value
        request_id = value["id"].encode()
        deadline = time.monotonic() + OP_TIMEOUT_S
        wanted = value.get("copies", 1)
        for _ in range(wanted):
            self._send(value)
        resend_at = time.monotonic() + RESEND_S
        replies: list[dict] = []
        while time.monotonic() < deadline:
            now = time.monotonic()
            message = self._consumer.poll(min(POLL_S, max(0.0, deadline - now)))
            self._producer.poll(0)
            if message is not None and message.error() is None and message.key() == request_id:
                replies.append(json.loads(message.value()))
                if len(replies) >= wanted:
                    break
            elif message is not None and message.error() is not None:
                if message.error().code() not in (KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN,
                                                  KafkaError._TRANSPORT, KafkaError._TIMED_OUT):  # fmt: skip
                    raise Unknown(message.error().name(), message.error().str())
            if now >= resend_at and not replies:
                self._send(value)
                wanted += 1
                resend_at = now + RESEND_S
        return judged_replies(replies)

    def _send(self, value: dict) -> None:
        body = json.dumps({"request_id": value["id"], "sql": value["sql"]}).encode()
        try:
            self._producer.produce(
                self._topic, body, key=value["id"].encode(), headers=[("reply-to", self._replies.encode())]
            )
            self._producer.poll(0)
        except (BufferError, KafkaException) as error:
            raise Unknown(type(error).__name__, str(error)) from error

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)
        self._consumer.close()


def judged_replies(replies: Sequence[dict]) -> dict[str, object]:
    """What an operation's answers come to: ``{"status", "message"}`` of the first that settles it, and under
    ``"others"`` those that say anything else.

    Raises ``Unknown`` where no answer came, or none that settles whether the request is or will be executed.
    """
    told = [
        {name: reply[name] for name in ("status", "message", "sqlstate", "catalog_ts") if reply.get(name) is not None}
        for reply in replies
    ]
    settled = [each for each in told if each["status"] == "ok" or each.get("sqlstate", "")[:2] in SETTLED_CLASSES]
    if not settled:
        last = told[-1] if told else {}
        raise Unknown(last.get("sqlstate", "TimedOut"), last.get("message", "no answer"))
    others = [each for each in settled if each != settled[0]]
    return {**settled[0], **({"others": others} if others else {})}
