"""What an expression says apart from its values: terms, items and rows of one mould differ in those alone.

Promises: where two expressions have one mould, what is planned of the one is what is planned of the other, with other
values in it, if it is found again as it was put in (:mod:`sql.statements.samples` looks).  A value is taken out only
where it decides about nothing but itself: compared, in a list, beside a sign; and only if it is of a kind of which any
is read as well as the one that is put in.  All else, what stands in a call of a function too, is part of the mould.
Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import count, repeat
from typing import NamedTuple

from sqlglot import exp

from functions.registry import FUNCTIONS, OF_ARRAYS
from trees.functions import is_definite
from trees.unwritten import Items, Kept
from values.types import SqlType

TRIES_MAX, _SPREAD = 100, 7_919
"""For a value that stands nowhere yet; there are few decimals that are short.  A prime, so that they differ."""

Mould = object
"""Whatever it is, it may be compared and hashed."""

Part = tuple[Mould, tuple[str, ...]] | None
"""The mould of something and its values."""

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

_AROUND_VALUES = frozenset(
    {*_COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not, exp.Paren, exp.Tuple, exp.Between,
     exp.In, exp.Like, exp.ILike, exp.Add, exp.Sub, exp.If}
)  # fmt: skip
"""Within which a value is one among others."""

_NOT_ALIKE = (exp.Query, exp.UDTF, exp.AggFunc, exp.Window, exp.Star, exp.Explode, exp.GenerateSeries)
"""What is not the same wherever it stands."""

_ROWS = (*FUNCTIONS, *OF_ARRAYS)
_BY_NAME = {row.name for row in _ROWS} - {row.name for row in _ROWS if row.many}
"""Functions that give one value for each row; what else is called by its name may be anything."""


class Unlike(Exception):
    """Nothing has the mould of this expression but itself."""


_SIGN = "\0"


def parameter(number: int | str) -> str:
    """The value that a parameter is: none that is written looks like it."""
    return f"{_SIGN}{number}"


def number_of_parameter(value: str) -> int | None:
    """Which it is; ``None`` for a value that is written."""
    return int(value[1:]) if value[0] == _SIGN else None


def written(value: str) -> str:
    """The text of the literal that ``value`` is, or of the one within it where it is a parameter."""
    return value.removeprefix(_SIGN)


class _Like(NamedTuple):
    """A mould, and what the values of an item of it are: the text in one of its places, or one that all of them say,
    with a sign before it where it is a parameter.  ``plain``: they are all texts, as they are."""

    mould: Mould
    values: Sequence[tuple[int | None, str, str]]
    plain: bool


class Moulds:
    """The moulds of what stands in one statement, whose parameters are ``declared`` so.

    Parameters are values too, but for those that are ``repeated``: they say more than one thing.  ``alike``: whether a
    node that is none of what stands around values may be planned once for all.
    """

    def __init__(
        self,
        declared: Mapping[int, SqlType],
        repeated: frozenset[str] = frozenset(),
        alike: Callable[[exp.Expression], bool] | None = None,
    ) -> None:
        self._declared, self._repeated = declared, repeated
        self._alike = alike or _is_the_same_everywhere
        self._seen: set[str] = set()
        self._parameters: Counter[str] = Counter()
        self._numbers = count(987_600_001)

    def note(self, node: exp.Expression) -> None:
        """``node`` stands in the statement, in nothing that :meth:`part` is asked about."""
        if type(node) is exp.Literal:
            self._seen.add(node.this)
        elif type(node) is exp.Parameter:
            self._parameters[parameter(node.name)] += 1

    def repeated(self) -> Moulds | None:
        """Moulds for this statement, all of which has been seen, once more: ``None`` where these are right."""
        several = frozenset(each for each, times in self._parameters.items() if times > 1)
        if not several:
            return None
        made = Moulds(self._declared, several)
        made._seen = self._seen
        return made

    def part(self, node: exp.Expression) -> Part:
        """The mould of ``node`` and its values; ``None`` where its mould is its own."""
        return self._part(node)[0]

    def _part(self, node: exp.Expression) -> tuple[Part, Sequence[exp.Expression]]:
        """The same, and what the values are in."""
        found: list[exp.Expression] = []
        try:
            mould = self._of(node, found)
        except Unlike:
            for each in node.walk():
                self.note(each)
            return None, found
        values = tuple([parameter(each.name) if type(each) is exp.Parameter else each.this for each in found])
        self._seen.update(values)
        return (mould, values), found

    def parts(self, items: Items) -> list[Part]:
        """:meth:`part` of each of ``items``: where they are like one root, and their values of the same kinds, their
        moulds are the same too."""
        known: dict[tuple, _Like | None] = {}
        found: list[Part] = []
        for place, (key, texts) in enumerate(zip(self._keys(items), items.texts, strict=True)):
            if key not in known:
                part, known[key] = self._first(*items.written(place), key[1:])
            elif (like := known[key]) is None:
                part = self.part(items.written(place)[0])
            else:
                if like.plain:
                    values = texts
                else:
                    values = tuple([sign + (said if at is None else texts[at]) for at, sign, said in like.values])
                    for each in values:
                        if each[:1] == _SIGN:
                            self._parameters[each] += 1
                self._seen.update(values)
                part = like.mould, values
            found.append(part)
        return found

    def _keys(self, items: Items) -> Iterable[tuple]:
        """Of each: which root it is like, and of what kinds its values are."""
        kinds_of = [[self._kinds_of(leaf) for leaf in leaves] for leaves in items.leaves]
        if len(kinds_of) == 1:
            columns = zip(*items.texts, strict=True)
            each = [set(map(kind, column)) for kind, column in zip(kinds_of[0], columns, strict=True)]
            if all(len(kinds) == 1 for kinds in each):
                return repeat((0, *[kind for [kind] in each]), len(items))
        return [
            (number, *[kind(text) for kind, text in zip(kinds_of[number], texts, strict=True)])
            for number, texts in zip(items.of, items.texts, strict=True)
        ]

    def _kinds_of(self, leaf: exp.Literal) -> Callable[[str], object]:
        """What says of a text in the place of ``leaf`` all that a mould says of it: itself where it is part of that."""
        if type(leaf.parent) is exp.Parameter:
            return lambda text: text if parameter(text) in self._repeated else (self._declared.get(int(text)),)
        kind_of_one = _kind_of_text if leaf.is_string else _kind_of_number

        def kind(text: str) -> object:
            found = kind_of_one(text)
            return text if found is None else (found,)

        return kind

    def _first(
        self, node: exp.Expression, leaves: Sequence[exp.Literal], kinds: Sequence[object]
    ) -> tuple[Part, _Like | None]:
        """:meth:`part` of ``node``, and what that says of others that differ from it in ``leaves`` alone, where these
        are of the same ``kinds``."""
        part, found = self._part(node)
        if part is None:
            return part, None
        mould, values = part
        place_of = {id(leaf): place for place, leaf in enumerate(leaves)}
        ways: list[tuple[int | None, str, str]] = []
        for each, value in zip(found, values, strict=True):
            named = type(each) is exp.Parameter
            ways.append((place_of.pop(id(each.this if named else each), None), _SIGN * named, written(value)))
        if not all(type(kinds[place]) is str for place in place_of.values()):
            return part, None  # what such a one says is part of its mould
        plain = [(at, sign) for at, sign, _ in ways] == [(at, "") for at in range(len(leaves))]
        return part, _Like(mould, ways, plain)

    def _of(self, node: exp.Expression, values: list[exp.Expression] | None) -> Mould:
        """``values`` are what they are in; it is ``None`` where they are part of the mould."""
        kind, args = type(node), node.args
        if kind is Kept:
            raise Unlike
        if kind is exp.Literal:
            found = None if values is None else kind_of(node)
            if found is None:
                self._seen.add(args["this"])
                return args["this"], args["is_string"]
            values.append(node)
            return found
        if kind is exp.Column:
            return kind, *[(key, each.args["this"], each.args.get("quoted")) for key, each in args.items() if each]
        if kind is exp.Parameter:
            value = parameter(node.name)
            self._parameters[value] += 1
            if values is None or value in self._repeated:
                return kind, value
            values.append(node)
            return kind, self._declared.get(number_of_parameter(value))
        if kind not in _AROUND_VALUES:
            if not self._alike(node):
                raise Unlike
            if not _keeps_its_value(node):
                values = None
        said: list[object] = [kind]
        for key, each in args.items():
            if isinstance(each, exp.Expression):
                said += key, self._of(each, values)
            elif type(each) is list:
                said += key, *[self._of(one, values) if isinstance(one, exp.Expression) else one for one in each]
            elif each:
                said += key, each
        return tuple(said)

    def samples(
        self, items: Sequence[exp.Expression], values: Sequence[tuple[str, ...]]
    ) -> list[tuple[exp.Expression, tuple[str, ...]]]:
        """Copies of ``items``, with values that stand nowhere in the statement, and these.  A parameter stays itself,
        since it stands nowhere else.  :class:`Unlike` where there are no such values left.

        ``values`` are those of all that have the mould of ``items``.  Where their texts are of one length, so are the
        samples: a type may be of that length.
        """
        lengths = [set(map(len, each)) for each in zip(*values, strict=True)]
        made = []
        for nth, item in enumerate(items):
            copy = exp.Paren(this=item.copy())
            put: list[str] = []
            for leaf in self._leaves(copy.this):
                if type(leaf) is exp.Literal:
                    chars = len(leaf.this) if len(lengths[len(put)]) == 1 else _TEXT_CHARS + nth
                    leaf.set("this", self._fresh(kind_of(leaf), chars))
                put.append(leaf.this if type(leaf) is exp.Literal else parameter(leaf.name))
            made.append((copy.this.pop(), tuple(put)))
        return made

    def _leaves(self, node: exp.Expression) -> Iterator[exp.Expression]:
        """What the values of ``node`` are, in the order of :meth:`_of`."""
        kind = type(node)
        if kind is exp.Literal:
            if kind_of(node) is not None:
                yield node
        elif kind is exp.Parameter:
            if parameter(node.name) not in self._repeated:
                yield node
        elif kind in _AROUND_VALUES or _keeps_its_value(node):
            for each in node.iter_expressions():
                yield from self._leaves(each)

    def _fresh(self, kind: str, chars: int) -> str:
        for number, _ in zip(self._numbers, range(TRIES_MAX), strict=False):
            made = _value(kind, number, chars)
            if made not in self._seen:
                self._seen.add(made)
                return made
        raise Unlike


def is_one_value(node: exp.Expression) -> bool:
    """Whether ``node`` is not of what reads rows, folds them, or may be anything."""
    if type(node) is exp.Anonymous and str(node.this).lower() not in _BY_NAME:
        return False
    return not isinstance(node, _NOT_ALIKE)


def _is_the_same_everywhere(node: exp.Expression) -> bool:
    return is_one_value(node) and is_definite(node)


def _keeps_its_value(node: exp.Expression) -> bool:
    """Whether ``node`` is a minus before a number, or a cast that takes every value of its kind."""
    inner = node.this
    if type(node) is exp.Neg:
        return type(inner) is exp.Literal and not inner.is_string
    if type(node) is not exp.Cast or node.to.expressions:  # a text may be too long for a type with a length
        return False
    if type(inner) is exp.Parameter:
        return True
    return type(inner) is exp.Literal and node.to.this in _KEPT_BY_CASTS.get(kind_of(inner), ())


# -- kinds of values --------------------------------------------------------------------------------------------------

_INT4 = re.compile(r"0|[1-9][0-9]{0,8}")
_INT8 = re.compile(r"[1-9][0-9]{10,17}")
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,8})\.([0-9]{1,9})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_TEXTS = frozenset({exp.DType.TEXT, exp.DType.VARCHAR})
_KEPT_BY_CASTS = {
    "int4": frozenset({exp.DType.INT, exp.DType.BIGINT, exp.DType.DECIMAL}),
    "text": _TEXTS,
    "date": _TEXTS | {exp.DType.DATE},
    "uuid": _TEXTS | {exp.DType.UUID},
}
"""Types that have every value of a kind.  A cast that cannot be is left for who runs it, another is reckoned here."""


def kind_of(literal: exp.Literal) -> str | None:
    """Which values might stand in the place of this one; ``None`` where nobody knows.

    A text that reads as a date is of their kind, whether or not it is read as one: what is put in has to be.
    """
    return _kind_of_text(literal.this) if literal.is_string else _kind_of_number(literal.this)


def _kind_of_number(text: str) -> str | None:
    if _INT4.fullmatch(text):
        return "int4"
    if _INT8.fullmatch(text):
        return "int8"
    decimal = _DECIMAL.fullmatch(text)
    return None if decimal is None else f"{0 if decimal[1] == '0' else len(decimal[1])}.{len(decimal[2])}"


def _kind_of_text(text: str) -> str | None:
    if not text or text[-1].isspace():
        return None
    if text[-1] in _HEXADECIMAL:
        if len(text) == 10 and _DATE.fullmatch(text):
            return "date" if _is_date(text) else "text"
        if len(text) == 36 and _UUID.fullmatch(text):
            return "uuid"
    return "text"


_HEXADECIMAL = frozenset("0123456789abcdef")


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text) is not None
    except ValueError:
        return False


_TEXT_CHARS = 16
"""Of a text that is put in, where those that it is in the place of differ in theirs."""

_NO_DIGITS = str.maketrans("0123456789", "ghijklmpqr")
"""None of which a number, a truth value or bytes are written with."""


def _value(kind: str, number: int, chars: int) -> str:
    """One of a kind; ``chars``: how long a text is."""
    if kind == "int4":
        return str(number)
    if kind == "int8":
        return f"{number}{number}"
    if kind == "text":
        return f"sample {number}".translate(_NO_DIGITS).rjust(chars, "s")[-chars:]
    if kind == "date":
        return date.fromordinal(date.max.toordinal() - number % 100_000).isoformat()
    if kind == "uuid":
        return f"{number:08x}-0000-4000-8000-{number:012x}"
    whole, places = map(int, kind.split("."))
    digits = str(number * _SPREAD)[-whole - places :]  # the last ones differ most
    return f"{digits[:whole].replace('0', '5') or '0'}.{digits[whole:]}"
