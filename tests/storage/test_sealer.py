"""Rows that are sealed, merged, cut and collected, in worlds of journals in memory: no reader can tell (I5)."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from catalog_log.model import Setting
from catalog_log.objects import Column, Item, Table
from catalog_log.settings import clustering, clustering_key, history_key
from collection.binding import Binding, Run
from collection.columns import DIFF
from controllers.compute import feed
from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.storage import clustering as apart
from controllers.storage import sealer as module
from controllers.storage import sealing
from controllers.storage.sealer import Sealer, Waits
from controllers.vacuum import WAITING_MAX, Asked, Won
from journal.errors import Indeterminate, Rejected, TidemarkError, Unavailable
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from segments.log import SegmentsLog
from segments.parquet import chunks
from segments.pruning import Op, Predicate, may_match
from segments.reader import RENEWED_TIMEOUT_S, SegmentReader
from segments.statistics import shown
from segments.store import DirectoryStore
from tests.compute.test_crashes import Rows, reader_of
from tests.compute.test_idle_views import SPARK, contents

KV = (Column("k", "int4", id=1), Column("v", "int8", id=2))
NAMES = TopicNames("t")
POLICY = CheckpointPolicy(retain_ms=20, slack_records=10)
WAITS = Waits(grace_s=100, orphaned_s=1000)


class Killed(BaseException):
    """The process ends here."""


class Topics(Rows):
    """As there, in partitions, each after the other; and what is cut cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: Counter = Counter()
        self.partitions = 1
        self.turn = 0

    def write(self, collection, columns, rows, attempt) -> Future:
        self.turn += 1
        partition = self.turn % self.partitions
        written = super().write(self.place(collection, partition), columns, rows, attempt)
        done: Future = Future()
        done.set_result([run._replace(topic=collection, partition=partition) for run in written.result()])
        return done

    def place(self, topic: str, partition: int) -> str:
        name = topic.removeprefix(NAMES.data(""))
        return f"{name}/{partition}" if partition else name

    def cut(self, _bootstrap: str, upto, _timeout_s: float) -> None:
        name = self.place(upto.topic, upto.partition)
        assert upto.offset <= len(self.topics[name])
        self.starts[name] = max(self.starts[name], upto.offset)

    def table(self, run: Run) -> pa.Table:
        name = self.place(run.topic, run.partition)
        if run.lower < self.starts[name]:
            raise Unavailable(f"{run} is cut below {self.starts[name]}", sqlstate="58P01")
        return super().table(run._replace(topic=name))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.topics = Topics()
        self.clock, self.wall_ms = Clock(), 1_700_000_000_000
        self.path = path
        self.store = DirectoryStore(path / "store")
        self.items: dict[str, Item] = {}
        self.upper, self.next_id = 1, 100
        self.settings: dict[str, Setting] = {}
        self.journals = {name: MemoryTopic() for name in ("oracle", "views", "segments")}
        self.kept = {name: MemoryCheckpointStore() for name in self.journals}
        self.model: dict[str, list[tuple[int, Counter]]] = {}
        self.late: list[tuple[str, tuple[int, ...], Run]] = []
        reader = reader_of(self.topics)
        reader.chunks = lambda self, runs, columns, format: (
            table for table, _ in self.bound_chunks([SimpleNamespace(ts=0, run=r) for r in runs], columns, format)
        )
        monkeypatch.setattr("controllers.compute.feed.RunReader", reader)
        monkeypatch.setattr(module, "RunReader", reader)
        monkeypatch.setattr(sealing, "RECORD_ROWS", 1)
        monkeypatch.setattr(module, "next_item_id", lambda _image: self.next_id)
        monkeypatch.setattr(module, "wall_clock_ms", lambda: self.wall_ms)
        monkeypatch.setattr(module.clients, "delete_below", self.topics.cut)
        monkeypatch.setattr(feed, "SINCE_TIMEOUT_S", 0.01)
        self.oracle = Oracle.over(*self._journal("oracle"), "test", lambda: 0, now_ms=lambda: self.wall_ms)
        self.views = ViewsLog.over(*self._journal("views"), "test")
        self.opened = [self.oracle, self.views]

    def _journal(self, name: str):
        return lambda: MemoryTransport(self.journals[name]), Checkpoints(self.kept[name], name)

    def segments(self) -> SegmentsLog:
        found = SegmentsLog.over(*self._journal("segments"), "test", now_ms=lambda: self.wall_ms)
        self.opened.append(found)
        return found

    def sealer(self, rows: int = 3, measures: bool = True) -> Sealer:
        """One that knows nothing of those before it."""
        image = SimpleNamespace(
            item=self.items.get, all=lambda _: self.settings.items(), get=lambda _, key: self.settings.get(key),
            dependents=lambda _: (),
        )  # fmt: skip
        done: Future = Future()
        done.set_result(image)
        catalog = SimpleNamespace(when_upper=lambda *_: done)
        found = Sealer("", NAMES, self.store, catalog, self.oracle, self.views, self.segments(), rows=rows,
                       policy=lambda: POLICY, waits=WAITS, measures=measures, clock=self.clock)  # fmt: skip
        return found

    def create(self, name: str) -> None:
        self.items[name] = Table(name, "s1", name, "", KV)
        self.model[name] = [(0, Counter())]

    def keep(self, name: str, seconds: float) -> None:
        """Have history of it kept for so long."""
        self.settings[history_key(name)] = Setting(str(int(1000 * seconds)))

    def cluster(self, name: str, *columns: str) -> None:
        """Have its files kept apart by them."""
        self.settings[clustering_key(name)] = clustering(columns)

    def insert(self, name: str, *changes: tuple[int, int, int], garbage: bool = False) -> int:
        """At a new timestamp; each change is a row with its diff."""
        made = pa.table([pa.array(c) for c in zip(*changes, strict=True)], names=["k", "v", DIFF])
        made = made.cast(pa.schema([("k", pa.int32()), ("v", pa.int64()), (DIFF, pa.int64())]))
        if garbage:  # of a writer that never commits
            self.topics.write(name, KV, made, "dead").result()
        self.wall_ms += 1
        [run] = self.topics.write(name, KV, made, uuid.uuid4().hex).result()
        binding = Binding(name, run._replace(topic=NAMES.data(name)))
        ts = self.oracle.commit(CommitPart(uuid.uuid4().hex, (binding,), self.wall_ms)).result(10)
        now = Counter(self.model[name][-1][1])
        for *row, diff in changes:
            now[tuple(row)] += diff
        self.model[name].append((ts, now))
        return ts

    def write_late(self, name: str, *row: int) -> None:
        """A row that somebody has written and will commit later."""
        made = pa.table([pa.array([c]) for c in (*row, 1)], names=["k", "v", DIFF])
        made = made.cast(pa.schema([("k", pa.int32()), ("v", pa.int64()), (DIFF, pa.int64())]))
        [run] = self.topics.write(name, KV, made, uuid.uuid4().hex).result()
        self.late.append((name, row, run._replace(topic=NAMES.data(name))))

    def commit_late(self) -> None:
        for name, row, run in self.late:
            self.wall_ms += 1
            ts = self.oracle.commit(CommitPart(uuid.uuid4().hex, (Binding(name, run),), self.wall_ms)).result(10)
            now = Counter(self.model[name][-1][1])
            now[row] += 1
            self.model[name].append((ts, now))
        self.late = []

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.wall_ms += int(1000 * seconds)
        self.oracle.advance("table", self.wall_ms).result(10)

    def expected(self, name: str, ts: int) -> Counter:
        return Counter({row: n for row, n in [w for t, w in self.model[name] if t <= ts][-1].items() if n})

    def read(self, name: str, ts: int, log: SegmentsLog | None = None) -> Counter:
        """By somebody who holds nothing of it."""
        scratch = self.path / uuid.uuid4().hex
        scratch.mkdir()
        relation = Relation(SPARK, name, KV, scratch)
        reading = Feed("", self.oracle, self.views, SegmentReader(log or self.segments(), self.store))
        try:
            reading.catch_up(relation, self.items[name], ts)
            return Counter({row: n for row, n in contents(relation, ts).items() if n})
        finally:
            relation.close()

    def check(self, name: str) -> None:
        """At every timestamp that may be read."""
        since = self.oracle.state.since_of(name)
        last = self.oracle.state.last_ts
        for ts in {since, last, *(t for t, _ in self.model[name] if since <= t <= last)}:
            assert self.read(name, ts) == self.expected(name, ts), (name, ts)

    def close(self) -> None:
        for each in self.opened:
            each.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    found = World(monkeypatch, tmp_path)
    found.create("u1")
    yield found
    found.close()


