"""A relation over files of the store: Spark reads them as they are, and answers as this process does."""

from __future__ import annotations

import uuid
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column
from collection import rows as on_topics
from collection.columns import DIFF, sql_type, table_from_rows
from collection.rows import Undecodable
from controllers.arrangements.tuples import to_rows
from controllers.changes import only_insertions, stamp
from controllers.compute import chunks as chunks_module
from controllers.compute import handing as handing_module
from controllers.compute import relation as module
from controllers.compute.chunks import CACHED_BYTES_MAX, Settled
from controllers.compute.relation import Relation
from controllers.compute.spark_text import text
from segments import parquet
from segments.model import Segment, new_path
from segments.parquet import LocalFile
from tests.collection.test_rows import NUMBERED, row_values

KV = (Column("k", "int4", id=1), Column("v", "text", id=2))


def file(directory: Path, columns: Sequence[Column], rows: Sequence[tuple], data: bytes | None = None) -> LocalFile:
    """``rows`` with their diffs behind their values."""
    table = table_from_rows(columns, [row[:-1] for row in rows])
    table = table.append_column(DIFF, pa.array([row[-1] for row in rows], pa.int64()))
    data = parquet.encode(columns, table) if data is None else data
    name = uuid.uuid4().hex
    path = directory / f"{name}.parquet"
    path.write_bytes(data)
    net = sum(row[-1] for row in rows)
    plain = only_insertions(table)
    return LocalFile(
        Segment(new_path("u1", 0, name), len(data), table.nbytes, len(rows), net, plain, zlib.crc32(data)), path
    )


def loaded(spark, directory: Path, columns, files, changes=(), since: int = 10) -> Relation:
    made = Relation(spark, "u1", columns, directory)
    made.load(iter(changes), since + 1, since, files)
    return made


def by_spark(spark, relation: Relation, as_of: int) -> Counter:
    with relation.snapshot(as_of) as snapshot:
        found = Counter(to_rows(spark.sql(text(snapshot.rows())).toArrow()))
        diffs: Counter = Counter()
        for *row, diff in to_rows(spark.sql(text(snapshot.diffs())).toArrow()):
            diffs[tuple(row)] += diff
    assert found == Counter({row: n for row, n in diffs.items() if n})
    return found


def in_process(relation: Relation, as_of: int) -> Counter:
    found: Counter = Counter()
    for *row, diff in to_rows(relation.delta(-1, as_of)):
        found[tuple(row)] += diff
    return found


def both(spark, relation: Relation, as_of: int) -> Counter:
    found = by_spark(spark, relation, as_of)
    assert found == in_process(relation, as_of) and relation.count == found.total()
    return found


def later(relation: Relation, rows: Sequence[tuple], ts: int) -> None:
    table = table_from_rows(relation.columns, [row[:-1] for row in rows])
    table = table.append_column(DIFF, pa.array([row[-1] for row in rows], pa.int64()))
    relation.append([stamp(table, ts, relation.types)], ts + 1)


@pytest.mark.spark
def test_files_are_read_as_they_are_and_what_comes_later_beside_them(spark, tmp_path) -> None:
    files = [file(tmp_path, KV, [(1, "a", 1), (2, "b", 1)]), file(tmp_path, KV, [(2, "b", 1), (3, None, 1)])]
    relation = loaded(spark, tmp_path, KV, files)
    assert both(spark, relation, 10) == {(1, "a"): 1, (2, "b"): 2, (3, None): 1}
    later(relation, [(2, "b", -1), (4, "d", 1)], 12)
    assert both(spark, relation, 12) == {(1, "a"): 1, (2, "b"): 1, (3, None): 1, (4, "d"): 1}
    assert by_spark(spark, relation, 11) == {(1, "a"): 1, (2, "b"): 2, (3, None): 1}
    assert sorted(p.name for p in tmp_path.glob("*.parquet")) == sorted(each.path.name for each in files)
    relation.close()
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.spark
def test_a_query_that_reads_them_keeps_them_until_it_is_done(spark, tmp_path) -> None:
    relation = loaded(spark, tmp_path, KV, [file(tmp_path, KV, [(1, "a", 1)])])
    snapshot = relation.snapshot(10)
    relation.reset()
    assert to_rows(spark.sql(text(snapshot.rows())).toArrow()) == [(1, "a")]
    snapshot.release()
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.spark
@given(values=st.lists(row_values, min_size=5, max_size=20))
@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_type_is_read_by_spark_as_by_this_process(spark, tmp_path, values) -> None:
    """Files and what came later, of each type there is: they are one relation."""
    rows = [(*value, 1) for value in values]
    relation = loaded(spark, tmp_path, NUMBERED, [file(tmp_path, NUMBERED, rows)])
    assert len(relation._chunks) == 1, "none had to be read here"
    later(relation, rows, 12)
    with relation.snapshot(12) as snapshot:
        found = spark.sql(text(snapshot.diffs())).toArrow()
    expected: Counter = Counter()
    for table in relation.changes(-1, 12):
        expected.update(map(repr, to_rows(table.drop_columns(["__ts"]))))
    assert Counter(map(repr, to_rows(found))) == expected and all(n % 2 == 0 for n in expected.values())


