"""Statements that hold or name another one, as they are written: PREPARE, EXECUTE, DECLARE, FETCH and MOVE.

Pure.  The statement inside is kept as text, with the place where it begins, so that positions in its errors can be told
in the whole.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokens import TokenType

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.tokens import tokenize
from trees.errors import unsupported


class PrepareAs(NamedTuple):
    """``types`` are type names as written; ``at`` is the 0-based place of ``sql`` in the whole."""

    name: str
    types: tuple[str, ...]
    sql: str
    at: int


class ExecuteNamed(NamedTuple):
    """``arguments`` are expressions as written."""

    name: str
    arguments: tuple[str, ...]


class Declare(NamedTuple):
    """``hold``: it outlives its transaction."""

    name: str
    binary: bool
    hold: bool
    sql: str
    at: int


class Fetch(NamedTuple):
    """``how`` is ``forward``, ``relative`` or ``absolute``; ``count`` ``None`` is ALL (forward only).

    ``move``: the rows are stepped over and only counted.
    """

    name: str
    how: str
    count: int | None
    move: bool


Nested = PrepareAs | ExecuteNamed | Declare | Fetch


def parse_nested(word: str, at: int, sql: str) -> Nested:
    """The statement that ``sql`` is, which begins with ``word`` at ``at``.

    Raises 42601, 0A000 for a cursor that scrolls, 55000 for a step backward.
    """
    rest = sql[:at] + " " * len(word) + sql[at + len(word) :]  # sqlglot would swallow what follows some of these words
    tokens = tokenize(rest)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return _READERS[word](Cursor(rest, tokens))


def _inner(c: Cursor) -> tuple[str, int]:
    if c.current is None:
        raise c.error()
    at = c.position - 1
    return c.text[at : c.tokens[-1].end + 1], at


def _listed(c: Cursor) -> tuple[str, ...]:
    """``( a, b, c )``, each as it is written."""
    found = []
    c.expect("(")
    while True:
        tokens = c.until(",")
        if not tokens:
            raise c.error()
        found.append(c.text[tokens[0].start : tokens[-1].end + 1])
        if not c.take(","):
            break
    c.expect(")")
    return tuple(found)


def _prepare(c: Cursor) -> PrepareAs:
    name = c.identifier()
    types = _listed(c) if c.word() == "(" else ()
    c.expect("as")
    return PrepareAs(name, types, *_inner(c))


def _execute(c: Cursor) -> ExecuteNamed:
    name = c.identifier()
    arguments = _listed(c) if c.word() == "(" else ()
    c.end()
    return ExecuteNamed(name, arguments)


def _declare(c: Cursor) -> Declare:
    name = c.identifier()
    binary = c.take("binary")
    while c.take("insensitive") or c.take("asensitive") or c.take("no", "scroll"):
        pass
    if c.word() == "scroll":
        raise unsupported("a cursor that scrolls backward", "declare it without SCROLL", c.position)
    c.expect("cursor")
    hold = c.take("with", "hold")
    if not hold:
        c.take("without", "hold")
    c.expect("for")
    return Declare(name, binary, hold, *_inner(c))


def _fetch(c: Cursor, move: bool = False) -> Fetch:
    how, count = _direction(c)
    if how == "backward" or (how != "absolute" and count is not None and count < 0):
        raise forward_only()
    c.take("from") or c.take("in")
    name = c.identifier()
    c.end()
    return Fetch(name, how, count, move)


def _direction(c: Cursor) -> tuple[str, int | None]:
    if c.take("next"):
        return "forward", 1
    if c.take("all"):
        return "forward", None
    if c.take("first"):
        return "absolute", 1
    if c.take("prior") or c.take("last"):
        return "backward", 1
    for how in ("absolute", "relative"):
        if c.take(how):
            return how, _number(c)
    for how in ("forward", "backward"):
        if c.take(how):
            return how, None if c.take("all") else _number(c) if _is_number(c) else 1
    return "forward", _number(c) if _is_number(c) else 1


def forward_only() -> InvalidUsage:
    """The refusal of a step backward."""
    return InvalidUsage(
        "cursor can only scan forward", sqlstate="55000", hint="rows that were fetched are not kept: declare it again"
    )


def _is_number(c: Cursor) -> bool:
    return c.current is not None and (c.word() == "-" or c.current.token_type == TokenType.NUMBER)


def _number(c: Cursor) -> int:
    sign = -1 if c.take("-") else 1
    token = c.current
    if token is None or not c.source(token).isdecimal():
        raise c.error()
    c.at += 1
    return sign * int(c.source(token))


_READERS = {
    "prepare": _prepare, "execute": _execute, "declare": _declare, "fetch": _fetch,
    "move": lambda c: _fetch(c, move=True),
}  # fmt: skip

NESTED_WORDS = frozenset(_READERS)