def sealed(world: World, sealer: Sealer, name: str = "u1"):
    world.passes(module.MOVE_EVERY_S)
    sealer.look()
    return sealer._segments.state.sealed(name)


def test_what_is_old_and_much_is_sealed_and_the_topic_is_cut_later(world: World) -> None:
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4
    world.check("u1")
    assert world.topics.starts["u1"] == 0, "somebody may be reading it"
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert world.topics.starts["u1"] == 4
    world.insert("u1", (9, 9, 1), (0, 0, -1))
    world.check("u1")


def test_history_that_is_kept_is_read_at_each_timestamp_and_sealed_later(world: World) -> None:
    world.create("u2")
    world.keep("u1", 1000)
    for n in range(8):
        for name in ("u1", "u2"):
            world.insert(name, (n, n, 1), *([(n - 1, n - 1, -1)] if n % 2 else []))
        world.passes(10)
    sealer = world.sealer()
    assert sealed(world, sealer, "u2").changes and not sealed(world, sealer).files, "nobody reads its past"
    assert world.oracle.state.since_of("u1") < world.model["u1"][1][0] < world.oracle.state.since_of("u2")
    world.check("u1")
    world.check("u2")
    for ts, there in world.model["u1"][1:]:
        assert world.read("u1", ts) == Counter({row: n for row, n in there.items() if n})
    # What is older than that goes, and no other; and all of it once nobody asks for it any more.
    world.passes(1000 - 125)
    assert sealed(world, sealer).changes and sealer._segments.state.sealed("u1").through < world.model["u1"][-1][0]
    world.check("u1")
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert 0 < world.topics.starts["u1"] <= 8
    world.check("u1")
    world.settings.clear()
    for n in range(4):
        world.insert("u1", (50 + n, 0, 1))
    assert sealed(world, sealer).through == world.model["u1"][-1][0]
    assert world.oracle.state.since_of("u1") == world.oracle.state.since and not world.oracle.state.kept
    world.check("u1")


