"""Clients that lose their brokers for good, which librdkafka's may: what asks is made anew, what reads is found out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from embedded.ports import free_ports
from journal import clients, topics
from journal.errors import Unavailable
from journal.kafka import KafkaTransport
from journal.lasting import Lasting, forsaken
from journal.topic_ids import TopicIds
from tests.journal.collecting import Collector


class Mute:
    """A client that hears of no broker: what it asks is never sent."""

    def __init__(self, heard: list[str]) -> None:
        self._heard = heard

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object:
        self._heard.append(f"list_topics {timeout:g}")
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))


def test_who_is_not_answered_is_replaced_once_whoever_notices_it() -> None:
    made: list[object] = []

    def make(_: str) -> object:
        made.append(object())
        return made[-1]

    lasting = Lasting("nowhere", make)
    first = lasting.client
    lasting.anew(first)
    lasting.anew(first)
    assert made == [first, lasting.client]


def test_a_question_goes_to_the_next_client_where_the_present_one_hears_of_nobody() -> None:
    heard: list[str] = []
    makes = iter([Mute(heard), "another"])
    lasting = Lasting("nowhere", lambda _: next(makes))

    def ask(client: object, timeout_s: float) -> str:
        return client.list_topics(timeout=timeout_s) if isinstance(client, Mute) else f"told by {client}"

    assert lasting.ask(ask) == "told by another"
    assert heard == ["list_topics 2"], "it is not given all the time there is"


def test_an_answer_that_says_no_makes_no_other_client() -> None:
    made: list[object] = []
    lasting = Lasting("nowhere", lambda _: made.append(1))

    def ask(_: object, __: float) -> None:
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no"))

    with pytest.raises(Unavailable):
        lasting.ask(ask)
    assert made == [1]


@pytest.mark.integration
def test_ids_are_told_though_the_client_lost_its_brokers(broker: str, env_name: str) -> None:
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    ids = TopicIds(Lasting(broker))
    ids._admin = Lasting(f"127.0.0.1:{free_ports(1)[0]}")  # as one that asks nobody
    ids._admin._bootstrap = broker
    assert ids.ask([env_name])()[env_name] == topics.verify_journal(broker, env_name)


@pytest.mark.integration
def test_a_client_without_brokers_is_told_from_brokers_that_are_away(broker: str, env_name: str) -> None:
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    others = Lasting(broker)
    with contextlib.closing(clients.make_consumer(nowhere)) as lost, contextlib.closing(
        clients.make_consumer(broker)
    ) as found:
        assert forsaken(lost, env_name, others)
        assert not forsaken(found, env_name, others)
        away = Lasting(nowhere)
        asked = away.client
        assert not forsaken(lost, env_name, away)
        assert away.client is not asked, "it may be the one that hears of nobody"


READERS, RESTARTS, AT_ONCE = 40, 12, 8


@pytest.mark.integration
@pytest.mark.long
def test_no_reader_stands_still_when_its_broker_is_restarted(make_broker: Callable) -> None:
    """Two of 320 restarted consumers did for good, with 200 topics more than are read and two processors busy."""
    running = make_broker()
    specs = [topics.journal_spec(f"t{n}", 1) for n in range(200 + AT_ONCE)]
    topics.ensure_topics(running.bootstrap, specs)
    transports = [KafkaTransport(running.bootstrap, f"t{n % AT_ONCE}") for n in range(READERS)]
    readers = [Collector(transport) for transport in transports]
    late: list[float] = []
    for n in range(1, RESTARTS + 1):
        running.stop()
        running.start()
        for transport in transports[:AT_ONCE]:
            transport.append(b"%d" % n).result(20)
        appended = time.monotonic()
        for reader in readers:
            reader.until(lambda c, n=n: any(entry.value == b"%d" % n for entry in c.entries), 8.0)
        late.append(round(time.monotonic() - appended, 2))
    print("seconds until all had heard:", late)
    for transport in transports:
        transport.close()
