"""WITH queries that write rows, taken apart: each is a statement by itself, as is the one behind them.  Pure.

Each part has before it the WITH queries that it may read.  In the place of one that writes stands a query of a relation
of that name in the schema :data:`GIVEN`, which no client can write: whoever plans the part knows what it gives, and
whoever runs it has the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor, made_token
from sql.syntax.statement import Kind, Statement
from trees.errors import syntax

_WRITES = ("insert", "update", "delete")

GIVEN = "\0with"
"""The schema of what WITH queries give that write: names that are sent have no zero byte."""

Whole = Callable[[Cursor, int], Statement]
"""What stands in a cursor, whose WITH ends before a place in its tokens."""


@dataclass(frozen=True)
class Part:
    """A WITH query called ``name``, with these ``columns`` where they are listed, or the statement itself (``None``):
    it begins at ``lower`` of the text.  ``statement`` is what stands there, where that writes or is the statement
    itself, behind the WITH queries that it may read; ``numbers`` are the parameters in those that do not write, and in
    it."""

    name: str | None
    columns: tuple[str, ...]
    lower: int
    statement: Statement | None
    numbers: tuple[int, ...] = ()

    @property
    def writes(self) -> bool:
        return self.statement is not None and self.statement.sort in (Kind.INSERT, Kind.CHANGE)


@dataclass(frozen=True)
class Writing(Statement):
    """A statement with WITH queries of which some write; ``parts`` in their order, itself last."""

    sort = Kind.CHANGE

    text: str
    parts: tuple[Part, ...]

    @property
    def tag(self) -> str:
        return self.main.tag

    @property
    def main(self) -> Statement:
        found = self.parts[-1].statement
        assert found is not None
        return found


@dataclass
class _Item:
    """A WITH query as it was read, or the statement itself: its tokens with its name, and those of its body."""

    name: str | None
    columns: tuple[str, ...]
    whole: Sequence[Token]
    body: Sequence[Token]
    writes: bool

    @property
    def lower(self) -> int:
        return self.body[0].start

    @property
    def upper(self) -> int:
        return self.body[-1].end + 1

    @property
    def tokens(self) -> list[Token]:
        """It as a WITH query for others."""
        if not self.writes:
            return list(self.whole)
        name = self.whole[0]

        def made(kind: str, text: str) -> Token:
            return made_token(kind, text, name)

        relation = [made("IDENTIFIER", GIVEN), made("DOT", "."), made("IDENTIFIER", self.name or "")]
        query = [made("SELECT", "select"), made("STAR", "*"), made("FROM", "from"), *relation]
        return [name, made("ALIAS", "as"), made("L_PAREN", "("), *query, made("R_PAREN", ")")]


@dataclass(frozen=True)
class Before:
    """The WITH queries before a statement; ``prefix`` is WITH [RECURSIVE]."""

    prefix: Sequence[Token] = ()
    items: Sequence[_Item] = ()

    def read_by(self, body: Sequence[Token]) -> Before:
        """Those that what is written as ``body`` may read, each before those that read it."""
        wanted, found = _words(body), []
        for each in reversed(self.items):
            if each.name is not None and each.name.lower() in wanted:
                found.append(each)
                if not each.writes:
                    wanted |= _words(each.body)
        return Before(self.prefix, found[::-1])

    def to(self, at: int) -> Before:
        """Those before the query ``at``."""
        return Before(self.prefix, self.items[:at])

    @property
    def tokens(self) -> list[Token]:
        """WITH and all of them, to stand before a statement; nothing where there are none."""
        found: list[Token] = []
        for each in self.items:
            found += [made_token("COMMA", ",", each.whole[0]), *each.tokens] if found else each.tokens
        return [*self.prefix, *found] if found else []

    @property
    def numbers(self) -> set[int]:
        """The parameters in those of them that do not write."""
        return {number for each in self.items if not each.writes for number in parameters(each.body)}

    def parts(self, c: Cursor, parse: Callable[[str], Statement], whole: Whole) -> list[Part]:
        """Each of them as a part of the statement in ``c``.  ``parse`` reads a part that has no WITH queries before it,
        ``whole`` one that has."""
        return [_part(c, self.to(at), each, parse, whole) for at, each in enumerate(self.items)]


NONE_BEFORE = Before()


def read_writing(c: Cursor, parse: Callable[[str], Statement], whole: Whole) -> Writing | None:
    """What begins with WITH, where one of its queries writes; ``None`` where none does.  ``parse`` and ``whole`` as
    :meth:`Before.parts` has them.

    Raises what they do; 0A000 where what writes stands deeper.
    """
    c = Cursor(c.text)
    before = read_before(c)
    if before is None or not any(each.writes for each in before.items) or c.current is None:
        return None
    main = _Item(None, (), (), c.tokens[c.at :], False)
    parts = [*before.parts(c, parse, whole), _part(c, before, main, parse, whole)]
    if parts[-1].statement is None or parts[-1].statement.sort not in (Kind.SELECT, Kind.INSERT, Kind.CHANGE):
        raise c.error()
    return Writing(c.text, tuple(parts))


def read_before(c: Cursor) -> Before | None:
    """The WITH queries that ``c`` begins with, up to what stands behind them; ``None`` where they are not written as
    they should be, which is told by who reads it as a query."""
    c.expect("with")
    c.take("recursive")
    prefix = c.tokens[: c.at]
    items: list[_Item] = []
    while True:
        start = c.at
        try:
            name = c.identifier()
            columns = c.names() if c.word() == "(" else ()
        except InvalidUsage:
            return None
        if not c.take("as"):
            return None
        c.take("not")
        c.take("materialized")
        if not c.take("("):
            return None
        word, at = c.word(), c.position
        body = c.until()
        if not body or c.word() != ")":
            return None
        c.at += 1
        if word == "merge":
            raise InvalidUsage("MERGE not supported in WITH query", sqlstate="0A000", position=at)
        writes = word in _WRITES or (word == "with" and _behind(Cursor(c.text, body)) in _WRITES)
        if any(each.name == name for each in items):
            told = f'WITH query name "{name}" specified more than once'
            raise InvalidUsage(told, sqlstate="42712", position=c.tokens[start].start + 1)
        items.append(_Item(name, columns, c.tokens[start : c.at], body, writes))
        if not c.take(","):
            return Before(prefix, items)


def _part(c: Cursor, before: Before, item: _Item, parse: Callable[[str], Statement], whole: Whole) -> Part:
    below = before.read_by(item.body)
    statement = None
    if item.writes or item.name is None:
        statement = _statement(c, item, below, parse, whole)
        if len(before.prefix) > 1 and item.name is not None and _named(statement, item.name):
            told = f'recursive query "{item.name}" must not contain data-modifying statements'
            raise InvalidUsage(told, sqlstate="42P19", position=item.whole[0].start + 1)
    numbers = below.numbers | parameters(item.body)
    return Part(item.name, item.columns, item.lower, statement, tuple(sorted(numbers)))


def _words(body: Sequence[Token]) -> set[str]:
    """All names and words in it, in lower case."""
    return {token.text.lower() for token in body}


def parameters(body: Sequence[Token]) -> set[int]:
    """The numbers of each ``$n`` in it."""
    return {
        int(two.text) for one, two in zip(body, body[1:], strict=False)
        if one.token_type == TokenType.PARAMETER and two.text.isdigit() and one.end + 1 == two.start
    }  # fmt: skip


def _statement(
    c: Cursor, item: _Item, below: Before, parse: Callable[[str], Statement], whole: Whole
) -> Statement:  # fmt: skip
    """``item`` as a statement, ``below`` before it."""
    if below.items:
        tokens, prefix = below.tokens, below.prefix
        own, behind = list(item.body), Cursor(c.text, list(item.body))
        at = behind_with(behind) if behind.word() == "with" else 0
        if at is None:
            raise behind.error()
        if at:  # its own queries behind those that it reads
            begun = 1 + (behind.word(1) == "recursive")
            tokens += [made_token("COMMA", ",", own[0]), *own[begun:at]]
            if begun > 1 and len(prefix) == 1:
                tokens.insert(1, own[1])
        found = whole(Cursor(c.text, [*tokens, *own[at:]]), len(tokens))
    else:
        found = parse(" " * item.lower + c.text[item.lower : item.upper])  # each word where it stands in the whole
    if isinstance(found, Writing):
        raise _deeper(item.lower)
    check_part(found, item.lower)
    if getattr(found, "as_of", None) is not None:
        raise syntax("AS", item.lower + 1)
    return found


def check_part(statement: Statement, lower: int) -> None:
    """0A000 where something in it writes, which stands at ``lower``."""
    if any(_writes_within(each) for each in vars(statement).values() if isinstance(each, exp.Expression)):
        raise _deeper(lower)


def _deeper(lower: int) -> InvalidUsage:
    told = "WITH clause containing a data-modifying statement must be at the top level"
    return InvalidUsage(told, sqlstate="0A000", position=lower + 1)


def behind_with(c: Cursor) -> int | None:
    """Where the statement begins that WITH stands before; ``None`` where it is not written as it should be."""
    at = 1 + (c.word(1) == "recursive")
    while True:
        at += 1
        if c.word(at) == "(":
            at = _closed(c, at)
        if c.word(at) != "as":
            return None
        at += 1
        while c.word(at) in ("not", "materialized"):
            at += 1
        if c.word(at) != "(":
            return None
        at = _closed(c, at)
        if c.word(at) != ",":
            return at if c.word(at) is not None else None
        at += 1


def _closed(c: Cursor, at: int) -> int:
    """The place behind what is closed that opens at ``at``."""
    depth = 0
    while at < len(c.tokens):
        depth += (c.word(at) == "(") - (c.word(at) == ")")
        at += 1
        if not depth:
            break
    return at


def _behind(c: Cursor) -> str | None:
    """The first word behind the WITH that ``c`` begins with."""
    at = behind_with(c)
    return None if at is None else c.word(at)


def _named(statement: Statement, name: str) -> bool:
    """Whether ``statement`` reads a relation that is called so."""
    for key, tree in vars(statement).items():
        if isinstance(tree, exp.Expression):
            target = tree.args["from_"].this if key == "rows" else None  # of a change: its table
            if any(t is not target and not t.db and t.name.lower() == name.lower() for t in tree.find_all(exp.Table)):
                return True
    return False


def _writes_within(tree: exp.Expression) -> bool:
    return any(isinstance(each.this, exp.DML) for each in tree.find_all(exp.CTE))
