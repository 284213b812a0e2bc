"""The ticker and the peek desk on a real Spark, without a log."""

from __future__ import annotations

import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from uuid import UUID

import pyarrow as pa
import pytest
from immutables import Map

from catalog_log import objects
from catalog_log.objects import INDEX, Table
from catalog_log.settings import AUTO, SPARK
from collection.columns import table_from_rows, with_diff
from collection.rows import encode as encode_rows
from controllers.at_work import AtWork
from controllers.compute import peeks, running
from controllers.compute.core import Core
from controllers.compute.handling import Handling
from controllers.compute.indexes import Indexes
from controllers.compute.operators.left import Left
from controllers.compute.operators.process import Process, _Patience
from controllers.compute.peek_query import query_of
from controllers.compute.peeks import PROCESS_PEEKS_MAX, SPARK_PEEKS_MAX, PeekDesk
from controllers.compute.ticks import Target, Ticker
from controllers.peeks.given import packed
from controllers.peeks.peek import Lookup, Own, Peek
from journal.errors import InvalidUsage, TidemarkError, Unavailable
from journal.memory import MemoryTransport
from plan.calls import aggregate, call
from plan.codec import encode
from plan.relations import Filter, Get, Join, Kind, Project, Query, Reduce
from plan.scalars import Call, Column, Literal
from plan.types import INT4, TEXT
from tests.compute.telling import tell
from tests.objects import made
from values.types import arrow_type, parse_type

pytestmark = pytest.mark.spark


