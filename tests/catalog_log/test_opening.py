"""A catalog that is not the right one, or not whole, is refused at open with the values that disagree (DESIGN §3)."""

from __future__ import annotations

import dataclasses
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from catalog_log import log as log_module
from catalog_log import model
from catalog_log.bootstrap import await_environment, create_environment, ensure_genesis, fixed_topics
from catalog_log.fold import VerdictKind
from catalog_log.log import CatalogLog
from catalog_log.model import Genesis
from catalog_log.records import (
    FORMAT_VERSION,
    ITEM_VERSION_MAX,
    KNOWN_FORMATS,
    SCHEMA_VERSION_MAX,
    encode_proposal,
    version_max,
)
from embedded.ports import free_ports
from journal import clients, topics
from journal.errors import FatalLog, Unavailable
from journal.kafka import KafkaTransport
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from schemas import codec
from tests.catalog_log.histories import GENESIS, genesis_proposal, proposal, put_item
from tests.kafka_topics import delete_topic


def topic_with(*values: bytes) -> MemoryTopic:
    topic = MemoryTopic()
    for value in values:
        topic.append(value)
    return topic


def attach(topic: MemoryTopic, expected: Genesis = GENESIS, store: MemoryCheckpointStore | None = None) -> CatalogLog:
    return CatalogLog.attach(MemoryTransport(topic), expected, "w", store, timeout_s=20)


WHOLE = [encode_proposal(genesis_proposal()), encode_proposal(proposal(1000, 1001, put_item(1, "a")))]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"environment_id": "other"}, "'other'"), ({"topic_id": "topic-2"}, "'topic-2'")],
    ids=["environment", "topic"],
)
def test_the_genesis_of_another_catalog_is_refused(wrong: dict, named: str) -> None:
    with pytest.raises(FatalLog, match="another catalog") as caught:
        attach(topic_with(*WHOLE), dataclasses.replace(GENESIS, **wrong))
    assert named in caught.value.detail
    assert "expected" in caught.value.detail


def test_an_unknown_format_is_refused() -> None:
    newer = genesis_proposal(genesis=dataclasses.replace(GENESIS, format_version=FORMAT_VERSION + 1))
    with pytest.raises(FatalLog, match=f"format {FORMAT_VERSION + 1} is unknown"):
        attach(topic_with(encode_proposal(dataclasses.replace(newer, format_version=FORMAT_VERSION + 1))))


@pytest.mark.parametrize("values", [(), (b"junk",), (WHOLE[1],)], ids=["empty", "junk", "no genesis"])
def test_a_log_without_a_genesis_is_refused(values: tuple[bytes, ...]) -> None:
    with pytest.raises(FatalLog, match="no genesis"):
        attach(topic_with(*values))


def test_a_log_whose_beginning_was_cut_away_is_refused() -> None:
    topic = topic_with(*WHOLE)
    topic.cut(1)
    with pytest.raises(FatalLog, match="begins at offset 1, expected 0"):
        attach(topic)


def test_a_log_that_lost_its_end_is_refused() -> None:
    store = MemoryCheckpointStore()
    whole = attach(topic_with(*WHOLE), store=store)
    whole.checkpoint()
    whole.close()
    with pytest.raises(FatalLog, match="ends at offset 1, but its checkpoint holds all below 2"):
        attach(topic_with(WHOLE[0]), store=store)


def test_what_a_checkpoint_holds_is_not_folded_again() -> None:
    store = MemoryCheckpointStore()
    whole = attach(topic_with(*WHOLE), store=store)
    whole.checkpoint()
    whole.close()
    unreadable_below = topic_with(b"junk", b"junk", encode_proposal(proposal(1001, 1002, put_item(2, "b"))))
    catalog = attach(unreadable_below, store=store)
    assert [i.name for i in catalog.image.objects()] == ["a", "b"]
    assert catalog.image.stats == (3, 0, 0)
    catalog.close()


def test_a_catalog_is_checkpointed_as_it_grows(monkeypatch) -> None:
    monkeypatch.setattr(log_module, "CHECKPOINT_EVERY", 3)
    store = MemoryCheckpointStore()
    catalog = attach(topic_with(*WHOLE), store=store)
    due = []
    for number in range(2, 40):
        catalog.compare_and_append(catalog.upper(), catalog.upper() + 1, [put_item(number, f"t{number}")]).result(10)
        due.append(catalog.checkpoint_due())
        if due[-1]:
            catalog.checkpoint()
            assert not catalog.checkpoint_due()
    image = catalog.image
    catalog.close()
    assert due[0] and not any(due[1:3]) and 4 < due.count(True) < 10, "the more there is, the rarer"
    catalog = attach(topic_with(*[b"junk"] * 40), store=store)
    assert store.load()[0] > 20 and not catalog.checkpoint_due(), "who begins at one does not make another"
    assert set(catalog.image.cells["items"]) <= set(image.cells["items"]) and len(catalog.image.cells["items"]) > 20
    catalog.close()


