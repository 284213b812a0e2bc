"""A relation against a list of changes: at every timestamp, before and after sealing, merging and compaction."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pytest

from catalog_log.objects import INDEX, Column, Table
from controllers.arrangements.tuples import schema_of, to_rows
from controllers.at_work import AtWork
from controllers.changes import TS, stamp
from controllers.compute import relation as module
from controllers.compute.indexes import Indexes
from controllers.compute.spark_text import text
from journal.errors import InvalidUsage, Rejected, Unavailable
from journal.memory import MemoryTransport
from tests.objects import made

pytestmark = pytest.mark.spark

COLUMNS = {"a b": "int4", "f": "float8", "s": "text"}


def rows_at(bench, relation, as_of) -> Counter:
    with relation.snapshot(as_of) as snapshot:
        rows = to_rows(bench.spark.sql(text(snapshot.rows())).toArrow())
        diffs = Counter()
        for *row, diff in to_rows(bench.spark.sql(text(snapshot.diffs())).toArrow()):
            diffs[tuple(row)] += diff
    assert Counter(rows) == diffs + Counter()
    return Counter(rows)


def test_equals_the_model_whatever_was_sealed_and_merged(bench, monkeypatch):
    monkeypatch.setattr(module, "TAIL_ROWS_MAX", 4)
    rng = random.Random(3)
    relation = bench.relation(COLUMNS)
    history: list[tuple[int, tuple, int]] = []
    present: Counter = Counter()
    for ts in range(1, 25):
        changes = []
        for _ in range(rng.randrange(4)):
            if present and rng.random() < 0.4:
                row = rng.choice(sorted(present.elements(), key=repr))
                present[row] -= 1
                present += Counter()
                changes.append((row, -1))
            else:
                row = (rng.choice([None, 1]), rng.choice([0.0, 2.5]), rng.choice([None, "x", "é'`"]))
                present[row] += 2
                changes.append((row, 2))
        relation.append([stamp(bench.table(relation, changes), ts, relation.types)] if changes else [], ts + 1)
        history += [(ts, row, diff) for row, diff in changes]
        if ts == 14:
            relation.allow_compaction(10)
        if ts % 3 == 0:
            held = relation.snapshot(max(relation.since, ts - 2))  # pinned over the merge
            relation.maintain()
            bench.spark.sql(f"SELECT COUNT(*) FROM ({text(held.rows())})").toArrow()
            held.release()
    assert 0 < relation.since <= 10 and relation.count == sum(present.values())

    def model(after, through):
        found = Counter()
        for ts, row, diff in history:
            if after < ts <= through:
                found[row] += diff
        return Counter({row: count for row, count in found.items() if count})

    for as_of in (relation.since, 15, 20, 24):
        assert rows_at(bench, relation, as_of) == model(-1, as_of)
    for after, through in ((-1, 24), (relation.since, 24), (12, 20), (24, 24)):
        delta = {tuple(row): diff for *row, diff in to_rows(relation.delta(after, through))}
        assert delta == model(after, through)
    with pytest.raises(InvalidUsage, match="too old"):
        relation.snapshot(relation.since - 1)
    files = list(bench.scratch.glob("*.parquet"))
    assert len(files) == len(relation._chunks), "files of merged chunks are removed"
    relation.close()
    assert not list(bench.scratch.glob("*.parquet"))
    views = [v.name for v in bench.spark.catalog.listTables() if v.name.startswith(f"tm_{relation.id}_")]
    assert not views


def test_spark_holds_only_what_it_reads(bench, monkeypatch):
    monkeypatch.setattr(module, "TAIL_ROWS_MAX", 1)
    relation = bench.relation({"a": "int4"})

    def seal(ts: int) -> None:
        table = bench.table(relation, [((ts,), 1), ((-ts,), 1)])
        relation.append([stamp(table, ts, relation.types)], ts + 1)
        assert relation.maintain()

    def cached() -> int:
        return len(bench.spark.sparkContext._jsc.sc().getRDDStorageInfo())

    before = cached()
    for ts in (1, 2):
        seal(ts)
    assert cached() == before, "nobody read it"
    assert len(list(relation.changes(-1, 2))) == 1, "two chunks became one"
    assert sum(rows_at(bench, relation, 2).values()) == 4
    assert cached() == before + 1
    seal(3)
    assert cached() == before + 1, "a chunk that is read again soon is in the cache before it is read"
    monkeypatch.setattr(module, "ASKED_LATELY_S", 0.0)
    seal(4)
    assert cached() == before and sum(rows_at(bench, relation, 4).values()) == 8
    relation.close()
    assert cached() == before


def test_a_change_is_read_from_what_came_with_it_alone(bench, monkeypatch):
    relation = bench.relation({"a": "int4"})

    def tables(*stamps):
        return [stamp(bench.table(relation, [((ts,), 1)]), ts, relation.types) for ts in stamps]

    for ts in range(1, 100):
        relation.append(tables(ts), ts + 1)
    relation.append(tables(109, 100, 105), 110)  # of one append, in any order
    looked_at = []
    between = module.between
    monkeypatch.setattr(module, "between", lambda table, *bounds: looked_at.append(table) or between(table, *bounds))
    for after, through in ((109, 109), (108, 109), (101, 108), (99, 109), (97, 100), (0, 3)):
        found = [row[0] for table in relation.changes(after, through) for row in to_rows(table)]
        assert sorted(found) == [ts for ts in (*range(1, 101), 105, 109) if after < ts <= through]
    assert not looked_at, "each append has one timestamp here: it is taken whole or not at all"
    relation.append([pa.concat_tables(tables(110, 112))], 113)
    assert [to_rows(table)[0][0] for table in relation.changes(110, 112)] == [112] and len(looked_at) == 1
    relation.close()


def test_a_row_may_be_there_more_often_than_there_is_memory(bench, monkeypatch):
    """A view of a join without a condition has one row that stands for billions: nobody writes them all out."""
    monkeypatch.setattr(module, "TAIL_ROWS_MAX", 1)
    relation = bench.relation({"a": "int4"})
    for ts, often in ((1, 100_003), (2, 199_899_997), (3, -199_899_990), (4, 2**40)):
        relation.append([stamp(bench.table(relation, [((7,), often), ((ts,), 1)]), ts, relation.types)], ts + 1)
        if ts != 3:
            relation.maintain()
    assert relation.rows_at_most == 200_000_000 + 2**40 + 4
    assert relation.present(1) is None and relation.present(2) is None and relation.present(4) is None

    def count(as_of: int, rest: str = "") -> int:
        with relation.snapshot(as_of) as snapshot:
            asked = f"SELECT COUNT(*) FROM (SELECT * FROM ({text(snapshot.rows())}) {rest})"
            return bench.spark.sql(asked).toArrow().column(0)[0].as_py()

    assert (count(1), count(3)) == (100_004, 100_013)
    assert count(2, "LIMIT 70000") == 70_000, "of 200 million the first"
    with pytest.raises(Exception, match="54000:a row is there more than"):
        count(4)
    few = bench.relation({"a": "int4"})
    few.append([stamp(bench.table(few, [((7,), 3), ((8,), -1), ((8,), 2)]), 1, few.types)], 2)
    assert few.rows_at_most == 5 and few.present(1).column(0).to_pylist() == [7, 7, 7, 8]


def test_too_large_is_refused_and_nothing_is_taken(bench, monkeypatch):
    relation = bench.relation({"a": "int4"})
    monkeypatch.setattr(module, "ROWS_MAX", 1)
    with pytest.raises(Rejected) as refused:
        relation.append([stamp(bench.table(relation, [((1,), 1), ((2,), 1)]), 1, relation.types)], 2)
    assert refused.value.sqlstate == "53200" and relation.upper == 0 and relation.rows == 0


def test_stamping_makes_floats_canonical():
    import pyarrow as pa

    from values.types import parse_type

    table = stamp(pa.table({"x": [0.0, -0.0, float("nan"), None]}), 5, [parse_type("float8")])
    assert [str(v) for v in table.column("c0").to_pylist()] == ["0.0", "0.0", "nan", "None"]
    assert table.column(TS).to_pylist() == [5] * 4
    assert schema_of([parse_type("float8")]).names == ["c0"]


def test_what_is_dropped_while_somebody_brings_it_up_is_gone_and_no_mistake(bench):
    """An index brought its relation up to date, and before it read that, the relation was dropped.  The controller took
    it for a mistake of its own and stopped (found by half an hour of faults)."""
    relation = bench.relation({"a": "int4"})
    relation.append([stamp(bench.table(relation, [((1,), 1)]), 1, relation.types)], 2)
    table = Table(relation.id, "s1", "t", "", (Column("a", "int4"),))
    index = made(INDEX, "i1", on=(relation.id,), key=("a",))
    frontiers = SimpleNamespace(complete=lambda _: 1, changed_since=lambda *_: True)

    class Dropping:
        catalog = SimpleNamespace(objects={relation.id: table, "i1": index})
        indexes_of = staticmethod(lambda _: {"i1": index})

        def relation_through(self, *_):
            relation.close()
            return relation

    indexes = Indexes(Dropping(), "default", 1000, AtWork(MemoryTransport(), "a life").begin())
    indexes.reconcile()
    indexes.follow(frontiers)
    assert indexes.status()["i1"]["rows"] == 0
    for late in (lambda: relation.delta(-1, 1), lambda: relation.snapshot(1), lambda: relation.append([], 3)):
        with pytest.raises(InvalidUsage) as caught:
            late()
        assert caught.value.sqlstate == "42P01"


def test_an_index_that_cannot_be_brought_up_says_why_once_until_it_can(bench, caplog):
    """It is tried five times a second, and a store may be away for hours."""
    relation = bench.relation({"a": "int4"})
    relation.append([stamp(bench.table(relation, [((1,), 1)]), 1, relation.types)], 2)
    table = Table(relation.id, "s1", "t", "", (Column("a", "int4"),))
    index = made(INDEX, "i1", on=(relation.id,), key=("a",))
    ails, through = [], [1]
    frontiers = SimpleNamespace(complete=lambda _: through[-1], changed_since=lambda *_: True)

    class Ailing:
        catalog = SimpleNamespace(objects={relation.id: table, "i1": index})
        indexes_of = staticmethod(lambda _: {"i1": index})

        def relation_through(self, *_):
            if ails:
                raise Unavailable("a file could not be read", detail=ails[-1])
            return relation

    indexes = Indexes(Ailing(), "default", 1000, AtWork(MemoryTransport(), "a life").begin())
    indexes.reconcile()

    def told(times):
        caplog.clear()
        for _ in range(times):
            indexes.follow(frontiers)
        return [each.detail for each in caplog.records if each.message == "an index is behind"]

    ails.append("one")
    assert told(5) == ["one"]
    ails.append("two")
    assert told(5) == ["two"]
    ails.clear()
    assert told(2) == []
    ails.append("two")
    through.append(2)
    assert told(5) == ["two"]


def test_who_reads_while_another_has_it_loaded_anew_may_try_again(bench):
    relation = bench.relation({"a": "int4"})
    relation.append([stamp(bench.table(relation, [((1,), 1)]), 1, relation.types)], 2)
    relation.reset()
    with pytest.raises(Unavailable):
        relation.delta(-1, 1)
