"""Crashes at every point of a tick: what is bound is always what the queries say, each row once.

The journals are the real ones over memory; rows live in a list; Spark is real.  A crash forgets the whole node.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from concurrent.futures import Future

import pyarrow as pa
import pytest
from immutables import Map

from catalog_log.objects import MATERIALIZED_VIEW, Column, Table
from collection.binding import Binding, Run
from collection.columns import DIFF
from controllers.arrangements.tuples import to_rows
from controllers.at_work import AtWork
from controllers.compute.core import Asked, Claimed, Core
from controllers.peeks.peek import Peek
from controllers.protocol import ControllerState, Created
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.timestamps import CatalogTs
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.errors import StaleEpoch
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from tests.objects import made

pytestmark = pytest.mark.spark

KV = (Column("k", "int4"), Column("v", "int8"))
POINTS = ["none", "before write", "after write", "after commit"]


class Crash(Exception):
    pass


class Rows:
    """Every topic's records: ``(attempt, table)``, one offset each.  Doubles as writer."""

    def __init__(self) -> None:
        self.topics: dict[str, list[tuple[str, pa.Table]]] = {}
        self.crash_at = "none"

    def check(self, collection) -> Future:
        done: Future = Future()
        done.set_result(None)
        return done

    def write(self, collection, columns, rows, attempt) -> Future:
        if self.crash_at == "before write":
            raise Crash
        topic = self.topics.setdefault(collection, [])
        done: Future = Future()
        done.set_result([Run(collection, 0, len(topic), len(topic) + 1, attempt, rows.num_rows)])
        topic.append((attempt, rows))
        if self.crash_at == "after write":
            raise Crash
        return done

    def table(self, run: Run) -> pa.Table:
        tables = []
        for attempt, rows in self.topics[run.topic][run.lower : run.upper]:
            assert run.attempt in ("", attempt)
            tables.append(rows)
        return pa.concat_tables(tables)


def reader_of(rows: Rows):
    class Reader:
        def __init__(self, bootstrap) -> None:
            pass

        def bound_chunks(self, bound, columns, format):
            for each in bound:
                table = rows.table(each.run)
                yield table, pa.repeat(pa.scalar(each.ts, pa.int64()), table.num_rows)

        def close(self) -> None:
            pass

    return Reader


def view(view_id, sql, columns, *inputs):
    return made(MATERIALIZED_VIEW, view_id, on=inputs, columns=columns, sql=sql)


ITEMS = [
    Table("u1", "s1", "t", "", KV),
    view("u2", "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM u1 GROUP BY k",
         (Column("k", "int4"), Column("n", "int8"), Column("s", "int8")), "u1"),
    view("u3", "SELECT v, k FROM u1 WHERE v > 2", (Column("v", "int8"), Column("k", "int4")), "u1"),
    view("u4", "SELECT n, MAX(s) AS m FROM u2 GROUP BY n", (Column("n", "int8"), Column("m", "int8")), "u2"),
    view("u5", "SELECT a.k, b.n FROM u1 AS a JOIN u2 AS b ON a.k = b.k", (Column("k", "int4"), Column("n", "int8")),
         "u1", "u2"),
]  # fmt: skip


def truth(present: Counter) -> dict[str, Counter]:
    rows = list(present.elements())
    grouped = {k: (sum(1 for r in rows if r[0] == k), sum(r[1] for r in rows if r[0] == k)) for k, _ in rows}
    best: dict[int, int] = {}
    for n, s in grouped.values():
        best[n] = max(s, best.get(n, s))
    return {
        "u2": Counter((k, n, s) for k, (n, s) in grouped.items()),
        "u3": Counter((v, k) for k, v in rows if v > 2),
        "u4": Counter(best.items()),
        "u5": Counter((k, grouped[k][0]) for k, _ in rows),
    }


def random_changes(rng: random.Random, present: Counter) -> list[tuple]:
    """Some rows with their diffs, which ``present`` has or loses from then on."""
    changes = []
    for _ in range(rng.randrange(1, 4)):
        if present and rng.random() < 0.4:
            row, diff = rng.choice(sorted(present.elements())), -1
        else:
            row, diff = (rng.randrange(3), rng.randrange(5)), 1
        present[row] += diff
        changes.append((*row, diff))
    present += Counter()  # in place: what is there no more goes
    return changes