def vacuumed(sealer: Sealer, *names: str, full: bool = False, timeout_s: float = 600.0) -> Won:
    """As its thread does it for whoever waits."""
    done = sealer.vacuum(Asked(names, full, timeout_s))
    sealer._answer(sealer._asked.get_nowait())
    return done.result(0)


def test_what_is_named_twice_is_vacuumed_once(world: World) -> None:
    world.insert("u1", (1, 1, 1))
    world.passes(1)
    won = vacuumed(world.sealer(rows=1000), "u1", "u1")
    assert (won.sealed, won.files, won.failing) == (1, (0, 1), {})
    world.check("u1")


def test_vacuum_seals_what_may_be_however_little_and_collects_what_nobody_holds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("u2")
    sealer = world.sealer(rows=1000)
    for n in range(4):
        world.insert("u1", (n, n, 1))
        world.insert("u2", (n, n, 1))
    world.passes(1)
    assert vacuumed(sealer) == Won(), "little stays where it is, where nothing is named"
    found = vacuumed(sealer, "u1", "nobody's")
    assert (found.sealed, found.files, found.late, found.failing) == (4, (0, 1), False, {})
    assert sealer._segments.state.sealed("u1").net == 4 and not sealer._segments.state.sealed("u2").files
    world.check("u1")
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(module, "FILE_ROWS", 10)
    world.insert("u1", *((k, 0, 1) for k in range(30)))
    world.passes(1)
    vacuumed(sealer, "u1")
    world.insert("u1", *((k, 0, -1) for k in range(0, 30, 4)))
    world.passes(1)
    assert vacuumed(sealer, "u1").sealed == 8
    before = sealer._segments.state.sealed("u1")
    assert before.changes > before.net == 26 and vacuumed(sealer, "u1").files == (len(before.files),) * 2
    world.check("u1")
    found = vacuumed(sealer, "u1", full=True)
    after = sealer._segments.state.sealed("u1")
    assert all(each.plain for each in after.files) and after.changes == after.net == 26
    assert found.files == (len(before.files), len(after.files)) and found.waiting
    assert found.bytes[1] == sum(each.size for each in after.files)
    again = vacuumed(sealer, "u1", full=True)
    assert again.files == (len(after.files),) * 2 and again.waiting == found.waiting, "there is nothing to be done"
    world.check("u1")
    world.passes(WAITS.grace_s + 1)
    found = vacuumed(sealer, "u1")
    assert found.collected and not found.waiting and world.topics.starts["u1"] == 4
    assert {each.path for each in world.store.files()} == {each.path for each in after.files}
    world.check("u1")


def test_vacuum_leaves_history_that_is_kept(world: World) -> None:
    world.keep("u1", 1000)
    for n in range(4):
        world.insert("u1", (n, n, 1))
        world.passes(1)
    sealer = world.sealer()
    assert vacuumed(sealer, "u1", full=True).sealed == 0
    assert world.oracle.state.since_of("u1") < world.model["u1"][1][0]
    world.check("u1")


