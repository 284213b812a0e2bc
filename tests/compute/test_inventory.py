"""What a controller knows of its objects is kept up by what changes, and costs what changes."""

from __future__ import annotations

import random
from collections import deque

from catalog_log.objects import INDEX, MATERIALIZED_VIEW, TABLE, Item
from controllers.at_work import AtWork
from controllers.commands import Command, Kind
from controllers.compute.indexes import Indexes
from controllers.compute.inventory import Inventory
from controllers.protocol import ControllerState
from journal.memory import MemoryTransport
from tests.objects import made


def item(number: int, kind: str, cluster: str | None) -> Item:
    return made(kind, f"u{number}", on=("u0",) if kind == INDEX else (), cluster=cluster or "default")


class World:
    def __init__(self, tmp_path) -> None:
        self.at_work = AtWork(MemoryTransport(), "a life")
        self.inventory = Inventory(None, tmp_path, None, None, None, self.at_work)
        self.state = ControllerState()
        self.change(item(0, TABLE, None))

    def change(self, *changes: Item | str) -> None:
        lower = self.state.frontier
        commands = [
            Command(lower, n, Kind.DROP, c, lower=lower) if isinstance(c, str)
            else Command(lower, n, Kind.CREATE, c.id, c, lower=lower)
            for n, c in enumerate(changes)
        ]  # fmt: skip
        advance = Command(lower, len(commands), Kind.ADVANCE_CATALOG_FRONTIER, frontier=lower + 1, lower=lower)
        effects = []
        for command in [*commands, advance]:
            self.state, found = self.state.apply(command)
            effects += found
        self.inventory.take(self.state, effects)


def test_the_views_and_indexes_of_a_cluster_are_those_that_there_are(tmp_path):
    world, rng = World(tmp_path), random.Random(3)
    for number in range(1, 300):
        kind, cluster = rng.choice([(TABLE, None), (MATERIALIZED_VIEW, "a"), (MATERIALIZED_VIEW, "b"), (INDEX, "a")])
        gone = rng.sample(sorted(world.state.objects), rng.randrange(2))
        before = {c: (world.inventory.views_of(c), world.inventory.indexes_of(c)) for c in "ab"}
        world.change(item(number, kind, cluster), *(i for i in gone if i != "u0"))
        objects = world.state.objects
        for cluster_id in "ab":
            listed = world.inventory.views_of(cluster_id), world.inventory.indexes_of(cluster_id)
            for found, wanted, was in zip(listed, (MATERIALIZED_VIEW, INDEX), before[cluster_id], strict=True):
                assert dict(found) == {
                    i: o for i, o in objects.items() if o.kind == wanted and o.cluster_id == cluster_id
                }
                assert (found is was) == (found == was), "who saw it already need not look again"
    assert world.inventory.views_of("nobody") is world.inventory.views_of("nobody")


def test_indexes_are_looked_through_only_when_one_came_or_went(tmp_path):
    world = World(tmp_path)
    world.change(item(1, INDEX, "a"))
    indexes = Indexes(world.inventory, "a", 1000, world.at_work)
    indexes.reconcile()
    looked: list[str] = []
    listed = world.inventory.indexes_of("a")

    class Watched(dict):
        def __iter__(self):
            looked.append("looked")
            return super().__iter__()

    world.inventory.indexes_of = lambda _: listed
    indexes._indexes = Watched(indexes._indexes)
    for number in range(2, 50):
        world.change(item(number, TABLE, None))
        indexes.reconcile()
    assert not looked and set(indexes.status()) == {"u1"}
    del world.inventory.indexes_of
    world.change(item(99, INDEX, "a"), "u1")
    indexes.reconcile()
    assert set(indexes.status()) == {"u99"}


def test_who_is_told_of_a_drop_finds_it_dropped(tmp_path):
    """The control loop asks what was dropped while the commands' reader is in the middle of telling: an object that is
    told and still there was taken for one that lives, and its progress was never forgotten."""
    world = World(tmp_path)
    seen: list[bool] = []

    class Told(deque):
        def extend(self, items):
            items = list(items)
            seen.extend(each.id in world.inventory.catalog.objects for each in items)
            super().extend(items)

    world.inventory._gone = Told()
    world.change(item(1, MATERIALIZED_VIEW, "a"), item(2, TABLE, None))
    world.change("u1")
    world.change("u2")
    assert seen == [False, False]
    assert [each.id for each in world.inventory.dropped()] == ["u1", "u2"] and world.inventory.dropped() == []


