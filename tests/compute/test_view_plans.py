"""A view that newer code plans otherwise: its contents become what the new query says, once, and go on from there."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from catalog_log.objects import Column, Definition, MaterializedView, Reference, Table
from collection.binding import Binding
from collection.columns import DIFF
from controllers.at_work import AtWork
from controllers.compute import view_plans
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from oracle.views_records import ViewCommit
from tests.compute.spoken import plan_of
from tests.compute.test_crashes import KV, Node, Rows, reader_of

pytestmark = pytest.mark.spark

T = Table("u1", "s1", "t", "", KV)
REFERENCES = (Reference(("t",), "u1", "public", ("k", "v")),)


def view(view_id: str, *columns: str) -> MaterializedView:
    its_columns = tuple(Column(c, "int4" if c == "k" else "int8") for c in columns)
    query = Definition(REFERENCES, ("u1",))
    return MaterializedView(view_id, "s1", view_id, "", its_columns, query=query, cluster_id="default")


ITEMS = [T, view("u2", "k", "s"), view("u3", "k", "v"), view("u4", "m")]
OLD = {
    "u2": "SELECT k, SUM(v) AS s FROM u1 GROUP BY k",
    "u3": "SELECT k, v FROM u1 WHERE v > 2",
    "u4": "SELECT MAX(v) AS m FROM u1",
}
NEW = {
    "u2": "SELECT k, SUM(v + 1) AS s FROM u1 GROUP BY k",
    "u3": "SELECT k, v FROM u1 WHERE v > 1",
    "u4": "SELECT MAX(v + 1) AS m FROM u1",
}


def truth(rows: list[tuple[int, int]], by: dict[str, str]) -> dict[str, Counter]:
    more = by is NEW
    keys = {k for k, _ in rows}
    return {
        "u2": Counter((k, sum(v + more for key, v in rows if key == k)) for k in keys),
        "u3": Counter((k, v) for k, v in rows if v > 2 - more),
        "u4": Counter([(max(v for _, v in rows) + more,)]),
    }


class World:
    def __init__(self, spark, tmp_path, monkeypatch) -> None:
        self.spark, self.tmp_path, self.monkeypatch = spark, tmp_path, monkeypatch
        self.rows, self.notes = Rows(), MemoryTopic()
        monkeypatch.setattr("controllers.compute.feed.RunReader", reader_of(self.rows))
        topics = MemoryTopic(), MemoryTopic()
        self.oracle = Oracle.over(lambda: MemoryTransport(topics[0]), Checkpoints(MemoryCheckpointStore(), "o"),
                                  "test", lambda: 0)  # fmt: skip
        self.views = ViewsLog.over(lambda: MemoryTransport(topics[1]), Checkpoints(MemoryCheckpointStore(), "v"), "t")
        self.present: list[tuple[int, int]] = []
        self.lives = 0
        self.node: Node | None = None

    def begin(self, by: dict[str, str], notes: MemoryTopic | None = None) -> None:
        """A life of code that lowers views ``by``."""
        self.end()
        self.lives += 1
        self.monkeypatch.setattr(view_plans, "spark_query", lambda view, objects: by[view.id])
        columns = {"u1": {c.name: c.type for c in KV}}
        self.monkeypatch.setattr(view_plans, "planned_query", lambda view, objects: plan_of(by[view.id], columns))
        at_work = AtWork(MemoryTransport(self.notes if notes is None else notes), f"life {self.lives}").begin()
        scratch = self.tmp_path / str(self.lives)
        self.node = Node(self.spark, scratch, self.oracle, self.views, self.rows, ITEMS, at_work)

    def end(self) -> None:
        if self.node is not None:
            self.node.ticking._at_work.ended()
            self.node.close()
            self.node = None

    def change(self, *rows: tuple[int, int, int]) -> None:
        for k, v, diff in rows:
            if diff > 0:
                self.present.append((k, v))
            else:
                self.present.remove((k, v))
        schema = pa.schema([("k", pa.int32()), ("v", pa.int64()), (DIFF, pa.int64())])
        table = pa.table([pa.array(c) for c in zip(*rows, strict=True)], names=schema.names).cast(schema)
        name = f"write {len(self.rows.topics.get('u1', ()))}"
        runs = self.rows.write("u1", KV, table, name).result()
        self.oracle.commit(CommitPart(name, bindings=tuple(Binding("u1", r) for r in runs))).result(10)
        self.node.tick()

    def held(self) -> dict[str, Counter]:
        """What the committed rows of each view come to."""
        found = {}
        for item in ITEMS[1:]:
            total: Counter = Counter()
            for bound in self.views.state.view(item.id).runs.at(self.oracle.state.last_ts):
                table = self.rows.table(bound.run)
                for *row, diff in zip(*(c.to_pylist() for c in table.columns), strict=True):
                    total[tuple(row)] += diff
            assert min(total.values(), default=0) >= 0, "a row was taken away that was never there"
            found[item.id] = +total
        return found

    def compared(self) -> dict[str, int]:
        return {v: view.compared for v, view in self.node.ticking._maintainer.views.items()}


@pytest.fixture
def world(spark, tmp_path, monkeypatch):
    world = World(spark, tmp_path, monkeypatch)
    yield world
    world.end()


def test_contents_follow_the_code_that_lowers_them(world) -> None:
    world.begin(OLD)
    world.change((1, 1, 1), (1, 2, 1), (2, 3, 1), (2, 2, 1))
    assert world.held() == truth(world.present, OLD)
    world.begin(OLD)
    world.change((1, 3, 1), (2, 3, -1))
    assert world.held() == truth(world.present, OLD)
    assert world.compared()["u2"] == world.compared()["u3"] == 0, "nothing is compared where nothing is new"
    world.begin(NEW)
    world.change((1, 5, 1), (1, 2, -1))
    assert world.held() == truth(world.present, NEW)
    assert world.compared() == {"u2": 1, "u3": 1, "u4": 1}
    world.change((3, 2, 1), (2, 2, -1))
    assert world.held() == truth(world.present, NEW)
    assert world.compared()["u2"] == world.compared()["u3"] == 1, "it goes on by changes"
    world.begin(NEW)
    world.change((3, 7, 1))
    assert world.held() == truth(world.present, NEW) and world.compared()["u2"] == 0
    world.begin(OLD)  # and back
    world.change((3, 7, -1), (4, 4, 1))
    assert world.held() == truth(world.present, OLD)


def test_where_no_note_is_left_the_contents_are_compared(world) -> None:
    world.begin(OLD)
    world.change((1, 1, 1), (1, 2, 1), (2, 3, 1))
    world.begin(NEW, notes=MemoryTopic())
    world.change((1, 5, 1), (1, 2, -1))
    assert world.held() == truth(world.present, NEW)


def test_a_life_that_ends_between_commit_and_note_leaves_no_wrong_note(world, monkeypatch) -> None:
    """Code of before runs again after it: it must not take what the other worked out for its own."""
    world.begin(OLD)
    world.change((1, 1, 1), (1, 2, 1), (2, 3, 1))
    world.begin(NEW)
    noted = AtWork.planned
    monkeypatch.setattr(AtWork, "planned", lambda self, plans, forgotten=(): forgotten and noted(self, {}, forgotten))
    world.change((1, 5, 1), (1, 2, -1))
    monkeypatch.setattr(AtWork, "planned", noted)
    world.begin(OLD)
    world.change((2, 9, 1), (1, 1, -1))
    assert world.held() == truth(world.present, OLD)


def test_what_was_wrong_with_contents_is_mended_once(world, monkeypatch) -> None:
    """Rows that operators found wrongly, by the query that it still is."""
    world.begin(OLD)
    world.change((1, 1, 1), (1, 4, 1), (2, 3, 1))
    values = [9, 8], [9, 8], [2, -1]  # one that is not, twice, and one less than none
    names, kinds = ("k", "v", DIFF), (pa.int32(), pa.int64(), pa.int64())
    wrong = pa.table([pa.array(v, kind) for v, kind in zip(values, kinds, strict=True)], names=names)
    through = world.views.state.view("u3").upper
    ts = world.oracle.commit(CommitPart("a moment")).result(10)
    runs = world.rows.write("u3", ITEMS[2].columns, wrong, "by code of before").result()
    commit = ViewCommit("u3", through, tuple(runs), None)
    world.views.commit("default", world.node.core.epoch, ts, [commit]).result(10)
    world.begin(OLD)
    world.change((1, 5, 1))
    with pytest.raises(AssertionError, match="taken away"):
        world.held()
    monkeypatch.setattr(view_plans, "MENDED", b"2")
    world.begin(OLD)
    world.change((1, 6, 1))
    assert world.held() == truth(world.present, OLD) and world.compared()["u3"] == 1
    world.begin(OLD)
    world.change((1, 7, 1))
    assert world.held() == truth(world.present, OLD) and world.compared()["u3"] == 0
