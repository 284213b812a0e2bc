"""Runs in pieces for tasks, and what a task makes of one, without Spark and without a broker."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog_log.objects import Column
from collection.binding import BoundRun, Run
from collection.columns import DIFF, plain_columns, table_from_rows, with_diff
from collection.reader import ROWS
from controllers.changes import TS
from controllers.compute import fetching
from controllers.compute.fetching import Fetch, answer, fetched, packed, ranges, rows_of
from journal.errors import Unavailable

KV = (Column("k", "int4", id=1), Column("v", "text", id=2))


def test_pieces_are_of_one_partition_and_hold_each_offset_once() -> None:
    rng = random.Random(3)
    for _ in range(500):
        ends: Counter = Counter()
        bound = []
        for ts in range(rng.randint(0, 12)):
            partition = rng.randrange(3)
            lower = ends[partition] + rng.choice((0, 0, 2))
            ends[partition] = lower + rng.randint(1, 30)
            rows = rng.choice((-1, 0, 5, 1_000))
            bound.append(BoundRun(ts, Run("t", partition, lower, ends[partition], "a", rows)))
        rng.shuffle(bound)
        pieces = ranges(bound, limit := rng.choice((1, 10, 40, 2_000)))
        there = [(each.ts, each.run.partition, o) for each in bound for o in range(each.run.lower, each.run.upper)]
        found = [
            (each.ts, each.run.partition, o) for piece in pieces for each in piece
            for o in range(each.run.lower, each.run.upper)
        ]  # fmt: skip
        assert sorted(found) == sorted(there)
        assert sum(max(each.run.rows, 0) for piece in pieces for each in piece) == sum(
            max(each.run.rows, 0) for each in bound
        )
        for piece in pieces:
            assert piece and len({each.run[:2] for each in piece}) == 1
            assert all(each.run.lower < each.run.upper for each in piece)
            records = sum(each.run.upper - each.run.lower for each in piece)
            assert records == 1 or sum(rows_of(each.run) for each in piece[:-1]) <= limit


class Reader:
    """Has nothing."""

    def __init__(self, _bootstrap: str) -> None: ...

    def bound_chunks(self, bound, columns, format):
        raise Unavailable("rows of topic gone are gone", sqlstate="58P01")

    def close(self) -> None: ...


def test_what_a_task_says_is_what_is_in_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chunks(self, bound, columns, format):
        for each in bound:
            made = table_from_rows(columns, [(n % 3, f"{each.ts}") for n in range(each.run.rows)])
            yield with_diff(made, -1 if each.run.attempt == "takes" else 1), pa.array([each.ts] * each.run.rows)

    monkeypatch.setattr(fetching, "RunReader", type("Reading", (Reader,), {"bound_chunks": chunks}))
    monkeypatch.setattr(fetching, "FILE_ROWS", 10)
    fetch = Fetch("", plain_columns(KV), ROWS, f"{tmp_path}/f")
    bound = [
        BoundRun(5, Run("t", 0, 0, 1, "gives", 12)), BoundRun(6, Run("t", 0, 1, 2, "gives", 9)),
        BoundRun(6, Run("t", 0, 2, 3, "takes", 9)), BoundRun(9, Run("t", 0, 3, 4, "takes", 3)),
    ]  # fmt: skip
    files = fetched(fetch, bound, "7").files
    assert {f"f{each.name}" for each in files} == {path.name for path in tmp_path.iterdir()}
    assert [each.plain for each in files] == [True, False], "what cancels out at one timestamp is in no file"
    for each in files:
        table = pq.read_table(tmp_path / f"f{each.name}")
        stamps = table.column(TS).to_pylist()
        assert (each.rows, each.net) == (table.num_rows, sum(table.column(DIFF).to_pylist()))
        assert (each.min_ts, each.max_ts) == (min(stamps), max(stamps))
    assert sum(each.net for each in files) == 12 - 3


def test_what_a_task_cannot_read_is_the_same_error_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "RunReader", Reader)
    plain = ("", tuple(map(tuple, plain_columns(KV))), ROWS, f"{tmp_path}/f")
    said = pickle.loads(answer(plain, packed([BoundRun(1, Run("gone", 0, 0, 1))]), "1"))
    with pytest.raises(Unavailable, match="rows of topic gone") as found:
        said.check()
    assert found.value.sqlstate == "58P01"
