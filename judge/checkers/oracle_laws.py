"""The laws of a timestamp oracle (I3) as a judge of histories.  Pure.

Promised by the product for each timeline (``oracle/timeline.py``), of operations where one ended before another began:

* a ``write_ts`` is greater than every earlier ``read_ts`` and ``write_ts``;
* a ``read_ts`` is at least the ``ts`` of every earlier ``apply_write`` and every earlier ``read_ts``;
* no two ``write_ts`` are ever equal, even concurrent ones.

An operation that was never answered asks nothing of others: an ``apply`` of it could only help a reader, whose ts is
merely larger than it must be then; one that failed asks nothing either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged

NAME = "oracle"

READ, WRITE, APPLY, COMMIT = "read", "write", "apply", "commit"
"""A commit is a write that is applied at once; parts that were committed together share its timestamp."""

_KINDS = {"read_ts": READ, "write_ts": WRITE, "apply_write": APPLY}


class Given(NamedTuple):
    """A timestamp that was given, asked for or finished between ``start`` and ``end``; ``end`` is ``None`` while no
    answer came."""

    start: int
    end: int | None
    timeline: str
    kind: str
    ts: int
    index: int = -1
    """The operation in its history."""

    def __str__(self) -> str:
        number = f"#{self.index} " if self.index >= 0 else ""
        return f"{number}{self.kind} {self.timeline} {self.ts} [{self.start}, {self.end}]"


class Breach(NamedTuple):
    kind: str
    text: str
    one: Given
    other: Given


def check(ops: Iterable[Op]) -> Verdict:
    """Judge the ``oracle`` operations among ``ops``."""
    mine = of(ops, NAME)
    given = [Given(op.start, op.end, op.value["timeline"], _KINDS[op.f], op.result, op.index) for op in mine if op.ok]
    found = [Anomaly(each.kind, each.text, (each.other.index, each.one.index), each.one.timeline)
             for each in breaches(given)]  # fmt: skip
    return judged(
        NAME,
        found,
        ops=len(mine),
        acknowledged=len(given),
        failed=sum(op.failed for op in mine),
        unknown=sum(op.unknown for op in mine),
        timelines=len({each.timeline for each in given}),
    )


def violations(given: Iterable[Given]) -> list[str]:
    """Every breach of I3 in words; empty if the laws hold."""
    return [breach.text for breach in breaches(given)]


def breaches(given: Iterable[Given]) -> list[Breach]:
    """Every breach of I3: at most one per operation and law, with the operation that it contradicts most."""
    timelines: dict[str, list[Given]] = {}
    for each in given:
        if each.end is not None:
            timelines.setdefault(each.timeline, []).append(each)
    return [breach for each in timelines.values() for breach in _breaches(each)]


def _breaches(given: Sequence[Given]) -> Iterator[Breach]:
    first: dict[int, Given] = {}
    for each in given:
        if each.kind == WRITE and (other := first.setdefault(each.ts, each)) is not each:
            yield Breach("doubled-timestamp", f"{each} was given to {other} too", each, other)
    by_end = sorted(given, key=lambda each: each.end)
    newest: dict[str, Given] = {}
    """The operation that ended with the largest ts, of each kind."""
    ended = 0
    for each in sorted(given, key=lambda each: each.start):
        while ended < len(by_end) and by_end[ended].end < each.start:
            other = by_end[ended]
            if other.kind not in newest or newest[other.kind].ts < other.ts:
                newest[other.kind] = other
            ended += 1
        if each.kind in (WRITE, COMMIT):
            for other in (newest.get(READ), newest.get(WRITE), newest.get(COMMIT)):
                if other is not None and other.ts >= each.ts:
                    yield Breach("write-too-low", f"{each} is not above {other}", each, other)
        if each.kind == READ:
            for other in (newest.get(APPLY), newest.get(COMMIT), newest.get(READ)):
                if other is not None and other.ts > each.ts:
                    yield Breach("stale-timestamp", f"{each} is below {other}", each, other)
