"""Rows that the log carries are moved where they are many, once each, and nobody can tell."""

import random
from concurrent.futures import Future

import pytest

from collection.binding import Binding, BoundRun, Inline, Move, Run
from controllers.storage import mover as mover_module
from controllers.storage.mover import AFTER_FAILURE_S, Mover, due, moves_of, taken
from journal.errors import Rejected, Unavailable
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from oracle.bindings import carried
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart, Kind
from oracle.records import GIVING_UP
from oracle.state import held_bytes
from tests.oracle.oracle_logs import Log

TIMEOUT_S = 30
BATCH = bytes(100)


def state_of(**counts):
    log = Log()
    log.raise_format()
    for name, count in counts.items():
        for _ in range(count):
            log.carry(name, BATCH)
    return log.state


@pytest.fixture
def small(monkeypatch):
    """Bounds of two batches a collection and of six in all, of which none is small."""
    monkeypatch.setattr(mover_module, "SMALL_BYTES", 0)
    monkeypatch.setattr(mover_module, "COLLECTION_BYTES", 2 * held_bytes(BATCH))
    monkeypatch.setattr(mover_module, "HELD_BYTES_LOW", 6 * held_bytes(BATCH))


def test_what_is_small_stays_where_it_is(small):
    assert due(state_of()) == []
    assert due(state_of(a=2, b=2, c=2)) == []
    assert due(state_of(a=3, b=1)) == ["a"]
    assert due(state_of(a=3, b=5, c=2)) == ["b", "a"]


def test_of_many_small_ones_the_largest_go_until_there_is_room(small):
    assert due(state_of(a=2, b=1, c=2, d=2)) == ["a"]
    assert due(state_of(**{f"t{n}": 1 for n in range(8)})) == ["t0", "t1"]


def test_what_has_little_is_left_until_all_of_it_is_much(monkeypatch):
    """For a part of a file; it would have a topic for ever."""
    one = held_bytes(BATCH)
    monkeypatch.setattr(mover_module, "COLLECTION_BYTES", 8 * one)
    monkeypatch.setattr(mover_module, "SMALL_BYTES", 3 * one)
    monkeypatch.setattr(mover_module, "HELD_BYTES_LOW", 6 * one)
    monkeypatch.setattr(mover_module, "HELD_BYTES_HIGH", 12 * one)
    few = {f"t{n}": 1 for n in range(5)}
    assert due(state_of(**few, a=4, b=3)) == ["a", "b"]
    assert due(state_of(**few, a=2, b=2, c=2)) == []
    assert due(state_of(**few, a=2, b=2, c=2, d=2)) == ["a"]
    assert due(state_of(a=9)) == ["a"]


def test_what_is_told_apart_no_more_is_left_for_files(small):
    log = Log()
    log.raise_format()
    for n in range(9):
        log.carry("a", BATCH, ts=100 + n)
    log.add(Kind.COMPACT, ts=104)
    assert due(log.state) == ["a"]
    assert [each.run.lower for each in mover_module.movable(log.state, "a")] == [5, 6, 7, 8]
    log.carry("b", BATCH, ts=109)
    log.carry("c", BATCH, ts=109)
    assert due(log.state, {"b"}) == ["a"] and due(log.state, {"a"}) == []
    log.add(Kind.COMPACT, ts=106)
    assert due(log.state) == [] and log.state.held["a"] == 9 * held_bytes(BATCH)
    older = Log()
    older.raise_format(GIVING_UP)
    for n in range(9):
        older.carry("a", BATCH, ts=100 + n)
    older.add(Kind.COMPACT, ts=106)
    assert due(older.state) == ["a"] and len([*mover_module.movable(older.state, "a")]) == 9


def test_what_was_dropped_goes_by_itself(small):
    state = state_of(a=9, b=3, c=1, d=1)
    assert due(state) == ["a", "b"]
    assert due(state, {"a"}) == ["b"]
    assert due(state_of(a=9, b=2, c=2), {"a"}) == [], "and others are not moved for it"


def test_a_move_is_bounded(monkeypatch):
    runs = list(carried(state_of(a=10).bound["a"]))
    monkeypatch.setattr(mover_module, "MOVE_BATCHES_MAX", 4)
    assert taken(runs) == runs[:4]
    monkeypatch.setattr(mover_module, "MOVE_BYTES_MAX", 3 * held_bytes(BATCH))
    assert taken(runs) == runs[:3]
    monkeypatch.setattr(mover_module, "MOVE_BYTES_MAX", 1)
    assert taken(runs) == runs[:1], "one always goes"


def carried_run(number):
    return BoundRun(number, Run("", 0, number, number + 1, "a", 1), b"x")


