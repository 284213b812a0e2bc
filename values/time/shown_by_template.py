"""``to_char`` of dates, times and intervals, as Postgres shows them by a template.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from values.bad_text import BadText
from values.limits import check_bytes
from values.time.day_numbers import DAYS_TO_1970, date_of, iso_of, iso_start, julian, quotient_and_rest
from values.time.intervals import Interval
from values.time.template_nodes import DAYS, ISO, MONTHS, NAMED, ROMAN, Node, nodes_of
from values.time.zones import local, offset_of, zone_abbreviation


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
    year, month, day = date_of(days + DAYS_TO_1970)
    number = days + DAYS_TO_1970
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
    year, month = quotient_and_rest(value.months, 12)
    hour, rest = quotient_and_rest(value.micros, 3_600_000_000)
    minute, rest = quotient_and_rest(rest, 60_000_000)
    second, fraction = quotient_and_rest(rest, 1_000_000)
    of_year = (year * 12 + month) * 30 + value.days
    return _shown(_Fields(year, month, value.days, hour, minute, second, fraction, of_year, is_interval=True), template)


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
        return _dotted("PM" if quotient_and_rest(f.hour, 24)[1] >= 12 else "AM", node)
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
    cut = quotient_and_rest(year, 10**size)[1]
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
    "W": lambda f: str(quotient_and_rest(f.day - 1, 7)[0] + 1),
    "J": lambda f: str(julian(f.year, f.month, f.day)),
}  # fmt: skip
"""Numbers that ``FM`` makes no shorter."""

_PADDED = {
    "HH": (2, lambda f: _twelve(f.hour)), "HH12": (2, lambda f: _twelve(f.hour)), "HH24": (2, lambda f: f.hour),
    "MI": (2, lambda f: f.minute), "SS": (2, lambda f: f.second), "MM": (2, lambda f: f.month),
    "DD": (2, lambda f: f.day), "DDD": (3, lambda f: f.day_of_year),
    "IDDD": (3, lambda f: f.number - iso_start(iso_of(f.number)[0]) + 1),
    "WW": (2, lambda f: quotient_and_rest(f.day_of_year - 1, 7)[0] + 1), "IW": (2, lambda f: iso_of(f.number)[1]),
}  # fmt: skip


def _twelve(hour: int) -> int:
    """As C takes the rest of a negative number."""
    return quotient_and_rest(hour, 12)[1] or 12