def test_a_vacuum_ends_in_time_and_what_it_did_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEAL_FACTOR", 1)
    for n in range(6):
        world.insert("u1", (n, n, 1))
    world.passes(1)
    sealer = world.sealer(rows=2)
    write = sealer._write

    def slowly(*args):
        world.clock.now += 4
        return write(*args)

    sealer._write = slowly
    found = vacuumed(sealer, "u1", timeout_s=5)
    assert found.late and found.sealed == 4
    world.check("u1")
    found = vacuumed(sealer, "u1")
    assert not found.late and found.sealed == 2


def test_who_waits_for_a_vacuum_is_answered_whatever_happens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("u2")
    for name in ("u1", "u2"):
        for n in range(4):
            world.insert(name, (n, n, 1))
    world.passes(1)
    sealer = world.sealer()
    write = sealer._write

    def broken(name: str, *args):
        if name == "u1":
            raise OSError(28, "No space left on device")
        return write(name, *args)

    sealer._write = broken
    found = vacuumed(sealer, "u1", "u2")
    assert found.failing.keys() == {"u1"} and "No space" in found.failing["u1"] and found.sealed == 4
    monkeypatch.setattr(module, "checkpointed", lambda *_: (_ for _ in ()).throw(Unavailable("the broker is away")))
    with pytest.raises(Unavailable, match="broker is away"):
        vacuumed(sealer, "u2")
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    waiting = [sealer.vacuum(Asked()) for _ in range(WAITING_MAX)]
    with pytest.raises(Rejected) as full:
        sealer.vacuum(Asked())
    assert full.value.sqlstate == "53400"
    sealer.stop()
    sealer.run()
    for each in waiting:
        with pytest.raises(Unavailable, match="stopping"):
            each.result(0)
    with pytest.raises(Unavailable, match="stopping"):
        sealer.vacuum(Asked())


def test_what_is_little_or_new_stays_on_its_topic(world: World) -> None:
    sealer = world.sealer(rows=3)
    world.insert("u1", (1, 1, 1))
    world.insert("u1", (2, 2, 1))
    assert sealed(world, sealer).files == ()
    world.insert("u1", (3, 3, 1))
    sealer.look()
    assert sealer._segments.state.sealed("u1").files == (), "its history is still told apart"
    assert sealed(world, sealer).net == 3


def test_what_cancels_out_goes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a row changes, what is kept of it is within twice what there is; also where that is many parts."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(module, "FILE_ROWS", 10)
    sealer = world.sealer(rows=5)
    world.insert("u1", *((k, 0, 1) for k in range(60)))
    for v in range(8):
        world.insert("u1", *(c for k in range(60) for c in ((k, v, -1), (k, v + 1, 1))))
        found = sealed(world, sealer)
        assert found.net == 60 and found.changes <= 2 * 60 + 5
        world.check("u1")
    assert sealed(world, sealer).changes < 200
    # Files that went are collected, and those that are there stay.
    before = len(list(world.store.files()))
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    left = {each.path for each in world.store.files()}
    assert left == {each.path for each in sealer._segments.state.sealed("u1").files} and len(left) < before
    world.check("u1")


class Counted(DirectoryStore):
    """Ends the process where more is written than there can be reason to."""

    left = 200

    def write(self, path: str, data: bytes) -> None:
        self.left -= 1
        if not self.left:
            raise Killed
        super().write(path, data)


def test_what_cancels_out_goes_where_one_part_has_almost_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that tell most rows apart may be of types that do not count for the parts."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(module, "FILE_ROWS", 10)
    monkeypatch.setattr(module, "parts", lambda table, _keys, _count: np.zeros(table.num_rows, np.int64))
    world.store = Counted(world.path / "store")
    sealer = world.sealer(rows=5)
    world.insert("u1", *((k, 0, 1) for k in range(30)))
    for v in range(5):
        world.insert("u1", *((k, v, -1) for k in range(30)), *((k, v + 1, 1) for k in range(30)))
    found = sealed(world, sealer)
    assert found.net == 30 and found.changes == 30
    world.check("u1")


def test_files_that_do_not_get_fewer_are_not_written_over_and_over(world: World) -> None:
    """What takes back rows that are in no file yet; there should be none such, and if there is, others wait for it."""
    world.store = Counted(world.path / "store")
    sealer = world.sealer(rows=5)
    for n in range(6):
        world.insert("u1", *((k, n, -1) for k in range(3)))
    assert sealed(world, sealer).net == -18
    for n in range(6):
        world.insert("u1", *((k, n, 1) for k in range(3)))
    assert sealed(world, sealer).changes == 0
    world.check("u1")


def test_small_files_become_one(world: World) -> None:
    sealer = world.sealer(rows=3)
    for n in range(20):
        world.insert("u1", (n, n, 1))
        sealed(world, sealer)
    assert 1 <= len(sealer._segments.state.sealed("u1").files) <= 3
    world.check("u1")


