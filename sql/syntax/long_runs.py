"""Long lists and chains read without a token for each of their words: what is alike in them is parsed once.

``1, 2, … 5000`` behind IN, the rows of a VALUES, and ``a = 1 OR a = 2 OR …`` are tens of thousands of tokens, each of
which takes the parser some 20 µs; most of their items say the same of other values.  :func:`runs` finds the inner items
of such in a text: those that have a comma, or the chain's connector, on both sides (or WHEN: arms of a CASE), so that
they are whole operands whatever is around them.  A run goes through the parser as one token and one node,
:class:`Run`; :func:`filled` puts what it stands for in its place.  Of items that differ in their values alone the
parser reads the first, between neighbours like theirs, and the others are copies of what it makes, with their own
values and places in the text (a property test compares with what the parser makes of all).

Where a run turns out to stand elsewhere (outputs of a SELECT) :func:`filled` says so, and who parses does so again
without runs; the same where anything is refused, so that every error is the parser's own.  Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from sql.syntax.quotes import comment_end, dollar_end
from sql.trees import budget
from sql.trees.stamps import Stamp

RUN_CHARS_MIN = 200
"""From here a run is worth it.  Shorter texts have none and are not looked through."""

ALIKE_MIN = 4
"""Items to a shape from which it is worth it, on average."""

KIND = TokenType.BULK_COLLECT_INTO
"""Of a run's token: no word or sign of Postgres's makes one."""


class Item(NamedTuple):
    """One of a run's.  ``words`` is its text, with the kinds of its values in their places; ``values`` are where these
    are, from ``start`` of the whole text up to ``end``, as the item is."""

    words: tuple[str, ...]
    values: Sequence[tuple[int, int]]
    start: int
    end: int


class Span(NamedTuple):
    """A run: ``kind`` is ``list``, ``or``, ``and`` or ``arms``; the text from ``start`` to ``end`` is its inside."""

    kind: str
    start: int
    end: int
    items: Sequence[Item]


class Text(str):
    """The text of a run's token, which knows what it is."""

    span: Span
    whole: str
    """The text that it is within."""

    @classmethod
    def of(cls, span: Span, whole: str) -> Text:
        made = cls(whole[span.start : span.end])
        made.span, made.whole = span, whole
        return made


class Run(exp.Expression):
    """What stands for a run while its statement is parsed.  The parser copies some of what it makes."""

    arg_types = {"this": True, "line": True, "col": True}


class NotHere(Exception):
    """A run is not what it looked like: its statement is to be parsed without runs."""


# -- where they are ---------------------------------------------------------------------------------------------------

_STRING = r"'[^']*+(?:''[^']*+)*+'"

_PIECE = re.compile(
    rf"""--[^\n]*+ | (?P<comment>/\*) | [eE]'(?:[^'\\]|\\.|'')*+' | (?:[uU]&)?+"(?:[^"]|"")*+"
      | (?P<dollar>\$(?:[^\W\d]\w*)?\$) | (?P<text>{_STRING}) | (?P<param>\$[1-9][0-9]{{0,4}}+(?![\w$]))
      | (?P<whole>[0-9]{{1,18}}+(?![\w$.])) | (?P<decimal>[0-9]{{1,18}}+\.[0-9]{{1,18}}+(?![\w$.]))
      | (?P<sign>[(),;\[\]]) | (?:[uU]&|[^\W\d][\w$]*+){_STRING} | (?P<word>[^\W\d][\w$]*+) | [$0-9.][\w$.]*+""",
    re.VERBOSE | re.DOTALL,
)
"""What is within nothing else.  What has no name here is neither a value nor the edge of an item."""

_EDGES = frozenset(
    "as by else except fetch for from full group having inner intersect join left limit natural offset on order over "
    "returning right select set then union using values when where window with".split()
)
"""Words that no item goes over, but within brackets."""


@dataclass
class _Level:
    """What has been seen within a pair of brackets: where separators are that nothing else stands between."""

    commas: list[tuple[int, int]] = field(default_factory=list)
    ors: list[tuple[int, int]] = field(default_factory=list)
    ands: list[tuple[int, int]] = field(default_factory=list)
    whens: list[tuple[int, int]] = field(default_factory=list)
    """Of a CASE: what is between two of them is an arm."""
    betweens: int = 0
    """Of which the AND is still to come."""


