"""Which incarnations of which writers were given up.  Pure.

A client whose append got no answer opens a new producer under the next incarnation and writes a fence.  After
folding its own fence it knows the outcome of all it sent before: what it has seen happened, and the rest never will,
because every reader refuses it from there on.
"""

from __future__ import annotations

from typing import NamedTuple

import immutables

FENCES_MAX = 4096
"""Writers remembered.  Only a writer that lost an answer is in here (a rare thing), and only its records that are
still under way matter: librdkafka gives those up within minutes, long before 2,048 other clients lost an answer too."""


class Fences(NamedTuple):
    """``below[writer] = (incarnation, order)``: smaller incarnations are shut out; ``order`` says who came first."""

    below: immutables.Map = immutables.Map()
    count: int = 0

    def shuts_out(self, writer: str, incarnation: int) -> bool:
        """Whether a record of that incarnation counts for nothing."""
        fence = self.below.get(writer)
        return fence is not None and incarnation < fence[0]

    def fence(self, writer: str, incarnation: int) -> Fences:
        """Shut out incarnations of ``writer`` below ``incarnation``; at :data:`FENCES_MAX` forget the older half."""
        known = self.below.get(writer, (0, 0))[0]
        below = self.below.set(writer, (max(known, incarnation), self.count))
        if len(below) > FENCES_MAX:
            newest_first = sorted(below.items(), key=lambda item: item[1][1], reverse=True)
            below = immutables.Map(newest_first[: FENCES_MAX // 2])
        return Fences(below, self.count + 1)
