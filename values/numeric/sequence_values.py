"""The values of a sequence: how far it has come, and which come next.  Pure.

A sequence is stepped through in reserves: who takes one has its values to itself, and what of them he does not use
nobody gets.  What is kept is where the last reserve ended, as Postgres keeps it: a value, and whether that one was
given out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Steps:
    """How a sequence goes on: from one value to the next within its bounds, both of which are values of it."""

    increment: int
    lowest: int
    highest: int
    cycle: bool = False

    @property
    def first(self) -> int:
        """Where it begins again once it has come to its end."""
        return self.lowest if self.increment > 0 else self.highest

    @property
    def last(self) -> int:
        """The bound that it comes to."""
        return self.highest if self.increment > 0 else self.lowest

    def holds(self, value: int) -> bool:
        return self.lowest <= value <= self.highest


@dataclass(frozen=True)
class Position:
    """How far a sequence has come.

    ``set`` counts how often it was put somewhere otherwise than by taking values: reserves that were taken before that
    are not gone on with.
    """

    last: int
    given: bool = False
    """Whether ``last`` was given out; else it is the next to be."""
    set: int = 0

    def put(self, value: int, given: bool) -> Position:
        """Moved by somebody's word: setval, RESTART, or another way of stepping."""
        return Position(value, given, self.set + 1)

    def text(self) -> str:
        """As it is kept."""
        return f"{self.last} {int(self.given)} {self.set}"

    @classmethod
    def of_text(cls, text: str) -> Position:
        """From :meth:`text`.  Raises ``ValueError``."""
        last, given, times = map(int, text.split(" "))
        return cls(last, bool(given), times)


def taken(steps: Steps, at: Position, count: int) -> tuple[tuple[range, ...], Position]:
    """The next ``count`` values, as runs in their order, and the position behind them.

    Fewer, or none, where the sequence comes to its end and does not cycle.
    """
    runs: list[range] = []
    while count > 0:
        if not at.given:
            start = at.last
        elif steps.holds(at.last + steps.increment):
            start = at.last + steps.increment
        elif steps.cycle:
            start = steps.first
        else:
            break
        some = min(count, 1 + abs(steps.last - start) // abs(steps.increment))
        run = range(start, start + some * steps.increment, steps.increment)
        runs.append(run)
        count -= some
        at = replace(at, last=run[-1], given=True)
    return tuple(runs), at


def count_of(runs: Iterable[range]) -> int:
    """How many values there are in ``runs``."""
    return sum(map(len, runs))
