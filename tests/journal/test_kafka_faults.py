"""A broker that is slow, silent, gone for a while, or full: what readers and writers are told (DESIGN I10)."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer

from catalog_log import model, records
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.model import Setting
from journal import clients, topics
from journal.errors import FatalLog, Indeterminate, Rejected
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from tests.journal.collecting import PATIENCE_S, Collector
from tests.kafka_topics import delete_topic

pytestmark = pytest.mark.integration

NAMES = TopicNames("faults")


@pytest.fixture(scope="module", autouse=True)
def read_under_deletion(broker: str) -> Iterator[Collector]:
    """A reader whose topic is deleted when these tests begin: librdkafka takes half a minute to be sure of it, in which
    the others run."""
    topic = f"t{uuid.uuid4().hex[:10]}"
    topics.ensure_topic(broker, topics.journal_spec(topic, 1))
    transport = KafkaTransport(broker, topic)
    transport.append(b"a").result(PATIENCE_S)
    reader = Collector(transport).until(lambda c: bool(c.entries))
    assert not reader.errors
    delete_topic(broker, topic)
    yield reader
    transport.close()


def wait_for_silence(transport: KafkaTransport) -> None:
    """Until the watchdog speaks: the broker does not answer."""
    assert isinstance(transport.append(b"?").exception(PATIENCE_S), Indeterminate)


def test_a_full_queue_rejects_and_recovers(broker: str, env_name: str) -> None:
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    transport = KafkaTransport(broker, env_name, producer_settings={"queue.buffering.max.messages": 10})
    answers = [transport.append(b"%d" % i) for i in range(2000)]
    errors = [answer.exception(PATIENCE_S) for answer in answers]
    refused = [error for error in errors if error is not None]
    assert refused
    assert all(isinstance(error, Rejected) and error.sqlstate == "53400" for error in refused)
    transport.append(b"after").result(PATIENCE_S)
    reader = Collector(transport).until(lambda c: bool(c.entries) and c.entries[-1].value == b"after")
    kept = [b"%d" % i for i, error in enumerate(errors) if error is None]
    assert [entry.value for entry in reader.entries] == [*kept, b"after"]
    transport.close()


def test_what_the_broker_finds_too_large_is_rejected(broker: str, env_name: str) -> None:
    spec = topics.journal_spec(env_name, 1)
    topics.ensure_topic(broker, topics.TopicSpec(env_name, 1, 1, spec.config | {"max.message.bytes": "1000"}))
    transport = KafkaTransport(broker, env_name)
    error = transport.append(b"x" * 5000).exception(PATIENCE_S)
    assert isinstance(error, Rejected)
    assert error.sqlstate == "54000"
    transport.append(b"small").result(PATIENCE_S)
    transport.close()


class Still:
    """A consumer that waits for what never comes."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def __getattr__(self, name: str):
        return getattr(self._consumer, name)

    def poll(self, timeout_s: float) -> None:
        time.sleep(timeout_s)


def test_a_reader_that_stands_still_goes_on_with_another_consumer(
    broker: str, env_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.ensure_topic(broker, topics.journal_spec(env_name, 1))
    transport = KafkaTransport(broker, env_name)
    transport.append(b"before").result(PATIENCE_S)
    make, made = clients.make_consumer, []

    def make_consumer(*args, **kwargs):
        made.append(make(*args, **kwargs))
        return Still(made[-1]) if len(made) == 1 else made[-1]

    monkeypatch.setattr("journal.kafka_reader.QUIET_S", 0.3)
    monkeypatch.setattr("journal.kafka_reader.clients.make_consumer", make_consumer)
    reader = Collector(transport).until(lambda c: bool(c.entries))
    transport.append(b"after").result(PATIENCE_S)
    reader.until(lambda c: len(c.entries) == 2)
    assert [entry.value for entry in reader.entries] == [b"before", b"after"] and not reader.errors
    time.sleep(1)
    assert len(made) == 2, "one that only has nothing to read is left alone"
    transport.close()


@pytest.mark.slow
def test_silence_and_death_of_the_broker(
    make_broker: Callable, capfd: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture
) -> None:
    """One broker's life: silent for a moment, then killed for half a minute, then back on its data."""
    running = make_broker()
    create_environment(running.bootstrap, NAMES, 1)
    catalog = CatalogLog.open(running.bootstrap, NAMES, "writer")
    reader = CatalogLog.open(running.bootstrap, NAMES, "reader")

    def put(key: str):  # noqa: ANN202
        upper = catalog.upper()
        return catalog.compare_and_append(upper, upper + 1, [records.put(model.SETTINGS, key, Setting(key))])

    put("before").result(PATIENCE_S)

    # Silent, for longer than the watchdog and shorter than settling: the writer settles, and learns the truth.
    os.kill(running.pid, signal.SIGSTOP)
    hanging = put("silence")
    wait_for_silence(catalog.journal.transport)
    assert not hanging.done()
    os.kill(running.pid, signal.SIGCONT)
    assert hanging.result(PATIENCE_S).image.get(model.SETTINGS, "silence") == Setting("silence")

    def told() -> tuple[int, int]:
        said = [r.getMessage() for r in caplog.records if r.name == "journal.kafka_reader"]
        return said.count("no broker answers; waiting"), said.count("the broker is back")

    def wait_until_told_back() -> None:
        """A reader that noticed says that it is over, sooner or later: which notices what depends on the machine."""
        deadline = time.monotonic() + PATIENCE_S
        while told()[0] != told()[1]:
            assert time.monotonic() < deadline, told()
            time.sleep(0.02)

    wait_until_told_back()
    noticed = told()[0]

    # Dead, for longer than settling: the writer is told that nobody knows, and when.
    os.kill(running.pid, signal.SIGKILL)
    running.wait_gone()
    died = time.monotonic()
    lost = put("death")
    error = lost.exception(PATIENCE_S)
    assert isinstance(error, Indeterminate)
    assert 14 <= time.monotonic() - died < 25
    time.sleep(max(0.0, 30 - (time.monotonic() - died)))  # the outage itself: half a minute by definition
    deadline = time.monotonic() + PATIENCE_S
    while told()[0] - told()[1] < 2 - noticed:  # to one that was back just before it is the same outage
        assert time.monotonic() < deadline, f"each of the two readers says so, sooner or later: {told()}"
        time.sleep(0.02)
    lost_it = told()[0]
    assert lost_it - noticed <= 4, "once: one that noticed the silence late may have said that as well"
    running.start()

    # Back: both go on where they were, without being opened again.
    deadline = time.monotonic() + PATIENCE_S
    while True:
        after = put("after")
        if after.exception(PATIENCE_S) is None:
            break
        assert time.monotonic() < deadline, after.exception()
    seen = reader.when_upper(catalog.upper(), PATIENCE_S).result(PATIENCE_S)
    assert seen == catalog.image
    assert {k for k, _ in seen.all(model.SETTINGS)} >= {"before", "silence", "after"}
    assert reader.failed is catalog.failed is None
    wait_until_told_back()
    reader.close()
    catalog.close()
    said = "".join(capfd.readouterr())
    assert "rdkafka" not in said
    assert "thrd:" not in said


def test_a_topic_that_is_deleted_under_a_reader_is_a_fatal_error(read_under_deletion: Collector) -> None:
    """The last of the module's, so that the wait is over."""
    read_under_deletion.until(lambda c: bool(c.errors), timeout_s=100)
    assert isinstance(read_under_deletion.errors[0], FatalLog)
