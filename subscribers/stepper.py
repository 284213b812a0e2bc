"""From the raw catalog topic to commands, one admitted proposal at a time: the pure part of a subscriber.

Promises (I6): what is sent depends on the log and on where the controller's command log stands, not on batches,
restarts or timing.  A proposal that lost is never seen here at all: only what the catalog's own fold admits is
translated.  Below the controller's frontier nothing is sent, since it was sent before.

A controller that knows nothing yet (frontier 0) gets the delta from the empty catalog to the image at ``begin_offset``
and goes on from there step by step: objects that were dropped before it began are never built.
"""

from __future__ import annotations

from catalog_log.delta import between, from_empty
from catalog_log.fold import VerdictKind, admit
from catalog_log.image import EMPTY, Image
from controllers.commands import Command
from journal.api import Entry
from journal.errors import FatalLog
from journal.timestamps import CatalogTs
from subscribers.translate import translate


class Stepper:
    """Feed it every entry of the catalog topic from offset 0 on."""

    def __init__(self, controller: str, frontier: CatalogTs, begin_offset: int = 0) -> None:
        self.controller = controller
        self.frontier = frontier
        """What the commands given so far (or the controller's log before us) have closed."""
        self.image: Image = EMPTY
        self.next_offset = 0
        self._begin_offset = begin_offset
        self._new = frontier == 0

    def feed(self, entry: Entry) -> list[Command]:
        """The commands that follow from ``entry``: a whole catalog timestamp with its advance, or nothing.

        Raises ``FatalLog`` where the topic has a hole (it was cut) or the controller knows more than the catalog does.
        """
        if entry.offset != self.next_offset:
            raise FatalLog("the catalog topic has a hole", detail=f"expected {self.next_offset}, got {entry.offset}")
        before = self.image
        self.image, verdict = admit(before, entry)
        self.next_offset += 1
        if self._new:
            return self._begin() if self.next_offset >= self._begin_offset else []
        if verdict.kind is not VerdictKind.ACCEPTED or self.image.upper <= self.frontier:
            return []
        if before.upper != self.frontier:
            raise FatalLog(
                f"the commands of {self.controller} do not belong to this catalog",
                detail=f"closed at {self.frontier}, but the catalog went from {before.upper} to {self.image.upper}",
            )
        self.frontier = CatalogTs(self.image.upper)
        return translate(between(before, self.image), self.controller)

    def _begin(self) -> list[Command]:
        if not self.image.upper:
            return []
        self._new = False
        self.frontier = CatalogTs(self.image.upper)
        return translate(from_empty(self.image), self.controller)
