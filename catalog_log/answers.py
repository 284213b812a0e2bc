"""What becomes of a proposal, and what its writer is answered (I2).  Pure.

The bad story: a proposal is sent, the answer is lost, the writer takes the silence for a failure, plans again on a
newer upper, succeeds, and then the first one lands too.  It cannot happen here: whatever the silence, only the fold
answers.  As soon as the folded upper has passed ``expected_upper``, the proposal admitted *there* either is ours or
ours never will be.  Until then the same bytes may be sent again as often as one likes: at most one copy is admitted.
So :data:`POLICY` is :class:`~journal.settling.SameAgain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from catalog_log.fold import Verdict, VerdictKind
from catalog_log.image import Image
from catalog_log.records import Proposal
from journal.errors import Conflict, Rejected, TidemarkError
from journal.sender import LaneSpec
from journal.settling import Flight, SameAgain

UNDER_WAY_MAX = 1_000
"""Proposals of one process in flight; more of them wait.  One is admitted at an upper, and DDL of one adapter shares a
proposal, so there are rarely two."""


@dataclass(frozen=True)
class Admitted:
    """Our proposal is in the catalog: it took effect at ``catalog_ts``; ``image`` is the catalog right after it."""

    catalog_ts: int
    upper: int
    image: Image


class Step(NamedTuple):
    """One folded record: its verdict and the image right after it."""

    verdict: Verdict
    image: Image


class Attempt(NamedTuple):
    """A proposal and its bytes."""

    proposal: Proposal
    value: bytes


def answer(step: Step, attempts: Sequence[Attempt]) -> list[Admitted | TidemarkError]:
    """To each of ``attempts``, which ``step`` decides."""
    return [_answer(step, attempt.proposal) for attempt in attempts]


def _answer(step: Step, proposal: Proposal) -> Admitted | TidemarkError:
    verdict, image = step
    if verdict.proposal_id == proposal.proposal_id:
        if verdict.kind is VerdictKind.ACCEPTED:
            return Admitted(image.upper - 1, image.upper, image)
        if verdict.kind is VerdictKind.MALFORMED:
            return malformed(verdict.reason)
    return conflict(proposal, image.upper)


def _decided(step: Step, flights: Iterable[Flight]) -> list[Flight]:
    verdict, image = step
    return [
        f for f in flights
        if image.upper > f.payload.proposal.expected_upper or f.payload.proposal.proposal_id == verdict.proposal_id
    ]  # fmt: skip


def _about(attempt: Attempt) -> str:
    return f"proposal {attempt.proposal.proposal_id}, expected upper {attempt.proposal.expected_upper}"


LANE = LaneSpec("proposal", items_max=1, flights_max=UNDER_WAY_MAX, about=_about)
"""Each is a record of its own, and sent at once: to wait for another one would only mean to lose against it."""

POLICY = SameAgain(_decided)


def conflict(proposal: Proposal, actual_upper: int) -> Conflict:
    """Somebody else was first."""
    error = Conflict(
        "the catalog was changed concurrently",
        detail=f"expected upper {proposal.expected_upper}, actual upper {actual_upper}, "
        f"proposal {proposal.proposal_id}",
        hint="plan again on the new image",
    )
    error.actual_upper = actual_upper
    return error


def malformed(reason: str | None) -> Rejected:
    """The fold refuses, or would refuse, the content."""
    return Rejected(f"malformed proposal: {reason}", sqlstate="22023")
