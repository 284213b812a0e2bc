"""Row batches: what was written comes back, in records of bounded size, readable by any Avro reader."""

from __future__ import annotations

import datetime as dt
import decimal
import io
from dataclasses import replace
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column
from collection import rows
from collection.columns import DIFF, diff_schema, sql_type, table_from_rows, with_diff
from collection.json_rows import decode_batch
from controllers.changes import stamp
from journal.errors import InvalidUsage, Rejected
from values.time.intervals import Interval

_WIDE = decimal.Context(prec=60)

COLUMNS = (
    Column("b", "bool"),
    Column("i2", "int2"),
    Column("i4", "int4"),
    Column("i8", "int8"),
    Column("f4", "float4"),
    Column("f8", "float8"),
    Column("t", "text"),
    Column("raw", "bytea"),
    Column("d", "date"),
    Column("ts", "timestamp"),
    Column("tz", "timestamptz"),
    Column("n", "numeric(38,9)"),
    Column("a b", "int4"),
    Column("v", "varchar(9)"),
    Column("at", "time"),
    Column("iv", "interval"),
    Column("ints", "int4[]"),
    Column("moments", "timestamptz[]"),
    Column("sums", "numeric(10,2)[]"),
    Column("ivs", "interval[]"),
)

micro_times = st.datetimes(min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30))
bits32 = st.integers(-(1 << 31), (1 << 31) - 1)
intervals = st.builds(Interval, bits32, bits32, st.integers(-(1 << 63), (1 << 63) - 1))


def arrays(elements):
    return st.none() | st.lists(st.none() | elements, max_size=3)


row_values = st.tuples(
    st.none() | st.booleans(),
    st.none() | st.integers(-(1 << 15), (1 << 15) - 1),
    st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
    st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    st.none() | st.floats(width=32, allow_nan=False),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.text(max_size=20),
    st.none() | st.binary(max_size=20),
    st.none() | st.dates(),
    st.none() | micro_times,
    st.none() | micro_times.map(lambda t: t.replace(tzinfo=dt.UTC)),
    st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda i: Decimal(i).scaleb(-9, context=_WIDE)),
    st.none() | st.integers(-5, 5),
    st.none() | st.text(max_size=9),
    st.none() | st.integers(0, 86_400_000_000),
    st.none() | intervals,
    arrays(bits32),
    arrays(micro_times.map(lambda t: t.replace(tzinfo=dt.UTC))),
    arrays(st.integers(-(10**10) + 1, 10**10 - 1).map(lambda i: Decimal(i).scaleb(-2))),
    arrays(intervals),
)


@given(st.lists(row_values, max_size=8), st.lists(st.sampled_from([1, -1, 3]), min_size=8, max_size=8))
@settings(max_examples=150, deadline=None)
def test_what_was_written_comes_back(values, diffs) -> None:
    table = table_from_rows(COLUMNS, values).append_column(
        pa.field(DIFF, pa.int64(), nullable=False), pa.array(diffs[: len(values)], pa.int64())
    )
    batches = list(rows.encode(COLUMNS, table, "w/1"))
    assert sum(b.rows for b in batches) == len(values)
    back = rows.decode(COLUMNS, [b.value for b in batches], ["w/1"] * len(batches))
    assert back.schema == diff_schema(COLUMNS)
    assert back.equals(table.cast(back.schema))