@pytest.mark.spark
def test_columns_that_came_later_have_what_rows_of_before_have_in_them(spark, tmp_path) -> None:
    one = on_topics.encode_value(sql_type("numeric(9,2)"), Decimal("1.50"))
    now = (
        replace(KV[1], name="w"), Column("n", "numeric(9,2)", id=3, missing=one), Column("d", "date", id=4), KV[0],
        Column("e", "float8", id=5, missing=on_topics.encode_value(sql_type("float8"), -0.0)),
    )  # fmt: skip
    files = [file(tmp_path, KV, [(1, "a", 1), (2, "b", 2)]),
             file(tmp_path, now[:3], [("c", Decimal("7"), None, 1)])]  # fmt: skip
    # The second has no ``k``, which cannot be: whoever reads it finds nothing there.
    relation = loaded(spark, tmp_path, now, files)
    found = both(spark, relation, 10)
    assert {(row[0], str(row[1]), row[2], row[3], str(row[4])): n for row, n in found.items()} == {
        ("a", "1.50", None, 1, "0.0"): 1, ("b", "1.50", None, 2, "0.0"): 2, ("c", "7.00", None, None, "0.0"): 1,
    }  # fmt: skip


@pytest.mark.spark
def test_what_was_carried_otherwise_is_brought_into_shape(spark, tmp_path) -> None:
    table = pa.table({"c1": pa.array([1, 2], pa.int16()), "c2": ["a", "b"], "diff": pa.array([1, 1], pa.int64())})
    right = pq.ParquetFile(pa.BufferReader(parquet.encode(KV, table_from_rows(KV, []).append_column(
        DIFF, pa.array([], pa.int64()))))).schema_arrow.metadata  # fmt: skip
    out = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(right), out)
    old = file(tmp_path, KV, [(1, "a", 1), (2, "b", 1)], out.getvalue().to_pybytes())
    relation = loaded(spark, tmp_path, KV, [old, file(tmp_path, KV, [(3, "c", 1)])])
    assert not old.path.exists() and [isinstance(each, Settled) for each in relation._chunks] == [True]
    assert both(spark, relation, 10) == {(1, "a"): 1, (2, "b"): 1, (3, "c"): 1}


@pytest.mark.spark
def test_a_large_base_is_not_in_sparks_cache_and_skips_what_a_filter_rules_out(spark, tmp_path) -> None:
    count = 400_000
    table = pa.table({"k": pa.array(range(count), pa.int32()),
                      "v": pc.binary_join_element_wise("x" * 150, pa.array(range(count)).cast(pa.string()), ""),
                      DIFF: pa.repeat(pa.scalar(1, pa.int64()), count)})  # fmt: skip
    data = parquet.encode(KV, table)
    path = tmp_path / "large.parquet"
    path.write_bytes(data)
    large = LocalFile(Segment(new_path("u1", 0, "1"), len(data), table.nbytes, count, count, True, 0), path)
    assert table.nbytes > CACHED_BYTES_MAX
    relation = loaded(spark, tmp_path, KV, [large])
    with relation.snapshot(10) as snapshot:
        found = spark.sql(f"SELECT v FROM ({text(snapshot.rows())}) WHERE k = 77777")
        assert found.toArrow().num_rows == 1
        plan = found._jdf.queryExecution().executedPlan().toString()
    assert "InMemoryTableScan" not in plan and "EqualTo(c1,77777)]" in plan


