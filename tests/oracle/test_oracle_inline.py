"""Rows that commits carry: visible like any others, bounded, and moved to topics without anybody seeing it."""

from contextlib import closing
from unittest import mock

import pytest

from collection.binding import INLINE, Binding, Inline, Move, Run
from journal.errors import InvalidUsage
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from oracle import fold as fold_module
from oracle.bindings import carried
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.errors import Reason
from oracle.growing import Growing
from oracle.image import dump, load
from oracle.model import INLINE_BYTES_MAX, CommitPart, KeyRange, Kind, Record, Token, check_part
from oracle.records import GIVING_UP, RECORD_VERSIONS, decode_record, encode_record
from oracle.state import EMPTY, held_bytes
from schemas.codec import frame_version
from tests.oracle.oracle_logs import Log, fold_all, part_of, run


@pytest.fixture
def log():
    log = Log()
    log.raise_format()
    return log


@pytest.fixture
def older():
    """One in which what is at or below since may be moved; ``test_oracle_carried.py`` has what may not."""
    older = Log()
    older.raise_format(GIVING_UP)
    return older


def test_carried_rows_are_visible_from_their_timestamp_on(log):
    first = log.carry("a", b"one", ts=100).ts
    second = log.carry("a", b"two", ts=105).ts
    assert (first, second) == (100, 105)
    assert log.contents("a", 104) == [b"one"] and log.contents("a", 105) == [b"one", b"two"]
    delta = log.state.bindings("a").between(101, 106)
    assert [(each.ts, each.value, each.run.rows) for each in delta] == [(105, b"two", 3)]
    assert log.state.last_change("a") == 105


def test_rows_of_all_kinds_become_visible_together(log):
    part = part_of("a", 0, 2)._replace(inline=(Inline("a", b"x", "", 1), Inline("b", b"y", "", 1)))
    [verdict] = log.commit(part)
    assert log.contents("a", verdict.ts) == [("a", 0, 0), ("a", 0, 1), b"x"] and log.contents("b", verdict.ts) == [b"y"]
    refused = part_of("a", 1, 3)._replace(inline=(Inline("b", b"z", "", 1),))
    [verdict] = log.commit(refused)
    assert verdict.reason is Reason.OVERLAP
    assert log.contents("b", log.state.last_ts) == [b"y"], "all of a part or nothing"


def test_a_move_changes_no_contents_at_any_timestamp(older):
    stamps = [older.carry("a", b"%d" % n, ts=100 + 10 * n).ts for n in range(6)]
    before = {ts: older.contents("a", ts) for ts in range(100, 151)}
    changed = older.state.last_change("a")
    assert older.move("a", 1, 40, 43).reason is None
    assert {ts: older.contents("a", ts) for ts in before} == before
    assert older.state.last_change("a") == changed and older.state.last_ts == stamps[-1], "nothing was written"
    assert [each.value for each in carried(older.state.bound["a"])] == [b"0", b"4", b"5"]
    places = {each.run.lower: each for each in older.state.bindings("a").at(150) if not each.value}
    assert [(n, places[n].ts, places[n].run.attempt, places[n].run.rows) for n in sorted(places)] == [
        (40, 110, "a", 1), (41, 120, "a", 1), (42, 130, "a", 1)
    ]  # fmt: skip
    older.add(Kind.COMPACT, ts=125)
    assert older.move("a", 0, 43, 44).reason is None, "also of what was merged"
    assert {ts: older.contents("a", ts) for ts in range(125, 151)} == {ts: before[ts] for ts in range(125, 151)}


def test_moved_rows_merge_like_any_others(older):
    for n in range(100):
        older.carry("a", b"%d" % n, ts=100 + n)
    older.add(Kind.COMPACT, ts=150)
    assert len(older.state.bound["a"].base) == 51, "what the log carries keeps its own runs"
    assert older.move("a", 0, 0, 100).reason is None
    older.carry("a", b"more", ts=300)
    older.add(Kind.COMPACT, ts=300)
    assert [(each.run.lower, each.run.upper) for each in older.state.bound["a"].base if not each.value] == [(0, 100)]


