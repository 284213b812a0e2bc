"""Parameters in text and binary: from psycopg's own dumpers, and everything that is not of its type."""

from __future__ import annotations

import json
import math
import struct
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import adapters
from psycopg.adapt import PyFormat
from psycopg.types.json import Jsonb

from adapter.encode.parameters import decode_params
from journal.errors import InvalidUsage
from values.text.jsonb import read_jsonb

_text = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
_zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=9))])
_aware = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=_zones)


_small = st.integers(-(10**6), 10**6)
_interval = st.builds(lambda days, micros: timedelta(days=days, microseconds=micros), _small, st.integers(0, 10**10))
_lists = st.one_of(
    st.lists(st.none() | _text, max_size=3).filter(lambda v: any(each is not None for each in v)),
    st.lists(st.none() | st.integers(2**31, 2**63 - 1), max_size=3).filter(lambda v: any(each for each in v)),
    st.lists(st.dates(), min_size=1, max_size=3),
)


@pytest.mark.parametrize("code", [0, 1])
@settings(max_examples=200, deadline=None)
@given(value=st.one_of(st.uuids(), st.times(), _interval, _lists, st.dictionaries(_text, _text).map(Jsonb)))
def test_what_psycopg_sends_of_the_types_that_are_carried_by_others(code, value):
    oid, raw = dump(value, code)
    (found,) = decode_params([oid or 1009], [code], [raw])
    if isinstance(value, time):
        wanted = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    elif isinstance(value, timedelta):
        wanted, found = value, timedelta(days=found.days, microseconds=found.micros)
    elif isinstance(value, Jsonb):
        wanted = read_jsonb(json.dumps(value.obj))
    else:
        wanted = str(value) if isinstance(value, uuid.UUID) else value
    assert found == wanted


def dump(value: object, code: int) -> tuple[int, bytes]:
    dumper = adapters.get_dumper(type(value), PyFormat.BINARY if code else PyFormat.TEXT)(type(value), None)
    dumper = dumper.upgrade(value, PyFormat.BINARY if code else PyFormat.TEXT)
    raw = dumper.dump(value)
    return dumper.oid, b"" if raw is None else bytes(raw)


@pytest.mark.parametrize("code", [0, 1])
@settings(max_examples=400, deadline=None)
@given(
    value=st.one_of(
        st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), _text, st.dates(), st.datetimes(), _aware,
        st.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-9)),
    )
)  # fmt: skip
def test_what_psycopg_sends(code, value):
    oid, raw = dump(value, code)
    (found,) = decode_params([oid or 25], [code], [raw])
    if isinstance(value, float) and math.isnan(value):
        assert math.isnan(found)
    else:
        assert found == value
    if isinstance(value, datetime) and value.tzinfo:
        assert found.tzinfo is UTC


@settings(max_examples=100, deadline=None)
@given(st.binary())
def test_bytes_in_every_form(value):
    escaped = b"".join(b"\\%03o" % b if b < 32 or b > 126 or b == 92 else bytes([b]) for b in value)
    assert decode_params([17], [1], [value]) == (value,)
    assert decode_params([17], [0], [b"\\x" + value.hex().encode()]) == (value,)
    assert decode_params([17], [0], [escaped]) == (value,)


@settings(max_examples=600, deadline=None)
@given(
    oid=st.sampled_from([16, 17, 20, 21, 23, 25, 26, 700, 701, 1082, 1114, 1184, 1700, 2950, 3802, 1043,
                         1042, 1083, 1186, 1007, 1009, 1187, 3807]),
    code=st.integers(0, 1),
    raw=st.one_of(st.binary(max_size=24), st.text("0123456789-+:. eETZinfa\\x{},", max_size=24).map(str.encode)),
)
def test_any_bytes_are_a_value_or_a_proper_error(oid, code, raw):
    try:
        decode_params([oid], [code], [raw], "Europe/Berlin")
    except InvalidUsage as e:
        of_values = {"22P02", "22P03", "22003", "22007", "22008", "22009", "22015", "22021", "22023"}
        assert e.sqlstate in of_values | {"42804", "0A000"}


