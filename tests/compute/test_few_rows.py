"""What is put together row by row, where rows are few, is what Arrow's groups give.  Pure."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from collection.columns import DIFF
from controllers import changes
from controllers.arrangements.tuples import NAN, schema_of, to_rows, to_table
from controllers.changes import TS, consolidate
from controllers.compute import vectors
from controllers.compute.vectors import partial_groups, partial_values
from tests.seeds import seed_of_commit
from values.types import parse_type

VALUES = {
    "int4": [None, 0, -1, 2**31 - 1],
    "int8": [None, 0, 2**50, -(2**50)],
    "text": [None, "", "a", "ä"],
    "bool": [None, True, False],
    "bytea": [None, b"", b"x"],
    "date": [None, 0, 19000],
    "timestamptz": [None, 0, 1_700_000_000_000_000],
    "numeric(38,9)": [None, Decimal("1.500000000"), Decimal("-29999999999999999999999998.500000001")],
    "float8": [None, 0.0, 1.5, NAN],
    "int4[]": [None, (), (1, None), (1, 2)],
    "float8[]": [None, (NAN,), (0.0, 1.5)],
}
SUMMED = ("int4", "int8", "numeric(38,9)")


def table_of(draw: random.Random, kinds: list[str], stamped: bool) -> pa.Table:
    schema = schema_of([parse_type(kind) for kind in kinds])
    for name in (TS, DIFF) if stamped else (DIFF,):
        schema = schema.append(pa.field(name, pa.int64()))
    rows = [
        (*(draw.choice(VALUES[kind]) for kind in kinds), *([draw.randrange(2)] if stamped else []),
         draw.choice((1, -1, 2, 0)))
        for _ in range(draw.randrange(30))
    ]  # fmt: skip
    cut = draw.randrange(len(rows) + 1)
    return pa.concat_tables([to_table(part, schema) for part in (rows[:cut], rows[cut:])])


def by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (changes, vectors):
        monkeypatch.setattr(module, "FEW_ROWS", 0)


def tables(count: int, kinds_max: int, stamped: bool = False) -> list[tuple[list[str], pa.Table]]:
    draw = random.Random(seed_of_commit())
    kinds = [draw.choices(list(VALUES), k=draw.randrange(1, kinds_max + 1)) for _ in range(count)]
    return [(each, table_of(draw, each, stamped)) for each in kinds]


@pytest.mark.parametrize("with_ts", (False, True))
def test_changes_are_the_same_ones(monkeypatch, with_ts):
    asked = [table for _, table in tables(150, 3, stamped=True)]
    few = [consolidate(table, with_ts=with_ts) for table in asked]
    by_arrow(monkeypatch)
    for table, found in zip(asked, few, strict=True):
        wanted = consolidate(table, with_ts=with_ts)
        assert found.schema.equals(wanted.schema)
        assert Counter(map(repr, to_rows(found))) == Counter(map(repr, to_rows(wanted)))
    assert any(found.num_rows < table.num_rows for table, found in zip(asked, few, strict=True))


def test_groups_are_the_same_ones(monkeypatch):
    # Every other one has a column behind those that are asked for, as where nothing but rows is counted.
    made = enumerate(tables(150, 4))
    asked = [(kinds[: len(kinds) - n % 2], table, n % 3 % (len(kinds) - n % 2 + 1)) for n, (kinds, table) in made]

    def found() -> list:
        made = []
        for kinds, table, keys in asked:
            types = [parse_type(kind) for kind in kinds]
            summed = frozenset(place for place, kind in enumerate(kinds[keys:]) if kind in SUMMED)
            groups = sorted(partial_groups(table, types, keys, summed), key=repr)
            values = [sorted(partial_values(table, keys, place), key=repr) for place in range(len(kinds) - keys)]
            made.append((groups, values))
        return made

    few = found()
    by_arrow(monkeypatch)
    assert list(map(repr, few)) == list(map(repr, found()))


@pytest.mark.parametrize("few", [True, False])
def test_floats_that_are_equal_cancel_out_whatever_their_bits(monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    monkeypatch.setattr(changes, "FEW_ROWS", 128 if few else -1)
    other_nan = np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64)
    floats = np.concatenate([[np.nan, 0.0, 1.0], other_nan, [-0.0, -1.0]])
    table = pa.table({"c0": floats, DIFF: pa.array([1, 1, 1, -1, -1, 1], pa.int64())})
    assert changes.consolidate(table).to_pydict() == {"c0": [1.0, -1.0], DIFF: [1, 1]}