def wait_until(condition, what, timeout_s=30.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture
def ticker(spark, tmp_path):
    seen: list[Target] = []
    changed = threading.Condition()
    behave = SimpleNamespace(on_tick=lambda target: None)

    def on_tick(target):
        behave.on_tick(target)
        with changed:
            seen.append(target)
            changed.notify_all()

    found = Ticker(spark, tmp_path / "ticks", on_tick)
    found.seen, found.behave = seen, behave

    def await_tick(target):
        with changed:
            assert changed.wait_for(lambda: target in seen, 30), (target, seen)

    found.await_tick = await_tick
    yield found
    found.stop()


def jobs(spark) -> int:
    """Jobs that Spark ever ran in this session."""
    return spark.sparkContext._jsc.sc().dagScheduler().nextJobId()


def test_a_tick_that_does_not_begin_is_told(ticker, monkeypatch):
    from controllers.compute import ticks

    monkeypatch.setattr(ticks, "BEGIN_S", -1.0)
    assert ticker.failure() is None, "nobody asked for one"
    ticker._query.stop()
    ticker.move_to(100)
    assert isinstance(ticker.failure(), Unavailable)


def test_a_tick_that_takes_long_has_begun(ticker, monkeypatch):
    from controllers.compute import ticks

    going_on, may_end = threading.Event(), threading.Event()
    ticker.behave.on_tick = lambda _: (going_on.set(), may_end.wait(30))
    ticker.move_to(200)
    assert going_on.wait(30)
    monkeypatch.setattr(ticks, "BEGIN_S", -1.0)
    ticker.move_to(300)
    assert ticker.failure() is None, "the next one cannot begin yet"
    may_end.set()
    ticker.await_tick(Target(300, 0))


def test_ticks_need_no_process_of_pythons(spark, tmp_path, monkeypatch):
    """Spark waits for one no longer than 10 s, so where it took longer there was never a tick."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/bin/false")
    ticked = threading.Event()
    ticker = Ticker(spark, tmp_path / "ticks", lambda _: ticked.set())
    try:
        ticker.move_to(5)
        wait_until(lambda: ticked.is_set() or ticker.failure(), "it does not tick")
        assert ticker.failure() is None
    finally:
        ticker.stop()


def test_ticks_come_once_each_and_cost_no_job(spark, ticker, tmp_path):
    before = jobs(spark)
    ticker.move_to(100)
    ticker.await_tick(Target(100, 0))
    ticker.move_to(100)  # nothing new
    ticker.move_to(90)  # never back
    ticker.move_to(100, again=True)
    ticker.await_tick(Target(100, 1))
    assert ticker.seen == [Target(100, 0), Target(100, 1)]
    assert jobs(spark) == before and ticker.failure() is None
    assert not list(tmp_path.rglob("*.crc")), "each file that Hadoop makes costs it a process"


def latest(ticker, tmp_path) -> int:
    """The newest batch that Spark knows of."""
    return max(int(each.name) for each in (tmp_path / "ticks" / "query" / "offsets").glob("[0-9]*"))


def test_one_batch_goes_on_with_what_comes(ticker, tmp_path, monkeypatch):
    from controllers.compute import ticks

    monkeypatch.setattr(ticks, "BATCH_S", 60.0)
    ticker.move_to(1)
    ticker.await_tick(Target(1, 0))
    offset = latest(ticker, tmp_path)
    for ts in range(2, 40):
        ticker.move_to(ts)
        ticker.await_tick(Target(ts, 0))
    assert offset <= latest(ticker, tmp_path) <= offset + 1, "one that began before may have ended"
    assert ticker.failure() is None and ticker.seen == [Target(n, 0) for n in range(1, 40)]


def test_a_batch_ends_though_targets_never_stop_and_none_is_lost(ticker, tmp_path, monkeypatch):
    from controllers.compute import ticks

    monkeypatch.setattr(ticks, "BATCH_S", 0.05)
    ticker.move_to(1)
    ticker.await_tick(Target(1, 0))
    first, ts = latest(ticker, tmp_path), 1
    while latest(ticker, tmp_path) < first + 2:  # the batch that was under way had its own time
        ts += 1
        ticker.move_to(ts)
        ticker.await_tick(Target(ts, 0))
    assert ticker.seen == [Target(n, 0) for n in range(1, ts + 1)] and ticker.failure() is None


def test_batches_that_nobody_asks_anything_of_tick_nothing(ticker, tmp_path, monkeypatch):
    from controllers.compute import ticks

    monkeypatch.setattr(ticks, "BATCH_S", 0.05)
    ticker.move_to(7)
    ticker.await_tick(Target(7, 0))
    first = latest(ticker, tmp_path)
    wait_until(lambda: latest(ticker, tmp_path) > first + 2, "no batch ends")
    assert ticker.seen == [Target(7, 0)]
    ticker.move_to(8)
    ticker.await_tick(Target(8, 0))


def test_a_batch_that_waits_for_a_target_is_stopped_at_once(ticker, monkeypatch):
    from controllers.compute import ticks

    monkeypatch.setattr(ticks, "BATCH_S", 60.0)
    ticker.move_to(1)
    ticker.await_tick(Target(1, 0))
    stopping = threading.Thread(target=ticker.stop)
    stopping.start()
    stopping.join(30)
    assert not stopping.is_alive() and not ticker._query.isActive


def test_targets_published_during_a_tick_are_joined(ticker):
    started, go = threading.Event(), threading.Event()

    def slow(target):
        if target.ts == 1:
            started.set()
            go.wait(20)

    ticker.behave.on_tick = slow
    ticker.move_to(1)
    assert started.wait(30)
    for ts in range(2, 50):
        ticker.move_to(ts)
    go.set()
    ticker.await_tick(Target(49, 0))
    assert ticker.seen == [Target(1, 0), Target(49, 0)]


def test_a_tick_that_raises_stops_the_query_and_says_so(ticker):
    def bad(target):
        raise RuntimeError("disk on fire")

    ticker.behave.on_tick = bad
    ticker.move_to(5)
    wait_until(lambda: ticker.failure() is not None, "no failure was told")
    assert "disk on fire" in str(ticker.failure())


def test_an_idle_view_costs_no_job(spark, bench):
    r = bench.relation({"k": "int4"})
    other = bench.relation({"k": "int4"})
    bench.change({r: [((1,), 1)], other: [((1,), 1)]})
    views = [bench.view("SELECT k, COUNT(*) AS n FROM {0} GROUP BY k", {"k": "int4", "n": "int8"}, r),
             bench.view("SELECT MAX(k) AS m FROM {0}", {"m": "int4"}, r)]  # fmt: skip
    bench.tick()
    bench.change({other: [((2,), 1)]})
    before = jobs(spark)
    changes = bench.tick()
    assert jobs(spark) == before
    assert all(changes[v.id].rows.num_rows == 0 and changes[v.id].error is None for v in views)


TABLE_ITEM = Table("u1", "s1", "t", "", (objects.Column("k", "int4"), objects.Column("v", "text")))
INDEX_ITEM = made(INDEX, "u2", on=("u1",), key=("k",))
PROJECT = '{"filter": null, "project": [["col", 1]], "order_by": [], "limit": null, "offset": 0}'


class FakeInventory:
    """One table, complete as far as the test says."""

    def __init__(self, bench) -> None:
        self.bench = bench
        self.catalog = SimpleNamespace(objects=Map({"u1": TABLE_ITEM, "u2": INDEX_ITEM}), frontier=10)
        self.table = bench.relation({c.name: c.type for c in TABLE_ITEM.columns})
        self.changes = True

    def indexes_of(self, cluster):
        return {"u2": INDEX_ITEM}

    def relation(self, object_id):
        return self.table

    def relation_through(self, object_id, through):
        self.table.advance(through + 1)
        return self.table

    def relation_at(self, object_id, as_of, reads):
        return self.relation_through(object_id, as_of)

    def frontiers(self):
        now = self.bench.now
        return SimpleNamespace(
            exact=lambda i: (0, now) if i == "u1" else (0, -1), complete=lambda i: now,
            inputs_of=lambda i: None, changed_since=lambda i, ts: self.changes,
            oracle=SimpleNamespace(last_ts=now), views=SimpleNamespace(next_offset=0, epoch=lambda cluster: 0),
        )  # fmt: skip


@pytest.fixture
def desk(bench):
    inventory = FakeInventory(bench)
    indexes = Indexes(inventory, "default", 1000, AtWork(MemoryTransport(), "a life").begin())
    indexes.reconcile()
    core = Core("default", AtWork(MemoryTransport(), "a life").begin())
    found = PeekDesk(Handling(core), bench.spark, inventory, indexes, lambda: found.gear)
    found.gear, found._process = AUTO, Process(60.0)  # on a busy machine half a second is no reason to ask Spark
    found.inventory, found.indexes = inventory, indexes

    def change(*rows, diff=1):
        bench.change({inventory.table: [(row, diff) for row in rows]})
        tell(core, found, inventory.frontiers(), 10, inventory.catalog.objects)

    found.change = change
    change((1, "a"), (2, "b"))
    yield found
    found.close()


def peek(name, sql="SELECT v FROM u1 ORDER BY v", as_of=1, **fields):
    return Peek(name, sql, ("u1",), 0, as_of, **fields)


def test_answers_from_spark_and_from_the_index_and_at_their_time(spark, desk):
    desk.change((1, "c"))
    table, as_of = desk.peek(peek("a", as_of=2))
    assert (table.column(0).to_pylist(), as_of) == (["a", "b", "c"], 2)
    assert desk.peek(peek("b", as_of=1))[0].column(0).to_pylist() == ["a", "b"]
    before = jobs(spark)
    lookup = Lookup("u2", "u1", (1,), PROJECT)
    assert sorted(desk.peek(peek("c", as_of=2, lookup=lookup))[0].column(0).to_pylist()) == ["a", "c"]
    assert desk.peek(peek("d", as_of=1, lookup=lookup))[0].column(0).to_pylist() == ["a"]
    assert jobs(spark) == before and desk.status()["index"] == 2
    # Asked for at once: only what an index has, and what has not to be waited for.
    question = peek("f", as_of=1, lookup=lookup).question()
    batch, as_of, counts = desk.lookups(question, [(1,), (9,), (1, 1), (2,)])
    assert (batch.column(0).to_pylist(), as_of) == (["a", "b"], 1)
    assert (counts[0], counts[1], counts[2].sqlstate, counts[3]) == (1, 0, "08P01", 1), "each its own outcome"
    assert desk.lookups(question._replace(index_id="u9"), [(1,)]) is None
    assert desk.lookups(question._replace(as_of=3), [(1,)]) is None
    assert desk.status()["index"] == 6
    # Behind only because time passed: that is no reason to wait.
    desk.change()
    assert desk.lookups(question._replace(as_of=3), [(1,)]) is None, "it may have changed"
    for as_of in (3, None, 99):
        found = desk.lookups(question._replace(as_of=as_of, behind=True), [(1,)])
        assert (sorted(found.batch.column(0).to_pylist()), found.as_of) == (["a", "c"], 2), "as it is"
    assert desk.lookups(question._replace(as_of=1, behind=True, only_at=True), [(1,)]).as_of == 1
    desk.inventory.changes = False
    found = desk.lookups(question._replace(as_of=None), [(1,)])
    assert (sorted(found.batch.column(0).to_pylist()), found.as_of, found.counts) == (["a", "c"], 3, [2])
    # An index that is not there, or does not reach back so far, sends the read to Spark.
    assert desk.peek(peek("e", "SELECT v FROM u1 WHERE k = 2", as_of=1, lookup=lookup._replace(index_id="u9"))
                     )[0].column(0).to_pylist() == ["b"]  # fmt: skip


@pytest.mark.parametrize("gear", [AUTO, SPARK])
def test_what_a_reader_brings_is_read_with_the_rest_and_by_nobody_else(desk, gear):
    """Of equal rows one is taken back, one row is there only in what is brought, and one goes that was brought."""
    desk.gear = gear
    desk.change((1, "a"))
    columns = desk.inventory.table.columns
    rows = [(1, "a", -1), (3, "c", 1), (3, "d", 1), (3, "d", -1)]
    brought = [
        next(encode_rows(columns, with_diff(table_from_rows(columns, [row[:2]]), row[2]), "own")).value for row in rows
    ]
    own = (Own("u1", tuple(brought)),)
    found, _ = desk.peek(planned("a", U1, as_of=2, own=own, timeout_ms=300_000))
    assert sorted(zip(*(c.to_pylist() for c in found.columns), strict=True)) == [(1, "a"), (2, "b"), (3, "c")]
    assert desk.status()["process" if gear == AUTO else "spark"] == 1
    found, _ = desk.peek(planned("b", U1, as_of=2, timeout_ms=300_000))
    assert sorted(found.column(1).to_pylist()) == ["a", "a", "b"]


KINDS = tuple(Kind(kind, True) for kind in (INT4, TEXT))
U1 = Get("u1", ("k", "v"), KINDS)


def planned(name, relation, **fields):
    """A peek as adapters send it."""
    names = tuple(f"c{place}" for place in range(len(relation.columns)))
    return peek(name, "", plan=encode(Query(relation, names)), **fields)


ODD = {
    "int2": [1, -32768], "int4": [1, 2], "int8": [2**63 - 1, -2**63], "float8": [math.inf, -0.0], "float4": [1.5, None],
    "bool": [True, None], "text": ["", "a'\\\"$1 \u65e5"], "varchar": ["x", None], "bpchar": ["ab", ""],
    "numeric": ["1.500", "NaN"], "numeric(8,2)": [Decimal("1.20"), Decimal("-0.01")], "bytea": [b"\0\xff", b""],
    "date": [date(1, 1, 1), date(9999, 12, 31)], "jsonb": ['{"k": [1, null]}', "null"],
    "timestamp": [datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    "timestamptz": [datetime(1, 1, 2, tzinfo=UTC), datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=UTC)],
    "int4[]": [[1, None], []], "text[]": [["a", "", None, "NULL"], None], "uuid": [str(UUID(int=1)), None],
}  # fmt: skip
"""Two values of each type, as Arrow has them."""


@pytest.mark.parametrize("gear", [AUTO, SPARK])
def test_relations_of_a_statement_are_read_beside_others_as_they_were_given(desk, gear):
    desk.gear = gear
    types = [parse_type(text) for text in ODD]
    arrays = [pa.array(values, arrow_type(kind)) for values, kind in zip(ODD.values(), types, strict=True)]
    table = pa.Table.from_arrays(arrays, names=[f"c`.\"{at}" if at else "c0" for at in range(len(types))])
    w1 = Get("w1", tuple(table.column_names), tuple(Kind(kind, True) for kind in types))
    same = call("=", Column(INT4, True, 0), Column(INT4, True, 3))
    joined = Join("right", U1, w1, same)
    found, as_of = desk.peek(planned("a", joined, as_of=1, given=packed({"w1": table}), timeout_ms=300_000))
    assert as_of == 1 and desk.status()["process" if gear == AUTO else "spark"] == 1
    kinds = [*(each.type for each in found.schema)][:2] + [each.type for each in table.schema]
    given = [values.cast(kind).to_pylist() for values, kind in zip(found.columns, kinds, strict=True)]
    rows = sorted(zip(*given, strict=True), key=lambda row: row[3])
    whole = zip(*(c.to_pylist() for c in table.columns), strict=True)
    assert repr([row[2:] for row in rows]) == repr(list(whole)) and [row[1] for row in rows] == ["a", "b"]
    none = packed({"w1": table.slice(0, 0)})
    found, _ = desk.peek(planned("b", joined, as_of=1, given=none, timeout_ms=300_000))
    assert found.num_rows == 0
    for lost in ((), packed({"w2": table}), packed({"w1": table.rename_columns([f"d{n}" for n in range(len(types))])})):
        with pytest.raises(TidemarkError):
            desk.peek(planned("c", joined, as_of=1, given=lost, timeout_ms=60_000))


def outputs(*scalars):
    return Project(U1, scalars)


def test_what_reads_little_is_answered_in_this_process(spark, desk):
    key, value = (Column(kind, True, place) for place, (kind, _) in enumerate(KINDS))
    desk.change((1, "c"))
    before = jobs(spark)
    same = call("=", key, Literal(INT4, False, "1"))
    asked = Project(Filter(U1, same), (value, call("*", key, Literal(INT4, False, "7"))))
    found, as_of = desk.peek(planned("a", asked, as_of=2))
    assert as_of == 2 and found.column_names == ["c0", "c1"]
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [("a", 7), ("c", 7)]
    assert desk.peek(planned("b", asked, as_of=1))[0].num_rows == 1, "at the time that it asks for"
    desk.change((1, "c"))
    assert desk.peek(planned("c", asked, as_of=3))[0].num_rows == 3, "equal rows are as many as they are"
    assert jobs(spark) == before
    assert desk.status()["process"] == 3 and desk.status()["spark"] == 0


def test_spark_alone_says_what_is_an_error_and_is_asked_what_its_gear_says(spark, desk):
    key, value = (Column(kind, True, place) for place, (kind, _) in enumerate(KINDS))
    nothing = call("%", key, Literal(INT4, False, "0"))
    with pytest.raises(InvalidUsage) as error:
        desk.peek(planned("a", outputs(nothing)))
    assert error.value.sqlstate == "22012" and desk.status()["failed"] == 1
    desk.gear = SPARK
    assert desk.peek(planned("b", outputs(value)))[0].num_rows == 2
    assert desk.status()["process"] == 0 and desk.status()["spark"] == 1
    desk.gear = AUTO
    assert desk.peek(planned("c", outputs(value)))[0].num_rows == 2
    assert desk.status()["process"] == 1
    # What is no function of its inputs is one engine's at all times.
    assert desk.peek(planned("d", outputs(value, call("current_timestamp"))))[0].num_rows == 2
    assert desk.status()["process"] == 1 and desk.status()["spark"] == 2


def test_a_read_by_spark_tries_no_condition_on_a_row_that_went(desk):
    desk.gear = SPARK
    key, zero = Column(KINDS[0][0], True, 0), Literal(INT4, False, "0")
    asked = Filter(U1, call("=", call("%", Literal(INT4, False, "7"), key), zero))
    desk.change((0, "c"))
    with pytest.raises(InvalidUsage) as error:
        desk.peek(planned("a", asked, as_of=2))
    assert error.value.sqlstate == "22012"
    desk.change((0, "c"), diff=-1)
    assert desk.peek(planned("b", asked, as_of=3))[0].column(1).to_pylist() == ["a"]


def test_what_takes_long_in_this_process_is_spark_s_for_a_while(desk, monkeypatch):
    monkeypatch.setattr(desk._process, "_patience", _Patience(0.0))
    value = Column(TEXT, True, 1)
    many = U1
    for _ in range(5):
        many = Project(Join("cross", many, U1), (many.column(1),) * 2)
    counted = Reduce(many, (), (aggregate("count", (value,), False),))
    for name in ("a", "b"):
        assert desk.peek(planned(name, counted))[0].column(0).to_pylist() == [64]
    assert desk.status()["spark"] == 2 and query_of(planned("c", counted)).rest._left == 0


def test_what_reads_little_and_gives_much_is_refused_before_it_is_in_anybody_s_memory(desk, monkeypatch):
    """Pairs of all rows with all ended Spark's JVM, and the controller of all of the cluster's views with it."""
    desk.gear = SPARK
    for module, name, size in ((peeks, "MUCH_ROWS", 32), (peeks, "LONG_ROWS", 2),
                               (running, "ANSWER_BYTES_MAX", 256), (running, "ANSWER_BYTES_LEAST", 128)):  # fmt: skip
        monkeypatch.setattr(module, name, size)
    value = Column(TEXT, True, 1)
    many = U1
    for _ in range(4):
        assert desk.peek(planned(f"few {many}", many))[0].num_rows < 32
        many = Project(Join("cross", many, U1), (many.column(0), many.column(1)))
    long = Project(U1, (Call(TEXT, True, "tm_repeat_text_int4", (value, Literal(INT4, False, "500"))),))
    for name, asked in (("a", many), ("b", long)):
        with pytest.raises(InvalidUsage, match="too large") as error:
            desk.peek(planned(name, asked))
        assert error.value.sqlstate == "54000"
    assert desk.peek(planned("c", Filter(many, call("=", many.column(0), Literal(INT4, False, "9")))))[0].num_rows == 0


def test_a_cancelled_read_is_not_left_to_spark(desk, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def slowly(*given):
        begun.set()
        assert go_on.wait(30)
        raise Left("it takes too much", large=True)

    monkeypatch.setattr(desk._process, "rows", slowly)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(desk.peek, planned("a", outputs(Column(INT4, True, 0))))
        assert begun.wait(30)
        desk.cancel("a")
        go_on.set()
        with pytest.raises(TidemarkError) as cancelled:
            waiting.result(30)
    assert cancelled.value.sqlstate == "57014" and desk.status()["spark"] == 0


def test_a_read_in_process_is_over_at_its_timeout_and_gives_its_place_back(desk, monkeypatch):
    """Whoever brings its rows may be waiting for a broker that is away."""
    here, go_on = desk.inventory.relation_through, threading.Event()

    def slowly(object_id, through):
        assert go_on.wait(30)
        return here(object_id, through)

    value = Column(INT4, True, 0)
    monkeypatch.setattr(desk.inventory, "relation_through", slowly)
    try:
        for n in range(PROCESS_PEEKS_MAX + 1):
            with pytest.raises(TidemarkError) as late:
                desk.peek(planned(f"late {n}", outputs(value), timeout_ms=50))
            assert late.value.sqlstate == "57014"
        monkeypatch.setattr(desk.inventory, "relation_through", here)
        assert desk.peek(planned("next", outputs(value)))[0].num_rows == 2
        assert (desk.status()["process"], desk.status()["spark"], desk.status()["running"]) == (1, 0, 0)
    finally:
        go_on.set()


def test_rows_that_are_there_are_found_out_once(desk):
    value = Column(INT4, True, 0)
    relation = desk.inventory.table
    desk.peek(planned("a", outputs(value)))
    there = relation.present(1)
    assert relation.present(1) is there
    desk.change()
    assert relation.present(2) is there, "nothing changed since"
    desk.change((1, "c"))
    assert relation.present(3).num_rows == there.num_rows + 1


@pytest.mark.parametrize("plan", ["", "{}", "SELECT 1", encode(Query(U1, ("k", "v")))[:-3]])
def test_what_is_no_plan_is_refused(desk, plan):
    with pytest.raises(InvalidUsage) as refused:
        desk.peek(peek("a", "", plan=plan))
    assert refused.value.sqlstate == "08P01"


def test_a_plan_reads_nothing_but_what_the_peek_names(desk):
    """Whoever made it: the gate before Spark is ours."""
    other = Get("parquet`.`/etc/passwd", ("k", "v"), KINDS)
    with pytest.raises(InvalidUsage) as refused:
        desk.peek(planned("a", other))
    assert refused.value.sqlstate == "42P01"
    table = Project(Join("cross", U1, Get("sqlite_master", ("name",), (Kind(TEXT, True),))), (Column(TEXT, True, 2),))
    with pytest.raises(InvalidUsage) as refused:
        desk.peek(planned("c", table))
    assert refused.value.sqlstate == "42P01"
    for name in ("version", "current_user", "getvariable"):
        with pytest.raises(InvalidUsage) as refused:
            desk.peek(planned(name, outputs(Call(TEXT, True, name, ()))))
        assert refused.value.sqlstate in ("42501", "42883"), name
    with pytest.raises(InvalidUsage) as refused:
        desk.peek(planned("b", outputs(Call(TEXT, True, "java_method", (Literal(TEXT, False, "java.lang.System"),)))))
    assert refused.value.sqlstate in ("42501", "42883")


def test_waits_for_its_time_and_times_out(desk):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(desk.peek, peek("a", as_of=2))
        wait_until(lambda: desk.status()["waiting"] == 1, "it did not wait")
        desk.change((3, "z"))
        assert waiting.result(30)[1] == 2
        with pytest.raises(TidemarkError) as late:
            desk.peek(peek("b", as_of=99, timeout_ms=50))
        assert late.value.sqlstate == "57014"
        with pytest.raises(InvalidUsage) as gone:
            desk.peek(Peek("c", "SELECT 1 FROM u7", ("u7",), 0, 1))
        assert gone.value.sqlstate == "42P01"


def test_a_read_does_not_wait_beyond_its_timeout_for_who_brings_its_index_there(desk):
    """Whoever is at it may be waiting for rows from a broker that is away."""
    desk.change((4, "x"))
    with desk.indexes._indexes["u2"].lock, pytest.raises(TidemarkError) as late:
        desk.peek(peek("a", as_of=2, lookup=Lookup("u2", "u1", (4,), PROJECT), timeout_ms=50))
    assert late.value.sqlstate == "57014" and "u2" in late.value.detail
    assert desk.peek(peek("b", as_of=2, lookup=Lookup("u2", "u1", (4,), PROJECT)))[0].num_rows == 1


# Thousands of short tasks: Spark stops between tasks, not within generated code.
SLOW = "SELECT MAX(MOD(a.id, k + 7)) FROM RANGE(0, 40000000000, 1, 8000) a, u1"


def test_cancelled_waiting_or_running_or_at_its_timeout(desk):
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(desk.peek, peek("w", as_of=99))
        wait_until(lambda: desk.status()["waiting"] == 1, "it did not wait")
        desk.cancel("w")
        assert waiting.exception(10).sqlstate == "57014"
        running = pool.submit(desk.peek, peek("r", SLOW))
        wait_until(lambda: desk._spark.sparkContext.statusTracker().getJobIdsForGroup("r"), "it did not run")
        desk.cancel("r")
        assert running.exception(120).sqlstate == "57014"  # its tasks end first: seconds, on a busy machine many
        desk.cancel("nobody")
        started = time.monotonic()
        with pytest.raises(TidemarkError) as late:
            desk.peek(peek("t", SLOW, timeout_ms=1500))
        assert late.value.sqlstate == "57014" and time.monotonic() - started < 60
    assert desk.peek(peek("after"))[0].num_rows == 2  # the pool is free again


def test_a_tick_does_not_wait_for_reads_that_fill_every_core(spark, bench, desk):
    view = bench.view("SELECT k, COUNT(*) AS n FROM {0} GROUP BY k", {"k": "int4", "n": "int8"}, desk.inventory.table)
    bench.tick()
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(desk.peek, peek(f"s{i}", SLOW)) for i in range(4)]
        wait_until(lambda: all(spark.sparkContext.statusTracker().getJobIdsForGroup(f"s{i}") for i in range(4)), "…")
        desk.change((9, "z"))
        bench.tick()
        assert not any(r.done() for r in reads)
        assert bench.held(view)[(9, 1)] == 1
        for i in range(4):
            desk.cancel(f"s{i}")
        assert {r.exception(30).sqlstate for r in reads} == {"57014"}, "long before their timeout"


def test_a_cancel_that_comes_when_none_of_its_jobs_runs_is_not_lost(spark, desk):
    """Before the first job, or between two of one query, there is nothing in Spark to cancel yet."""
    with ThreadPoolExecutor(SPARK_PEEKS_MAX + 1) as pool:
        reads = [pool.submit(desk.peek, peek(f"c{i}", SLOW)) for i in range(SPARK_PEEKS_MAX)]
        running = spark.sparkContext.statusTracker().getJobIdsForGroup
        wait_until(lambda: all(running(f"c{i}") for i in range(SPARK_PEEKS_MAX)), "they did not run")
        queued = pool.submit(desk.peek, peek("queued", SLOW))
        wait_until(lambda: desk.status()["running"] == SPARK_PEEKS_MAX + 1, "it did not queue")
        desk.cancel("queued")
        for i in range(SPARK_PEEKS_MAX):
            desk.cancel(f"c{i}")
        assert {r.exception(30).sqlstate for r in [*reads, queued]} == {"57014"}, "long before their timeout"


def test_a_failing_read_tells_sparks_own_state_and_no_stack(desk):
    for sql, state in (("SELECT 1 DIV (k - 1) FROM u1", "22012"), ("SELECT CAST(v AS INT) FROM u1", "22P02"),
                       # In the thread that broadcasts one side: there it is only a cause.
                       ("SELECT 1 FROM u1 a JOIN (SELECT 1 DIV (k - 1) AS d, k FROM u1) b ON a.k = b.k", "22012"),
                       ("SELECT nope FROM u1", "42703"), ("SELECT nope(k) FROM u1", "42883")):  # fmt: skip
        with pytest.raises(TidemarkError) as failed:
            desk.peek(peek(sql, sql))
        assert failed.value.sqlstate == state, failed.value
        assert "\n" not in failed.value.message and "SQLSTATE" not in failed.value.message


def test_closing_refuses_what_waits(desk):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(desk.peek, peek("w", as_of=99))
        wait_until(lambda: desk.status()["waiting"] == 1, "it did not wait")
        desk.close()
        assert isinstance(waiting.exception(10), Unavailable)
    with pytest.raises(Unavailable):
        desk.peek(peek("x"))
