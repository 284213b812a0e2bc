"""A view that is dropped while its output is on the way to its topic, which goes with it."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest
from immutables import Map

from catalog_log.objects import Table
from controllers.protocol import ControllerState, Dropped
from tests.compute.test_crashes import KV, Node, view
from tests.compute.test_idle_views import World, held

pytestmark = pytest.mark.spark

KEPT = view("u2", "SELECT k, v FROM u1 WHERE v > 2", KV, "u1")
GONE = view("u3", "SELECT k, v FROM u1", KV, "u1")
ITEMS = [Table("u1", "s1", "t", "", KV), KEPT, GONE]
TICK_S_MAX = 20.0
"""Of a tick of two views over one row; a write to a topic that is gone took 120 s."""


@pytest.fixture
def world(monkeypatch):
    found = World(monkeypatch)
    yield found
    found.close()


@pytest.mark.parametrize("before", [True, False])
def test_nobody_waits_for_a_view_that_is_dropped_while_it_is_written(world, spark, tmp_path, monkeypatch, before):
    world.insert("u1", (1, 5, 1))
    node = Node(spark, tmp_path / "node", world.oracle, world.views, world.rows, ITEMS)
    node.tick()
    write, writing = world.rows.write, threading.Event()

    def drop() -> None:
        catalog = ControllerState(frontier=2, objects=Map({i.id: i for i in ITEMS if i is not GONE}))
        node.inventory.take(catalog, [Dropped(2, GONE)])
        for item in node.inventory.dropped():
            node.ticking.drop(item)

    def to_a_topic_that_is_gone(collection, *rest) -> Future:
        if collection != GONE.id:
            return write(collection, *rest)
        if before:
            drop()
        writing.set()
        return Future()

    monkeypatch.setattr(world.rows, "write", to_a_topic_that_is_gone)
    runs = [world.insert("u1", (2, 6, 1))]
    ticking = threading.Thread(target=node.tick)
    ticking.start()
    assert writing.wait(TICK_S_MAX)
    if not before:
        drop()
    ticking.join(TICK_S_MAX)
    assert not ticking.is_alive(), "all views wait for one that is dropped"
    assert node.inventory.frontiers().complete("u2") == runs[0] == world.oracle.state.last_ts
    assert held(world, "u2") == {(1, 5): 1, (2, 6): 1}
    world.insert("u1", (3, 7, 1))
    node.tick()
    assert held(world, "u2") == {(1, 5): 1, (2, 6): 1, (3, 7): 1} and node.ticking.drops_known()
    node.close()
