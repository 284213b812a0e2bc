"""Times of day as microseconds since midnight, 0 to 86,400,000,000: Postgres's day has a 24:00:00.  Pure."""

from __future__ import annotations

import re

from collection.bad_text import BadText, bad_text

MICROS_PER_DAY = 86_400_000_000

_TIME = re.compile(
    r"(?:\d{4,}-\d{1,2}-\d{1,2}(?:\s+|(?=t)))?"
    r"t?(\d{1,9}):(\d{1,9})(?::(\d{1,9})(\.\d*)?)?\s*(am|pm)?"
    r"(?:z|\s*(?:utc|gmt)|[+-]\d{1,2}(?::?\d{2})?)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"t?(\d{2})(\d{2})(\d{2})(\.\d*)?", re.IGNORECASE)


def read_time(text: str) -> int:
    """A time of day; a date before it and a zone behind it say nothing, as in Postgres.

    Raises ``BadText`` 22007 or 22008.
    """
    value = text.strip()
    match = _TIME.fullmatch(value)
    half = match[5] if match else None
    match = match or _DIGITS.fullmatch(value)
    if not match:
        raise BadText(bad_text("time", text).message, "22007")
    hour, minute, second = (int(match[n] or 0) for n in (1, 2, 3))
    wrong = BadText(f'date/time field value out of range: "{text}"', "22008")
    if half is not None:
        if not 1 <= hour <= 12:
            raise wrong
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    micros = round(float("0" + match[4]) * 1_000_000) if match[4] and match[4] != "." else 0
    found = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    if minute > 59 or second > 60 or found > MICROS_PER_DAY:
        raise wrong
    return found


def show_time(micros: int) -> str:
    """``04:05:06.7``, as Postgres shows it."""
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{tail}"