def test_files_are_sorted_and_the_log_says_what_they_hold(world: World) -> None:
    sealer = world.sealer(rows=3)
    world.insert("u1", (5, 1, 1), (2, 7, 1), (2, 3, 1), (9, -1, 1))
    [file] = sealed(world, sealer).files
    [piece] = chunks(file, world.store.read(file.path), KV)
    assert piece.column("k").to_pylist() == [2, 2, 5, 9] and piece.column("v").to_pylist() == [3, 7, 1, -1]
    k, v = {"min": "2", "max": "9", "nulls": 0}, {"min": "-1", "max": "7", "nulls": 0}
    assert dict(shown(file)) == {"c1": k, "c2": v}
    assert sealer.status()["files"][0]["columns"] == dict(shown(file))
    for change in ((1, 1, 1), (2, 7, -1), (3, 3, 1)):
        world.insert("u1", change)
    [merged] = sealed(world, sealer).files
    assert dict(shown(merged))["c1"]["min"] == "1"
    world.check("u1")


def test_files_that_hold_one_key_are_kept_apart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come in any order: what is looked for by key is in few files, however many there are."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(module, "FILE_ROWS", 10)
    monkeypatch.setattr(apart, "SAMPLED", 2)
    world.store = Counted(world.path / "store")
    world.store.left = 600
    world.cluster("u1", "v")
    sealer, rng = world.sealer(rows=5), random.Random(3)
    values = rng.sample(range(1_000), 300)
    most = 0
    for n in range(0, 300, 10):
        world.insert("u1", *((n + m, values[n + m], 1) for m in range(10)))
        files = sealed(world, sealer).files
        most = max(most, len(holding(files, 500)))
        assert len(apart.crowd(files, KV, (1,))) == 0
    assert len(files) > 2 * apart.CROWD and most <= apart.CROWD
    for file in files:
        [piece] = chunks(file, world.store.read(file.path), KV)
        assert piece.column("v").to_pylist() == sorted(piece.column("v").to_pylist())
    world.check("u1")
    vacuumed(sealer, "u1", full=True)
    files = sealer._segments.state.sealed("u1").files
    assert max(len(holding(files, v)) for v in values) == 1, "all that can be done"
    world.check("u1")
    # A key that all rows have cannot be kept apart, and is not written over and over.
    for n in range(0, 200, 10):
        world.insert("u1", *((n + m, 2_000, 1) for m in range(10)))
        sealed(world, sealer)
    world.check("u1")
    # Most of one key and some of others, written anew because half of it went.
    for n in range(0, 190, 38):
        world.insert("u1", *((n + m, 2_000, -1) for m in range(38)))
    found = sealed(world, sealer)
    assert found.net == 310 and found.changes == 310
    world.check("u1")


def holding(files, value: int) -> list:
    """Those that may hold a ``v``."""
    return [each for each in files if may_match(each, [Predicate("c2", "int8", Op.EQUAL, (value,))])]


def test_where_older_code_may_be_beside_us_the_log_says_nothing_of_what_files_hold(world: World) -> None:
    """And what such a log has goes on where the newer form is allowed: files of which nobody knows, and others."""
    older = world.sealer(rows=3, measures=False)
    world.insert("u1", *((n, n, 1) for n in range(40)))
    [file] = sealed(world, older).files
    assert file.statistics == b"" and older._segments.state.record_version == 1
    older.checkpoint()
    sealer = world.sealer(rows=3)
    for n in range(100, 104):
        world.insert("u1", (n, n, 1))
    found = sealed(world, sealer).files
    assert [each.statistics != b"" for each in found] == [False, True]
    assert sealer._segments.state.record_version == 2
    sealer.checkpoint()
    assert world.segments().state == sealer._segments.state, "as somebody has it who begins now"
    asked = [Predicate("c1", "int4", Op.AT_LEAST, (500,))]
    assert [may_match(each, asked) for each in found] == [True, False]
    world.check("u1")


def test_a_gap_in_a_table_is_never_cut_since_its_writer_may_come_back(world: World) -> None:
    for n in range(3):
        world.insert("u1", (n, n, 1))
    world.insert("u1", (7, 7, 1), garbage=True)
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert world.topics.starts["u1"] == 3
    world.check("u1")


