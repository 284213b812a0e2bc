"""Views that lay idle for longer than history is kept, and views with more history than rows."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from immutables import Map

from catalog_log.objects import INDEX, MATERIALIZED_VIEW, Column, Table
from collection.binding import Binding
from collection.columns import DIFF
from controllers.arrangements.tuples import to_rows
from controllers.changes import stamp
from controllers.compute import relation as module
from controllers.compute.feed import Feed
from controllers.compute.indexes import Indexes, _Index
from controllers.compute.inventory import Inventory
from controllers.compute.relation import Relation
from controllers.protocol import ControllerState, Created
from journal.errors import InvalidUsage, Rejected, Unavailable
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.timestamps import DataTs
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from tests.compute.test_crashes import KV, Node, Rows, reader_of
from tests.objects import made

SHORT = CheckpointPolicy(retain_ms=20, slack_records=10)
DAY_MS = 86_400_000


class World:
    """Journals in memory, rows in a list, and a table timeline that jumps as far as a test says."""

    def __init__(self, monkeypatch) -> None:
        self.rows = Rows()
        self.now = 1_700_000_000_000
        monkeypatch.setattr("controllers.compute.feed.RunReader", reader_of(self.rows))
        oracle_topic, views_topic = MemoryTopic(), MemoryTopic()
        kept = Checkpoints(MemoryCheckpointStore(), "o"), Checkpoints(MemoryCheckpointStore(), "v")
        self.oracle = Oracle.over(lambda: MemoryTransport(oracle_topic), kept[0], "test", lambda: 0)
        self.views = ViewsLog.over(lambda: MemoryTransport(views_topic), kept[1], "test")

    def insert(self, table: str, *changes: tuple) -> int:
        """At a new timestamp; each change is a row with its diff."""
        self.now += 1
        made = pa.table([pa.array(c) for c in zip(*changes, strict=True)], names=["k", "v", DIFF])
        made = made.cast(pa.schema([("k", pa.int32()), ("v", pa.int64()), (DIFF, pa.int64())]))
        runs = self.rows.write(table, KV, made, uuid.uuid4().hex).result()
        part = CommitPart(uuid.uuid4().hex, tuple(Binding(table, r) for r in runs), self.now)
        return self.oracle.commit(part).result(10)

    def a_day_passes(self) -> None:
        """Somebody else writes, and what is older than a moment is forgotten."""
        self.now += DAY_MS
        self.insert("noise", (0, 0, 1))
        self.oracle.checkpoint(SHORT)
        self.views.checkpoint(self.oracle.state.since, SHORT)

    def close(self) -> None:
        self.views.close()
        self.oracle.close()


@pytest.fixture
def world(monkeypatch):
    found = World(monkeypatch)
    yield found
    found.close()


def held(world, view_id) -> Counter:
    """What is bound of the view at the newest timestamp."""
    found: Counter = Counter()
    for each in world.views.state.view(view_id).runs.at(world.oracle.state.last_ts):
        for *row, diff in to_rows(world.rows.table(each.run)):
            found[tuple(row)] += diff
    assert all(count >= 0 for count in found.values()), found
    return found + Counter()


@pytest.mark.spark
def test_a_view_idle_for_longer_than_history_is_kept_goes_on_after_a_restart(world, spark, tmp_path):
    world.insert("u1", (1, 5, 1), (2, 7, 1))
    world.insert("noise", (0, 0, 1))
    node = Node(spark, tmp_path / "first", world.oracle, world.views, world.rows)
    node.tick()
    node.close()
    # One restart finds an input that changed a day after the view; the next, one that changed twice since then.
    for step, changes in enumerate(([(1, 6, 1)], [(2, 7, -1), (3, 9, 1)])):
        world.a_day_passes()
        for change in changes:
            world.insert("u1", change)
            world.a_day_passes()
        assert world.views.state.view("u2").upper <= world.oracle.state.since
        node = Node(spark, tmp_path / f"again{step}", world.oracle, world.views, world.rows)
        node.tick()
        as_of = world.oracle.state.last_ts
        frontiers = node.inventory.frontiers()
        assert [frontiers.complete(v) for v in ("u2", "u3", "u4", "u5")] == [as_of] * 4
        assert not any(world.views.state.view(v).error for v in ("u2", "u3", "u4", "u5"))
        node.close()
    assert held(world, "u2") == Counter({(1, 2, 11): 1, (3, 1, 9): 1})
    assert held(world, "u3") == Counter({(5, 1): 1, (6, 1): 1, (9, 3): 1})
    assert held(world, "u4") == Counter({(2, 11): 1, (1, 9): 1})
    assert held(world, "u5") == Counter({(1, 2): 2, (3, 1): 1})


SPARK = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
"""Of a relation that Spark never reads."""


def relation(tmp_path: Path) -> Relation:
    tmp_path.mkdir(exist_ok=True)
    return Relation(SPARK, "u1", KV, tmp_path)


def contents(relation: Relation, as_of: int) -> Counter:
    found: Counter = Counter()
    for *row, diff in to_rows(relation.delta(-1, as_of)):
        found[tuple(row)] += diff
    return found


ITEM = Table("u1", "s1", "t", "", (Column("k", "int4"), Column("v", "int8")))
VIEW = made(MATERIALIZED_VIEW, "u3", on=("u1",), columns=(Column("k", "int4"),), sql="SELECT k FROM u1")


def test_what_nobody_tells_apart_any_more_is_brought_to_what_is_told(world, tmp_path):
    first = world.insert("u1", (1, 5, 1))
    world.insert("u1", (2, 5, 1))
    third = world.insert("u1", (1, 5, -1))
    world.a_day_passes()
    feed, loaded = Feed("", world.oracle, world.views), relation(tmp_path)
    feed.catch_up(loaded, ITEM, first)
    assert loaded.upper == third + 1 and loaded.since == third, "it says itself that it cannot be read at that time"
    with pytest.raises(InvalidUsage) as too_old:
        loaded.delta(-1, first)
    assert too_old.value.sqlstate == "22023" and contents(loaded, third) == Counter({(2, 5): 1})
    # Nothing came since: then it can be read there, however long ago that was.
    world.a_day_passes()
    quiet = relation(tmp_path)
    feed.catch_up(quiet, ITEM, third + 5)
    assert quiet.upper == third + 6 and contents(quiet, third + 5) == Counter({(2, 5): 1})
    fourth = world.insert("u1", (9, 9, 1))
    feed.catch_up(quiet, ITEM, fourth)
    assert contents(quiet, third + 5) == Counter({(2, 5): 1})
    assert contents(quiet, fourth) == Counter({(2, 5): 1, (9, 9): 1})
    feed.close()


def test_rows_that_nothing_takes_away_are_merged_as_far_as_they_are_few(tmp_path, monkeypatch):
    """However many come, what is in memory to merge them is bounded; what was taken away goes all the same."""
    monkeypatch.setattr(module, "TAIL_ROWS_MAX", 9)
    monkeypatch.setattr(module, "MERGE_ROWS_MAX", 64)
    held = relation(tmp_path)

    def put(ts: int, n: int, diff: int) -> None:
        rows = {"k": pa.array(range(10), pa.int32()), "v": pa.array([n] * 10), DIFF: pa.array([diff] * 10)}
        held.append([stamp(pa.table(rows), ts, held.types)], ts + 1)
        held.maintain()

    for n in range(100):
        put(n + 1, n, 1)
    sizes = [part.rows for part in held._chunks]
    assert max(sizes) <= 64 and len(sizes) <= 1000 // 32 + 3, sizes
    assert contents(held, 100).total() == 1000 == held.count
    for n in range(99):
        put(n + 101, n, -1)
        held.allow_compaction(n + 101)
    held.maintain()
    assert held.rows <= 2 * 10 + 4 * 20 and contents(held, 199) == Counter((k, 99) for k in range(10))


def test_a_long_history_of_few_rows_takes_the_room_of_few_rows(world, tmp_path, monkeypatch):
    """The limits are small here: a history of 300 changes, of which no more than 40 may be held at once."""
    monkeypatch.setattr(module, "ROWS_MAX", 40)
    monkeypatch.setattr(module, "LOAD_ROWS_MAX", 16)
    world.insert("u1", (1, 0, 1))
    for n in range(150):
        world.insert("u1", (1, n, -1), (1, n + 1, 1))
    world.a_day_passes()
    last = world.insert("u1", (2, 2, 1))
    feed, loaded = Feed("", world.oracle, world.views), relation(tmp_path)
    feed.catch_up(loaded, ITEM, last)
    assert contents(loaded, last) == Counter({(1, 150): 1, (2, 2): 1}) and loaded.count == 2
    assert contents(loaded, last - 1) == Counter({(1, 150): 1})
    assert loaded.rows <= 20 and loaded.upper == last + 1
    # More rows than may be held are refused while they come, and nothing of them stays.
    for n in range(60):
        world.insert("u1", (100 + n, n, 1))
    full = relation(tmp_path / "full")
    with pytest.raises(Rejected) as refused:
        feed.catch_up(full, ITEM, world.now)
    assert refused.value.sqlstate == "53200"
    assert (full.upper, full.rows, full.count) == (0, 0, 0) and not list((tmp_path / "full").iterdir())
    with pytest.raises(Unavailable):
        full.delta(-1, world.now)
    feed.close()


def test_what_no_view_reads_forgets_its_history_too(world, tmp_path, monkeypatch) -> None:
    """A table that is updated all the time, and that only reads ask for: it grew by each change until it could not be
    read any more."""
    monkeypatch.setattr(module, "TAIL_ROWS_MAX", 9)
    inventory = Inventory(SPARK, tmp_path, Feed("", world.oracle, world.views), world.oracle, world.views, None)
    monkeypatch.setattr(inventory, "_at_work", SimpleNamespace(refused=lambda _id: None))
    items = [ITEM, replace(ITEM, id="u2", name="t2"), VIEW]
    catalog = ControllerState(frontier=10, objects=Map({each.id: each for each in items}))
    inventory.take(catalog, [Created(0, each) for each in items])
    stamps = []
    for n in range(100):
        for table in ("u1", "u2"):
            stamps.append(world.insert(table, *((k, n - 1, -1) for k in range(4 if n else 0)),
                                       *((k, n, 1) for k in range(4))))  # fmt: skip
        for table in ("u1", "u2"):
            found = inventory.relation_through(table, stamps[-1])
            inventory.forget_history("default", DataTs(stamps[-8:][0]))
            found.maintain()
    read_by_view, unread = inventory.relation("u1"), inventory.relation("u2")
    assert read_by_view.since == 0 and read_by_view.rows == 796, "its ticks say what may go"
    assert 0 < unread.since <= stamps[-8] and unread.rows < 200
    for each in (read_by_view, unread):
        assert contents(each, stamps[-1]) == Counter((k, 99) for k in range(4))
    after = world.insert("noise", (0, 0, 1))
    for table in ("u1", "u2"):
        found = inventory.relation_through(table, after)
        inventory.forget_history("another", DataTs(stamps[-1]))
        assert found.maintain() and not found.maintain(), "nothing more comes, and what there is has become old"
        assert found.rows == found.count == 4 and contents(found, after) == Counter((k, 99) for k in range(4))
    for each in inventory.relations():
        each.close()


def test_few_rows_are_held_whatever_their_history(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "RESIDENT_ROWS_MAX", 10)
    monkeypatch.setattr(module, "HISTORY_ROWS_MAX", 60)
    there = relation(tmp_path)

    def put(ts: int, *changes: tuple[int, int, int]) -> None:
        columns = zip(*changes, strict=True)
        rows = pa.table([pa.array(each) for each in columns], names=["k", "v", DIFF])
        rows = rows.cast(pa.schema([("k", pa.int32()), ("v", pa.int64()), (DIFF, pa.int64())]))
        there.append([stamp(rows, ts, there.types)], DataTs(ts + 1))

    put(1, *((k, 0, 1) for k in range(5)))
    for n in range(1, 6):
        put(n + 1, *((k, n - 1, -1) for k in range(5)), *((k, n, 1) for k in range(5)))
        assert there.resident(DataTs(n + 1)) is not None
    assert there.rows == 55 and there.count == 5
    held = there.resident(DataTs(6), apart=True)
    assert sorted(to_rows(held)) == [(k, 5, 1) for k in range(5)]
    put(7, *((k, 9, 1) for k in range(20, 30)))
    assert there.resident(DataTs(7)) is None, "neither of few changes nor of few rows"
    put(8, *((k, 9, -1) for k in range(20, 30)))
    assert there.resident(DataTs(8)) is None and there.count == 5, "more changes than are looked through"
    there.close()


def test_a_version_that_may_go_is_none_to_begin_with(tmp_path) -> None:
    """Whoever merges may have begun with a horizon above it: what was there then cannot be asked for any more."""
    there, asked = relation(tmp_path), []
    for ts in (5, 12, 19):
        rows = pa.table({"k": pa.array([ts], pa.int32()), "v": pa.array([ts]), DIFF: pa.array([1])})
        there.append([stamp(rows, ts, there.types)], DataTs(ts + 1))
    whole = there.delta
    there.delta = lambda after, through: asked.append((after, through)) or whole(after, through)
    there.resident(DataTs(5))
    there.resident(DataTs(12))
    there.allow_compaction(DataTs(15))
    assert there.resident(DataTs(19)).num_rows == 3
    there.resident(DataTs(19))
    assert asked == [(-1, 5), (5, 12), (-1, 19)] and not there._held
    there.close()


def test_an_index_whose_relation_forgets_while_it_is_brought_along_begins_anew(tmp_path) -> None:
    there = relation(tmp_path)
    index = _Index(made(INDEX, "u9", on=("u1",), key=("k",)), ITEM)
    index.layout = [(column.id, column.type) for column in there.columns]
    indexes = Indexes(SimpleNamespace(relation_through=lambda *_: there), "default", 1000, None)

    def put(ts: int) -> None:
        rows = pa.table({"k": pa.array([ts], pa.int32()), "v": pa.array([ts]), DIFF: pa.array([1])})
        there.append([stamp(rows, ts, there.types)], DataTs(ts + 1))
        indexes._bring_locked(index, DataTs(ts))

    def forgets(after: int, through: int):
        there.reset_since(DataTs(15))
        return whole(after, through)

    put(5)
    whole, there.changes = there.changes, forgets
    put(19)
    assert index.arrangement.upper == 20 and index.arrangement.since >= 15
    assert there.since == 15 and index.off is None
    there.close()
