"""The units in which time is cut and taken apart."""

from __future__ import annotations

from sqlglot import exp

from journal.errors import InvalidUsage
from trees import types as t
from trees.nodes import call
from values.types import SqlType

UNITS = {
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
    "century", "millennium",
}  # fmt: skip
FIELDS = UNITS | {
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "julian",
    "epoch",
    "timezone",
    "timezone_hour",
    "timezone_minute",
}
LONG = {"DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1000}
_OTHER_WORDS = {
    word: unit
    for unit, words in {
        "microsecond": "microseconds us usec usecs usecond useconds",
        "millisecond": "milliseconds ms msec msecs msecond mseconds",
        "second": "s sec secs seconds",
        "minute": "m min mins minutes",
        "hour": "h hr hrs hours",
        "day": "d days",
        "week": "w weeks",
        "month": "mon mons months",
        "quarter": "qtr",
        "year": "y yr yrs years",
        "decade": "dec decs decades",
        "century": "c cent centuries",
        "millennium": "mil mils millennia",
        "timezone_hour": "timezone_h",
        "timezone_minute": "timezone_m",
        "dow": "dayofweek",
        "doy": "dayofyear",
    }.items()
    for word in words.split()
}
"""As in Postgres; the last two are what sqlglot makes of its words."""


def unit_word(text: str) -> str:
    """The one word for a unit that several words mean."""
    return _OTHER_WORDS.get(text.lower(), text.lower())


def truncated_to(text: str, got: SqlType, at: int | None = None) -> str:
    """What ``date_trunc(text, …)`` of ``got`` is cut to, in the engines' words.  22023; 0A000 for what is no length."""
    word = unit_word(text)
    if word not in UNITS:
        raise no_unit(text.lower(), got, at, known=word.startswith("timezone"))
    return word.upper()


def cut(unit: str, x: exp.Expression) -> exp.Expression:
    """``x`` cut to a unit in the engines' words."""
    return call(f"TM_{unit}", x) if unit in LONG else call("DATE_TRUNC", exp.Literal.string(unit), x)


def no_unit(unit: str, got: SqlType, at: int | None, known: bool = False) -> InvalidUsage:
    what = "supported" if known else "recognized"
    state = "0A000" if known else "22023"
    return InvalidUsage(f'unit "{unit}" not {what} for type {t.shown(got)}', sqlstate=state, position=at)