def test_the_checkpoint_of_another_catalog_is_refused() -> None:
    store = MemoryCheckpointStore()
    other = genesis_proposal(genesis=dataclasses.replace(GENESIS, topic_id="topic-2"))
    source = CatalogLog.attach(MemoryTransport(topic_with(encode_proposal(other))), other.genesis, "w", store)
    source.checkpoint()
    source.close()
    with pytest.raises(FatalLog, match="another catalog"):
        attach(topic_with(*WHOLE), store=store)


def test_an_unreadable_checkpoint_only_costs_time() -> None:
    store = MemoryCheckpointStore()
    store.save(2, b"T\xff from newer code")
    catalog = attach(topic_with(*WHOLE), store=store)
    assert catalog.image.item("u1").name == "a"
    catalog.close()


def test_junk_in_the_log_stops_nothing_and_is_shown() -> None:
    catalog = attach(topic_with(b"junk", WHOLE[0], b"", b"T\x01", WHOLE[1], b"T\x09 later"))
    assert catalog.image.item("u1").name == "a"
    assert catalog.image.stats == (2, 0, 4)
    malformed = [v for v in catalog.verdicts() if v.kind is VerdictKind.MALFORMED]
    assert [v.offset for v in malformed] == [0, 2, 3, 5]
    assert all(v.reason for v in malformed)
    catalog.close()


def test_the_genesis_is_written_once_however_many_try() -> None:
    topic = MemoryTopic()
    assert ensure_genesis(MemoryTransport(topic), GENESIS, "a")
    assert not ensure_genesis(MemoryTransport(topic), GENESIS, "b")
    assert topic.end == 1


def test_founding_over_another_catalog_is_refused() -> None:
    topic = topic_with(*WHOLE)
    with pytest.raises(FatalLog, match="another catalog"):
        ensure_genesis(MemoryTransport(topic), dataclasses.replace(GENESIS, environment_id="x"), "a")


@pytest.mark.integration
def test_an_environment_is_created_once(broker: str, env_name: str) -> None:
    names = TopicNames(env_name)
    with pytest.raises(Unavailable, match=f"no environment {env_name}"):
        await_environment(broker, names, 0, threading.Event())
    stopped = threading.Event()
    stopped.set()
    assert not await_environment(broker, names, 60, stopped)
    with ThreadPoolExecutor(1) as pool:
        awaited = pool.submit(await_environment, broker, names, 60, threading.Event())
        assert create_environment(broker, names, 1)
        assert awaited.result(), "whoever waits for it finds it when it is whole"
    CatalogLog.open(broker, names, "w").close()
    assert not create_environment(broker, names, 1)
    for spec in fixed_topics(names, 1):
        topics.verify_topic(broker, spec)


@pytest.mark.integration
def test_a_catalog_topic_made_anew_or_copied_is_refused(broker: str, env_name: str) -> None:
    names = TopicNames(env_name)
    create_environment(broker, names, 1)
    [genesis, *_] = _records(broker, names.catalog)
    delete_topic(broker, names.catalog)
    topics.ensure_topic(broker, topics.journal_spec(names.catalog, 1))
    with pytest.raises(FatalLog, match="no genesis"):
        CatalogLog.open(broker, names, "w")
    copier = KafkaTransport(broker, names.catalog)
    copier.append(genesis).result(20)
    copier.close()
    with pytest.raises(FatalLog, match="another catalog"):
        CatalogLog.open(broker, names, "w")
    with pytest.raises(FatalLog, match="another catalog"):
        create_environment(broker, names, 1)


@pytest.mark.integration
def test_an_environment_that_was_never_created_is_refused(broker: str) -> None:
    with pytest.raises(FatalLog, match="does not exist"):
        CatalogLog.open(broker, TopicNames(f"none-{uuid.uuid4().hex[:8]}"), "w")


def test_a_broker_that_is_away_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "REACH_TIMEOUT_S", 1.0)
    address = f"127.0.0.1:{free_ports(1)[0]}"
    for call in (create_environment, lambda a, n: CatalogLog.open(a, n, "w")):
        with pytest.raises(Unavailable, match=f"cannot reach kafka at {address}: no answer within"):
            call(address, TopicNames("x"))


def _records(bootstrap: str, topic: str) -> list[bytes]:
    from journal.reading import read_range

    transport = KafkaTransport(bootstrap, topic)
    try:
        return [entry.value for batch in read_range(transport, *transport.bounds()) for entry in batch]
    finally:
        transport.close()


def test_every_format_that_is_known_says_all_that_it_may_hold() -> None:
    """Who judges a log from outside asks these tables too, and a format that one of them lacks is found there."""
    assert set(SCHEMA_VERSION_MAX) == KNOWN_FORMATS == set(ITEM_VERSION_MAX)
    assert max(KNOWN_FORMATS) == FORMAT_VERSION
    for format_version in sorted(KNOWN_FORMATS)[1:]:
        assert model.collections_of(format_version) >= model.collections_of(format_version - 1)
        newest, before = (version_max(f, model.ITEMS) for f in (format_version, format_version - 1))
        assert newest >= before
    assert version_max(FORMAT_VERSION, model.ITEMS) == codec.version("item"), "today's code writes today's format"
