"""Statement text to :mod:`sql.syntax.statements`: the first step of every plan.

``parse`` and ``split`` are pure.  Errors are 42601 with a position, or 0A000 for SQL that Tidemark does not do yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.alter import read_alter
from sql.syntax.beginning import read_with
from sql.syntax.changes import Delete, Truncate, Update
from sql.syntax.connections import ValidateConnection
from sql.syntax.control import Empty, read_control
from sql.syntax.copying import read_copy
from sql.syntax.create import read_create
from sql.syntax.cursor import Cursor
from sql.syntax.drop import Comment, Drop
from sql.syntax.merge import read_merge
from sql.syntax.query import Insert, Query
from sql.syntax.show import Explain, read_show
from sql.syntax.statement import Statement
from sql.syntax.statements import ALTERED, CREATED
from sql.syntax.stretches import NotHere, stretches
from sql.syntax.tokens import STATEMENT_CHARS_MAX, head_word, tokenize
from sql.syntax.upkeep import Upkeep
from sql.syntax.values_list import read as read_values
from sql.syntax.variables import SetVariable, read_reset
from sql.syntax.writing import NONE_BEFORE
from trees.budget import bounded
from trees.errors import syntax, unsupported

_READERS: dict[str, Callable[[Cursor, str], Statement]] = {
    **dict.fromkeys(("select", "values", "table", "("), Query.read),
    "with": lambda c, text: read_with(c, text, parse),
    "merge": lambda c, text: read_merge(Cursor(c.text), NONE_BEFORE),
    "delete": Delete.read,
    "update": Update.read,
    "insert": Insert.read,
    "create": partial(read_create, CREATED),
    "alter": partial(read_alter, ALTERED),
    "drop": Drop.read,
    "set": SetVariable.read,
    "validate": ValidateConnection.read,
}
"""Who reads a statement, by its first word."""

_READERS_BEHIND: dict[str, Callable[[Cursor, str], Statement]] = {
    "comment": Comment.read,
    "copy": read_copy,
    "explain": lambda c, text: Explain.read(c, parse),
    "show": lambda c, text: read_show(c),
    "reset": lambda c, text: read_reset(c),
    "truncate": Truncate.read,
    **{word: partial(Upkeep.read, word) for word in ("analyze", "analyse", "vacuum", "refresh", "reindex")},
}
"""The same, for words that are blanked out before (:func:`sql.syntax.tokens.head_word`)."""

_INSTEAD = {
    "grant": "there are no roles: docs/security.md says who may reach what",
    "revoke": "there are no roles: docs/security.md says who may reach what",
}
"""What to do instead of a statement that is not here."""

_ELSEWHERE = frozenset(
    "checkpoint cluster do import load lock security subscribe tail use".split()
)
"""First words of statements that Postgres (or Materialize) has and we do not."""


def split(text: str) -> list[str]:
    """The statements of a simple query, without their semicolons; blank ones are left out.

    Text that cannot even be tokenized comes back whole, so that parsing it reports the error.
    """
    try:
        tokens = _tokens_for_parts(text)
    except InvalidUsage:
        return [text]
    found, start = [], None
    end = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if start is not None:
                found.append(text[start:end])
            start = None
            continue
        start = token.start if start is None else start
        end = token.end + 1
    if start is not None:
        found.append(text[start:end])
    return found


def _tokens_for_parts(text: str) -> list[Token]:
    try:
        return tokenize(text, by_stretches=True)
    except NotHere:
        return tokenize(text)


@bounded
def parse(text: str) -> Statement:
    """The one statement in ``text`` (a trailing semicolon is fine).  Positions in errors count from its start."""
    plain = read_values(text) if len(text) <= STATEMENT_CHARS_MAX else None
    if plain is not None:
        try:
            return Insert.of_cells(*plain)
        except InvalidUsage:
            if plain[1].rest is None:
                raise  # else it is read again, by who knows where what is wrong stands
    word, rest = head_word(text)
    control = read_control(text) if word not in _READERS_BEHIND else None
    if control is not None:
        return control
    try:
        return _read(tokenize(rest, by_stretches=True), word, rest, text)
    except (InvalidUsage, NotHere):
        if not stretches(rest):
            raise
    return _read(tokenize(rest), word, rest, text)  # which knows what is wrong, and where


def _read(tokens: list[Token], word: str | None, rest: str, text: str) -> Statement:
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    stray = next((t for t in tokens if t.token_type == TokenType.SEMICOLON), None)
    if stray is not None:
        raise syntax(None, stray.start + 1, "cannot insert multiple commands into a prepared statement")
    cursor = Cursor(rest, tokens)
    if word is not None:
        if word not in _READERS_BEHIND:
            raise unsupported(word.upper(), hint=_INSTEAD.get(word))
        return _READERS_BEHIND[word](cursor, text)
    if not tokens:
        return Empty()
    first = cursor.word()
    if first in _READERS:
        return _READERS[first](cursor, text)
    if first in _ELSEWHERE:
        raise unsupported(first.upper())
    raise cursor.error()
