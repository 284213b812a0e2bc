"""Long lists and chains read without a token for each of their words: what is alike in them is parsed once.

``1, 2, … 5000`` behind IN, the rows of a VALUES, and ``a = 1 OR a = 2 OR …`` are tens of thousands of tokens, each of
which takes the parser some 20 µs; most of their items say the same of other values.  :func:`stretches` finds the inner
items of such in a text: those that have a comma, or the chain's connector, on both sides (or WHEN: arms of a CASE),
so that they are whole operands whatever is around them.  A stretch goes through the parser as one token and one node,
:class:`Stretch`; :func:`filled` puts what it stands for in its place.  Of items that differ in their values alone the
parser reads the first, between neighbours like theirs, and the others are copies of what it makes, with their own
values and places in the text (a property test compares with what the parser makes of all).

Where a stretch turns out to stand elsewhere (outputs of a SELECT) :func:`filled` says so, and who parses does so again
without stretches; the same where anything is refused, so that every error is the parser's own.  Pure.
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
from trees import budget
from trees.stamps import Stamp
from trees.unwritten import WITHIN, Items, Kept

STRETCH_CHARS_MIN = 200
"""From here a stretch is worth it.  Shorter texts have none and are not looked through."""

ALIKE_MIN = 4
"""Items to a mould from which it is worth it, on average."""

KIND = TokenType.BULK_COLLECT_INTO
"""Of a stretch's token: no word or sign of Postgres's makes one."""


class Item(NamedTuple):
    """One of a stretch's.  ``words`` is its text, with the kinds of its values in their places; ``values`` are where
    these are, from ``start`` of the whole text up to ``end``, as the item is."""

    words: tuple[str, ...]
    values: Sequence[tuple[int, int]]
    start: int
    end: int


class Span(NamedTuple):
    """A stretch: ``kind`` is ``list``, ``or``, ``and`` or ``arms``; its inside is from ``start`` to ``end``."""

    kind: str
    start: int
    end: int
    items: Sequence[Item]


class Text(str):
    """The text of a stretch's token, which knows what it is."""

    span: Span
    whole: str
    """The text that it is within."""

    @classmethod
    def of(cls, span: Span, whole: str) -> Text:
        made = cls(whole[span.start : span.end])
        made.span, made.whole = span, whole
        return made


class Stretch(exp.Expression):
    """What stands for a stretch while its statement is parsed.  The parser copies some of what it makes."""

    arg_types = {"this": True, "line": True, "col": True}


class NotHere(Exception):
    """A stretch is not what it looked like: its statement is to be parsed without stretches."""


# -- where they are ---------------------------------------------------------------------------------------------------

_STRING = r"'[^']*+(?:''[^']*+)*+'"

_PARAM, _WHOLE = r"\$[1-9][0-9]{0,4}+(?![\w$])", r"[0-9]{1,18}+(?![\w$.])"
_DECIMAL = r"[0-9]{1,18}+\.[0-9]{1,18}+(?![\w$.])"

