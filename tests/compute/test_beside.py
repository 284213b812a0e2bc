"""Views that read much, made beside the ticks: others go on meanwhile, and nothing is lost, doubled or left behind."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from immutables import Map

from catalog_log.objects import Column, Table
from controllers.at_work import AtWork
from controllers.compute import inventory as inventory_module
from controllers.compute.beside import Job, Made, _rows_read
from controllers.compute.core import Moved
from controllers.compute.maintainer import Maintainer
from controllers.protocol import Altered, ControllerState, Dropped
from journal.errors import Rejected
from journal.memory import MemoryTopic, MemoryTransport
from tests.compute.test_crashes import ITEMS, KV, Crash, Node, random_changes, truth, view
from tests.compute.test_idle_views import World, held

pytestmark = pytest.mark.spark

LARGE = view("u2", "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM u1 GROUP BY k",
             (Column("k", "int4"), Column("n", "int8"), Column("s", "int8")), "u1")  # fmt: skip
READER = view("u3", "SELECT n FROM u2", (Column("n", "int8"),), "u2")
SMALL = view("u5", "SELECT k, v FROM u4 WHERE v > 2", KV, "u4")
ITEMS_HERE = [Table("u1", "s1", "t", "", KV), LARGE, READER, Table("u4", "s1", "o", "", KV), SMALL]
WAIT_S = 60.0


class Gate:
    """Holds up whoever evaluates beside the ticks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inside, self.open = threading.Event(), threading.Event()
        self.times = 0
        original = Maintainer.evaluate_alone

        def evaluate_alone(maintainer, view, t1, errors):
            self.times += 1
            self.inside.set()
            assert self.open.wait(WAIT_S)
            return original(maintainer, view, t1, errors)

        monkeypatch.setattr(Maintainer, "evaluate_alone", evaluate_alone)


def take_over(node: Node) -> None:
    """As the control loop does once it hears that something has ended."""
    node.ticking._job.join()
    node.core.handle(Moved(node.inventory.known("default"), ()))
    assert node.ticking.let_go()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(inventory_module, "MUCH_ROWS", 4)
    found = World(monkeypatch)
    found.insert("u1", *((k % 3, k, 1) for k in range(6)))
    found.insert("u4", (1, 5, 1))
    yield found
    found.close()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def test_ticks_go_on_while_a_large_view_is_made(world, gate, spark, tmp_path) -> None:
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS_HERE)
    node.tick()
    assert gate.inside.wait(WAIT_S) and node.ticking.at == ("u2",)
    status = node.ticking.status(node.inventory.frontiers())
    assert status["u2"]["beside"]["seconds"] >= 0 and not status["u2"]["hydrated"] and status["u5"]["hydrated"]
    began = world.oracle.state.last_ts
    for n in range(3):
        world.insert("u1", (7, n, 1))
        last = world.insert("u4", (n, 10 + n, 1))
        node.tick()
        assert node.inventory.frontiers().complete("u5") == last
        assert node.wanted() is None, "nothing is to be done but to wait"
    assert held(world, "u5").total() == 4 and world.views.state.view("u2").upper == 0
    gate.open.set()
    take_over(node)
    assert world.views.state.view("u2").upper == began + 1, "it is where it was begun"
    node.tick()
    assert held(world, "u2") == {(0, 2, 3): 1, (1, 2, 5): 1, (2, 2, 7): 1, (7, 3, 3): 1}
    assert held(world, "u3") == {(2,): 3, (3,): 1}
    assert node.ticking._maintainer.views["u2"].compared == 0, "it went on from there"
    assert node.ticking.status(node.inventory.frontiers())["u2"]["beside"] is None
    node.close()


def test_a_status_counts_no_stage_that_spark_does_not_know_or_has_forgotten(spark) -> None:
    """It remembers 50, and the status is of all views."""
    ended, go_on = threading.Event(), threading.Event()

    def make() -> Made:
        spark.range(10).count()
        ended.set()
        assert go_on.wait(WAIT_S)
        return Made()

    job = Job("u2", 10, spark, make, lambda: None)
    assert ended.wait(WAIT_S) and job.status()["rows"] == 10
    assert _rows_read(spark.sparkContext._jsc.sc().statusStore(), 1 << 30) == 0
    go_on.set()
    job.join()
    assert job.failure is None


