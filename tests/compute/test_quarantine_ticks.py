"""A view that ends its controller twice is left alone, and one that fails in any way fails alone."""

from __future__ import annotations

from collections import Counter

import pytest

from catalog_log.objects import Table
from controllers.at_work import AtWork
from controllers.compute.core import Released
from controllers.compute.heartbeat import SparkEnded
from controllers.peeks.peek_codec import decode_error
from controllers.quarantine import REFUSED
from journal.memory import MemoryTopic, MemoryTransport
from tests.compute.test_crashes import KV, Node, view
from tests.compute.test_idle_views import World, held

pytestmark = pytest.mark.spark

FINE = view("u2", "SELECT k, v FROM u1 WHERE v > 2", KV, "u1")
BAD = view("u3", "SELECT k, v FROM u1", KV, "u1")
READS_BAD = view("u4", "SELECT k, v FROM u3", KV, "u3")
READS_FINE = view("u5", "SELECT k, v FROM u2", KV, "u2")
ITEMS = [Table("u1", "s1", "t", "", KV), FINE, BAD, READS_BAD, READS_FINE]
VIEWS = ("u2", "u3", "u4", "u5")


class Killed(BaseException):
    """The process is gone: no handler of anybody sees it."""


@pytest.fixture
def world(monkeypatch):
    found = World(monkeypatch)
    yield found
    found.close()


class Lives:
    """One controller after the other, over the same journals and the same notes."""

    def __init__(self, spark, tmp_path, world, items=ITEMS) -> None:
        self.spark, self.directory, self.world, self.items = spark, tmp_path, world, items
        self.topic = MemoryTopic()
        self.count = 0

    def begin(self) -> Node:
        self.count += 1
        self.at_work = AtWork(MemoryTransport(self.topic), f"life {self.count}").begin()
        return Node(self.spark, self.directory / f"{self.count}", self.world.oracle, self.world.views,
                    self.world.rows, self.items, self.at_work)  # fmt: skip


def end_at(lives: Lives, view_id: str, monkeypatch) -> None:
    """A life that ends at ``view_id``, which is taken first and by itself; only it is suspected from then on."""
    monkeypatch.setattr("controllers.at_work.ALONE_MAX", 0)
    with monkeypatch.context() as one_by_one:
        one_by_one.setattr("controllers.compute.core.INSTALL_MAX", 1)
        node = lives.begin()
        node.read(view_id)
        with pytest.raises(Killed):
            node.tick()
        node.close()


def error_of(world, view_id):
    error = world.views.state.view(view_id).error
    return None if error is None else decode_error(error)


def test_a_start_that_is_cut_short_is_not_begun_anew(world, spark, tmp_path, monkeypatch):
    """A thousand views at once took longer than a supervisor waits, and none of them was kept."""
    from controllers.compute.view import View

    world.insert("u1", (1, 5, 1))
    evaluate, evaluated, cut = View.evaluate, [], True

    def counting(self, sources, t1):
        if cut and len(evaluated) == 3:
            raise Killed
        evaluated.append(self.id)
        return evaluate(self, sources, t1)

    monkeypatch.setattr(View, "evaluate", counting)
    monkeypatch.setattr("controllers.compute.core.INSTALL_MAX", 1)
    lives, parts = Lives(spark, tmp_path, world), []
    node = lives.begin()
    with pytest.raises(Killed):
        node.ticking.tick(world.oracle.state.last_ts, lambda: parts.append(len(evaluated)))
    node.close()
    assert (evaluated, parts) == (["u2", "u3", "u4"], [1, 2, 3]), "readers after what they read, and each is bound"
    cut = False
    node = lives.begin()
    node.tick()
    assert evaluated == ["u2", "u3", "u4", "u5"]
    assert [held(world, v) for v in VIEWS] == [Counter({(1, 5): 1})] * 4
    node.close()


def test_a_view_that_somebody_waits_for_is_taken_in_before_the_others(world, spark, tmp_path, monkeypatch):
    world.insert("u1", (1, 5, 1))
    monkeypatch.setattr("controllers.compute.core.INSTALL_MAX", 1)
    node, there = Lives(spark, tmp_path, world).begin(), []
    node.read("u4")
    node.ticking.tick(world.oracle.state.last_ts, lambda: there.append({v for v in VIEWS if held(world, v)}))
    assert there == [{"u3"}, {"u3", "u4"}, {"u2", "u3", "u4"}] and held(world, "u5")
    node.close()