_PIECE = re.compile(
    rf"""--[^\n]*+ | (?P<comment>/\*) | [eE]'(?:[^'\\]|\\.|'')*+' | (?:[uU]&)?+"(?:[^"]|"")*+"
      | (?P<dollar>\$(?:[^\W\d]\w*)?\$) | (?P<text>{_STRING}) | (?P<param>{_PARAM})
      | (?P<whole>{_WHOLE}) | (?P<decimal>{_DECIMAL})
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
        """Separators of what may be stretches."""
        self.items: dict[int, Item] = {}
        """Items by where the separator before them ends: those that were found by one look each."""
        self._patterns: dict[tuple, _Pattern] = {}
        self._pause, self._paused = 0, 0
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
                    if (ahead := self._ahead(text, level.ors)) is not None:
                        return ahead
                elif word == "and":
                    if level.betweens:
                        level.betweens -= 1
                    else:
                        level.ands.append(piece.span())
                        if (ahead := self._ahead(text, level.ands)) is not None:
                            return ahead
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
                        if (ahead := self._ahead(text, level.whens)) is not None:
                            return ahead
            elif kind == "sign":
                sign = piece[0]
                if sign == ",":
                    self._terms_end(level)
                    level.commas.append(piece.span())
                    if (ahead := self._ahead(text, level.commas)) is not None:
                        return ahead
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

    def _ahead(self, text: str, separators: list[tuple[int, int]]) -> int | None:
        """Look whether what stands between the last two of ``separators`` follows again and again, with other values;
        gives where that ends, after as many more separators.  Looks seldom where it was in vain."""
        if len(separators) < 2:
            return None
        if self._paused:
            self._paused -= 1
            return None
        (_, start), (behind, end) = separators[-2:]
        if end - start > ITEM_CHARS_MAX:
            return None
        item = _item(text, self, start, behind)
        separator = text[behind:end]
        key = text[start : item.start], item.words, text[item.end : end]
        pattern = self._patterns.get(key)
        if pattern is None:
            if len(self._patterns) >= PATTERNS_MAX:
                return None
            pattern = self._patterns[key] = _Pattern.of(*key, separator)
        match, at, chars = pattern.match, end, end - behind
        found = match(text, at)
        if found is None:
            self._pause = self._paused = min(2 * self._pause + 1, PAUSE_MAX)
            return None
        words, kinds, lead, trail = item.words, pattern.kinds, item.start - start, end - item.end
        short = pattern.chars_max
        while found is not None:
            begun, at = at, found.end()
            if at - begun > short:
                at = begun
                break
            _, *values = found.regs
            self.values += values
            self.kinds += kinds
            self.items[begun] = Item(words, values, begun + lead, at - trail)
            separators.append((at - chars, at))
            found = match(text, at)
        self._pause = 0
        return at

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
        if len(separators) > 1 and separators[-1][0] - separators[0][1] >= STRETCH_CHARS_MIN:
            self.long.append((kind, separators))


_VALUES = {"text": "\0t", "param": "\0p", "whole": "\0w", "decimal": "\0d"}
_KINDS = frozenset(_VALUES.values())
_GROUPS = {"\0t": f"({_STRING})", "\0p": f"({_PARAM})", "\0w": f"({_WHOLE})", "\0d": f"({_DECIMAL})"}


PAUSE_MAX = 64
"""Items for which nobody looks whether others follow that are alike, after that was often in vain."""

LOOKS_MAX = 16
"""How often a text is looked through for what is alike, of lists in lists of which none is: all would take hours."""

ITEM_CHARS_MAX, PATTERNS_MAX = 2_000, 64
"""Of an item whose like is looked for, and how many kinds of items of one text: making ready to look takes 6 ms for one
as long as that (measured), so 0.4 s at most whatever is written."""

_CHARS = 1 << 20


class _Pattern(NamedTuple):
    """What finds an item and the separator behind it, for other values; of which ``kinds`` these are; and how long they
    may be together, since longer ones might have stretches within."""

    match: Callable[[str, int], re.Match[str] | None]
    kinds: Sequence[str]
    chars_max: int

    @classmethod
    def of(cls, before: str, words: tuple[str, ...], behind: str, separator: str) -> _Pattern:
        """``before`` and ``behind`` are what stands around ``words``, up to the end of the separator."""
        kinds = words[1::2]
        if not kinds or not _is_plain(words):
            return cls(_NOTHING.match, kinds, _CHARS)
        found = [_GROUPS[each] if each in _KINDS else re.escape(each) for each in (before, *words, behind)]
        end = "" if separator == "," else r"(?![\w$'])"
        within = len(_SEPARATORS.findall(" ".join(words[::2])))
        return cls(re.compile("".join(found) + end).match, kinds, STRETCH_CHARS_MIN if within > 1 else _CHARS)


_NOTHING = re.compile(r"(?!)")
_SEPARATORS = re.compile(r",|\b(?:or|and|when)\b", re.IGNORECASE)

_PLAIN = re.compile(r"""(?:[^\W\d][\w$]*+|"[^"]++"|[-+*/<>=~!@#%^&|?:.,()\[\] \t\r\n])*+""")
"""What stands around the values of an item that the tokenizer certainly takes, as it takes them."""


