"""Long lists and chains of plain values, read without a token for each of their parts.

``1, 2, … 5000`` behind IN, the rows of a VALUES, and ``a = 1 OR a = 2 OR …`` are tens of thousands of tokens, each of
which takes the parser some 20 µs; what is in them is a few sorts of cells.  :func:`runs` finds the inner parts of such
in a text: those that have a comma, or the chain's connector, on both sides, so that they are whole operands whatever is
around them.  A run goes through the parser as one token and one node, :class:`Run`; :func:`filled` puts what it stands
for in its place: the nodes that the parser makes of the same text, their places in it too (a property test compares).

Where a run turns out to stand elsewhere (outputs of a SELECT) :func:`filled` says so, and who parses does so again
without runs; the same where anything is refused, so that every error is the parser's own.  Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from sql.syntax.quotes import comment_end, dollar_end
from sql.trees import budget

RUN_CHARS_MIN = 200
"""From here a run is worth it.  Shorter texts have none and are not looked through."""

KIND = TokenType.BULK_COLLECT_INTO
"""Of a run's token: no word or sign of Postgres's makes one."""

_SPACE = r"[ \t\r\n]*"
_STRING = r"'[^']*+(?:''[^']*+)*+'"
_VALUE = rf"(?>{_STRING}|-?[0-9]{{1,18}}+(?:\.[0-9]{{1,18}}+)?|\$[1-9][0-9]{{0,4}}+|null|true|false)"
_ROW = rf"(?>\({_SPACE}{_VALUE}{_SPACE}(?:,{_SPACE}{_VALUE}{_SPACE})*+\))"
_NAME = r'(?>"(?:[^"]|"")++"|[^\W\d][\w$]*+)'
_COLUMN = rf"(?>{_NAME}(?:\.{_NAME}){{0,2}}+)"
_SIGN = rf"(?>{_SPACE}(?:<>|!=|<=|>=|=|<|>)(?:{_SPACE}(?!-)|[ \t\r\n]++))"
"""A minus sign right behind another may be one word with it."""
_COMPARED = rf"(?>{_COLUMN}{_SIGN}{_VALUE})"
_ALL = rf"(?>{_COMPARED}(?:[ \t\r\n]++and[ \t\r\n]++{_COMPARED})*+)"
_TERM = rf"(?>\({_SPACE}{_ALL}{_SPACE}\)|{_ALL})"
_ONE = rf"(?>\({_SPACE}{_COMPARED}{_SPACE}\)|{_COMPARED})"

_PIECE = re.compile(
    rf"""--[^\n]*+ | (?P<comment>/\*) | [eE]'(?:[^'\\]|\\.|'')*+' | {_STRING} | "(?:[^"]|"")*+"
      | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
      | ,(?P<list>(?>{_SPACE}(?:{_VALUE}|{_ROW}){_SPACE},)++)
      | or\b(?P<or>(?>[ \t\r\n]*+{_TERM}[ \t\r\n]*+\bor\b)++)
      | and\b[ \t\r\n]*+{_ONE}[ \t\r\n]*+\band\b(?P<and>(?>[ \t\r\n]*+{_ONE}[ \t\r\n]*+\band\b)++)
      | [^\W\d][\w$]*+ | [$0-9][\w$]*+""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""What a run may not begin within, and runs.  Of AND the second operand is the parser's too: the first may be the end