@given(st.lists(row_values, min_size=1, max_size=8), st.data())
@settings(max_examples=200, deadline=None)
def test_all_rows_at_a_time_are_the_bytes_of_one_by_one(values, data) -> None:
    """Of columns in any order, also where it begins in the middle of what Arrow holds, and split as it was."""
    some = data.draw(st.lists(st.sampled_from(NUMBERED), min_size=1, unique=True))
    table = table_from_rows(some, [[row[c.id - 1] for c in some] for row in values])
    diffs = data.draw(st.lists(st.integers(-(1 << 40), 1 << 40), min_size=len(values), max_size=len(values)))
    table = table.append_column(DIFF, pa.array(diffs, pa.int64())).slice(data.draw(st.integers(0, 2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "WOVEN_ROWS_MIN", 1)
        if data.draw(st.booleans()):
            patch.setattr(rows, "RECORD_BYTES_MAX", 120)
        fast = list(rows.encode(some, table, "w/1"))
        patch.setattr(rows, "woven", lambda *_: None)
        assert fast == list(rows.encode(some, table, "w/1"))


@pytest.mark.parametrize("value", [
    0, 1, -1, 63, 64, -64, -65, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769, (1 << 62), (1 << 63) - 1,
    -(1 << 63) + 1, -(1 << 63), 1 << 63, 10**38 - 1, -(10**38) + 1,
])  # fmt: skip
def test_numbers_at_the_ends_of_their_bytes(value, monkeypatch) -> None:
    monkeypatch.setattr(rows, "WOVEN_ROWS_MIN", 1)
    columns = [Column("n", "numeric(38,0)", id=1)]
    if -(1 << 63) <= value < 1 << 63:
        columns.append(Column("i", "int8", id=2))
    for other in (None, value, 0):  # with a NULL, of one width, of two
        pair = [(Decimal(value), value), (None if other is None else Decimal(other), other)]
        table = table_from_rows(columns, [row[: len(columns)] for row in pair])
        fast = list(rows.encode(columns, table, "w"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "woven", lambda *_: None)
            assert fast == list(rows.encode(columns, table, "w"))
        found = rows.decode(columns, [b.value for b in fast]).column("n").to_pylist()
        assert found == [Decimal(value), None if other is None else Decimal(other)]


NUMBERED = tuple(replace(column, id=n) for n, column in enumerate(COLUMNS, 1))


@given(st.lists(st.lists(row_values, max_size=4), min_size=1, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_rows_of_any_shape_are_read_in_any_other(parts, data) -> None:
    """Each record with some of the columns in some order, read with some others: what a record does not have is what
    the column says is missing, what it has and nobody asks for is passed over."""
    some = st.lists(st.sampled_from(NUMBERED), min_size=1, unique=True)
    filler = data.draw(row_values)
    wanted = [
        replace(c, name=f"now {c.name}", missing=rows.encode_value(sql_type(c.type), filler[c.id - 1]))
        if data.draw(st.booleans()) else c
        for c in data.draw(some)
    ]  # fmt: skip
    records, expected = [], []
    for values in parts:
        shape = data.draw(some)
        given = table_from_rows(shape, [[row[c.id - 1] for c in shape] for row in values])
        records += [each.value for each in rows.encode(shape, given, "w")]
        has = {c.id for c in shape}
        for row in values:
            expected.append([row[c.id - 1] if c.id in has else filler[c.id - 1] if c.missing else None for c in wanted])
    assert rows.decode(wanted, records) == with_diff(table_from_rows(wanted, expected))


def test_a_record_without_a_shape_is_of_columns_that_never_changed() -> None:
    (batch,) = rows.encode(COLUMNS[:2], table_from_rows(COLUMNS[:2], [(True, 5)]), "w")
    assert batch.value[:2] == b"T\x01"
    assert rows.decode(NUMBERED[:2], [batch.value]).to_pylist() == [{"b": True, "i2": 5, DIFF: 1}]
    (shaped,) = rows.encode(NUMBERED[:2], table_from_rows(COLUMNS[:2], [(True, 6)]), "w")
    assert shaped.value[:2] == b"T\x02"
    assert rows.decode(NUMBERED[:2], [batch.value, shaped.value]).column("i2").to_pylist() == [5, 6]


def test_a_column_of_another_type_is_an_error_never_a_value() -> None:
    (batch,) = rows.encode([Column("a", "int4", id=1)], pa.table({"a": [1]}), "w")
    with pytest.raises(rows.Undecodable, match="another type"):
        rows.decode([Column("a", "int8", id=1)], [batch.value])


@pytest.mark.parametrize(
    "shape", ["", "1", "1:", "x:int4", "int5", "int4;", "int4;1:int4", "3:int4;2:int4;int8", "int4[]" * 20]
)
def test_a_shape_that_is_none_is_an_error(shape: str) -> None:
    value = b"T\x02" + bytes([(2 * len(shape)) & 0x7F | (0x80 if len(shape) > 63 else 0)])
    value += bytes([len(shape) >> 6]) if len(shape) > 63 else b""
    with pytest.raises(rows.Undecodable):
        rows.decode([Column("a", "int4", id=1)], [value + shape.encode() + b"\x02w\x00"])


def test_a_shape_is_bounded() -> None:
    columns = [Column(f"c{n}", "numeric(38,38)[]", id=n) for n in range(1, 5001)]
    with pytest.raises(Rejected) as caught:
        list(rows.encode(columns, pa.table({f"c{n}": pa.nulls(1) for n in range(5000)}), "w"))
    assert caught.value.sqlstate == "54011"
    fits = columns[:1600]
    (batch,) = rows.encode(fits, pa.table({f"c{n}": pa.nulls(1) for n in range(1600)}), "w")
    assert rows.decode(fits[-1:], [batch.value]).column(0).to_pylist() == [None]


def test_slices_and_nulls_of_decimals_keep_their_places() -> None:
    columns = (Column("n", "numeric(10,2)"),)
    columns += (Column("ns", "numeric(10,2)[]"),)
    values = [Decimal(i) / 4 if i % 3 else None for i in range(-50, 50)]
    table = table_from_rows(columns, [(v, [v, None][: i % 3] if i % 5 else None) for i, v in enumerate(values)])
    chunked = pa.concat_tables([table.slice(7, 20), table.slice(0, 0), table.slice(40, 33)])
    back = rows.decode(columns, [b.value for b in rows.encode(columns, chunked, "x")])
    for name in ("n", "ns"):
        assert back.column(name).to_pylist() == chunked.column(name).to_pylist()


def test_an_outside_avro_reader_sees_logical_types() -> None:
    table = table_from_rows(COLUMNS, [(True, 1, 2, 3, 0.5, 0.25, "é", b"\x00", dt.date(2024, 1, 2),
                                       dt.datetime(2024, 1, 2, 3), dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC),
                                       Decimal("-1.5"), None, "v", 1, Interval(1, -2, 3), [1, None], [],
                                       [Decimal("2.5")], [Interval(4, 5, 6), None])])  # fmt: skip
    (batch,) = rows.encode(COLUMNS, table, "me")
    assert batch.value[:2] == b"T\x01"
    record = fastavro.schemaless_reader(
        io.BytesIO(batch.value[2:]), fastavro.parse_schema(rows.avro_schema(COLUMNS)), None
    )
    assert record["attempt"] == "me"
    (change,) = record["rows"]
    assert change["diff"] == 1
    assert change["row"]["n"] == Decimal("-1.5")
    assert change["row"]["d"] == dt.date(2024, 1, 2)
    assert change["row"]["tz"] == dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)
    assert change["row"]["c12"] is None
    assert change["row"]["iv"] == {"months": 1, "days": -2, "micros": 3}
    assert (change["row"]["ints"], change["row"]["moments"]) == ([1, None], [])
    assert change["row"]["sums"] == [Decimal("2.5")]
    assert change["row"]["ivs"] == [{"months": 4, "days": 5, "micros": 6}, None]


def test_names_that_avro_does_not_allow_stay_unique() -> None:
    columns = (Column("é", "int4"), Column("c0", "int4"), Column("c 2", "int4"), Column("c2_", "int4"))
    assert rows.field_names(columns) == ("c0_", "c0", "c2", "c2_")


def test_records_are_bounded_and_order_is_kept() -> None:
    columns = (Column("t", "text"),)
    table = table_from_rows(columns, [(f"{i:06d}" + "x" * 10_000,) for i in range(300)])
    batches = list(rows.encode(columns, table, "x"))
    assert max(len(b.value) for b in batches) <= rows.RECORD_BYTES_MAX
    assert 6 <= len(batches) < 20
    back = rows.decode(columns, [b.value for b in batches])
    assert back.column("t").to_pylist() == table.column("t").to_pylist()


def test_one_row_above_the_record_bound_travels_alone_and_one_above_the_row_bound_is_refused() -> None:
    columns = (Column("t", "text"),)
    large = table_from_rows(columns, [("a",), ("x" * 1_000_000,), ("b",)])
    assert [b.rows for b in rows.encode(columns, large, "x")] == [1, 1, 1]
    with pytest.raises(Rejected) as caught:
        list(rows.encode(columns, table_from_rows(columns, [("x" * (5 << 20),)]), "x"))
    assert caught.value.sqlstate == "54000"


def test_what_does_not_fit_is_refused() -> None:
    columns = (Column("a", "int2", nullable=False),)
    with pytest.raises(InvalidUsage, match="not-null"):
        list(rows.encode(columns, table_from_rows(columns, [(None,)]), "x"))
    with pytest.raises(InvalidUsage, match="does not fit"):
        list(rows.encode(columns, pa.table({"a": [70_000]}), "x"))
    with pytest.raises(InvalidUsage, match="expected 1 columns, got 2"):
        list(rows.encode(columns, pa.table({"a": [1], "b": [1]}), "x"))


@pytest.mark.parametrize("damage", [lambda v: b"", lambda v: b"X" + v[1:], lambda v: v[:-1], lambda v: v + b"\x00",
                                    lambda v: v[:1] + b"\x09" + v[2:]])  # fmt: skip
def test_damaged_bytes_are_an_error_never_rows(damage) -> None:
    columns = (Column("t", "text"), Column("n", "numeric(4,2)"))
    (batch,) = rows.encode(columns, table_from_rows(columns, [("abc", Decimal("1.25"))]), "x")
    with pytest.raises(rows.Undecodable):
        rows.decode(columns, [damage(batch.value)])


@given(st.sampled_from([b"T\x01", b"T\x02", b"T\x02\x08int4", b"T\x02\x0c7:int4"]), st.binary(max_size=40))
@settings(max_examples=300, deadline=None)
def test_hostile_bytes_are_an_error_or_rows_never_anything_else(frame, noise) -> None:
    columns = (Column("t", "text"), Column("i", "int2"), Column("n", "numeric(4,2)"), Column("d", "date"))
    try:
        rows.decode(columns, [frame + noise])
    except rows.Undecodable:
        pass


def test_another_writers_rows_in_a_bound_range_are_an_error() -> None:
    columns = (Column("a", "int4"),)
    (batch,) = rows.encode(columns, with_diff(table_from_rows(columns, [(1,)]), -1), "mine")
    assert rows.decode(columns, [batch.value], ["mine"]).column(DIFF).to_pylist() == [-1]
    with pytest.raises(rows.Undecodable, match="another writer"):
        rows.decode(columns, [batch.value], ["yours"])


@pytest.mark.parametrize("name", ["__diff", "__DIFF", "diff", "row", "rows", "attempt", "c0", "Change", "__n", "__ts"])
def test_a_column_called_like_a_part_of_ours_is_a_column(name):
    columns = [Column(name, "int8"), Column("a", "int4")]
    given = table_from_rows(columns, [(-5, 7), (None, 8)])
    (batch,) = rows.encode(columns, given, "mine")
    found = rows.decode(columns, [batch.value])
    assert [column.to_pylist() for column in found.columns] == [[-5, None], [7, 8], [1, 1]]
    (batch,) = rows.encode(columns, found, "mine")
    assert rows.decode(columns, [batch.value]) == found
    table, bad = decode_batch([b'{"%s": -5, "a": 7}' % name.encode()], columns)
    assert not bad
    stamped = stamp(with_diff(table), 9, [sql_type(c.type) for c in columns])
    assert stamped.column_names == ["c0", "c1", "__ts", DIFF]
    assert [column.to_pylist() for column in stamped.columns] == [[-5], [7], [9], [1]]
