"""Users' topics, written and read by workloads themselves: what brokers acknowledged, and all that is committed there.

Promises: every wait ends within ``OP_TIMEOUT_S``.  A message that was acknowledged has its partition and offset; where
one was not, nobody knows of any of its batch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, Producer, TopicPartition

from journal.clients import common_settings, make_consumer
from judge.workloads.api import OP_TIMEOUT_S, Failed, Unknown

DELIVERY_TIMEOUT_S = OP_TIMEOUT_S - 5
"""After that a producer gives a message up; it may be in the topic all the same."""

READ_TIMEOUT_S = OP_TIMEOUT_S - 10
"""For reading all of a topic: some thousand short messages, which is a second at most where its brokers answer."""

POLL_S = 0.5
AT_ONCE = 10_000


class Sent(NamedTuple):
    """A message to write."""

    partition: int
    key: bytes
    value: bytes | None
    name: str
    """What tells it from all others: the header :data:`NAME` has it, also where there is no value."""


class Taken(NamedTuple):
    """A message as it is in a topic."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


NAME = "judge-name"


class Writer:
    """For one client at a time; close it."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._producer: Producer | None = None

    def send(self, topic: str, messages: Sequence[Sent]) -> list[list[int]]:
        """``[partition, offset]`` of each.  Raises ``Unknown``: each of them may be there, or come later."""
        if self._producer is None:
            self._producer = Producer({
                **common_settings(self._kafka), "acks": "all", "enable.idempotence": True, "linger.ms": 0,
                "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
            })  # fmt: skip
        places: dict[int, list[int]] = {}
        errors: list[KafkaError] = []

        def told(number: int):
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    places[number] = [message.partition(), message.offset()]

            return delivered

        try:
            for number, (partition, key, value, name) in enumerate(messages):
                self._producer.produce(topic, value, key, partition, told(number), headers=[(NAME, name.encode())])
        except (BufferError, KafkaException) as error:  # some of them may be on their way
            self.close()
            raise Unknown(type(error).__name__, str(error)) from error
        left = self._producer.flush(OP_TIMEOUT_S)
        if left or errors:
            self.close()  # it may know no broker any more, for good
            said = errors[0].str() if errors else f"{left} messages were not answered"
            raise Unknown(errors[0].name() if errors else "TimedOut", said)
        return [places[number] for number in range(len(messages))]

    def close(self) -> None:
        if self._producer is not None:
            # What is still under way belongs to an unknown outcome: it must not outlive its client by much.
            self._producer.purge()
            self._producer.flush(1)
            self._producer = None


def read_all(kafka: str, topic: str, timeout_s: float = READ_TIMEOUT_S) -> dict[int, list[Taken]]:
    """What is committed in each partition of ``topic``, in the order of its offsets.  Raises ``Failed``.

    A leader that was deposed and does not know it tells of less for a while, as it does to any consumer.
    """
    until = time.monotonic() + timeout_s
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    with closing(make_consumer(kafka, **settings)) as consumer:
        try:
            told = consumer.list_topics(topic, timeout_s / 2).topics[topic]
            if told.error is not None:
                raise Failed(told.error.name(), told.error.str())
            found: dict[int, list[Taken]] = {number: [] for number in sorted(told.partitions)}
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in found])
            ended: set[int] = set()
            while len(ended) < len(found):
                if time.monotonic() > until:
                    raise Failed("TimedOut", f"topic {topic} was not read to its end within {timeout_s:g} s")
                first = consumer.poll(POLL_S)  # who asks for many waits for as many
                for message in () if first is None else (first, *consumer.consume(AT_ONCE, 0)):
                    error = message.error()
                    if error is None:
                        headers = dict(message.headers() or ())
                        taken = Taken(message.offset(), message.key(), message.value(), headers)
                        found[message.partition()].append(taken)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
                    # Anything else is a broker being away, which librdkafka overcomes by itself.
            return found
        except KafkaException as error:
            raise Failed(error.args[0].name(), error.args[0].str()) from error
