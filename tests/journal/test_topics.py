"""Our topics are made as they must be, and one that is not is refused by name, setting, and both values."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from embedded.ports import free_ports
from journal import clients, kafka, topics
from journal.errors import FatalLog, Unavailable
from journal.kafka import KafkaTransport
from journal.lasting import Lasting
from journal.topic_ids import TopicIds
from journal.topics import journal_spec
from tests.kafka_topics import delete_topic

WRONG = {
    "cleanup.policy": "compact",
    "retention.ms": "604800000",
    "retention.bytes": "1000000",
    "unclean.leader.election.enable": "true",
    "min.insync.replicas": "2",
    "max.message.bytes": "1048588",
    "flush.messages": "1000",
}


@pytest.fixture
def name() -> str:
    return f"topic-{uuid.uuid4().hex[:10]}"


def set_config(bootstrap: str, name: str, key: str, value: str) -> None:
    """Returns once the broker shows it: what the controller has answered, a broker learns a moment later."""
    admin = clients.make_admin(bootstrap)
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    [answer] = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])]
    ).values()
    answer.result()
    deadline = time.monotonic() + 10
    while topics._actual_config(admin, bootstrap, name)[key] != value:
        assert time.monotonic() < deadline, (key, value)


def test_specs_by_replication() -> None:
    assert topics.journal_spec("x", 1).config["flush.messages"] == "1"
    assert "flush.messages" not in topics.journal_spec("x", 3).config
    assert [topics.journal_spec("x", rf).config["min.insync.replicas"] for rf in (1, 2, 3, 5)] == ["1", "2", "2", "3"]
    assert topics.queue_spec("x", 1).config["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert set(topics.journal_spec("x", 1).config) == set(WRONG)
    made = topics.journal_spec("x", 1).made_with
    assert int(made["segment.bytes"]) >= 2 * int(made["max.message.bytes"])


@pytest.mark.integration
def test_a_topic_is_made_once_and_as_it_must_be(broker: str, name: str) -> None:
    spec = topics.journal_spec(name, 1)
    assert topics.ensure_topic(broker, spec)
    assert not topics.ensure_topic(broker, spec)
    topics.verify_topic(broker, spec)
    assert topics.verify_journal(broker, name)
    assert topics._actual_config(clients.make_admin(broker), broker, name)["segment.bytes"] == str(16 << 20)
    set_config(broker, name, "segment.bytes", str(1 << 30))
    topics.verify_topic(broker, spec)  # as one that was made before, or that somebody has set


@pytest.mark.integration
def test_many_may_make_it_at_once(broker: str, name: str) -> None:
    spec = topics.journal_spec(name, 1)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: topics.ensure_topic(broker, spec), range(4)))
    assert sum(made) == 1


@pytest.mark.integration
@pytest.mark.parametrize(("key", "value"), WRONG.items())
def test_each_wrong_setting_is_refused_with_both_values(broker: str, name: str, key: str, value: str) -> None:
    spec = topics.journal_spec(name, 1)
    topics.ensure_topic(broker, spec)
    set_config(broker, name, key, value)
    with pytest.raises(FatalLog) as caught:
        topics.verify_journal(broker, name)
    assert caught.value.message == (
        f"topic {name} is configured wrongly: {key} is {value!r}, expected {spec.config[key]!r}"
    )


@pytest.mark.integration
def test_the_wrong_number_of_partitions_is_refused(broker: str, name: str) -> None:
    topics.ensure_topic(broker, topics.TopicSpec(name, 2, 1, topics.journal_spec(name, 1).config))
    with pytest.raises(FatalLog, match="has 2 partitions, expected 1"):
        topics.verify_journal(broker, name)
    with pytest.raises(FatalLog, match="has 2 partitions, expected 1"):
        KafkaTransport(broker, name)


@pytest.mark.integration
def test_a_missing_topic_is_refused_and_not_made(broker: str, name: str) -> None:
    for _ in range(2):
        with pytest.raises(FatalLog, match="does not exist"):
            topics.verify_journal(broker, name)
        with pytest.raises(FatalLog, match="does not exist"):
            KafkaTransport(broker, name)


@pytest.mark.integration
def test_what_the_broker_refuses_is_said(broker: str, name: str) -> None:
    with pytest.raises(FatalLog, match="refused to create"):
        topics.ensure_topic(broker, topics.journal_spec(name, 3))  # there is one broker


@pytest.mark.integration
def test_the_topic_id_tells_a_topic_from_its_successor(broker: str, name: str) -> None:
    spec = topics.journal_spec(name, 1)
    topics.ensure_topic(broker, spec)
    first = topics.verify_journal(broker, name)
    delete_topic(broker, name)
    topics.ensure_topic(broker, spec)
    assert topics.verify_journal(broker, name) != first


def test_a_broker_that_is_away_is_one_clear_line(capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "REACH_TIMEOUT_S", 1.0)
    address = f"127.0.0.1:{free_ports(1)[0]}"
    for call in (
        lambda: KafkaTransport(address, "x", start_timeout_s=1.0),
        lambda: topics.verify_journal(address, "x"),
    ):
        with pytest.raises(Unavailable) as caught:
            call()
        assert caught.value.message == f"cannot reach kafka at {address}: no answer within 1 s"
        assert caught.value.hint
    assert capfd.readouterr() == ("", "")


class Lagging:
    """An admin client whose first answers come from a broker that has not heard of the topic yet."""

    def __init__(self, real, name: str, times: int) -> None:
        self._real, self.name, self.left = real, name, times

    def describe_topics(self, asked, **options):
        if self.left:
            self.left -= 1
            done: Future = Future()
            done.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
            return {self.name: done}
        return self._real.describe_topics(asked, **options)

    def __getattr__(self, what: str):
        return getattr(self._real, what)


@pytest.mark.integration
def test_a_broker_that_lags_behind_the_others_is_asked_again(broker: str, name: str, monkeypatch) -> None:
    """Among several brokers the one that answers may be milliseconds behind the one that said the topic is made."""
    topics.ensure_topic(broker, topics.journal_spec(name, 1))
    make = clients.make_admin
    lagging: list[Lagging] = []

    def make_admin(bootstrap: str) -> Lagging:
        lagging.append(Lagging(make(bootstrap), name, 3))
        return lagging[-1]

    monkeypatch.setattr(clients, "make_admin", make_admin)
    assert topics.verify_journal(broker, name)
    assert lagging[0].left == 0


class Behind:
    """As :class:`Lagging`, for any request that asks for ``name``: ``method`` fails so, ``times`` times."""

    def __init__(self, real, method: str, times: int, failure: Callable[[object], object]) -> None:
        self._real, self._method, self.left, self._failure = real, method, times, failure

    def __getattr__(self, what: str):
        found = getattr(self._real, what)
        if what != self._method or not self.left:
            return found
        self.left -= 1
        return lambda asked, *_args, **_options: self._failure(asked)


def _unknown(_asked: object) -> object:
    raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))


def _never_known(asked: list) -> dict:
    done: Future = Future()
    done.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    return dict.fromkeys(asked, done)


@pytest.mark.integration
@pytest.mark.parametrize("method, failure", [("describe_configs", _never_known), ("list_topics", _unknown)])
def test_whatever_a_lagging_broker_is_asked_it_is_asked_again(broker: str, name: str, monkeypatch, method, failure):
    topics.ensure_topic(broker, topics.journal_spec(name, 1))
    make, made = clients.make_admin, []

    def make_admin(bootstrap: str) -> Behind:
        made.append(Behind(make(bootstrap), method, 3, failure))
        return made[-1]

    monkeypatch.setattr(clients, "make_admin", make_admin)
    topics.verify_topic(broker, topics.journal_spec(name, 1))
    assert made[0].left == 0


@pytest.mark.integration
def test_a_transport_looks_again_for_a_topic_that_its_broker_does_not_know_yet(broker: str, name: str, monkeypatch):
    topics.ensure_topic(broker, topics.journal_spec(name, 1))
    ask, left = kafka.topic_partitions, [0, 0, 0]
    monkeypatch.setattr(kafka, "topic_partitions", lambda *asked: left.pop() if left else ask(*asked))
    KafkaTransport(broker, name).close()
    assert left == []


def test_a_topic_that_stays_unknown_is_not_waited_for_long() -> None:
    began = time.monotonic()
    with pytest.raises(Unavailable, match="nknown topic"):
        clients.reach("kafka", _unknown, 60.0)
    assert time.monotonic() - began < 30


def test_a_topic_is_made_though_its_broker_was_fenced_a_moment_ago(monkeypatch) -> None:
    """A host that stood still for a second: the broker's own words, then what it says once it is heard of again."""
    fenced = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR,
                        "Unable to replicate the partition 1 time(s): All brokers are currently fenced.")  # fmt: skip
    few = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR,
                     "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be "
                     "reached because only 1 broker(s) are registered.")  # fmt: skip
    spec, asked = journal_spec("env.oracle", 1), []

    def answered(*errors):
        left = list(errors)

        def create_topics(new, request_timeout):
            asked.append([topic.topic for topic in new])
            answer: Future = Future()
            error = left.pop(0) if left else None
            answer.set_exception(KafkaException(error)) if error else answer.set_result(None)
            return {"env.oracle": answer}

        listed = SimpleNamespace(topics={})
        return SimpleNamespace(create_topics=create_topics, list_topics=lambda topic=None, timeout=0: listed)

    monkeypatch.setattr(topics, "_await_leaders", lambda *_: None)
    monkeypatch.setattr(topics.clients, "make_admin", lambda _: answered(fenced, fenced))
    assert topics.ensure_topic("nowhere:1", spec) and len(asked) == 3
    monkeypatch.setattr(topics.clients, "make_admin", lambda _: answered(few))
    with pytest.raises(FatalLog, match="refused to create"):
        topics.ensure_topic("nowhere:1", spec)
    monkeypatch.setattr(topics, "TOPIC_READY_S", 0.2)
    monkeypatch.setattr(topics.clients, "make_admin", lambda _: answered(*[fenced] * 100))
    with pytest.raises(Unavailable, match="fenced"):
        topics.ensure_topic("nowhere:1", spec)