class _Scanned:
    """The separators and values of a text."""

    def __init__(self, text: str) -> None:
        self.values: list[tuple[int, int]] = []
        self.kinds: list[str] = []
        self.long: list[tuple[str, list[tuple[int, int]]]] = []
        """Separators of what may be runs."""
        self._levels = [_Level()]
        at: int | None = 0
        while at is not None:
            at = self._pieces(text, at)
        while self._levels:
            self._close()

    def _pieces(self, text: str, at: int) -> int | None:
        """Look through ``text`` from ``at`` up to something that hides what is in it; gives where that ends."""
        level, word = self._levels[-1], ""
        for piece in _PIECE.finditer(text, at):
            kind = piece.lastgroup
            if kind == "word":
                before, word = word, piece[0].lower()
                if word == "or":
                    self._keep("and", level.ands)
                    level.ands, level.betweens = [], 0
                    level.ors.append(piece.span())
                elif word == "and":
                    if level.betweens:
                        level.betweens -= 1
                    else:
                        level.ands.append(piece.span())
                elif word == "between":
                    level.betweens += 1
                elif word == "case":
                    level = self._open()
                elif word == "end":
                    level = self._close_one()
                elif word in _EDGES and (word, before) != ("from", "distinct"):
                    self._edge(level)
                    if word == "when":
                        level.whens.append(piece.span())
            elif kind == "sign":
                sign = piece[0]
                if sign == ",":
                    self._terms_end(level)
                    level.commas.append(piece.span())
                elif sign in "([":
                    level = self._open()
                elif sign in ")]":
                    level = self._close_one()
                else:
                    self._edge(level)
            elif kind in _VALUES:
                self.values.append(piece.span())
                self.kinds.append(_VALUES[kind])
            elif kind is not None or piece[0].startswith("--"):
                for each in self._levels:
                    self._edge(each)
                    self._keep("arms", each.whens)
                    each.whens = []
                if kind == "comment":
                    return comment_end(text, piece.end())
                if kind == "dollar":
                    return dollar_end(text, piece.end(), piece[0])
        return None

    def _open(self) -> _Level:
        self._levels.append(_Level())
        return self._levels[-1]

    def _close_one(self) -> _Level:
        if len(self._levels) == 1:
            self._edge(self._levels[0])
        else:
            self._close()
        return self._levels[-1]

    def _close(self) -> None:
        level = self._levels.pop()
        self._edge(level)
        self._keep("arms", level.whens)

    def _edge(self, level: _Level) -> None:
        self._terms_end(level)
        self._keep("list", level.commas)
        level.commas = []

    def _terms_end(self, level: _Level) -> None:
        self._keep("or", level.ors)
        self._keep("and", level.ands)
        if level.ors or level.ands:
            level.ors, level.ands = [], []
        level.betweens = 0

    def _keep(self, kind: str, separators: list[tuple[int, int]]) -> None:
        if len(separators) > 1 and separators[-1][0] - separators[0][1] >= RUN_CHARS_MIN:
            self.long.append((kind, separators))


_VALUES = {"text": "\0t", "param": "\0p", "whole": "\0w", "decimal": "\0d"}
_KINDS = frozenset(_VALUES.values())


_PLAIN = re.compile(r"""(?:[^\W\d][\w$]*+|"[^"]++"|[-+*/<>=~!@#%^&|?:.,()\[\] \t\r\n])*+""")
"""What stands around the values of an item that the tokenizer certainly takes, as it takes them."""


def runs(text: str) -> list[Span]:
    """The long runs in ``text``, in order.  Where a quote in it never ends they may be anything."""
    if len(text) < RUN_CHARS_MIN:
        return []
    scanned, found, end = _Scanned(text), [], 0
    for kind, separators in sorted(scanned.long, key=lambda each: (each[1][0][0], -each[1][-1][0])):
        if separators[0][0] < end:  # within one
            continue
        items = [_item(text, scanned, a[1], b[0]) for a, b in pairwise(separators)]
        plain = {words: _is_plain(words) for words in {item.words for item in items}}
        if len(plain) * ALIKE_MIN > len(items):
            continue
        for fits, group in groupby(zip(items, [plain[item.words] for item in items], strict=True), itemgetter(1)):
            together = [item for item, _ in group]
            if fits and together[-1].end - together[0].start >= RUN_CHARS_MIN:
                found.append(Span(kind, together[0].start, together[-1].end, together))
                end = together[-1].end
    return found


def _is_plain(words: Sequence[str]) -> bool:
    """Whether an item is something, and nothing of it is refused before it comes to the parser."""
    if words == ("",) or not all(each in _KINDS or _PLAIN.fullmatch(each) for each in words):
        return False
    for before, between, behind in zip(words, words[1:], words[2:], strict=False):
        if before == behind == _VALUES["text"] and not between.strip():  # two texts may be one, or none
            return False
    return not any(
        each.rstrip().endswith(".") and value in (_VALUES["whole"], _VALUES["decimal"])
        for each, value in pairwise(words)
    )


def _item(text: str, scanned: _Scanned, start: int, end: int) -> Item:
    whole = text[start:end]
    start, end = end - len(whole.lstrip()), start + len(whole.rstrip())
    first = bisect_left(scanned.values, (start,))
    words, values, at = [], [], start
    for place in range(first, len(scanned.values)):
        begin, behind = scanned.values[place]
        if begin >= end:
            break
        words += text[at:begin], scanned.kinds[place]
        values.append((begin, behind))
        at = behind
    words.append(text[at:end])
    return Item(tuple(words), values, start, end)


