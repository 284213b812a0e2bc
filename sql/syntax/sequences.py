"""CREATE SEQUENCE and ALTER SEQUENCE: how a sequence is to step.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog_log.objects import SEQUENCE
from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import DDL, Name
from trees.errors import out_of_range, syntax
from values.types import SqlType, parse_type

Options = Mapping[str, Any]
"""What was said, by its word: ``as`` (a type), ``increment``, ``minvalue``, ``maxvalue`` (``None`` for NO …),
``start``, ``restart`` (``None`` without a number), ``cache``, ``cycle`` (``False`` for NO CYCLE) and ``owned`` (a
column's name, ``None`` for NONE)."""

_NUMBERS = {"increment": "by", "minvalue": None, "maxvalue": None, "start": "with", "cache": None}
"""Options with a number, and the word that may stand before it."""

INT8_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class CreateSequence(DDL):
    tag = "CREATE SEQUENCE"

    name: Name
    options: Options
    if_not_exists: bool
    text: str

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateSequence:
        exists = c.take("if", "not", "exists")
        name = c.name()
        options = sequence_options(c)
        c.end()
        if "restart" in options:  # a word of ALTER
            raise syntax("restart", None)
        return cls(name, options, exists, text)


@dataclass(frozen=True)
class AlterSequence(DDL):
    tag = "ALTER SEQUENCE"
    kind = SEQUENCE

    name: Name
    options: Options
    if_exists: bool

    @classmethod
    def read(cls, c: Cursor, name: Name, exists: bool) -> AlterSequence | None:
        """What stands after the name; ``None`` where it is nothing of a sequence's alone."""
        if c.word() in ("owner", "set"):
            return None
        if c.current is None:
            raise c.error()
        options = sequence_options(c)
        c.end()
        return cls(name, options, exists)


def sequence_options(c: Cursor) -> Options:
    """The options that come next, in any order.  42601 for one that is said twice, 22003 for a number too large."""
    found: dict[str, Any] = {}
    while (word := c.word()) is not None and word != ")":
        sequence_option(c, found)
    return found


def sequence_option(c: Cursor, found: dict[str, Any]) -> None:
    """The option that comes next, into ``found``."""
    at, word = c.position, c.word()
    no = c.take("no")
    if no:
        word = c.word()
        if word not in ("minvalue", "maxvalue", "cycle"):
            raise c.error()
    if word not in (*_NUMBERS, "as", "cycle", "restart", "owned"):
        raise c.error()
    c.at += 1
    if word in found:
        raise syntax(None, at, "conflicting or redundant options")
    found[word] = _value(c, word, no)


def _value(c: Cursor, word: str, no: bool) -> object:
    if word == "cycle":
        return not no
    if word == "as":
        return _type(c)
    if word == "restart":
        return _number(c) if c.take("with") or c.word() == "-" or _is_digits(c.word()) else None
    if word == "owned":
        c.expect("by")
        return None if c.take("none") else c.name()
    if no:
        return None
    if (filler := _NUMBERS[word]) is not None:
        c.take(filler)
    return _number(c)


def _type(c: Cursor) -> SqlType:
    at = c.position
    try:
        return parse_type(c.identifier())
    except InvalidUsage as error:
        error.position = error.position or at
        raise


def _is_digits(word: str | None) -> bool:
    return word is not None and word[0].isdigit()


def _number(c: Cursor) -> int:
    minus = c.take("-")
    if not minus:
        c.take("+")
    word = c.word()
    if not _is_digits(word) or not word.isascii():
        raise c.error()
    if not word.isdigit():
        raise InvalidUsage(f'invalid input syntax for type bigint: "{word}"', sqlstate="22P02")
    value = -int(word) if minus else int(word)
    if not -INT8_MAX - 1 <= value <= INT8_MAX:
        raise out_of_range("bigint", str(value))
    c.at += 1
    return value
