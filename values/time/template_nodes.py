"""Templates of ``to_char``, ``to_timestamp`` and ``to_date``: cut into patterns and characters, once each.  Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from values.blanks import BLANKS

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


def is_separator(char: str) -> bool:
    return "!" <= char <= "~" and not char.isalnum()


def _kind(char: str) -> str:
    return "separator" if is_separator(char) else "space" if char in BLANKS else "char"
