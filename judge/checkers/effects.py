"""What a read may show: all effects acknowledged before it, and some of those under way or unknown.  Pure.

For checkers whose reads are sums: balances of accounts, counts and totals of groups, rows by how often they are there.
A snapshot of a strictly serializable system is then the sum of the effects that came before it, and the question is
only which of the open ones did.

Promises: sound (no read that has an explanation is called wrong; a failed effect adds nothing, an unknown one may land
at any time after it began); exact until ``STEPS_MAX`` choices were tried in a history, and later reads are held to what
each sum can be at least and at most (``Explainer.loose`` counts them).  What a read showed beyond doubt is certain for
those that begin after it ended.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from judge.history import Op

STEPS_MAX = 1_000_000
"""Choices that are tried in a history, some seconds."""

STEPS_PER_READ_MAX = 2_000
"""A read beside ten open effects needs about a thousand at most; beside many unknown ones no number is enough."""

UNIQUE_MAX = 12
"""Beside more open effects nobody asks whether an explanation is the only one: it would not be, or the search would
take all the steps there are."""


class Effect(NamedTuple):
    op: Op
    deltas: Mapping[str, Mapping[Hashable, int]]
    """For each scope (a set of sums that are read together), what it adds to which sum."""


class Reading(NamedTuple):
    op: Op
    scope: str
    sums: Mapping[Hashable, int]
    """What was read; a sum that is not there is 0."""


class State(NamedTuple):
    """What one reading must show, and may."""

    reading: Reading
    sums: dict[Hashable, int]
    """As read, with a 0 for each sum that an effect could have changed and that was not read."""
    certain: dict[Hashable, int]
    possible: list[tuple[Op, Mapping[Hashable, int]]]
    """Open effects on this scope, by start."""

    def bounds(self) -> tuple[dict[Hashable, int], dict[Hashable, int]]:
        """By how much the open effects can change each sum at least and at most."""
        least: dict[Hashable, int] = defaultdict(int)
        most: dict[Hashable, int] = defaultdict(int)
        for _, deltas in self.possible:
            for key, delta in deltas.items():
                (most if delta > 0 else least)[key] += delta
        return least, most


class Unexplained(NamedTuple):
    state: State
    off: dict[Hashable, int]
    """By how much the sums differ from the certain ones."""


@dataclass
class Explainer:
    effects: Sequence[Effect]
    """By start."""
    readings: Sequence[Reading]
    """By start."""
    settled: set[int] = field(default_factory=set)
    """Effects that a read showed beyond doubt, by their operation's index."""
    exact: int = 0
    loose: int = 0
    steps: int = STEPS_MAX
    _shown: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list)
    """Read's end, its index, what it showed beyond doubt; a heap."""

    def check(self, initial: Mapping[Hashable, int] | None = None) -> Iterator[Unexplained]:
        """The readings that nothing explains.  ``initial`` has the sums at first, and only its keys are looked at;
        ``None``: all, from 0."""
        likely: set[int] = set()  # What explained the read before: it is probably still so.
        for state in self.states():
            rest = {
                key: value - state.certain.get(key, 0) - (0 if initial is None else initial[key])
                for key, value in state.sums.items()
                if initial is None or key in initial
            }
            found, searched = _subsets(rest, state.possible, likely, min(STEPS_PER_READ_MAX, max(0, self.steps)))
            self.steps -= searched.steps
            if not found and searched.whole:
                yield Unexplained(state, {key: off for key, off in rest.items() if off})
                continue
            self.exact += bool(found)
            self.loose += not found
            likely = set(found[0]) | (likely - {op.index for op, _ in state.possible}) if found else likely
            if searched.whole and len(found) == 1 and len(state.possible) <= UNIQUE_MAX:
                op = state.reading.op
                heapq.heappush(self._shown, (op.end or op.start, op.index, found[0]))

    def states(self) -> Iterator[State]:
        alive = [effect for effect in self.effects if not effect.op.failed]
        certain: dict[str, dict[Hashable, int]] = defaultdict(lambda: defaultdict(int))
        pending: list[Effect] = []
        begun = 0
        for reading in self.readings:
            read = reading.op
            while self._shown and self._shown[0][0] < read.start:
                self.settled.update(heapq.heappop(self._shown)[2])
            while begun < len(alive) and alive[begun].op.start <= read.start:
                pending.append(alive[begun])
                begun += 1
            kept = []
            for effect in pending:
                if effect.op.before(read) or effect.op.index in self.settled:
                    for scope, deltas in effect.deltas.items():
                        for key, delta in deltas.items():
                            certain[scope][key] += delta
                else:
                    kept.append(effect)
            pending = kept
            later = []
            for at in range(begun, len(alive)):
                if read.before(alive[at].op):
                    break
                later.append(alive[at])
            possible = [
                (effect.op, effect.deltas[reading.scope])
                for effect in [*pending, *later]
                if effect.deltas.get(reading.scope)
            ]
            sums = dict.fromkeys(certain[reading.scope], 0)
            for _, deltas in possible:
                sums.update(dict.fromkeys(deltas, 0))
            sums.update(reading.sums)
            yield State(reading, sums, dict(certain[reading.scope]), possible)

    def guess(self, wrong: Unexplained) -> tuple[str, Op] | None:
        """The newest single effect that would explain it if it had gone wrong, and how: ``lost-write``,
        ``double-apply``, ``dirty-read`` (it had failed) or ``torn-write`` (one of its sums has it)."""
        read, scope, off = wrong.state.reading.op, wrong.state.reading.scope, wrong.off
        possible = {op.index for op, _ in wrong.state.possible}
        for effect in reversed(self.effects):
            deltas = {key: delta for key, delta in effect.deltas.get(scope, {}).items() if delta}
            if not deltas or read.before(effect.op):
                continue
            less = {key: -delta for key, delta in deltas.items()}
            if effect.op.failed:
                if off == deltas:
                    return "dirty-read", effect.op
                continue
            certain = effect.op.index not in possible
            if certain and off == less:
                return "lost-write", effect.op
            if certain and off == deltas:
                return "double-apply", effect.op
            part = less if certain else deltas
            if len(off) < len(deltas) and all(part.get(key) == amount for key, amount in off.items()):
                return "torn-write", effect.op
        return None