def test_a_request_that_is_never_sent_is_made_again_long_before_its_caller_gives_up(monkeypatch) -> None:
    """librdkafka's waits for a controller that it was told of, all the time that it was given."""
    given: list[float] = []
    heard: list[str | None] = []

    def late(**kwargs) -> Future:
        """The first one waits; the next is answered."""
        given.append(kwargs["request_timeout"])
        answer: Future = Future()
        if len(given) == 1:
            answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "waiting for controller")))
        else:
            answer.set_result(SimpleNamespace(partitions=[], topic_id="id"))
        return answer

    admin = SimpleNamespace(
        create_topics=lambda new, **given: {new[0].topic: late(**given)},
        list_topics=lambda topic=None, timeout=0: heard.append(topic) or SimpleNamespace(topics={}),
        describe_topics=lambda _, **given: {"env.oracle": late(**given)},
    )
    monkeypatch.setattr(topics.clients, "make_admin", lambda _: admin)
    monkeypatch.setattr(topics, "_await_leaders", lambda *_: None)
    monkeypatch.setattr(topics, "verify_topic", lambda *_: None)
    assert topics.ensure_topic("nowhere:1", journal_spec("env.oracle", 1))
    assert len(given) == 2 and max(given) <= clients.ADMIN_TRY_S
    assert heard == [None, "env.oracle"], "the controller that was asked may be gone: who it is now is heard of first"
    given.clear()
    heard.clear()
    assert topics.verify_journal("nowhere:1", "env.oracle") == "id"
    assert len(given) == 2 and given[0] <= clients.CONTROLLER_TRY_S and given[1] <= clients.ADMIN_TRY_S
    assert heard == ["env.oracle"]
    given.clear()
    monkeypatch.setattr("journal.clients.make_admin", lambda _: admin)
    assert TopicIds(Lasting("nowhere:1")).ask(["env.oracle"])() == {"env.oracle": "id"}
    assert len(given) == 2 and given[0] <= clients.CONTROLLER_TRY_S and heard == ["env.oracle"] * 2
    assert TopicIds(Lasting("nowhere:1")).ask([])() == {}