@pytest.mark.parametrize(
    "numbers, runs, moves",
    [
        ((0, 1, 2), ((5, 8),), ((0, 5, 8),)),
        ((0, 1, 2), ((5, 6), (7, 9)), ((0, 5, 6), (1, 7, 9))),
        ((0, 2, 3), ((5, 8),), ((0, 5, 6), (2, 6, 8))),
        ((4, 5, 7, 8), ((1, 3), (3, 4), (9, 10)), ((4, 1, 3), (7, 3, 4), (8, 9, 10))),
    ],
)
def test_a_move_has_no_gap_in_its_numbers_nor_in_its_offsets(numbers, runs, moves):
    written = [Run("t", 0, lower, upper, "m", 1) for lower, upper in runs]
    found = moves_of("a", [carried_run(n) for n in numbers], written)
    assert found == [Move("a", number, Run("t", 0, lower, upper, "m", -1)) for number, lower, upper in moves]


def test_as_many_offsets_as_batches_or_nothing():
    with pytest.raises(ValueError):
        moves_of("a", [carried_run(0)], [Run("t", 0, 0, 2)])


class Topics:
    """What was written: by collection, the records."""

    def __init__(self):
        self.records = {}
        self.failure = None
        self.held = None
        self.writes = 0

    def write_batches(self, collection, batches, attempt):
        self.writes += 1
        told = Future()
        if self.failure is not None:
            told.set_exception(self.failure)
            return told
        log = self.records.setdefault(collection, [])
        lower = len(log)
        log += [each.value for each in batches]
        run = Run(f"env.data.{collection}", 0, lower, len(log), attempt, len(batches))
        if self.held is None:
            told.set_result([run])
        else:
            self.held.append(lambda: told.set_result([run]))
        return told


@pytest.fixture
def world(small):
    topic, store, topics = MemoryTopic(), MemoryCheckpointStore(), Topics()
    opened = []

    def open_oracle():
        oracle = Oracle.over(
            lambda: MemoryTransport(topic), Checkpoints(store, "id"), "test", lambda: 0, now_ms=lambda: 1
        )
        opened.append(oracle)
        return oracle

    yield open_oracle, topics
    for each in opened:
        each.close()


def insert(oracle, collection, *values):
    for value in values:
        rows = Inline(collection, value, "a", 1)
        oracle.commit(CommitPart("p", inline=(rows,))).result(TIMEOUT_S)


def carrying(open_oracle, *values):
    """A client of a log that may carry rows, and carries ``values`` of ``a``."""
    oracle = open_oracle()
    oracle.raise_format().result(TIMEOUT_S)
    insert(oracle, "a", *values)
    return oracle


def contents(oracle, topics, collection, ts):
    found = []
    for each in oracle.state.bindings(collection).at(ts):
        there = [each.value] if each.value else topics.records[collection][each.run.lower : each.run.upper]
        found += there
    return sorted(found)


def moved(oracle):
    """Once what was sent is folded."""
    return oracle.barrier().result(TIMEOUT_S)


def test_rows_are_moved_and_read_alike_at_every_timestamp(world):
    open_oracle, topics = world
    oracle = carrying(open_oracle)
    begun = oracle.state.last_ts
    insert(oracle, "a", *(b"%d" % n for n in range(5)))
    insert(oracle, "b", b"b")
    stamps = range(max(begun, oracle.state.since), oracle.state.last_ts + 1)
    before = {ts: contents(oracle, topics, "a", ts) for ts in stamps}
    mover = Mover(oracle, topics)
    mover.look()
    state = moved(oracle)
    assert topics.records == {"a": [b"0", b"1", b"2", b"3", b"4"]} and list(state.held) == ["b"]
    assert {ts: contents(oracle, topics, "a", ts) for ts in stamps} == before
    assert mover.status() == {"held_bytes": held_bytes(b"b"), "collections": 1, "moved": 5}
    other = open_oracle()
    assert other.state.bound == state.bound and other.state.held == state.held


def test_a_move_that_is_under_way_is_not_begun_again_and_what_came_since_goes_with_the_next(world):
    open_oracle, topics = world
    oracle = carrying(open_oracle, b"0", b"1", b"2")
    topics.held = []
    mover = Mover(oracle, topics)
    mover.look()
    insert(oracle, "a", b"3", b"4", b"5")
    mover.look()
    assert topics.writes == 1
    [answer] = topics.held
    topics.held = None
    answer()
    assert moved(oracle).held["a"] == 3 * held_bytes(b"3")
    mover.look()
    assert not moved(oracle).held and topics.records["a"] == [b"%d" % n for n in range(6)]


