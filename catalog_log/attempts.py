"""The proposals of one process that wait for their verdict, and what settles them (I2).  Pure but for futures.

The bad story: a proposal is sent, the answer is lost, the writer takes the silence for a failure, plans again on a
newer upper, succeeds, and then the first one lands too.  It cannot happen here: whatever the silence, only the fold
answers.  As soon as the folded upper has passed ``expected_upper``, the proposal admitted *there* either is ours or
ours never will be.  Until then the same bytes may be sent again as often as one likes: at most one copy is admitted.
Turned down: settling with an empty proposal of another id, which wins nothing and turns a success into a conflict.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field

from catalog_log.fold import Verdict, VerdictKind
from catalog_log.image import Image
from catalog_log.records import Proposal
from journal.errors import Conflict, Rejected


@dataclass(frozen=True)
class Admitted:
    """Our proposal is in the catalog: it took effect at ``catalog_ts``; ``image`` is the catalog right after it."""

    catalog_ts: int
    upper: int
    image: Image


@dataclass(eq=False)
class Attempt:
    """One proposal under way."""

    proposal: Proposal
    value: bytes
    deadline: float
    """Monotonic seconds after which the caller is told ``Indeterminate`` and nothing is sent again."""
    done: Future[Admitted] = field(default_factory=Future)
    sent: int = 0
    """How often the bytes were handed to the transport."""


class Attempts:
    """Waiting attempts by their expected upper.  Any thread."""

    def __init__(self) -> None:
        self._by_upper: dict[int, list[Attempt]] = defaultdict(list)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._by_upper.values()))

    def add(self, attempt: Attempt) -> None:
        with self._lock:
            self._by_upper[attempt.proposal.expected_upper].append(attempt)

    def take(self, attempt: Attempt) -> bool:
        """Remove ``attempt``; whether it was still waiting (then the caller must finish it)."""
        expected = attempt.proposal.expected_upper
        with self._lock:
            waiting = self._by_upper.get(expected, [])
            if attempt not in waiting:
                return False
            waiting.remove(attempt)
            if not waiting:
                del self._by_upper[expected]
            return True

    def waiting(self, attempt: Attempt) -> bool:
        with self._lock:
            return attempt in self._by_upper.get(attempt.proposal.expected_upper, ())

    def late(self, now: float) -> list[Attempt]:
        """Those whose deadline has passed."""
        with self._lock:
            return [a for attempts in self._by_upper.values() for a in attempts if a.deadline <= now]

    def take_all(self) -> list[Attempt]:
        with self._lock:
            everything = [a for attempts in self._by_upper.values() for a in attempts]
            self._by_upper.clear()
            return everything

    def settle(self, verdict: Verdict, image: Image) -> None:
        """Finish what ``verdict`` decides; ``image`` is the catalog after it."""
        if verdict.kind is VerdictKind.ACCEPTED:
            with self._lock:
                attempts = self._by_upper.pop(verdict.expected_upper, ())
            for attempt in attempts:
                if attempt.proposal.proposal_id == verdict.proposal_id:
                    attempt.done.set_result(Admitted(image.upper - 1, image.upper, image))
                else:
                    attempt.done.set_exception(conflict(attempt.proposal, image.upper))
        elif verdict.kind is VerdictKind.MALFORMED and verdict.proposal_id:
            with self._lock:
                attempts = list(self._by_upper.get(verdict.expected_upper, ()))
            for attempt in attempts:
                if attempt.proposal.proposal_id == verdict.proposal_id and self.take(attempt):
                    attempt.done.set_exception(malformed(verdict.reason))


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
