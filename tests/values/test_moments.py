"""What is reckoned with years, months and days, as PostgreSQL 15 reckons; small functions of numbers and of texts."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as s

from values.bad_text import BadText
from values.numeric.numbers import gcd, lcm, width_bucket
from values.numeric.numeric_counts import width_bucket as width_bucket_exact
from values.text.keywords import quoted_identifier
from values.text.text_format import formatted
from values.time.interval_words import read_interval
from values.time.intervals import Interval, justified, justified_days, justified_hours
from values.time.moments import age, binned, made_interval, made_time, made_timestamp, shifted, stepped

EPOCH, MICRO, DAY = datetime(1970, 1, 1), timedelta(microseconds=1), 86_400_000_000


def at(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // MICRO


def refused(call, *arguments) -> tuple[str, str]:
    with pytest.raises(BadText) as caught:
        call(*arguments)
    return caught.value.sqlstate, caught.value.message


@pytest.mark.parametrize(
    ("later", "earlier", "expected"),
    (
        ("2024-03-01", "2024-01-31", "1 month 1 day"),
        ("2024-01-31", "2024-03-01", "-1 month -1 day"),
        ("2001-04-10", "1957-06-13", "43 years 9 months 27 days"),
        ("2024-02-29 00:00:00", "2024-02-28 23:59:59.999999", "0.000001 s"),
        ("2000-02-29 12:00:00", "2001-02-28 11:00:00", "-11 months -27 days -23:00:00"),
    ),
)
def test_an_age_is_counted_along_the_calendar(later, earlier, expected):
    assert age(at(later), at(earlier)) == read_interval(expected)


MOMENTS = s.datetimes(datetime(2, 1, 1), datetime(9000, 1, 1)).map(lambda moment: (moment - EPOCH) // MICRO)


@given(MOMENTS, MOMENTS)
def test_an_age_has_one_sign_and_leads_from_the_one_to_the_other(a, b):
    found = age(a, b)
    assert all(part * (1 if a >= b else -1) >= 0 for part in found)
    if a >= b:
        month = shifted(b, Interval(found.months))
        assert month <= a
        assert abs(shifted(month, Interval(0, found.days, found.micros)) - a) <= 3 * DAY, "months end on several days"


@given(MOMENTS, MOMENTS, s.integers(1, 400 * DAY))
def test_a_bin_begins_at_or_before_its_moment(moment, origin, length):
    start = binned(Interval(0, 0, length), moment, origin)
    assert start <= moment < start + length
    assert (start - origin) % length == 0


def test_a_bin_has_a_length():
    assert refused(binned, Interval(1), 0, 0)[0] == "0A000"
    assert refused(binned, Interval(), 0, 0) == ("22008", "stride must be greater than zero")
    assert refused(binned, Interval(0, -1), 0, 0)[0] == "22008"


def test_moments_and_intervals_are_made_of_their_parts():
    assert made_timestamp(2024, 2, 29, 1, 2, 3.5) == at("2024-02-29 01:02:03.500000")
    assert made_timestamp(2023, 2, 28, 24, 0, 0) == at("2023-03-01")
    assert refused(made_timestamp, 2023, 2, 29, 0, 0, 0) == ("22008", "date field value out of range: 2023-02-29")
    assert made_time(23, 59, 60) == DAY
    assert refused(made_time, 24, 0, 0.1) == ("22008", "time field value out of range: 24:00:0.1")
    assert refused(made_time, 1, 0, math.nan)[0] == "22008"
    assert made_interval(1, 2, 3, 4, 5, 6, 7.5) == Interval(14, 25, 18_367_500_000)
    assert refused(made_interval, 2**31 - 1, 0, 0, 0, 0, 0, 0) == ("22008", "interval out of range")


@pytest.mark.parametrize(
    ("justify", "given", "expected"),
    (
        (justified_hours, "27 hours", "1 day 3 hours"),
        (justified_hours, "-49 hours 3 days", "23 hours"),
        (justified_days, "65 days -1 month", "1 mon 5 days"),
        (justified, "1 mon -1 hour", "29 days 23 hours"),
        (justified, "-35 days 30 hours", "-1 mon -3 days -18 hours"),
    ),
)
def test_an_interval_is_made_tidy(justify, given, expected):
    assert justify(read_interval(given)) == read_interval(expected)


def test_a_series_adds_its_step_to_the_one_before():
    def days(start: str, end: str, step: str) -> list[str]:
        return [str(EPOCH + each * MICRO)[:10] for each in stepped(at(start), at(end), read_interval(step))]

    assert days("2024-01-31", "2024-05-01", "1 month") == ["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-29"]
    assert days("2024-03-31", "2024-01-01", "-1 month") == ["2024-03-31", "2024-02-29", "2024-01-29"]
    assert days("9999-11-30", "9999-12-31", "1 month") == ["9999-11-30", "9999-12-30"], "there is no timestamp behind"
    assert days("2024-01-31", "2023-01-01", "1 month") == []
    assert refused(stepped, 0, 1, Interval()) == ("22023", "step size cannot equal zero")
    assert refused(stepped, 0, DAY, Interval(0, 0, 1))[0] == "54000"


def test_what_numbers_have_in_common():
    assert [gcd(12, -18, 4), gcd(0, 0, 4), lcm(4, 6, 4), lcm(-4, 0, 4)] == [6, 0, 12, 0]
    assert refused(gcd, -(2**31), 0, 4) == ("22003", "integer out of range")
    assert gcd(-(2**31), 0, 8) == 2**31
    assert refused(lcm, 2**62, 3, 8) == ("22003", "bigint out of range")


def test_a_bucket_of_floats_is_rounded_and_one_of_numerics_is_exact():
    assert [width_bucket(x, 0, 10, 5) for x in (-1, 0, 5.35, 9.99, 10)] == [0, 1, 3, 5, 6]
    assert [width_bucket(x, 10, 0, 5) for x in (11, 10, 5.35, 0)] == [0, 1, 3, 6]
    assert (width_bucket(0.29, 0, 1, 100), width_bucket_exact("0.29", "0", "1", 100)) == (29, 30)
    for call, kind in ((width_bucket, float), (width_bucket_exact, str)):
        assert refused(call, kind(1), kind(0), kind(1), 0) == ("2201G", "count must be greater than zero")
        assert refused(call, kind(1), kind(1), kind(1), 1) == ("2201G", "lower bound cannot equal upper bound")
        assert refused(call, kind(2), kind(0), kind(1), 2**31 - 1)[0] == "22003"
    assert refused(width_bucket, math.nan, 0.0, 1.0, 1)[0] == refused(width_bucket, 0.0, 0.0, math.inf, 1)[0] == "2201G"


def test_text_is_put_together_by_a_format():
    assert formatted("%s|%5s|%-5s|%%|%L", ["a", "b", None, "it's"]) == "a|    b|     |%|'it''s'"
    assert formatted("%2$s %1$s %s", ["a", "b"]) == "b a b"
    assert formatted("%*s|%L", ["-4", "x", None]) == "x   |NULL"
    assert formatted("%I %I", ["order", "a b"]) == '"order" "a b"'
    assert refused(formatted, "%s", []) == ("22023", "too few arguments for format()")
    assert refused(formatted, "%y", ["a"]) == ("22023", 'unrecognized format() type specifier "y"')
    assert refused(formatted, "%5", ["a"]) == ("22023", "unterminated format() type specifier")
    assert refused(formatted, "%I", [None])[0] == "22004"


def test_a_name_is_quoted_where_it_would_be_another():
    names = ("plain", "a1$", "Upper", "with space", 'a"b', "select", "left", "between", "view", "", "1a")
    assert [quoted_identifier(name) == name for name in names] == [True, False, *[False] * 6, True, False, False]
    assert quoted_identifier('a"b') == '"a""b"'


@pytest.mark.parametrize("text", [
    "2020-01-01", "2020-01-01 10:00", "1 day 1 day", "1 hour 04:05", "1 sec 00:00:01", "-.5 s", "\uff10", "1-2-3",
])  # fmt: skip
def test_what_is_no_interval_is_refused_as_in_postgres(text):
    with pytest.raises(BadText) as refused:
        read_interval(text)
    assert refused.value.sqlstate == "22007"
