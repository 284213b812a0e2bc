"""Days as numbers, of years before Christ too: what astronomers count, and years of ISO weeks.  Pure."""

from __future__ import annotations

DAYS_TO_1970 = 2_440_588
"""The number that astronomers give 1970-01-01."""


def julian(year: int, month: int, day: int) -> int:
    """The number of a day of the proleptic Gregorian calendar, whose year 0 is 1 BC."""
    late = month > 2
    years = year + 4800 if late else year + 4799
    months = month + 1 if late else month + 13
    century = years // 100
    return years * 365 - 32167 + years // 4 - century + century // 4 + 7834 * months // 256 + day


def date_of(number: int) -> tuple[int, int, int]:
    """The year, month and day that a number means."""
    quads, rest = divmod(number + 32044, 146_097)
    centuries = min(rest // 36_524, 3)
    rest -= centuries * 36_524
    fours, rest = divmod(rest, 1461)
    years = min(rest // 365, 3)
    day_of_year = rest - years * 365
    month = (day_of_year * 5 + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    year = quads * 400 + centuries * 100 + fours * 4 + years - 4800 + (month >= 10)
    return year, month + 3 if month < 10 else month - 9, day


def iso_start(year: int) -> int:
    """The number of the Monday that an ISO year begins with."""
    fourth = julian(year, 1, 4)
    return fourth - fourth % 7


def iso_of(number: int) -> tuple[int, int, int]:
    """The ISO year, week and day of the week of a day's number."""
    year = date_of(number - number % 7 + 3)[0]
    return year, (number - iso_start(year)) // 7 + 1, number % 7 + 1


def quotient_and_rest(number: int, by: int) -> tuple[int, int]:
    """Quotient and rest as C has them, both of the number's sign."""
    quotient = abs(number) // by * (-1 if number < 0 else 1)
    return quotient, number - quotient * by
