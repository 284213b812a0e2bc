"""Dates and timestamps as Postgres shows them, from the numbers that carry them.  Pure."""

from __future__ import annotations

from datetime import date

from values.time.intervals import MICROS_PER_DAY

_ordinal_epoch = date(1970, 1, 1).toordinal()


def show_date(days: int) -> str:
    """``days`` since 1970-01-01: ``2024-01-31``, ``0044-03-15 BC``."""
    return "".join(_date_parts(days))


def show_timestamp(micros: int) -> str:
    """``micros`` since 1970: ``2024-01-31 23:59:59.5``."""
    return show_moment(micros, "")


def show_moment(micros: int, offset: str) -> str:
    """The same with a zone's offset (``+00``), which stands before the era."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text, era = _date_parts(days)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{text} {minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{tail}{offset}{era}"


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the proleptic Gregorian calendar, for any day number (H. Hinnant's days algorithms).

    Year 0 is 1 BC.
    """
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _date_parts(days: int) -> tuple[str, str]:
    """The date and the era's suffix."""
    ordinal = days + _ordinal_epoch
    if 1 <= ordinal <= 3_652_059:
        return date.fromordinal(ordinal).isoformat(), ""
    year, month, day = civil(days)
    if year > 0:
        return f"{year:04d}-{month:02d}-{day:02d}", ""
    return f"{1 - year:04d}-{month:02d}-{day:02d}", " BC"
