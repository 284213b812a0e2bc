"""What a word says of an offset from UTC: abbreviations, names of zones, POSIX's ``GMT+8``.  Pure.

The abbreviations are those of Postgres's default setting of ``timezone_abbreviations``.  Words come in lower case.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from values.bad_text import BadText
from values.time import moments
from values.time.intervals import Interval, show_interval
from values.time.words import Malformed
from values.time.zones import instant_of, zone_named

_BY_MINUTES = {
    -600: "hst taht", -570: "mart", -540: "akst gamt", -480: "akdt pst", -420: "mst pdt", -360: "cst mdt galt",
    -300: "act cot cdt est pet", -240: "bot edt amt ast", -210: "nft nst",
    -180: "bra brt clst gft pmst pyst uyt wgt adt", -150: "ndt", -120: "brst fnt pmdt uyst wgst", -60: "egt fnst azot",
    0: "egst azost gmt uct ut utc z zulu wet", 60: "wat bst cet met mez wetdst",
    120: "sast ist bdst cest cetdst eet mest mesz metdst", 180: "eat idt eest eetdst fet", 210: "irt",
    240: "msd mut ret sct", 270: "aft", 300: "pkt tjt uzt must mvt tft", 345: "npt",
    360: "almt bdt btt kgst pkst uzst xjt yekst", 390: "mmt", 420: "almst ict wast cxt",
    480: "bnt bort cct hkt myt pht awst wadt", 525: "acwst", 540: "jayt jst kst ulast awsst wdt pwt",
    570: "acst cast", 600: "ddut kdt aest ligt chut mpt pgt trut yapt", 630: "acsst acdt cadt lhst sadt",
    660: "aesst aedt pont vut", 720: "nzt fjt gilt mht nzst tvt wakt wft", 765: "chast", 780: "fjst nzdt tot",
    825: "chadt",
}  # fmt: skip
"""Those that always mean one offset, by the minutes that they are ahead."""

_BY_ZONE = {
    "America/Argentina/Buenos_Aires": "art arst", "America/Asuncion": "pyt", "America/Caracas": "vet",
    "America/Guyana": "gyt", "America/Santiago": "clt", "Antarctica/Davis": "davt", "Antarctica/Mawson": "mawt",
    "Asia/Anadyr": "anast anat", "Asia/Ashgabat": "tmt", "Asia/Baku": "azst azt", "Asia/Bishkek": "kgt",
    "Asia/Colombo": "lkt", "Asia/Irkutsk": "irkst irkt", "Asia/Kamchatka": "petst pett",
    "Asia/Krasnoyarsk": "krast krat", "Asia/Magadan": "magst magt", "Asia/Novosibirsk": "novst novt",
    "Asia/Omsk": "omsst omst", "Asia/Singapore": "sgt", "Asia/Tbilisi": "gest get", "Asia/Ulaanbaatar": "ulat",
    "Asia/Vladivostok": "vlast vlat", "Asia/Yakutsk": "yakst yakt", "Asia/Yekaterinburg": "yekt",
    "Asia/Yerevan": "amst", "Atlantic/Stanley": "fkst fkt", "Australia/Lord_Howe": "lhdt", "Europe/Moscow": "msk",
    "Europe/Volgograd": "volt", "Indian/Chagos": "iot", "Pacific/Easter": "easst east", "Pacific/Fakaofo": "tkt",
    "Pacific/Kiritimati": "lint", "Pacific/Kosrae": "kost", "Pacific/Niue": "nut", "Pacific/Rarotonga": "ckt",
}  # fmt: skip
"""Those that mean whatever offset a zone has at the time."""

ABBREVIATIONS: dict[str, timedelta | str] = {
    **{word: timedelta(minutes=ahead) for ahead, words in _BY_MINUTES.items() for word in words.split()},
    **{word: zone for zone, words in _BY_ZONE.items() for word in words.split()},
}
"""By word: the offset, or the name of the zone that has it."""

SUMMER_TIMES = frozenset(
    (
        "akdt brst cdt clst edt egst fnst mdt ndt pdt pmdt pyst uyst wgst almst idt kdt kgst pkst ulast uzst "
        "yekst adt azost acsst acdt aesst aedt awsst cadt sadt wadt wdt bst bdst cest cetdst eest eetdst mest "
        "mesz metdst msd wetdst must chadt fjst nzdt"
    ).split()
)
"""Those that are a summer time already, so that ``DST`` behind one is once too often."""

_MOSCOW = ABBREVIATIONS["msk"]
_MOSCOW_OFFSET = timedelta(hours=3)
"""``MSK`` is the one abbreviation whose zone calls an offset so: where the zone has another name, it is this one."""

_POSIX = re.compile(
    r"[^\d+,-]*([+-]?)(\d{1,3})(?::(\d{1,2})(?::(\d{1,2}))?)?"
    r"([^\d+,-]+(?:[+-]?\d{1,3}(?::\d{1,2}){0,2})?)?",
    re.ASCII,
)


def offset_by_zone(local: datetime, zone: ZoneInfo) -> timedelta:
    """By how much the zone is ahead at a local time."""
    return local - instant_of(local, zone)


def offset_by_abbreviation(local: datetime, meaning: str) -> timedelta:
    """The same by an abbreviation that means a zone."""
    zone = zone_named(meaning)
    if zone is None:
        raise BadText(f'time zone "{meaning}" not recognized', "22023")
    if meaning == _MOSCOW:
        there = instant_of(local, zone).replace(tzinfo=UTC).astimezone(zone)
        return there.utcoffset() if there.tzname() == "MSK" else _MOSCOW_OFFSET
    return offset_by_zone(local, zone)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def zone_meant(word: str) -> ZoneInfo | timedelta | None:
    """The zone of that name, in whatever case, or the offset that POSIX's form of one says; ``None`` for neither.

    POSIX counts what is behind Greenwich: ``gmt+8`` is eight hours behind.  0A000 where it names summer time too, whose
    rule would be one that the server was built with.
    """
    if word in _names():
        return zone_named(_names()[word])
    match = _POSIX.fullmatch(word)
    if match is None:
        return None
    sign, hours, minutes, seconds, summer = match.groups()
    if int(hours) > 167 or int(minutes or 0) > 59 or int(seconds or 0) > 60:
        return None
    if summer:
        raise BadText(f'time zone "{word}" with summer time by a rule is not supported', "0A000")
    behind = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    return behind if sign == "-" else -behind


OFFSET_HOURS_MAX = 15


class OffsetOutOfRange(Exception):
    """22009, or what else it is where the offset stands."""


_OFFSET = re.compile(r"([+-])(\d*)(?::(\d*)(?::(\d*))?)?(.*)", re.ASCII)


def read_offset(text: str) -> timedelta:
    """``-08``, ``+0530``, ``-05:30:15``.  Raises ``Malformed`` or ``OffsetOutOfRange``."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise Malformed
    sign, hours, minutes, seconds, rest = match.groups()
    if any(len(each) > 9 for each in (hours, minutes or "", seconds or "")):
        raise OffsetOutOfRange
    hour, minute, second = int(hours or 0), int(minutes or 0), int(seconds or 0)
    if minutes is None and not rest and len(text) > 3:
        hour, minute = divmod(hour, 100)
    if hour > OFFSET_HOURS_MAX or minute > 59 or second > 59:
        raise OffsetOutOfRange
    if rest:
        raise Malformed
    ahead = timedelta(hours=hour, minutes=minute, seconds=second)
    return -ahead if sign == "-" else ahead


