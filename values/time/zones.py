"""Moments in time zones, as Postgres reckons with them: which moment a local time means, and what time it is there.

Promises, of local times that a change of the zone's offset skips or repeats: a skipped one is read with the offset
before the change (so it is as much later as was skipped), a repeated one with that behind it (so it is the second).
That is Postgres's choice; Java takes the first of two, and Python whichever ``fold`` says.

Moments and local times are microseconds since 1970.  Zones are names of the tz database.  Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from values.bad_text import BadText
from values.time import moments
from values.time.intervals import Interval

ALWAYS_UTC = frozenset(
    "utc gmt z zulu uct universal greenwich gmt0 gmt+0 gmt-0 +00 -00 +00:00 -00:00 etc/utc etc/gmt etc/uct "
    "etc/universal etc/zulu etc/greenwich etc/gmt0 etc/gmt+0 etc/gmt-0".split()
)
"""Names of UTC, in lower case."""

_NOT_NAMES = ("right/", "posix/", "posixrules", "localtime", "Factory", "leapseconds", "tzdata")
"""Files beside the zones: those of ``right/`` count leap seconds, which no engine does, the others are no names."""

_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)


@lru_cache(maxsize=1024)
def zone_named(name: str) -> ZoneInfo | None:
    """The zone of that name, ``None`` where the tz database has none."""
    if name.startswith(_NOT_NAMES):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _zone(name: str) -> ZoneInfo:
    found = zone_named(name)
    if found is None:
        raise BadText(f'time zone "{name}" not recognized', "22023")
    return found


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC and without a zone, that a local time means.  Raises ``OverflowError`` outside of years 1 to
    9999."""
    first, second = (local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return local - min(first, second)


def _calendar(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise BadText("timestamp out of range", "22008") from None


def offset_of(micros: int, zone: str) -> int:
    """Microseconds by which the zone is ahead of UTC at a moment."""
    try:
        return _calendar(micros).replace(tzinfo=UTC).astimezone(_zone(zone)).utcoffset() // _MICRO
    except OverflowError:  # beyond Python's calendar no zone has rules
        return 0


def zone_abbreviation(micros: int, zone: str) -> str:
    """What the zone's offset is called at a moment: ``EST``."""
    return _calendar(micros).replace(tzinfo=UTC).astimezone(_zone(zone)).tzname()


def local(micros: int, zone: str) -> int:
    """What time it is in the zone: ``timestamptz AT TIME ZONE zone``."""
    return micros + offset_of(micros, zone)


def instant(micros: int, zone: str) -> int:
    """The moment at which it is that time in the zone: ``timestamp AT TIME ZONE zone``."""
    try:
        return (instant_of(_calendar(micros), _zone(zone)) - _EPOCH) // _MICRO
    except OverflowError:
        raise BadText("timestamp out of range", "22008") from None


def shifted(micros: int, by: Interval, zone: str) -> int:
    """``timestamptz + interval``: months and then days by the clocks of the zone, and then the time that passes."""
    for step in (Interval(by.months, 0, 0), Interval(0, by.days, 0)):
        if any(step):
            micros = instant(moments.shifted(local(micros, zone), step), zone)
    found = micros + by.micros
    _calendar(found)
    return found


_OF_CLOCKS = frozenset({"microsecond", "millisecond", "second", "minute", "hour"})


def truncated(name: str, micros: int, zone: str) -> int:
    """``date_trunc`` of a moment: days and what is longer by the calendar of the zone.  What is shorter is how much has
    passed since it began on the zone's clocks, so that of two hours of one name each stays itself."""
    unit, here = moments.truncated_to(name, "timestamp with time zone"), local(micros, zone)
    cut = moments.cut_to(unit, here)
    return micros - (here - cut) if unit in _OF_CLOCKS else instant(cut, zone)


def stepped(start: int, end: int, step: Interval, zone: str) -> list[int]:
    """``generate_series(start, end, step)`` of timestamptz, as :func:`values.time.moments.stepped` makes one."""
    return moments.stepped(start, end, step, lambda at, by: shifted(at, by, zone))


def offset_text(seconds: int) -> str:
    """An offset from UTC as Postgres writes it: ``+00``, ``+05:30``, ``-00:44:30``."""
    sign = "-" if seconds < 0 else "+"
    minutes, second = divmod(abs(seconds), 60)
    text = f"{sign}{minutes // 60:02d}"
    if minutes % 60 or second:
        text += f":{minutes % 60:02d}"
    return f"{text}:{second:02d}" if second else text


def moment_text(micros: int, zone: str) -> str:
    """``timestamptz::text`` in the zone."""
    offset = offset_of(micros, zone)
    at = _calendar(micros + offset)
    fraction = f".{at.microsecond:06d}".rstrip("0") if at.microsecond else ""
    return f"{at:%H:%M:%S}".join((f"{at.year:04d}-{at:%m-%d} ", fraction)) + offset_text(offset // 1_000_000)


def age(later: int, earlier: int, zone: str) -> Interval:
    """``age(timestamptz, timestamptz)``: along the calendar and the clocks of the zone.

    Raises ``BadText`` 0A000 where the clocks went back between the two, so that the later one shows the earlier time.
    """
    a, b = local(later, zone), local(earlier, zone)
    if (later < earlier) != (a < b) and later != earlier and a != b:
        raise BadText("age across an hour that the clocks repeat", "0A000")
    return moments.age(a, b)

