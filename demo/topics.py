"""The demo's own topics, as a plain user of Kafka makes and asks them."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

NEW_TOPIC_S = 15.0
"""How long a topic may be made and not known of everywhere: brokers hear of it one after the other."""
ASK_AGAIN_S = 0.05
"""No event tells a client that a broker has heard of a topic."""

_NOT_YET = (
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
)


def ensure_topic(bootstrap: str, topic: str, config: dict[str, str] | None = None) -> None:
    """Make ``topic`` with one partition unless it is there."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    if topic in admin.list_topics(timeout=15).topics:
        return
    for made in admin.create_topics([NewTopic(topic, 1, -1, config=config or {})], request_timeout=15).values():
        made.result(timeout=30)


def end_offset(consumer: Consumer, topic: str) -> int:
    """How many records ``topic``, which was made, holds.  A ``KafkaException`` where nobody says so."""
    deadline = time.monotonic() + NEW_TOPIC_S
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=15)[1]
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET or time.monotonic() >= deadline:
                raise
        time.sleep(ASK_AGAIN_S)
