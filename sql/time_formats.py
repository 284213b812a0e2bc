"""Templates of ``to_char`` for dates and timestamps, read by Postgres's rules and written out for an engine.  Pure.

Only what every engine can show exactly is accepted; the rest of Postgres's patterns is 0A000, never printed as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from sql.errors import unsupported

_NAMES = ("MONTH", "MON", "DAY", "DY")
_KNOWN = ("YYYY", "YY", "IYYY", "IW", *_NAMES, "MM", "DDD", "DD", "D", "HH24", "HH12", "HH", "MI", "SS", "MS", "US",
          "AM", "PM", "Q")  # fmt: skip
_REFUSED = ("Y,YYY", "YYY", "Y", "IYY", "IY", "IDDD", "ID", "I", "SSSSS", "SSSS", "FF1", "FF2", "FF3", "FF4", "FF5",
            "FF6", "TZH", "TZM", "TZ", "OF", "BC", "AD", "B.C.", "A.D.", "A.M.", "P.M.", "RM", "J", "CC", "WW", "W",
            "FX", "TM", "SP")  # fmt: skip
_ALL = sorted((*_KNOWN, *_REFUSED), key=len, reverse=True)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|(FM)?(' + "|".join(map(re.escape, _ALL)) + r")(TH)?|(.)", re.I | re.S)


@dataclass(frozen=True)
class Piece:
    """A pattern such as ``MM`` (``shape`` is how it was written, which decides the case of names), or plain text."""

    pattern: str | None
    shape: str
    filled: bool = True


def read_template(template: str) -> list[Piece]:
    """The pieces of a template.  0A000 for a pattern that is not known to every engine."""
    found = []
    for match in _PIECE.finditer(template):
        quoted, bare, word, ordinal, other = match.groups()
        if word is None:
            found.append(Piece(None, re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else other))
            continue
        pattern = word.upper()
        mixed = pattern in _NAMES and word not in (pattern, pattern.lower(), pattern.capitalize())
        if pattern in _REFUSED or ordinal or mixed:
            raise unsupported(f'the pattern "{match[0]}" of to_char')
        found.append(Piece(pattern, word, bare is None))
    return found


SPARK = {
    "YYYY": "DATE_FORMAT(:x, 'yyyy')", "YY": "DATE_FORMAT(:x, 'yy')", "MM": "DATE_FORMAT(:x, 'MM')",
    "DD": "DATE_FORMAT(:x, 'dd')", "DDD": "LPAD(CAST(DAYOFYEAR(:x) AS STRING), 3, '0')",
    "D": "CAST(DAYOFWEEK(:x) AS STRING)", "HH24": "DATE_FORMAT(:x, 'HH')", "HH12": "DATE_FORMAT(:x, 'hh')",
    "MI": "DATE_FORMAT(:x, 'mm')", "SS": "DATE_FORMAT(:x, 'ss')", "MS": "DATE_FORMAT(:x, 'SSS')",
    "US": "DATE_FORMAT(:x, 'SSSSSS')", "AM": "DATE_FORMAT(:x, 'a')", "Q": "CAST(QUARTER(:x) AS STRING)",
    "IYYY": "LPAD(CAST(EXTRACT(YEAROFWEEK FROM :x) AS STRING), 4, '0')",
    "IW": "LPAD(CAST(WEEKOFYEAR(:x) AS STRING), 2, '0')",
    "MONTH": "DATE_FORMAT(:x, 'MMMM')", "MON": "DATE_FORMAT(:x, 'MMM')",
    "DAY": "DATE_FORMAT(:x, 'EEEE')", "DY": "DATE_FORMAT(:x, 'EEE')",
}  # fmt: skip


def written_format(x: exp.Expression, template: str, patterns: Mapping[str, str], dialect: str) -> exp.Expression:
    """``to_char(x, template)`` as a concatenation of ``patterns``'s texts for its pieces."""
    parts: list[exp.Expression] = []
    for piece in read_template(template):
        if piece.pattern is None:
            parts.append(exp.Literal.string(piece.shape))
            continue
        name = {"HH": "HH12", "PM": "AM"}.get(piece.pattern, piece.pattern)
        made = sqlglot.parse_one(patterns[name], read=dialect)
        holder = exp.Paren(this=made)
        for place in list(holder.find_all(exp.Placeholder)):
            place.replace(x.copy())
        parts.append(_shaped(holder.this, name, piece))
    whole = exp.Anonymous(this="CONCAT", expressions=parts or [exp.Literal.string("")])
    return exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Is(this=x.copy(), expression=exp.null())), true=whole)])


def _shaped(made: exp.Expression, name: str, piece: Piece) -> exp.Expression:
    if name in (*_NAMES, "AM"):
        if piece.shape.isupper():
            made = exp.Upper(this=made)
        elif piece.shape.islower():
            made = exp.Lower(this=made)
        if name in ("MONTH", "DAY") and piece.filled:
            made = exp.Anonymous(this="RPAD", expressions=[made, exp.Literal.number(9), exp.Literal.string(" ")])
        return made
    return made if piece.filled else exp.cast(exp.cast(made, "int"), "text")


def spark_format(x: exp.Expression, template: str) -> exp.Expression:
    """``to_char`` in Spark."""
    return written_format(x, template, SPARK, "spark")
