"""A smaller history that still fails, and the faults without which it would not.  Pure, and deterministic.

Promises: what comes back was checked and fails *as the original does*: with an anomaly of the same kind about the same
key, and with no kind of anomaly that the original lacked.  Without the second half, leaving out an append turns every
read that saw it into a read of something nobody wrote: a smaller history that fails for a reason of our own making.
Operations are kept or left out whole, with their indexes; none is changed.

``minimal`` says whether leaving out any single one more was tried and made it pass (1-minimal).  It does not promise
the smallest history there is, nor that it ends minimal where the bound on checks is met first.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from judge.history import Fault, Op
from judge.verdict import INVALID, Anomaly, Verdict

Check = Callable[[Sequence[Op]], Verdict]
Replay = Callable[[Sequence[Fault]], Verdict]

CHECKS_MAX = 500
"""A history of some hundred operations about one key is minimal well before."""

CHECKED_MAX = 20_000_000
"""Operations checked in all: checkers take some microseconds for each, so it ends within a few minutes."""

REPLAYS_MAX = 400
"""Twice as many as one by one takes for the faults of a full run."""


class NothingToShrink(ValueError):
    """The history (or the replay) does not fail as it is."""


@dataclass(frozen=True)
class Shrunk:
    ops: tuple[Op, ...]
    verdict: Verdict
    anomaly: Anomaly
    """The one it still shows: its ``ops`` are those of the smaller history."""
    checks: int
    minimal: bool
    steps: tuple[str, ...]
    """What was cut, in words."""


@dataclass(frozen=True)
class Needed:
    faults: tuple[Fault, ...]
    verdict: Verdict
    replays: int
    minimal: bool


def shrink(
    ops: Sequence[Op],
    check: Check,
    anomaly: Anomaly | None = None,
    *,
    checks_max: int = CHECKS_MAX,
    checked_max: int = CHECKED_MAX,
) -> Shrunk:
    """Cut ``ops`` down around ``anomaly`` (the verdict's first): to what it names, to its key, to the shortest prefix,
    then whole operations by delta debugging.  Raises :class:`NothingToShrink` for a history that is not invalid.
    """
    first = check(ops)
    if first.valid != INVALID or not first.anomalies:
        raise NothingToShrink(f"{first.checker} says {first.valid}")
    wanted = anomaly or first.anomalies[0]
    if not any(_same(wanted, found) for found in first.anomalies):
        raise NothingToShrink(f"{first.checker} finds no {wanted.kind} about {wanted.key!r}")
    trials = _Trials(check, wanted, {found.kind for found in first.anomalies}, checks_max - 1, checked_max, first)
    steps = []

    def cut(words: str, fewer: Sequence[Op]) -> None:
        nonlocal kept
        if len(fewer) < len(kept) and trials(fewer):
            steps.append(f"{words}: {len(kept)} to {len(fewer)}")
            kept = list(fewer)

    kept = list(ops)
    named = set(wanted.ops)
    cut("to the operations that the anomaly names", [op for op in kept if op.index in named])
    if len(kept) > max(len(named), 1):
        workloads = {op.workload for op in kept if op.index in named}
        cut("to the workload", [op for op in kept if op.workload in workloads])
        if wanted.key:
            cut("to the key", [op for op in kept if op.index in named or mentions(op, wanted.key)])
        if named:
            last = max(named)
            cut("to the anomaly's end", [op for op in kept if op.index <= last])
        prefix = _shortest_prefix(kept, trials)
        if len(prefix) < len(kept):
            steps.append(f"to the shortest prefix: {len(kept)} to {len(prefix)}")
            kept = prefix
    fewer, minimal = _ddmin(kept, trials)
    if len(fewer) < len(kept):
        steps.append(f"operation by operation: {len(kept)} to {len(fewer)}")
    verdict = trials.verdict
    return Shrunk(
        tuple(fewer), verdict, next(found for found in verdict.anomalies if _same(wanted, found)),
        checks_max - trials.left, minimal, tuple(steps),
    )  # fmt: skip


def without_faults(replay: Replay, faults: Sequence[Fault], *, replays_max: int = REPLAYS_MAX) -> Needed:
    """The faults without any one of which ``replay`` (a simulation under its seed) would not be invalid.

    Raises :class:`NothingToShrink` where it is not invalid with all of them.
    """
    first = replay(faults)
    if first.valid != INVALID:
        raise NothingToShrink(f"{first.checker} says {first.valid}")
    kinds = {found.kind for found in first.anomalies}
    last = first
    left = replays_max - 1

    def fails(fewer: Sequence[Fault]) -> bool | None:
        nonlocal last, left
        if left <= 0:
            return None
        left -= 1
        verdict = replay(fewer)
        # Another schedule may show the same bug by another anomaly: any of those seen at first will do.
        failed = verdict.valid == INVALID and (not kinds or any(found.kind in kinds for found in verdict.anomalies))
        if failed:
            last = verdict
        return failed

    kept, minimal = _ddmin(list(faults), fails)
    return Needed(tuple(kept), last, replays_max - left, minimal)


def mentions(op: Op, key: str) -> bool:
    """Whether ``key`` stands anywhere in the arguments or the result: as a value, a name, or ``name=value``."""
    name, _, value = key.rpartition("=")
    return any(found in (key, value) if name else found == key for found in _leaves([op.value, op.result]))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None:
        yield str(value)


def _same(wanted: Anomaly, found: Anomaly) -> bool:
    return found.kind == wanted.kind and found.key == wanted.key


class _Trials:
    """Whether fewer operations still fail in the same way, within the bounds; ``None`` once they are met."""

    def __init__(
        self, check: Check, wanted: Anomaly, kinds: set[str], checks_max: int, checked_max: int, verdict: Verdict
    ) -> None:
        self._check, self._wanted, self._kinds = check, wanted, kinds
        self.left, self._checked_left = checks_max, checked_max
        self.verdict = verdict
        """Of the last that failed."""

    def __call__(self, ops: Sequence[Op]) -> bool | None:
        if self.left <= 0 or self._checked_left < len(ops):
            return None
        self.left -= 1
        self._checked_left -= max(len(ops), 1)
        try:
            verdict = self._check(ops)
        except Exception:
            return False  # a checker may rely on what was left out: then that belongs to the history
        failed = (
            verdict.valid == INVALID
            and any(_same(self._wanted, found) for found in verdict.anomalies)
            and all(found.kind in self._kinds for found in verdict.anomalies)
        )
        if failed:
            self.verdict = verdict
        return failed


def _shortest_prefix(ops: list[Op], fails: Callable[[Sequence[Op]], bool | None]) -> list[Op]:
    """By bisection; where failing does not grow with the prefix, some prefix that fails all the same."""
    if len(ops) < 2:
        return ops
    # Whatever bisection returns was tried and failed, or is the whole.
    return ops[: 1 + bisect.bisect_left(range(1, len(ops)), True, key=lambda length: bool(fails(ops[:length])))]


T = TypeVar("T")


def _ddmin(items: list[T], fails: Callable[[Sequence[T]], bool | None]) -> tuple[list[T], bool]:
    """Delta debugging: leave out ever smaller parts, as long as it fails without them.

    ``items`` fail.  Returns what is left and whether it is 1-minimal: a whole round of leaving out one was in vain.
    """
    size = len(items)
    while size:
        start, left_out = 0, False
        while start < len(items):
            fewer = items[:start] + items[start + size :]
            failed = fails(fewer)
            if failed is None:
                return items, False
            if failed:
                items, left_out = fewer, True  # what follows has moved here
            else:
                start += size
        if size == 1 and not left_out:
            return items, True
        size = min(max(size // 2, 1), len(items))
    return items, True
