"""Intervals in any of the spellings that Postgres reads with ``intervalstyle = postgres``.  Pure.

A text is cut into words (:mod:`values.time.words`) and these are read from the last one on, since a unit stands behind
its number.  What is none by that may be ISO 8601's (``P1Y2M3DT4H5M6S``, ``P0001-02-03T04:05:06``).  Fractions go by
floats, as in Postgres: to the microsecond they show.
"""

from __future__ import annotations

import re

from values.bad_text import BadText, bad_text, cut_short
from values.time.intervals import DAYS_PER_MONTH, MICROS_PER_DAY, UNITS, Interval, in_range
from values.time.words import Malformed, Word, split

CHARS_MAX = 256
"""Postgres's, of all words with an end to each."""

_MICROS = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_TIME = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
_TOKEN_CHARS = 10
"""Of a word Postgres compares no more: ``millenniums`` is a unit too."""

_BY_TOKEN = {name[:_TOKEN_CHARS]: unit for name, unit in UNITS.items()} | dict.fromkeys(("quarter", "qtr"), "quarter")
_NO_NUMBER = ("ago", "quarter")
"""Words that say nothing of a number before them."""


class _OutOfRange(Exception):
    """22015"""


def read_interval(text: str, fields: str | None = None) -> Interval:
    """An interval.  ``fields`` are those that it was declared with: a number without a unit is of the last one.  What
    has no place in them is not cut off here.  Raises ``BadText`` 22007, 22015 (a field) or 22008 (all) out of range.
    """
    try:
        try:
            found = _Sum().words(split(text, CHARS_MAX), fields or "second")
        except Malformed:
            found = _Sum().iso(text)
    except Malformed:
        raise BadText(bad_text("interval", text).message, "22007") from None
    except _OutOfRange:
        raise BadText(f'interval field value out of range: "{cut_short(text)}"', "22015") from None
    return in_range(found.years * 12 + found.months, found.days, found.micros)


