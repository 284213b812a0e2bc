"""Dates, times and timestamps in any of the spellings that Postgres reads, with ``DateStyle`` MDY.  Pure.

A text is cut into words (:mod:`values.time.words`); then each word, in order, says fields of a date or a
time by its form and by what was said before it (:class:`_Reading`): ``08`` is a month, or a day behind a month's name.
No field may be said twice.  Both steps follow Postgres's, which have grown for decades; texts
of all kinds are put to both in ``tests/differential/test_reading.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from values.bad_text import BadText, bad_text, cut_short
from values.time.words import WORDS, Malformed, Word, split
from values.time.zone_words import (
    ABBREVIATIONS,
    SUMMER_TIMES,
    OffsetOutOfRange,
    offset_by_abbreviation,
    offset_by_zone,
    read_offset,
    zone_meant,
)

_DATE, _TIME = frozenset({"year", "month", "day"}), frozenset({"hour", "minute", "second", "fraction"})

_PART = re.compile(r"[^a-z0-9]*(\d+|[a-z]+).?", re.ASCII | re.DOTALL)
"""Of a date: whatever stands behind a part is taken for what separates it, and so is a letter behind digits."""


class _OutOfRange(Exception):
    """22008"""


@dataclass
class _Reading:
    """What was said so far.  ``only_time``: a time of day is read, and takes a date only in few places."""

    words: list[Word]
    only_time: bool = False
    year: int = 0
    month: int = 0
    day: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    micros: int = 0
    day_of_year: int | None = None
    said: set[str] = field(default_factory=set)
    short_year: bool = False
    julian: bool = False
    month_by_name: bool = False
    era: str = ""
    half: str = ""
    label: str = ""
    whole: str = ""
    clock: str = ""
    offset: timedelta = timedelta()
    by_zone: Callable[[datetime], timedelta] | None = None
    by_date: bool = False
    uncarried: bool = False

    def read(self) -> None:
        """Raises one of the three above, or ``BadText``."""
        for place, word in enumerate(self.words):
            now_said = getattr(self, f"_{word.kind}")(word.text, place)
            if now_said & self.said:
                raise Malformed
            self.said |= now_said
        self._check_date()
        if self.half:
            if self.hour > 12:
                raise _OutOfRange
            self.hour = self.hour % 12 + (12 if self.half == "pm" else 0)
        if not self.only_time and not self.whole:
            self.check_zone()

    def check_zone(self) -> None:
        """``DST`` goes with an abbreviation alone."""
        if "summer" in self.said and (self.by_zone is not None or "zone" not in self.said):
            raise Malformed

    # -- words by their kind; each gives what it said -----------------------------------------------------------------

    def _time(self, text: str, place: int) -> set[str]:
        if not self.only_time:
            if self.label not in ("", "time"):
                raise Malformed
            self.label = ""
        hour, minute, *rest = text.split(":")
        self.hour, self.second, self.micros = _int(hour), 0, 0
        minute, point, fraction = minute.partition(".")
        self.minute = _int(minute or "0")
        if point:  # minutes and seconds
            if rest:
                raise Malformed
            self.hour, self.minute, self.second, self.micros = 0, self.hour, self.minute, _micros(fraction)
        elif rest:
            if len(rest) > 1:
                raise Malformed
            second, _, fraction = rest[0].partition(".")
            self.second, self.micros = _int(second or "0"), _micros(fraction)
        if self._no_such_time() or (not self.only_time and self._after_midnight()):
            raise _OutOfRange
        return set(_TIME)

    def _no_such_time(self) -> bool:
        return self.minute > 59 or self.second > 60 or self.micros > 1_000_000

    def _after_midnight(self) -> bool:
        return self._since_midnight() > 86_400_000_000

    def _since_midnight(self) -> int:
        return ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.micros

    def _date(self, text: str, place: int) -> set[str]:
        if self.only_time:
            words = self.words
            if place == 0 and len(words) > 1 and (words[-1].kind == "date" or words[1].kind == "time"):
                return self._date_fields(text)
            return self._time_and_offset(text) if text[0].isdigit() else self._zone(text)
        if self.label == "julian":
            self.label = ""
            number = re.match(r"\d+", text)
            if number is None:
                raise Malformed
            self._from_julian(_int(number[0]))
            self.offset = read_offset(text[number.end() :])
            return {*_DATE, *_TIME, "zone"}
        if self.label or {"month", "day"} <= self.said:
            if text[0].isdigit() or self.label:
                if self.label not in ("", "time"):
                    raise Malformed
                self.label = ""
                return self._time_and_offset(text)
            return self._zone(text)
        return self._date_fields(text)

    def _time_and_offset(self, text: str) -> set[str]:
        """``040506-08``."""
        time, sign, offset = text.partition("-")
        if _TIME <= self.said or not sign:
            raise Malformed
        self.offset = read_offset(sign + offset)
        return self._run_together(time, self.said | _DATE if self.only_time else self.said) | {"zone"}

    def _zone(self, text: str) -> set[str]:
        meant = zone_meant(text)
        if meant is None:
            raise BadText(f'time zone "{cut_short(text)}" not recognized', "22023")
        self._goes_by(meant)
        return {"zone"}

    def _goes_by(self, meant: ZoneInfo | timedelta) -> None:
        if isinstance(meant, ZoneInfo):
            self.by_zone = lambda local: offset_by_zone(local, meant)
            self.by_date = meant.utcoffset(None) is None
        else:
            self.by_zone = lambda local: meant

    def _offset(self, text: str, place: int) -> set[str]:
        self.offset = read_offset(text)
        return {"zone"}

    def _number(self, text: str, place: int) -> set[str]:
        if self.label:
            return self._labelled(text)
        before, point, _ = text.partition(".")
        if self.only_time:
            if point:
                if place == 0 and len(self.words) > 1 and self.words[-1].kind == "date":
                    return self._date_fields(text)
                if len(before) < 3:
                    raise Malformed
            if point or len(text) > 4:
                return self._run_together(text, self.said | _DATE)
            return self._date_number(text, self.said | _DATE, by_name=False)
        if point and not self.said & _DATE:
            return self._date_fields(text)
        if (point and len(before) > 2) or (len(text) > 5 and not (self.said & _DATE and self.said & _TIME)):
            return self._run_together(text, self.said)
        return self._date_number(text, self.said, self.month_by_name)

    def _labelled(self, text: str) -> set[str]:
        """A number behind a word that says what it is."""
        label, self.label, self.whole = self.label, "", ""
        whole, point, fraction = text.partition(".")
        if not whole:
            whole = "0"
        number = _int(whole)
        if point and label not in ("julian", "time", "second"):
            raise Malformed
        if label == "month" and {"month", "hour"} <= self.said:
            label = "minute"
        if label in ("year", "month", "day", "hour", "minute"):
            setattr(self, label, number)
            return {label}
        if label == "second":
            self.second = number
            if point:
                self.micros = _micros(fraction)
            return {"second", "fraction"} if point else {"second"}
        if label == "julian":
            self._from_julian(number)
            if not point:
                return set(_DATE)
            micros = int(float(f"0.{fraction or 0}") * 86_400_000_000)
            self.hour, micros = divmod(micros, 3_600_000_000)
            self.minute, micros = divmod(micros, 60_000_000)
            self.second, self.micros = divmod(micros, 1_000_000)
            return {*_DATE, *_TIME}
        if label == "time":
            said = self._run_together(text, self.said | _DATE)
            if said != _TIME:
                raise Malformed
            return said
        raise Malformed

    def _word(self, text: str, place: int) -> set[str]:
        meaning = ABBREVIATIONS.get(text)
        if isinstance(meaning, timedelta):
            self.offset = meaning
            return {"zone", "summer time"} if text in SUMMER_TIMES else {"zone"}
        if meaning is not None:
            self.by_zone = lambda local: offset_by_abbreviation(local, meaning)
            return {"zone", "zone of its own"}
        kind, value = WORDS.get(text, ("", None))
        if kind in ("whole", "clock", "month", "weekday") and self.only_time and text != "now":
            raise Malformed
        return getattr(self, f"_{kind}_word")(text, value, place) if kind else self._unknown(text)

    _special = _word

    def _unknown(self, text: str) -> set[str]:
        meant = None if text[0] in "+-" else zone_meant(text)
        if meant is None:
            raise Malformed
        self._goes_by(meant)
        return {"zone"}

    # -- words of letters by their kind -------------------------------------------------------------------------------

    def _month_word(self, text: str, value: int, place: int) -> set[str]:
        said = {"month"}
        if "month" in self.said and not self.month_by_name and "day" not in self.said and 1 <= self.month <= 31:
            self.day, said = self.month, {"day"}  # what stood before it was no month then
        self.month_by_name, self.month = True, value
        return said

    def _weekday_word(self, text: str, value: None, place: int) -> set[str]:
        return {"weekday"}

    def _label_word(self, text: str, value: str, place: int) -> set[str]:
        self.label = value
        return set()

    def _whole_word(self, text: str, value: str, place: int) -> set[str]:
        self.whole = value
        return {"whole"}

    def _clock_word(self, text: str, value: str, place: int) -> set[str]:
        self.clock, self.whole = value, ""
        if self.only_time:
            return set(_TIME)
        return {"zone", *_DATE, *_TIME} if value == "now" else set(_DATE)

    def _half_word(self, text: str, value: str, place: int) -> set[str]:
        self.half = value
        return {"half"}

    def _era_word(self, text: str, value: str, place: int) -> set[str]:
        self.era = value
        return {"era"}

    def _nothing_word(self, text: str, value: None, place: int) -> set[str]:
        return set()

    def _midnight_word(self, text: str, value: None, place: int) -> set[str]:
        self.hour = self.minute = self.second = 0
        self.offset, self.whole = timedelta(), ""
        return {"zone", *_TIME}

    def _summer_word(self, text: str, value: None, place: int) -> set[str]:
        self.offset += timedelta(hours=1)
        return {"summer", "summer time"}

    def _separator_word(self, text: str, value: None, place: int) -> set[str]:
        following = self.words[place + 1].kind if place + 1 < len(self.words) else ""
        if following not in ("number", "time", "date") or not (self.only_time or _DATE <= self.said):
            raise Malformed
        self.label = "time"
        return set()

    # -- numbers ------------------------------------------------------------------------------------------------------

    def _date_fields(self, text: str) -> set[str]:
        """A date with what separates it: ``1999-01-08``, ``8-Jan-1999``, ``1999.008``."""
        parts, at = [], 0
        while at < len(text):
            match = _PART.match(text, at)
            if match is None:
                raise Malformed
            parts.append(match[1])
            at = match.end()
        said, now_said, by_name = set(self.said), set(), False
        for name in [part for part in parts if part.isalpha()]:
            kind, value = WORDS.get(name, ("", None))
            if kind != "month" or "month" in said:
                raise Malformed
            self.month, by_name = value, True
            said.add("month")
            now_said.add("month")
        for number in [part for part in parts if part.isdigit()]:
            found = self._date_number(number, said, by_name)
            if found & said:
                raise Malformed
            said |= found
            now_said |= found
        if said - {"day of year", "zone"} != _DATE:
            raise Malformed
        return now_said

    def _date_number(self, text: str, said: set[str], by_name: bool) -> set[str]:
        """A number that is one field, by which ones there are."""
        whole, point, fraction = text.partition(".")
        number = _int(whole or "0")
        if not whole:
            raise Malformed
        if point:
            if len(whole) > 2:
                return self._run_together(text, said | _DATE)
            self.micros = _micros(fraction)
        there = said & _DATE
        if len(text) == 3 and there == {"year"} and 1 <= number <= 366:
            self.day_of_year = number
            return {"day of year", "month", "day"}
        if there == _DATE:
            return self._run_together(text, said)
        if not there:
            what = "year" if len(text) > 2 else "month"
        elif there == {"year"} or there == {"day"}:
            what = "month"
        elif there == {"month"}:
            what = "year" if by_name and len(text) > 2 else "day"
        elif there == {"year", "month"}:
            what = "day"
            if by_name and len(text) > 2 and self.short_year:  # what was taken for the year was the day
                self.day, self.year, self.short_year = self.year, number, False
                return {"day"}
        elif there == {"month", "day"}:
            what = "year"
        else:
            raise Malformed
        setattr(self, what, number)
        if what == "year":
            self.short_year = len(text) <= 2
        return {what}

    def _run_together(self, text: str, said: set[str]) -> set[str]:
        """``19990108``, ``990108`` or ``040506``."""
        digits, point, fraction = text.partition(".")
        if point:
            self.micros = _micros(fraction)
        elif not _DATE <= said and len(digits) >= 6:
            self.year, self.month, self.day = int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:])
            if len(digits) == 6:
                self.short_year = True
            return set(_DATE)
        if not _TIME <= said and len(digits) in (4, 6):
            self.hour, self.minute, self.second = int(digits[:2]), int(digits[2:4]), int(digits[4:] or 0)
            return set(_TIME)
        raise Malformed

    def _from_julian(self, number: int) -> None:
        """A day's number as astronomers count."""
        self.julian = True
        self._is(number + _JULIAN_BEFORE)

    def _is(self, ordinal: int) -> None:
        self.uncarried = not 1 <= ordinal <= _ORDINAL_MAX
        found = date.fromordinal(1 if self.uncarried else ordinal)
        self.year, self.month, self.day = found.year, found.month, found.day

    def _check_date(self) -> None:
        if self.clock:
            return
        if "year" in self.said and not self.julian:
            if self.era == "bc":
                if self.year <= 0:
                    raise _OutOfRange
                self.year = 1 - self.year
            elif self.short_year:
                self.year += 2000 if self.year < 70 else 1900 if self.year < 100 else 0
            elif self.year <= 0:
                raise _OutOfRange
        if self.day_of_year is not None:
            self._is(date(self.year, 1, 1).toordinal() + self.day_of_year - 1 if 1 <= self.year <= 9999 else 0)
        if "month" in self.said and not 1 <= self.month <= 12:
            raise _OutOfRange
        if "day" in self.said and not 1 <= self.day <= 31:
            raise _OutOfRange
        if _DATE <= self.said and self.day > _days_of(self.year, self.month):
            raise _OutOfRange


