"""MERGE as it is written: a part that writes for each WHEN, beside which its matches are counted.  Pure.

Which of its clauses a row is for is said of the row that was there before and of the source's, for all clauses alike:
so each is an UPDATE … FROM, a DELETE … USING or an INSERT … SELECT of the rows for which no clause before it was.  They
are made of the statement's own tokens, as those are: what is wrong in one is told where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.assigned import Assigned
from sql.syntax.changes import Delete, Update, read_set, read_target, rows_of
from sql.syntax.cursor import Cursor, made_token
from sql.syntax.query import SYSTEM, USER, Insert, Query
from sql.syntax.statement import Name, Statement
from sql.syntax.tokens import tokenize
from sql.syntax.writing import Before, Part, Writing, check_part, parameters
from trees.errors import syntax, unsupported


@dataclass(frozen=True)
class Merge(Writing):
    """The query behind counts, for each of ``counted``, which rows match it.  Of its WITH queries ``own`` are the
    clauses: those written before MERGE change rows that it does not count."""

    counted: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()

    @property
    def tag(self) -> str:
        return "MERGE"


@dataclass
class _When:
    """A clause.  ``verb``: ``update``, ``delete``, ``insert`` or ``nothing``; ``left`` the places of the values that
    are DEFAULT."""

    number: int
    at: Token
    matched: bool
    condition: list[Token] | None
    verb: str = "nothing"
    columns: tuple[str, ...] | None = None
    overriding: str | None = None
    values: list[list[Token]] = field(default_factory=list)
    assigned: tuple[Assigned, ...] = ()
    left: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        return f"?when {self.number}"


@dataclass
class _Merging:
    """What all clauses have in common: what is merged into, out of and where they meet, and how MERGE begins."""

    c: Cursor
    before: Before
    first: Token
    table: Name
    target: list[Token]
    source: list[Token]
    on: list[Token]

    def where(self, rest: Sequence[Token] = ()) -> list[Token]:
        return [*_words("WHERE", self.on[0]), *_bracketed(self.on), *rest]

    def missed(self, rest: Sequence[Token]) -> list[Token]:
        """Of rows of the source that meet none."""
        none = [*_words("SELECT 1 FROM", self.on[0]), *self.target, *self.where()]
        return [*_words("WHERE NOT EXISTS", self.on[0]), *_bracketed(none), *rest]

    def part(self, name: str | None, at: Token, own: Sequence[Token], made: Callable[[list[Token]], Statement]) -> Part:
        """What is ``made`` behind the WITH queries that it may read: ``own`` are the words of it that are no other
        part's."""
        body = [*own, *self.target, *self.source, *self.on]
        below = self.before.read_by(body)
        statement = made(below.tokens)
        check_part(statement, at.start)
        return Part(name, (), at.start, statement, tuple(sorted(below.numbers | parameters(body))))

    def clause(self, each: _When, guard: list[Token]) -> Part:
        c = self.c

        def made(with_: list[Token]) -> Statement:
            if each.verb == "update":
                rows = rows_of(c, with_, each.values, self.target, self.source, self.where(guard))
                return Update(self.table, rows, None, each.assigned)
            if each.verb == "delete":
                return Delete(self.table, rows_of(c, with_, [], self.target, self.source, self.where(guard)), None)
            rows = rows_of(c, with_, each.values, self.source, [], self.missed(guard), stars=True)
            return Insert(self.table, each.columns, rows, each.overriding, with_=rows.args.get("with_"), left=each.left)

        return self.part(each.name, each.at, [*(token for value in each.values for token in value), *guard], made)

    def nothing(self) -> Part:
        """A part that writes, and no row."""

        def made(with_: list[Token]) -> Statement:
            rows = rows_of(self.c, with_, [], self.target, [], _words("WHERE false", self.first))
            return Delete(self.table, rows, None)

        return self.part("?none", self.first, (), made)

    def count(self, counts: list[list[Token]]) -> Part:
        """The statement itself.  Also where nothing is counted: a name in ON that both sides have is found to be of two
        here alone."""
        where = self.where([] if counts else _words("AND false", self.first))

        def made(with_: list[Token]) -> Statement:
            return Query(rows_of(self.c, with_, counts, self.target, self.source, where), self.c.text)

        return self.part(None, self.first, [token for each in counts for token in each], made)


