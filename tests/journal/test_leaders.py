"""Whose word counts about who leads, without brokers.  Those that disagree for real are in tests/judge."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from journal.kafka import patience_s
from journal.leaders import Agreed, Leaders, agreed

ADDRESSES = {1: "b1:9092", 2: "b2:9092", 3: "b3:9092"}


def test_most_of_all_brokers_must_say_so() -> None:
    assert agreed({}, ADDRESSES) is None
    assert agreed({1: (1,)}, ADDRESSES) is None  # the deposed leader alone
    assert agreed({1: (1,), 2: (2,)}, ADDRESSES) is None
    assert agreed({1: (1,), 2: (2,), 3: (2,)}, ADDRESSES) == Agreed((2,), "b2:9092,b3:9092")
    assert agreed({2: (2,), 3: (2,)}, ADDRESSES) == Agreed((2,), "b2:9092,b3:9092")
    assert agreed({1: (1,), 2: (1,)}, {1: "b1:9092", 2: "b2:9092", 3: "b3:9092", 4: "b4:9092"}) is None


def test_nobody_leads_is_no_word() -> None:
    assert agreed({1: (-1,), 2: (-1,), 3: (-1,)}, ADDRESSES) is None
    assert agreed({1: (1,), 2: (-1,), 3: (-1,)}, ADDRESSES) is None


def test_each_partition_has_a_leader_of_its_own() -> None:
    assert agreed({1: (1, 2, 3), 2: (1, 2, 2), 3: (1, 2, 2)}, ADDRESSES) == Agreed((1, 2, 2), "b2:9092,b3:9092")
    assert agreed({1: (1, 2, 3), 2: (1, -1, 3), 3: (1, -1, 3)}, ADDRESSES) is None
    assert agreed({1: (1,), 2: (1, 2)}, ADDRESSES) is None, "one has not heard of the partition that was added"


def test_a_stranger_has_no_say() -> None:
    """A client that has just connected does not know yet whom it asked (-1): nobody could begin anew there."""
    assert agreed({-1: (1,)}, {1: "b:1"}) is None
    assert agreed({1: (1,)}, {}) is None


def test_one_broker_agrees_with_itself() -> None:
    assert agreed({7: (7,)}, {7: "b:1"}) == Agreed((7,), "b:1")


def test_only_producers_that_never_had_an_answer_make_their_successors_live_longer() -> None:
    assert [patience_s(2.0, fruitless) for fruitless in range(5)] == [2.0, 4.0, 8.0, 8.0, 8.0]


class TwoAgree(Leaders):
    """Hears two of three brokers name a leader of the topic ``decided``, and none name one of any other."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._addresses = dict(ADDRESSES)
        self.decided = threading.Event()

    def _ask(self, address: str, topic: str) -> tuple[int, tuple[int, ...]] | None:
        broker = next(broker for broker, known in ADDRESSES.items() if known == address)
        return (broker, (2,)) if topic == "decided" and broker != 1 else None

    def _ask_all(self, topic: str) -> None:
        super()._ask_all(topic)
        if topic == "decided":
            self.decided.set()


def test_what_brokers_agree_on_wins_over_a_shorter_address_of_the_users() -> None:
    """The user named the one broker that was deposed: waiting for a topic without a word must not lead back there."""
    leaders = TwoAgree("b1:9092")
    unfollow = [leaders.follow(topic, lambda _: None) for topic in ("decided", "undecided")]
    try:
        assert leaders.decided.wait(10)
        assert leaders.bootstrap("decided") == "b2:9092,b3:9092"
        assert leaders.bootstrap("undecided", "decided") == "b2:9092,b3:9092"
        assert leaders.bootstrap("undecided") == leaders.bootstrap() == "b1:9092"
    finally:
        for each in unfollow:
            each()


def test_who_had_no_answer_asks_by_a_fresh_client() -> None:
    """librdkafka may have put the question to another broker, which is silent (seen: a majority found after 6 s)."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        leaders = Leaders(address)
        assert leaders._ask(address, "t") is None
        assert address not in leaders._admins


def test_a_client_that_does_not_end_keeps_nobody_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ending joins librdkafka's threads, which wait by the wall clock: for an hour where that was set back."""
    over, ended_by = threading.Event(), []

    class Silent:
        def list_topics(self, topic: str, timeout: float) -> object:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

        def __del__(self) -> None:
            ended_by.append(threading.current_thread())
            over.wait(10)

    monkeypatch.setattr("journal.leaders.clients.AdminClient", lambda settings: Silent())
    try:
        assert Leaders("b1:9092")._ask("b1:9092", "t") is None
        until(lambda: ended_by)
        assert ended_by[0] is not threading.current_thread()
    finally:
        over.set()


