"""What a writer of rows asks of Kafka, without one."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest

from collection import writer
from collection.rows import EncodedBatch
from collection.writer import CollectionWriter
from journal import clients
from journal.names import TopicNames
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


class Shuffling:
    """A producer whose records land in another order than they were handed to it: the first was sent again."""

    def __init__(self) -> None:
        self._handed: list[tuple] = []
        self.log: list[bytes] = []
        self.keys: list[bytes | None] = []

    def produce(self, topic, value, key, on_delivery) -> None:
        self.keys.append(key)
        self._handed.append((value, on_delivery))

    def poll(self, _timeout_s: float) -> None:
        if len(self._handed) < 4:
            return
        handed, self._handed = self._handed, []
        for value, on_delivery in (*handed[1:], handed[0]):
            offset = len(self.log)
            self.log.append(value)
            place = SimpleNamespace(partition=lambda: 0, offset=lambda offset=offset: offset)
            on_delivery(None, place)

    def purge(self, blocking: bool) -> None:
        pass


@pytest.fixture
def shuffling():
    broker = Shuffling()
    checks = SimpleNamespace(good=lambda _topic: True)
    with (
        mock.patch.object(writer, "_make_producer", lambda _bootstrap: broker),
        mock.patch.object(writer, "TopicChecks", lambda *_: checks),
        mock.patch.object(writer, "leaders_of", lambda _bootstrap: SimpleNamespace()),
    ):
        rows = CollectionWriter("nowhere:1", TopicNames("env"))
        yield broker, rows
        rows.close()


def test_batches_are_told_where_each_of_them_landed(shuffling) -> None:
    """A request that is sent again comes behind the next one, and the rows of one batch were taken for another's."""
    broker, rows = shuffling
    batches = [EncodedBatch(b"%d" % n, 10 + n) for n in range(4)]
    runs = rows.write_batches("u1", batches, "moved").result(10)
    places = [offset for run in runs for offset in range(run.lower, run.upper)]
    assert broker.log != [each.value for each in batches], "or this shows nothing"
    assert [broker.log[offset] for offset in places] == [each.value for each in batches]
    assert sum(run.rows for run in runs) == sum(each.rows for each in batches)
    assert broker.keys[0] and len(set(broker.keys)) == 1, "in one partition, or each would be a move"


class Counting:
    """Answers at once, where a record is polled for."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self._told: list = []

    def produce(self, topic, value, key, on_delivery) -> None:
        self.topics.append(topic)
        self._told.append(on_delivery)

    def poll(self, _timeout_s: float) -> None:
        told, self._told = self._told, []
        for each in told:
            each(None, SimpleNamespace(partition=lambda: 0, offset=lambda: 0))

    def purge(self, blocking: bool) -> None:
        pass


def test_topics_are_shared_out_among_lanes_and_each_stays_in_its_own() -> None:
    """A broker flushes what comes by one connection one after the other: eight views were eight flushes in a row."""
    made: list[Counting] = []

    def make(_bootstrap: str) -> Counting:
        made.append(Counting())
        return made[-1]

    with (
        mock.patch.object(writer, "_make_producer", make),
        mock.patch.object(writer, "TopicChecks", lambda *_: SimpleNamespace(good=lambda _topic: True)),
        mock.patch.object(writer, "leaders_of", lambda _bootstrap: SimpleNamespace()),
    ):
        rows = CollectionWriter("nowhere:1", TopicNames("env"), lanes=4)
        try:
            for number in range(3):
                asked = [rows.write_batches(f"u{n}", [EncodedBatch(b"x", 1)], f"a{number}-{n}") for n in range(8)]
                assert [len(each.result(10)) for each in asked] == [1] * 8
        finally:
            rows.close()
    assert len(made) == 4
    assert sorted(len(set(each.topics)) for each in made) == [2, 2, 2, 2]
    assert sum(len(set(each.topics)) for each in made) == len({topic for each in made for topic in each.topics}) == 8