class _Searched(NamedTuple):
    steps: int
    whole: bool
    """Whether everything was tried (or enough answers were found), and not only as much as was allowed."""


def _subsets(
    rest: Mapping[Hashable, int],
    effects: Sequence[tuple[Op, Mapping[Hashable, int]]],
    likely: set[int],
    steps_max: int,
) -> tuple[list[tuple[int, ...]], _Searched]:
    """Sets of ``effects`` (by index of their operation) that change each sum of ``rest`` by just that: one explains it,
    and if there is no other it is what happened.  Up to two, or one beside more than ``UNIQUE_MAX``; those in
    ``likely`` are tried first.

    A set that holds an effect holds all of ``effects`` that had ended before that one began.
    """
    count = len(effects)
    least: list[dict[Hashable, int]] = [{}] * (count + 1)  # By how much those from a place on can change a sum.
    most: list[dict[Hashable, int]] = [{}] * (count + 1)
    for at in range(count - 1, -1, -1):
        least[at], most[at] = dict(least[at + 1]), dict(most[at + 1])
        for key, delta in effects[at][1].items():
            side = most[at] if delta > 0 else least[at]
            side[key] = side.get(key, 0) + delta

    def reachable(at: int, need: Mapping[Hashable, int], keys: Iterable[Hashable]) -> bool:
        return all(least[at].get(key, 0) <= need[key] <= most[at].get(key, 0) for key in keys if key in need)

    found: list[tuple[int, ...]] = []
    wanted = 2 if count <= UNIQUE_MAX else 1
    steps = 0
    if not reachable(0, rest, rest):
        return found, _Searched(1, True)
    # A stack of (place, what is still needed, chosen so far).
    stack: list[tuple[int, dict[Hashable, int], tuple[int, ...]]] = [(0, dict(rest), ())]
    while stack:
        at, need, chosen = stack.pop()
        steps += 1
        if steps > steps_max:
            return found, _Searched(steps, False)
        if at == count:
            found.append(tuple(effects[i][0].index for i in chosen))
            if len(found) == wanted:
                break
            continue
        op, deltas = effects[at]
        ways = []
        if reachable(at + 1, need, deltas):
            ways.append((at + 1, need, chosen))
        if all(i in chosen for i in range(at) if effects[i][0].before(op)):
            less = dict(need)
            for key, delta in deltas.items():
                if key in less:
                    less[key] -= delta
            if reachable(at + 1, less, deltas):
                ways.append((at + 1, less, (*chosen, at)))
        # What is tried first is on top: an acknowledged one was probably seen, another unknown one probably not.
        stack.extend(ways if op.ok or op.index in likely else reversed(ways))
    return found, _Searched(steps, True)
