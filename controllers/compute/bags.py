"""The values of one group that an extreme or a count of different ones is taken of: how often each is there.

Promises: after any changes, in any order, :attr:`Bag.different`, :attr:`Bag.least` and :attr:`Bag.greatest` are those
of the values that remain.  :meth:`Bag.changed` tells what will be and leaves what is; :meth:`Bag.accept` makes it so.
An extreme that goes away is mostly followed by one of the nearest that are remembered, so all values are looked at once
in some :data:`NEAR` times.  Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest

NEAR = 64
"""Values next to an extreme that are remembered: looking at a million for them takes 0.1 s, once in so many."""

_Counts = dict[object, int]


TEXT_SHARE = 280
"""Characters of a text that count as another value: as many bytes as a value takes by itself."""


@dataclass(frozen=True, slots=True)
class Bag:
    """``low`` and ``high``: whether the least, the greatest is asked for."""

    low: bool
    high: bool
    _counts: _Counts = field(default_factory=dict)
    _changes: Mapping[object, int] = field(default_factory=dict)
    different: int = 0
    """How many different values there are."""
    weight: int = 0
    """The same, a long text as several: what they take in memory."""
    _lowest: tuple = ()
    """In their order all values up to the last of them; all there are, where it is empty or has as many."""
    _highest: tuple = ()
    """In their order all values from the first of them on."""

    @property
    def least(self) -> object | None:
        return self._lowest[0] if self._lowest else None

    @property
    def greatest(self) -> object | None:
        return self._highest[-1] if self._highest else None

    def changed(self, changes: Mapping[object, int]) -> Bag:
        """This bag with each value so many times more, or less; values are of one type that has an order."""
        net = dict(self._changes)
        came, went = [], []
        for value, times in changes.items():
            before = self._counts.get(value, 0) + net.get(value, 0)
            after = before + times
            assert after >= 0, (value, before, times)
            net[value] = net.get(value, 0) + times
            if not before and after:
                came.append(value)
            elif before and not after:
                went.append(value)
        weight = self.weight + sum(map(_weight, came)) - sum(map(_weight, went))
        made = self._with(net, self.different + len(came) - len(went), weight, self._lowest, self._highest)
        if not (came or went) or not (self.low or self.high):
            return made
        was_all = self.different
        lowest = self._nearest(made, self._lowest, was_all, came, went, False) if self.low else ()
        highest = self._nearest(made, self._highest, was_all, came, went, True) if self.high else ()
        return self._with(net, made.different, weight, lowest, highest)

    def _with(
        self, changes: Mapping[object, int], different: int, weight: int, lowest: tuple, highest: tuple
    ) -> Bag:  # fmt: skip
        # Not by ``replace``, which takes four times as long, in each group that a change touches.
        return Bag(self.low, self.high, self._counts, changes, different, weight, lowest, highest)

    @staticmethod
    def _nearest(made: Bag, near: tuple, was_all: int, came: list, went: list, high: bool) -> tuple:
        """What is next to one end, ``near`` before values came and went."""
        found, whole = list(near), len(near) == was_all
        for value in went:
            place = bisect_left(found, value)
            if place < len(found) and found[place] == value:
                del found[place]
        end = (found[0] if high else found[-1]) if found else None
        for value in came:
            # What is beyond the last that is remembered is not remembered: others may be between.
            if whole or end is not None and (value >= end if high else value <= end):
                found.insert(bisect_right(found, value), value)
        if len(found) > 2 * NEAR:
            found = found[-NEAR:] if high else found[:NEAR]
        if not found and made.different:
            pick = nlargest if high else nsmallest
            found = sorted(pick(NEAR, made._values()))
        return tuple(found)

    def _values(self) -> Iterator[object]:
        changes = self._changes
        for value, times in self._counts.items():
            if times + changes.get(value, 0):
                yield value
        for value, times in changes.items():
            if times and value not in self._counts:
                yield value

    def accept(self) -> Bag:
        """This bag, its changes put in: what it was made of is not to be read any more."""
        for value, times in self._changes.items():
            after = self._counts.get(value, 0) + times
            if after:
                self._counts[value] = after
            else:
                self._counts.pop(value, None)
        return self._with({}, self.different, self.weight, self._lowest, self._highest)


def _weight(value: object) -> int:
    return 1 + len(value) // TEXT_SHARE if isinstance(value, (str, bytes)) else 1
