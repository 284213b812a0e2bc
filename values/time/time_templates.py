"""Templates of ``to_char``, ``to_timestamp`` and ``to_date`` for dates and times, as Postgres reads them.  Pure.

A template is cut into :class:`Node` once (:func:`nodes_of`).  What a text is matched with follows Postgres's rules for
what is skipped: outside of ``FX`` as many blanks as there are, one character for a separator, and none for a letter
where blanks stood before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from values.bad_text import BadText, cut_short
from values.blanks import BLANKS
from values.limits import check_bytes
from values.time.digits import rounded_moment
from values.time.intervals import Interval
from values.time.zones import instant, local, offset_of, zone_abbreviation

PATTERNS = (
    "A.D. A.M. AD AM B.C. BC CC DAY DDD DD DY Day Dy D FF1 FF2 FF3 FF4 FF5 FF6 FX HH24 HH12 HH IDDD ID IW IYYY IYY IY "
    "I J MI MM MONTH MON MS Month Mon OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W Y,YYY YYYY YYY YY Y"
).split()
_LOWER = {name.lower() for name in PATTERNS}
_BY_LENGTH = sorted({*PATTERNS, *_LOWER}, key=len, reverse=True)
_NODE = re.compile(
    r"(?P<before>FM|fm|TM|tm)?(?:(?P<key>" + "|".join(map(re.escape, _BY_LENGTH)) + r")(?P<behind>TH|th|SP)?)?",
    re.ASCII,
)

NAMED = frozenset("A.D. A.M. AD AM B.C. BC DAY DY FX MONTH MON OF P.M. PM RM TZH TZM TZ".split())
"""Patterns that have no ordinal: they are no numbers, but for the last but one."""

ISO = frozenset("IDDD ID IW IYYY IYY IY I".split())
GREGORIAN = frozenset("DDD DD D MM MONTH MON RM WW W Y,YYY YYYY YYY YY Y".split())
"""Those that say a date by one of two calendars, which may not be mixed."""

MONTHS = (
    "January February March April May June July August September October November December"
).split()
DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()


class Node(NamedTuple):
    """A pattern (``key`` in capitals, ``shape`` as written) or a character: ``separator``, ``space``, ``char``."""

    kind: str
    shape: str
    key: str = ""
    bare: bool = False
    ordinal: str = ""
    unpadded: bool = False


@lru_cache(maxsize=256)
def nodes_of(template: str) -> tuple[Node, ...]:
    found: list[Node] = []
    at = 0
    while at < len(template):
        match = _NODE.match(template, at)
        at = match.end()
        if match["key"]:
            key, before = match["key"].upper(), (match["before"] or "").upper()
            ordinal = "" if match["behind"] in (None, "SP") else match["behind"]
            found.append(Node("pattern", match["key"], key, before == "FM", ordinal, before != ""))
        elif at < len(template):
            if template[at] == '"':
                at = _quoted(template, at + 1, found)
                continue
            at += template[at] == "\\" and template[at + 1 : at + 2] == '"'
            found.append(Node(_kind(template[at]), template[at]))
            at += 1
    return tuple(found)


def _quoted(template: str, at: int, found: list[Node]) -> int:
    while at < len(template) and template[at] != '"':
        at += template[at] == "\\" and at + 1 < len(template)
        found.append(Node("char", template[at]))
        at += 1
    return at + 1


def _is_separator(char: str) -> bool:
    return "!" <= char <= "~" and not char.isalnum()


def _kind(char: str) -> str:
    return "separator" if _is_separator(char) else "space" if char in BLANKS else "char"


# -- the calendar, of years before Christ too -------------------------------------------------------------------------

_DAYS_TO_1970 = 2_440_588
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


def _iso_start(year: int) -> int:
    """The number of the Monday that an ISO year begins with."""
    fourth = julian(year, 1, 4)
    return fourth - fourth % 7


def iso_of(number: int) -> tuple[int, int, int]:
    """The ISO year, week and day of the week of a day's number."""
    year = date_of(number - number % 7 + 3)[0]
    return year, (number - _iso_start(year)) // 7 + 1, number % 7 + 1


