"""What a view puts out that is much: tasks write it, and each row is bound once, whatever happened on the way.

Spark and the broker are real; "much" is anything here.  The controller is what ticks, and what it makes beside them.
"""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from immutables import Map

from catalog_log.bootstrap import create_environment
from catalog_log.objects import Column, Item, Table
from catalog_log.settings import SPARK
from collection.binding import Binding as BoundTo
from collection.binding import BoundRun, Run, joined
from collection.columns import DIFF, Columns, plain_columns, table_from_rows, with_diff
from collection.reader import ROWS, RunReader
from collection.writer import CollectionWriter
from controllers.arrangements.tuples import to_rows
from controllers.at_work import AtWork
from controllers.changes import stamp
from controllers.compute import inventory as inventory_module
from controllers.compute import outlet as module
from controllers.compute import sending, ticking
from controllers.compute import sources as sources_module
from controllers.compute.core import Claimed, Core, Moved
from controllers.compute.feed import Feed
from controllers.compute.handling import Handling
from controllers.compute.inventory import Inventory
from controllers.compute.maintainer import Maintainer
from controllers.compute.outlet import Outlet
from controllers.compute.relation import Relation
from controllers.compute.spark_text import text
from controllers.compute.ticking import Ticking
from controllers.compute.view import Change
from controllers.peeks.peek_codec import decode_error
from controllers.protocol import ControllerState, Created
from journal.errors import InvalidUsage, Rejected
from journal.memory import MemoryTransport
from journal.names import TopicNames
from journal.timestamps import DataTs
from judge.planted.registry import BUGS
from oracle.client import Oracle, wall_clock_ms
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from tests.collection.test_rows import NUMBERED, row_values
from tests.compute.test_crashes import Crash, view

pytestmark = [pytest.mark.spark, pytest.mark.integration]

KV = (Column("k", "int4", id=1), Column("v", "text", id=2))
COPIED = view("u2", "SELECT k, v FROM u1 WHERE k <> 13", KV, "u1")
RANKED = view("u3", "SELECT k, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k) AS n FROM u1",
              (Column("k", "int4", id=1), Column("n", "int4", id=2)), "u1")  # fmt: skip
READER = view("u4", "SELECT v, COUNT(*) AS n FROM u2 GROUP BY v",
              (Column("v", "text", id=1), Column("n", "int8", id=2)), "u2")  # fmt: skip
TABLE = Table("u1", "s1", "t", "", KV)


