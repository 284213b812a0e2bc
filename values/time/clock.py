"""Times of day as microseconds since midnight, 0 to 86,400,000,000: Postgres's day has a 24:00:00.  Pure."""

from __future__ import annotations

import re

from values.time.date_words import read_time_words

MICROS_PER_DAY = 86_400_000_000

_PLAIN = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
"""What most texts are."""


def read_time(text: str) -> int:
    """A time of day; a date before it and a zone behind it say nothing, as in Postgres.

    Raises ``BadText`` 22007 or 22008, and what a zone may be refused with.
    """
    match = _PLAIN.fullmatch(text)
    if match is None:
        return read_time_words(text)
    hour, minute, second, fraction = match.groups()
    seconds = (int(hour) * 60 + int(minute)) * 60 + int(second)
    return seconds * 1_000_000 + (int(fraction.ljust(6, "0")) if fraction else 0)


def show_time(micros: int) -> str:
    """``04:05:06.7``, as Postgres shows it."""
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{tail}"
