"""SET and RESET of a session's variables, as they are written.  Pure.

SET TRANSACTION and SET SESSION CHARACTERISTICS are about blocks (:mod:`sql.syntax.control`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokens import TokenType

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import Statement
from trees.errors import unsupported
from values.text.keywords import quoted_identifier

_OF_SEVERAL_WORDS = {
    ("time", "zone"): "timezone",
    ("transaction", "isolation", "level"): "transaction_isolation",
    ("session", "authorization"): "session_authorization",
}
"""Variables that are named by words of their own."""

_LISTS = ("search_path", "datestyle")
"""Variables that take several values, of which the first one's are names (``GUC_LIST_QUOTE`` in Postgres)."""

_INTEGER_MAX = 2**31 - 1
"""The greatest number that Postgres reads as an integer; a greater one keeps its digits as they were written."""


@dataclass(frozen=True)
class SetVariable(Statement):
    """``value`` is ``None`` for DEFAULT (and RESET)."""

    name: str
    value: str | None
    local: bool = False
    was_reset: bool = field(default=False, compare=False)
    """Whether it was written RESET, which only its tag tells."""

    @property
    def tag(self) -> str:
        return "RESET" if self.was_reset else "SET"

    @classmethod
    def read(cls, c: Cursor, text: str) -> SetVariable:
        c.expect("set")
        local = c.take("local")
        if not local and c.word() == "session" and c.word(1) != "authorization":
            c.at += 1
        name, value = _by_its_words(c) or _assigned(c)
        c.end()
        return cls(name, value, local)


def _by_its_words(c: Cursor) -> tuple[str, str | None] | None:
    """What has a form of its own, without ``=`` and TO; ``None`` where something else is set."""
    if c.word(1) in ("=", "to", "."):  # a variable that is merely called so
        return None
    if c.take("time", "zone"):
        return "timezone", _zone(c)
    if c.take("schema"):
        return "search_path", quoted_identifier(c.string())
    if c.take("names"):
        return "client_encoding", _encoding(c)
    if c.take("role"):
        return "role", _word_or_string(c)
    if c.take("session", "authorization"):
        return "session_authorization", None if c.take("default") else _word_or_string(c)
    return None


def _encoding(c: Cursor) -> str | None:
    if c.at_string:
        return c.string()
    c.take("default")  # the word may be missing
    return None


def _zone(c: Cursor) -> str | None:
    if c.take("default") or c.take("local"):
        return None
    if c.word() == "interval":
        raise unsupported(
            "a time zone as an interval", hint="use the name of a time zone, such as Europe/Berlin", position=c.position
        )
    return _one_value(c)


def _assigned(c: Cursor) -> tuple[str, str | None]:
    name = variable_name(c)
    if not (c.take("to") or c.take("=")):
        raise c.error()
    if c.take("default"):
        return name, None
    key = name.lower()
    values = [_one_value(c, key == "search_path")]
    while c.take(","):
        values.append(_one_value(c, key == "search_path"))
    c.end()  # what is no value at all is said before that there are too many
    if len(values) > 1 and key not in _LISTS:
        raise InvalidUsage(f"SET {name} takes only one argument", sqlstate="22023")
    return name, ", ".join(values)


@dataclass(frozen=True)
class ResetAll(Statement):
    tag = "RESET"


def read_reset(c: Cursor) -> SetVariable | ResetAll:
    """What stands after RESET."""
    if c.take("all"):
        c.end()
        return ResetAll()
    name = variable_name(c)
    c.end()
    return SetVariable(name, None, was_reset=True)


def variable_name(c: Cursor) -> str:
    for words, name in _OF_SEVERAL_WORDS.items():
        if c.take(*words):
            return name
    name = c.identifier()
    while c.take("."):
        name += "." + c.identifier()
    return name


def _one_value(c: Cursor, is_name: bool = False) -> str:
    """A word, a string or a number.  ``is_name``: quoted where it has to be, so that it stays one name."""
    token = c.current
    if token is not None and (token.token_type == TokenType.NUMBER or c.word() in ("+", "-", ".")):
        return _number(c)
    value = _word_or_string(c)
    return quoted_identifier(value) if is_name else value


def _word_or_string(c: Cursor) -> str:
    if c.at_string:
        return c.string()
    return c.identifier(allow=("true", "false", "on"))


def _number(c: Cursor) -> str:
    """A number as Postgres shows it: an integer without the zeros before it, everything else as it was written."""
    sign = "-" if c.take("-") else ""
    if not sign:
        c.take("+")
    begin = c.position - 1
    c.take(".")
    if c.current is None or c.current.token_type != TokenType.NUMBER:
        raise c.error()
    digits = c.text[begin : c.current.end + 1]
    c.at += 1
    is_integer = digits.isdecimal() and int(digits) <= _INTEGER_MAX
    return sign + (str(int(digits)) if is_integer else digits)