def test_what_is_moved_late_merges_at_once(older):
    for n in range(100):
        older.carry("a", b"%d" % n, ts=100 + n)
    older.add(Kind.COMPACT, ts=199)
    before = older.contents("a", 199)
    assert older.move("a", 20, 0, 60).reason is None and older.move("a", 0, 60, 80).reason is None
    assert [(each.run.lower, each.run.upper) for each in older.state.bound["a"].base if not each.value] == [(0, 80)]
    assert older.contents("a", 199) == before
    assert older.state.held_bytes == sum(held_bytes(each.value) for each in carried(older.state.bound["a"]))


def test_a_move_costs_what_it_moves(log):
    """Not what the collection has: everybody who folds waits for it, several times a second."""
    for n in range(300):
        log.commit(*[part_of("a", 100 * n + each, 100 * n + each + 1) for each in range(100)])
    for n in range(10):
        log.carry("a", b"%d" % n)
    looked = []
    key = type(log.state.bound["a"].recent).__getitem__

    def counted(self, index):
        looked.append(index)
        return key(self, index)

    with mock.patch.object(Growing, "__getitem__", counted):
        assert log.move("a", 2, 0, 5).reason is None
    assert len(looked) < 30


def test_a_record_that_moves_more_than_there_is_costs_nothing(log):
    log.carry("a", b"x")
    for moves in (
        (Move("a", 0, run("a", 0, 1 << 62)),),
        tuple(Move("a", n << 40, run("a", n << 40, (n + 1) << 40)) for n in range(1000)),
    ):
        verdicts = log.add(Kind.MOVE, moves=moves).verdicts
        assert {each.reason for each in verdicts} == {Reason.NOT_THERE}
    assert log.move("a", 0, 0, 1).reason is None


@pytest.mark.parametrize(
    "move, reason",
    [
        (Move("a", 2, run("a", 0, 2)), Reason.NOT_THERE),
        (Move("a", 7, run("a", 0, 1)), Reason.NOT_THERE),
        (Move("b", 0, run("b", 0, 1)), Reason.NOT_THERE),
        (Move("c", 0, run("c", 0, 1)), Reason.NOT_THERE),
        (Move("a", 0, run("a", 9, 11)), Reason.OVERLAP),
    ],
)
def test_what_cannot_be_moved_stays_where_it_is(log, move, reason):
    for n in range(3):
        log.carry("a", b"%d" % n)
    log.write("b", 0, 1)
    log.write("a", 10, 12)
    before = log.state
    [verdict] = log.add(Kind.MOVE, moves=(move,)).verdicts
    assert verdict.reason is reason
    assert log.state.bound == before.bound and log.state.held == before.held


def test_of_two_movers_one_is_heard(log):
    log.carry("a", b"x")
    assert log.move("a", 0, 5, 6).reason is None
    again = Move("a", 0, run("a", 9, 10))
    assert log.add(Kind.MOVE, moves=(again,)).verdicts[0].reason is Reason.NOT_THERE
    assert log.contents("a", log.state.last_ts) == [b"x"]


def test_the_moves_of_a_collection_in_one_record_happen_together_or_not(log):
    for n in range(4):
        log.carry("a", b"%d" % n)
    moves = (Move("a", 0, run("a", 0, 1)), Move("a", 0, run("a", 1, 2)))
    assert {each.reason for each in log.add(Kind.MOVE, moves=moves).verdicts} == {Reason.OVERLAP}
    moves = (Move("a", 0, run("a", 0, 2)), Move("a", 2, run("a", 7, 9)))
    assert {each.reason for each in log.add(Kind.MOVE, moves=moves).verdicts} == {None}
    assert not log.state.held and log.state.held_bytes == 0


