"""Dates and times in all spellings, put to PostgreSQL's readers and to ours: words that they know, in any order.

Promises that a run is decided by ``SEED`` alone.
"""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta

import pytest

from tests.differential.postgres import missing, postgres
from values import scalars
from values.bad_text import BadText
from values.time.clock import read_time
from values.time.digits import fitted_interval
from values.time.interval_words import read_interval
from values.types import parse_type

SEED, TEXTS = 20_000_101, 40_000

WORDS = (
    "1999 99 08 8 jan January Jan-08-1999 1999-01-08 08-Jan-99 19990108 990108 1999.008 J2451187 j 2451187 2451187.5 "
    "10:20 10:20:30 10:20:30.5 102030 1020 102030.25 am pm AM ad bc t T z Z utc PST PDT MSK EST5EDT Europe/Berlin "
    "europe/berlin GMT+8 +02 -08:30 +0530 -5 mon Monday y m d h mm s 5 31 366 1/8/1999 8.1.1999 , / - on at dst met "
    "allballs epoch infinity -infinity 12 24:00 24:00:00 23:59:60 2020 T102030 T10:20 102030-08 0 00 -1 . .5 foo Japan "
    "20200101T101112 y2001m02d04"
).split()
BETWEEN = ([" "] * 20, ["", " ", "-", "/", ".", ":", ","])

_EPOCH, _DAY, _MICRO = datetime(1970, 1, 1), timedelta(days=1), timedelta(microseconds=1)

READERS = {
    "date": lambda text: (scalars.read_date(text) - _EPOCH.date()) // _DAY,
    "time": read_time,
    "timestamp": lambda text: (scalars.read_timestamp(text) - _EPOCH) // _MICRO,
    "timestamptz": lambda text: (scalars.read_moment(text).replace(tzinfo=None) - _EPOCH) // _MICRO,
}
"""The number that a type's text is, or ``BadText``."""

