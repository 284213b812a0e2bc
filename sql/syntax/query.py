"""Queries and INSERTs as they are written.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from sql.syntax.cursor import Cursor
from sql.syntax.statement import Kind, Name, Statement
from sql.syntax.values_list import Cells
from trees.errors import unsupported
from trees.unwritten import Unwritten


@dataclass(frozen=True)
class Query(Statement):
    sort = Kind.SELECT
    tag = "SELECT"

    tree: exp.Expression | Unwritten
    text: str

    @property
    def ast(self) -> exp.Expression:
        """The whole of it, written out."""
        return self.tree.written if isinstance(self.tree, Unwritten) else self.tree

    @classmethod
    def read(cls, c: Cursor, text: str) -> Query:
        return cls(c.parse_query(unwritten=True), text)


SYSTEM, USER = "system", "user"


@dataclass(frozen=True)
class Insert(Statement):
    """``source`` is ``None`` for ``DEFAULT VALUES``; ``columns`` is ``None`` where the list was left out."""

    sort = Kind.INSERT
    tag = "INSERT"

    table: Name
    columns: tuple[str, ...] | None
    source: exp.Expression | Cells | None
    overriding: str | None = None
    """``OVERRIDING …``: whose values count for identity columns, those that are given (``SYSTEM`` is overridden) or
    theirs (``USER``)."""

    @classmethod
    def of_cells(cls, head: str, cells: Cells) -> Insert:
        """One of plain literals and parameters: ``head`` is what stands before VALUES."""
        return cls(*(_known_head if len(head) <= HEAD_CHARS_MAX else _head)(head), cells)

    @classmethod
    def read(cls, c: Cursor, text: str) -> Insert:
        c.expect("insert", "into")
        table = c.name()
        if c.take("as"):
            c.identifier()
        columns = None
        if c.word() == "(" and c.word(1) not in ("select", "with", "values", "("):
            columns = c.names()
        overriding = None
        if c.take("overriding"):
            overriding = SYSTEM if c.take(SYSTEM) else USER
            if overriding == USER:
                c.expect(USER)
            c.expect("value")
        elif c.take("default", "values"):
            c.end()
            return cls(table, columns, None)
        body = c.tokens[c.at :]
        for this, following in zip(body, [*body[1:], None], strict=False):
            word = c.source(this).lower()
            if word == "returning" or (
                word == "on" and following is not None and c.source(following).lower() == "conflict"
            ):
                returning = word == "returning"
                raise unsupported(
                    "INSERT … " + ("RETURNING" if returning else "ON CONFLICT"),
                    hint="ask for lastval() behind it: what its sequence gave last" if returning else None,
                    position=this.start + 1,
                )
        return cls(table, columns, Cursor(c.text, body).parse_query(), overriding)


HEADS_MAX, HEAD_CHARS_MAX = 512, 1_000
"""Beginnings of INSERTs that are remembered, and how long one may be: a program's INSERTs differ in their values."""


def _head(head: str) -> tuple[Name, tuple[str, ...] | None]:
    c = Cursor(head)
    c.expect("insert", "into")
    table = c.name()
    columns = tuple(c.names()) if c.word() == "(" else None
    c.end()
    return table, columns


_known_head = lru_cache(HEADS_MAX)(_head)
