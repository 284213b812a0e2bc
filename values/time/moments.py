"""Timestamps as microseconds since 1970: what Postgres reckons with their years, months and days.  Pure.

Timestamps are of the proleptic Gregorian calendar without zones; those of ``timestamptz`` come as UTC.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Callable
from datetime import datetime, timedelta

from values.bad_text import BadText, cut_short
from values.time.intervals import MICROS_PER_DAY, UNITS, Interval, checked

_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)

SERIES_MAX = 1_000_000
"""Rows of one series by months, which is made as a whole: as many months as 80,000 years have."""


def _calendar(micros: int) -> datetime:
    """Raises ``BadText`` 22008 outside of the years 1 to 9999, which are all that timestamps have here."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise BadText("timestamp out of range", "22008") from None


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICRO


def age(later: int, earlier: int) -> Interval:
    """``age(later, earlier)``: years, months, days and time between them, counted along the calendar."""
    a, b = _calendar(later), _calendar(earlier)
    sign = -1 if later < earlier else 1
    fields = [
        sign * (getattr(a, name) - getattr(b, name))
        for name in ("year", "month", "day", "hour", "minute", "second", "microsecond")
    ]
    year, month, day, hour, minute, second, micro = fields
    second, micro = second + micro // 1_000_000, micro % 1_000_000
    minute, second = minute + second // 60, second % 60
    hour, minute = hour + minute // 60, minute % 60
    day, hour = day + hour // 24, hour % 24
    # Days that are borrowed are of the month of the earlier one.
    lender = a if sign < 0 else b
    while day < 0:
        day += monthrange(lender.year, lender.month)[1]
        month -= 1
    year, month = year + month // 12, month % 12
    time = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro
    return Interval(sign * (12 * year + month), sign * day, sign * time)


def binned(stride: Interval, moment: int, origin: int) -> int:
    """``date_bin``: the start of the interval of length ``stride``, counted from ``origin``, that ``moment`` is in.

    Raises ``BadText`` 0A000 for a stride with months, 22008 for one that is not positive.
    """
    if stride.months:
        raise BadText("timestamps cannot be binned into intervals containing months or years", "0A000")
    length = stride.days * MICROS_PER_DAY + stride.micros
    if length <= 0:
        raise BadText("stride must be greater than zero", "22008")
    return origin + (moment - origin) // length * length


_SIZES = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
          "day": MICROS_PER_DAY}  # fmt: skip
_MONTHS_OF = {"month": 1, "quarter": 3}
_YEARS_OF = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
TRUNCATED_TO = {**UNITS, "quarter": "quarter", "qtr": "quarter"}
"""Every name of what ``date_trunc`` cuts to, and the unit."""


def truncated_to(name: str, shown: str) -> str:
    """The unit of that name.  Raises ``BadText`` 22023; ``shown`` is the type that is cut."""
    found = TRUNCATED_TO.get(name.lower())
    if found is None:
        raise BadText(f'unit "{cut_short(name.lower())}" not recognized for type {shown}', "22023")
    return found


def truncated(name: str, micros: int) -> int:
    """``date_trunc`` of a timestamp.  Raises ``BadText`` 22023, and 22008 for the decade of the years before 10."""
    return cut_to(truncated_to(name, "timestamp without time zone"), micros)


def cut_to(unit: str, micros: int) -> int:
    """A timestamp cut to a unit."""
    if unit in _SIZES:
        return micros - micros % _SIZES[unit]
    at = _calendar(micros)
    midnight = datetime(at.year, at.month, at.day)
    if unit == "week":
        return _micros(midnight) - at.weekday() * MICROS_PER_DAY
    if unit in _MONTHS_OF:
        return _micros(datetime(at.year, at.month - (at.month - 1) % _MONTHS_OF[unit], 1))
    years = _YEARS_OF[unit]
    first = at.year - at.year % years if years <= 10 else at.year - (at.year - 1) % years
    if first < 1:
        raise BadText("timestamp out of range", "22008")
    return _micros(datetime(first, 1, 1))


def made_time(hour: int, minute: int, second: float) -> int:
    """``make_time``: microseconds since midnight.  Raises ``BadText`` 22008."""
    wrong = BadText(f"time field value out of range: {hour}:{minute:02d}:{second:02g}", "22008")
    if not (0 <= hour <= 24 and 0 <= minute <= 59 and math.isfinite(second)):
        raise wrong
    micros = round(second * 1_000_000)
    found = (hour * 60 + minute) * 60_000_000 + micros
    if not 0 <= micros <= 60_000_000 or found > MICROS_PER_DAY:
        raise wrong
    return found


def made_date(year: int, month: int, day: int) -> int:
    """``make_date``: its beginning.  Raises ``BadText`` 22008, also for a year that is there and not carried here."""
    try:
        return _micros(datetime(year, month, day))
    except (ValueError, OverflowError):
        raise _no_date(year, month, day) from None


def _no_date(year: int, month: int, day: int) -> BadText:
    why = "" if 1 <= year <= 9999 or year == 0 else " (here are the years 1 to 9999)"
    return BadText(f"date field value out of range: {year}-{month:02d}-{day:02d}{why}", "22008")


def made_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    """``make_timestamp``.  Raises ``BadText`` 22008."""
    return made_date(year, month, day) + made_time(hour, minute, second)


def made_interval(years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float) -> Interval:
    """``make_interval``.  Raises ``BadText`` 22008."""
    try:
        micros = round(seconds * 1_000_000)
        return checked(12 * years + months, 7 * weeks + days, (hours * 60 + minutes) * 60_000_000 + micros)
    except (BadText, ValueError, OverflowError):
        raise BadText("interval out of range", "22008") from None


def shifted(micros: int, by: Interval) -> int:
    """``timestamp + interval``: months first, to the last day where the month is shorter, then days, then time."""
    moment = _calendar(micros)
    month = moment.year * 12 + moment.month - 1 + by.months
    year, month = month // 12, month % 12 + 1
    if not 1 <= year <= 9999:
        raise BadText("timestamp out of range", "22008")
    day = min(moment.day, monthrange(year, month)[1])
    found = _micros(moment.replace(year=year, month=month, day=day)) + by.days * MICROS_PER_DAY + by.micros
    _calendar(found)
    return found


def stepped(
    start: int, end: int, step: Interval, add: Callable[[int, Interval], int] = shifted
) -> list[int]:
    """``generate_series(start, end, step)``: each moment is the one before it and a step, which ``add`` adds.

    Raises ``BadText`` 22023 for a step of nothing, 54000 for more than ``SERIES_MAX``.
    """
    if not step.length:
        raise BadText("step size cannot equal zero", "22023")
    found: list[int] = []
    at, up = start, step.length > 0
    if abs(end - start) // (SERIES_MAX * abs(step.length)) > 1:  # known beforehand: months are not twice as long
        raise BadText(f"a series of more than {SERIES_MAX} moments", "54000")
    while at <= end if up else at >= end:
        if len(found) >= SERIES_MAX:
            raise BadText(f"a series of more than {SERIES_MAX} moments", "54000")
        found.append(at)
        try:
            at = add(at, step)
        except BadText:  # no timestamp, so behind the last one wherever that is
            break
    return found