def stretches(text: str) -> list[Span]:
    """The long stretches in ``text``, in order.  Where a quote in it never ends they may be anything."""
    if len(text) < STRETCH_CHARS_MIN:
        return []
    scanned, found, end = _Scanned(text), [], 0
    room = LOOKS_MAX * len(text)
    for kind, separators in sorted(scanned.long, key=lambda each: (each[1][0][0], -each[1][-1][0])):
        if separators[0][0] < end:  # within one
            continue
        room -= separators[-1][0] - separators[0][1]
        if room < 0:
            break
        made = scanned.items.get
        items = [made(a[1]) or _item(text, scanned, a[1], b[0]) for a, b in pairwise(separators)]
        plain = {words: _is_plain(words) for words in {item.words for item in items}}
        if len(plain) * ALIKE_MIN > len(items):
            continue
        for fits, group in groupby(zip(items, [plain[item.words] for item in items], strict=True), itemgetter(1)):
            together = [item for item, _ in group]
            if fits and together[-1].end - together[0].start >= STRETCH_CHARS_MIN:
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


def node_of(token: Token) -> Stretch:
    """The node of a stretch's token."""
    return Stretch(this=token.text, line=token.line, col=token.col)


def filled(root: exp.Expression, parse: Parse) -> exp.Expression:
    """``root`` with the parser's nodes in the place of each :class:`Stretch`.  :class:`NotHere` where one stands where
    its parts could not, and what ``parse`` raises."""
    for stretch in list(root.find_all(Stretch)):
        kind, parent = stretch.this.span.kind, stretch.parent
        if kind not in _CONNECTORS:
            _fill(stretch, parse)
        elif type(parent) is _CONNECTORS[kind]:
            stretch.replace(_chain(stretch, _Reader(stretch, parse, kind)))
        else:
            raise NotHere
    return root


_CONNECTORS: dict[str, type[exp.Connector]] = {"or": exp.Or, "and": exp.And}


def keep(root: exp.Expression, parse: Parse) -> bool:
    """Put a :class:`~trees.unwritten.Kept` in the place of each :class:`Stretch`; ``False`` where one is to be
    written out.  Raises what :func:`filled` raises of such a tree."""
    stretches = list(root.find_all(Stretch))
    if any(len(stretch.this.span.items) < KEPT_MIN for stretch in stretches):
        return False
    for stretch in stretches:
        kind, parent = stretch.this.span.kind, stretch.parent
        if kind in _CONNECTORS:
            if type(parent) is not _CONNECTORS[kind]:
                raise NotHere
            node, place = stretch, kind
        else:
            node, place = _place_of(stretch)
        kept = _Reader(stretch, parse, place).kept()
        if kept is None:
            return False
        node.replace(kept)
    return True


KEPT_MIN = 64
"""Items of a stretch from which it may stay unwritten: fewer are not planned by samples."""


def _fill(stretch: Stretch, parse: Parse) -> None:
    node, place = _place_of(stretch)
    parent, key, index = node.parent, node.arg_key, node.index
    items = parent.args[key]
    parent.set(key, [*items[:index], *_Reader(stretch, parse, place).nodes(), *items[index + 1 :]])


def _place_of(stretch: Stretch) -> tuple[exp.Expression, str]:
    """What stands for ``stretch`` among the items of a list or the arms of a CASE, and which of these it is."""
    return _arms_of(stretch) if stretch.this.span.kind == "arms" else _list_of(stretch)


def _list_of(stretch: Stretch) -> tuple[exp.Expression, str]:
    parent = stretch.parent
    if stretch.arg_key != "expressions":
        raise NotHere
    if type(parent.parent) is exp.Values and len(parent.expressions) == 1:
        return parent, "values"  # the parser takes it for a row of one column
    if type(parent) not in _PLACES:
        raise NotHere
    return stretch, _PLACES[type(parent)]


def _arms_of(stretch: Stretch) -> tuple[exp.Expression, str]:
    arm = stretch.parent
    if type(arm) is not exp.If or type(arm.parent) is not exp.Case or stretch.arg_key != "this":
        raise NotHere
    return arm, "arms"


_PLACES: dict[type[exp.Expression], str] = {exp.In: "in", exp.Array: "array", exp.Tuple: "tuple"}


