"""Every implementation of a transport, for the one suite that they all pass."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from journal import topics
from journal.api import Transport
from journal.kafka import KafkaTransport
from journal.memory import MemoryTopic, MemoryTransport
from journal.unreliable import UnreliableTransport

# A busy machine is no failure: an example may take long.
settings.register_profile("tidemark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidemark")

SEED = 20_261


@pytest.fixture(params=["memory", "unreliable", pytest.param("kafka", marks=pytest.mark.integration)])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[[], Transport]]:
    """Connects to one new topic, any number of times."""
    opened: list[Transport] = []
    if request.param == "kafka":
        bootstrap, topic = request.getfixturevalue("broker"), f"transport-{uuid.uuid4().hex[:10]}"
        topics.ensure_topic(bootstrap, topics.journal_spec(topic, 1))
    else:
        memory = MemoryTopic()

    def make() -> Transport:
        if request.param == "kafka":
            transport: Transport = KafkaTransport(bootstrap, topic)
        else:
            transport = MemoryTransport(memory)
            if request.param == "unreliable":
                transport = UnreliableTransport(transport, SEED + len(opened))
        opened.append(transport)
        return transport

    yield make
    for transport in opened:
        transport.close()