class World:
    """The logs of one environment, and who writes tables."""

    def __init__(self, bootstrap: str, env: str) -> None:
        self.bootstrap, self.names = bootstrap, TopicNames(env)
        create_environment(bootstrap, self.names, 1)
        self.oracle = Oracle.open(bootstrap, self.names, "test", lambda: 0)
        self.views = ViewsLog.open(bootstrap, self.names, "test")
        self.writer = CollectionWriter(bootstrap, self.names)

    def insert(self, table: str, columns: Columns, rows: pa.Table | Sequence[tuple]) -> int:
        runs = self.writer.write(table, columns, rows, uuid.uuid4().hex).result(40)
        bound = tuple(BoundTo(table, run) for run in runs)
        part = CommitPart(uuid.uuid4().hex, bindings=bound, proposed_ts=wall_clock_ms())
        return self.oracle.commit(part).result(40)

    def bound(self, item: Item) -> Counter:
        """What is bound of a view, read from its topic."""
        found: Counter = Counter()
        for each in self.rows_of(item.columns, [b.run for b in self.runs(item)]):
            for *row, diff in to_rows(each):
                found[tuple(row)] += diff
        assert all(n > 0 for n in found.values()), found
        return found

    def runs(self, item: Item) -> Sequence[BoundRun]:
        return self.views.state.view(item.id).runs.at(self.oracle.state.last_ts)

    def rows_of(self, columns: Columns, runs: Sequence[Run]) -> Iterator[pa.Table]:
        reader = RunReader(self.bootstrap)
        yield from (table for table, _ in reader.bound_chunks([BoundRun(1, run) for run in runs], columns, ROWS))
        reader.close()

    def end(self, item_id: str) -> int:
        """Records on a topic, garbage too."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "nobody"})
        try:
            return consumer.get_watermark_offsets(TopicPartition(self.names.data(item_id), 0), timeout=10)[1]
        finally:
            consumer.close()

    def close(self) -> None:
        self.writer.close()
        self.views.close()
        self.oracle.close()


class Node:
    """A compute controller's ticking half."""

    def __init__(self, spark, scratch: Path, world: World, items: Sequence[Item]) -> None:
        scratch.mkdir()
        self.scratch, self.world = scratch, world
        at_work = AtWork(MemoryTransport(), "a life").begin()
        self.feed = Feed(world.bootstrap, world.oracle, world.views)
        self.inventory = Inventory(spark, scratch, self.feed, world.oracle, world.views, at_work)
        there = Map({i.id: i for i in items})
        self.inventory.take(ControllerState(frontier=1, objects=there), [Created(0, i) for i in items])
        self.core = Core("default", at_work, self.inventory.reads_much)
        self.core.handle(Claimed(world.views.claim("default").result(10)))
        life = uuid.uuid4().hex
        attempts = (f"{life}-s{n}" for n in count())

        def outlet(relation: Relation) -> Outlet:
            return Outlet(relation, world.bootstrap, world.names.env, world.writer.order, attempts)

        self.ticking = Ticking(
            Handling(self.core), Maintainer(spark, lambda: SPARK, outlet), self.inventory, world.views, world.writer,
            "default", life, 1000, at_work,
        )  # fmt: skip

    def settle(self) -> None:
        """Tick until nothing is left to do."""
        for _ in range(20):
            ts = self.core.wanted(self.inventory.known("default"))
            if ts is None and self.ticking._job is None:
                return
            if ts is not None:
                self.ticking.tick(ts)
            if self.ticking._job is not None:
                self.ticking._job.join()
                self.core.handle(Moved(self.inventory.known("default"), ()))
                assert self.ticking.let_go()
        raise AssertionError("it never comes to rest")

    def shown(self, item: Item) -> Counter:
        """What a reader on Spark finds, and what this process does."""
        as_of = self.world.oracle.state.last_ts
        relation = self.inventory.relation_through(item.id, as_of)
        with relation.snapshot(as_of) as snapshot:
            found = Counter(to_rows(relation.handing.spark.sql(text(snapshot.rows())).toArrow()))
        here: Counter = Counter()
        for *row, diff in to_rows(relation.delta(DataTs(-1), as_of)):
            here[tuple(row)] += diff
        assert found == +here
        return found

    def files(self) -> set[str]:
        return {path.name for path in self.scratch.iterdir() if "_sent" in path.name}

    def close(self) -> None:
        self.ticking.close()
        for relation in self.inventory.relations():
            relation.close()
        self.feed.close()


@pytest.fixture
def world(broker, env_name, monkeypatch) -> Iterator[World]:
    monkeypatch.setattr(inventory_module, "MUCH_ROWS", 4)
    monkeypatch.setattr(sources_module, "MUCH_ROWS", 4)
    monkeypatch.setattr(module, "STAYS_BYTES_MAX", 0)
    found = World(broker, env_name)
    yield found
    found.close()


def numbered(first: int, most: int) -> list[tuple]:
    return [(k, f"v{k % 7}") for k in range(first, most)]


def copied(rows: Sequence[tuple]) -> Counter:
    return Counter(row for row in rows if row[0] != 13)


def ranked(rows: Sequence[tuple]) -> Counter:
    places: Counter = Counter()
    found: Counter = Counter()
    for k, v in sorted(rows):
        places[v] += 1
        found[k, places[v]] += 1
    return found


def test_rows_that_are_many_never_come_here_and_are_bound_once(world, spark, tmp_path) -> None:
    rows = numbered(0, 5000)
    world.insert("u1", KV, rows)
    node = Node(spark, tmp_path / "node", world, (TABLE, COPIED, RANKED, READER))
    node.settle()
    assert not any(world.views.state.view(v.id).error for v in (COPIED, RANKED, READER))
    assert node.shown(COPIED) == world.bound(COPIED) == copied(rows)
    assert node.shown(RANKED) == world.bound(RANKED) == ranked(rows)
    assert len(world.runs(COPIED)) == 1, "those of all tasks are joined"
    assert {path.name for path in _files(node, COPIED)} & node.files(), "and are files already"
    assert node.inventory.relation("u2").count == 4999
    assert world.bound(READER) == Counter((v, n) for v, n in Counter(v for _, v in copied(rows)).items())
    # From there it goes on as any other, and so it does where a tick brings much.
    before = node.files()
    world.insert("u1", KV, [(13, "x"), (9000, "x")])
    node.settle()
    assert node.shown(COPIED) == world.bound(COPIED) == copied([*rows, (9000, "x")])
    assert node.ticking._maintainer.views["u2"].compared == 0
    assert node.shown(RANKED) == world.bound(RANKED) == ranked([*rows, (13, "x"), (9000, "x")])
    assert node.files() > before
    node.close()
    assert node.files() == set(), "they went with the relation"
    again = Node(spark, tmp_path / "again", world, (TABLE, COPIED, RANKED, READER))
    world.insert("u1", KV, [(9001, "y")])
    again.settle()
    assert again.shown(COPIED) == world.bound(COPIED) == copied([*rows, (9000, "x"), (9001, "y")])
    again.close()


