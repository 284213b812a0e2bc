"""``to_timestamp`` and ``to_date``: texts as Postgres reads them by a template.  Pure.

What a text is matched with follows Postgres's rules for what is skipped: outside of ``FX`` as many blanks as there are,
one character for a separator, and none for a letter where blanks stood before it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from values.bad_text import BadText, cut_short
from values.blanks import BLANKS
from values.time.day_numbers import DAYS_TO_1970, date_of, iso_start, julian, quotient_and_rest
from values.time.digits import rounded_moment
from values.time.template_nodes import DAYS, GREGORIAN, ISO, MONTHS, NAMED, ROMAN, Node, is_separator, nodes_of
from values.time.zones import instant


class _Found(NamedTuple):
    """The day's number as astronomers count, the time of day, the offset in seconds, and digits of seconds."""

    number: int
    time: int
    offset: int | None
    digits: int | None

    @property
    def midnight(self) -> int:
        """In microseconds since 1970."""
        return (self.number - DAYS_TO_1970) * 86_400_000_000


def read_day(text: str, template: str) -> int:
    """``to_date``: the beginning of the day in microseconds since 1970.

    Raises ``BadText``: 22007, 22008, and 0A000 for patterns that only ``to_char`` has.  Years are 1 to 9999 here.
    """
    return _Reader(text, template).found().midnight


def read_moment(text: str, template: str, zone: str = "UTC") -> int:
    """``to_timestamp``: the moment in microseconds since 1970, of a local time in ``zone`` where the text names no
    offset.  Raises ``BadText`` as :func:`read_day`, and 22009 for an offset that is out of range."""
    found = _Reader(text, template).found()
    local = found.midnight + found.time
    moment = instant(local, zone) if found.offset is None else local - found.offset * 1_000_000
    if not _FIRST_DAY <= moment // 86_400_000_000 + DAYS_TO_1970 <= _LAST_DAY:
        raise _not_carried(text)
    return moment if found.digits is None else rounded_moment(moment, found.digits)


def _not_carried(text: str) -> BadText:
    return BadText(f'date out of range: "{cut_short(text)}" (here are the years 1 to 9999)', "22008")


_FIRST_DAY, _LAST_DAY = julian(1, 1, 1), julian(9999, 12, 31)
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+)", re.ASCII)
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_OF_FIELD = {
    "HH": "hour", "HH12": "hour", "HH24": "hour", "MI": "minute", "SS": "second", "SSSS": "seconds",
    "SSSSS": "seconds", "MM": "month", "DDD": "day_of_year", "IDDD": "day_of_year", "DD": "day", "D": "weekday",
    "WW": "week", "IW": "week", "CC": "century", "W": "week_of_month", "J": "julian",
}  # fmt: skip
_WIDTH = {"HH": 2, "HH12": 2, "HH24": 2, "IDDD": 3, "ID": 1, "MS": 3, "US": 6, "TZH": 2, "TZM": 2}