_JULIAN_BEFORE = -1_721_425
"""Of the ordinal that Python gives a day."""

_ORDINAL_MAX = date.max.toordinal()


def _int(digits: str) -> int:
    number = int(digits)
    if number >= 1 << 31:
        raise _OutOfRange
    return number


def _micros(fraction: str) -> int:
    """Of the digits behind a point; there may be none.  Rounded as Postgres does, by way of a float."""
    if "." in fraction:
        raise Malformed
    return round(float(f"0.{fraction}") * 1_000_000) if fraction else 0


def _days_of(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


# -- what is read -----------------------------------------------------------------------------------------------------


class Read(NamedTuple):
    """A local time, and by how much it is ahead of UTC where the text says so."""

    local: datetime
    offset: timedelta | None


def read_words(text: str, shown: str) -> Read:
    """What a timestamp or a moment says.  ``shown`` is the type's name for messages.

    Raises ``BadText``: 22007, 22008, 22009 (of an offset), 22023 (of a zone's name), and 0A000 for what depends on the
    time of reading.  Years are 1 to 9999 here, and nothing is infinite: these are 22008 too.
    """
    reading = _read(text, shown)
    midnight = _midnight(reading, text, shown)
    if reading.whole:
        return Read(midnight, timedelta())
    try:
        local = midnight + timedelta(
            hours=reading.hour, minutes=reading.minute, seconds=reading.second, microseconds=reading.micros
        )
        if reading.by_zone is not None:
            return Read(local, reading.by_zone(local))
    except OverflowError as error:
        raise not_carried(text, shown) from error
    return Read(local, reading.offset if "zone" in reading.said else None)


def read_date_words(text: str) -> date:
    """What a date says; a time behind it is only looked at.  Raises ``BadText`` as :func:`read_words` does."""
    return _midnight(_read(text, "date"), text, "date").date()


def read_time_words(text: str) -> int:
    """Microseconds since midnight; a date is only looked at, and so is a zone.  Raises ``BadText`` likewise."""
    reading = _read(text, "time", only_time=True)
    if reading.clock:
        raise _relative(text, "time")
    if reading._no_such_time() or reading._after_midnight():
        raise _out_of_range(text)
    dated = reading.said & _DATE
    # Nobody asks for the offset, but Postgres works it out, and needs the date where it hangs on that.
    undated = (dated or reading.by_date) and dated != _DATE and ("zone" not in reading.said or reading.by_date)
    try:
        reading.check_zone()
    except Malformed:
        undated = True
    if not _TIME <= reading.said or undated:
        raise _malformed(text, "time")
    return reading._since_midnight()


def _midnight(reading: _Reading, text: str, shown: str) -> datetime:
    """The beginning of the day."""
    if reading.whole == "epoch":
        return datetime(1970, 1, 1)
    if reading.whole:
        raise not_carried(text, shown)
    if reading.clock:
        raise _relative(text, shown)
    if not _DATE <= reading.said:
        raise _malformed(text, shown)
    if reading.uncarried or not 1 <= reading.year <= 9999:
        raise not_carried(text, shown)
    return datetime(reading.year, reading.month, reading.day)


def _read(text: str, shown: str, only_time: bool = False) -> _Reading:
    try:
        reading = _Reading(split(text), only_time)
        reading.read()
    except Malformed:
        raise _malformed(text, shown) from None
    except _OutOfRange:
        raise _out_of_range(text) from None
    except OffsetOutOfRange:
        raise BadText(f'time zone displacement out of range: "{cut_short(text)}"', "22009") from None
    return reading


def _malformed(text: str, shown: str) -> BadText:
    return BadText(bad_text(shown, text).message, "22007")


def _out_of_range(text: str) -> BadText:
    return BadText(f'date/time field value out of range: "{cut_short(text)}"', "22008")


def not_carried(text: str, shown: str) -> BadText:
    """The refusal of a time that Postgres has and neither Spark nor Avro."""
    kind = "date" if shown == "date" else "timestamp"
    return BadText(f'{kind} out of range: "{cut_short(text)}" (here are the years 1 to 9999)', "22008")


def _relative(text: str, shown: str) -> BadText:
    """The refusal of ``now``, ``today`` and their kin."""
    word = {"date": "current_date", "time": "localtime"}.get(shown, "current_timestamp")
    return BadText(f'"{cut_short(text)}" is not supported for type {shown}: write {word}', "0A000")