def test_what_it_reads_stays_readable_until_it_has_gone_on(world, gate, spark, tmp_path) -> None:
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS_HERE)
    node.tick()
    assert gate.inside.wait(WAIT_S)
    relation = node.inventory.relation("u1")
    began = world.oracle.state.last_ts
    for n in range(3):
        world.insert("u1", (7, n, 1))
        node.inventory.relation_through("u1", world.oracle.state.last_ts)
        relation.allow_compaction(world.oracle.state.last_ts)
        assert relation._horizon == began
    gate.open.set()
    take_over(node)
    relation.allow_compaction(world.oracle.state.last_ts)
    assert relation._horizon == began, "its state is of then"
    node.tick()
    relation.allow_compaction(world.oracle.state.last_ts)
    assert relation._horizon == world.oracle.state.last_ts
    node.close()


@pytest.mark.parametrize("when", ["evaluated", "written"])
def test_one_that_is_dropped_meanwhile_is_forgotten_and_nobody_waits(world, gate, spark, tmp_path, monkeypatch, when):
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS_HERE)

    def drop() -> None:
        there = {i.id: i for i in ITEMS_HERE if i not in (LARGE, READER)}
        node.inventory.take(ControllerState(frontier=2, objects=Map(there)), [Dropped(2, READER), Dropped(2, LARGE)])
        for item in node.inventory.dropped():
            node.ticking.drop(item)

    write = world.rows.write
    if when == "written":
        gate.open.set()
        monkeypatch.setattr(world.rows, "write", lambda name, *rest: (name == "u2" and drop(), write(name, *rest))[1])
    node.tick()
    assert gate.inside.wait(WAIT_S)
    if when == "evaluated":
        drop()
        gate.open.set()
    take_over(node)
    assert "u2" not in world.views.state.views and node.ticking.drops_known()
    world.insert("u4", (3, 9, 1))
    node.tick()
    assert held(world, "u5") == {(1, 5): 1, (3, 9): 1} and not node.ticking._fresh
    node.close()


def test_after_a_start_it_is_found_again_beside_the_ticks(world, spark, tmp_path) -> None:
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS_HERE)
    node.tick()
    take_over(node)
    node.tick()
    node.close()
    world.insert("u1", (0, 100, 1), (1, 1, -1))
    again = Node(spark, tmp_path / "again", world.oracle, world.views, world.rows, ITEMS_HERE)
    again.tick()
    assert again.ticking.at == ("u2",)
    take_over(again)
    again.tick()
    assert held(world, "u2") == {(0, 3, 103): 1, (1, 1, 4): 1, (2, 2, 7): 1}
    assert again.ticking._maintainer.views["u2"].compared == 0, "from what it had put out"
    again.close()


def test_an_error_of_its_own_is_told_and_it_is_tried_again_when_what_it_reads_changes(world, spark, tmp_path) -> None:
    wrong = view("u2", "SELECT k, 10 DIV (v - 4) AS n, v AS s FROM u1",
                 (Column("k", "int4"), Column("n", "int8"), Column("s", "int8")), "u1")  # fmt: skip
    items = [wrong if i is LARGE else i for i in ITEMS_HERE]
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, items)
    node.tick()
    take_over(node)
    node.tick()
    assert world.views.state.view("u2").error and world.views.state.view("u3").error
    assert "u2" not in node.ticking._maintainer.views and node.wanted() is None
    world.insert("u1", (1, 4, -1))
    node.tick()
    take_over(node)
    node.tick()
    assert world.views.state.view("u2").error is None is world.views.state.view("u3").error
    assert held(world, "u3").total() == 5
    node.close()


def test_a_large_reader_of_a_large_view_in_error_is_in_error_too(world, spark, tmp_path) -> None:
    wrong = view("u2", "SELECT k, 10 DIV (v - 4) AS n, v AS s FROM u1",
                 (Column("k", "int4"), Column("n", "int8"), Column("s", "int8")), "u1")  # fmt: skip
    reader = view("u3", "SELECT COUNT(*) AS n FROM u1 WHERE k NOT IN (SELECT k FROM u2)", (Column("n", "int8"),),
                  "u1", "u2")  # fmt: skip
    items = [{"u2": wrong, "u3": reader}.get(i.id, i) for i in ITEMS_HERE]
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, items)
    while node.wanted() is not None:
        node.tick()
        if node.ticking._job is not None:
            take_over(node)
    assert world.views.state.view("u2").error
    assert world.views.state.view("u3").error == world.views.state.view("u2").error
    world.insert("u1", (1, 4, -1))
    while node.wanted() is not None:
        node.tick()
        if node.ticking._job is not None:
            take_over(node)
    assert world.views.state.view("u2").error is None is world.views.state.view("u3").error
    assert held(world, "u3") == {(0,): 1}
    node.close()


