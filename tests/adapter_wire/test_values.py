"""Results in text and binary: against psycopg's own loaders, and whole columns against single values."""

from __future__ import annotations

import json
import math
import struct
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import adapters
from psycopg.adapt import Transformer
from psycopg.pq import Format

from adapter.encode import scalars, values
from adapter.encode.values import FEW_ROWS, RowEncoder, formats_for, row_fields
from adapter.state.interfaces import OutputColumn
from journal.errors import InvalidUsage
from tests.adapter_wire.frontend import backend_messages, row
from values.text.jsonb import read_jsonb
from values.time.intervals import Interval
from values.time.shown import civil
from values.types import OID, SqlType, arrow_type, parse_type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_numeric = parse_type("numeric(38,9)")
_decimals = st.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-9))
_micros = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)

_texts = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
_intervals = st.builds(
    Interval, st.integers(-(10**5), 10**5), st.integers(-(10**6), 10**6), st.integers(-(10**15), 10**15)
)


def _arrays(elements: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(st.none() | elements, max_size=3)


STRATEGIES: dict[str, tuple[SqlType, st.SearchStrategy]] = {
    "bool": (SqlType("bool"), st.booleans()),
    "int2": (SqlType("int2"), st.integers(-(2**15), 2**15 - 1)),
    "int4": (SqlType("int4"), st.integers(-(2**31), 2**31 - 1)),
    "int8": (SqlType("int8"), st.integers(-(2**63), 2**63 - 1)),
    "float4": (SqlType("float4"), st.floats(width=32)),
    "float8": (SqlType("float8"), st.floats()),
    "numeric": (_numeric, _decimals),
    "text": (SqlType("text"), _texts),
    "bytea": (SqlType("bytea"), st.binary()),
    "date": (SqlType("date"), st.dates()),
    "timestamp": (SqlType("timestamp"), st.datetimes()),
    "timestamptz": (SqlType("timestamptz"), _micros.map(lambda n: EPOCH + timedelta(microseconds=n))),
    "varchar": (parse_type("varchar(9)"), _texts),
    "bpchar": (parse_type("char(3)"), st.text("aé ", max_size=3).map(str.rstrip)),
    "uuid": (SqlType("uuid"), st.uuids().map(str)),
    "macaddr": (SqlType("macaddr"), st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))),
    "macaddr8": (SqlType("macaddr8"), st.binary(min_size=8, max_size=8).map(lambda raw: raw.hex(":"))),
    "jsonb": (SqlType("jsonb"), st.recursive(
        st.none() | st.booleans() | st.integers() | _texts, lambda x: st.lists(x) | st.dictionaries(_texts, x),
        max_leaves=5).map(lambda v: read_jsonb(json.dumps(v)))),
    "time": (SqlType("time"), st.integers(0, 86_399_999_999)),
    "interval": (SqlType("interval"), _intervals),
    "bool[]": (SqlType("bool[]"), _arrays(st.booleans())),
    "int4[]": (SqlType("int4[]"), _arrays(st.integers(-(2**31), 2**31 - 1))),
    "text[]": (SqlType("text[]"), _arrays(_texts | st.sampled_from(["", "NULL", "null", '"', "\\", "{", ",", " "]))),
    "numeric[]": (_numeric.array, _arrays(_decimals)),
    "timestamptz[]": (SqlType("timestamptz[]"), _arrays(_micros.map(lambda n: EPOCH + timedelta(microseconds=n)))),
    "time[]": (SqlType("time[]"), _arrays(st.integers(0, 86_399_999_999))),
    "interval[]": (SqlType("interval[]"), _arrays(_intervals)),
    "uuid[]": (SqlType("uuid[]"), _arrays(st.uuids().map(str))),
}  # fmt: skip


def _loaded(name: str, value: object) -> object:
    """What psycopg makes of ``value``."""
    if value is None:
        return None
    if name.endswith("[]"):
        return [_loaded(name[:-2], each) for each in value]
    if name == "bpchar":
        return value.ljust(3)
    if name == "uuid":
        return uuid.UUID(value)
    if name == "jsonb":
        return json.loads(value)
    if name == "time":
        return (datetime(2000, 1, 1) + timedelta(microseconds=value)).time()
    if name == "interval":  # a year of 365 days, a month of 30
        years = abs(value.months) // 12 * (-1 if value.months < 0 else 1)
        days = years * 365 + (value.months - years * 12) * 30 + value.days
        return timedelta(days=days, microseconds=value.micros)
    return value


