"""Losing a leader on three brokers: how long nobody can write, also where it goes on answering its clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from journal.names import TopicNames
from judge.live import gaps, network
from judge.live.brokers import KafkaCluster
from judge.live.gaps import Writer

REFUSAL = network.permitted()
pytestmark = [
    pytest.mark.skipif(REFUSAL is not None, reason=str(REFUSAL)),
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.long,
]

GAP_MAX_S = 5.0


@pytest.fixture(scope="module")
def cluster(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with gaps.brokers(tmp_path_factory.mktemp("brokers")) as made:
        yield made


@pytest.fixture(scope="module")
def writers(cluster: KafkaCluster) -> Iterator[list[Writer]]:
    with gaps.writers(cluster.bootstrap, TopicNames("failover")) as found:
        yield found


@pytest.mark.parametrize("way", gaps.WAYS)
def test_a_lost_leader_stops_nobody_for_long(cluster: KafkaCluster, writers: list[Writer], way: str) -> None:
    """Before brokers were asked who leads, 8 to 14 s for all ways but a kill: as long as the leader stays lost."""
    catalog = writers[0]
    result = gaps.measure(cluster, writers, way, catalog)
    assert "catalog" in result["led"]
    assert max(result["gaps"].values()) < GAP_MAX_S, result
    assert all(writer.errors == [] for writer in writers)
