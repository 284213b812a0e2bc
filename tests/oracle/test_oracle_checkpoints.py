"""Checkpoints: the log is cut, a fresh client comes to the same state, history below since is refused."""

import random

import pytest

from collection.binding import Binding, Run
from journal.checkpoint import CheckpointStore
from journal.errors import FatalLog
from journal.kafka import KafkaTransport
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from journal.timestamps import TABLE
from journal.topics import ensure_topics, journal_spec
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.errors import SnapshotTooOld
from oracle.image import dump
from oracle.model import CommitPart
from oracle.views_image import dump_views
from oracle.views_log import ViewCommit, ViewsLog

TIMEOUT_S = 30
NOW = CheckpointPolicy(retain_ms=100, slack_records=0)


@pytest.fixture
def env(broker, env_name):
    names = TopicNames(env_name)
    topics = (names.oracle, names.views, names.checkpoints(names.oracle), names.checkpoints(names.views))
    ensure_topics(broker, [journal_spec(name, 1) for name in topics])
    return broker, names


def write_history(oracle, count, first=0, clock=1_000_000):
    futures = []
    for i in range(first, first + count):
        run = Run("t.data.a", 0, i, i + 1, f"x{i}", 1)
        futures.append(oracle.commit(CommitPart(f"p{i}", (Binding("a", run),), clock + 10 * i)))
        if i % 10 == 0:
            futures.append(oracle.write_ts("g"))
            oracle.barrier().result(TIMEOUT_S)
    for future in futures:
        future.result(TIMEOUT_S)


@pytest.mark.integration
def test_checkpoint_and_cut_on_kafka(env):
    bootstrap, names = env
    one = Oracle.open(bootstrap, names, "one", lambda: 7)
    other = Oracle.open(bootstrap, names, "other", lambda: 0)
    try:
        write_history(one, 200)
        end = one.state.next_offset
        start = one.checkpoint(NOW)
        assert start >= end, "everything below the image is gone"
        probe = KafkaTransport(bootstrap, names.oracle)
        assert probe.bounds()[0] == start
        probe.close()
        assert one.records_since_checkpoint == 0
        state = one.state
        assert state.since == state.last_ts - 100
        with pytest.raises(SnapshotTooOld):
            state.bindings("a").at(state.since - 1)
        assert len(state.bindings("a").at(state.since)) < 12
        fresh = Oracle.open(bootstrap, names, "fresh", lambda: 0)
        try:
            assert fresh.state == state and fresh.state.catalog_upper == 7
            write_history(fresh, 20, first=200)
            seen = [each.barrier().result(TIMEOUT_S) for each in (one, other, fresh)]
            last = max(state.next_offset for state in seen)
            states = [
                each.when(lambda s: s.next_offset >= last, TIMEOUT_S).result(TIMEOUT_S) for each in (one, other, fresh)
            ]
            assert len({dump(state) for state in states}) == 1, "folded from the start or from an image: the same"
        finally:
            fresh.close()
    finally:
        one.close()
        other.close()


@pytest.mark.integration
def test_views_checkpoint_and_cut_on_kafka(env):
    bootstrap, names = env
    log = ViewsLog.open(bootstrap, names, "one")
    try:
        epoch = log.claim("c").result(TIMEOUT_S)
        upper = 0
        for i in range(40):
            run = Run("t.data.v", 0, i, i + 1, "t", 1)
            views = [ViewCommit("v", upper, (run,), "x" * 9000 if i == 30 else None)]
            upper = log.commit("c", epoch, 10 * i + 5, views).result(TIMEOUT_S) + 1
        assert log.checkpoint(300, NOW) >= 41
        fresh = ViewsLog.open(bootstrap, names, "fresh")
        assert dump_views(fresh.state) == dump_views(log.state)
        assert fresh.state.view("v").upper == upper and fresh.state.since == 300
        assert fresh.claim("c").result(TIMEOUT_S) == epoch + 1
        zombie = log.commit("c", epoch, 9999, [ViewCommit("v", upper)]).exception(TIMEOUT_S)
        assert (zombie.mine, zombie.epoch) == (epoch, epoch + 1)
        stale = fresh.commit("c", epoch + 1, 9999, [ViewCommit("v", upper - 1)]).exception(TIMEOUT_S)
        assert (stale.view_id, stale.expected, stale.actual) == ("v", upper - 1, upper)
        fresh.drop("v").result(TIMEOUT_S)
        assert fresh.state.view("v").upper == 0
        fresh.close()
    finally:
        log.close()