# -- to_char ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fields:
    """What there is to show.  An interval has no day of the week, and years that count from nothing."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    day_of_year: int
    number: int = 0
    is_interval: bool = False
    offset: int = 0
    zone: str | None = ""


def shown_local(micros: int, template: str, offset: int = 0, zone: str = "") -> str:
    """``to_char`` of a timestamp, its microseconds since 1970; ``offset`` (seconds) and ``zone`` are what it is by."""
    days, time = divmod(micros, 86_400_000_000)
    year, month, day = date_of(days + _DAYS_TO_1970)
    number = days + _DAYS_TO_1970
    seconds, fraction = divmod(time, 1_000_000)
    clock = seconds // 3600, seconds // 60 % 60, seconds % 60, fraction
    of_year = number - julian(year, 1, 1) + 1
    return _shown(_Fields(year, month, day, *clock, of_year, number, offset=offset, zone=zone), template)


def shown_moment(micros: int, template: str, zone: str) -> str:
    """``to_char`` of a moment by the clocks of a zone."""
    offset = offset_of(micros, zone) // 1_000_000
    return shown_local(local(micros, zone), template, offset, zone_abbreviation(micros, zone))


def shown_interval(value: Interval, template: str) -> str:
    """``to_char`` of an interval.  Raises ``BadText`` 22007 for what only a date has, 0A000 for ISO's weeks."""
    year, month = _parts(value.months, 12)
    hour, rest = _parts(value.micros, 3_600_000_000)
    minute, rest = _parts(rest, 60_000_000)
    second, fraction = _parts(rest, 1_000_000)
    of_year = (year * 12 + month) * 30 + value.days
    return _shown(_Fields(year, month, value.days, hour, minute, second, fraction, of_year, is_interval=True), template)


def _parts(number: int, by: int) -> tuple[int, int]:
    """Quotient and rest as C has them, both of the number's sign."""
    quotient = abs(number) // by * (-1 if number < 0 else 1)
    return quotient, number - quotient * by


_OF_DATES = frozenset("AD BC A.D. B.C. MONTH MON DAY DY D ID TZ TZH TZM OF".split())


def _shown(fields: _Fields, template: str) -> str:
    found = []
    for node in nodes_of(template):
        if node.kind != "pattern":
            found.append(node.shape)
            continue
        if fields.is_interval and node.key in _OF_DATES:
            raise BadText("invalid format specification for an interval value", "22007")
        if fields.is_interval and node.key in ISO:
            raise BadText(f'the pattern "{node.shape}" of an interval is not supported', "0A000")
        text = _piece(fields, node)
        found.append(text + _ordinal(text, node.ordinal) if node.ordinal and text and node.key not in NAMED else text)
    text = "".join(found)
    check_bytes(len(text))
    return text


def _ordinal(text: str, shape: str) -> str:
    ending = "th" if text[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1:], "th")
    return ending.upper() if shape == "TH" else ending


