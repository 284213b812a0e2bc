"""Spellings of dates and times.  What is expected here is what PostgreSQL gives: see also
``tests/differential/test_reading.py``."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from values import scalars
from values.bad_text import BadText
from values.time.clock import read_time, show_time
from values.time.date_words import split


@pytest.mark.parametrize("text", [
    "January 8, 1999", "1999-01-08", "1999-Jan-08", "1999-1-8", "1/8/1999", "01/08/99", "Jan-08-99", "08-Jan-1999",
    "8 Jan 1999", "Jan 08 99", "1999 08 Jan", "19990108", "990108", "1999.008", "J2451187", "julian 2451187",
    "01-08-99", "01 08 1999", "1.8.1999", "y1999m01d08", "January 8, 99 AD", "1999-01-08 24:00:00",
    "Jan 8 10:20:30 1999 PST",
])  # fmt: skip
def test_one_day(text):
    assert scalars.read_date(text) == date(1999, 1, 8)


@pytest.mark.parametrize("text, expected", [
    ("Mon Feb 10 17:32:01 1997 PST", datetime(1997, 2, 11, 1, 32, 1)),
    ("Mon Feb 10 05:32:01.5 PM 1997 EDT", datetime(1997, 2, 10, 21, 32, 1, 500000)),
    ("19970210 173201 -0800", datetime(1997, 2, 11, 1, 32, 1)),
    ("19970210T173201.25Z", datetime(1997, 2, 10, 17, 32, 1, 250000)),
    ("1997.041 17:32:01 UTC", datetime(1997, 2, 10, 17, 32, 1)),
    ("J2451187.5+08", datetime(1999, 1, 8, 4)),
    ("J2451187T040506-08", datetime(1999, 1, 8, 12, 5, 6)),
    ("Y2001M12D27H04MM05S06.789-08", datetime(2001, 12, 27, 12, 5, 6, 789000)),
    ("2020-07-01 12:00 america/new_york", datetime(2020, 7, 1, 16)),
    ("2020-01-01 12:34 GMT+8", datetime(2020, 1, 1, 20, 34)),
    ("2020-01-01 12:00 met dst", datetime(2020, 1, 1, 10)),
    ("2020-07-01 12:00 VET", datetime(2020, 7, 1, 16)),
    ("2005-07-01 12:00 MSK", datetime(2005, 7, 1, 9)), ("2012-07-01 12:00 MSK", datetime(2012, 7, 1, 8)),
    ("2020-01-01 allballs", datetime(2020, 1, 1)), ("2001-12-27 EST 12:00", datetime(2001, 12, 27, 17)),
    ("1995-08-06 epoch", datetime(1970, 1, 1)), ("2020-01-01 -05:30:15", datetime(2020, 1, 1, 5, 30, 15)),
    ("2020-12-31 23:59:60", datetime(2021, 1, 1)), ("2020-01-01 10:00 +5", datetime(2020, 1, 1, 5)),
])  # fmt: skip
def test_moments(text, expected):
    assert scalars.read_moment(text) == expected.replace(tzinfo=UTC)


def test_an_offset_of_a_timestamp_says_nothing():
    assert scalars.read_timestamp("Mon Feb 10 17:32:01 1997 PST") == datetime(1997, 2, 10, 17, 32, 1)
    assert scalars.read_timestamp("2020-01-01 17:32:01 GMT+8") == datetime(2020, 1, 1, 17, 32, 1)


def test_a_local_time_is_the_sessions_where_no_word_says_another():
    def noon(local):
        return local.replace(hour=12)

    assert scalars.read_moment("8-Jan-1999", noon).hour == 12
    assert scalars.read_moment("8-Jan-1999 UTC", noon).hour == 0


@pytest.mark.parametrize("text, shown", [
    ("allballs", "00:00:00"), ("040506.789-08", "04:05:06.789"), ("T040506", "04:05:06"), ("0405", "04:05:00"),
    ("4:05 PM", "16:05:00"), ("12:00 am", "00:00:00"), ("12:30 pm", "12:30:00"), ("11:59 EDT", "11:59:00"),
    ("2003-07-07 15:36:39 America/New_York", "15:36:39"), ("24:00", "24:00:00"), ("23:59:59.9999999", "24:00:00"),
    ("1:2.5", "00:01:02.5"), ("h 5 mm 7 s 5.0", "05:07:05"), ("10:20:30.", "10:20:30"), ("02:03 UTC", "02:03:00"),
])  # fmt: skip
def test_times_of_day(text, shown):
    assert show_time(read_time(text)) == shown


_READERS = {
    "date": scalars.read_date, "timestamp": scalars.read_timestamp, "timestamptz": scalars.read_moment,
    "time": read_time,
}  # fmt: skip


@pytest.mark.parametrize("kind, text, sqlstate", [
    ("date", "99-Jan-08", "22008"), ("date", "18/1/1999", "22008"), ("date", "2020-02-30", "22008"),
    ("date", "0000-01-01", "22008"), ("date", "99999999999-01-01", "22008"), ("date", "32 Jan 2020", "22007"),
    ("date", "", "22007"), ("date", "5 Jan", "22007"), ("date", "sunday 2020-01-01", "22007"),
    ("date", "January 8, 1999 BC", "22008"), ("date", "J0", "22008"), ("date", "12/31/12020", "22008"),
    ("date", "today", "0A000"), ("timestamp", "10:30 tomorrow", "0A000"), ("time", "now", "0A000"),
    ("date", "Ä 2020-01-01", "22007"), ("date", "2020-01-01 " * 20, "22007"), ("date", "²020-01-01", "22007"),
    ("timestamp", "2020-01-01 10", "22007"), ("timestamp", "2020-01-01 25:00", "22008"),
    ("timestamp", "2020-01-01 13:00 pm", "22008"), ("timestamp", "10:00", "22007"),
    ("timestamp", "+infinity", "22007"), ("timestamp", "today infinity", "22008"),
    ("timestamptz", "2020-01-01 12:34 +17", "22009"), ("timestamptz", "2020-01-01 12:34 +05:60", "22009"),
    ("timestamptz", "2020-01-01 12:34 foo/bar", "22023"), ("timestamptz", "2020-01-01 12:34 foobar", "22007"),
    ("timestamptz", "2020-01-01 12:34 FOO+8BAR", "0A000"), ("timestamptz", "2020-01-01 dst", "22007"),
    ("timestamptz", "2020-01-01 America/New_York dst", "22007"), ("timestamptz", "0001-01-01 00:00+10", "22008"),
    ("time", "12:00 Europe/Berlin", "22007"), ("time", "12:00 Jan", "22007"), ("time", "23:59:60.9", "22008"),
    ("time", "2020-06-31 10:00", "22008"),
])  # fmt: skip
def test_what_is_none(kind, text, sqlstate):
    with pytest.raises(BadText) as refused:
        _READERS[kind](text)
    assert refused.value.sqlstate == sqlstate


def test_what_is_relative_to_now_names_what_to_write():
    with pytest.raises(BadText, match='"today" is not supported for type date: write current_date'):
        scalars.read_date("today")


def test_words_are_cut_by_their_letters_alone():
    assert [tuple(word) for word in split("Mon 8-Jan-1999, 10:20:30.5+02")] == [
        ("word", "mon"), ("date", "8-jan-1999"), ("time", "10:20:30.5"), ("offset", "+02"),
    ]  # fmt: skip
    assert [tuple(word) for word in split("j2451187 EST5EDT Europe/Berlin 1999.008 - 5")] == [
        ("word", "j"), ("number", "2451187"), ("date", "est5edt"), ("date", "europe/berlin"), ("number", "1999.008"),
        ("offset", "-5"),
    ]  # fmt: skip
