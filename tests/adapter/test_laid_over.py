"""A block's own rows over those of an index, without any adapter: what is under a key is what the table would have."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from adapter.execute.laid_over import ROWS_MAX, Keyed, answered, laid_over
from adapter.execute.rows import Rows
from catalog_log.objects import Column, Index, Table
from collection.binding import Run
from collection.columns import sql_type
from controllers.arrangements.arrangement import Arrangement
from controllers.arrangements.residual import compile_residual
from controllers.arrangements.tuples import to_rows, to_table
from tests.seeds import seed_of_commit
from values.types import arrow_type

NAN = float("nan")

POOLS = {
    "int4": (1, 2, None), "numeric(6,2)": (Decimal("1"), Decimal("1.50"), None), "float8": (0.0, -0.0, NAN, 1.5, None),
    "float4": (0.5, NAN, None), "text": ("a", "A", "", None), "char(4)": ("ab", "", None), "bool": (True, None),
    "date": (date(2024, 1, 31), date(1, 1, 1), None), "timestamp": (datetime(2024, 1, 31, 1, 2, 3, 4), None),
    "bytea": (b"\0", b"", None), "int4[]": ([1, None], [], None), "float8[]": ([NAN, -0.0], [0.0], None),
}  # fmt: skip
"""Values by type; of those that are written differently and are equal some."""


def table_of(*kinds: str) -> Table:
    columns = tuple([Column(f"c{at}", kind, id=at + 1) for at, kind in enumerate(kinds)])
    return Table(id="t1", schema_id="s", name="t", create_sql="", columns=columns)


def keyed(table: Table, places: tuple[int, ...], values: tuple) -> Keyed:
    key = tuple([table.columns[at].name for at in places])
    index = Index(id="i1", schema_id="s", name="i", create_sql="", cluster_id="c", relation_id="t1", key=key)
    return Keyed(table, index, values)


def arrow(table: Table, rows: list[tuple]) -> pa.Table:
    kinds = [arrow_type(sql_type(each.type)) for each in table.columns]
    arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    return pa.Table.from_arrays(arrays, names=[each.name for each in table.columns])


def written(table: Table, rows: list[tuple], gone: bool = False) -> Rows:
    return Rows(table, arrow(table, rows), 1, removed=table.columns if gone else None)


def found_by_index(asked: Keyed, committed: list[tuple]) -> pa.Table:
    """What an index of ``committed`` gives for the question."""
    arrangement = Arrangement(asked.places)
    arrangement.apply(((0, row, 1) for row in to_rows(arrow(asked.table, committed))), 1)
    return compile_residual(asked.whole, asked.types).run(arrangement.rows(0, asked.key))


def shown(rows: list[tuple[tuple, int]]) -> Counter:
    return Counter({repr(row): count for row, count in rows})


def test_what_lies_under_a_key_is_what_the_whole_table_would_have_there():
    """Random rows of all types, and random changes of rows that are there then: by every value of every column."""
    chance = random.Random(seed_of_commit())
    for _ in range(60):
        kinds = chance.sample(sorted(POOLS), 3)
        table = table_of(*kinds)
        new = lambda: tuple([chance.choice(POOLS[kind]) for kind in kinds])  # noqa: B023, E731
        committed = [new() for _ in range(chance.randrange(8))]
        present, entries = list(committed), []
        for _ in range(chance.randrange(6)):
            gone = [present.pop(chance.randrange(len(present))) for _ in range(chance.randrange(len(present) + 1))]
            come = [new() for _ in range(chance.randrange(3))]
            entries += [written(table, gone, gone=True), written(table, come)]
            present += come
        for at, kind in enumerate(kinds):
            for value in POOLS[kind]:
                if kind.endswith("[]"):
                    continue  # which no look-up compares
                asked = keyed(table, (at,), (value,))
                batches = found_by_index(asked, committed).to_batches()
                rows = [row for batch in batches for row in asked.rows_of(batch)]
                present_rows = to_rows(arrow(table, present))
                whole = [row for row in present_rows if value is not None and (row[at],) == asked.key]
                assert shown(laid_over(rows, asked.changes(entries))) == Counter(map(repr, whole)), (kinds, at, value)


def test_a_key_of_several_columns_and_a_part_of_it():
    table = table_of("int4", "text", "int4")
    committed = [(1, "a", 1), (1, "b", 2), (2, "a", 3)]
    own = [written(table, [(1, "a", 1)], gone=True), written(table, [(1, "c", 4), (2, "a", 5)])]
    for values, left in (((1, "a"), []), ((1, "c"), [4]), ((2, "a"), [3, 5]), ((1,), [2, 4]), ((1, None), [])):
        asked = keyed(table, (0, 1), values)
        rows = [row for batch in found_by_index(asked, committed).to_batches() for row in asked.rows_of(batch)]
        assert sorted(row[2] for row, _ in laid_over(rows, asked.changes(own))) == left


def test_a_residual_over_them_is_what_the_index_would_answer():
    table = table_of("int4", "numeric(6,2)")
    own = [written(table, [(1, Decimal("1.00"))], gone=True), written(table, [(1, Decimal("7")), (1, Decimal("7.00"))])]
    asked = keyed(table, (0,), (1,))
    rows = [(1, Decimal("1")), (1, Decimal("2.50"))]
    residual = {"filter": [">", ["col", 1], ["lit", "1", "int4"]], "project": [], "order_by": [], "limit": None,
                "aggregate": [["count_star"], ["sum", ["col", 1]]], "offset": 0}  # fmt: skip
    laid = laid_over(rows, asked.changes(own))
    assert laid == [((1, Decimal("2.50")), 1), ((1, Decimal("7")), 2)]
    assert answered(json.dumps(residual), asked, laid).to_pylist() == [{"c0": 3, "c1": Decimal("16.50")}]
    assert asked.as_table(laid).to_pydict() == {"c0": [1, 1, 1], "c1": [Decimal("2.50"), Decimal(7), Decimal(7)]}


def test_rows_that_are_not_here_are_many_or_of_other_columns_are_not_laid_over():
    table, other = table_of("int4"), table_of("int4", "int4")
    asked = keyed(table, (0,), (1,))
    assert asked.takes([written(table, [(1,)]), written(table, [(1,)], gone=True)])
    assert not asked.takes([written(other, [(1, 1)])])
    assert not asked.takes([Rows(table, arrow(table, [(1,)]), 1, runs=(Run("topic", 0, 0, 1, "attempt", 1),))])
    assert not asked.takes([written(table, [(n,) for n in range(1_100_000)])])


@pytest.mark.parametrize("count", [ROWS_MAX, ROWS_MAX + 5])
def test_a_key_of_many_rows_is_asked_for_one_more_than_are_looked_at(count):
    table = table_of("int4", "int4")
    asked = keyed(table, (0,), (1,))
    assert found_by_index(asked, [(1, n) for n in range(count)]).num_rows == min(count, ROWS_MAX + 1)


def test_rows_of_other_keys_are_left_out():
    """Who waits for the index reads by a plan, which may round the key."""
    table = table_of("int4", "int4")
    asked = keyed(table, (0,), (Decimal("1.5"),))
    batch = to_table([(1, 1), (2, 2)], arrow(table, []).schema).to_batches()[0]
    assert asked.rows_of(batch) == []
