"""Full collections wait until nothing is planned, see only what is new, and lose nothing."""

from __future__ import annotations

import gc
import weakref

import pytest

from adapter.execute.planning import Planner
from adapter.server import collecting
from adapter.server.collecting import LAST_RESORT, YOUNG_MAX, YOUNG_OBJECTS, YOUNG_PASSES, Collector
from tests.finishing import finished


class Node:
    """Something in a circle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector():
    before = gc.get_threshold()
    made = Collector()
    made.start()
    try:
        yield made
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def fill(passes: int) -> list:
    """So many passes over the younger ones."""
    held = []
    while gc.get_count()[2] < passes:
        held += [[] for _ in range(YOUNG_OBJECTS)]
    return held


def full_collections() -> int:
    return gc.get_stats()[2]["collections"]


def test_python_begins_no_full_collection_by_itself(collector):
    assert gc.get_threshold() == (YOUNG_OBJECTS, YOUNG_PASSES, LAST_RESORT)
    before = full_collections()
    held = fill(20 * YOUNG_MAX)
    assert full_collections() == before and held


def test_what_is_in_circles_is_found_when_enough_was_made(collector):
    node = Node()
    gone = weakref.ref(node)
    held = fill(YOUNG_MAX)
    del node
    assert gone() is not None  # it is among the oldest, where no young pass looks
    collector.at_rest()
    assert gone() is None and gc.get_count()[2] == 0 and held
    assert len(gc.get_objects(generation=2)) < YOUNG_OBJECTS  # later ones pass over what this one saw


def test_what_was_kept_and_is_in_circles_is_found_when_it_has_doubled(collector, monkeypatch):
    node = Node()
    gone = weakref.ref(node)
    held = fill(YOUNG_MAX)
    collector.at_rest()
    del node
    held += fill(YOUNG_MAX)
    collector.at_rest()
    assert gone() is not None  # it was passed over
    monkeypatch.setattr(collecting, "KEPT_MIN", 0)
    collector._kept = gc.get_freeze_count() // 2
    held += fill(YOUNG_MAX)
    collector.at_rest()
    assert gone() is None and held
    assert collector._kept == gc.get_freeze_count()


def test_what_is_kept_is_counted_only_where_it_may_have_doubled(collector, monkeypatch):
    """Counting looks at each of them, and there may be millions."""
    kept, asked = gc.get_freeze_count(), []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(kept) or kept)
    monkeypatch.setattr(collecting, "KEPT_MIN", 10 * kept)
    held = fill(YOUNG_MAX)
    made = collector._kept_now_max
    collector.at_rest()
    assert not asked and collector._kept_now_max >= made + YOUNG_MAX * YOUNG_OBJECTS
    collector._kept_now_max = 20 * kept  # most of it is gone again, as the count will tell
    held += fill(YOUNG_MAX)
    collector.at_rest()
    assert asked == [kept] and held
    held += fill(YOUNG_MAX)
    collector.at_rest()
    assert asked == [kept]


def test_a_planner_that_works_is_not_at_rest():
    async def story():
        planner, rests = Planner(), []
        planner.at_rest = lambda: rests.append(1)
        planner.rest()
        assert len(rests) == 1
        async with planner.sharing(True):
            assert len(rests) == 2  # before it began
            planner.rest()
            await planner.run(1, lambda: None)
            assert len(rests) == 2
        planner.rest()
        assert len(rests) == 3
        planner.close()

    finished(story())