of a BETWEEN.  Whitespace within a run is what is whitespace to everybody."""


class Span(NamedTuple):
    """A run: ``kind`` is ``list``, ``or`` or ``and``; the text from ``start`` to ``end`` is its inside alone."""

    kind: str
    start: int
    end: int


class Run(exp.Expression):
    """What stands for a run while its statement is parsed.  The parser copies some of what it makes."""

    arg_types = {"this": True, "start": True, "line": True, "col": True}


class NotHere(Exception):
    """A run is not what it looked like: its statement is to be parsed without runs."""


def runs(text: str) -> list[Span]:
    """The long runs in ``text``, in order.  Where a quote in it never ends they may be anything."""
    found, at = [], 0
    if len(text) < RUN_CHARS_MIN:
        return found
    while (piece := _PIECE.search(text, at)) is not None:
        at, kind = piece.end(), piece.lastgroup
        if kind == "comment":
            at = comment_end(text, at)
        elif kind == "dollar":
            at = dollar_end(text, at, piece[0])
            if at is None:
                break
        elif kind in ("list", "or", "and"):
            start, end = piece.span(kind)
            if end - start >= RUN_CHARS_MIN:
                inner = text[start : end - (1 if kind == "list" else len(kind))]
                start += len(inner) - len(inner := inner.lstrip())
                found.append(Span(kind, start, start + len(inner.rstrip())))
            at = end - (1 if kind == "list" else 0)  # another list may begin with this comma
    return found


def node_of(token: Token) -> Run:
    """The node of a run's token, whose text is the run's kind and the run."""
    return Run(this=token.text, start=token.start, line=token.line, col=token.col)


def filled(root: exp.Expression, column_of: Callable[[str], exp.Expression | None]) -> exp.Expression:
    """``root`` with the parser's nodes in the place of each :class:`Run`.  :class:`NotHere` where one stands where its
    parts could not.  ``column_of`` parses a column's
    name, and gives ``None`` for what is none."""
    for run in list(root.find_all(Run)):
        kind, text = run.this.split(" ", 1)
        places, parent = _Places(run, text), run.parent
        if kind == "list":
            _fill_list(run, text, places)
        elif type(parent) is _CONNECTORS[kind]:
            run.replace(_chain(run, text, places, column_of))
        else:
            raise NotHere
    return root


_CONNECTORS: dict[str, type[exp.Connector]] = {"or": exp.Or, "and": exp.And}


class _Places:
    """Where a run's nodes stand in the statement, as the parser notes it."""

    def __init__(self, run: Run, text: str) -> None:
        self._start, self._line, self._col = run.args["start"], run.args["line"], run.args["col"]
        self._breaks = [found.end() for found in re.finditer(r"\r\n|\r|\n", text)]

    def note(self, node: exp.Expression, start: int, end: int) -> exp.Expression:
        """``node``, whose word goes from ``start`` up to ``end`` in the run."""
        before = bisect_right(self._breaks, start)
        col = end - self._breaks[before - 1] if before else self._col + end - 1
        node.meta.update(line=self._line + before, col=col, start=self._start + start, end=self._start + end - 1)
        return node


# -- lists ------------------------------------------------------------------------------------------------------------

_CELL = re.compile(
    r"(?P<open>\()|(?P<close>\))|'(?P<text>[^']*+(?:''[^']*+)*+)'|(?P<minus>-)?(?P<number>[0-9]++(?:\.[0-9]++)?)"
    r"|\$(?P<param>[0-9]++)|(?P<word>[a-z]++)",
    re.IGNORECASE,
)


def _cell(found: re.Match[str], places: _Places) -> exp.Expression:
    text, digits = found["text"], found["number"]
    if text is not None:
        made = exp.Literal(this=text.replace("''", "'"), is_string=True)
        return places.note(made, found.start(), found.end())
    if digits is not None:
        made = places.note(exp.Literal(this=digits, is_string=False), found.start("number"), found.end())
        return made if found["minus"] is None else exp.Neg(this=made)
    if found["param"] is not None:
        number = exp.Literal(this=found["param"], is_string=False)
        return exp.Parameter(this=places.note(number, found.start("param"), found.end()))
    word = found["word"].lower()
    if word == "null":
        return exp.Null()
    if word in ("true", "false"):
        return exp.Boolean(this=word == "true")
    raise NotHere  # spelled with letters that only lower case brings together


def _fill_list(run: Run, text: str, places: _Places) -> None:
    parent, index = run.parent, run.index
    above = parent.parent
    if run.arg_key != "expressions":
        raise NotHere
    if type(above) is exp.Values and len(parent.expressions) == 1:  # the parser takes it for a row of one column
        rows = [_row(each, False) for each in _items(text, places)]
        run, parent, index = parent, above, parent.index
    elif type(parent) is exp.In:
        rows = [_row(each, True) if type(each) is list else each for each in _items(text, places)]
    elif type(parent) is exp.Array or type(parent) is exp.Tuple:
        rows = _items(text, places)
        if any(type(each) is list for each in rows):
            raise NotHere
    else:
        raise NotHere
    items = parent.args["expressions"]
    parent.set("expressions", [*items[:index], *rows, *items[index + 1 :]])


def _items(text: str, places: _Places) -> list[exp.Expression | list[exp.Expression]]:
    """Cells, and rows of cells."""
    found: list = []
    row: list[exp.Expression] | None = None
    for each in _CELL.finditer(text):
        if each["open"] is not None:
            row = []
        elif each["close"] is not None:
            found.append(row)
            row = None
        else:
            (found if row is None else row).append(_cell(each, places))
    return found


