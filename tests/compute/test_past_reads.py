"""Reads at timestamps that the relation held for views tells apart no more: read by what the logs know, or refused."""

from __future__ import annotations

from collections import Counter

import pytest
from immutables import Map

from catalog_log.objects import Table
from catalog_log.settings import AUTO, SPARK
from controllers.at_work import AtWork
from controllers.compute import relation as relation_module
from controllers.compute.core import Core
from controllers.compute.feed import Feed
from controllers.compute.handling import Handling
from controllers.compute.indexes import Indexes
from controllers.compute.inventory import Inventory
from controllers.compute.operators.process import Process
from controllers.compute.peeks import PeekDesk
from controllers.peeks.peek import Lookup, Peek
from controllers.protocol import ControllerState, Created
from journal.errors import InvalidUsage
from journal.memory import MemoryTransport
from plan.codec import encode
from plan.relations import Get, Kind, Query
from plan.types import INT4, INT8
from tests.compute.telling import tell
from tests.compute.test_crashes import KV
from tests.compute.test_idle_views import SHORT, World

pytestmark = pytest.mark.spark

TABLE = Table("u1", "s1", "t", "", KV)
PLAN = encode(Query(Get("u1", ("k", "v"), (Kind(INT4, True), Kind(INT8, True))), ("k", "v")))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(relation_module, "TAIL_ROWS_MAX", 1)
    found = World(monkeypatch)
    yield found
    found.close()


def ask(desk: PeekDesk, as_of: int, **fields) -> Counter:
    asked = Peek(f"p{as_of}", "", ("u1",), 0, as_of, plan=PLAN, only_at=True, timeout_ms=120_000, **fields)
    found, at = desk.peek(asked)
    assert at == as_of
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("gear", [AUTO, SPARK])
def test_a_read_of_the_past_is_of_its_own_timestamp_by_either_gear(world, spark, tmp_path, gear) -> None:
    inventory = Inventory(spark, tmp_path, Feed("", world.oracle, world.views), world.oracle, world.views,
                          AtWork(MemoryTransport(), "a life").begin())  # fmt: skip
    inventory.take(ControllerState(frontier=10, objects=Map({"u1": TABLE})), [Created(0, TABLE)])
    core = Core("default", AtWork(MemoryTransport(), "a life").begin())
    indexes = Indexes(inventory, "default", 1000, AtWork(MemoryTransport(), "a life").begin())
    desk = PeekDesk(Handling(core), spark, inventory, indexes, lambda: gear)
    desk._process = Process(60.0)
    try:
        model, now = {}, Counter()
        for n in range(6):
            gone = [(n - 1, 0, -1)] if n % 2 else []
            ts = world.insert("u1", (n, 0, 1), *gone)
            now = now + Counter({(n, 0): 1}) - Counter({(k, v): 1 for k, v, _ in gone})
            model[ts] = now
            held = inventory.relation_through("u1", ts)
            if n == 2:
                held.maintain()
        last = world.oracle.state.last_ts
        tell(core, desk, inventory.frontiers(), 10, inventory.catalog.objects)
        held.allow_compaction(last)
        for ts in model:
            assert ask(desk, ts) == model[ts], "not merged yet, but it may be at any moment"
        held.maintain()
        assert held.since == last
        lookup = Lookup("u9", "u1", (1,), '{"filter": null, "project": [["col", 1]], "order_by": []}')
        for ts in model:
            assert ask(desk, ts) == model[ts]
        assert ask(desk, min(model), lookup=lookup) == model[min(model)], "no index has it"
        assert held.since == last and held.upper == last + 1, "what views read is as it was"
        used = desk.status()["process" if gear == AUTO else "spark"]
        assert used == 2 * len(model) + 1 and not held._held
        assert sum(each.stat().st_size for each in tmp_path.rglob("*.parquet")) <= 20_000, "what was loaded is gone"
        # What the journal has merged is told to be gone, and from where on there is something.
        world.a_day_passes()
        kept = world.insert("u1", (9, 9, 1))
        tell(core, desk, inventory.frontiers(), 10, inventory.catalog.objects)
        with pytest.raises(InvalidUsage) as caught:
            ask(desk, min(model))
        assert caught.value.sqlstate == "22023" and str(max(model)) in caught.value.detail
        assert ask(desk, max(model)) == model[max(model)], "nothing came between it and what is kept"
        assert ask(desk, kept) == model[max(model)] + Counter({(9, 9): 1})
        assert SHORT.retain_ms < world.oracle.state.last_ts - max(model)
    finally:
        desk.close()
        for relation in inventory.relations():
            relation.close()
