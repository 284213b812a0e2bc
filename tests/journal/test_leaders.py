"""Whose word counts about who leads: the pure part.  Brokers that disagree for real are in tests/judge."""

from __future__ import annotations

from journal.kafka import patience_s
from journal.leaders import Agreed, agreed

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