def _files(node: Node, item: Item) -> list[Path]:
    return [path for part in node.inventory.relation(item.id)._chunks for path in part.paths]


def test_the_few_rows_of_one_task_come_here_beside_the_many_of_another(world, spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "STAYS_BYTES_MAX", 20_000)
    columns = (Column("k", "int8", id=1),)
    relation = Relation(spark, "u9", columns, tmp_path)
    outlet = Outlet(relation, world.bootstrap, world.names.env, world.writer.order, iter("ab"))
    unevenly = spark.range(0, 50_000, 1, 2).where("id < 10 OR id >= 25000")
    stayed = outlet.collected(unevenly.selectExpr("id", "1L AS d"), 2)
    sent = outlet.taken()
    assert sorted(stayed.column(0).to_pylist()) == list(range(10)) and stayed.num_columns == 2
    [run] = sent.runs
    assert run.rows == 25_000 and run.attempt == "a"
    found = pa.concat_tables(world.rows_of(columns, sent.runs))
    assert sorted(found.column(0).to_pylist()) == list(range(25_000, 50_000))
    relation.append([stamp(stayed, 5, relation.types)], DataTs(6), sent.files)
    with relation.snapshot(DataTs(5)) as snapshot:
        assert spark.sql(f"SELECT COUNT(DISTINCT k) FROM ({text(snapshot.rows())})").collect()[0][0] == 25_010
    relation.close()
    assert list(tmp_path.iterdir()) == []


def test_of_little_there_may_come_much(world, spark, tmp_path, monkeypatch) -> None:
    """What Spark refuses to hand to its driver is asked for once more, and goes another way."""
    monkeypatch.setattr(sources_module, "MUCH_ROWS", 500_000)
    pairs = view("u2", "SELECT a.k * 1000 + b.k AS k, a.v FROM u1 AS a CROSS JOIN u1 AS b", KV, "u1")
    world.insert("u1", KV, numbered(0, 300))
    conf = spark.sparkContext._jsc.sc().conf()
    most = conf.get("spark.driver.maxResultSize")
    node = Node(spark, tmp_path / "node", world, (TABLE, pairs))
    conf.set("spark.driver.maxResultSize", "100k")
    try:
        node.settle()
    finally:
        conf.set("spark.driver.maxResultSize", most)
    assert world.views.state.view("u2").error is None and node.files()
    want = Counter((a * 1000 + b, f"v{a % 7}") for a in range(300) for b in range(300))
    assert node.shown(pairs) == world.bound(pairs) == want
    node.close()


def test_tasks_of_a_view_that_is_dropped_are_cancelled(world, spark, tmp_path) -> None:
    """They would wait for its topic, which went with it."""
    relation = Relation(spark, "u9", KV, tmp_path)
    outlet = Outlet(relation, world.bootstrap, world.names.env, lambda _: None, iter("ab"))  # nobody makes the topic
    frame = spark.range(1000).selectExpr("CAST(id AS INT)", "'x'", "1L AS d")
    tracker = spark.sparkContext.statusTracker()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(outlet.collected, frame, 2)
        while not tracker.getActiveJobsIds() and not asked.done():
            time.sleep(0.01)
        began = time.monotonic()
        outlet.cancel()
        with pytest.raises(InvalidUsage) as dropped:
            asked.result()
        assert dropped.value.sqlstate == "42P01" and time.monotonic() - began < 20, "a write waits for 30 s"
        with pytest.raises(InvalidUsage):
            outlet.collected(frame, 2)
    assert list(tmp_path.iterdir()) == []
    relation.close()


