"""Types of time with fewer digits or fields: what PostgreSQL 15 answered, value by value."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.errors import InvalidUsage
from values.bad_text import BadText
from values.time.digits import END, ORIGIN, fitted, fitted_interval, kept, rounded, rounded_moment
from values.time.interval_words import read_interval
from values.time.intervals import show_interval
from values.types import arrow_type, modifier, parse_type

MOMENTS = {
    ("2024-02-29 12:34:56.789654", 3): "2024-02-29 12:34:56.79",
    ("2024-02-29 12:34:56.5", 0): "2024-02-29 12:34:57",
    ("1999-12-31 23:59:59.5", 0): "1999-12-31 23:59:59",
    ("1999-12-31 23:59:59.500001", 0): "2000-01-01 00:00:00",
    ("1970-01-01 00:00:00.000015", 5): "1970-01-01 00:00:00.00001",
    ("2000-01-01 00:00:00.000015", 5): "2000-01-01 00:00:00.00002",
}


@pytest.mark.parametrize(("given_", "digits"), MOMENTS)
def test_a_moment_is_rounded_as_postgres_rounds_it(given_, digits):
    expected = dt.datetime.fromisoformat(MOMENTS[given_, digits])
    value, kind = dt.datetime.fromisoformat(given_), parse_type(f"timestamp({digits})")
    assert fitted(value, kind) == expected
    with_zone = parse_type(f"timestamptz({digits})")
    assert fitted(value.replace(tzinfo=dt.UTC), with_zone) == expected.replace(tzinfo=dt.UTC)
    assert kept(pa.chunked_array([pa.array([value, None])]), kind).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("micros", "digits", "expected"),
    [(45_296_789_654, 3, 45_296_790_000), (86_399_999_999, 0, 86_400_000_000), (1_499_999, 0, 1_000_000), (0, 0, 0)],
)
def test_a_time_of_day_is_rounded(micros, digits, expected):
    kind = parse_type(f"time({digits})")
    assert fitted(micros, kind) == rounded(micros, digits) == expected
    assert kept(pa.chunked_array([pa.array([micros])]), kind).to_pylist() == [expected]


INTERVALS = {
    ("1 year 2 mons 3 days 04:05:06.789", "interval year"): "1 year",
    ("-1 year -2 mons 3 days", "interval year"): "-1 years",
    ("1 year 2 mons 3 days 04:05:06.789", "interval year to month"): "1 year 2 mons",
    ("1 year 2 mons 3 days 04:05:06.789", "interval month"): "1 year 2 mons",
    ("1 year 2 mons 3 days 04:05:06.789", "interval day"): "1 year 2 mons 3 days",
    ("1 year 2 mons 3 days 04:05:06.789", "interval hour"): "1 year 2 mons 3 days 04:00:00",
    ("1 year 2 mons 3 days 04:05:06.789", "interval day to hour"): "1 year 2 mons 3 days 04:00:00",
    ("1 year 2 mons 3 days -04:05:06.789", "interval minute"): "1 year 2 mons 3 days -04:05:00",
    ("1 year 2 mons 3 days 04:05:06.789", "interval hour to minute"): "1 year 2 mons 3 days 04:05:00",
    ("1 year 2 mons 3 days 04:05:06.789", "interval minute to second"): "1 year 2 mons 3 days 04:05:06.789",
    ("1 year 2 mons 3 days 04:05:06.789", "interval day to second(1)"): "1 year 2 mons 3 days 04:05:06.8",
    ("-04:05:06.75", "interval(1)"): "-04:05:06.8",
    ("-04:05:06.5", "interval second(0)"): "-04:05:07",
    ("10", "interval year"): "10 years",
    ("10", "interval year to month"): "10 mons",
    ("10", "interval day"): "10 days",
    ("10", "interval hour to minute"): "00:10:00",
    ("10", "interval day to second(2)"): "00:00:10",
    ("10:30", "interval minute"): "10:30:00",
    ("10:30", "interval minute to second(3)"): "00:10:30",
    ("1 10:30", "interval day to hour"): "1 day 10:00:00",
    ("1-2", "interval year"): "1 year",
}


@pytest.mark.parametrize(("text", "name"), INTERVALS)
def test_an_interval_has_the_fields_that_it_was_declared_with(text, name):
    kind = parse_type(name)
    value = read_interval(text, kind.fields)
    assert show_interval(fitted_interval(value, kind)) == INTERVALS[text, name]
    column = pa.chunked_array([pa.array([value._asdict(), None], arrow_type(kind))])
    assert kept(column, kind).to_pylist() == [fitted_interval(value, kind)._asdict(), None]


def test_nothing_is_rounded_beyond_the_last_year():
    last = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
    for make in (
        lambda: rounded_moment(END - 1, 3),
        lambda: fitted(last, parse_type("timestamp(0)")),
        lambda: kept(pa.chunked_array([pa.array([last])]), parse_type("timestamp(3)")),
    ):
        with pytest.raises(BadText) as told:
            make()
        assert told.value.sqlstate == "22008"


def test_elements_of_arrays_are_rounded_where_they_stand():
    kind = parse_type("timestamp(0)[]")
    low, high = dt.datetime(2024, 1, 1, 0, 0, 0, 400_000), dt.datetime(2024, 1, 1, 0, 0, 0, 600_000)
    column = pa.chunked_array([pa.array([[low, None], None, [], [high, low]], arrow_type(kind))])
    zero, one = low.replace(microsecond=0), low.replace(second=1, microsecond=0)
    assert kept(column, kind).to_pylist() == [[zero, None], None, [], [one, zero]]
    assert kept(column.slice(2), kind).to_pylist() == [[], [one, zero]]


@given(st.integers(-62_135_596_800_000_000, END - 1_000_001), st.integers(0, 5))
def test_rounding_is_to_the_nearest_and_stays(micros, digits):
    unit = 10 ** (6 - digits)
    found = rounded_moment(micros, digits)
    assert (found - ORIGIN) % unit == 0
    assert abs(found - micros) * 2 <= unit
    assert rounded_moment(found, digits) == found


NAMES = {
    "timestamp(3)": 3, "timestamp(3) with time zone": 3, "timestamptz(0)": 0, "time(2) without time zone": 2,
    "interval(3)": 2147418115, "interval day to second(3)": 470286339, "interval second(2)": 268435458,
    "interval year to month": 458751, "interval minute": 134283263, "timestamp(6)": -1, "time(9)": -1,
    "interval day to second": 470351871, "timestamp": -1,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_declared_type_is_written_and_read_again(name):
    kind = parse_type(name)
    assert parse_type(str(kind)) == kind
    assert modifier(kind) == NAMES[name]
    assert kind.plain == parse_type(kind.name)
    assert arrow_type(kind) == arrow_type(kind.plain)
    assert (kind == kind.plain) == (NAMES[name] == -1)


@pytest.mark.parametrize(
    ("name", "sqlstate"),
    [
        ("interval year to day", "42601"), ("interval day(3)", "42601"), ("interval(2) day", "42601"),
        ("timestamp day", "42601"), ("time(3) with time zone", "0A000"), ("timestamptz with time zone", "42704"),
    ],
)  # fmt: skip
def test_what_is_no_type(name, sqlstate):
    with pytest.raises(InvalidUsage) as told:
        parse_type(name)
    assert told.value.sqlstate == sqlstate


@pytest.mark.parametrize("text", ["9223372036854775807 us", "-9223372036854775808 us", "2562047788:00:54.775807"])
def test_an_interval_that_is_rounded_beyond_its_bounds_is_none(text):
    """It was an overflow wherever it was to be kept, which stopped a source for good."""
    kind, value = parse_type("interval(0)"), read_interval(text)
    with pytest.raises(BadText) as caught:
        fitted(value, kind)
    assert caught.value.sqlstate == "22008"
    with pytest.raises(BadText):
        kept(pa.chunked_array([pa.array([value._asdict()], arrow_type(kind))]), kind)
    assert fitted(value, parse_type("interval(6)")) == value
