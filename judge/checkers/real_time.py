"""Whether places in one order keep to real time.  Pure.

What a log says about order and what clocks say about it must not contradict each other: of two operations of which one
had ended when the other began, the first must not have the later place.  One sweep finds every operation for which
that fails, in O(n log n), because it is enough to compare it with the furthest place of all that had ended.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from judge.history import Op


class Placed(NamedTuple):
    op: Op
    place: int
    """Of a write its own, of a read the last that it saw."""


def furthest_before(
    ops: Iterable[Op], place_of: Callable[[Op, int], int | None]
) -> Iterator[tuple[Placed, Placed]]:  # fmt: skip
    """Each operation, by start, with the one of the furthest place among those that had ended when it began.

    ``place_of(op, least)`` gives an operation's place, ``None`` if it has none.  One that may have several takes the
    first that is at least ``least`` (the furthest place so far): any further one only asks more of those that follow.
    Operations that nothing had ended before are left out.
    """
    ending: list[tuple[int, int, Placed]] = []
    furthest: Placed | None = None
    for number, op in enumerate(sorted(ops, key=lambda op: op.start)):
        while ending and ending[0][0] < op.start:
            _, _, placed = heapq.heappop(ending)
            if furthest is None or placed.place > furthest.place:
                furthest = placed
        place = place_of(op, 0 if furthest is None else furthest.place)
        if place is None:
            continue
        placed = Placed(op, place)
        if op.end is not None:
            heapq.heappush(ending, (op.end, number, placed))
        if furthest is not None:
            yield placed, furthest
