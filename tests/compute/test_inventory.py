"""What a controller knows of its objects is kept up by what changes, and costs what changes."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest

from catalog_log.objects import INDEX, MATERIALIZED_VIEW, TABLE, Column, Index, Item, Table, numbered
from collection.columns import DIFF
from controllers.arrangements.arrangement import Arrangement
from controllers.arrangements.tuples import schema_of, to_table
from controllers.at_work import AtWork
from controllers.changes import stamp
from controllers.commands import Command, Kind
from controllers.compute import indexes as module
from controllers.compute.indexes import Indexes
from controllers.compute.inventory import Inventory
from controllers.compute.relation import Relation
from controllers.protocol import ControllerState
from journal.errors import Unavailable
from journal.memory import MemoryTransport
from journal.timestamps import DataTs
from tests.objects import made


def item(number: int, kind: str, cluster: str | None) -> Item:
    return made(kind, f"u{number}", on=("u0",) if kind == INDEX else (), cluster=cluster or "default")


class World:
    def __init__(self, tmp_path) -> None:
        self.at_work = AtWork(MemoryTransport(), "a life").begin()
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


def test_a_collection_that_gets_columns_is_another_relation_and_one_that_is_called_otherwise_is_not(tmp_path):
    world = World(tmp_path)
    table = Table("u1", "s1", "t", "", numbered((Column("a", "int4"), Column("b", "text"))))
    world.change(table)
    before = world.inventory.relation("u1")
    renamed = replace(table, name="t2", columns=(replace(table.columns[0], name="c", field="a"), table.columns[1]))
    narrower = replace(renamed, columns=renamed.columns[1:], dropped=renamed.columns[:1])
    for alike in (renamed, narrower):
        world.change(alike)
        assert world.inventory.relation("u1") is before and not world.inventory.outgrown()
    world.change(replace(narrower, columns=(*narrower.columns, Column("a", "int8", id=3, field="a#3"))))
    after = world.inventory.relation("u1")
    assert world.inventory.outgrown() == [before] and not world.inventory.outgrown()
    assert (before.names, after.names) == (["a", "b"], ["a", "b", "a#3"])
    before.check_open()  # who is at it goes on with it, until whoever maintains views lets go of it
    before.supersede()
    with pytest.raises(Unavailable):
        before.check_open()


def test_an_index_is_begun_anew_when_its_relation_gets_columns(tmp_path):
    world = World(tmp_path)
    table = Table("u1", "s1", "t", "", numbered((Column("a", "int4"), Column("b", "text"))))
    world.change(table, Index("u2", "s1", "i", "", relation_id="u1", key=("b",), cluster_id="a"))
    indexes = Indexes(world.inventory, "a", 1000, world.at_work)
    indexes.reconcile()
    first = indexes._indexes["u2"]
    assert indexes._present(first) is first and len(first.types) == 2
    world.change(replace(table, columns=(*table.columns, Column("c", "int8", id=3))))
    second = indexes._present(first)
    assert second is not first and second is indexes._indexes["u2"] and len(second.types) == 3
    assert indexes._present(first) is second and second.key_columns == [1]


class Mistaken(Arrangement):
    """Fails of what is more than four rows."""

    def apply(self, updates, upper):
        updates = list(updates)
        if len(updates) > 4:
            raise RuntimeError("a mistake of ours")
        super().apply(updates, upper)


@pytest.mark.parametrize(
    ("arrangement", "error", "said"),
    [
        (partial(Arrangement, rows_max=4), "the index would hold more than 4 rows", "too large"),
        (Mistaken, "it failed: RuntimeError", "an index failed"),
    ],
)
def test_an_index_that_was_given_up_is_begun_anew_once_its_relation_is_small(
    tmp_path, monkeypatch, caplog, arrangement, error, said
):  # fmt: skip
    """A table that had been large for an hour had no index until its cluster was started again."""
    monkeypatch.setattr(module, "Arrangement", arrangement)
    monkeypatch.setattr(module, "AGAIN_ROWS_MAX", 3)
    world = World(tmp_path)
    table = Table("u1", "s1", "t", "", numbered((Column("a", "int4"),)))
    world.change(table, Index("u2", "s1", "i", "", relation_id="u1", key=("a",), cluster_id="a"))

    def holds(*rows: int) -> None:
        """Their changes are merged: what a relation has that got many rows and lost them again."""
        world.inventory._relations["u1"] = relation = Relation(None, "u1", table.stored, tmp_path)
        schema = schema_of(relation.types).append(pa.field(DIFF, pa.int64()))
        relation.append([stamp(to_table([(row, 1) for row in rows], schema), 1, relation.types)], DataTs(2))

    monkeypatch.setattr(world.inventory, "relation_through", lambda *_: world.inventory.relation("u1"))
    frontiers = SimpleNamespace(complete=lambda _: 1, changed_since=lambda _, upper: upper < 2)
    indexes = Indexes(world.inventory, "a", 1000, world.at_work)
    indexes.reconcile()
    for rows, held in ((6, 0), (4, 0), (3, 3), (3, 3)):  # four would fit, and one more would not
        holds(*range(rows))
        for _ in range(3):
            indexes.follow(frontiers)
            status = indexes.status()["u2"]
            assert (status["rows"], status["error"]) == (held, None if held else error), rows
    assert sum(said in each.message for each in caplog.records) == 1, "it is not tried again and again"


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