FLOATS = (Column("e", "float8", id=1), Column("f", "float4", id=2))


@pytest.mark.spark
@pytest.mark.parametrize("where", ["files in the cache", "files", "chunk in the cache", "tail as a file"])
def test_no_filter_passes_over_a_nan_which_statistics_do_not_tell_of(spark, tmp_path, monkeypatch, where: str) -> None:
    """It is more than every number; neither a file's statistics nor those of Spark's cache say that there is one."""
    rows = [(1.0, 1.0, 1), (float("nan"), float("nan"), 1), (float("nan"), 2.0, 1), (-0.0, -0.0, 1)]
    if where == "files":
        monkeypatch.setattr(chunks_module, "CACHED_BYTES_MAX", -1)
    if where.startswith("files"):
        relation = loaded(spark, tmp_path, FLOATS, [file(tmp_path, FLOATS, rows)])
    else:
        relation = loaded(spark, tmp_path, FLOATS, [])
        monkeypatch.setattr(handing_module, "ROWS_BYTES_MAX", 0)
        monkeypatch.setattr(module, "TAIL_ROWS_MAX", 0 if where.startswith("chunk") else 10)
        later(relation, rows, 11)
        relation.maintain()
        assert len(relation._chunks) == (1 if where.startswith("chunk") else 0)
    conditions = {"e > 1e30": 2, "e = double('NaN')": 2, "e >= 1.5": 2, "e = 0": 1, "e < 1": 1, "NOT e <= 1": 2,
                  "f > float(1e30)": 1, "f = float('NaN')": 1, "f > 1.5": 2, "f IN (float('NaN'), 1)": 2}  # fmt: skip
    with relation.snapshot(11 if relation.upper > 11 else 10) as snapshot:
        found = {
            each: spark.sql(f"SELECT COUNT(*) FROM ({text(snapshot.rows())}) WHERE {each}").collect()[0][0]
            for each in conditions
        }
    assert found == conditions


def test_nothing_is_left_where_one_cannot_be_read(tmp_path) -> None:
    from tests.compute.test_idle_views import SPARK

    relation = Relation(SPARK, "u1", KV, tmp_path)
    other = (KV[0], Column("v", "int8", id=2))
    with pytest.raises(Undecodable):
        relation.load([], 11, 10, [file(tmp_path, KV, [(1, "a", 1)]), file(tmp_path, other, [(1, 2, 1)])])
    assert relation.upper == relation.rows == relation.count == 0 and not list(tmp_path.glob("*.parquet"))


@pytest.mark.parametrize("plain, most, parts", [(True, 10**6, 2), (False, 10**6, 1), (False, 5, 2)])
def test_they_are_merged_with_what_takes_something_away_as_far_as_it_fits(
    tmp_path, monkeypatch: pytest.MonkeyPatch, plain: bool, most: int, parts: int
) -> None:
    from tests.compute.test_idle_views import SPARK

    monkeypatch.setattr(module, "MERGE_ROWS_MAX", most)
    monkeypatch.setattr(module, "TAIL_ROWS_MAX", 1)
    files = [file(tmp_path, KV, [(n, "a", 1) for n in range(4)])]
    relation = loaded(SPARK, tmp_path, KV, files)
    later(relation, [(n, "a", 1 if plain else -1) for n in range(1, 4)], 12)
    relation.allow_compaction(12)
    relation.maintain()
    assert len(relation._chunks) == parts
    assert relation.rows == (1 if parts == 1 else 7) and relation.count == (7 if plain else 1)
    left = {(n, "a"): 2 if plain and n else 1 for n in range(4 if plain else 1)}
    assert {row: n for row, n in in_process(relation, 12).items() if n} == left
    assert files[0].path.exists() == (parts == 2)
