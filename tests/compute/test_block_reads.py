"""Where a transaction block may read: the real frontiers of random histories against a model that knows every tick."""

from __future__ import annotations

import random
from types import SimpleNamespace
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from immutables import Map

from catalog_log.objects import MATERIALIZED_VIEW, TABLE, Item
from controllers.compute.core import Claimed, Core
from controllers.compute.frontiers import Frontiers
from controllers.compute.handling import Handling
from controllers.compute.peeks import PeekDesk
from controllers.peeks.lookup_codec import Found
from controllers.peeks.peek import Lookup, Peek
from controllers.waiting import Passed, PeekQueue, Ready
from journal.errors import Conflict
from journal.timestamps import CatalogTs, DataTs
from oracle.model import Kind, Stamp
from tests.compute.telling import tell
from tests.objects import made
from tests.oracle.oracle_logs import Log
from tests.oracle.test_oracle_views import ViewsHistory, moved, rows

INPUTS = {"v": ("a",), "w": ("a", "b"), "x": ("v", "b")}


def item(item_id: str) -> Item:
    inputs = INPUTS.get(item_id, ())
    return made(MATERIALIZED_VIEW if inputs else TABLE, item_id, on=inputs)


OBJECTS = Map({each: item(each) for each in "abvwx"})


class History:
    """Two tables, and three views that tick together; the view x reads the view v, which changes whenever it ticks."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log, self.views = Log(), ViewsHistory()
        self.views.claim()
        self.ends = {"a": 0, "b": 0}
        self.changes: dict[str, list[int]] = {"a": [], "b": [], "v": [], "w": [], "x": []}
        self.uppers = dict.fromkeys("vwx", 0)
        self.ticks: list[int] = []
        self.tick()

    def write(self) -> None:
        table, now = self.rng.choice("ab"), self.log.state.last_ts
        end = self.ends[table]
        self.ends[table] = end + 1
        self.log.write(table, end, end + 1, ts=now + self.rng.randint(1, 3))
        self.changes[table].append(self.log.state.last_ts)

    def wait(self) -> None:
        stamp = Stamp("table", self.log.state.last_ts + self.rng.randint(1, 5))
        self.log.add(Kind.ADVANCE, stamps=(stamp,))

    def tick(self) -> None:
        """All three, at a timestamp that is known and not ticked at yet; no rows come of it, so nothing changes."""
        lower = self.ticks[-1] + 1 if self.ticks else 0
        if lower <= self.log.state.last_ts:
            ts = self.rng.randint(lower, self.log.state.last_ts)
            self.views.tick(ts, *(moved(view, self.uppers[view]) for view in "vwx"))
            self.uppers = dict.fromkeys("vwx", ts + 1)
            self.ticks.append(ts)

    def frontiers(self) -> Frontiers:
        return Frontiers(OBJECTS, self.log.state, self.views.state)

    def exact(self, object_id: str, ts: int) -> bool:
        """Whether it shows at ``ts`` what its query says of its inputs there."""
        if object_id not in INPUTS:
            return ts <= self.log.state.last_ts
        ticked = max((tick for tick in self.ticks if tick <= ts), default=None)
        if ticked is None:
            return False
        changed = any(ticked < at <= ts for each in INPUTS[object_id] for at in self.changes[each])
        return not changed and all(self.exact(each, ts) for each in INPUTS[object_id])


@pytest.mark.parametrize("seed", range(25))
def test_a_read_at_a_timestamp_runs_iff_all_its_inputs_were_exact_there(seed):
    history, queue, asked, outcomes = History(seed), PeekQueue(), 0, {Ready: 0, Passed: 0}
    queue.on_catalog_frontier(CatalogTs(11), OBJECTS)
    for _ in range(40):
        history.rng.choice((history.write, history.write, history.wait, history.tick))()
        now = history.frontiers()
        queue.on_data_frontier(now.exact, now.oracle.last_ts, now.views.next_offset)
        ts = history.rng.randint(0, now.oracle.last_ts)
        inputs = tuple(history.rng.sample("abvwx", history.rng.randint(1, 3)))
        peek = Peek(f"p{asked}", "", inputs, CatalogTs(10), DataTs(ts), None, 10**9, True)
        asked += 1
        found = queue.add(peek, 0)
        true = all(history.exact(each, ts) for each in inputs)
        if found:
            outcomes[type(found[0])] += 1
            assert found == [Ready(peek, ts)] if true else type(found[0]) is Passed, (seed, ts, inputs, found)
        else:  # a view has not come there yet; whether it will stop there is open
            assert not true and history.ticks[-1] < ts, (seed, ts, inputs)
            queue.cancel(peek.peek_id)
    assert all(outcomes.values()), "it met one outcome only"


class Apart:
    """A table, a view over it, and a view over that, which move in records of their own: they are of two clusters, or
    one of them is taken alone since it may have ended the controller."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log, self.views = Log(), ViewsHistory()
        self.views.claim()
        self.end = {"a": 0, "v": 0, "x": 0}
        self.changes: list[int] = []
        self.ticks: dict[str, list[tuple[int, bool]]] = {"v": [], "x": []}
        """Timestamp, and whether it changed then."""
        self.move("v")
        self.move("x")

    def write(self) -> None:
        self.end["a"] += 1
        self.log.write("a", self.end["a"] - 1, self.end["a"], ts=self.log.state.last_ts + self.rng.randint(1, 3))
        self.changes.append(self.log.state.last_ts)

    def move(self, view: str) -> None:
        ts, upper = self.log.state.last_ts, self.views.state.view(view).upper
        if upper > ts or (view == "x" and self.version("v", ts) is None):
            return
        before = self.version("a" if view == "v" else "v", upper - 1)
        changed = before != self.version("a" if view == "v" else "v", ts) and self.rng.random() < 0.7
        lower = self.end[view]
        self.end[view] += changed
        change = [rows(view, lower, lower + 1)] if changed else []
        assert self.views.tick(ts, moved(view, upper, *change)).reason is None
        self.ticks[view].append((ts, changed))

    def version(self, name: str, ts: int) -> int | None:
        """Equal ones are equal contents at ``ts``; ``None`` where nobody knows what they would be."""
        if name == "a":
            return sum(at <= ts for at in self.changes)
        ticked = max((at for at, _ in self.ticks[name] if at <= ts), default=-1)
        if any(ticked < at <= ts for at in self.changes):
            return None
        return sum(changed for at, changed in self.ticks[name] if at <= ts)


