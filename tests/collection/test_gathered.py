"""Bytes of many values are moved all at a time, and not more of them at once than memory is meant for."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from catalog_log.objects import Column
from collection import gathered
from collection.rows import decode, encode
from tests.seeds import seed_of_commit


@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("count", [0, 1, 5, 300])
def test_however_many_are_moved_at_once_it_is_the_same(piece: int, count: int, monkeypatch) -> None:
    monkeypatch.setattr(gathered, "PIECE_BYTES", piece)
    rng = np.random.default_rng(seed_of_commit())
    data, sizes = rng.integers(0, 255, 5_000, dtype=np.uint8), rng.integers(0, 12, count)
    begins = rng.integers(0, len(data) - 12, count)
    values = [data[begin : begin + size].tobytes() for begin, size in zip(begins, sizes, strict=True)]
    taken = gathered.taken(data, begins, sizes)
    assert taken.tobytes() == b"".join(values)
    places = np.cumsum(sizes + 3) - sizes
    out = np.zeros(int((sizes + 3).sum()), np.uint8)
    gathered.put(out, places, sizes, taken)
    assert out.tobytes() == b"".join(b"\0\0\0" + value for value in values)


def test_large_rows_take_few_times_their_size() -> None:
    """Twenty times as much was more than a storage controller is given, for a topic of rows of 16 KB."""
    columns = (Column("a", "text"), Column("b", "int8"))
    rows = pa.table({"a": ["x" * 16_000] * 1_000, "b": range(1_000)})
    written = [each.value for each in encode(columns, rows, "a")]
    for does, given in ((encode, (columns, rows, "a")), (decode, (columns, written))):
        tracemalloc.start()
        try:
            done = does(*given)
            assert len(list(done) if does is encode else done)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < 5 * rows.nbytes, does
