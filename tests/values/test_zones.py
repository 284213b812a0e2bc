"""Moments and local times: Postgres's choice where clocks skip or repeat, said in what Java has, and texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import _zoneinfo, available_timezones

import pytest

from values.bad_text import BadText
from values.time import zones
from values.time.intervals import Interval

DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)


def micros(*parts: int) -> int:
    return (datetime(*parts) - _EPOCH) // timedelta(microseconds=1)


def test_no_zone_changes_its_clocks_so_that_sparks_form_is_wrong():
    """``TM_TO_UTC`` (:mod:`lower.spark.forms`) around every change of every zone, reckoned as Java does it."""
    wrong, asked, seen = [], 0, set()
    for name in sorted(available_timezones()):
        zone, kept = zones.zone_named(name), _zoneinfo.ZoneInfo.no_cache(name)
        changes = tuple((at, info.utcoff) for at, info in zip(kept._trans_utc, kept._ttinfos, strict=True))
        if zone is None or changes in seen:
            continue
        seen.add(changes)

        def of_java(at: datetime, zone=zone) -> datetime:
            return at - at.replace(tzinfo=zone).utcoffset()

        def shown(at: datetime, zone=zone) -> datetime:
            return at.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)

        for number, (at, after) in enumerate(changes):
            before = changes[number - 1][1] if number else kept._tti_before.utcoff
            for part in (-0.1, 0.0, 0.5, 0.99):  # of what is skipped or repeated
                local = _EPOCH + timedelta(seconds=at) + min(before, after) + abs(after - before) * part
                later = of_java(local + DAY) - DAY
                asked += 1
                if (later if shown(later) == local else of_java(local)) != zones.instant_of(local, zone):
                    wrong.append((name, local))
    assert asked > 10_000 and not wrong


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ((2024, 3, 31, 2, 30), (2024, 3, 31, 1, 30)),
        ((2024, 10, 27, 2, 30), (2024, 10, 27, 1, 30)),
        ((2024, 7, 1), (2024, 6, 30, 22)),
        ((1890, 1, 1), (1889, 12, 31, 23, 6, 32)),
    ],
)
def test_a_local_time_means_the_moment_that_postgres_takes(local, utc):
    assert zones.instant(micros(*local), "Europe/Berlin") == micros(*utc)


@pytest.mark.parametrize(
    ("at", "zone", "text"),
    [
        ((2024, 1, 1), "Europe/Berlin", "2024-01-01 01:00:00+01"),
        ((2024, 1, 1), "Asia/Kathmandu", "2024-01-01 05:45:00+05:45"),
        ((1890, 1, 1), "Europe/Berlin", "1890-01-01 00:53:28+00:53:28"),
        ((2024, 1, 1, 0, 0, 0, 120), "America/New_York", "2023-12-31 19:00:00.00012-05"),
        ((30, 5, 6), "UTC", "0030-05-06 00:00:00+00"),
    ],
)
def test_the_text_of_a_moment(at, zone, text):
    assert zones.moment_text(micros(*at), zone) == text


def test_days_go_by_the_clocks_and_hours_by_the_time_that_passes():
    start = micros(2024, 3, 30, 11)
    assert zones.shifted(start, Interval(0, 1, 0), "Europe/Berlin") == micros(2024, 3, 31, 10)
    assert zones.shifted(start, Interval(0, 0, 24 * 3_600_000_000), "Europe/Berlin") == micros(2024, 3, 31, 11)
    repeated = micros(2024, 10, 27, 0, 30)  # the first of two, which nothing may make the second
    assert zones.shifted(repeated, Interval(0, 0, 1), "Europe/Berlin") == repeated + 1


def test_age_across_a_repeated_hour_is_refused():
    with pytest.raises(BadText) as told:
        zones.age(micros(2024, 10, 27, 1, 5), micros(2024, 10, 27, 0, 50), "Europe/Berlin")
    assert told.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    "name", ["right/Europe/Berlin", "posix/Europe/Berlin", "localtime", "../zone", "Mars/Base", ""]
)
def test_what_is_no_zone(name):
    assert zones.zone_named(name) is None