def read_merge(c: Cursor, before: Before, parts: Sequence[Part] = ()) -> Merge:
    """What stands from MERGE on; ``before`` are the queries before it, and ``parts`` what those are."""
    first = c.tokens[c.at]
    c.expect("merge", "into")
    at = c.position
    table, target = read_target(c)
    c.expect("using")
    source = _source(c)
    c.expect("on")
    merging = _Merging(c, before, first, table, target, source, _up_to(c, lambda word: word == "when"))
    whens = _read_whens(c)
    clauses: list[Part] = []
    counts: list[list[Token]] = []
    counted: list[str] = []
    for number, each in enumerate(whens):
        guard: list[Token] = []
        for other in whens[:number]:
            if other.matched == each.matched and other.condition is not None:
                unmet = [*_bracketed(other.condition), *_words("IS NOT TRUE", other.condition[0])]
                guard += [*_words("AND", other.condition[0]), *_bracketed(unmet)]
        if each.condition is not None:
            guard += [*_words("AND", each.condition[0]), *_bracketed(each.condition)]
        if each.verb != "nothing":
            clauses.append(merging.clause(each, guard))
        if each.verb in ("update", "delete"):
            counts.append([*_words("count(*) FILTER (WHERE true", each.at), *guard, *_words(")", each.at)])
            counted.append(each.name)
    # Behind WITH its name is that query's, for every part but the one that writes.
    if len(table.parts) == 1 and any(part.name == table.last for part in parts):
        told = "a WITH query of MERGE that is called as its table"
        raise unsupported(told, "call it otherwise, or the table with its schema", at)
    all_ = (*parts, *(clauses or [merging.nothing()]), merging.count(counts))
    return Merge(c.text, all_, tuple(counted), frozenset(each.name for each in whens))


def _read_whens(c: Cursor) -> list[_When]:
    whens: list[_When] = []
    done = {True: False, False: False}
    while c.current is not None:
        each = _when(c, len(whens) + 1)
        if done[each.matched]:
            raise syntax(None, None, "unreachable WHEN clause specified after unconditional WHEN clause")
        done[each.matched] = each.condition is None
        whens.append(each)
    if not whens:
        raise c.error()
    return whens


def _source(c: Cursor) -> list[Token]:
    """What stands up to the ON that is of no JOIN."""
    joins, before = 0, None

    def ends(word: str | None) -> bool:
        nonlocal joins, before
        if word == "on" and not joins:
            return True
        joins += word == "join" and before not in ("cross", "natural")
        joins -= word in ("on", "using")
        if word in ("cross", "natural") or before != "natural" or word == "join":
            before = word  # NATURAL LEFT JOIN is one as well
        return False

    return _up_to(c, ends)


def _up_to(c: Cursor, ends: Callable[[str | None], bool]) -> list[Token]:
    """What stands up to the first word of which ``ends`` says so: it is asked of each that is in no bracket and no
    CASE.  42601 where nothing stands there."""
    start = c.at
    opened: list[str] = []
    while c.current is not None:
        word = c.word()
        if not opened and ends(word):
            break
        if word in _CLOSED_BY:
            opened.append(_CLOSED_BY[word])
        elif opened and word == opened[-1]:
            opened.pop()
        elif word in (")", "]"):
            raise c.error()
        c.at += 1
    if start == c.at:
        raise c.error()
    return c.tokens[start : c.at]


_CLOSED_BY = {"(": ")", "[": "]", "case": "end"}


def _when(c: Cursor, number: int) -> _When:
    at = c.tokens[c.at]
    c.expect("when")
    matched = not c.take("not")
    c.expect("matched")
    condition = _up_to(c, lambda word: word == "then") if c.take("and") else None
    c.expect("then")
    found = _When(number, at, matched, condition)
    if c.take("do", "nothing"):
        return found
    if matched and c.take("delete"):
        found.verb = "delete"
    elif matched and c.take("update", "set"):
        found.verb = "update"
        _read_update(c, found)
    elif not matched and c.take("insert"):
        found.verb = "insert"
        _read_insert(c, found)
    else:
        raise c.error()
    if c.current is not None and c.word() != "when":
        raise c.error()
    return found


def _read_update(c: Cursor, found: _When) -> None:
    own = Cursor(c.text, _up_to(c, lambda word: word == "when"))
    try:
        found.assigned, found.values = read_set(own)
        own.end()
    except InvalidUsage as error:
        if own.current is None and c.current is not None and error.position == own.position:
            raise c.error() from error  # it ends where the next clause begins
        raise


def _read_insert(c: Cursor, found: _When) -> None:
    if c.word() == "(":
        found.columns = c.names()
    if c.take("overriding"):
        found.overriding = SYSTEM if c.take(SYSTEM) else USER
        if found.overriding == USER:
            c.expect(USER)
        c.expect("value")
    elif found.columns is None and c.take("default", "values"):
        found.values, found.left = [_words("NULL", found.at)], frozenset({0})
        return
    c.expect("values", "(")
    while True:
        value = _up_to(c, lambda word: word in (",", ")"))
        if len(value) == 1 and value[0].token_type != TokenType.IDENTIFIER and c.source(value[0]).lower() == "default":
            found.left |= {len(found.values)}
            value = _words("NULL", found.at)
        found.values.append(value)
        if not c.take(","):
            break
    c.expect(")")


def _bracketed(tokens: Sequence[Token]) -> list[Token]:
    first, last = tokens[0], tokens[-1]
    return [made_token("L_PAREN", "(", first), *tokens, made_token("R_PAREN", ")", last)]


@lru_cache(64)
def _known(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((token.token_type.name, token.text) for token in tokenize(text))


def _words(text: str, at: Token) -> list[Token]:
    """``text``, which the user did not write, in the place of a token that he did."""
    return [made_token(kind, word, at) for kind, word in _known(text)]
