"""The limit that our journals are held against: one Kafka record produced with acks=all and consumed again.

Nothing of Tidemark is in here.  The settings are those that gave the lowest latency (no linger, no Nagle), on a topic
with the same rules as ours.
"""

from __future__ import annotations

import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

WAIT_S_MAX = 10.0
"""A round trip that takes longer is a broken broker, not a slow one."""


class RawAppend:
    """Produce a record of ``size`` bytes, wait until the broker has it on its disk; one at a time."""

    def __init__(self, bootstrap: str, size: int = 200) -> None:
        self._topic = f"bench.raw.{uuid.uuid4().hex[:8]}"
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        rules = {"retention.ms": "-1", "retention.bytes": "-1", "flush.messages": "1"}
        for future in self._admin.create_topics([NewTopic(self._topic, 1, 1, config=rules)]).values():
            future.result(WAIT_S_MAX)
        self._common = {"bootstrap.servers": bootstrap, "socket.nagle.disable": True, "log_level": 2}
        self._producer = Producer(self._common | {"acks": "all", "enable.idempotence": True, "linger.ms": 0})
        self._payload = b"x" * size

    def once(self) -> float:
        """Seconds from before produce until it was acknowledged."""
        begun = time.perf_counter()
        self._producer.produce(self._topic, self._payload)
        if self._producer.flush(WAIT_S_MAX):
            raise TimeoutError(f"no acknowledgement within {WAIT_S_MAX:.0f} s")
        return time.perf_counter() - begun

    def close(self) -> None:
        self._producer.flush(WAIT_S_MAX)
        for future in self._admin.delete_topics([self._topic]).values():
            future.result(WAIT_S_MAX)


class RawRoundTrip(RawAppend):
    """The same, until a consumer has the record."""

    def __init__(self, bootstrap: str, size: int = 200) -> None:
        super().__init__(bootstrap, size)
        self._consumer = Consumer(
            self._common
            | {
                "group.id": self._topic,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])

    def once(self) -> float:
        """Seconds from before produce until the same record was consumed."""
        begun = time.perf_counter()
        self._producer.produce(self._topic, self._payload)
        self._producer.poll(0)
        while True:
            message = self._consumer.poll(WAIT_S_MAX)
            if message is None:
                raise TimeoutError(f"no record back within {WAIT_S_MAX:.0f} s")
            if message.error() is None:
                self._producer.poll(0)
                return time.perf_counter() - begun

    def close(self) -> None:
        self._consumer.close()
        super().close()
