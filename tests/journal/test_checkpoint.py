"""Only a complete, undamaged, newest checkpoint is ever loaded."""

from __future__ import annotations

import uuid

import pytest

from journal import topics
from journal.checkpoint import PIECE_BYTES, CheckpointStore, StoreOver
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from schemas import codec


def pieces(topic: MemoryTopic, from_offset: int = 0) -> list[bytes]:
    return [entry.value for entry in topic.read(max(from_offset, topic.start))]


def copy(values: list[bytes]) -> MemoryCheckpointStore:
    topic = MemoryTopic()
    for value in values:
        topic.append(value)
    return MemoryCheckpointStore(topic)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest) -> StoreOver:
    if request.param == "memory":
        return MemoryCheckpointStore()
    bootstrap, topic = request.getfixturevalue("broker"), f"checkpoints-{uuid.uuid4().hex[:10]}"
    topics.ensure_topic(bootstrap, topics.journal_spec(topic, 1))
    return CheckpointStore(bootstrap, topic)


def test_nothing_saved_nothing_loaded(store: StoreOver) -> None:
    assert store.load() is None


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 17])
def test_what_was_saved_is_loaded(store: StoreOver, size: int) -> None:
    state = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    store.save(42, state[:size])
    assert store.load() == (42, state[:size])


def test_the_newest_by_journal_offset_wins_and_old_ones_go(store: StoreOver) -> None:
    for offset in (10, 30, 20, 40):
        store.save(offset, b"state at %d" % offset)
    assert store.load() == (40, b"state at 40")


def test_the_topic_does_not_grow_without_end() -> None:
    store = MemoryCheckpointStore()
    for offset in range(20):
        store.save(offset, b"x" * PIECE_BYTES)
    assert store.topic.end - store.topic.start == 2


def test_an_incomplete_one_is_not_taken() -> None:
    old, new = MemoryCheckpointStore(), MemoryCheckpointStore()
    old.save(1, b"old")
    new.save(2, b"n" * (3 * PIECE_BYTES))
    whole = pieces(new.topic)
    for left_out in range(len(whole)):
        torn = whole[:left_out] + whole[left_out + 1 :]
        assert copy(pieces(old.topic) + torn).load() == (1, b"old")
    assert copy(pieces(old.topic) + whole[::-1] + whole).load() == (2, b"n" * (3 * PIECE_BYTES))


def test_a_damaged_one_is_not_taken() -> None:
    store = MemoryCheckpointStore()
    store.save(1, b"old")
    piece = codec.decode("checkpoint_chunk", pieces(store.topic)[0])
    damaged = piece | {"checkpoint_id": "other", "journal_offset": 9, "payload": b"OLD"}
    longer = piece | {"checkpoint_id": "another", "journal_offset": 9, "payload": b"older"}
    for hostile in (codec.encode("checkpoint_chunk", damaged), codec.encode("checkpoint_chunk", longer), b"junk", b""):
        assert copy([*pieces(store.topic), hostile]).load() == (1, b"old")


def test_two_writers_at_once_both_succeed() -> None:
    topic = MemoryTopic()
    one, two = MemoryCheckpointStore(), MemoryCheckpointStore()
    one.save(5, b"a" * (2 * PIECE_BYTES))
    two.save(6, b"b" * (2 * PIECE_BYTES))
    for pair in zip(pieces(one.topic), pieces(two.topic), strict=True):
        for value in pair:
            topic.append(value)
    assert MemoryCheckpointStore(topic).load() == (6, b"b" * (2 * PIECE_BYTES))


def test_a_save_that_cut_what_was_being_loaded_is_survived() -> None:
    topic = MemoryTopic()
    MemoryCheckpointStore(topic).save(1, b"first")

    class Overtaken(MemoryTransport):
        raced = False

        def bounds(self) -> tuple[int, int]:
            bounds = super().bounds()
            if not Overtaken.raced:
                Overtaken.raced = True
                for offset in (2, 3, 4):
                    MemoryCheckpointStore(topic).save(offset, b"state at %d" % offset)
            return bounds

    assert StoreOver(lambda: Overtaken(topic)).load() == (4, b"state at 4")
