"""SET and RESET of a session's variables, as they are written.  Pure.

SET TRANSACTION and SET SESSION CHARACTERISTICS are about blocks (:mod:`sql.syntax.control`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokens import TokenType

from sql.syntax.statement import Statement
from sql.syntax.tokens import Cursor
from values.text.keywords import quoted_identifier

_OF_SEVERAL_WORDS = {
    ("time", "zone"): "timezone",
    ("transaction", "isolation", "level"): "transaction_isolation",
    ("session", "authorization"): "session_authorization",
}
"""Variables that are named by words of their own; no ``=`` or TO need stand behind those."""

_LISTS = ("search_path", "schema")
"""Variables whose value is a list of names (``GUC_LIST_QUOTE`` in Postgres)."""


@dataclass(frozen=True)
class SetVariable(Statement):
    """``value`` is ``None`` for DEFAULT (and RESET)."""

    name: str
    value: str | None
    local: bool = False

    @property
    def tag(self) -> str:
        return "RESET" if self.value is None else "SET"

    @classmethod
    def read(cls, c: Cursor, text: str) -> SetVariable:
        c.expect("set")
        local = c.take("local")
        if c.word() == "session" and c.word(1) != "authorization":
            c.at += 1
        if c.take("names"):
            return cls("client_encoding", _value(c), local)
        name = variable_name(c)
        if not (c.take("to") or c.take("=")) and name not in (*_OF_SEVERAL_WORDS.values(), "schema"):
            raise c.error()
        if c.take("local"):
            return cls(name, None, local)
        value = _value(c, name.lower() in _LISTS)
        c.end()
        return cls(name, value.strip() if value is not None else None, local)


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
    return SetVariable(name, None)


def variable_name(c: Cursor) -> str:
    for words, name in _OF_SEVERAL_WORDS.items():
        if c.take(*words):
            return name
    name = c.identifier()
    while c.take("."):
        name += "." + c.identifier()
    return name


def _value(c: Cursor, of_names: bool = False) -> str | None:
    """A SET value: words, strings and numbers, comma-separated; ``None`` for DEFAULT.

    ``of_names``: each is one name, and is quoted where it has to be, so that it stays one."""
    if c.take("default"):
        return None
    parts = []
    while (token := c.current) is not None:
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            parts.append(quoted_identifier(token.text) if of_names else token.text)
        else:
            parts.append(c.source(token))
        c.at += 1
        if not c.take(","):
            if c.current is None:
                break
            if parts[-1] != "-":
                parts[-1] += " "
            parts[-1] += c.source(c.current) if c.current.token_type != TokenType.STRING else c.current.text
            c.at += 1
            if not c.take(","):
                continue
    if not parts:
        raise c.error()
    return ", ".join(parts)
