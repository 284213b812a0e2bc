"""Queries and INSERTs as they are written.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from sql.syntax.cursor import Cursor, made_token
from sql.syntax.on_conflict import OnConflict, read_conflict
from sql.syntax.reserved import RESERVED
from sql.syntax.returned import read_returning
from sql.syntax.statement import Kind, Name, Statement
from sql.syntax.to_tree import parse_tokens
from sql.syntax.tokens import tokenize
from sql.syntax.values_list import Cells
from trees.errors import unsupported
from trees.unwritten import Unwritten


@dataclass(frozen=True)
class AsOf:
    """What stands behind ``AS OF``, and how it was written."""

    tree: exp.Expression
    text: str


@dataclass(frozen=True)
class Query(Statement):
    sort = Kind.SELECT
    tag = "SELECT"

    tree: exp.Expression | Unwritten
    text: str
    as_of: AsOf | None = None
    """At which timestamp it reads; ``None``: where its session does."""

    @property
    def ast(self) -> exp.Expression:
        """The whole of it, written out."""
        return self.tree.written if isinstance(self.tree, Unwritten) else self.tree

    @classmethod
    def read(cls, c: Cursor, text: str) -> Query:
        at = _as_of(c)
        if at is None:
            return cls(c.parse_query(unwritten=True), text)
        behind = c.tokens[at + 2 :]
        if [c.word(ahead) for ahead in range(at + 2 - c.at, at + 4 - c.at)] == ["at", "least"]:
            raise unsupported("AS OF AT LEAST", hint="say AS OF", position=behind[0].start + 1)
        query = Cursor(c.text, c.tokens[:at])
        query.at = c.at
        tree = query.parse_query(unwritten=True)
        c.at = at + 2
        found = parse_tokens(behind, c.text)
        if isinstance(found, exp.Query) and not isinstance(found, exp.Subquery):
            raise c.error("AS OF stands behind the whole query")
        return cls(tree, text, AsOf(found, c.text[behind[0].start : behind[-1].end + 1]))


def _as_of(c: Cursor) -> int | None:
    """Where ``AS OF`` stands among the tokens, outside of all brackets; ``None`` where it is not said.

    ``of`` is a name, too: ``a AS of, b``, ``t AS of (x, y)``, ``t AS of JOIN u``.  Behind a name there is no value.
    """
    depth, found = 0, None
    for at in range(c.at, len(c.tokens)):
        word = c.word(at - c.at)
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth == 0 and word == "as" and c.word(at + 1 - c.at) == "of" and _value_at(c, at + 2):
            found = at
    return found


def _value_at(c: Cursor, at: int) -> bool:
    """Whether a value begins at that token, and neither a clause nor the names of a relation's columns."""
    if at >= len(c.tokens):
        return False
    token, word = c.tokens[at], c.word(at - c.at)
    if token.token_type == TokenType.STRING or token.token_type in (TokenType.NUMBER, TokenType.PARAMETER):
        return True
    if word == "(":
        return c.word(at + 2 - c.at) not in (",", ")") or c.tokens[at + 1].token_type == TokenType.NUMBER
    following = c.word(at + 1 - c.at)
    return word in _VALUES or word is not None and word not in RESERVED and following in ("(", "::")


_VALUES = frozenset("- + at case cast current_timestamp date extract interval null timestamp timestamptz".split())
"""What values begin with besides literals and calls."""


SYSTEM, USER = "system", "user"


@dataclass(frozen=True)
class Insert(Statement):
    """``source`` is ``None`` for ``DEFAULT VALUES``; ``columns`` is ``None`` where the list was left out; ``returning``
    are the outputs that RETURNING asks for, ``None`` where it is not there."""

    sort = Kind.INSERT
    tag = "INSERT"

    table: Name
    columns: tuple[str, ...] | None
    source: exp.Expression | Cells | None
    overriding: str | None = None
    """``OVERRIDING …``: whose values count for identity columns, those that are given (``SYSTEM`` is overridden) or
    theirs (``USER``)."""
    alias: str | None = None
    """What the table is called behind AS."""
    returning: tuple[exp.Expression, ...] | None = None
    conflict: OnConflict | None = None
    with_: exp.With | None = None
    """The WITH queries that stand before it, which all parts of it may read."""
    left: frozenset[int] = frozenset()
    """Outputs of ``source``, a query, in whose places DEFAULT stands."""
    posted: str | None = None
    """Of what was posted: the id of the source that it is for.  No text says so."""

    @property
    def called(self) -> str:
        """What the table is called in the statement."""
        return self.alias or self.table.last

    @classmethod
    def of_cells(cls, head: str, cells: Cells) -> Insert:
        """One of plain literals and parameters: ``head`` is what stands before VALUES.  42601 for what stands behind
        them."""
        table, columns = (_known_head if len(head) <= HEAD_CHARS_MAX else _head)(head)
        if cells.rest is None:
            return cls(table, columns, cells)
        c = _cursor_at(cells.text, cells.rest)
        conflict = read_conflict(c)
        return cls(table, columns, cells, conflict=conflict, returning=read_returning(c))

    @classmethod
    def read(cls, c: Cursor, text: str, with_: Sequence[Token] = ()) -> Insert:
        c.expect("insert", "into")
        table = c.name()
        alias = c.identifier() if c.take("as") else None
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
            conflict = read_conflict(c)
            return cls(table, columns, None, None, alias, read_returning(c), conflict)
        again, at = c.word() == "with" and len(with_) > 0, c.position
        body = _source(c)
        if again:
            body = [made_token("L_PAREN", "(", body[0]), *body, made_token("R_PAREN", ")", body[-1])]
        source = Cursor(c.text, [*with_, *body])
        if not again and (not body or source.word(len(with_)) not in ("select", "with", "values", "table", "(")):
            c.at -= len(body)
            raise c.error()
        if with_ and source.word(len(with_)) == "table":
            at = body[0]
            words = ("SELECT", "select"), ("STAR", "*"), ("FROM", "from")
            source = Cursor(c.text, [*with_, *(made_token(kind, word, at) for kind, word in words), *body[1:]])
        conflict, found, returning = read_conflict(c), source.parse_query(), read_returning(c)
        names = [each.alias for each in found.args["with_"].expressions] if again else []
        if len(set(names)) < len(names):
            raise unsupported("WITH before INSERT and again behind it", "call no two of its queries the same", at)
        before = found.args.get("with_") if with_ else None
        return cls(table, columns, found, overriding, alias, returning, conflict, before)


def _source(c: Cursor) -> list[Token]:
    """The tokens up to RETURNING or ON CONFLICT, which an ON of a join is not."""
    found = c.until("returning", "on")
    while c.word() == "on" and c.word(1) != "conflict":
        found += [c.tokens[c.at]]
        c.at += 1
        found += c.until("returning", "on")
    return found


def _cursor_at(text: str, start: int) -> Cursor:
    """Over what stands from ``start`` on, without semicolons at its end."""
    return Cursor(
        text,
        [
            Token(each.token_type, each.text, each.line, each.col, each.start + start, each.end + start)
            for each in tokenize(text[start:].rstrip("; \t\r\n"))
        ],
    )


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
