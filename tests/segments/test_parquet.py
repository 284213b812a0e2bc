"""Files give back what they hold, in whatever columns their collection has by then."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column
from collection import rows
from collection.columns import DIFF, diff_schema, sql_type, table_from_rows, with_diff
from collection.rows import Undecodable
from segments import parquet
from segments.model import Segment, new_path
from segments.statistics import form_of
from tests.collection.test_rows import COLUMNS, NUMBERED, row_values


def written(columns, table: pa.Table) -> tuple[Segment, bytes]:
    data = parquet.encode(columns, table)
    path, crc32 = new_path("u1", 0, "1"), zlib.crc32(data)
    return Segment(path, len(data), table.nbytes, max(table.num_rows, 1), 0, False, crc32), data


def read(segment: Segment, data: bytes, columns) -> pa.Table:
    found = list(parquet.chunks(segment, data, columns))
    return pa.concat_tables(found) if found else diff_schema(columns).empty_table()


@given(st.lists(row_values, max_size=8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_was_written_comes_back(values, numbered: bool) -> None:
    columns = NUMBERED if numbered else COLUMNS
    table = with_diff(table_from_rows(columns, values), -3)
    found = read(*written(columns, table), columns)
    assert found.schema == diff_schema(columns) and found.equals(table.cast(found.schema))


@given(st.lists(row_values, max_size=8), st.permutations(NUMBERED))
@settings(max_examples=60, deadline=None)
def test_rows_that_are_sorted_are_the_same_rows(values, shape) -> None:
    table = with_diff(table_from_rows(shape, [[row[c.id - 1] for c in shape] for row in values]), -3)
    found = parquet.in_order(shape, table)
    assert found.schema == table.schema
    assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, table.to_pylist()))
    first = next(n for n, c in enumerate(shape) if form_of(sql_type(c.type)) is not None)
    there = found.column(first).drop_null()
    assert there.equals(there.sort())


@given(st.lists(row_values, min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_columns_come_and_go_as_in_rows_on_a_topic(values, data) -> None:
    some = st.lists(st.sampled_from(NUMBERED), min_size=1, unique=True)
    filler, shape = data.draw(row_values), data.draw(some)
    wanted = [
        replace(c, name=f"now {c.name}", missing=rows.encode_value(sql_type(c.type), filler[c.id - 1]))
        if data.draw(st.booleans()) else c
        for c in data.draw(some)
    ]  # fmt: skip
    given = with_diff(table_from_rows(shape, [[row[c.id - 1] for c in shape] for row in values]))
    on_topic = rows.decode(wanted, [each.value for each in rows.encode(shape, given, "w")])
    assert read(*written(shape, given), wanted).equals(on_topic)


def test_who_reads_has_little_in_memory_at_once_however_small_the_file_is() -> None:
    columns = (Column("v", "text", id=1),)
    table = with_diff(pa.table({"v": ["x" * 1_000_000] * 100}))
    segment, data = written(columns, table)
    assert segment.size < 1_000_000
    pieces = [each.nbytes for each in parquet.chunks(segment, data, columns)]
    assert max(pieces) <= parquet.ROW_GROUP_BYTES < sum(pieces)


def test_a_collection_may_have_no_columns_and_names_of_any_kind() -> None:
    table = pa.table({DIFF: pa.array([2, -1], pa.int64())})
    assert read(*written((), table), ()).column(DIFF).to_pylist() == [2, -1]
    types = {"a.b": "int4", "A.B": "int4", "": "text", "diff": "int8"}
    odd = tuple(Column(name, each, id=n) for n, (name, each) in enumerate(types.items(), 1))
    table = with_diff(table_from_rows(odd, [(1, 2, "x", 4)]))
    assert read(*written(odd, table), odd).to_pylist() == table.to_pylist()


def test_large_files_are_read_in_pieces() -> None:
    columns = (Column("k", "int8", id=1),)
    table = with_diff(table_from_rows(columns, [(n,) for n in range(300_000)]))
    pieces = list(parquet.chunks(*written(columns, table), columns))
    assert [each.num_rows for each in pieces] == [131_072, 131_072, 37_856]
    assert pa.concat_tables(pieces).equals(table)


def test_a_file_that_is_not_what_was_sealed_gives_no_rows() -> None:
    columns = (Column("k", "int8", id=1), Column("t", "text", id=2))
    segment, data = written(columns, with_diff(table_from_rows(columns, [(1, "x"), (2, "y")])))
    for n in range(0, len(data), 7):
        bad = data[:n] + bytes((data[n] ^ 1,)) + data[n + 1 :]
        with pytest.raises(parquet.Damaged):
            next(parquet.chunks(segment, bad, columns))
    for bad in (b"", data[:-1], data + b"x"):
        with pytest.raises(parquet.Damaged):
            next(parquet.chunks(segment, bad, columns))
    for other in (b"no parquet at all", parquet.encode(columns, with_diff(table_from_rows(columns, [])))[:-9]):
        with pytest.raises(parquet.Damaged):
            next(parquet.chunks(segment._replace(size=len(other), crc32=zlib.crc32(other)), other, columns))


def test_a_column_of_another_type_is_refused() -> None:
    columns = (Column("k", "int8", id=1),)
    segment, data = written(columns, with_diff(table_from_rows(columns, [(1,)])))
    with pytest.raises(Undecodable):
        next(parquet.chunks(segment, data, (Column("k", "int4", id=1),)))