# -- what they are ----------------------------------------------------------------------------------------------------

Parse = Callable[[str], exp.Expression]
"""What the parser makes of a text, which is known to it as a statement; refused as it refuses."""


def node_of(token: Token) -> Run:
    """The node of a run's token."""
    return Run(this=token.text, line=token.line, col=token.col)


def filled(root: exp.Expression, parse: Parse) -> exp.Expression:
    """``root`` with the parser's nodes in the place of each :class:`Run`.  :class:`NotHere` where one stands where its
    parts could not, and what ``parse`` raises."""
    for run in list(root.find_all(Run)):
        kind, parent = run.this.span.kind, run.parent
        if kind == "list":
            _fill_list(run, parse)
        elif kind == "arms":
            _fill_arms(run, parse)
        elif type(parent) is _CONNECTORS[kind]:
            run.replace(_chain(run, _Reader(run, parse, kind)))
        else:
            raise NotHere
    return root


_CONNECTORS: dict[str, type[exp.Connector]] = {"or": exp.Or, "and": exp.And}


def _fill_list(run: Run, parse: Parse) -> None:
    parent, index = run.parent, run.index
    above = parent.parent
    if run.arg_key != "expressions":
        raise NotHere
    if type(above) is exp.Values and len(parent.expressions) == 1:  # the parser takes it for a row of one column
        run, parent, index, place = parent, above, parent.index, "values"
    elif type(parent) in _PLACES:
        place = _PLACES[type(parent)]
    else:
        raise NotHere
    reader = _Reader(run if type(run) is Run else run.expressions[0], parse, place)
    items = parent.args["expressions"]
    parent.set("expressions", [*items[:index], *reader.nodes(), *items[index + 1 :]])


def _fill_arms(run: Run, parse: Parse) -> None:
    arm = run.parent
    case = arm.parent
    if type(arm) is not exp.If or type(case) is not exp.Case or run.arg_key != "this":
        raise NotHere
    arms, index = case.args["ifs"], arm.index
    case.set("ifs", [*arms[:index], *_Reader(run, parse, "arms").nodes(), *arms[index + 1 :]])


_PLACES: dict[type[exp.Expression], str] = {exp.In: "in", exp.Array: "array", exp.Tuple: "tuple"}


def _chain(run: Run, reader: _Reader) -> exp.Expression:
    """The terms of a chain, connected; where they mean a list, that (:func:`sql.trees.budget.surveyed` reads on)."""
    kind = type(run.parent)
    top = run.parent
    while type(top) is kind:
        top = top.parent
    items = run.this.span.items
    if top is not None and len(items) >= budget.CHAIN_MIN:
        compared = {budget.listed_as(reader.read(item).root, kind) for item in items}
        if len(compared) == 1 and None not in compared:
            first = budget.unwrapped(reader.node(items[0]))
            made = exp.In(this=first.this, expressions=[reader.node(item, "expression") for item in items])
            made.meta[budget.OF_CHAIN] = True
            return made
    return budget.joined(kind, reader.nodes())


_BETWEEN: dict[str, tuple[str, str]] = {
    "or": ("select 1 where null or ", " or null"),
    "and": ("select 1 where null and ", " and null"),
    "in": ("select 1 where null in (null, ", ", null)"),
    "array": ("select array[null, ", ", null]"),
    "tuple": ("select (null, ", ", null)"),
    "values": ("values (null), ", ", (null)"),
    "arms": ("select case when null then null when ", " when null then null end"),
}
"""What an item is read between: neighbours like those that it has where it stands."""


def _read_between(place: str, made: exp.Expression) -> exp.Expression:
    """The node of what was read there."""
    if place in _CONNECTORS:
        kind, top = _CONNECTORS[place], made.args["where"].this
        if type(top) is not kind or type(top.this) is not kind or type(top.this.this) is not exp.Null:
            raise NotHere
        return top.this.expression
    holder = made.args["where"].this if place == "in" else made if place == "values" else made.expressions[0]
    items = holder.args["ifs" if place == "arms" else "expressions"]
    if len(items) != 3 or type(items[0]) not in (exp.Null, exp.Tuple, exp.If):
        raise NotHere
    return items[1]


# -- what is alike in them --------------------------------------------------------------------------------------------

_TAKEN_AS_IT_IS = (
    exp.Connector, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Not,
    exp.Paren, exp.Tuple, exp.Array, exp.In, exp.Values, exp.Between, exp.Like, exp.ILike, exp.Neg, exp.Cast, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.Parameter, exp.Anonymous, exp.Coalesce, exp.Nullif, exp.Greatest,
    exp.Least, exp.Abs, exp.Round, exp.Case, exp.If,
)  # fmt: skip
"""Within what the parser makes the same of every value of a kind.  It looks into arguments of some functions."""