def _row(cells: exp.Expression | list[exp.Expression], alone: bool) -> exp.Expression:
    """``(cells)``; one that is ``alone`` in brackets is itself."""
    if type(cells) is not list:
        raise NotHere
    return exp.Paren(this=cells[0]) if alone and len(cells) == 1 else exp.Tuple(expressions=cells)


# -- chains -----------------------------------------------------------------------------------------------------------

_SIGNS = {"=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}

_PART = re.compile(
    rf"(?P<column>{_COLUMN}){_SPACE}(?P<sign><>|!=|<=|>=|=|<|>){_SPACE}(?P<value>{_VALUE})|(?P<other>[()]|{_NAME})",
    re.IGNORECASE,
)


def _chain(run: Run, text: str, places: _Places, column_of: Callable[[str], exp.Expression | None]) -> exp.Expression:
    """The terms of a chain, connected; where they mean a list, that (:func:`sql.trees.budget.surveyed` reads on)."""
    kind = type(run.parent)
    columns: dict[str, _Column] = {}

    def column(found: re.Match[str]) -> exp.Column:
        name = found["column"]
        if name not in columns:
            columns[name] = _Column(column_of(name), name)
        return columns[name].at(found.start("column"), places)

    parts = list(_PART.finditer(text))
    return _listed(run, kind, parts, places, column) or budget.joined(kind, list(_terms(parts, kind, places, column)))


def _listed(
    run: Run,
    kind: type[exp.Connector],
    parts: list[re.Match[str]],
    places: _Places,
    column: Callable[[re.Match[str]], exp.Column],
) -> exp.In | None:
    """``x = 1 OR x = 2``, ``x <> 1 AND x <> 2`` as one node; ``None`` where it says more than that."""
    top = run.parent
    while type(top) is kind:
        top = top.parent
    terms = [each for each in parts if each["other"] is None]
    signs = {each["sign"] for each in terms}
    words = {_CONNECTORS[each["other"].lower()] for each in parts if each["other"] not in (None, "(", ")")}
    if top is None or len(terms) < budget.CHAIN_MIN or words != {kind}:
        return None
    if len({each["column"] for each in terms}) > 1 or not signs <= _LISTED[kind]:
        return None
    texts = {each["value"][0] == "'" for each in terms}
    if len(texts) > 1 or texts == {False} and not all(_WHOLE.fullmatch(each["value"]) for each in terms):
        return None
    values = [_value(each, places) for each in terms]
    made = exp.In(this=column(terms[0]), expressions=values)
    made.meta[budget.OF_CHAIN] = True
    return made


_LISTED: dict[type[exp.Connector], set[str]] = {exp.Or: {"="}, exp.And: {"<>", "!="}}
_WHOLE = re.compile(r"-?[0-9]+")


def _value(part: re.Match[str], places: _Places) -> exp.Expression:
    start, end = part.span("value")
    return _cell(_CELL.match(part.string, start, end), places)


def _terms(
    parts: list[re.Match[str]],
    kind: type[exp.Connector],
    places: _Places,
    column: Callable[[re.Match[str]], exp.Column],
) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    term: exp.Expression | None = None
    for part in parts:
        other = part["other"]
        if other is None:
            made = _SIGNS[part["sign"]](this=column(part), expression=_value(part, places))
            term = made if term is None else exp.And(this=term, expression=made)
        elif other == ")":
            term = exp.Paren(this=term)
        elif other != "(" and _CONNECTORS[other.lower()] is kind:
            found.append(term)
            term = None
    return [*found, term]


class _Column:
    """A column's name, made again for each place where it stands."""

    def __init__(self, parsed: exp.Expression | None, name: str) -> None:
        if type(parsed) is not exp.Column or not all(type(part) is exp.Identifier for part in parsed.parts):
            raise NotHere
        keys = [key for key, each in parsed.args.items() if isinstance(each, exp.Expression)]
        if len(keys) != len(parsed.parts):
            raise NotHere
        base = min(part.meta["start"] for part in parsed.parts)
        self._parts = [
            (key, part.this, part.args["quoted"], part.meta["start"] - base, part.meta["end"] + 1 - base)
            for key, part in ((key, parsed.args[key]) for key in keys)
        ]

    def at(self, start: int, places: _Places) -> exp.Column:
        return exp.Column(**{
            key: places.note(exp.Identifier(this=this, quoted=quoted), start + begin, start + end)
            for key, this, quoted, begin, end in self._parts
        })  # fmt: skip