@pytest.mark.parametrize("seed", range(25))
def test_a_view_over_a_view_that_moved_without_it_is_not_read_at_what_lies_between(seed):
    """The rows that a view got between two of its ticks are in its change at the second one: to its reader that looked
    as if nothing had come before, and a read between the two showed what had been acknowledged as missing."""
    history, readable = Apart(seed), 0
    objects = Map({each: item(each) for each in "avx"})
    for _ in range(100):
        history.rng.choice((history.write, history.write, lambda: history.move("v"), lambda: history.move("x")))()
        first, last = Frontiers(objects, history.log.state, history.views.state).exact("x")
        ticked = history.ticks["x"][-1][0]
        for ts in range(first, last + 1):
            readable += 1
            assert history.version("v", ts) == history.version("v", ticked) is not None, (seed, ts, ticked)
    assert readable > 20


def test_the_desk_refuses_what_has_passed_as_a_conflict():
    history = History(0)
    rows = pa.RecordBatch.from_pydict({"k": [1, 2]})
    indexes = SimpleNamespace(answer=lambda _question, _keys, as_of, _timeout_s: Found(rows, as_of, [rows.num_rows]))
    core = Core("default", MagicMock())
    core.handle(Claimed(history.views.state.epoch("default")))
    desk = PeekDesk(Handling(core), MagicMock(), SimpleNamespace(frontiers=history.frontiers), indexes)
    try:

        def look():
            tell(core, desk, history.frontiers(), 11, OBJECTS)

        def read(view, ts):
            lookup = Lookup("i", view, (), "{}")
            return desk.peek(Peek(view, "", (view,), CatalogTs(10), DataTs(ts), lookup, 20_000, True))

        look()
        history.log.write("a", 0, 1, ts=10)
        look()
        before = history.log.state.last_ts
        for ts in (20, 30):
            history.log.add(Kind.ADVANCE, stamps=(Stamp("table", ts),))
            look()
            history.views.tick(ts, *(moved(view, history.uppers[view]) for view in "vwx"))
            history.uppers = dict.fromkeys("vwx", ts + 1)
            look()
        assert read("v", 25)[1] == 25 and read("a", before)[1] == before and read("v", before - 1)[1] == before - 1
        with pytest.raises(Conflict, match="cannot read at the timestamp") as refused:
            read("v", before)
        assert refused.value.sqlstate == "40001" and "READ COMMITTED" in refused.value.hint
    finally:
        desk.close()