def test_who_ends_the_controller_twice_is_left_alone_until_it_is_asked_for(world, spark, tmp_path, monkeypatch):
    from controllers.compute.view import View

    world.insert("u1", (1, 5, 1))
    evaluate, poisoned = View.evaluate, {"u3"}

    def killing(self, sources, t1):
        if self.id in poisoned:
            raise Killed
        return evaluate(self, sources, t1)

    monkeypatch.setattr(View, "evaluate", killing)
    lives = Lives(spark, tmp_path, world)
    for _ in range(2):
        node = lives.begin()
        with pytest.raises(Killed):
            node.tick()
        node.close()
    # Together at first, one by one then: who was at work with it is through already, whatever comes.
    assert held(world, "u2") == Counter({(1, 5): 1})
    deaths = 2
    while not AtWork(MemoryTransport(lives.topic), "observer").begin().notes.quarantined():
        node = lives.begin()
        with pytest.raises(Killed):
            node.tick()
        node.close()
        deaths += 1
    assert deaths <= 3
    node = lives.begin()
    world.insert("u1", (2, 7, 1))
    node.tick()
    assert held(world, "u5") == Counter({(1, 5): 1, (2, 7): 1})
    for each in ("u3", "u4"):
        told = error_of(world, each)
        assert told.sqlstate == REFUSED and told.message.startswith("u3 is in quarantine"), each
    frontiers = node.inventory.frontiers()
    assert {frontiers.complete(v) for v in ("u2", "u3", "u4", "u5")} == {world.oracle.state.last_ts}
    assert node.ticking.status(frontiers)["u3"]["quarantined"]
    node.tick()  # nothing more to do, and nothing is tried again by itself
    assert node.wanted() is None
    # Asked for, it is tried again, and comes back with what it missed.
    poisoned.clear()
    lives.at_work.release(["u3"])
    node.core.handle(Released())
    world.insert("noise", (0, 0, 1))
    node.tick()
    assert error_of(world, "u3") is None and error_of(world, "u4") is None
    assert held(world, "u3") == held(world, "u4") == Counter({(1, 5): 1, (2, 7): 1})
    node.close()


def test_a_suspect_that_somebody_waits_for_has_its_turn_first(world, spark, tmp_path, monkeypatch):
    """Whoever asks for what ends the controller waited until all others had their turn, each by itself."""
    from controllers.compute.view import View

    world.insert("u1", (1, 5, 1))
    evaluate = View.evaluate

    def killing(self, sources, t1):
        if self.id == "u3":
            raise Killed
        return evaluate(self, sources, t1)

    monkeypatch.setattr(View, "evaluate", killing)
    lives = Lives(spark, tmp_path, world)
    for _ in range(3):  # the first time it is one of all
        node = lives.begin()
        node.read("u4")
        with pytest.raises(Killed):
            node.tick()
        node.close()
    assert AtWork(MemoryTransport(lives.topic), "observer").begin().notes.quarantined()
    assert not held(world, "u2")


def test_a_suspect_has_its_turn_though_the_others_always_have_something_to_do(world, spark, tmp_path, monkeypatch):
    from controllers.compute.view import View

    calm = [Table("u6", "s1", "s", "", KV), view("u7", "SELECT k, v FROM u6", KV, "u6")]
    world.insert("u1", (1, 5, 1))
    evaluate, evaluated, deadly = View.evaluate, [], True

    def killing(self, sources, t1):
        if deadly and self.id == "u3":
            raise Killed
        evaluated.append(self.id)
        return evaluate(self, sources, t1)

    monkeypatch.setattr(View, "evaluate", killing)
    lives = Lives(spark, tmp_path, world, [*ITEMS, *calm])
    end_at(lives, "u3", monkeypatch)
    deadly = False
    node, parts = lives.begin(), []

    def more() -> None:
        parts.append(set(evaluated))
        assert len(parts) < 9, "the suspects never had their turn"
        if "u3" not in evaluated:
            world.insert("u6", (len(parts), 7, 1))

    world.insert("u6", (0, 7, 1))
    node.ticking.tick(world.oracle.state.last_ts, more)
    assert parts[0] == {"u7"} and len(parts[1]) == 2
    node.tick()
    assert held(world, "u2") == held(world, "u3") == held(world, "u4") == held(world, "u5") == Counter({(1, 5): 1})
    node.close()


