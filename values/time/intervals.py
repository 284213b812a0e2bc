"""Intervals: months, days and microseconds, none of which is a fixed number of another.  Pure.

Promises: what :func:`show_interval` gives is what Postgres does with ``intervalstyle = postgres``; :func:`times`
multiplies as Postgres does, handing what is left of a month down to days (30 of them) and what is left of a day down to
the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from values.bad_text import BadText, cut_short

MICROS_PER_DAY = 86_400_000_000
DAYS_PER_MONTH = 30


class Interval(NamedTuple):
    months: int = 0
    days: int = 0
    micros: int = 0

    @property
    def length(self) -> int:
        """By what Postgres compares two of them: microseconds, a month taken for 30 days and a day for 24 hours."""
        return (self.months * DAYS_PER_MONTH + self.days) * MICROS_PER_DAY + self.micros


def as_interval(value: Interval | dict[str, int] | Iterable[int]) -> Interval:
    """An interval from any of the forms that engines give one in."""
    return Interval(**value) if isinstance(value, dict) else Interval(*value)


def checked(months: int, days: int, micros: int) -> Interval:
    """The interval.  Raises ``BadText`` 22015 where a part does not fit (32, 32 and 64 bits)."""
    if abs(2 * months + 1) >= 1 << 32 or abs(2 * days + 1) >= 1 << 32 or abs(2 * micros + 1) >= 1 << 64:
        raise BadText("interval out of range", "22015")
    return Interval(months, days, micros)


_MICROS = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
_NAMES = {
    "microsecond": "microseconds us usec usecs useconds usecond microsecon",
    "millisecond": "milliseconds ms msec msecs mseconds msecond",
    "second": "seconds s sec secs", "minute": "minutes m min mins", "hour": "hours h hr hrs",
    "day": "days d", "week": "weeks w", "month": "months mon mons", "year": "years y yr yrs",
    "decade": "decades dec decs", "century": "centuries c cent", "millennium": "millennia mil mils",
}  # fmt: skip
UNITS = {name: unit for unit, names in _NAMES.items() for name in (unit, *names.split())}
"""Every name of a unit that Postgres takes, and the unit."""

def show_interval(value: Interval) -> str:
    """``1 year 2 mons -3 days +04:05:06.7``."""
    years, months = _truncated(value.months, 12)
    text, negative = "", False
    for number, unit in ((years, "year"), (months, "mon"), (value.days, "day")):
        if number:
            plus = "+" if negative and number > 0 else ""
            text += f"{' ' if text else ''}{plus}{number} {unit}{'' if number == 1 else 's'}"
            negative = number < 0
    if value.micros or not text:
        seconds, fraction = divmod(abs(value.micros), 1_000_000)
        sign = "-" if value.micros < 0 else "+" if negative else ""
        tail = f".{fraction:06d}".rstrip("0") if fraction else ""
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"
        text += f"{' ' if text else ''}{sign}{clock}"
    return text


def _truncated(number: int, by: int) -> tuple[int, int]:
    """Quotient towards zero, and the remainder with the number's sign."""
    quotient = abs(number) // by * (-1 if number < 0 else 1)
    return quotient, number - quotient * by


def times(value: Interval, factor: float) -> Interval:
    """``value * factor``.  Raises ``BadText`` 22008 where it does not fit or ``factor`` is not finite."""
    return _scaled(value, lambda number: number * factor)


def divided(value: Interval, divisor: float) -> Interval:
    """``value / divisor``.  Raises ``BadText`` 22012 by zero, 22008 where it does not fit."""
    if divisor == 0:
        raise BadText("division by zero", "22012")
    return _scaled(value, lambda number: number / divisor)


def _scaled(value: Interval, scale: Callable[[int], float]) -> Interval:
    months, days, time = scale(value.months), scale(value.days), scale(value.micros)
    if not all(math.isfinite(each) for each in (months, days, time)):
        raise BadText("interval out of range", "22008")
    if abs(months) >= 1 << 31 or abs(days) >= 1 << 31:
        raise BadText("interval out of range", "22008")
    whole_months, whole_days = int(months), int(days)
    # To the microsecond, as Postgres does (TSROUND): 1 month * 0.1 is 3 days, not 2 days 23:59:59.999999.
    left_days = round((months - whole_months) * DAYS_PER_MONTH, 6)
    seconds = round((days - whole_days + left_days - int(left_days)) * 86_400, 6)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    micros = time + seconds * 1_000_000
    if abs(micros) >= 1 << 63:
        raise BadText("interval out of range", "22008")
    return checked(whole_months, whole_days + int(left_days), round(micros))


def _carried(low: int, high: int, size: int) -> tuple[int, int]:
    """``(low, high)`` with whole ``size``s of ``low`` handed up, towards zero."""
    whole = abs(low) // size * (1 if low >= 0 else -1)
    return low - whole * size, high + whole


def _same_sign(low: int, high: int, size: int) -> tuple[int, int]:
    if high > 0 > low:
        return low + size, high - 1
    if high < 0 < low:
        return low - size, high + 1
    return low, high


def justified_hours(value: Interval) -> Interval:
    """``justify_hours``: whole days of the time become days.  Raises ``BadText`` 22008 (so do the others)."""
    micros, days = _same_sign(*_carried(value.micros, value.days, MICROS_PER_DAY), MICROS_PER_DAY)
    return in_range(value.months, days, micros)


def justified_days(value: Interval) -> Interval:
    """``justify_days``: thirty days become a month."""
    days, months = _same_sign(*_carried(value.days, value.months, DAYS_PER_MONTH), DAYS_PER_MONTH)
    return in_range(months, days, value.micros)


def justified(value: Interval) -> Interval:
    """``justify_interval``: both, and all parts of one sign."""
    micros, days = _carried(value.micros, value.days, MICROS_PER_DAY)
    days, months = _carried(days, value.months, DAYS_PER_MONTH)
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        days, months = days + DAYS_PER_MONTH, months - 1
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        days, months = days - DAYS_PER_MONTH, months + 1
    micros, days = _same_sign(micros, days, MICROS_PER_DAY)
    return in_range(months, days, micros)


_WHOLE_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_NAMES_CUT = {**UNITS, "quarter": "quarter", "qtr": "quarter"}


def truncated(name: str, value: Interval) -> Interval:
    """``date_trunc`` of an interval, towards nothing.  Raises ``BadText`` 22023, and 0A000 for weeks, of which months
    have no whole number."""
    unit = _NAMES_CUT.get(name.lower())
    if unit is None:
        raise BadText(f'unit "{cut_short(name.lower())}" not recognized for type interval', "22023")
    if unit == "week":
        raise BadText('unit "week" not supported for type interval', "0A000")
    if unit in _WHOLE_MONTHS:
        size = _WHOLE_MONTHS[unit]
        return Interval(value.months - int(math.fmod(value.months, size)))
    if unit == "day":
        return Interval(value.months, value.days)
    return value._replace(micros=value.micros - int(math.fmod(value.micros, _MICROS[unit])))


def in_range(months: int, days: int, micros: int) -> Interval:
    """The interval.  Raises ``BadText`` 22008 where a part does not fit."""
    try:
        return checked(months, days, micros)
    except BadText as error:
        raise BadText(error.message, "22008") from None