def test_of_thousands_that_are_due_some_are_moved_at_once(world, monkeypatch):
    open_oracle, topics = world
    oracle = carrying(open_oracle)
    monkeypatch.setattr(mover_module, "UNDER_WAY_MAX", 3)
    for n in range(20):
        insert(oracle, f"t{n}", BATCH)
    topics.held = []
    mover = Mover(oracle, topics)
    mover.look()
    mover.look()
    assert topics.writes == 3
    for _ in range(10):
        for answer in topics.held:
            answer()
        topics.held.clear()
        moved(oracle)
        mover.look()
    assert len(oracle.state.held) == 6 and topics.writes == 14


@pytest.mark.parametrize("failure", [Unavailable("no broker"), Rejected("no", sqlstate="55000")])
def test_what_could_not_be_written_stays_and_is_tried_again_later(world, failure):
    open_oracle, topics = world
    oracle = carrying(open_oracle, b"0", b"1", b"2")
    now = [0.0]
    mover = Mover(oracle, topics, lambda: now[0])
    topics.failure = failure
    mover.look()
    mover.look()
    assert topics.writes == 1, "not at once"
    assert len(contents(oracle, topics, "a", oracle.state.last_ts)) == 3
    now[0] = AFTER_FAILURE_S
    mover.look()
    now[0] += AFTER_FAILURE_S
    mover.look()
    assert topics.writes == 2, "and ever more seldom"
    topics.failure = None
    now[0] += AFTER_FAILURE_S
    mover.look()
    assert not moved(oracle).held


def test_a_mover_that_ends_between_writing_and_exchanging_leaves_rows_as_they_were(world):
    open_oracle, topics = world
    oracle = carrying(open_oracle, b"0", b"1", b"2")
    topics.held = []
    Mover(oracle, topics).look()  # and is never heard of again
    topics.held = None
    assert contents(oracle, topics, "a", oracle.state.last_ts) == [b"0", b"1", b"2"]
    Mover(oracle, topics).look()
    assert not moved(oracle).held
    assert contents(oracle, topics, "a", oracle.state.last_ts) == [b"0", b"1", b"2"]
    assert len(topics.records["a"]) == 6, "three of them are garbage that nothing binds"


def test_two_movers_move_each_batch_once(world):
    open_oracle, topics = world
    one, two = open_oracle(), open_oracle()
    one.raise_format().result(TIMEOUT_S)
    insert(one, "a", b"0", b"1", b"2")
    moved(two)
    topics.held = []
    movers = Mover(one, topics), Mover(two, topics)
    for each in movers:
        each.look()
    for answer in topics.held:
        answer()
    assert not moved(one).held and moved(two).bound == one.state.bound
    assert sum(each.status()["moved"] for each in movers) == 3
    assert contents(two, topics, "a", two.state.last_ts) == [b"0", b"1", b"2"]


def test_a_table_that_was_dropped_is_no_failure_for_ever(world):
    open_oracle, topics = world
    oracle = carrying(open_oracle, b"0", b"1", b"2")
    topics.held = []
    mover = Mover(oracle, topics)
    mover.look()
    oracle.checkpoint(CheckpointPolicy(retain_ms=0))
    oracle.forget("a", 0).result(TIMEOUT_S)
    topics.held[0]()
    moved(oracle)
    mover.look()
    assert topics.writes == 1 and oracle.state.held_bytes == 0


@pytest.mark.parametrize("seed", range(5))
def test_inserts_moves_checkpoints_and_restarts_in_any_order_lose_nothing(world, seed):
    open_oracle, topics = world
    rng = random.Random(seed)
    oracle = carrying(open_oracle)
    mover = Mover(oracle, topics)
    written, was = {"a": [], "b": []}, {}
    for n in range(150):
        what = rng.choice(["insert"] * 6 + ["move", "move", "restart", "killed", "checkpoint", "large"])
        name = rng.choice("ab")
        if what == "insert":
            insert(oracle, name, b"%d" % n)
            written[name].append(b"%d" % n)
        elif what == "large":
            log = topics.records.setdefault(name, [])
            log.append(b"%d" % n)
            run = Run(f"env.data.{name}", 0, len(log) - 1, len(log), "l", 1)
            oracle.commit(CommitPart("p", (Binding(name, run),))).result(TIMEOUT_S)
            written[name].append(b"%d" % n)
        elif what == "move":
            mover.look()
            moved(oracle)
        elif what == "checkpoint":
            oracle.checkpoint(CheckpointPolicy(retain_ms=rng.choice([0, 100]), slack_records=0))
        else:
            if what == "killed":  # between writing and exchanging
                topics.held = []
                mover.look()
                topics.held = None
            oracle = open_oracle()
            mover = Mover(oracle, topics)
        was[oracle.state.last_ts] = {each: sorted(values) for each, values in written.items()}
        for ts in {oracle.state.last_ts, *rng.sample(sorted(was), min(len(was), 5))}:
            for each in written if ts >= oracle.state.since else ():
                assert contents(oracle, topics, each, ts) == was[ts][each], (seed, n, what, ts)
