"""Counters that go up by one: is each acknowledged increment there exactly once, and does nobody wait for ever?  Pure.

Promises, of operations ``increment`` (``{"ks": [k, …]}``, answered by ``{"xs": [x, …]}``: what each counter became) and
``counters`` (answered by what all of them are), where all counters began with 0:

* A read is the sum of the increments that were acknowledged before it began, and of *some* of those under way or
  unknown: each counted once (``effects`` says how exactly).
* What an increment was told has no other increment of that counter been told, is above what was told to those that had
  ended before it began, and lies between how many must and may have happened.
* Sound: an increment that failed counts nothing; an unknown one counts once or never, at any time after it began.
* Nobody starves: no logical process is refused for conflicts ``STARVED`` times one after the other.  The most that
  anybody was is in ``counts["refused_in_a_row"]``, and how seldom anybody came through in ``counts["least"]``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from judge.checkers.effects import Effect, Explainer, Reading
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "counters"

CONFLICT = "40001"

STARVED = 12
"""Refusals in a row.  A statement by itself is made sixteen times before it is refused, which befalls three of a
hundred under the worst load known: twelve in a row are no bad luck.  A block is refused whenever another was faster,
beside three others three times of four: twelve in a row are 3 %, so blocks are not counted."""

_SCOPE = "counters"


def check(ops: Iterable[Op], workload: str = "counters") -> Verdict:
    """Judge the ``increment`` and ``counters`` operations of ``workload``.

    Unknown where no increment was acknowledged or no read answered."""
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    increments = [op for op in ops if op.f == "increment"]
    reads = [op for op in ops if op.f == "counters" and op.ok]
    explainer = Explainer(
        [Effect(op, {_SCOPE: _added(op)}) for op in increments],
        [Reading(op, _SCOPE, {str(k): x for k, x in op.result.items()}) for op in reads],
    )
    anomalies = [*_read(explainer), *_told(increments), *_starved(ops)]
    refused, per_process = _refusals(increments), _acknowledged(increments)
    counts = dict(
        ops=len(reads) + len(increments),
        acknowledged=sum(op.ok for op in increments),
        unknown=sum(op.unknown for op in increments),
        settled=sum(op.unknown and op.index in explainer.settled for op in increments),
        reads=len(reads),
        loose=explainer.loose,
        refused_in_a_row=max(refused.values(), default=0),
        least=min(per_process.values(), default=0),
    )
    if not anomalies and not reads:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not counts["acknowledged"]:
        return undecided(CHECKER, "no increment was acknowledged", **counts)
    return judged(CHECKER, anomalies, **counts)


def _added(op: Op) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for k in op.value["ks"]:
        found[str(k)] += 1
    return dict(found)


def _read(explainer: Explainer) -> Iterator[Anomaly]:
    for wrong in explainer.check():
        read, off = wrong.state.reading.op, wrong.off
        shown = ", ".join(f"{k} by {by:+}" for k, by in sorted(off.items(), key=str))
        text = (
            f"op {read.index} read counters that the increments acknowledged before it do not make (off: {shown}), and "
            f"no choice of the {len(wrong.state.possible)} that were under way or unknown explains that"
        )
        guessed = explainer.guess(wrong)
        kind, ops = "wrong-count", (read.index,)
        if guessed is not None:
            kind, op = guessed
            ops = (op.index, read.index)
            how = {"lost-write": "had not happened", "double-apply": "had happened twice",
                   "dirty-read": "had not failed", "torn-write": "had happened by half"}[kind]  # fmt: skip
            text += f"; it is as if op {op.index} {how}"
        yield Anomaly(kind, text, ops, str(min(off, default="", key=str)))


def _told(increments: Sequence[Op]) -> Iterator[Anomaly]:
    """What increments were told of each counter, held against one another."""
    alive: dict[str, list[Op]] = defaultdict(list)
    for op in increments:
        if not op.failed:
            for k in _added(op):
                alive[k].append(op)
    for k, ops in sorted(alive.items()):
        yield from _told_of(k, ops)


def _told_of(k: str, ops: Sequence[Op]) -> Iterator[Anomaly]:
    begun = [op.start for op in ops]
    acknowledged = sorted((op for op in ops if op.ok), key=lambda op: op.end or 0)
    ends = [op.end or 0 for op in acknowledged]
    highest: list[Op] = []  # For each of ``acknowledged``, who was told most until then.
    for op in acknowledged:
        highest.append(op if not highest or _x(op, k) > _x(highest[-1], k) else highest[-1])
    by_value: dict[int, Op] = {}
    for op in (op for op in ops if op.ok):
        x = _x(op, k)
        other = by_value.setdefault(x, op)
        if other is not op:
            yield Anomaly(
                "lost-update", f"op {other.index} and op {op.index} were both told that they made counter {k} {x}",
                (other.index, op.index), k,
            )  # fmt: skip
        before = bisect_left(ends, op.start)  # Those that had ended.
        if before and _x(highest[before - 1], k) >= x:
            late = highest[before - 1]
            yield Anomaly(
                "went-back",
                f"op {late.index} made counter {k} {_x(late, k)} and had ended before op {op.index} began, which made "
                f"it {x}",
                (late.index, op.index), k,
            )  # fmt: skip
        least, most = before + 1, bisect_right(begun, op.end or 0)
        if x < least:
            text = f"op {op.index} made counter {k} {x}, though {before} increments were acknowledged before it began"
            yield Anomaly("lost-write", text, (op.index,), k)
        elif x > most:
            text = f"op {op.index} made counter {k} {x}, though only {most} increments had begun when it ended"
            yield Anomaly("double-apply", text, (op.index,), k)


def _x(op: Op, k: str) -> int:
    """What ``op`` made of counter ``k``; at last, where it added to it several times."""
    return max(x for of_, x in zip(op.value["ks"], op.result["xs"], strict=True) if str(of_) == k)


def _alone(op: Op) -> bool:
    """Whether it is a statement by itself, which is made anew where it met another."""
    return len(op.value["ks"]) == 1


def _refusals(increments: Iterable[Op]) -> dict[int, int]:
    """By logical process, the most conflicts one after the other that its statements by themselves ended with."""
    most: dict[int, int] = {}
    now: dict[int, int] = defaultdict(int)
    for op in increments:
        if _alone(op):
            refused = op.failed and op.error is not None and op.error[0] == CONFLICT
            now[op.process] = now[op.process] + 1 if refused else 0
            most[op.process] = max(most.get(op.process, 0), now[op.process])
    return most


def _acknowledged(increments: Iterable[Op]) -> dict[int, int]:
    """Of each logical process that ended no other way, in percent, how many of its increments were acknowledged."""
    done: dict[int, list[Any]] = defaultdict(list)
    for op in increments:
        done[op.process].append(op.ok)
    return {process: round(100 * sum(oks) / len(oks)) for process, oks in done.items() if len(oks) >= STARVED}


def _starved(ops: Sequence[Op]) -> Iterator[Anomaly]:
    increments = [op for op in ops if op.f == "increment"]
    for process, refused in sorted(_refusals(increments).items()):
        if refused >= STARVED:
            mine = tuple(op.index for op in increments if op.process == process and op.failed)
            text = f"process {process} was refused {refused} times one after the other, while others came through"
            yield Anomaly("starved", text, mine[-STARVED:])
