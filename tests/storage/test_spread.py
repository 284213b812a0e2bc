"""Rows that are equal are in one part, and parts are of about one size."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collection.columns import table_from_rows
from controllers.changes import canonical
from controllers.storage import spread
from controllers.storage.spread import parts
from tests.collection.test_rows import COLUMNS, row_values


@given(st.lists(row_values, min_size=1, max_size=6), st.integers(1, 9), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_equal_rows_are_in_one_part_wherever_they_are(values, count: int, offset: int) -> None:
    table = canonical(table_from_rows(COLUMNS, values))
    found = parts(table, range(len(COLUMNS)), count)
    assert set(found) <= set(range(count))
    doubled = pa.concat_tables([table, table.slice(0, 0), table])
    assert list(parts(doubled, range(len(COLUMNS)), count)) == [*found, *found]
    cut = doubled.slice(offset % len(values))
    assert list(parts(cut, range(len(COLUMNS)), count)) == [*found, *found][offset % len(values) :]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(20_000)), pa.array([f"name {n}" for n in range(20_000)]),
        pa.array([n / 7 for n in range(20_000)]), pa.array(range(20_000), pa.timestamp("us")),
        pa.array([bytes([n % 256, n // 256]) for n in range(20_000)]),
        pa.array(range(20_000)).cast(pa.decimal128(38, 9)),
        pa.array([1 << n % 63 for n in range(20_000)]),
    ],
)  # fmt: skip
def test_parts_are_of_one_size(column: pa.Array) -> None:
    found = Counter(parts(pa.table({"a": column, "b": pa.nulls(20_000, pa.int8())}), [0, 1], 4).tolist())
    different = len(set(column.to_pylist()))
    if different == 20_000:
        assert min(found.values()) > 4_500 and max(found.values()) < 5_500
    else:
        assert len(found) == 4


def test_long_text_is_hashed_piece_by_piece_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [None if n % 7 == 0 else "ä" * (n % 50) for n in range(500)]
    table = pa.table({"a": pa.chunked_array([pa.array(values[:3]), pa.array(values)[3:]])})
    found = parts(table, [0], 1 << 20)
    monkeypatch.setattr(spread, "BLOCK_BYTES", 64)
    assert list(parts(table, [0], 1 << 20)) == list(found)


def test_nulls_are_a_value_of_their_own() -> None:
    rng = random.Random(1)
    values = [rng.choice((None, 0, 1)) for _ in range(300)]
    found = parts(pa.table({"a": pa.array(values, pa.int32())}), [0], 1 << 20)
    assert len({(v, p) for v, p in zip(values, found, strict=True)}) == len(set(found)) == 3
    assert found.dtype == np.int64