@pytest.mark.parametrize(
    ("oid", "raw", "sqlstate"),
    [
        (23, b"abc", "22P02"), (23, b"", "22P02"), (23, b"1.5", "22P02"), (23, b"2147483648", "22003"),
        (21, b"-32769", "22003"), (20, b"9" * 5000, "22003"), (16, b"maybe", "22P02"), (16, b"", "22P02"),
        (701, b"1e999", "22003"), (701, b"1e-999", "22003"), (701, b"1_0", "22P02"), (701, b"0xg", "22P02"),
        (700, b"3.5e38", "22003"), (700, b"1e-46", "22003"), (1700, b"1e131072", "22003"),
        (1700, b"1e-16384", "22003"), (1700, b"x", "22P02"),
        (1700, b"1e9999999999999999999", "22003"),
        (1082, b"2024-13-01", "22008"), (1082, b"infinity", "22008"), (1114, b"-infinity", "22008"),
        (1082, b"0044-03-15 BC", "22008"), (1184, b"0044-03-15 00:00:00+00 BC", "22008"), (1082, b"today", "0A000"),
        (1082, b"yesterdayish", "22007"), (1082, b"+16", "22009"),
        (1114, b"2024-01-01 25:00:00", "22008"), (1114, b"99999-01-01", "22008"),
        (1184, b"2024-01-01 00:00 Nowhere/Land", "22023"),
        (25, b"\xff", "22021"), (25, b"a\0b", "22021"), (17, b"\\xzz", "22023"), (17, b"\\9", "22P02"),
        (26, b"4294967296", "22003"), (1009, b"{{a}}", "0A000"),
        (1009, b"{", "22P02"), (1007, b"{1,x}", "22P02"), (1005, b"{32768}", "22003"), (1007, b"[0:0]={1}", "0A000"),
        (2950, b"a0ee", "22P02"), (3802, b"{a:1}", "22P02"), (1083, b"25:00", "22008"), (1083, b"noon", "22007"),
        (1186, b"1 foo", "22007"), (1186, b"999999999 years", "22008"),
        (1186, b"2147483648 days", "22015"), (3910, b"empty", "0A000"),
    ],
)  # fmt: skip
def test_text_that_is_not_of_the_type(oid, raw, sqlstate):
    with pytest.raises(InvalidUsage) as e:
        decode_params([oid], [], [raw])
    assert e.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("oid", "raw", "sqlstate"),
    [
        (23, b"\0\0\1", "22P03"), (20, b"", "22P03"), (1700, b"\0\1", "22P03"),
        (1700, struct.pack("!HhHHH", 1, 0, 0, 0, 10_000), "22P03"),
        (1114, struct.pack("!q", 2**63 - 1), "22008"), (1082, struct.pack("!i", -(2**31)), "22008"), (3802, b"\2{}",
        "22P03"), (1083, struct.pack("!q", 86_400_000_001), "22008"), (1186, b"\0" * 15, "22P03"),
        (1007, struct.pack("!iiIiiiiIii", 2, 0, 23, 1, 1, 1, 1, 4, 1, 0), "0A000"),
        (1007, struct.pack("!iiIii", 1, 0, 25, 0, 1), "42804"),
        (1007, struct.pack("!iiIiii", 1, 0, 23, 1, 1, 4), "22P03"),
        (1007, struct.pack("!iiIiii", 1, 0, 23, 2**30, 1, -1), "22P03"),
    ],
)  # fmt: skip
def test_binary_that_is_not_of_the_type(oid, raw, sqlstate):
    with pytest.raises(InvalidUsage) as e:
        decode_params([oid], [1], [raw])
    assert e.value.sqlstate == sqlstate


def test_times_in_text():
    def one(oid: int, text: str, zone: str = "UTC") -> object:
        return decode_params([oid], [], [text.encode()], zone)[0]

    at = datetime(2024, 7, 1, 10, 0, tzinfo=UTC)
    assert one(1184, "2024-07-01 10:00:00") == at
    assert one(1184, "2024-07-01 12:00:00", "Europe/Berlin") == at
    assert one(1184, "2024-07-01T12:00+02", "Asia/Kolkata") == at
    assert one(1184, "2024-07-01 15:30:00.0+05:30") == at
    assert one(1184, "2024-07-01 12:00 Europe/Berlin") == at
    assert one(1184, "2024-07-01 10:00:00Z") == at
    assert one(1114, "2024-07-01 10:00:00.1234567+02") == datetime(2024, 7, 1, 10, 0, 0, 123457)
    assert one(1114, "2024-07-01") == datetime(2024, 7, 1)
    assert one(1114, "2024-07-01 24:00:00") == datetime(2024, 7, 2)
    assert one(1082, "2024-07-01 10:00:00") == date(2024, 7, 1)


def test_one_format_for_all_and_one_each():
    four = struct.pack("!i", 4)
    assert decode_params([23, 23], [1], [four, four]) == (4, 4)
    assert decode_params([23, 23], [1, 0], [four, b"4"]) == (4, 4)
    assert decode_params([23, 23], [], [None, b"4"]) == (None, 4)


def test_the_number_of_parameters_is_checked():
    with pytest.raises(InvalidUsage) as e:
        decode_params([23], [], [])
    assert e.value.sqlstate == "08P01"