def test_who_reads_what_was_cut_meanwhile_begins_anew(world: World) -> None:
    """Somebody who has not heard of the exchange when the topic is cut, and then does."""
    for n in range(4):
        world.insert("u1", (n, n, 1))
    late = world.segments()
    real = late.caught_up
    stale = late.state
    sealer = world.sealer()
    sealed(world, sealer)
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    state = type(late).state
    told = []

    def caught_up(timeout_s):
        told.append(timeout_s)
        return real(timeout_s)

    late.caught_up = caught_up
    try:
        type(late).state = property(lambda self: stale if self is late and not told else state.fget(self))
        assert world.read("u1", world.oracle.state.last_ts, late) == world.expected("u1", world.wall_ms)
    finally:
        type(late).state = state
    assert told


def test_rows_that_are_gone_for_good_are_an_error_at_once(world: World) -> None:
    """All views of a cluster wait for the tick that reads them."""
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealer = world.sealer()
    [file] = sealed(world, sealer).files
    world.store.delete(file.path)
    began = time.monotonic()
    with pytest.raises(Unavailable) as gone:
        world.read("u1", world.oracle.state.last_ts)
    assert time.monotonic() - began < RENEWED_TIMEOUT_S / 2
    assert gone.value.sqlstate == "58P01"


def test_two_sealers_seal_each_row_once(world: World) -> None:
    one, other = world.sealer(), world.sealer()
    for n in range(12):
        world.insert("u1", (n, n, 1))
        world.passes(module.MOVE_EVERY_S)
        one.look()
        other.look()
    assert one._segments.state.sealed("u1").net == 12
    world.check("u1")
    held = {each.path for each in one._segments.state.sealed("u1").files}
    gone = set(one._segments.state.gone.keys())
    assert {each.path for each in world.store.files()} == held | gone, "who came second removed its own"


def test_who_merges_what_another_sealed_meanwhile_keeps_columns_that_were_added_meanwhile(world: World) -> None:
    """One that was busy, or stopped, between looking at the catalog and coming to a collection."""
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealed(world, world.sealer())
    slow, other = world.sealer(), world.sealer()
    one = slow._one

    def then(found) -> None:
        wide = (*KV, Column("x", "int4", id=3))
        world.items["u1"] = Table("u1", "s1", "u1", "", wide)
        for n in range(4):
            rows = pa.table([pa.array([n], pa.int32()), pa.array([9]), pa.array([7], pa.int32()), pa.array([1])],
                            names=["k", "v", "x", DIFF])  # fmt: skip
            [run] = world.topics.write("u1", wide, rows, str(n)).result()
            binding = Binding("u1", run._replace(topic=NAMES.data("u1")))
            world.oracle.commit(CommitPart(str(n), (binding,), world.wall_ms + n)).result(10)
        other._merge = lambda *_: False  # it is killed before
        assert len(sealed(world, other).files) == 2
        slow._segments.caught_up(10).result()
        one(found)

    slow._one = then
    assert len(sealed(world, slow).files) == 1
    scratch = world.path / "scratch"
    scratch.mkdir()
    relation = Relation(SPARK, "u1", world.items["u1"].stored, scratch)
    ts = world.oracle.state.last_ts
    try:
        Feed("", world.oracle, world.views, SegmentReader(world.segments(), world.store)).catch_up(
            relation, world.items["u1"], ts
        )
        assert sorted(contents(relation, ts), key=str) == sorted(
            [*((n, n, None) for n in range(4)), *((n, 9, 7) for n in range(4))], key=str
        )
    finally:
        relation.close()


def test_files_of_what_was_dropped_go_and_of_what_is_unknown_stay(world: World) -> None:
    world.create("u200")  # made after the catalog that the sealer knows: its image gives out 100 next
    for name in ("u1", "u200"):
        for n in range(4):
            world.insert(name, (n, n, 1))
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4 and sealed(world, sealer, "u200").net == 4
    del world.items["u1"], world.items["u200"]
    sealer.look()
    assert list(sealer._segments.state.collections) == ["u200"]
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert {each.path.split("/")[0] for each in world.store.files()} == {"u200"}


def test_what_nobody_added_is_swept(world: World) -> None:
    sealer = world.sealer()
    sealer.look()
    for n in range(4):
        world.insert("u1", (n, n, 1))

    def lost(_exchange):
        raise Indeterminate("nobody answered")

    exchange, sealer._segments.exchange = sealer._segments.exchange, lost
    sealed(world, sealer)
    [orphan] = world.store.files()
    sealer._segments.exchange = exchange
    (world.path / "store" / "u1" / f"{Path(orphan.path).name}.1234.part").write_bytes(b"half")
    (world.path / "store" / "u1" / "of somebody else").write_bytes(b"x")
    world.passes(module.AFTER_FAILURE_MAX_S)
    assert sealed(world, sealer).net == 4
    for _ in range(3):
        world.passes(WAITS.orphaned_s + 1)
        sealer.look()
        world.check("u1")
    left = {each.path for each in world.store.files()}
    assert orphan.path not in left and "u1/of somebody else" in left and not any("part" in each for each in left)
    assert sealer._segments.state.sealed("u1").net == 4


