"""A long list or chain of a tree that is not written out: what is alike in it is there once, with many values.

:mod:`sql.syntax.stretches` makes a :class:`Kept` of a stretch, :mod:`sql.statements.samples` plans two items of each
mould, and nobody has written the others then.  Whoever else wants the tree has it written out.  Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from sqlglot import exp

WITHIN = frozenset(
    {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not,
     exp.Paren, exp.Tuple, exp.Between, exp.In, exp.Like, exp.ILike, exp.Add, exp.Sub, exp.If, exp.Neg, exp.Cast,
     exp.DataType, exp.Literal, exp.Parameter, exp.Column, exp.Identifier, exp.Null, exp.Boolean}
)  # fmt: skip
"""What an item may be made of: nothing else asks what its values are before it is planned."""


@dataclass
class Items:
    """``roots`` are what is alike, ``leaves`` the literals in each that have other texts in others like it.  Of each
    item, ``of`` says which root it is like and ``texts`` what its literals say; ``written`` makes its node, with the
    leaves of that."""

    roots: Sequence[exp.Expression]
    leaves: Sequence[Sequence[exp.Literal]]
    of: Sequence[int]
    texts: Sequence[tuple[str, ...]]
    written: Callable[[int], tuple[exp.Expression, Sequence[exp.Literal]]]

    def __len__(self) -> int:
        return len(self.of)

    @cached_property
    def times(self) -> Sequence[int]:
        """How many items are like each root."""
        found = [0] * len(self.roots)
        for number in self.of:
            found[number] += 1
        return found


    def parts(self, leaf: int, places: Sequence[int], part: Callable[[exp.Expression], exp.Expression]) -> Items:
        """What ``part`` gives of those in ``places``, which are like the only root: it has that leaf alone."""

        def written(number: int) -> tuple[exp.Expression, Sequence[exp.Literal]]:
            node, leaves = self.written(places[number])
            return part(node), [leaves[leaf]]

        texts = [self.texts[place][leaf : leaf + 1] for place in places]
        return Items([part(self.roots[0])], [[self.leaves[0][leaf]]], [0] * len(places), texts, written)


class Kept(exp.Expression):
    """What stands in the place of ``this``, which are :class:`Items`."""

    arg_types = {"this": True}


class Flat(Sequence[exp.Expression]):
    """What a list or a chain is of, where ``parts`` may be :class:`Kept`: an item of these is written when it is asked
    for."""

    def __init__(self, parts: Sequence[exp.Expression]) -> None:
        self.parts = parts
        self.kept = sum(type(part) is Kept for part in parts)
        self._starts = list(accumulate([len(p.this) if type(p) is Kept else 1 for p in parts], initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, place: int) -> exp.Expression:
        number = bisect_right(self._starts, place) - 1
        part = self.parts[number]
        return part.this.written(place - self._starts[number])[0] if type(part) is Kept else part


class Unwritten:
    """A query with :class:`Kept` in it; ``write`` gives it as it is written."""

    def __init__(self, tree: exp.Expression, write: Callable[[], exp.Expression]) -> None:
        self.tree, self.kept = tree, sum(1 for _ in tree.find_all(Kept))
        self._write = write

    @cached_property
    def written(self) -> exp.Expression:
        return self._write()