_PLACE = frozenset({"line", "col", "start", "end"})


@dataclass
class _Read:
    """What the parser made of one item, for others like it."""

    root: exp.Expression
    stamp: Stamp
    values: Sequence[int]
    """Which of the item's may differ; the others are part of what it says."""
    noted: Sequence[tuple[int, int, int, int, int, dict]]
    """Of each node that has a place: its number, its place in the item, how many values end before that begins and
    before it ends, and what else is noted on it."""
    chars: Sequence[int]
    """How long each of the item's values is."""


class _Reader:
    """Reads the items of one run."""

    def __init__(self, run: Run, parse: Parse, place: str) -> None:
        self._parse, self._place = parse, place
        self._text, self._span = run.this.whole, run.this.span
        self._line, self._col = run.args["line"], run.args["col"]
        self._breaks = [self._span.start + found.end() for found in re.finditer(r"\r\n|\r|\n", run.this)]
        self._read: dict[tuple, _Read] = {}
        self._said: dict[tuple, Sequence[int]] = {}
        """Which values are part of what items of these words say."""

    def nodes(self) -> list[exp.Expression]:
        return [self.node(item) for item in self._span.items]

    def node(self, item: Item, key: str | None = None) -> exp.Expression:
        """The item's node, or what it has under ``key``, brackets apart."""
        read = self.read(item, key)
        copies = read.stamp.copies([self._value(item, place) for place in read.values])
        moved = [0]
        for (begin, end), chars in zip(item.values, read.chars, strict=True):
            moved.append(moved[-1] + end - begin - chars)
        for number, begin, end, before, within, others in read.noted:
            begin, end = item.start + begin + moved[before], item.start + end + moved[within]
            line, col = self._line_and_col(begin, end)
            copies[number]._meta = {"line": line, "col": col, "start": begin, "end": end - 1, **others}
        return copies[0]

    def _line_and_col(self, begin: int, end: int) -> tuple[int, int]:
        """Of a word that goes from ``begin`` up to ``end``: the line that it is on, the column of its last sign."""
        if not self._breaks or begin < self._breaks[0]:
            return self._line, self._col + end - self._span.start - 1
        before = bisect_right(self._breaks, begin)
        return self._line + before, end - self._breaks[before - 1]

    def read(self, item: Item, key: str | None = None) -> _Read:
        """What was made of the first item that is like this one, or is now."""
        said = self._said.get((item.words, key))
        if said is not None:
            found = self._read.get((item.words, key, *[self._value(item, place) for place in said]))
            if found is not None:
                return found
        if len(self._read) * ALIKE_MIN > len(self._span.items):  # they differ in more than their values
            raise NotHere
        made = self._made(item, key)
        fixed = tuple([place for place in range(len(item.values)) if place not in made.values])
        if self._said.setdefault((item.words, key), fixed) != fixed:
            raise NotHere
        self._read[(item.words, key, *[self._value(item, place) for place in fixed])] = made
        return made

    def _made(self, item: Item, key: str | None) -> _Read:
        before, behind = _BETWEEN[self._place]
        tree = self._parse(before + self._text[item.start : item.end] + behind)
        root = _read_between(self._place, tree)
        if key is not None:
            root = budget.unwrapped(root).args[key]
        shift = item.start - len(before)
        leaves = {
            leaf.meta["start"] + shift: leaf
            for leaf in root.find_all(exp.Literal)
            if "start" in leaf.meta and isinstance(leaf.parent, _TAKEN_AS_IT_IS)
        }
        values, found = [], []
        for place, (begin, _) in enumerate(item.values):
            leaf = leaves.get(begin + (self._text[begin] == "$"))
            if leaf is not None and leaf.this == self._value(item, place):
                values.append(place)
                found.append(leaf)
        stamp = Stamp(root, found)
        ends = [end - shift for _, end in item.values]
        noted = [
            (number, begin - len(before), end - len(before), bisect_right(ends, begin), bisect_right(ends, end), others)
            for number, node in enumerate(stamp.nodes)
            if "start" in node.meta
            for begin, end in [(node.meta["start"], node.meta["end"] + 1)]
            for others in [{key: said for key, said in node.meta.items() if key not in _PLACE}]
        ]
        return _Read(root, stamp, values, noted, [end - begin for begin, end in item.values])

    def _value(self, item: Item, place: int) -> str:
        """The value as a literal has it."""
        begin, end = item.values[place]
        sign = self._text[begin]
        if sign == "'":
            return self._text[begin + 1 : end - 1].replace("''", "'")
        return self._text[begin + (sign == "$") : end]
