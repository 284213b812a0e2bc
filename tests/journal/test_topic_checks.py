"""Whether the topics that are written are as they must be; on a real broker: ``tests/collection/test_topics.py``."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace

from confluent_kafka import KafkaError, KafkaException

from journal import clients, topic_checks
from journal.names import TopicNames
from journal.topics import data_spec


def test_a_controller_that_does_not_answer_is_not_asked_again_before_it_is_known_who_it_is(monkeypatch) -> None:
    """A client that waits for a broker that is away knocks at it without a pause, for as long as it is given."""
    names, given, heard = TopicNames("env"), [], threading.Event()

    def answer(value: object, request_timeout: float) -> Future:
        given.append(request_timeout)
        told: Future = Future()
        if heard.is_set():
            told.set_result(value)
        else:
            told.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "Timed out waiting for controller")))
        return told

    topic = names.data("u1")
    described = SimpleNamespace(partitions=[SimpleNamespace(replicas=[1])])
    config = {key: SimpleNamespace(value=value) for key, value in data_spec(topic, 1).config.items()}
    admin = SimpleNamespace(
        describe_topics=lambda _, **given: {t: answer(described, **given) for t in (topic, names.catalog)},
        describe_configs=lambda _, **given: {topic: answer(config, **given)},
        list_topics=lambda asked, timeout: heard.set(),
    )
    monkeypatch.setattr(clients, "make_admin", lambda _: admin)
    checks = topic_checks.TopicChecks("nowhere:1", names)
    assert checks.check(topic).result(10) is None and not checks.good(topic), "nobody could tell"
    assert heard.wait(10)
    assert checks.check(topic).result(10) is None and checks.good(topic)
    assert max(given) <= clients.ADMIN_TRY_S
