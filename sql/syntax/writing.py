"""WITH queries that write rows, taken apart: each is a statement by itself, as is the one behind them.  Pure.

What a part reads of those before it stands in its text as a WITH query, whoever puts it there
(:meth:`Writing.text_of`): so each part is planned and run as any statement is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import TokenType

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import Kind, Statement
from sql.syntax.tokens import tokenize
from trees.errors import syntax

_WRITES = ("insert", "update", "delete")



@dataclass(frozen=True)
class Part:
    """A WITH query called ``name``, with these ``columns`` where they are listed, or the statement itself (``None``):
    ``[lower, upper)`` of the text.  ``statement`` is what stands there, where that writes or is the statement itself;
    ``before`` is how a query that does not is written whole."""

    name: str | None
    columns: tuple[str, ...]
    lower: int
    upper: int
    statement: Statement | None
    before: str = ""

    @property
    def writes(self) -> bool:
        return self.statement is not None and self.statement.sort in (Kind.INSERT, Kind.CHANGE)


@dataclass(frozen=True)
class Writing(Statement):
    """A statement with WITH queries of which some write; ``parts`` in their order, itself last."""

    sort = Kind.CHANGE

    text: str
    parts: tuple[Part, ...]
    recursive: bool = False

    @property
    def tag(self) -> str:
        return self.main.tag

    @property
    def main(self) -> Statement:
        found = self.parts[-1].statement
        assert found is not None
        return found

    def words(self, part: Part) -> set[str]:
        """All names and words in a part, as they would be written in lower case."""
        return {token.text.lower() for token in tokenize(self.text[part.lower : part.upper])}

    def below(self, part: Part) -> list[Part]:
        """The WITH queries that ``part`` may read, each before those that read it."""
        wanted, found = self.words(part), []
        for each in reversed(self.parts[: self.parts.index(part)]):
            if each.name is not None and each.name.lower() in wanted:
                found.append(each)
                if not each.writes:
                    wanted |= self.words(each)
        return found[::-1]

    def numbers(self, part: Part) -> tuple[int, ...]:
        """The parameters in the text of ``part`` and of the queries that it reads, in their order."""
        spans = [(each.lower, each.upper) for each in (*self.below(part), part) if each is part or not each.writes]
        return tuple(sorted({number for span in spans for _, _, number in _parameters(self.text, *span)}))

    def text_of(self, part: Part, given: Mapping[str, str]) -> tuple[str, int]:
        """A statement that is ``part``, and where its own text begins there: the parameters are numbered from 1 as
        :meth:`numbers` has them, and what ``given`` says of a query that writes is a WITH query of that name.

        0A000 where it reads one that gives nothing.
        """
        place = {number: at for at, number in enumerate(self.numbers(part), 1)}
        items = []
        for each in self.below(part):
            if not each.writes:
                items.append(_renumbered(each.before, self.text, each, place))
            elif (each.name or "") in given:
                items.append(given[each.name or ""])
            elif _named(part.statement, each.name or ""):
                told = f'WITH query "{each.name}" does not have a RETURNING clause'
                raise InvalidUsage(told, sqlstate="0A000")
        own = _renumbered("{}", self.text, part, place)
        word = "WITH RECURSIVE " if self.recursive else "WITH "
        if not items:
            return own, 0
        first = own.split(None, 1)
        if first[0].lower() == "with":  # its own queries behind those that it reads
            cursor = Cursor(own)
            cursor.at = 1 + (cursor.word(1) == "recursive")
            own = ", " + own[cursor.position - 1 :]
        head = word + ", ".join(items) + " "
        return head + own, len(head)


def _named(statement: Statement | None, name: str) -> bool:
    """Whether a relation is called so in the trees of ``statement``."""
    trees = [each for each in vars(statement).values() if isinstance(each, exp.Expression)] if statement else []
    return any(not t.db and t.name.lower() == name.lower() for tree in trees for t in tree.find_all(exp.Table))


def _parameters(text: str, lower: int, upper: int) -> list[tuple[int, int, int]]:
    """``(lower, upper, number)`` of each ``$n`` in ``[lower, upper)`` of ``text``."""
    tokens = tokenize(text[lower:upper])
    return [
        (lower + one.start, lower + two.end + 1, int(two.text))
        for one, two in zip(tokens, tokens[1:], strict=False)
        if one.token_type == TokenType.PARAMETER and two.text.isdigit() and one.end + 1 == two.start
    ]


def _renumbered(shape: str, text: str, part: Part, place: Mapping[int, int]) -> str:
    parts, done = [], part.lower
    for lower, upper, number in _parameters(text, part.lower, part.upper):
        parts += [text[done:lower], f"${place[number]}"]
        done = upper
    return shape.replace("{}", "".join([*parts, text[done : part.upper]]), 1)


def read_writing(c: Cursor, text: str, parse: Callable[[str], Statement]) -> Writing | None:
    """What begins with WITH, where one of its queries writes; ``None`` where none does.

    Raises what ``parse`` does of the parts; 0A000 where what writes stands deeper.
    """
    c = Cursor(c.text)
    c.expect("with")
    recursive = c.take("recursive")
    parts: list[Part] = []
    writes = False
    while True:
        start = c.position - 1
        try:
            name = c.identifier()
            columns = c.names() if c.word() == "(" else ()
        except InvalidUsage:
            return None  # which is told by who reads it as a query
        if not c.take("as"):
            return None
        c.take("not")
        c.take("materialized")
        if not c.take("("):
            return None
        lower, word = c.position - 1, c.word()
        body = c.until()
        if not body or c.word() != ")":
            return None
        upper = body[-1].end + 1
        c.at += 1
        statement = None
        if word == "merge":
            raise InvalidUsage("MERGE not supported in WITH query", sqlstate="0A000", position=lower + 1)
        if word in _WRITES or (word == "with" and _behind(c.text[lower:upper]) in _WRITES):
            writes, statement = True, _parsed(c.text, lower, upper, parse)
        if any(each.name == name for each in parts):
            told = f'WITH query name "{name}" specified more than once'
            raise InvalidUsage(told, sqlstate="42712", position=start + 1)
        before = c.text[start:lower] + "{}" + c.text[upper : c.tokens[c.at - 1].end + 1]
        parts.append(Part(name, columns, lower, upper, statement, before))
        if not c.take(","):
            break
    if not writes or c.current is None:
        return None
    end = c.tokens[-1].end + 1
    main = _parsed(c.text, c.position - 1, end, parse)
    if main.sort not in (Kind.SELECT, Kind.INSERT, Kind.CHANGE):
        raise c.error()
    return Writing(c.text, (*parts, Part(None, (), c.position - 1, end, main)), recursive)


def _behind(text: str) -> str | None:
    """The first word behind the WITH that ``text`` begins with."""
    c, depth = Cursor(text), 0
    while c.current is not None:
        word = c.word()
        if depth == 0 and word in (*_WRITES, "select", "values", "table") and c.at > 0:
            if c.tokens[c.at - 1].text == ")":
                return word
        depth += (word == "(") - (word == ")")
        c.at += 1
    return None


def _parsed(text: str, lower: int, upper: int, parse: Callable[[str], Statement]) -> Statement:
    try:
        found = parse(text[lower:upper])
    except InvalidUsage as error:
        if error.position is not None:
            error.position += lower
        raise
    trees = [each for each in vars(found).values() if isinstance(each, exp.Expression)]
    if isinstance(found, Writing) or any(_writes_within(each) for each in trees):
        told = "WITH clause containing a data-modifying statement must be at the top level"
        raise InvalidUsage(told, sqlstate="0A000", position=lower + 1)
    if getattr(found, "as_of", None) is not None:
        raise syntax("AS", lower + 1)
    return found


def _writes_within(tree: exp.Expression) -> bool:
    return any(isinstance(each.this, exp.DML) for each in tree.find_all(exp.CTE))