def _piece(f: _Fields, node: Node) -> str:
    key = node.key

    def number(value: int, width: int) -> str:
        """As C's ``%0*d``: a minus takes a place that it is given."""
        if node.bare:
            return str(value)
        return f"{value:0{width + (value < 0)}d}"

    if key in ("AM", "PM", "A.M.", "P.M."):
        return _dotted("PM" if _parts(f.hour, 24)[1] >= 12 else "AM", node)
    if key in ("AD", "BC", "A.D.", "B.C."):
        return _dotted("BC" if f.year <= 0 else "AD", node)
    if key in ("MONTH", "MON", "DAY", "DY"):
        names, place = (MONTHS, f.month - 1) if key.startswith("M") else (DAYS, (f.number + 1) % 7)
        name = names[place] if key in ("MONTH", "DAY") else names[place][:3]
        name = name.upper() if node.shape.isupper() else name.lower() if node.shape.islower() else name
        return name.ljust(9) if key in ("MONTH", "DAY") and not node.unpadded else name
    if key == "RM":
        if not f.month and not f.year:
            return ""
        roman = ROMAN[f.month - 1 if f.month > 0 else f.month % 12 if f.month else 0 if f.year < 0 else 11]
        roman = roman if node.shape.isupper() else roman.lower()
        return roman if node.bare else roman.ljust(4)
    if key in ("TZ", "TZH", "TZM", "OF"):
        return _zone_piece(f, node)
    if key in ("FX",):
        return ""
    if key in _FIXED:
        return _FIXED[key](f)
    if key in _PADDED:
        width, value = _PADDED[key]
        return number(value(f), width)
    if key == "Q":
        return str((f.month - 1) // 3 + 1) if f.month else ""
    if key == "CC":
        if f.is_interval:
            century = int(f.year / 100)
        else:
            century = (f.year - 1) // 100 + 1 if f.year > 0 else -(-f.year // 100) - 1
        return number(century, 2) if -99 <= century <= 99 else str(century)
    year = _year(f, iso_of(f.number)[0] if key.startswith("I") else f.year)
    if key == "Y,YYY":
        thousands = int(year / 1000)
        return f"{thousands},{year - thousands * 1000:03d}"
    size = len(key)
    if size == 4:
        return number(year, 4)
    cut = _parts(year, 10**size)[1]
    return number(cut, size) if size > 1 else str(cut)


def _year(f: _Fields, year: int) -> int:
    """There is no year 0 before Christ."""
    return year if f.is_interval else year if year > 0 else 1 - year


def _dotted(word: str, node: Node) -> str:
    word = f"{word[0]}.{word[1]}." if "." in node.shape else word
    return word if node.shape.isupper() else word.lower()


def _zone_piece(f: _Fields, node: Node) -> str:
    sign, minutes = "-" if f.offset < 0 else "+", abs(f.offset) // 60
    if node.key == "TZ":
        return f.zone if node.shape.isupper() else f.zone.lower()
    if node.key == "TZH":
        return f"{sign}{minutes // 60:02d}"
    if node.key == "TZM":
        return f"{minutes % 60:02d}"
    hours = f"{sign}{minutes // 60}" if node.bare else f"{sign}{minutes // 60:02d}"
    return hours + (f":{minutes % 60:02d}" if minutes % 60 else "")


_FIXED = {
    **{f"FF{digits}": lambda f, digits=digits: f"{int(f.micros / 10 ** (6 - digits)):0{digits}d}"
       for digits in range(1, 7)},
    "MS": lambda f: f"{int(f.micros / 1000):03d}",
    "US": lambda f: f"{f.micros:06d}",
    "SSSS": lambda f: str((f.hour * 60 + f.minute) * 60 + f.second),
    "SSSSS": lambda f: str((f.hour * 60 + f.minute) * 60 + f.second),
    "D": lambda f: str((f.number + 1) % 7 + 1),
    "ID": lambda f: str(f.number % 7 + 1),
    "W": lambda f: str(_parts(f.day - 1, 7)[0] + 1),
    "J": lambda f: str(julian(f.year, f.month, f.day)),
}  # fmt: skip
"""Numbers that ``FM`` makes no shorter."""

_PADDED = {
    "HH": (2, lambda f: _twelve(f.hour)), "HH12": (2, lambda f: _twelve(f.hour)), "HH24": (2, lambda f: f.hour),
    "MI": (2, lambda f: f.minute), "SS": (2, lambda f: f.second), "MM": (2, lambda f: f.month),
    "DD": (2, lambda f: f.day), "DDD": (3, lambda f: f.day_of_year),
    "IDDD": (3, lambda f: f.number - _iso_start(iso_of(f.number)[0]) + 1),
    "WW": (2, lambda f: _parts(f.day_of_year - 1, 7)[0] + 1), "IW": (2, lambda f: iso_of(f.number)[1]),
}  # fmt: skip


def _twelve(hour: int) -> int:
    """As C takes the rest of a negative number."""
    return _parts(hour, 12)[1] or 12


# -- to_timestamp and to_date -----------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """The day's number as astronomers count, the time of day, the offset in seconds, and digits of seconds."""

    number: int
    time: int
    offset: int | None
    digits: int | None

    @property
    def midnight(self) -> int:
        """In microseconds since 1970."""
        return (self.number - _DAYS_TO_1970) * 86_400_000_000


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
    if not _FIRST_DAY <= moment // 86_400_000_000 + _DAYS_TO_1970 <= _LAST_DAY:
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
                    if here and (here in BLANKS or _is_separator(here)):
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
            century, short = -century if bc else century, _parts(year, 100)[1]
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
            monday, weekday = _iso_start(year) + (week - 1) * 7, self._get("weekday")
            year, month, day = _dated(monday + (0 if not weekday else weekday - 2 if weekday > 1 else 6))
        elif week:
            day_of_year = (week - 1) * 7 + 1
        day = (self._get("week_of_month") - 1) * 7 + 1 if self._get("week_of_month") else self._get("day") or day
        month = self._get("month") or month
        if day_of_year and (month <= 1 or day <= 1):
            if not year and not self._get("bc"):
                raise BadText("cannot calculate day of year without year information", "22007")
            if self.mode == "iso":
                return _dated(_iso_start(year) - 1 + day_of_year)
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