def test_cutting_many_topics_keeps_nothing_else_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that takes its time, and more topics than it answers for within a look."""
    for name in ("u1", "u2", "u3"):
        if name not in world.items:
            world.create(name)
        for n in range(4):
            world.insert(name, (n, n, 1))
    sealer = world.sealer()
    sealed(world, sealer)
    world.passes(WAITS.grace_s + 1)
    asked = []

    def slow(_bootstrap: str, upto, _timeout_s: float) -> None:
        asked.append(upto.topic)
        world.clock.now += module.CUTTING_S + 1

    monkeypatch.setattr(module.clients, "delete_below", slow)
    for n in range(1, 4):
        sealer.look()
        assert len(set(asked)) == len(asked) == n
    sealer.look()
    assert len(asked) == 3


def test_a_file_that_cannot_be_removed_keeps_no_other_in_the_store(world: World) -> None:
    sealer = world.sealer()
    for n in range(8):
        world.insert("u1", *((10 * n + k, n, 1) for k in range(4)))
        sealed(world, sealer)
    stuck, *others = sorted(sealer._segments.state.gone)
    assert others
    delete = world.store.delete

    def stubborn(path: str) -> None:
        if path == stuck:
            raise Unavailable("a file could not be removed")
        delete(path)

    world.store.delete = stubborn
    world.passes(WAITS.grace_s + 1)
    sealer.look()
    assert list(sealer._segments.state.gone) == [stuck]
    del world.store.delete
    sealer.look()
    assert not sealer._segments.state.gone
    world.check("u1")


def test_a_collection_that_cannot_be_sealed_keeps_no_other_from_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is the matter with it: here the directory for what is spread is full, which is not the store's."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 10)
    monkeypatch.setattr(module, "FILE_ROWS", 10)
    world.create("u2")
    world.insert("u1", *((k, 0, 1) for k in range(30)))
    sealer = world.sealer(rows=5)
    sealed(world, sealer)
    for v in range(6):
        world.insert("u1", *(c for k in range(30) for c in ((k, v, -1), (k, v + 1, 1))))
    world.insert("u2", *((k, 0, 1) for k in range(8)))

    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module.tempfile, "TemporaryDirectory", full)
        assert sealed(world, sealer, "u2").net == 8
        assert sealer.status()["failing"] .keys() == {"u1"}
    world.passes(module.AFTER_FAILURE_S)
    found = sealed(world, sealer)
    assert found.net == 30 and found.changes <= 2 * 30 + 5
    world.check("u1")
    world.check("u2")


class Dying(DirectoryStore):
    """Ends the process before or after it did what it was asked for the ``n``-th time."""

    def __init__(self, root: Path, after: int, did: bool) -> None:
        super().__init__(root)
        self.after, self.did = after, did

    def _step(self, do) -> None:
        self.after -= 1
        if self.after == 0 and not self.did:
            raise Killed
        do()
        if self.after == 0:
            raise Killed

    def write(self, path: str, data: bytes) -> None:
        self._step(lambda: super(Dying, self).write(path, data))

    def delete(self, path: str) -> None:
        self._step(lambda: super(Dying, self).delete(path))


def killed_at(exchange, before: bool):
    """Ends the process before the log has the exchange, or before anybody was told."""

    def killed(each):
        if not before:
            exchange(each).result(10)
        raise Killed

    return killed


def live(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> int:
    """Random rows, seals, merges, cuts and collections, with a kill at each step of the store and of the log, read by
    readers that know nothing; how often it was killed.  Every other seed has topics of three partitions."""
    rng, asking = random.Random(seed), random.Random(seed)
    world.topics.partitions = (1, 3)[seed % 2]
    monkeypatch.setattr(sealing, "FILE_ROWS", 12)
    monkeypatch.setattr(module, "FILE_ROWS", 12)
    monkeypatch.setattr(apart, "CROWD", 1 + seed % 3)
    world.create("u2")
    if seed % 3:
        world.cluster("u2", *(("v",), ("k", "v"))[seed % 2])
    sealer = world.sealer(rows=rng.randint(2, 8))
    kills = 0
    for step in range(40):
        name = rng.choice(("u1", "u2"))
        there = sorted(world.model[name][-1][1].elements())
        changes = Counter()
        for _ in range(rng.randint(1, 9)):
            if there and rng.random() < 0.5:
                changes[rng.choice(there)] = -1
            else:
                changes[rng.randrange(4), rng.randrange(3)] = 1
        world.insert(name, *((*row, n) for row, n in changes.items()), garbage=rng.random() < 0.1)
        if step % 10 == 5:
            world.keep("u2", rng.choice((0, 50, WAITS.grace_s + 10)))
        if step % 15 == 3:
            world.write_late(name, 9, step)
        elif step % 15 == 12:
            world.commit_late()
        world.passes(rng.choice((0, 1, module.MOVE_EVERY_S, WAITS.grace_s, WAITS.orphaned_s)))
        if rng.random() < 0.4:
            sealer._store = Dying(world.path / "store", rng.randint(1, 6), rng.random() < 0.5)
        if rng.random() < 0.2:
            sealer._segments.exchange = killed_at(sealer._segments.exchange, rng.random() < 0.5)
        try:
            if asking.random() < 0.3:
                vacuumed(sealer, *asking.sample(("u1", "u2"), asking.randint(0, 2)), full=asking.random() < 0.5)
            sealer.look()
        except Killed:
            kills += 1
        sealer = world.sealer(rows=rng.randint(2, 8)) if rng.random() < 0.5 else sealer
        sealer._store = world.store
        sealer._segments.__dict__.pop("exchange", None)
        if step % 4 == 0:
            world.check("u1")
            world.check("u2")
    world.check("u1")
    world.check("u2")
    assert sum(world.topics.starts.values()) and sealer._segments.state.stats.admitted > 10
    return kills


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_killed_nothing_is_lost_or_doubled(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert live(world, monkeypatch, seed) >= 3


WRITE, EXCHANGE, PIECES = Sealer._write, Sealer._exchange, Sealer._until_stopped


def says_first(self: Sealer, name, columns, tables, key):
    """The log says that files hold rows, and then they are written."""
    store, later = self._store, []
    self._store = SimpleNamespace(write=lambda *file: later.append(file), read=store.read, delete=lambda _path: None)
    try:
        added = WRITE(self, name, columns, tables, key)
    finally:
        self._store = store
    self._later = later
    return added


def writes_then(self: Sealer, exchange) -> None:
    EXCHANGE(self, exchange)
    for file in self.__dict__.pop("_later", ()):
        self._store.write(*file)


def seals_what_is_new(self: Sealer, found) -> list:
    return sealing.old(found.bound, found.sealed, 1 << 60)


def keeps_insertions(changes: pa.Table) -> pa.Table:
    merged = CONSOLIDATE(changes)
    return merged.filter(pc.greater(merged.column(DIFF), 0))


def forgets_the_last_piece(self: Sealer, tables):
    found = list(PIECES(self, tables))
    yield from found[:-1] or found


def cuts_all(bound, _sealed, partition, _gaps) -> int:
    return bound.coverage[partition][-1][1]


def cuts_gaps(bound, sealed, partition, _gaps) -> int:
    return CUT_BELOW(bound, sealed, partition, True)


def cuts_as_the_first(bound, sealed, topic, gaps) -> dict[int, int]:
    """Of every partition."""
    return dict.fromkeys(CUTS(bound, sealed, topic, gaps), CUT_BELOW(bound, sealed, (topic, 0), gaps))


CUT_BELOW, CUTS, CONSOLIDATE = sealing.cut_below, sealing.cuts, module.consolidate

BUGS = {
    "a file is visible before it is durable": [(Sealer, "_write", says_first), (Sealer, "_exchange", writes_then)],
    "what is new is sealed": [(Sealer, "_ready", seals_what_is_new)],
    "a seal forgets a run": [(Sealer, "_until_stopped", forgets_the_last_piece)],
    "a merge forgets what takes rows away": [(module, "consolidate", keeps_insertions)],
    "a topic is cut above what is in files": [(sealing, "cut_below", cuts_all)],
    "a gap is cut though its writer lives": [(sealing, "cut_below", cuts_gaps)],
    "all partitions are cut where the first may be": [(sealing, "cuts", cuts_as_the_first)],
    "what is sealed is read from its topic, too": [(feed, "unsealed", lambda runs, _sealed: runs)],
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bug: str) -> None:
    """By the worlds above, in one of the first of them."""
    for owner, name, wrong in BUGS[bug]:
        monkeypatch.setattr(owner, name, wrong)
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        world = World(monkeypatch, tmp_path / str(seed))
        world.create("u1")
        try:
            live(world, monkeypatch, seed)
        except (AssertionError, TidemarkError):
            return
        finally:
            world.close()
    pytest.fail("nobody noticed")
