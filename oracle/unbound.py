"""Offsets of collections' topics that no commit has bound: claimed by who still is to, or given up for ever.  Pure.

A writer writes rows first and binds them later, and one that dies in between, or whose commit is refused, leaves a gap
between what others bound.  A topic can be cut at its beginning only, so a gap of which nobody knows whether it will be
bound keeps all that lies behind it, for ever.  So such offsets are given up once they have been a gap for a while: from
then on a commit of them is refused, as of any that are bound.

Whoever takes longer than that (a long COPY, or a block that is open beside one) claims its offsets, again and again; a
claim holds for :data:`CLAIM_MS` by the log's own time, so that one of a process that died lapses by itself.  No row
hangs on claims or on anybody's clock: who claimed nothing and comes too late is refused, and that is all.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from collection.binding import Run
from oracle.bindings import Bound, Interval, Partition, met, overlap
from oracle.errors import Reason
from oracle.model import Offsets

CLAIM_MS = 300_000
"""How long a claim holds: five times as long as it takes until it is renewed (``adapter.execute.claims``), so that four
may be lost."""

CLAIMS_MAX = 10_000
"""That are remembered, of all collections: each COPY of more than a minute has one for each partition it wrote to.
Where there are more, the oldest count no longer."""


class Claim(NamedTuple):
    """``run`` of ``collection`` is not given up before ``table`` has passed ``until``; ``run.attempt`` says by whom."""

    collection: str
    run: Run
    until: int

    @property
    def of(self) -> tuple[str, str, int, str]:
        """What a later claim of the same renews."""
        return self.collection, self.run.topic, self.run.partition, self.run.attempt


def claimed(claims: tuple[Claim, ...], asked: Iterable[Offsets], now: int) -> tuple[Claim, ...]:
    """``claims`` with those of ``asked`` made or renewed at ``now``, and without those that lapsed."""
    new = {claim.of: claim for claim in (Claim(*each, now + CLAIM_MS) for each in asked)}
    stay = (each for each in claims if each.until >= now and each.of not in new)
    return (*stay, *new.values())[-CLAIMS_MAX:]


def given_up(
    bound: Bound, claims: Iterable[Claim], partition: Partition, asked: Sequence[Run], now: int
) -> tuple[Bound, list[tuple[Reason, str] | None]]:
    """``bound`` without a hope for those of ``asked``, which are of ``partition``, that can be given up; and why each
    of the others cannot.  ``claims`` are of the collection.

    Only what lies before something bound: where bindings end (:meth:`~oracle.bindings.BoundRuns.end`) stays, since that
    is where a source goes on.  Costs what is there and what is asked for, not one times the other: there may be a
    hundred thousand gaps, and everybody who folds waits.
    """
    intervals = bound.coverage.get(partition, ())
    held = _merged([each.run[2:4] for each in claims if each.run[:2] == partition and each.until >= now])
    taken: list[Interval] = []
    whys: list[tuple[Reason, str] | None] = []
    for run in asked:
        told = f"{run.topic}/{run.partition} [{run.lower}, {run.upper})"
        why = None
        if not intervals or run.upper > intervals[-1][1]:
            why = Reason.NOT_THERE, f"{told} is not before what is bound"
        elif found := met(intervals, run) or met(taken, run):
            why = Reason.OVERLAP, overlap(run, found)
        elif met(held, run):
            why = Reason.CLAIMED, f"{told} is claimed"
        else:
            insort(taken, (run.lower, run.upper))
        whys.append(why)
    if not taken:
        return bound, whys
    coverage = bound.coverage.set(partition, tuple(_merged([*intervals, *taken])))
    return bound._replace(coverage=coverage), whys


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """They as disjoint ascending intervals that do not touch."""
    found: list[Interval] = []
    for lower, upper in sorted(intervals):
        if found and lower <= found[-1][1]:
            found[-1] = found[-1][0], max(upper, found[-1][1])
        else:
            found.append((lower, upper))
    return found


def gaps(bound: Bound, partition: Partition) -> Iterator[tuple[int, int]]:
    """The offsets before the last that is bound which are neither bound nor given up, ascending."""
    start = 0
    for lower, upper in bound.coverage.get(partition, ()):
        if lower > start:
            yield start, lower
        start = upper