def meaning(name: str) -> timedelta | str:
    """What stands behind AT TIME ZONE: an offset, or the name of a zone, of which ``MSK`` is one too.

    An abbreviation goes before a zone of that name (``CET``), and neither's case counts.  Raises ``BadText`` 22023.
    """
    word = name.lower()
    found = ABBREVIATIONS.get(word)
    if found == _MOSCOW:
        return "MSK"
    if found is not None:
        return found
    if word in _names() and zone_named(_names()[word]) is not None:
        return _names()[word]
    meant = None if word in _names() else zone_meant(word)
    if not isinstance(meant, timedelta):
        raise BadText(f'time zone "{name}" not recognized', "22023")
    return meant


_EPOCH, _MICRO = datetime(1970, 1, 1), timedelta(microseconds=1)


def _calendar(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise BadText("timestamp out of range", "22008") from None


def instant_at(micros: int, name: str) -> int:
    """``timestamp AT TIME ZONE name``.  Raises ``BadText`` 22023 and 22008."""
    meant = meaning(name)
    here = _calendar(micros)
    try:
        if meant == "MSK":
            offset = offset_by_abbreviation(here, _MOSCOW)
        else:
            offset = offset_by_zone(here, zone_named(meant)) if isinstance(meant, str) else meant
        return (here - offset - _EPOCH) // _MICRO
    except OverflowError:
        raise BadText("timestamp out of range", "22008") from None


def local_at(micros: int, name: str) -> int:
    """``timestamptz AT TIME ZONE name``.  Raises ``BadText`` 22023 and 22008."""
    meant = meaning(name)
    if isinstance(meant, str):
        there = _calendar(micros).replace(tzinfo=UTC).astimezone(zone_named(_MOSCOW if meant == "MSK" else meant))
        known = meant != "MSK" or there.tzname() == "MSK"
        meant = there.utcoffset() if known else _MOSCOW_OFFSET
    return (_calendar(micros) + meant - _EPOCH) // _MICRO


def by_interval(micros: int, by: Interval, sign: int) -> int:
    """``AT TIME ZONE by`` of a moment (``sign`` 1: what time it is there) or of a timestamp (-1: when that is there).

    Raises ``BadText`` 22023 where ``by`` has months or days, and 22008.
    """
    if by.months or by.days:
        raise BadText(f'interval time zone "{show_interval(by)}" must not include months or days', "22023")
    found = micros + sign * by.micros
    _calendar(found)
    return found


def made_moment(year: int, month: int, day: int, hour: int, minute: int, second: float, zone: str) -> int:
    """``make_timestamptz`` by a zone, of which an offset is one too.  Raises ``BadText`` 22008 and 22023."""
    local = moments.made_timestamp(year, month, day, hour, minute, second)
    if zone[:1].isdigit():
        raise BadText(f'invalid input syntax for type numeric time zone: "{zone}"', "22023")
    try:
        return local - read_offset(zone) // _MICRO
    except OffsetOutOfRange:
        raise BadText(f'numeric time zone "{zone}" out of range', "22023") from None
    except Malformed:
        return instant_at(local, zone)