def test_a_suspect_goes_where_what_it_reads_is(world, spark, tmp_path, monkeypatch):
    """Rows that come between two steps of a tick are not left out of a view over a view."""
    from controllers.compute.view import View

    world.insert("u1", (1, 5, 1))
    evaluate, deadly = View.evaluate, True

    def killing(self, sources, t1):
        if deadly and self.id == "u5":
            raise Killed
        return evaluate(self, sources, t1)

    monkeypatch.setattr(View, "evaluate", killing)
    lives = Lives(spark, tmp_path, world)
    end_at(lives, "u5", monkeypatch)
    deadly = False
    node, uppers = lives.begin(), []

    def more() -> None:
        uppers.append({view_id: world.views.state.view(view_id).upper for view_id in ("u2", "u5")})
        if len(uppers) < 6:
            world.insert("u1", (len(uppers) + 1, 7, 1))

    world.insert("u1", (0, 7, 1))
    node.ticking.tick(world.oracle.state.last_ts, more)
    assert all(each["u5"] <= each["u2"] for each in uppers) and len(uppers) > 1, uppers
    node.tick()
    assert held(world, "u5") == held(world, "u2") and len(held(world, "u5")) == 1 + len(uppers) + 1
    node.close()


def test_a_collection_that_ends_spark_while_it_is_loaded_is_to_blame(world, spark, tmp_path, monkeypatch):
    from controllers.compute.inventory import Inventory

    world.insert("u1", (1, 5, 1))
    bring = Inventory.bring

    def ending(self, relation, ts):
        if relation.id == "u1":
            raise SparkEnded("spark's JVM ended", detail="exit code 3, out of memory")
        return bring(self, relation, ts)

    monkeypatch.setattr(Inventory, "bring", ending)
    lives = Lives(spark, tmp_path, world)
    for _ in range(4):
        node = lives.begin()
        if lives.at_work.notes.quarantined():
            break
        with pytest.raises(SparkEnded):
            node.tick()
        # What the controller does then: its end is not the broker's fault, nor one that it was told of.
        lives.at_work.blame(node.ticking.at) if node.ticking.at else lives.at_work.ended()
        node.close()
    assert lives.at_work.notes.quarantined() == ["u1"]
    node.close()


@pytest.mark.parametrize("where", ["install", "load", "restore", "first look", "put"])
def test_a_view_that_fails_in_any_way_fails_alone(world, spark, tmp_path, monkeypatch, where):
    from controllers.compute.maintainer import Maintainer
    from controllers.compute.ticking import Ticking
    from controllers.compute.view import View

    world.insert("u1", (1, 5, 1))
    lives = Lives(spark, tmp_path, world)
    node = lives.begin()
    node.tick()
    if where in ("install", "load", "restore"):
        node.close()
        node = lives.begin()
    owner, name = {
        "install": (Maintainer, "make"), "load": (Ticking, "_in_memory"), "restore": (View, "_can_go_on"),
        "first look": (View, "_can_go_on"), "put": (View, "fail"),
    }[where]  # fmt: skip
    original = getattr(owner, name)
    failing = {"u3"}

    def fail(self, *args):
        about = [getattr(each, "id", each) for each in (self, *args)]
        if any(each in failing for each in about if isinstance(each, str)):
            raise ZeroDivisionError("of ours")
        return original(self, *args)

    if where == "put":
        relation = node.inventory.relation("u3")
        append = relation.append
        monkeypatch.setattr(relation, "append", lambda *a: append(*a) if not failing else 1 / 0)
    else:
        monkeypatch.setattr(owner, name, fail)
    world.insert("u1", (2, 7, 1))
    node.tick()
    assert held(world, "u5") == Counter({(1, 5): 1, (2, 7): 1}) and error_of(world, "u2") is None
    if where != "restore":
        assert error_of(world, "u3") is not None and error_of(world, "u4") is not None
    failing.clear()
    world.insert("u1", (3, 9, 1))
    node.tick()
    assert not any(error_of(world, v) for v in ("u2", "u3", "u4", "u5"))
    assert held(world, "u3") == held(world, "u4") == Counter({(1, 5): 1, (2, 7): 1, (3, 9): 1})
    node.close()
