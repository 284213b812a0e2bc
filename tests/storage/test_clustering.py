"""Files by ranges of keys: which are too many for one key, and how rows are spread over ranges."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import PRIMARY, UNIQUE, Column, Index, Table
from catalog_log.settings import clustering, clustering_key
from collection.columns import DIFF
from controllers.storage.clustering import CROWD, Ranges, crowd, key_of, sampled
from segments.model import Segment
from segments.statistics import measured, packed

COLUMNS = (Column("f", "int4[]", id=3, field="c3"), Column("k", "int4", id=1, field="c1"),
           Column("t", "text", id=2, field="c2"))  # fmt: skip
TABLE = Table("u1", "s1", "t", "", COLUMNS)


def image(*names: str, keys=()):
    settings_ = {clustering_key("u1"): clustering(names)} if names else {}
    indexes = tuple(
        Index(f"u{n}", "s1", f"i{n}", "", relation_id="u1", key=key, cluster_id="c1", constraint=kind)
        for n, (key, kind) in enumerate(keys, 2)
    )
    return SimpleNamespace(get=lambda _, key: settings_.get(key), dependents=lambda _: indexes)


@pytest.mark.parametrize(("found", "key"), [
    (image(), ()),
    (image("c1"), (1,)),
    (image("c2", "c1"), (2, 1)),
    (image("c9", "c2"), (2,)),
    (image("c1", "c3", "c2"), (1,)),
    (image("c3"), ()),
    (image(keys=[(("c1",), UNIQUE), (("c2", "c1"), PRIMARY)]), (2, 1)),
    (image("c1", keys=[(("c2",), PRIMARY)]), (1,)),
])  # fmt: skip
def test_the_key_is_what_cluster_by_names_else_the_primary_key(found, key) -> None:
    """Without columns that were dropped, and up to one whose values have no order in files."""
    assert key_of(TABLE, found) == key


def file(name: int, *values: int | None) -> Segment:
    changes = pa.table({"0": pa.array([[0]] * len(values)), "1": pa.array(values, pa.int32()),
                        "2": pa.array(["x"] * len(values)), DIFF: pa.array([1] * len(values))})  # fmt: skip
    return Segment(f"u1/{name:016x}-a.parquet", 1, 1, len(values), len(values), True, 0,
                   packed(measured(COLUMNS, changes)))  # fmt: skip


def test_a_crowd_is_of_files_that_hold_one_key() -> None:
    apart = [file(n, 10 * n, 10 * n + 10) for n in range(100)]
    assert crowd(apart, COLUMNS, (1,)) == (), "each shares one key with the next"
    assert crowd(apart, COLUMNS, (1,), 1) == tuple(apart[:2])
    over = [file(200 + n, 305, 306 + n) for n in range(CROWD)]
    assert crowd([*apart, *over], COLUMNS, (1,)) == (apart[30], *over)
    assert crowd([*apart, *over[1:]], COLUMNS, (1,)) == ()
    assert crowd([*apart, *over], COLUMNS, ()) == ()
    alone = [file(300 + n, 305, 305) for n in range(50)]
    nulls = [file(400 + n, None) for n in range(50)]
    unknown = [each._replace(statistics=b"") for each in over]
    assert crowd([*apart, *alone, *nulls, *unknown], COLUMNS, (1,)) == ()


def test_a_crowd_is_that_of_the_model() -> None:
    rng = random.Random(1)
    for _ in range(60):
        bounds = [sorted((rng.randrange(40), rng.randrange(40))) for _ in range(rng.randrange(30))]
        files = [file(n, *each) for n, each in enumerate(bounds)]
        most = rng.randrange(8)
        held = Counter(k for lower, upper in bounds if lower < upper for k in range(lower, upper + 1))
        found = crowd(files, COLUMNS, (1,), most)
        deepest = max(held.values(), default=0)
        assert len(found) == (deepest if deepest > most else 0)
        if found:
            assert max(bounds[files.index(each)][0] for each in found) <= min(
                bounds[files.index(each)][1] for each in found
            )


ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.one_of(st.none(), st.sampled_from("abc")),
                          st.integers(0, 3)), min_size=1, max_size=80)  # fmt: skip


def table(rows) -> pa.Table:
    k, t, v = ([row[n] for row in rows] for n in range(3))
    return pa.table({"c0": pa.array(v, pa.int64()), "c1": pa.array(k, pa.int32()), "c2": pa.array(t, pa.string()),
                     DIFF: pa.array([1] * len(rows), pa.int64())})  # fmt: skip


def place(value):
    return (value is None, value)


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS, st.integers(2, 12), st.sampled_from([(1,), (2,), (1, 2), (2, 1, 0)]))
def test_parts_are_ranges_and_equal_rows_are_in_one(sample, rows, count, key) -> None:
    ranges = Ranges.of(table(sample).select(list(key)), count)
    found = ranges.parts(table(rows), key)
    assert found.min() >= 0 and found.max() < ranges.count and ranges.count <= 2 * count
    assert len({(row, part) for row, part in zip(rows, found, strict=True)}) == len(set(rows))
    keys = [tuple(place((row[2], row[0], row[1])[n]) for n in key) for row in rows]
    share = np.repeat(np.arange(len(ranges.starts)), ranges.shares)[found]
    for n, each in enumerate(keys):
        for m, other in enumerate(keys):
            if each < other:
                assert share[n] <= share[m], "in the order of keys"
            if each == other:
                assert share[n] == share[m]


def test_parts_are_of_about_one_size_and_a_key_of_many_rows_has_several() -> None:
    rng = random.Random(7)
    rows = [(rng.randrange(1_000_000), "x", n) for n in range(60_000)] + [(500_000, "x", n) for n in range(40_000)]
    rng.shuffle(rows)
    tables = [table(rows[n : n + 7_000]) for n in range(0, len(rows), 7_000)]
    sample = sampled((each.select([1]) for each in tables), len(rows), 10)
    assert 2_560 <= sample.num_rows < 3_000
    ranges = Ranges.of(sample, 10)
    sizes = Counter(part for each in tables for part in ranges.parts(each, (1,)).tolist())
    assert 9 <= len(sizes) <= ranges.count and max(sizes.values()) < 20_000
    heavy = {part for each in tables for part, k in
             zip(ranges.parts(each, (1,)).tolist(), each.column("c1").to_pylist(), strict=True) if k == 500_000}
    assert len(heavy) >= 3


def test_a_key_that_all_rows_have_is_spread_by_whole_rows() -> None:
    rows = [(1, "x", n) for n in range(10_000)]
    ranges = Ranges.of(sampled([table(rows).select([1])], len(rows), 4), 4)
    sizes = Counter(ranges.parts(table(rows), (1,)).tolist())
    assert max(sizes.values()) < 5_000