def test_a_question_that_never_comes_back_keeps_no_other_from_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second of librdkafka's is an hour where the clock was set back: seen with all processes told of
    another leader but the one whose clock had been thrown to and fro."""
    over, asked = threading.Event(), []

    class Hangs:
        def list_topics(self, topic: str, timeout: float) -> object:
            asked.append(topic)
            over.wait(20)
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr("journal.leaders.HANGS_S", 0.1)
    monkeypatch.setattr("journal.leaders.QUIET_EVERY_S", 0.05)
    monkeypatch.setattr("journal.leaders.clients.make_admin", lambda address: Hangs())
    leaders = Leaders("b1:9092,b2:9092,b3:9092")
    unfollow = leaders.follow("t", lambda _: None)
    try:
        until(lambda: len(asked) > 24)
    finally:
        over.set()
        unfollow()


class Cluster:
    """Brokers by script: who they say there is, and who leads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, brokers: dict[int, str], leader: int) -> None:
        self.brokers, self.leader = brokers, leader
        self.made: list[str] = []
        monkeypatch.setattr("journal.leaders.clients.make_admin", self.make_admin)

    def make_admin(self, address: str) -> SimpleNamespace:
        self.made.append(address)
        return SimpleNamespace(list_topics=lambda topic, timeout: self.answer(address, topic))

    def answer(self, address: str, topic: str) -> SimpleNamespace:
        brokers = {
            broker: SimpleNamespace(id=broker, host=known.partition(":")[0], port=int(known.partition(":")[2]))
            for broker, known in self.brokers.items()
        }
        asked = next(broker for broker, known in self.brokers.items() if known == address)
        topics = {topic: SimpleNamespace(partitions={0: SimpleNamespace(leader=self.leader)})}
        return SimpleNamespace(brokers=brokers, topics=topics, orig_broker_id=asked)


def until(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_met_one_broker_notices_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was just started, or is about to be joined by others, knows of nobody else."""
    monkeypatch.setattr("journal.leaders.ALONE_EVERY_S", 0.02)
    monkeypatch.setattr("journal.leaders.QUIET_EVERY_S", 0.02)
    cluster = Cluster(monkeypatch, {1: "b1:9092"}, leader=1)
    leaders, told = Leaders("b1:9092"), []
    unfollow = leaders.follow("t", told.append)
    try:
        until(lambda: leaders._followed["t"].agreed == Agreed((1,), "b1:9092"))
        cluster.brokers = ADDRESSES
        until(lambda: len(leaders.bootstrap("t").split(",")) >= 2)
        assert not told, "the same one leads"
        cluster.leader = 2
        until(lambda: told)
        assert told[0].leaders == (2,) and len(told[0].bootstrap.split(",")) >= 2
    finally:
        unfollow()


def test_a_follower_that_fails_keeps_nobody_from_hearing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("journal.leaders.QUIET_EVERY_S", 0.02)
    cluster = Cluster(monkeypatch, ADDRESSES, leader=1)
    leaders, told = Leaders("b1:9092"), []

    def fails(_agreed: Agreed) -> None:
        raise RuntimeError("a follower's mistake")

    unfollow = [leaders.follow("t", each) for each in (fails, told.append)]
    try:
        until(lambda: leaders._followed["t"].agreed)
        for leader in (2, 3):
            cluster.leader = leader
            until(lambda leader=leader: told and told[-1].leaders == (leader,))
    finally:
        for each in unfollow:
            each()


def test_one_client_is_made_for_a_broker_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, ADDRESSES, leader=1)
    together = threading.Barrier(2)

    def make_admin(address: str) -> SimpleNamespace:
        try:
            together.wait(0.2)
        except threading.BrokenBarrierError:
            pass  # nobody else is making one
        return cluster.make_admin(address)

    monkeypatch.setattr("journal.leaders.clients.make_admin", make_admin)
    leaders = Leaders("b1:9092")
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(lambda _: leaders._ask("b1:9092", "t"), range(2))) == {(1, (1,))}
    assert cluster.made == ["b1:9092"]