def test_of_an_attempt_that_does_not_count_nothing_is_there(world, tmp_path) -> None:
    """A task that is tried again after it has produced all of its rows, and one that was done twice at once."""
    order = sending.Order(
        world.bootstrap, world.names.env, "u9", plain_columns(KV), "a", str(tmp_path / "f"), 0
    )  # fmt: skip
    world.writer.order("u9")
    parts = [table_from_rows(KV, numbered(n, n + 500)) for n in range(0, 2000, 500)]
    given = [with_diff(part).combine_chunks().to_batches()[0] for part in parts]
    said, runs, names = [], [], []
    for task, (part, counts) in enumerate([(0, False), (1, True), (0, True), (2, False), (2, True), (3, True)]):
        [answer] = sending.handled(order, task, iter([given[part]]))
        rows, [receipt] = sending.receipts(pa.table(answer))
        assert rows.num_rows == 0 and receipt.error is None and sum(run.rows for run in receipt.runs) == 500
        if counts:
            said.append(receipt)
            runs += receipt.runs
            names += [file.name for file in receipt.files]
    found = pa.concat_tables(world.rows_of(KV, joined(random.Random(1).sample(runs, len(runs)))))
    assert Counter(found.column("k").to_pylist()) == Counter(range(2000))
    assert world.end("u9") > sum(run.upper - run.lower for run in runs), "there is garbage between them"
    assert len(set(names)) == 4 and sum(f.segment.changes for r in said for f in r.files) == 2000


@pytest.mark.parametrize("bug", ["", "task_counted_twice"])
def test_what_a_task_wrote_that_is_tried_again_is_bound_by_nobody(world, spark, tmp_path, monkeypatch, bug) -> None:
    """An attempt writes all of its rows and ends before anybody is told where they are; then tasks do it all.  With the
    bug its rows are bound, too."""
    rows = numbered(0, 5000)
    world.insert("u1", KV, rows)
    node = Node(spark, tmp_path / "node", world, (TABLE, COPIED))
    collected, tried = module._collected, []

    def again(frame) -> pa.Table:
        order = sending.Order(world.bootstrap, world.names.env, "u2", plain_columns(KV), tried[-1],
                              str(tmp_path / "lost"), 0)  # fmt: skip
        given = with_diff(table_from_rows(KV, rows[:1000])).combine_chunks().to_batches()
        list(sending.handled(order, 0, iter(given)))
        return collected(frame)

    made = module.Order
    monkeypatch.setattr(module, "Order", lambda *given: tried.append(given[4]) or made(*given))
    monkeypatch.setattr(module, "_collected", again)
    with BUGS[bug].apply() if bug else nullcontext():
        begun = time.monotonic()
        node.settle()
    found = Counter()
    for each in world.rows_of(COPIED.columns, [b.run for b in world.runs(COPIED)]):
        for *row, diff in to_rows(each):
            found[tuple(row)] += diff
    assert tried
    if bug:
        doubled = [row for row, count in found.items() if count == 2]
        assert len(doubled) >= 999 and found != copied(rows)
        took_s = time.monotonic() - begun
        print(f"found {bug} by the rows that are bound: {len(doubled)} of them twice, {took_s:.1f} s")
    else:
        assert found == copied(rows)
    node.close()


def test_all_types_are_what_they_were(world, spark, tmp_path) -> None:
    serial = count()

    @given(st.lists(row_values, min_size=1, max_size=6))
    @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def check(values) -> None:
        directory = tmp_path / f"{next(serial)}"
        directory.mkdir()
        base = Relation(spark, "u1", NUMBERED, directory)
        base.append([stamp(table_from_rows(NUMBERED, values), 1, base.types)], DataTs(2))
        made = Relation(spark, f"u{next(serial) + 100}", NUMBERED, directory)
        outlet = Outlet(made, world.bootstrap, world.names.env, world.writer.order, (f"{n}" for n in count()))
        with base.snapshot(DataTs(1)) as snapshot:
            rows = outlet.collected(spark.sql(text(snapshot.diffs())), 2)
        assert rows.num_rows == 0
        sent = outlet.taken()
        want = Counter(to_rows(base.delta(DataTs(-1), DataTs(1))))
        made.append([], DataTs(6), sent.files)
        assert Counter(to_rows(made.delta(DataTs(-1), DataTs(5)))) == want
        with made.snapshot(DataTs(5)) as snapshot:
            assert Counter(to_rows(spark.sql(text(snapshot.diffs())).toArrow())) == want
        loaded = Relation(spark, made.id, NUMBERED, directory)
        loaded.append([stamp(t, 5, made.types) for t in world.rows_of(NUMBERED, sent.runs)], DataTs(6))
        assert Counter(to_rows(loaded.delta(DataTs(-1), DataTs(5)))) == want
        for each in (base, made, loaded):
            each.close()

    check()