class _Sum:
    """What was read so far; each part has the size that Postgres gives it."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.micros = 0

    def _add(self, part: str, number: int) -> None:
        bits = 63 if part == "micros" else 31
        found = getattr(self, part) + number
        if not -(1 << bits) <= found < 1 << bits:
            raise _OutOfRange
        setattr(self, part, found)

    def _add_unit(self, unit: str, whole: int, fraction: float) -> None:
        if unit in _MICROS:
            self._add("micros", whole * _MICROS[unit])
            self._add_micros(fraction * _MICROS[unit])
        elif unit in _YEARS:
            self._add("years", whole * _YEARS[unit])
            self._add("months", round(fraction * _YEARS[unit] * 12))
        else:
            part, days = ("months", DAYS_PER_MONTH) if unit == "month" else ("days", 7 if unit == "week" else 1)
            self._add(part, whole * (7 if unit == "week" else 1))
            extra = 0 if unit == "day" else int(fraction * days)
            self._add("days", extra)
            self._add_micros((fraction * days - extra) * MICROS_PER_DAY)

    def _add_micros(self, number: float) -> None:
        whole = int(number)
        rest = number - whole
        self._add("micros", whole + (rest > 0.5) - (rest < -0.5))

    # -- words --------------------------------------------------------------------------------------------------------

    def words(self, words: list[Word], fields: str) -> _Sum:
        said: set[str] = set()
        unit, ago = "", False
        for kind, text in reversed(words):
            now_said: set[str] = set()
            if kind == "time" or (kind == "offset" and ":" in text and _clock(text[1:], fields) is not None):
                micros = _clock(text.lstrip("+-"), fields)
                if micros is None:
                    raise Malformed
                # As Postgres: what stands behind a time of day and is a fraction of a day is gone.
                self.micros = -micros if text.startswith("-") else micros
                now_said, unit = set(_TIME), "day"
            elif kind in ("date", "number", "offset"):
                unit, now_said = self._number(text, unit or fields.split()[-1])
                unit = "day" if unit == "hour" else unit
            elif text == "ago":
                ago, unit = True, "ago"
            else:
                unit = _BY_TOKEN.get(text[:_TOKEN_CHARS] if kind == "word" else text, "")
                if not unit:
                    raise Malformed
            if now_said & said:
                raise Malformed
            said |= now_said
        if not said:
            raise Malformed
        if ago:
            for part in ("years", "months", "days", "micros"):
                number = -getattr(self, part)
                setattr(self, part, 0)
                self._add(part, number)
        return self

    def _number(self, text: str, unit: str) -> tuple[str, set[str]]:
        """A number of ``unit``, or years and months (``1-2``): its unit, and what it said."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise Malformed
        negative, whole = text.startswith("-"), _int64(match["whole"])
        if match["months"] is not None:
            months = _int64(match["months"])
            if not 0 <= months <= 11:
                raise _OutOfRange
            self._add("months", whole * 12 + (-months if negative else months))
            return "month", {"month"}
        if unit in _NO_NUMBER:
            raise Malformed
        fraction = float(f"0{match['fraction']}") if len(match["fraction"] or "") > 1 else 0.0
        self._add_unit(unit, whole, -fraction if negative else fraction)
        return unit, {"second", "millisecond", "microsecond"} if unit == "second" and fraction else {unit}

    # -- ISO 8601 -----------------------------------------------------------------------------------------------------

    def iso(self, text: str) -> _Sum:
        if len(text) < 2 or text[0] != "P":
            raise Malformed
        at, units, any_before = 1, _ISO_DATE, False
        while at < len(text):
            if text[at] == "T":
                at, units, any_before = at + 1, _ISO_TIME, False
                continue
            digits = len(_LEADING.match(text, at)[1])
            whole, fraction, at = _iso_number(text, at)
            end = text[at : at + 1]
            if end in units and end:
                self._add_unit(units[end], whole, fraction)
                at, any_before = at + 1, True
                continue
            alone = not any_before and digits == (8 if units is _ISO_DATE else 6)
            if alone and end in (("", "T") if units is _ISO_DATE else ("",)):
                self._run_together(whole, fraction, units)
                continue
            if any_before or end not in (("", "T", "-") if units is _ISO_DATE else ("", ":")):
                raise Malformed
            at = self._extended(text, at, whole, fraction, units)
        return self

    def _run_together(self, whole: int, fraction: float, units: dict[str, str]) -> None:
        """``P00010203``, ``PT040506``."""
        high, low = int(whole / 10_000), abs(whole) % 10_000
        sign = -1 if whole < 0 else 1
        names = ("year", "month", "day") if units is _ISO_DATE else ("hour", "minute", "second")
        for name, part in zip(names, (high, sign * (low // 100), sign * (low % 100)), strict=True):
            self._add_unit(name, part, 0.0)
        self._add_micros(fraction * (MICROS_PER_DAY if units is _ISO_DATE else 1))

    def _extended(self, text: str, at: int, whole: int, fraction: float, units: dict[str, str]) -> int:
        """``P0001-02-03``, ``PT04:05:06``: from behind the first number on.  Where it ends."""
        names = ["year", "month", "day"] if units is _ISO_DATE else ["hour", "minute", "second"]
        between = "-" if units is _ISO_DATE else ":"
        self._add_unit(names.pop(0), whole, fraction)
        while text[at : at + 1] == between and names:
            whole, fraction, at = _iso_number(text, at + 1)
            self._add_unit(names.pop(0), whole, fraction)
        if at < len(text) and (text[at] != "T" or units is _ISO_TIME):
            raise Malformed
        return at


_NUMBER = re.compile(r"(?P<whole>[+-]?\d*)(?:-(?P<months>[+-]?\d*)|(?P<fraction>\.\d*))?", re.ASCII)
_LEADING = re.compile(r"-?(\d*)", re.ASCII)
_ISO_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ISO_LIMIT = 1e15
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}


def _int64(digits: str) -> int:
    number = int(digits) if digits.strip("+-") else 0
    if not -(1 << 63) <= number < 1 << 63:
        raise _OutOfRange
    return number


def _iso_number(text: str, at: int) -> tuple[int, float, int]:
    """The number that begins at a place, its fraction apart, and where it ends."""
    match = _ISO_NUMBER.match(text, at)
    if match is None:
        raise Malformed
    number = float(match[0])
    if abs(number) > _ISO_LIMIT:
        raise _OutOfRange
    return int(number), number - int(number), match.end()


_CLOCK = re.compile(r"(\d+):(\d*)(?::(\d*))?(\.\d*)?", re.ASCII)


def _clock(text: str, fields: str) -> int | None:
    """The microseconds of ``4:05:06.7``; ``None`` where it is no time."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = _int64(match[1]), int(match[2] or 0), int(match[3] or 0)
    if match[3] is None and (match[4] is not None or fields == "minute to second"):
        hour, minute, second = 0, hour, minute
    micros = round(float(f"0{match[4]}") * 1_000_000) if len(match[4] or "") > 1 else 0
    if minute > 59 or second > 60 or micros > 1_000_000:
        raise _OutOfRange
    return _int64(str((hour * 3600 + minute * 60 + second) * 1_000_000 + micros))
