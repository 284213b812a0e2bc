"""Whose word counts about who leads, without brokers.  Those that disagree for real are in tests/judge."""

from __future__ import annotations

import socket
import threading

from journal.kafka import patience_s
from journal.leaders import Agreed, Leaders, agreed

ADDRESSES = {1: "b1:9092", 2: "b2:9092", 3: "b3:9092"}


def test_most_of_all_brokers_must_say_so() -> None:
    assert agreed({}, ADDRESSES) is None
    assert agreed({1: 1}, ADDRESSES) is None  # the deposed leader alone
    assert agreed({1: 1, 2: 2}, ADDRESSES) is None
    assert agreed({1: 1, 2: 2, 3: 2}, ADDRESSES) == Agreed(2, "b2:9092,b3:9092")
    assert agreed({2: 2, 3: 2}, ADDRESSES) == Agreed(2, "b2:9092,b3:9092")
    assert agreed({1: 1, 2: 1}, {1: "b1:9092", 2: "b2:9092", 3: "b3:9092", 4: "b4:9092"}) is None


def test_nobody_leads_is_no_word() -> None:
    assert agreed({1: -1, 2: -1, 3: -1}, ADDRESSES) is None
    assert agreed({1: 1, 2: -1, 3: -1}, ADDRESSES) is None


def test_a_stranger_has_no_say() -> None:
    """A client that has just connected does not know yet whom it asked (-1): nobody could begin anew there."""
    assert agreed({-1: 1}, {1: "b:1"}) is None
    assert agreed({1: 1}, {}) is None


def test_one_broker_agrees_with_itself() -> None:
    assert agreed({7: 7}, {7: "b:1"}) == Agreed(7, "b:1")


def test_only_producers_that_never_had_an_answer_make_their_successors_live_longer() -> None:
    assert [patience_s(2.0, fruitless) for fruitless in range(5)] == [2.0, 4.0, 8.0, 8.0, 8.0]


class TwoAgree(Leaders):
    """Hears two of three brokers name a leader of the topic ``decided``, and none name one of any other."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._addresses = dict(ADDRESSES)
        self.decided = threading.Event()

    def _ask(self, address: str, topic: str) -> tuple[int, int] | None:
        broker = next(broker for broker, known in ADDRESSES.items() if known == address)
        return (broker, 2) if topic == "decided" and broker != 1 else None

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