WRONG = view("u2", "SELECT 10 DIV (k - 4999) AS k, v FROM u1", KV, "u1")
LONG = view("u2", "SELECT k, CASE WHEN k = 4999 THEN REPEAT(v, 2100000) ELSE v END AS v FROM u1", KV, "u1")


@pytest.mark.parametrize(("wrong", "state"), [(WRONG, "22012"), (LONG, "54000")], ids=["divided by zero", "too large"])
def test_one_row_that_cannot_be_is_the_views_error_and_nothing_is_bound(world, spark, tmp_path, wrong, state) -> None:
    world.insert("u1", KV, numbered(0, 5000))
    node = Node(spark, tmp_path / "node", world, (TABLE, wrong, READER))
    node.settle()
    said = decode_error(world.views.state.view("u2").error)
    assert said.sqlstate == state and world.views.state.view("u4").error
    assert world.runs(wrong) == () and node.files() == set() and "u2" not in node.ticking._maintainer.views
    # Without that row it is made.
    gone = table_from_rows(KV, [(4999, "v1")]).append_column(DIFF, pa.array([-1], pa.int64()))
    world.insert("u1", KV, gone)
    node.settle()
    assert world.views.state.view("u2").error is None is world.views.state.view("u4").error
    assert node.shown(wrong) == world.bound(wrong) and world.bound(wrong).total() == 4999
    node.close()


def test_a_life_that_ends_between_writing_and_binding_leaves_garbage(world, spark, tmp_path, monkeypatch) -> None:
    rows = numbered(0, 5000)
    world.insert("u1", KV, rows)
    commit = world.views.commit

    def crash(*args):
        raise Crash

    monkeypatch.setattr(world.views, "commit", crash)
    node = Node(spark, tmp_path / "node", world, (TABLE, COPIED))
    with pytest.raises(Crash):
        node.settle()
    monkeypatch.setattr(world.views, "commit", commit)
    before = world.end("u2")
    assert before > 0 and world.runs(COPIED) == ()
    again = Node(spark, tmp_path / "again", world, (TABLE, COPIED))
    again.settle()
    assert again.shown(COPIED) == world.bound(COPIED) == copied(rows)
    assert all(each.run.lower >= before for each in world.runs(COPIED))
    # Who was outrun meanwhile writes as it likes, and binds nothing.
    world.insert("u1", KV, [(-1, "x")])
    job = node.ticking._job
    assert job.done
    with pytest.raises(Rejected):
        node.ticking._bind([Change("u2", pa.table({}), None, lambda: None)], {},
                           node.inventory.frontiers(), world.oracle.state.last_ts)  # fmt: skip
    again.close()
    node.close()


def test_rows_in_more_pieces_than_a_record_may_name_are_an_error_until_it_is_made_again(
    world, spark, tmp_path, monkeypatch
) -> None:
    rows = numbered(0, 5000)
    world.insert("u1", KV, rows)
    monkeypatch.setattr(ticking, "BINDINGS_MAX", 0)
    node = Node(spark, tmp_path / "node", world, (TABLE, COPIED))
    node.settle()
    said = decode_error(world.views.state.view("u2").error)
    assert said.sqlstate == "54000" and said.hint and node.files() == set()
    monkeypatch.setattr(ticking, "BINDINGS_MAX", 20_000)
    world.insert("u1", KV, [(9000, "x")])
    node.settle()
    assert node.shown(COPIED) == world.bound(COPIED) == copied([*rows, (9000, "x")])
    node.close()


def test_tasks_whose_python_lacks_a_package_say_so(world, spark, tmp_path, monkeypatch) -> None:
    relation = Relation(spark, "u9", KV, tmp_path)
    outlet = Outlet(relation, world.bootstrap, world.names.env, world.writer.order, iter("ab"))
    monkeypatch.setattr(module, "TASK_MODULE", "no_such_package")
    with pytest.raises(InvalidUsage) as lacking:
        outlet.collected(spark.range(10).selectExpr("CAST(id AS INT)", "'x'", "1L AS d"), 2)
    assert lacking.value.sqlstate == "0A000" and "no_such_package" in lacking.value.detail
    relation.close()