def test_what_is_held_is_bounded_and_counted(log, monkeypatch):
    monkeypatch.setattr(fold_module, "HELD_BYTES_MAX", held_bytes(b"12345") * 2)
    assert log.carry("a", b"12345").reason is None
    assert log.carry("b", b"12345").reason is None
    refused = log.carry("a", b"1")
    assert refused.reason is Reason.HELD and log.contents("a", log.state.last_ts) == [b"12345"]
    assert log.write("a", 0, 1).reason is None, "rows on a topic are not held"
    log.add(Kind.FORGET, names=("b",))
    assert log.state.held_bytes == held_bytes(b"12345") == sum(log.state.held.values())
    assert log.carry("a", b"1").reason is None


def test_a_conflict_sees_carried_rows(log):
    read_ts = log.write("a", 0, 1).ts
    log.carry("a", b"x")
    verdict = log.carry("b", b"y", read_ts=read_ts, reads=(KeyRange("a"),))
    assert verdict.reason is Reason.READ_CONFLICT


def test_before_the_format_is_raised_no_record_carries_rows():
    log = Log()
    carrying = Record(Token("w", 1, 1), 0, Kind.COMMIT, parts=(CommitPart("p", inline=(Inline("a", b"x", "", 1),)),))
    with pytest.raises(ValueError, match="version 1"):
        encode_record(carrying)
    value = encode_record(carrying, 2)
    assert frame_version(value) == 2 and decode_record(value) == carrying
    assert log.add_bytes(value).refused is Reason.MALFORMED
    log.raise_format()
    again = encode_record(carrying._replace(token=Token("w", 1, 9)), 2)
    assert log.add_bytes(again).refused is None
    assert log.contents("a", log.state.last_ts) == [b"x"]
    log.add(Kind.FORMAT, ts=99)
    assert log.state.record_version == RECORD_VERSIONS[-1], "no further than what is known here"


def test_an_image_has_the_rows_and_is_as_old_code_reads_it_until_there_are_any(older):
    old = Log()
    old.write("a", 0, 1)
    assert frame_version(dump(old.state)) == 1
    older.carry("a", b"x", ts=10)
    older.add(Kind.COMPACT, ts=10)
    older.carry("a", b"y")
    saved = dump(older.state)
    assert frame_version(saved) == older.state.record_version and load(saved) == older.state
    tail = Log(load(saved), older.seq)
    assert tail.move("a", 0, 0, 2).reason is None
    assert tail.state.held_bytes == 0


def test_a_part_says_what_it_may_not_carry():
    for inline in (Inline("", b"x", "", 1), Inline("a", b"", "", 1), Inline("a", b"x", "", -1)):
        with pytest.raises(InvalidUsage):
            check_part(CommitPart("p", inline=(inline,)))
    with pytest.raises(InvalidUsage) as raised:
        check_part(CommitPart("p", inline=(Inline("a", bytes(INLINE_BYTES_MAX + 1), "", 1),)))
    assert raised.value.sqlstate == "54000"
    with pytest.raises(InvalidUsage):  # nobody binds what the log carries by its number
        check_part(CommitPart("p", (Binding("a", Run(INLINE, 0, 0, 1)),)))


def test_the_fold_is_the_same_from_the_start(log):
    for n in range(20):
        log.carry("a", b"%d" % n)
    log.move("a", 3, 0, 9)
    assert fold_all(log.entries)[0] == log.state
    assert fold_all(log.entries, EMPTY)[0] == log.state


def test_what_a_start_has_to_read_is_known_by_its_bytes_too():
    topic, store = MemoryTopic(), MemoryCheckpointStore()

    def opened():
        return Oracle.over(
            lambda: MemoryTransport(topic), Checkpoints(store, "id"), "test", lambda: 0, now_ms=lambda: 1
        )

    with closing(opened()) as one:
        one.raise_format().result(30)
        one.checkpoint(CheckpointPolicy(slack_records=0))
        assert one.bytes_since_checkpoint == 0
        one.commit(CommitPart("p", inline=(Inline("a", bytes(10_000), "a", 1),))).result(30)
        assert 10_000 < one.bytes_since_checkpoint < 11_000
        with closing(opened()) as other:
            assert other.bytes_since_checkpoint == one.bytes_since_checkpoint
        one.checkpoint(CheckpointPolicy(slack_records=0))
        assert one.bytes_since_checkpoint == 0
