"""What a condition wants equal, and which of that are columns.  Pure functions of scalars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from plan import scalars as s
from plan.calls import call
from plan.nodes import Node
from plan.types import Type, common, is_float, is_integer

EQUALITIES = frozenset({"=", "is_not_distinct"})


def plain(scalar: s.Scalar, level: int = 0) -> int | None:
    """The place of the column that ``scalar`` is, a whole number's width aside: of its own row, or of one around."""
    while isinstance(scalar, s.Cast) and alike(scalar.type, scalar.value.type):
        scalar = scalar.value
    return scalar.position if isinstance(scalar, s.Column) and scalar.level == level else None


def alike(one: Type, other: Type) -> bool:
    """Whether equal values of two columns are written alike, but for the width of whole numbers."""
    return one == other or is_integer(one) and is_integer(other)


def met(one: s.Scalar, other: s.Scalar) -> tuple[s.Scalar, s.Scalar]:
    """What ``one`` and ``other`` are compared as, so that those that are equal are one value.

    Of whole numbers and decimals several are one float: where such a number is to equal a float, its different values
    are counted as floats, too."""
    kind = common((one.type, other.type))
    if not is_float(kind):
        return one, other
    first, second = (each if each.type == kind else s.cast(each, kind) for each in (one, other))
    return first, second


def conjuncts(scalar: Node) -> Iterator[Node]:
    """All of which must be true for ``scalar`` to be."""
    stack = [scalar]
    while stack:
        found = stack.pop()
        if isinstance(found, s.Call) and found.name == "and":
            stack += reversed(found.arguments)
        else:
            yield found


def conjunction(parts: Sequence[s.Scalar]) -> s.Scalar:
    """What is true where all of ``parts`` are, of which there is one or more."""
    return parts[0] if len(parts) == 1 else call("and", *parts)


def equal_columns(condition: s.Scalar) -> Iterator[tuple[int, int]]:
    """Columns of one row that ``condition`` wants equal."""
    for one, other in _compared(condition):
        if plain(one) is not None and plain(other) is not None:
            yield plain(one), plain(other)


def closed(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """All pairs of columns that are equal where those of ``pairs`` are: what equals one of two equals the other."""
    classes: list[set[int]] = []
    for pair in pairs:
        met = [each for each in classes if not each.isdisjoint(pair)]
        classes = [each for each in classes if each.isdisjoint(pair)] + [set(pair).union(*met)]
    return [pair for each in classes for pair in combinations(sorted(each), 2)]


def equal_outside(condition: s.Scalar) -> Iterator[tuple[int, int]]:
    """Columns of its own row, and those of the next row around that ``condition`` wants them equal to."""
    for pair in _compared(condition):
        for mine, theirs in (pair, pair[::-1]):
            if plain(mine) is not None and plain(theirs, 1) is not None:
                yield plain(mine), plain(theirs, 1)


def _compared(condition: s.Scalar) -> Iterator[tuple[s.Scalar, ...]]:
    for each in conjuncts(condition):
        if isinstance(each, s.Call) and each.name in EQUALITIES:
            one, other = each.arguments
            if alike(one.type, other.type):
                yield one, other
