"""PRIMARY KEY, UNIQUE and CHECK as statements define them, on a column or on a table.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import CHECK, PRIMARY, UNIQUE
from sql.syntax.cursor import Cursor
from sql.syntax.to_tree import parse_tokens
from trees.errors import syntax, unsupported

CONSTRAINTS = frozenset("check constraint exclude foreign primary unique".split())
"""First words of what is said of a table beside its columns."""


@dataclass(frozen=True)
class Constraint:
    """``kind`` is :data:`PRIMARY`, :data:`UNIQUE` or :data:`CHECK` of :mod:`catalog_log.objects`; ``name`` is ``None``
    where it is given one; ``at`` is where its columns stand.  A CHECK has no columns but a ``condition``, which was
    written as ``sql``."""

    kind: str
    columns: tuple[str, ...]
    name: str | None = None
    at: int = 0
    condition: exp.Expression | None = None
    sql: str = ""


def constraint_said(c: Cursor, column: str | None = None) -> Constraint | None:
    """``[CONSTRAINT name]`` and ``CHECK (…)``, or ``PRIMARY KEY`` or ``UNIQUE`` with the columns behind it where it is
    not that of a ``column``.

    ``None``, and nothing stepped over, where something else is said.
    """
    start = c.at
    name = c.identifier() if c.take("constraint") else None
    kind = _kind(c)
    if kind is None:
        c.at = start
        return None
    at = c.position - 1
    if kind == CHECK:
        return _check(c, name)
    if kind == UNIQUE and c.take("nulls", "not", "distinct"):
        raise unsupported("UNIQUE NULLS NOT DISTINCT", position=at + 1)
    if kind == UNIQUE:
        c.take("nulls", "distinct")
    if c.word() == "using" and c.word(1) == "index" and column is None:
        raise unsupported(f"{kind.upper()} USING INDEX", "name the columns", position=c.position)
    columns = (column,) if column is not None else c.names()
    for word in ("include", "with", "using"):
        if c.word() == word:
            raise unsupported(f"{kind.upper()} … {word.upper()}", position=c.position)
    _check_immediate(c, kind)
    return Constraint(kind, columns, name, at)


def _check(c: Cursor, name: str | None) -> Constraint:
    c.expect("(")
    at, tokens = c.position - 1, c.until()
    if not tokens:
        raise c.error()
    c.expect(")")
    c.take("no", "inherit")  # nothing inherits
    _check_immediate(c, CHECK)
    text, condition = c.text[tokens[0].start : tokens[-1].end + 1], parse_tokens(tokens, c.text)
    if isinstance(condition, exp.Alias):
        called = condition.args["alias"]
        raise syntax(called.name, called.meta.get("start", at) + 1)
    return Constraint(CHECK, (), name, at, condition, text)


def _kind(c: Cursor) -> str | None:
    token = c.current
    if token is None or c.word() not in ("primary", "unique", "check"):
        return None
    c.at += 1
    if c.source(token).lower() == "check":
        return CHECK
    if c.source(token).lower() == "unique":
        return UNIQUE
    if len(c.source(token).split()) == 1:  # the tokenizer makes one of both words where nothing stands between them
        c.expect("key")
    return PRIMARY


def _check_immediate(c: Cursor, kind: str) -> None:
    """0A000 for what is checked at the end of a transaction; the words for the contrary are stepped over."""
    while True:
        if c.word() == "deferrable" or (c.word() == "initially" and c.word(1) == "deferred"):
            raise unsupported(f"{kind.upper()} … DEFERRABLE", "it is checked by each statement", position=c.position)
        if not c.take("not", "deferrable") and not c.take("initially", "immediate"):
            return
