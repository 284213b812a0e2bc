"""History that is kept for longer: of the collections that say so alone, and never more than is bounded."""

from __future__ import annotations

from contextlib import closing

import pytest

from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from oracle import retention
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.errors import SnapshotTooOld
from oracle.image import dump, load
from oracle.model import CommitPart, Kept, Kind, Record, Token
from oracle.records import KEEPING, Malformed, decode_record, encode_record
from oracle.retention import kept_since
from schemas.codec import frame_version
from tests.oracle.oracle_logs import Log, fold_all, part_of


@pytest.fixture
def log() -> Log:
    found = Log()
    found.raise_format()
    for n in range(10):
        found.write("a", n, n + 1, ts=100 + 10 * n)
        found.write("b", n, n + 1, ts=100 + 10 * n)
    return found


def oldest(log: Log, collection: str) -> int:
    since = log.state.since_of(collection)
    with pytest.raises(SnapshotTooOld):
        log.state.bindings(collection).at(since - 1)
    assert log.state.bindings(collection).at(since)
    return since


def test_what_is_kept_is_told_apart_below_everybodys_since(log):
    before = {ts: log.contents("a", ts) for ts in range(120, 192)}
    log.add(Kind.COMPACT, ts=170, kept=(Kept("a", 120), Kept("never written", 0), Kept("c", 500)))
    assert (oldest(log, "a"), oldest(log, "b"), log.state.since) == (120, 170, 170)
    assert dict(log.state.kept) == {"a": 120}
    assert {ts: log.contents("a", ts) for ts in before} == before
    assert len(log.state.bound["a"].recent) == 7 and len(log.state.bound["b"].recent) == 3
    log.add(Kind.COMPACT, ts=180, kept=(Kept("a", 110),))
    assert oldest(log, "a") == 120, "what was merged is told apart no more"
    log.add(Kind.COMPACT, ts=180, kept=(Kept("a", 150),))
    assert oldest(log, "a") == 150
    assert load(dump(log.state)) == log.state and fold_all(log.entries)[0] == log.state
    log.add(Kind.COMPACT, ts=180)
    assert oldest(log, "a") == 180 and not log.state.kept and "a" in log.state.hot
    log.add(Kind.COMPACT, ts=190, kept=(Kept("b", 0),))
    assert oldest(log, "b") == 180, "it begins where it was said"
    log.add(Kind.FORGET, names=("b",))
    assert not log.state.kept


def test_older_code_beside_us_is_told_nothing_of_it():
    record = Record(Token("w", 1, 1), 0, Kind.COMPACT, ts=5, kept=(Kept("a", 3),))
    with pytest.raises(ValueError, match="version 3"):
        encode_record(record, 2)
    assert decode_record(encode_record(record, KEEPING)) == record
    log = Log()
    log.raise_format(2)
    log.write("a", 0, 1, ts=1)
    assert log.add_bytes(encode_record(record, KEEPING)).refused is not None and log.state.since == 0
    assert frame_version(dump(log.state)) == 2
    for kept in (Kept("", 3), Kept("a", -1)):
        with pytest.raises(Malformed):
            decode_record(encode_record(record._replace(kept=(kept,)), KEEPING))


def test_how_much_is_kept_is_bounded(log, monkeypatch):
    state, last = log.state, log.state.last_ts
    assert kept_since(state, {"a": 60, "b": 30, "c": 10_000}, 30) == (Kept("a", last - 60),)
    assert kept_since(state, {"a": 10_000}, 30) == (Kept("a", 0),)
    monkeypatch.setattr(retention, "RUNS_MAX", 3)
    [kept] = kept_since(state, {"a": 10_000}, 30)
    log.add(Kind.COMPACT, ts=last - 30, kept=(kept,))
    assert [each.ts for each in log.state.bound["a"].recent if each.ts <= last - 30] == [140, 150, 160]
    monkeypatch.setattr(retention, "ALL_RUNS_MAX", 4)
    assert [k.since for k in kept_since(state, {"b": 10_000, "a": 10_000}, 30)] == [130, 151]


def test_a_checkpoint_keeps_what_it_is_told_to_and_raises_the_format_for_it():
    topic, store = MemoryTopic(), MemoryCheckpointStore()

    def opened():
        return Oracle.over(lambda: MemoryTransport(topic), Checkpoints(store, "id"), "t", lambda: 0, now_ms=lambda: 1)

    with closing(opened()) as one:
        for n in range(10):
            one.commit(part_of("a", n, n + 1, proposed_ts=100 + 10 * n)).result(30)
        one.checkpoint(CheckpointPolicy(80, 0))
        assert one.state.record_version == 1 and one.state.since_of("a") == 110
        one.checkpoint(CheckpointPolicy(20, 0), {"a": 60})
        assert one.state.record_version == KEEPING and (one.state.since, one.state.since_of("a")) == (170, 130)
        with closing(opened()) as other:
            assert other.state == one.state
        one.commit(CommitPart("p", proposed_ts=300)).result(30)
        one.checkpoint(CheckpointPolicy(20, 0))
        assert one.state.since_of("a") == one.state.since == 280