class _Reader:
    """A text on its way through a template.  A field that is 0 was not said."""

    def __init__(self, text: str, template: str) -> None:
        self.text, self.nodes, self.at = text, nodes_of(template), 0
        self.fields: dict[str, int] = {}
        self.mode = ""
        self.twelve = False
        self.year_digits = 0
        self.sign = 0
        self.digits: int | None = None
        self._match()

    def _get(self, name: str) -> int:
        return self.fields.get(name, 0)

    # -- matching -----------------------------------------------------------------------------------------------------

    def _skip_spaces(self) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in BLANKS:
            self.at += 1
        return self.at - start

    def _match(self) -> None:
        exact, skipped = False, 0
        for place, node in enumerate(self.nodes):
            if self.at >= len(self.text):
                break
            is_pattern = node.kind == "pattern"
            if not exact and node.key != "FX" and (is_pattern or place == 0):
                skipped += self._skip_spaces()
            if node.kind in ("separator", "space"):
                if exact:
                    self.at += 1
                else:
                    skipped -= 1
                    here = self.text[self.at : self.at + 1]
                    if here and (here in BLANKS or is_separator(here)):
                        self.at += 1
                        skipped += 1
                continue
            if not is_pattern:
                if not exact and skipped > 0:
                    skipped -= 1
                else:
                    self.at += 1
                continue
            if node.key == "FX":
                exact = True
            else:
                self._pattern(node, place, skipped)
            if not exact:
                skipped = self._skip_spaces()

    def _pattern(self, node: Node, place: int, skipped: int) -> None:
        key = node.key
        mode = "iso" if key in ISO else "gregorian" if key in GREGORIAN else ""
        if mode and self.mode not in ("", mode):
            raise BadText("invalid combination of date conventions", "22007")
        self.mode = self.mode or mode
        if key in ("AM", "PM", "A.M.", "P.M."):
            self.twelve = True
            self._set("pm", self._name(["a.m.", "p.m."] if "." in key else ["am", "pm"], node), node)
        elif key in ("AD", "BC", "A.D.", "B.C."):
            self._set("bc", self._name(["a.d.", "b.c."] if "." in key else ["ad", "bc"], node), node)
        elif key in ("MONTH", "MON"):
            names = MONTHS if key == "MONTH" else [name[:3] for name in MONTHS]
            self._set("month", self._name(names, node) + 1, node)
        elif key in ("DAY", "DY"):
            self._set("weekday", self._name(DAYS if key == "DAY" else [name[:3] for name in DAYS], node), node)
            self.fields["weekday"] += 1
        elif key == "RM":
            self._set("month", 12 - self._name(ROMAN[::-1], node), node)
        elif key in ("TZ", "OF"):
            raise BadText(f'formatting field "{node.shape}" is only supported in to_char', "0A000")
        elif key == "TZH":
            self._hours_ahead(node, place, skipped)
        elif key == "Y,YYY":
            self._thousands(node)
        else:
            self._whole(node, place)
            if node.ordinal and key != "TZM":
                self.at = min(self.at + 2, len(self.text))

    def _whole(self, node: Node, place: int) -> None:
        key = node.key
        if key == "TZM":
            self.sign = self.sign or 1
            self._number("minutes_ahead", node, place)
        elif key == "MS":
            size = self._number("millis", node, place)
            self.fields["millis"] *= {1: 100, 2: 10}.get(size, 1)
        elif key == "US" or key.startswith("FF"):
            if key != "US":
                self.digits = int(key[2])
            size = self._number("micros", node, place)
            self.fields["micros"] *= 10 ** (6 - size) if 1 <= size < 6 else 1
        elif key == "Q":
            self._number("", node, place)
        elif key == "ID":
            self._number("weekday", node, place)
            self.fields["weekday"] = self.fields["weekday"] + 1 if self.fields["weekday"] < 7 else 1
        elif key in _OF_FIELD:
            self.twelve = self.twelve or key in ("HH", "HH12")
            self._number(_OF_FIELD[key], node, place)
        else:
            size = self._number("year", node, place)
            self.year_digits = len(key)
            if size < 4 and len(key) < 4:
                self.fields["year"] = _near_2020(self.fields["year"])

    def _hours_ahead(self, node: Node, place: int, skipped: int) -> None:
        here = self.text[self.at : self.at + 1]
        if here in ("+", "-", " ") and here:
            self.sign = -1 if here == "-" else 1
            self.at += 1
        else:  # a minus may have been skipped as what separates
            self.sign = -1 if skipped > 0 and self.text[self.at - 1] == "-" else 1
        self._number("hours_ahead", node, place)

    def _thousands(self, node: Node) -> None:
        match = re.compile(r"\s*([+-]?\d+),\s*(\d{1,3}|[+-]\d{1,2})", re.ASCII).match(self.text, self.at)
        if match is None:
            raise BadText('invalid input string for "Y,YYY"', "22007")
        self._set("year", self._checked(int(match[1]) * 1000 + int(match[2]), node), node)
        self.year_digits, self.at = 4, match.end()
        if node.ordinal:
            self.at = min(self.at + 2, len(self.text))

    def _set(self, name: str, value: int, node: Node) -> None:
        if self._get(name) not in (0, value):
            raise BadText(f'conflicting values for "{node.shape}" field in formatting string', "22007")
        self.fields[name] = value

    def _name(self, names: list[str], node: Node) -> int:
        rest = self.text[self.at : self.at + 12].lower()
        for place, name in enumerate(names):
            if rest.startswith(name.lower()):
                self.at += len(name)
                return place
        word = re.split(r"\s", self.text[self.at :], maxsplit=1)[0]
        raise BadText(f'invalid value "{cut_short(word)}" for "{node.shape}"', "22007")

    def _number(self, name: str, node: Node, place: int) -> int:
        """How many characters it took.  One of a fixed width, unless what comes next is no digit."""
        start, width = self.at, _WIDTH.get(node.key, int(node.key[2]) if node.key.startswith("FF") else len(node.key))
        self._skip_spaces()
        copy = self.text[self.at : self.at + width]
        if node.bare or self._no_digit_follows(node, place):
            match = _NUMBER.match(self.text, start)
            if match is not None:
                self.at = match.end()
            else:
                self.at = start
        else:
            if len(copy) < width:
                raise BadText(f'source string too short for "{node.shape}" formatting field', "22007")
            match = _NUMBER.match(copy)
            used = match.end() if match is not None else 0
            if 0 < used < width:
                raise BadText(f'invalid value "{copy}" for "{node.shape}"', "22007")
            self.at += used
        if self.at == start:
            raise BadText(f'invalid value "{copy}" for "{node.shape}"', "22007")
        number = match[1] if match is not None else "0"  # only blanks were there, which Postgres takes for none
        value = self._checked(int(number) if len(number.lstrip("+-0")) < 20 else 1 << 32, node)
        if name:
            self._set(name, value, node)
        return self.at - start

    def _checked(self, value: int, node: Node) -> int:
        if not -(1 << 31) <= value < 1 << 31:
            raise BadText(f'value for "{node.shape}" in source string is out of range', "22008")
        return value

    def _no_digit_follows(self, node: Node, place: int) -> bool:
        if node.ordinal or place + 1 == len(self.nodes):
            return True
        following = self.nodes[place + 1]
        if following.kind == "pattern":
            return following.key in NAMED and following.key != "TZM"
        return not ("0" <= following.shape <= "9")

    # -- what it comes to ---------------------------------------------------------------------------------------------

    def found(self) -> _Found:
        time = self._time()
        year, month, day = self._date()
        beyond = not (1 <= month <= 12 and 1 <= day <= _length(year, month))
        micros = self._get("millis") * 1000 + self._get("micros")
        hour, minute, second = time
        if beyond or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= micros < 1_000_000):
            raise self._out_of_range()
        offset = self._offset()
        number = julian(year, month, day)
        if not _FIRST_DAY <= number <= _LAST_DAY:
            raise _not_carried(self.text)
        return _Found(number, ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros, offset, self.digits)

    def _out_of_range(self) -> BadText:
        return BadText(f'date/time field value out of range: "{cut_short(self.text)}"', "22008")

    def _time(self) -> tuple[int, int, int]:
        seconds = self._get("seconds")
        hour = self._get("hour") or int(seconds / 3600)
        minute = self._get("minute") or int((seconds - int(seconds / 3600) * 3600) / 60)
        second = self._get("second") or seconds - int(seconds / 60) * 60
        if self.twelve:
            if not 1 <= hour <= 12:
                raise BadText(f'hour "{hour}" is invalid for the 12-hour clock', "22007")
            hour = hour % 12 + (12 if self._get("pm") else 0)
        return hour, minute, second

    def _offset(self) -> int | None:
        if not self.sign:
            return None
        hours, minutes = self._get("hours_ahead"), self._get("minutes_ahead")
        if not (0 <= hours <= 15 and 0 <= minutes < 60):
            raise BadText(f'time zone displacement out of range: "{cut_short(self.text)}"', "22009")
        return self.sign * (hours * 60 + minutes) * 60

    def _year(self) -> int:
        year, century = self._get("year"), self._get("century")
        bc = self._get("bc")
        if year and century and self.year_digits <= 2:
            century, short = -century if bc else century, quotient_and_rest(year, 100)[1]
            if not short:
                return century * 100 + (0 if century >= 0 else 1)
            return short + (century - 1) * 100 if century >= 0 else (century + 1) * 100 - short + 1
        if year:
            year = -year if bc else year
            return year + 1 if year < 0 else year
        if century:
            century = -century if bc else century
            return (century - 1) * 100 + 1 if century >= 0 else century * 100 + 1
        return 0

    def _date(self) -> tuple[int, int, int]:
        year, month, day = self._year(), 1, 1
        day_of_year = self._get("day_of_year")
        if self._get("julian"):
            year, month, day = _dated(self._get("julian"))
        week = self._get("week")
        if week and self.mode == "iso":
            monday, weekday = iso_start(year) + (week - 1) * 7, self._get("weekday")
            year, month, day = _dated(monday + (0 if not weekday else weekday - 2 if weekday > 1 else 6))
        elif week:
            day_of_year = (week - 1) * 7 + 1
        day = (self._get("week_of_month") - 1) * 7 + 1 if self._get("week_of_month") else self._get("day") or day
        month = self._get("month") or month
        if day_of_year and (month <= 1 or day <= 1):
            if not year and not self._get("bc"):
                raise BadText("cannot calculate day of year without year information", "22007")
            if self.mode == "iso":
                return _dated(iso_start(year) - 1 + day_of_year)
            before = [days + (place > 1 and _length(year, 2) == 29) for place, days in enumerate(_DAYS_BEFORE)]
            last = next((place for place in range(1, 13) if day_of_year <= before[place]), 13)
            day = day_of_year - before[last - 1] if day <= 1 else day
            month = last if month <= 1 else month
        return year, month, day


def _dated(number: int) -> tuple[int, int, int]:
    """No day that is shown anywhere is before the first one or so far behind."""
    return date_of(max(0, min(number, _LAST_DAY + 1)))


def _length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _near_2020(year: int) -> int:
    """A year of up to three digits as the nearest one to 2020."""
    for below, more in ((70, 2000), (100, 1900), (520, 2000), (1000, 1000)):
        if year < below:
            return year + more
    return year
