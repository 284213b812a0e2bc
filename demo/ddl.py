"""DDL by a plain Kafka producer: a request on ``<env>.ddl``, its answer on a topic of our own.

A request that got no answer is sent again *with the same id*: it is executed at most once however often it arrives.
"""

from __future__ import annotations

import json
import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition

from demo.topics import end_offset, ensure_topic
from journal.errors import Unavailable

ANSWER_TIMEOUT_S = 90.0
"""Longer than a broker's or an adapter's restart with all its retries."""
RESEND_AFTER_S = 10.0


class DdlClient:
    """Sends statements and waits for their answers, one after the other."""

    def __init__(self, bootstrap: str, ddl_topic: str, reply_topic: str) -> None:
        self._ddl_topic, self._reply_topic = ddl_topic, reply_topic
        ensure_topic(bootstrap, reply_topic, {"retention.ms": str(24 * 3600 * 1000)})
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 2})
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "log_level": 2}
        )
        self._consumer.assign([TopicPartition(reply_topic, 0, end_offset(self._consumer, reply_topic))])

    def execute(self, sql: str) -> dict:
        """The answer: ``status`` (ok or error), ``catalog_ts``, ``sqlstate``, ``message``.

        Raises ``Unavailable`` where none came.
        """
        request_id = f"demo-{uuid.uuid4()}"
        value = json.dumps({"request_id": request_id, "sql": sql}).encode()
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        resend_at = 0.0
        while time.monotonic() < deadline:
            if time.monotonic() >= resend_at:
                headers = [("reply-to", self._reply_topic.encode()), ("correlation-id", request_id.encode())]
                self._producer.produce(self._ddl_topic, value, key=request_id, headers=headers)
                self._producer.poll(0)
                resend_at = time.monotonic() + RESEND_AFTER_S
            # A consumer's poll also sends nothing: the producer has a thread of its own for that.
            message = self._consumer.poll(0.2)
            if message is None or message.error():
                continue
            try:
                answer = json.loads(message.value())
            except ValueError:
                continue
            if isinstance(answer, dict) and answer.get("request_id") == request_id:
                return answer
        raise Unavailable(f"no answer to a DDL request within {ANSWER_TIMEOUT_S:.0f} s", detail=sql[:200])

    def close(self) -> None:
        self._consumer.close()
        self._producer.flush(5)