class Node:
    """A compute controller's ticking half, with nothing of an earlier one's memory."""

    def __init__(self, spark, scratch, oracle, views, rows, items=(), at_work=None) -> None:
        from controllers.compute.feed import Feed
        from controllers.compute.handling import Handling
        from controllers.compute.inventory import Inventory
        from controllers.compute.maintainer import Maintainer
        from controllers.compute.ticking import Ticking

        scratch.mkdir()
        self.views = views
        at_work = at_work or AtWork(MemoryTransport(), "a life").begin()
        self.inventory = Inventory(spark, scratch, Feed("", oracle, views), oracle, views, at_work)
        there = items or ITEMS
        self.inventory.take(ControllerState(frontier=1, objects=Map({i.id: i for i in there})),
                            [Created(0, i) for i in there])  # fmt: skip
        epoch = views.claim("default").result(10)
        self.core = Core("default", at_work, self.inventory.reads_much)
        self.core.handle(Claimed(epoch))
        self.ticking = Ticking(Handling(self.core), Maintainer(spark), self.inventory, views, rows, "default",
                               uuid.uuid4().hex, 1000, at_work)  # fmt: skip

    def wanted(self) -> int | None:
        return self.core.wanted(self.inventory.known("default"))

    def read(self, view_id: str) -> None:
        """Somebody waits for a view from now on."""
        peek = Peek(f"of {view_id}", "", (view_id,), CatalogTs(1 << 40), None)
        assert self.core.handle(Asked(peek, 0)) == []

    def tick(self) -> None:
        ts = self.wanted()
        if ts is not None:
            self.ticking.tick(ts)

    def close(self) -> None:
        self.ticking.close()
        for relation in self.inventory.relations():
            relation.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_crashes_nothing_is_lost_or_doubled(spark, tmp_path, monkeypatch, seed):
    monkeypatch.setattr("controllers.compute.core.INSTALL_MAX", seed)  # a start takes several steps
    rng = random.Random(seed)
    rows = Rows()
    monkeypatch.setattr("controllers.compute.feed.RunReader", reader_of(rows))
    oracle_topic, views_topic = MemoryTopic(), MemoryTopic()
    oracle = Oracle.over(lambda: MemoryTransport(oracle_topic), Checkpoints(MemoryCheckpointStore(), "o"), "test",
                         lambda: 0)  # fmt: skip
    views = ViewsLog.over(lambda: MemoryTransport(views_topic), Checkpoints(MemoryCheckpointStore(), "v"), "test")
    commit = views.commit
    crash_at = "none"

    def commit_and_crash(*args):
        done = commit(*args)
        if crash_at == "after commit":
            done.result(10)
            raise Crash
        return done

    monkeypatch.setattr(views, "commit", commit_and_crash)
    present: Counter = Counter()
    node = Node(spark, tmp_path / "0", oracle, views, rows)
    crashes = Counter()
    for step in range(14):
        changes = random_changes(rng, present)
        rows.crash_at = crash_at = "none"
        table = pa.table([pa.array(c) for c in zip(*changes, strict=True)], names=["k", "v", DIFF])
        table = table.cast(pa.schema([("k", pa.int32()), ("v", pa.int64()), (DIFF, pa.int64())]))
        runs = rows.write("u1", KV, table, uuid.uuid4().hex).result()
        oracle.commit(CommitPart(uuid.uuid4().hex, bindings=tuple(Binding("u1", r) for r in runs))).result(10)
        rows.crash_at = crash_at = rng.choice(POINTS)
        try:
            node.tick()
        except Crash:
            crashes[crash_at] += 1
            rows.crash_at = crash_at = "none"
            node.close()
            node = Node(spark, tmp_path / f"{step + 1}", oracle, views, rows)
            node.tick()
        rows.crash_at = crash_at = "none"
        as_of = oracle.state.last_ts
        frontiers = node.inventory.frontiers()
        for view_id, want in truth(present).items():
            assert frontiers.complete(view_id) == as_of, (seed, step)
            bound: Counter = Counter()
            for each in views.state.view(view_id).runs.at(as_of):
                for *row, diff in to_rows(rows.table(each.run)):
                    bound[tuple(row)] += diff
            assert min(bound.values(), default=1) >= 0
            assert bound + Counter() == want, (seed, step, view_id, crashes)
    assert len(crashes) >= 2, f"seed {seed} crashed at {crashes} only"

    # A zombie evaluates as well as anybody, but nothing of it is ever bound.
    newer = Node(spark, tmp_path / "newer", oracle, views, rows)
    row = pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([1], pa.int64())})
    runs = rows.write("u1", KV, row, "z").result()
    oracle.commit(CommitPart("z", bindings=tuple(Binding("u1", r) for r in runs))).result(10)
    before = views.state.view("u2")
    with pytest.raises(StaleEpoch):
        node.tick()
    assert views.state.view("u2") == before
    newer.tick()
    assert newer.inventory.frontiers().complete("u5") == oracle.state.last_ts
    node.close()
    newer.close()
    views.close()
    oracle.close()
