"""Which reads are owed to writes whose outcome nobody knows, and when they are to be made.  Pure.

Promises: after every healing each workload looks once, and for each unknown outcome it looks at that very write: at
once on a healthy cluster, else when it is healed.  A look is owed until it was *begun after* it came to be owed and
was answered; one that only waits for an answer when the next healing comes is owed again.  After an answer the write is
looked at again each second, ten times: a statement whose client gave up may still be carried out, and *when* it is must
be seen too.  So how soon an unknown outcome is settled depends on the product alone, and not on when a random reader
happens to come by.

Turned down: to let random readers come by often enough.  They are queries on Spark, which on two cores take ten
seconds among others of their kind; and half of the time between two faults was over before one was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judge.workloads.api import Invocation

AGAIN_S = 0.25
"""Between two tries of a look that was not answered."""

TRIES_MAX = 40
"""Ten seconds of tries, after which an unknown outcome is settled too late anyway; the next healing owes another."""

OWED_MAX = 20
"""Looks of one workload.  A fault leaves some ten unknown outcomes behind; of more, the newest are looked at."""

FOLLOW_S, FOLLOWS_MAX = 1.0, 10
"""How often an answered look is repeated, and how long: as long as an unknown outcome may take to settle."""


@dataclass(eq=False)
class Owed:
    """One look that is owed; told from another of the same kind by what it is, not by what it says."""

    read: Invocation
    tries_left: int = TRIES_MAX
    follows_left: int = 0
    """How many looks at the same are owed after this one was answered."""
    at_s: float = 0.0
    """When it is to be made at the earliest."""


class Debts:
    """What one workload owes, in one process."""

    def __init__(self, settling: Callable[[Invocation | None], Sequence[Invocation]]) -> None:
        """``settling`` is :meth:`judge.workloads.api.Workload.settling`."""
        self._settling = settling
        self._healthy = True
        self._owed: list[Owed] = []

    def unknown(self, write: Invocation) -> None:
        """Nobody knows whether ``write`` happened."""
        self._owe(write)

    def hurt(self) -> None:
        """A fault begins: whoever looked now would only wait."""
        self._healthy = False

    def healed(self) -> None:
        """No fault is in force any more.  Writes that began in it may still become unknown, so it is looked anyway."""
        self._healthy = True
        for each in self._owed:
            self._again(each.read, FOLLOWS_MAX if each.follows_left or each.at_s else 0)
        self._owe(None)

    def due(self, now_s: float) -> Owed | None:
        """What to look at now, oldest debt first."""
        return next((each for each in self._owed if each.at_s <= now_s), None) if self._healthy else None

    def next_s(self) -> float | None:
        """When something is due at the earliest, unless anything else happens."""
        return min((each.at_s for each in self._owed), default=None) if self._healthy else None

    def told(self, owed: Owed, answered: bool, now_s: float) -> None:
        """``owed``, which was due, was looked at.  One that was not answered is the last of those owed from now on."""
        if owed not in self._owed:
            return  # it has come to be owed again meanwhile, and this answer says nothing of that
        self._owed.remove(owed)
        if answered:
            if owed.follows_left:
                self._owed.append(Owed(owed.read, TRIES_MAX, owed.follows_left - 1, now_s + FOLLOW_S))
            return
        owed.tries_left -= 1
        if owed.tries_left:
            self._owed.append(owed)

    def _owe(self, write: Invocation | None) -> None:
        for read in self._settling(write):
            # A look that may itself write (a request that is sent again under its id) settles it by its answer.
            self._again(read, FOLLOWS_MAX if write is not None and not self._settling(read) else 0)

    def _again(self, read: Invocation, follows: int) -> None:
        others = [each for each in self._owed if each.read != read]
        # Where there are too many, one that was answered already is the first to go.
        while len(others) >= OWED_MAX:
            others.remove(next((each for each in others if each.at_s), others[0]))
        self._owed = [*others, Owed(read, TRIES_MAX, follows)]