def test_what_ends_it_otherwise_ends_the_tick_that_finds_it(world, spark, tmp_path, monkeypatch) -> None:
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS_HERE)
    refused = Rejected("no", sqlstate="54000")

    def write(name, *rest):
        if name == "u2":
            raise refused
        return original(name, *rest)

    original = world.rows.write
    monkeypatch.setattr(world.rows, "write", write)
    node.tick()
    node.ticking._job.join()
    with pytest.raises(Rejected) as found:
        node.ticking.let_go()
    assert found.value is refused and node.ticking.at == ("u2",), "it is to blame"
    node.close()


def test_where_its_input_got_a_column_meanwhile_it_is_begun_anew(world, gate, spark, tmp_path) -> None:
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS_HERE)
    node.tick()
    assert gate.inside.wait(WAIT_S)
    table = replace(ITEMS_HERE[0], columns=(*KV, Column("more", "int4")))
    objects = Map({i.id: i for i in (table, *ITEMS_HERE[1:])})
    node.inventory.take(ControllerState(frontier=2, objects=objects), [Altered(2, ITEMS_HERE[0], table)])
    node.ticking.let_go()
    gate.open.set()
    take_over(node)
    assert gate.times == 1 and world.views.state.view("u2").upper == 0
    for _ in range(3):
        node.tick()
        if node.ticking._job is not None:
            take_over(node)
    assert held(world, "u2") == {(0, 2, 3): 1, (1, 2, 5): 1, (2, 2, 7): 1}
    assert held(world, "u3") == {(2,): 3}
    node.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_all_views_are_what_their_queries_say(spark, tmp_path: Path, monkeypatch, seed: int) -> None:
    """Rows come, lives end at any moment of what is made beside the ticks, and more and less views count as large."""
    world, rng, notes = World(monkeypatch), random.Random(seed), MemoryTopic()
    present: Counter = Counter()
    commit, ends = world.views.commit, Counter()
    crash = False

    def commit_or_crash(*args):
        if crash and threading.current_thread().name.startswith("beside"):
            if rng.random() < 0.5:
                commit(*args).result(10)
            raise Crash
        return commit(*args)

    monkeypatch.setattr(world.views, "commit", commit_or_crash)
    node, lives = None, 0
    for step in range(24):
        if node is None:
            lives += 1
            monkeypatch.setattr(inventory_module, "MUCH_ROWS", rng.choice([1, 1, 4, 1000]) if lives > 1 else 1)
            at_work = AtWork(MemoryTransport(notes), f"life {lives}").begin()
            node = Node(spark, tmp_path / f"{lives}", world.oracle, world.views, world.rows, ITEMS, at_work)
        changes = random_changes(rng, present)
        world.insert("u1", *changes)
        crash = rng.random() < 0.8
        try:
            for _ in range(12):
                node.tick()
                if node.ticking._job is None and node.wanted() is None:
                    break
                if node.ticking._job is not None:
                    if rng.random() < 0.3:
                        break
                    take_over(node)
            else:
                raise AssertionError("it never comes to rest")
        except Crash:
            ends["crash"] += 1
        crash = False
        if node.ticking._job is not None:
            ends["at work"] += 1
        elif node.wanted() is None:
            ends["checked"] += 1
            as_of = world.oracle.state.last_ts
            for view_id, want in truth(present).items():
                assert node.inventory.frontiers().complete(view_id) == as_of, (seed, step)
                assert held(world, view_id) == want, (seed, step, view_id)
        if node.ticking._job is not None or rng.random() < 0.5:
            node.ticking._at_work.ended()
            node.close()
            node = None
    assert min(ends["checked"], ends["at work"]) >= 3 and ends["crash"], ends
    if node is not None:
        node.close()
    world.close()
