"""A producer that was begun before the leader changed: replaced as soon as brokers agree on another, and by one that
needs nobody's permission to write.

The opinion is a script here, brokers and producers are real; three brokers that disagree for real are in tests/judge.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from journal import clients, topics
from journal.errors import Indeterminate
from journal.kafka import KafkaTransport
from journal.leaders import Agreed
from tests.journal.collecting import PATIENCE_S

pytestmark = pytest.mark.integration

NEVER_S = 600.0
"""A watchdog that does not come into it."""


class Opinion:
    """What most brokers are said to say."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._moved: Callable[[Agreed], None] = lambda agreed: None

    def follow(self, topic: str, moved: Callable[[Agreed], None]) -> Callable[[], None]:
        self._moved = moved
        return lambda: None

    def suspect(self, topic: str) -> None:
        pass

    def bootstrap(self, topic: str) -> str:
        return self._bootstrap

    def move(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._moved(Agreed((2,), bootstrap))


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def opinion(monkeypatch: pytest.MonkeyPatch, silent: str) -> Opinion:
    opinion = Opinion(silent)
    monkeypatch.setattr("journal.kafka.leaders_of", lambda bootstrap: opinion)
    return opinion


def test_an_unanswered_producer_is_replaced_when_the_leader_moved(broker: str, env_name: str, opinion: Opinion) -> None:
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    transport = KafkaTransport(broker, env_name, ack_timeout_s=NEVER_S)
    waits = transport.append(b"at the old leader")
    opinion.move(broker)
    assert isinstance(waits.exception(PATIENCE_S), Indeterminate)
    assert transport.append(b"at the new one").result(PATIENCE_S) == 0
    transport.close()


def test_one_that_began_to_wait_after_the_move_is_replaced_too(
    broker: str, env_name: str, opinion: Opinion, silent: str
) -> None:
    """Its leader moved while it was idle; it is still talking to the old one, and nobody will say "moved" again."""
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    transport = KafkaTransport(broker, env_name, ack_timeout_s=NEVER_S)
    begun = transport.append(b"begins a producer at the silent one")
    session = transport._session
    assert session is not None
    session._give_up(float("inf"), "nothing waits while the leader moves")
    assert isinstance(begun.exception(PATIENCE_S), Indeterminate)
    opinion.move(broker)
    assert transport._session is session
    waits = transport.append(b"after the move")
    assert isinstance(waits.exception(PATIENCE_S), Indeterminate)
    assert transport.append(b"at the new one").result(PATIENCE_S) == 0
    transport.close()


def test_an_append_answers_nobody_else_in_its_callers_thread(broker: str, env_name: str) -> None:
    """The bad story: a link appends under its lock, the producer is found broken, and whoever waited for that one is
    told here and now, and wants the lock."""
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    transport = KafkaTransport(broker, env_name, ack_timeout_s=NEVER_S, producer_settings={"linger.ms": 5_000})
    told_in: Future[threading.Thread] = Future()
    transport.append(b"a").add_done_callback(lambda _: told_in.set_result(threading.current_thread()))
    assert transport._session is not None
    transport._session.broken = True
    transport.append(b"b")
    assert told_in.result(PATIENCE_S) is not threading.current_thread()
    transport.close()


def test_a_producer_that_replaces_another_asks_nobody_for_an_id(
    broker: str, env_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []
    correct = clients.producer_settings

    def recorded(bootstrap: str, **override: object) -> dict[str, object]:
        settings = correct(bootstrap, **override)
        made.append(bool(settings["enable.idempotence"]))
        return settings

    monkeypatch.setattr(clients, "producer_settings", recorded)
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    # It keeps what it has for longer than the watchdog waits: a quick broker would answer before that looks.
    transport = KafkaTransport(broker, env_name, ack_timeout_s=0.0, producer_settings={"linger.ms": 5_000})
    assert transport.append(b"a").exception(PATIENCE_S) is not None
    for _ in range(2):
        before = len(made)
        deadline = time.monotonic() + PATIENCE_S
        while len(made) == before:
            transport.renew()
            assert time.monotonic() < deadline
    assert made == [True, False, False]
    transport.close()
