"""One catalog on every implementation of a transport, opened any number of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from catalog_log.bootstrap import create_environment, ensure_genesis
from catalog_log.log import CatalogLog
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from journal.unreliable import Faults, UnreliableTransport
from tests.catalog_log.histories import GENESIS

# A busy machine is no failure: an example may take long.
settings.register_profile("tidemark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidemark")

SEED = 4_711
FAULTS = Faults(0.03, 0.03, 0.03, 0.1)
"""Rare enough that the quarter of a second that each costs does not add up."""


@pytest.fixture(params=["memory", "unreliable", pytest.param("kafka", marks=pytest.mark.integration)])
def open_catalog(request: pytest.FixtureRequest, env_name: str) -> Iterator[Callable[[], CatalogLog]]:
    opened: list[CatalogLog] = []
    names = TopicNames(env_name)
    if request.param == "kafka":
        bootstrap = request.getfixturevalue("broker")
        assert create_environment(bootstrap, names, 1)
    else:
        topic, checkpoints = MemoryTopic(), MemoryCheckpointStore()
        assert ensure_genesis(MemoryTransport(topic), GENESIS, "founder")

    def make() -> CatalogLog:
        writer = f"w{len(opened)}"
        if request.param == "kafka":
            catalog = CatalogLog.open(bootstrap, names, writer)
        else:
            transport = MemoryTransport(topic)
            if request.param == "unreliable":
                transport = UnreliableTransport(transport, SEED + len(opened), FAULTS)
            catalog = CatalogLog.attach(transport, GENESIS, writer, checkpoints)
        opened.append(catalog)
        return catalog

    yield make
    for catalog in opened:
        catalog.close()