@pytest.mark.integration
def test_a_checkpoint_of_another_topic_is_refused(env):
    bootstrap, names = env
    store = CheckpointStore(bootstrap, names.checkpoints(names.oracle))
    one = Oracle.open(bootstrap, names, "one", lambda: 0)
    one.close()
    store.save(0, dump(one.state, "another topic's id"))
    with pytest.raises(FatalLog, match="another topic"):
        Oracle.open(bootstrap, names, "two", lambda: 0)


def memory():
    topic, store = MemoryTopic(), MemoryCheckpointStore()
    return (
        topic,
        store,
        lambda: Oracle.over(
            lambda: MemoryTransport(topic), Checkpoints(store, "id"), "w", lambda: 0, now_ms=lambda: 1_000_000
        ),
    )


def test_memory_stays_bounded_by_the_window():
    _, _, connect = memory()
    oracle = connect()
    for turn in range(5):
        write_history(oracle, 200, first=200 * turn)
        oracle.checkpoint(NOW)
        bound = oracle.state.bound["a"]
        assert len(bound.base) == 1 and len(bound.recent) <= 60
        assert len(bound.coverage["t.data.a", 0]) == 1
    assert len(dump(oracle.state)) < 6000
    oracle.close()


def test_a_client_that_starts_while_another_cuts_finds_the_newer_checkpoint():
    topic, store, connect = memory()
    one = connect()
    write_history(one, 30)
    one.checkpoint(NOW)
    stale = store.load()
    write_history(one, 30, first=30)
    one.checkpoint(NOW)

    class Overtaken:
        """Gives the older image at first, as if it had been read just before the cut."""

        def __init__(self):
            self.first = True

        def load(self):
            self.first, first = False, self.first
            return stale if first else store.load()

    late = Oracle.over(lambda: MemoryTransport(topic), Checkpoints(Overtaken(), "id"), "late", lambda: 0)
    assert late.state == one.state
    late.close()
    one.close()


def test_a_log_cut_above_its_checkpoint_stops_the_start():
    topic, store, connect = memory()
    one = connect()
    write_history(one, 30)
    one.close()
    topic.cut(10)
    with pytest.raises(FatalLog):
        connect()


def test_an_image_that_reads_back_differently_cuts_nothing():
    topic = MemoryTopic()

    class Liar:
        def __init__(self):
            self.inner = MemoryCheckpointStore()

        def save(self, offset, image):
            self.inner.save(offset, image)

        def load(self):
            found = self.inner.load()
            return None if found is None else (found[0], found[1][:-1] + bytes([found[1][-1] ^ 1]))

    one = Oracle.over(lambda: MemoryTransport(topic), Checkpoints(Liar(), "id"), "w", lambda: 0)
    write_history(one, 10)
    with pytest.raises(FatalLog):
        one.checkpoint(NOW)
    assert topic.start == 0
    one.close()


def test_the_slack_stays_in_the_log():
    topic, _, connect = memory()
    one = connect()
    write_history(one, 50)
    assert one.checkpoint(CheckpointPolicy(100, 20)) == one.state.next_offset - 20 == topic.start
    one.close()


def test_what_is_held_stays_told_apart_however_late_the_checkpoint_is_made():
    _, _, connect = memory()
    one = connect()
    write_history(one, 10)
    held = one.state.last_ts
    one.advance(TABLE, held + 1000).result()
    one.checkpoint(CheckpointPolicy(0, 0, held))
    assert one.state.since == held < one.state.last_ts
    one.checkpoint(CheckpointPolicy(one.state.last_ts - held + 5, 0, held))
    assert one.state.since == held, "it never goes back"
    one.checkpoint(CheckpointPolicy(0, 0, one.state.last_ts + 5))
    assert one.state.since == one.state.last_ts
    one.close()


@pytest.mark.parametrize("seed", range(5))
def test_checkpointing_at_any_moment_changes_no_outcome(seed):
    """With and without checkpoints between them, restarts included, the same commits get the same answers."""
    rng = random.Random(seed)
    _, _, connect = memory()
    _, _, connect_plain = memory()
    one, plain = connect(), connect_plain()
    for i in range(60):
        lower = rng.randrange(40)
        part = CommitPart(f"p{i}", (Binding("a", Run("t", 0, lower, lower + 2, "a", 2)),), rng.randrange(1, 5000))
        answers = []
        for each in (one, plain):
            future = each.commit(part)
            error = future.exception(TIMEOUT_S)
            answers.append(future.result() if error is None else (type(error), error.detail))
        assert answers[0] == answers[1]
        if rng.random() < 0.2:
            one.checkpoint(CheckpointPolicy(rng.randrange(2000), 0))
        if rng.random() < 0.2:
            one.close()
            one = connect()
    one.close()
    plain.close()