def encode(
    sql_type: SqlType, array: pa.Array, code: int, zone: str = "UTC", extra: int = 1
) -> list[bytes | None]:
    encoder = RowEncoder([OutputColumn("x", sql_type)], [code], zone, extra)
    data = b"".join(bytes(p) for p, _ in encoder.encode(pa.record_batch([array], ["x"])))
    messages = backend_messages(data)
    assert {kind for kind, _ in messages} <= {"D"}
    return [row(body)[0] for _, body in messages]


def array_of(sql_type: SqlType, items: list) -> pa.Array:
    return pa.array(items, arrow_type(sql_type))


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("code", [0, 1])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_psycopg_reads_what_we_write(name, code, data):
    sql_type, strategy = STRATEGIES[name]
    given_values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=5))
    loader = Transformer(adapters).get_loader(OID[name], Format(code))
    for value, raw in zip(given_values, encode(sql_type, array_of(sql_type, given_values), code), strict=True):
        if value is None:
            assert raw is None
        else:
            loaded = loader.load(raw)
            if name == "float4":  # the shortest text of a single, which psycopg reads as a double
                loaded = float(np.float32(loaded))
            elif name in ("macaddr", "macaddr8") and code:  # which it leaves alone
                loaded = loaded.hex(":")
            assert same(_loaded(name, value), loaded), (value, raw, loaded)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("code", [0, 1])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_column_is_the_same_as_its_values_one_by_one(name, code, data):
    sql_type, strategy = STRATEGIES[name]
    some = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=12))
    zone = data.draw(st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"]))
    array = array_of(sql_type, some * (FEW_ROWS // len(some) + 2))
    # A slice, so that offsets inside of the buffers are put to the test as well.
    array = array.slice(data.draw(st.integers(0, len(some) - 1)))
    encoder = RowEncoder([OutputColumn("x", sql_type)], [code], zone)
    arrays = encoder._arrays(pa.record_batch([array], ["x"]))
    assert bytes(encoder._many(arrays)) == encoder._few(arrays)


@pytest.mark.parametrize("name", ["float4", "float8"])
def test_a_column_of_floats_leaves_plain_notation_where_postgres_does(name):
    """Arrow leaves it elsewhere (in release 26 at 1e10), which random values seldom show."""
    sql_type, _ = STRATEGIES[name]
    powers = [10.0**power for power in range(-7, 18)]
    array = array_of(sql_type, [value for p in powers for value in (p, -p, 1.2345678 * p)] * 3)
    encoder = RowEncoder([OutputColumn("x", sql_type)], [0], "UTC")
    arrays = encoder._arrays(pa.record_batch([array], ["x"]))
    assert len(array) >= FEW_ROWS and bytes(encoder._many(arrays)) == encoder._few(arrays)


ROUNDED = {
    # As PostgreSQL 15 shows them.
    ("float8", 0): {
        0.1 + 0.2: "0.3", 1 / 3: "0.333333333333333", 123456789012345678.0: "1.23456789012346e+17", 1e15: "1e+15",
        1e14: "100000000000000", 5e-324: "4.94065645841247e-324", -0.0: "-0", 0.0001: "0.0001", 0.00001: "1e-05",
        math.nan: "NaN", -math.inf: "-Infinity", 1004.3: "1004.3",
    },
    ("float8", -10): {12345.678: "12346", 0.1: "0.1"},
    ("float8", -15): {12345.678: "1e+04", 0.25: "0.2"},
    ("float4", 0): {1 / 3: "0.333333", 16777216.0: "1.67772e+07", 100000.0: "100000"},
}  # fmt: skip


@pytest.mark.parametrize(("name", "extra"), ROUNDED)
@pytest.mark.parametrize("count", [1, FEW_ROWS])
def test_floats_are_shown_with_fewer_digits_where_the_session_says_so(name: str, extra: int, count: int):
    shown = ROUNDED[name, extra]
    kind, lists = SqlType(name), SqlType(name + "[]")
    array = array_of(kind, [*shown] * count)
    assert encode(kind, array, 0, extra=extra) == [text.encode() for text in shown.values()] * count
    assert encode(lists, array_of(lists, [[*shown]]), 0, extra=extra) == [f"{{{','.join(shown.values())}}}".encode()]
    assert encode(kind, array, 1, extra=extra) == encode(kind, array, 1), "binary loses nothing"


@pytest.mark.parametrize("name", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("code", [0, 1])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_times_beyond_the_calendar_of_python(name, code, data):
    bits, under = (31, pa.int32()) if name == "date" else (62, pa.int64())
    numbers = data.draw(st.lists(st.none() | st.integers(-(2**bits) + 2**30 // 2, 2**bits - 1), min_size=1, max_size=5))
    array = pa.array(numbers * FEW_ROWS, under).view(arrow_type(SqlType(name)))
    encoder = RowEncoder([OutputColumn("x", SqlType(name))], [code], "Europe/Berlin")
    arrays = encoder._arrays(pa.record_batch([array], ["x"]))
    assert bytes(encoder._many(arrays)) == encoder._few(arrays)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (-0.0, "-0"), (0.1, "0.1"), (1e14, "100000000000000"), (1e10, "10000000000"),
        (999999999999999.0, "999999999999999"),
        (1e15, "1e+15"), (1.5e300, "1.5e+300"), (0.0001, "0.0001"), (0.00001, "1e-05"), (5e-324, "5e-324"),
        (float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity"), (123.456, "123.456"),
    ],
)  # fmt: skip
def test_floats_look_as_in_postgres(value, text):
    for count in (1, FEW_ROWS + 1):
        assert encode(SqlType("float8"), pa.array([value] * count), 0) == [text.encode()] * count


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e5, "100000"), (1e6, "1e+06"), (0.1, "0.1"), (0.0001, "0.0001"), (1.17549435e-38, "1.1754944e-38")],
)
def test_small_floats_look_as_in_postgres(value, text):
    for count in (1, FEW_ROWS + 1):
        assert encode(SqlType("float4"), pa.array([value] * count, pa.float32()), 0) == [text.encode()] * count


@pytest.mark.parametrize("count", [1, FEW_ROWS + 1])
def test_times_look_as_in_postgres(count):
    at = datetime(2024, 7, 1, 12, 30, 0, 500000, tzinfo=UTC)

    def shown(zone: str) -> str:
        return encode(SqlType("timestamptz"), pa.array([at] * count, pa.timestamp("us", "UTC")), 0, zone)[0].decode()

    assert shown("UTC") == "2024-07-01 12:30:00.5+00"
    assert shown("Europe/Berlin") == "2024-07-01 14:30:00.5+02"
    assert shown("Asia/Kolkata") == "2024-07-01 18:00:00.5+05:30"
    assert shown("America/St_Johns") == "2024-07-01 10:00:00.5-02:30"
    assert encode(SqlType("timestamp"), pa.array([datetime(2024, 1, 1)] * count), 0)[0] == b"2024-01-01 00:00:00"
    days = pa.array([-719163, 2932897] * count, pa.int32()).cast(pa.date32())
    assert encode(SqlType("date"), days, 0)[:2] == [b"0001-12-31 BC", b"10000-01-01"]


@pytest.mark.parametrize("count", [1, FEW_ROWS + 1])
@pytest.mark.parametrize(("year", "hour"), [(1930, "13:00:00+01"), (2024, "14:00:00+02"), (2114, "14:00:00+02")])
def test_summer_time_has_no_end(year, hour, count):
    at = pa.array([datetime(year, 7, 1, 12, tzinfo=UTC)] * count, pa.timestamp("us", "UTC"))
    assert encode(SqlType("timestamptz"), at, 0, "Europe/Berlin")[-1] == f"{year}-07-01 {hour}".encode()


@pytest.mark.parametrize("count", [1, FEW_ROWS + 1])
def test_numerics_are_never_in_exponent_form(count):
    array = pa.array([Decimal("0"), Decimal("0.000000001"), Decimal("-1.5")] * count, pa.decimal128(38, 9))
    assert encode(_numeric, array, 0)[:3] == [b"0.000000000", b"0.000000001", b"-1.500000000"]


def test_dates_that_postgres_cannot_hold():
    lowest = pa.array([-(2**31)] * 200, pa.int32()).cast(pa.date32())
    for array in (lowest, lowest.slice(0, 1)):
        with pytest.raises(InvalidUsage) as e:
            encode(SqlType("date"), array, 1)
        assert e.value.sqlstate == "22008"


def test_civil_is_the_calendar():
    for days in [*range(-800_000, 3_000_000, 9973), -719_162, 0, 2_932_896]:
        if -719_162 <= days <= 2_932_896:
            at = date.fromordinal(days + date(1970, 1, 1).toordinal())
            assert civil(days) == (at.year, at.month, at.day)
    assert civil(-719_163) == (0, 12, 31)


def test_pieces_are_bounded_and_hold_every_row():
    count = 60_000
    batch = pa.record_batch([pa.array(np.arange(count)), pa.array(["x" * 50] * count)], ["a", "b"])
    columns = [OutputColumn("a", SqlType("int8")), OutputColumn("b", SqlType("text"))]
    pieces = list(RowEncoder(columns, [0, 0]).encode(batch))
    assert sum(n for _, n in pieces) == count
    assert max(len(p) for p, _ in pieces) < 4 * values.PIECE_BYTES
    rows = [row(body) for piece, _ in pieces for _, body in backend_messages(bytes(piece))]
    assert [int(r[0]) for r in rows] == list(range(count))


def test_nulls_in_some_columns_only():
    count = FEW_ROWS * 2
    batch = pa.record_batch(
        [pa.array([None, 1] * FEW_ROWS, pa.int32()), pa.array(["", None] * FEW_ROWS), pa.nulls(count, pa.float64())],
        ["a", "b", "c"],
    )
    columns = [OutputColumn(n, SqlType(t)) for n, t in (("a", "int4"), ("b", "text"), ("c", "float8"))]
    for code in (0, 1):
        data = b"".join(bytes(p) for p, _ in RowEncoder(columns, [code] * 3).encode(batch))
        found = [row(body) for _, body in backend_messages(data)]
        one = b"1" if code == 0 else b"\0\0\0\1"
        assert found == [[None, b"", None], [one, None, None]] * FEW_ROWS


def test_batches_of_a_related_arrow_type_are_cast():
    assert encode(SqlType("text"), pa.array(["a"], pa.large_string()), 0) == [b"a"]
    assert encode(SqlType("int8"), pa.array([1], pa.int32()), 1) == [struct.pack("!q", 1)]
    at = pa.array([datetime(2024, 1, 1)], pa.timestamp("ms"))
    assert encode(SqlType("timestamp"), at, 0) == [b"2024-01-01 00:00:00"]


def test_oids_in_binary_are_four_unsigned_bytes():
    column = OutputColumn("oid", SqlType("int8"), oid=26)
    for count in (1, FEW_ROWS + 1):
        batch = pa.record_batch([pa.array([4_000_000_000] * count)], ["oid"])
        data = b"".join(bytes(p) for p, _ in RowEncoder([column], [1]).encode(batch))
        assert row(backend_messages(data)[0][1]) == [struct.pack("!I", 4_000_000_000)]


def test_what_row_description_says():
    columns = [
        OutputColumn("a", parse_type("numeric(10,2)")), OutputColumn("b", parse_type("numeric")),
        OutputColumn("c", SqlType("text"), oid=19), OutputColumn("d", SqlType("int4")),
        OutputColumn("e", parse_type("varchar(7)")), OutputColumn("f", parse_type("char(3)[]")),
    ]  # fmt: skip
    assert row_fields(columns, (0, 1, 0, 0, 0, 0)) == [
        ("a", 1700, -1, (10 << 16 | 2) + 4, 0), ("b", 1700, -1, -1, 1), ("c", 19, 64, -1, 0), ("d", 23, 4, -1, 0),
        ("e", 1043, -1, 11, 0), ("f", 1014, -1, 7, 0),
    ]  # fmt: skip
    assert formats_for((), 3) == (0, 0, 0)
    assert formats_for((1,), 3) == (1, 1, 1)
    assert formats_for((1, 0, 1), 3) == (1, 0, 1)


def test_offsets_are_those_of_the_zone():
    for zone in ("Europe/Amsterdam", "America/New_York"):
        at = datetime(1900, 1, 1, tzinfo=UTC)
        micros = int(at.timestamp() * 1_000_000)
        shown = scalars.timestamptz_text(zone)(micros).decode()
        seconds = at.astimezone(ZoneInfo(zone)).utcoffset().total_seconds()
        assert shown.endswith(scalars.offset_text(round(seconds)))
    assert scalars.offset_text(-1772) == "-00:29:32"