def _chain(stretch: Stretch, reader: _Reader) -> exp.Expression:
    """The terms of a chain, connected; where they mean a list, that (:func:`trees.budget.surveyed` reads on)."""
    kind = type(stretch.parent)
    top = stretch.parent
    while type(top) is kind:
        top = top.parent
    items = stretch.this.span.items
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
    """Reads the items of one stretch."""

    def __init__(self, stretch: Stretch, parse: Parse, place: str) -> None:
        self._parse, self._place = parse, place
        self._text, self._span = stretch.this.whole, stretch.this.span
        self._line, self._col = stretch.args["line"], stretch.args["col"]
        self._breaks = [self._span.start + found.end() for found in re.finditer(r"\r\n|\r|\n", stretch.this)]
        self._read: dict[tuple, _Read] = {}
        self._said: dict[tuple, Sequence[int]] = {}
        """Which values are part of what items of these words say."""

    def nodes(self) -> list[exp.Expression]:
        return [self.node(item) for item in self._span.items]

    def kept(self) -> Kept | None:
        """What stands for all of them while they are not written; ``None`` where one has to be."""
        items = self._span.items
        number_of: dict[int, int] = {}
        reads: list[_Read] = []
        of: list[int] = []
        texts: list[tuple[str, ...]] = []
        read, words = None, None
        for item in items:
            if item.words is not words or len(read.values) < len(item.values):  # else it is like the one before
                read, words = self.read(item), item.words
                number = number_of.get(id(read))
                if number is None:
                    number = number_of[id(read)] = len(reads)
                    reads.append(read)
                    if not all(type(node) in WITHIN for node in read.stamp.nodes):
                        return None
                    if type(read.root) is _CONNECTORS.get(self._place):
                        return None
            of.append(number)
            texts.append(self._texts(item, read))

        def written(place: int) -> tuple[exp.Expression, list[exp.Literal]]:
            copies = self._copies(items[place], reads[of[place]])
            return copies[0], [copies[number] for number in reads[of[place]].stamp.leaves]

        leaves = [[read.stamp.nodes[place] for place in read.stamp.leaves] for read in reads]
        return Kept(this=Items([read.root for read in reads], leaves, of, texts, written))

    def node(self, item: Item, key: str | None = None) -> exp.Expression:
        """The item's node, or what it has under ``key``, brackets apart."""
        return self._copies(item, self.read(item, key))[0]

    def _copies(self, item: Item, read: _Read) -> list[exp.Expression]:
        """The item's node and all that is below it."""
        copies = read.stamp.copies(self._texts(item, read))
        moved = [0]
        for (begin, end), chars in zip(item.values, read.chars, strict=True):
            moved.append(moved[-1] + end - begin - chars)
        for number, begin, end, before, within, others in read.noted:
            begin, end = item.start + begin + moved[before], item.start + end + moved[within]
            line, col = self._line_and_col(end)
            copies[number]._meta = {"line": line, "col": col, "start": begin, "end": end - 1, **others}
        return copies

    def _line_and_col(self, end: int) -> tuple[int, int]:
        """Of a word that goes up to ``end``: the line and the column of its last sign, as the tokenizer has them (a
        text may have lines in it)."""
        before = bisect_right(self._breaks, end - 1)
        if not before:
            return self._line, self._col + end - self._span.start - 1
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

    def _texts(self, item: Item, read: _Read) -> tuple[str, ...]:
        """The values that others like it have otherwise."""
        text, kinds, values = self._text, item.words, item.values
        found = []
        for place in read.values:
            begin, end = values[place]
            kind = kinds[2 * place + 1]
            if kind == "\0t":
                found.append(text[begin + 1 : end - 1].replace("''", "'"))
            else:
                found.append(text[begin + 1 : end] if kind == "\0p" else text[begin:end])
        return tuple(found)

    def _value(self, item: Item, place: int) -> str:
        """The value as a literal has it."""
        begin, end = item.values[place]
        sign = self._text[begin]
        if sign == "'":
            return self._text[begin + 1 : end - 1].replace("''", "'")
        return self._text[begin + (sign == "$") : end]
