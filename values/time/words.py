"""The words of a date, a time or an interval: cut by letters, digits and punctuation alone, as Postgres does.  Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

CHARS_MAX, WORDS_MAX = 153, 25
"""Postgres's, of all words with an end to each."""

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH_NAMES = ("january february march april may june july august september october november december").split()
_DAYS = (
    "sun sunday mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday sat saturday"
).split()
_LABELS = {
    "y": "year", "m": "month", "d": "day", "h": "hour", "mm": "minute", "s": "second", "j": "julian", "jd": "julian",
    "julian": "julian", "dow": "none", "doy": "none", "isodow": "none", "isoyear": "none",
}  # fmt: skip
"""Words that say which field the next number is; there are some of which no number can be."""

WORDS: dict[str, tuple[str, object]] = {
    **{name: ("month", number) for number, name in enumerate(_MONTHS, 1)},
    **{name: ("month", number) for number, name in enumerate(_MONTH_NAMES, 1)},
    "sept": ("month", 9),
    **{name: ("weekday", None) for name in _DAYS},
    **{name: ("label", of) for name, of in _LABELS.items()},
    **{name: ("whole", name) for name in ("epoch", "infinity", "-infinity")},
    **{name: ("clock", name) for name in ("now", "today", "tomorrow", "yesterday")},
    **{name: ("half", name) for name in ("am", "pm")},
    **{name: ("era", name) for name in ("ad", "bc")},
    **{name: ("nothing", None) for name in ("at", "on")},
    "allballs": ("midnight", None), "dst": ("summer", None), "t": ("separator", None),
}  # fmt: skip
"""By word: its kind, and what it says."""

_FIRST = re.compile(
    r"(?P<time>\d+:[\d:.]*)"
    r"|(?P<dotted>\d+\.\d+(?!\d|\.))|(?P<date>\d+([-/.])(?:\d+(?:\4(?:\d|\4)*)?|(?!\d)(?:[a-z0-9]|\4)*))"
    r"|(?P<number>\d+|\.\d*)|(?P<word>[a-z]+)(?P<more>[-/.+\d][-+/_.:a-z0-9]*)?"
    r"|(?P<offset>[+-]\s*\d[\d:.-]*)|(?P<special>[+-]\s*[a-z]+)"
    r"|(?P<between>[\s!-/:-@\[-`{-~])",
    re.ASCII,
)
"""The next word of a text in lower case, whatever stood before it."""


class Malformed(Exception):
    """The text is none of the type: 22007."""


class Word(NamedTuple):
    """``kind`` is ``time`` (digits and colons), ``date`` (digits or letters with what separates them; names of zones
    too), ``number``, ``word``, ``offset`` (digits behind a sign) or ``special`` (letters behind one)."""

    kind: str
    text: str


def split(text: str, chars_max: int = CHARS_MAX) -> list[Word]:
    """The words of a text.  Raises ``Malformed``."""
    found: list[Word] = []
    at, lowered = 0, text.lower() if text.isascii() else text
    while at < len(lowered):
        match = _FIRST.match(lowered, at)
        if match is None or (match["offset"] is None and match["special"] is None and match["between"] in ("+", "-")):
            raise Malformed
        at = match.end()
        if match["between"] is not None:
            continue
        kind, told = match.lastgroup, match[0]
        if match["word"] is not None:
            kind = "word"
            if match["more"] is not None:
                if match["more"][0] in "-/." or match["word"] not in WORDS:
                    kind = "date"
                else:
                    at, told = match.end("word"), match["word"]
        elif kind == "dotted":
            kind = "number"
        elif kind in ("offset", "special"):
            told = told[0] + told[1:].lstrip()
        found.append(Word(kind, told))
    if len(found) > WORDS_MAX or sum(len(word.text) + 1 for word in found) > chars_max:
        raise Malformed
    return found