_YEARS = (date(1, 1, 1), date(9999, 12, 31))
_DAYS = tuple((each - _EPOCH.date()) // _DAY for each in _YEARS)
CARRIED = {"date": range(_DAYS[0], _DAYS[1] + 1), "time": range(86_400_000_001)} | dict.fromkeys(
    ("timestamp", "timestamptz"), range(_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000)
)

THEIRS = """
create function read_as(given text, kind text) returns text language plpgsql as $$
declare found text;
begin
    execute case kind
        when 'time' then 'select (extract(epoch from $1::time) * 1000000)::int8::text'
        else format('select case when not isfinite($1::%s) then ''22008'' else %s end', kind, case kind
            when 'date' then '($1::date - date ''1970-01-01'')::text'
            else format('(extract(epoch from $1::%s) * 1000000)::int8::text', kind) end)
        end into found using given;
    return found;
exception when others then
    return sqlstate;
end $$
"""


INTERVAL_WORDS = (
    "1 2 -3 +4 0 1.5 -2.25 .5 1-2 -1-11 1-12 1:2 1:2:3 -1:2:3.5 +4:5 1:2.5 61:59:60 2147483647 2147483648 -0.7 9999999 "
    "9223372036854775807 year years y mon month m mm week w day days d hour h hr minute min second s sec ms us decade "
    "c millenniums microsecondish ago @ , - + quarter P1Y P1Y2M3DT4H5M6S PT36H P0001-02-03T04:05:06 P00010203T040506 "
    "P1W P-1.5Y PT.5S P1.5D P10.5e2M PT10:20 P0001 P1-2 P T P1 PT1 1year 5days10hours 3d at on foo infinity"
).split()
FIELDS = ("second", "day to hour", "minute to second", "year", "hour", "day to second", "year to month", "minute")


def _interval_texts() -> list[tuple[str, str]]:
    random_ = random.Random(SEED)
    found = []
    for _ in range(TEXTS):
        words = [random_.choice(INTERVAL_WORDS) for _ in range(random_.choice((1, 1, 2, 2, 3, 4)))]
        between = [random_.choice((" ", " ", " ", "", "-", ".")) for _ in words]
        text = "".join(word + each for word, each in zip(words, between, strict=True)).rstrip("-. ")
        found.append((text, random_.choice(FIELDS) if random_.random() < 0.3 else ""))
    return found


def _texts() -> list[tuple[str, str]]:
    random_ = random.Random(SEED)
    found = []
    for _ in range(TEXTS):
        between = random_.choice(BETWEEN)
        words = [random_.choice(WORDS) for _ in range(random_.choice((1, 1, 2, 2, 2, 3, 3, 4)))]
        text = "".join(word + random_.choice(between) for word in words)
        found.append((text, random_.choice(list(READERS))))
    return found


def _ours(text: str, kind: str) -> str:
    try:
        return str(READERS[kind](text))
    except BadText as error:
        return error.sqlstate


def _as_carried(theirs: str, kind: str) -> str:
    """What of PostgreSQL's answer can be one here."""
    refused = len(theirs) == 5 and theirs.startswith(("22", "0A"))
    return theirs if refused or int(theirs) in CARRIED[kind] else "22008"


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_same_texts_are_read_as_the_same():
    """Which of two errors a text of nonsense gets hangs on what is looked at first, so these are compared only roughly.

    Zones with a summer time by POSIX's rules (``EST5EDTMonday``) are refused here.
    """
    texts = _texts()
    with postgres() as peer:
        peer.execute("set timezone = 'UTC'")
        peer.execute(THEIRS)
        asked = (
            "select read_as(given, kind) from unnest(%s::text[], %s::text[]) with ordinality as t(given, kind, n)"
            " order by n"
        )
        answers = [row[0] for row in peer.execute(asked, [list(each) for each in zip(*texts, strict=True)]).fetchall()]
    values, errors, unlike = 0, 0, []
    for (text, kind), answer in zip(texts, answers, strict=True):
        theirs, ours = _as_carried(answer, kind), _ours(text, kind)
        values += theirs == ours and not theirs.startswith("22")
        errors += theirs != ours and theirs.startswith("22") and ours.startswith("22")
        if theirs != ours and ours != "0A000" and not (theirs.startswith("22") and ours.startswith("22")):
            unlike.append((text, kind, theirs, ours))
    assert unlike == []
    assert values > TEXTS // 20
    assert errors < TEXTS // 1000


INTERVAL_READ = """
create function interval_as(given text, fields text) returns text language plpgsql as $$
declare found interval;
begin
    execute format('select interval %L %s', given, fields) into found;
    return (extract(year from found) * 12 + extract(month from found)) || ' ' || extract(day from found) || ' '
        || (extract(hour from found) * 3600000000 + extract(minute from found) * 60000000
            + extract(microseconds from found))::int8;
exception when others then
    return sqlstate;
end $$
"""


def _interval(text: str, fields: str) -> str:
    try:
        kind = parse_type(f"interval {fields}") if fields else None
        found = read_interval(text, fields or None)
        return " ".join(map(str, found if kind is None else fitted_interval(found, kind)))
    except BadText as error:
        return error.sqlstate


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_same_intervals_are_read_as_the_same():
    texts = _interval_texts()
    with postgres() as peer:
        peer.execute(INTERVAL_READ)
        asked = (
            "select interval_as(given, f) from unnest(%s::text[], %s::text[]) with ordinality as t(given, f, n)"
            " order by n"
        )
        answers = [row[0] for row in peer.execute(asked, [list(each) for each in zip(*texts, strict=True)]).fetchall()]
    unlike = [(*text, theirs, _interval(*text)) for text, theirs in zip(texts, answers, strict=True)]
    unlike = [each for each in unlike if each[2] != each[3]]
    assert [each for each in unlike if not (each[2].startswith("22") and each[3].startswith("22"))] == []
    assert len(unlike) < TEXTS // 400
    assert sum(" " in each for each in answers) > TEXTS // 5
