"""DELETE, UPDATE and TRUNCATE as they are written.  Pure.

The first two say which rows they are about as a query does, so that is what they hold: a SELECT over their table and
what stands beside it in USING or FROM, made of their own tokens, whose outputs are the values that an UPDATE sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token

from sql.syntax.assigned import Assigned, assignments
from sql.syntax.cursor import Cursor, made_token
from sql.syntax.returned import read_returning
from sql.syntax.statement import Kind, Name, Statement
from sql.syntax.to_tree import parse_tokens
from trees.errors import syntax, unsupported


@dataclass(frozen=True)
class Change(Statement):
    """``rows`` is ``SELECT <values> FROM <the table>[, others] [WHERE …]``, with its WITH; ``returning`` the outputs
    that RETURNING asks for, ``None`` where it is not there."""

    sort = Kind.CHANGE

    table: Name
    rows: exp.Select
    returning: tuple[exp.Expression, ...] | None

    @property
    def joined(self) -> bool:
        """Whether other relations stand beside the table."""
        return bool(self.rows.args.get("joins"))


@dataclass(frozen=True)
class Delete(Change):
    tag = "DELETE"

    @classmethod
    def read(cls, c: Cursor, text: str, with_: Sequence[Token] = ()) -> Delete:
        c.expect("delete", "from")
        table, target = read_target(c)
        beside = _part(c, "using", "where", "returning")
        where = _where(c)
        returning = read_returning(c)
        c.end()
        return cls(table, rows_of(c, with_, [], target, beside, where), returning)


@dataclass(frozen=True)
class Update(Change):
    tag = "UPDATE"

    assigned: tuple[Assigned, ...] = ()

    @classmethod
    def read(cls, c: Cursor, text: str, with_: Sequence[Token] = ()) -> Update:
        c.expect("update")
        table, target = read_target(c)
        c.expect("set")
        assigned, values = read_set(c)
        beside = _part(c, "from", "where", "returning")
        where = _where(c)
        returning = read_returning(c)
        c.end()
        return cls(table, rows_of(c, with_, values, target, beside, where), returning, assigned)


@dataclass(frozen=True)
class Truncate(Statement):
    """``restart``: sequences of its columns begin anew; ``cascade`` reaches nothing, since there are no foreign
    keys."""

    sort = Kind.CHANGE
    tag = "TRUNCATE TABLE"

    tables: tuple[Name, ...]
    restart: bool = False
    cascade: bool = False

    @classmethod
    def read(cls, c: Cursor, text: str) -> Truncate:
        """What stands behind TRUNCATE."""
        c.take("table")
        tables = []
        while True:
            bracket = c.take("only") and c.take("(")
            tables.append(c.name())
            if bracket:
                c.expect(")")
            else:
                c.take("*")
            if not c.take(","):
                break
        restart = c.take("restart", "identity")
        if not restart:
            c.take("continue", "identity")
        cascade = c.take("cascade")
        if not cascade:
            c.take("restrict")
        c.end()
        return cls(tuple(tables), restart, cascade)


def read_target(c: Cursor) -> tuple[Name, list[Token]]:
    """The table, and the tokens that name it in FROM with what it is called."""
    only = c.word() == "only" and c.word(1) not in ("set", "using", "where", "returning", "as", ".", None)
    c.at += only
    start = c.at
    bracket = only and c.take("(")
    table = c.name()
    tokens = c.tokens[start + bracket : c.at]
    if bracket:
        c.expect(")")
    if not only:
        c.take("*")
    if c.word() not in ("set", "using", "where", "returning") and c.current is not None:
        start = c.at
        c.take("as")
        c.identifier()
        tokens = [*tokens, *c.tokens[start : c.at]]
    return table, tokens


def read_set(c: Cursor) -> tuple[tuple[Assigned, ...], list[list[Token]]]:
    """What stands behind SET, and the values that it assigns."""
    values: list[list[Token]] = []
    assigned: list[Assigned] = []
    while True:
        assigned += assignments(c, values)
        if not c.take(","):
            return tuple(assigned), values


def _part(c: Cursor, word: str, *stops: str) -> list[Token]:
    """What stands behind ``word``, where that comes next."""
    if not c.take(word):
        return []
    found = c.until(*stops)
    if not found:
        raise c.error()
    return found


def _where(c: Cursor) -> list[Token]:
    start = c.at
    if not c.take("where"):
        return []
    if c.word() == "current" and c.word(1) == "of":
        raise unsupported("WHERE CURRENT OF", "say which rows by their values", c.position)
    if not c.until("returning"):
        raise c.error()
    return c.tokens[start : c.at]


def rows_of(
    c: Cursor, with_: Sequence[Token], values: Sequence[Sequence[Token]], target: Sequence[Token],
    beside: Sequence[Token], where: Sequence[Token], stars: bool = False,
) -> exp.Select:  # fmt: skip
    """``[with_] SELECT <values> FROM <target>[, beside] [where]`` of what stands in ``c``; ``1`` where there are no
    values.  42601 where a value is more than one: ``stars`` may be."""
    first = target[0]
    comma = made_token("COMMA", ",", first)
    outputs = [token for value in values or [[made_token("NUMBER", "1", first)]] for token in (comma, *value)][1:]
    tokens = [
        *with_, made_token("SELECT", "select", first), *outputs, made_token("FROM", "from", first), *target,
        *([comma, *beside] if beside else ()), *where,
    ]  # fmt: skip
    made = parse_tokens(tokens, c.text)
    for token in tokens:
        if c.source(token).lower() == "default":  # a word that names nothing, but in quotes
            raise syntax(None, token.start + 1, "DEFAULT is not allowed in this context")
    allowed = ("expressions", "from_", "joins", "where", "with_", "laterals", "kind")
    if not isinstance(made, exp.Select) or any(value for key, value in made.args.items() if key not in allowed):
        last = (where or beside or target)[-1]
        raise syntax(c.source(last), last.start + 1)
    for each in made.expressions:
        if isinstance(each, exp.Alias):
            raise syntax(each.alias, each.args["alias"].meta.get("start", 0) + 1)
        if each.is_star and not stars:
            raise syntax("*", each.meta.get("start", 0) + 1)
    if len(made.expressions) != max(len(values), 1):
        raise c.error()
    return made
