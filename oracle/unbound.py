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

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from collection.binding import Run
from oracle.bindings import Bound, Partition, cover, refused
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


def given_up(bound: Bound, claims: Iterable[Claim], unbound: Offsets, now: int) -> Bound | tuple[Reason, str]:
    """``bound`` without a hope for ``unbound``, or why it is not given up.

    Only what lies before something bound: where bindings end (:meth:`~oracle.bindings.BoundRuns.end`) stays, since that
    is where a source goes on.
    """
    run = unbound.run
    told = f"{run.topic}/{run.partition} [{run.lower}, {run.upper})"
    intervals = bound.coverage.get((run.topic, run.partition), ())
    if not intervals or run.upper > intervals[-1][1]:
        return Reason.NOT_THERE, f"{told} is not before what is bound"
    if found := refused(bound.coverage, run, contiguous=False):
        return found
    for each in claims:
        meets = each.collection == unbound.collection and (each.run.topic, each.run.partition) == run[:2]
        if meets and each.until >= now and each.run.lower < run.upper and run.lower < each.run.upper:
            return Reason.CLAIMED, f"{told} is claimed until {each.until}"
    return bound._replace(coverage=cover(bound.coverage, run))


def gaps(bound: Bound, partition: Partition) -> Iterator[tuple[int, int]]:
    """The offsets before the last that is bound which are neither bound nor given up, ascending."""
    start = 0
    for lower, upper in bound.coverage.get(partition, ()):
        if lower > start:
            yield start, lower
        start = upper
