"""What a writer of rows asks of Kafka, without one."""

from __future__ import annotations

from collection import writer
from journal import clients
from judge.live.gaps import SLOW

FETCH_WAIT_S = 0.1
"""``replica.fetch.wait.max.ms`` of the fleet's brokers."""


def test_the_leader_of_rows_is_given_longer_than_a_slow_network_takes(monkeypatch) -> None:
    """A follower confirms a record by its next fetch: one that was under way, the record's way there, the next one's
    way back.  And the leader must be able to say that nobody did before the connection is given up."""
    asked: dict[str, object] = {}
    monkeypatch.setattr(clients, "Producer", asked.update)
    writer._make_producer("nowhere:1")
    leg_s = SLOW.delay_s + SLOW.jitter_s
    assert asked["request.timeout.ms"] > 1000 * (4 * leg_s + FETCH_WAIT_S)
    assert asked["request.timeout.ms"] < clients.SOCKET_TIMEOUT_MS
    assert not asked["enable.idempotence"], "with an id a record that is sent again is the same record"
