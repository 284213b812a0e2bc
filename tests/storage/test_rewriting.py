"""What is spread over the disk while files are written anew: all of it, and gone with the process that did it."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from catalog_log.objects import Column, numbered
from collection.columns import with_diff
from controllers.storage import sealing
from controllers.storage.rewriting import rewritten
from segments.model import Segment

COLUMNS = numbered((Column("k", "int4"), Column("v", "text")))
FILES, ROWS = 4, 50


def rows_of(table: pa.Table) -> Counter:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("key", [(), (0,)], ids=["spread", "by ranges of a key"])
def test_parts_hold_all_rows_each_once_and_leave_no_file_with_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: tuple[int, ...]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sealing, "FILE_ROWS", 60)
    segments = [Segment(f"f{n}", 1000, 1000, ROWS, ROWS, True, 0) for n in range(FILES)]
    tables = {
        each.path: with_diff(pa.table({
            "k": pa.array([n * ROWS + k for k in range(ROWS)], pa.int32()), "v": [f"{n}/{k}" for k in range(ROWS)],
        }), 1)
        for n, each in enumerate(segments)
    }  # fmt: skip
    read = lambda files, columns: (tables[each.path].select([*range(len(columns)), 2]) for each in files)  # noqa: E731

    found, parts = Counter(), 0
    for part in rewritten(read, segments, COLUMNS, key):
        assert not [*tmp_path.iterdir()], "who is killed here leaves nothing"
        found += rows_of(part)
        parts += 1
    assert parts == FILES and found == sum(map(rows_of, tables.values()), Counter())
