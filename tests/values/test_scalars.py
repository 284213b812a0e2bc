"""Scalars are read from text as Postgres reads them: what engines take besides is refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import pytest

from values import scalars
from values.bad_text import BadText
from values.functions import OWN


@pytest.mark.parametrize("text, value", [
    ("t", True), (" TRUE ", True), ("on", True), ("ye", True), ("1", True), ("of", False), ("fal", False), ("0", False),
])  # fmt: skip
def test_booleans(text, value):
    assert scalars.read_bool(text) is value


@pytest.mark.parametrize("text, value", [
    ("0" * 5000, 0), ("-" + "0" * 5000, 0), ("+" + "0" * 5000 + "7", 7), ("-" + "0" * 5000 + "32768", -32768),
    (" 0042 ", 42),
])  # fmt: skip
def test_integers_with_zeros_in_front(text, value):
    """Python itself refuses more than 4,300 digits, be they zeros: that was nobody's to catch, and stopped a source."""
    assert scalars.read_int2(text) == scalars.read_int8(text) == value
    for more in ("9" * 41, "0" * 5000 + "9" * 19, "-" + "9" * 5000):
        with pytest.raises(BadText) as caught:
            scalars.read_int8(more)
        assert caught.value.sqlstate == "22003"


@pytest.mark.parametrize("text, value", [
    ("1.5", 1.5), (" -.5e3 ", -500.0), ("1.", 1.0), ("Infinity", math.inf), ("-inf", -math.inf), ("0e999", 0.0),
])  # fmt: skip
def test_floats(text, value):
    assert scalars.read_float8(text) == value


@pytest.mark.parametrize("text, value", [
    (r"\x00ff", b"\x00\xff"), (r"\x", b""), ("", b""), ("é", "é".encode()), (r"a\\b", b"a\\b"), (r"\101", b"A"),
])  # fmt: skip
def test_bytes(text, value):
    assert scalars.read_bytea(text) == value


def test_times():
    assert scalars.read_date(" 2024-02-29 10:00") == date(2024, 2, 29)
    assert scalars.read_timestamp("2024-02-29 10:11:12.1234567+02") == datetime(2024, 2, 29, 10, 11, 12, 123457)
    assert scalars.read_moment("2024-02-29 10:11:12+02") == datetime(2024, 2, 29, 8, 11, 12, tzinfo=UTC)
    assert scalars.read_moment("2024-02-29 10:00 Europe/Berlin") == datetime(2024, 2, 29, 9, tzinfo=UTC)
    assert (scalars.date_micros("1970-01-02"), scalars.date_micros("1969-12-31")) == (86_400_000_000, -86_400_000_000)
    assert scalars.timestamp_micros("1969-12-31 23:59:59.999999") == -1
    assert scalars.moment_micros("1970-01-01 00:00+01") == -3_600_000_000


@pytest.mark.parametrize("name, text, sqlstate", [
    ("bool", "o", "22P02"), ("bool", "01", "22P02"), ("bool", "", "22P02"),
    ("float8", "1.5d", "22P02"), ("float8", "1_0", "22P02"), ("float8", "1e400", "22003"),
    ("float8", "1e-400", "22003"), ("float4", "1e39", "22003"), ("float4", "1e-46", "22003"),
    ("bytea", r"\x4", "22023"), ("bytea", r"a\x41", "22P02"), ("bytea", r"\400", "22P02"),
    ("date_micros", "2024", "22007"), ("date_micros", "2024-02", "22007"), ("date_micros", "2024-02-30", "22008"),
    ("date_micros", "2024-02-01 foo", "22007"), ("timestamp_micros", "infinity", "22008"),
    ("date_micros", "2020-W01", "22007"), ("timestamp_micros", "2020-W01-3", "22007"),
    ("timestamp_micros", "2020-01-01 10", "22007"), ("timestamp_micros", "20200101T10", "22007"),
    ("timestamp_micros", "2024-02-30 10:00", "22008"), ("timestamp_micros", "12024-01-01 10:00", "22008"),
    ("moment_micros", "2024-02-01 10:00 nowhere/land", "22023"), ("moment_micros", "0001-01-01 00:00+14", "22008"),
])  # fmt: skip
def test_what_engines_may_take_and_postgres_does_not(name, text, sqlstate):
    """In a cast it is the row's refusal."""
    with pytest.raises(ValueError, match=f"^tidemark:{sqlstate}:"):
        OWN[f"tm_{name}"].run(text)
    assert OWN[f"tm_{name}"].run(None) is None
    assert issubclass(BadText, ValueError)
