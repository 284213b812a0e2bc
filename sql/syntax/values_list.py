"""The VALUES list of an INSERT that holds nothing but plain values, read without a token or a tree for each of them.

A statement of 2,000 rows is 50,000 tokens and 20,000 nodes, which take the parser two seconds; what is in it is a few
sorts of cells.  :func:`read` reads those, in time that grows with the text, and gives ``None`` for a list in which
anything else stands: that one goes through the parser, which says the same of every list that is read here (a property
test compares the two).  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_SPACE = r"[ \t\r\n]*"
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'

_HEAD = re.compile(
    rf"{_SPACE}insert[ \t\r\n]+into[ \t\r\n]+{_NAME}(?:{_SPACE}\.{_SPACE}{_NAME})*{_SPACE}"
    rf"(?:\({_SPACE}{_NAME}(?:{_SPACE},{_SPACE}{_NAME})*{_SPACE}\){_SPACE})?(?<![\w$])(?=values{_SPACE}\()",
    re.IGNORECASE,
)
_FIRST = re.compile(rf"values{_SPACE}\(", re.IGNORECASE)
_CELL = re.compile(
    rf"""{_SPACE}(?:
        '(?P<text>[^']*(?:''[^']*)*)'
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?)
      | \$(?P<param>[1-9][0-9]{{0,5}})(?:{_SPACE}::{_SPACE}(?P<type>[a-z][a-z0-9]*(?:[ ][a-z][a-z0-9]*)*
                                                              (?:\([ 0-9,]*\))?))?
      | (?P<word>null|true|false|default)
    ){_SPACE}(?P<end>[,)])""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_NEXT_ROW = re.compile(rf"{_SPACE},{_SPACE}\(")
_REST = re.compile(
    rf"{_SPACE}(?:[ \t\r\n;]*\Z|(?P<rest>returning|on[ \t\r\n]+conflict)(?![\w$]))", re.IGNORECASE
)


class Text(NamedTuple):
    """``'text'``."""

    text: str


class Number(NamedTuple):
    """Digits, with a fraction and a minus sign where they were written; where in the statement they stand."""

    digits: str
    start: int
    end: int


class Param(NamedTuple):
    """``$number`` or ``$number::type``; ``type`` as it was written, in lower case."""

    number: int
    type: str | None
    start: int
    end: int


class Word(NamedTuple):
    """``null``, ``true``, ``false`` or ``default``."""

    word: str


Cell = Text | Number | Param | Word


@dataclass(frozen=True)
class Cells:
    """Rows of cells, and the statement that they stand in; where ON CONFLICT or RETURNING begins in it,
    which nobody has read."""

    rows: tuple[tuple[Cell, ...], ...]
    text: str
    rest: int | None = None


def read(text: str) -> tuple[str, Cells] | None:
    """What stands before VALUES, and the rows behind it; ``None`` where that is not all that ``text`` is, but for
    ON CONFLICT and RETURNING behind it."""
    head = _HEAD.match(text)
    if head is None:
        return None
    ends: list[int] = []
    rows = tuple(_rows(text, _FIRST.match(text, head.end()).end(), ends))
    rest = _REST.match(text, ends[0]) if ends else None
    if rest is None:
        return None
    return text[: head.end()], Cells(rows, text, rest.start("rest") if rest["rest"] else None)


def _rows(text: str, at: int, ends: list[int]) -> Iterator[tuple[Cell, ...]]:
    """The rows from behind the first bracket on.  ``ends`` is told where they end; it is not where something else
    stands among them."""
    take, next_row = _CELL.match, _NEXT_ROW.match
    words = {word: Word(word) for word in ("null", "true", "false", "default")}
    while True:
        row: list[Cell] = []
        while True:
            found = take(text, at)
            if found is None:
                return
            string, digits, number, kind, word, end = found.groups()
            if string is not None:
                row.append(Text(string.replace("''", "'") if "'" in string else string))
            elif number is not None:
                lower, upper = found.start("param") - 1, found.end("param" if kind is None else "type")
                row.append(Param(int(number), None if kind is None else kind.lower(), lower, upper))
            elif digits is not None:
                row.append(Number(digits, *found.span("number")))
            else:
                row.append(words[word.lower()])
            at = found.end()
            if end == ")":
                break
        yield tuple(row)
        following = next_row(text, at)
        if following is None:
            ends.append(at)
            return
        at = following.end()
