"""Topics cut below what is in files, once everybody had time to hear of that.

Promises: nothing is cut before :func:`controllers.storage.sealing.cuts` says that nobody needs it, and a grace after
that; a topic that cannot be cut is planned again, and keeps no other waiting.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from confluent_kafka import TopicPartition

from catalog_log.image import Image
from catalog_log.objects import Item, MaterializedView, Source
from controllers.storage import sealing
from journal import clients
from journal.errors import TidemarkError
from journal.names import TopicNames
from oracle.bindings import NOTHING
from oracle.state import OracleState
from oracle.views import ViewsState
from segments.fold import SegmentsState

log = logging.getLogger(__name__)

CUT_TIMEOUT_S = 10.0
CUTTING_S = 5.0
"""Of a look: after a start all partitions are cut once more, 26 ms each, and of twenty thousand that would be nine
minutes in which nothing is sealed.  (One that does not answer takes :data:`CUT_TIMEOUT_S`.)"""


PLANNED_MAX = 10
"""Cuts of a partition that wait for their grace at once: what is in files stays on its topic for a tenth longer than it
has to.  (With one, it stayed for up to twice as long.)"""


class Cuts:
    """For one thread."""

    def __init__(self, bootstrap: str, names: TopicNames, grace_s: float, clock: Callable[[], float]) -> None:
        """``grace_s``: what is in files stays on its topic for so long; ``clock`` in seconds."""
        self._bootstrap = bootstrap
        self._names = names
        self._grace_s = grace_s
        self._clock = clock
        self._planned: dict[tuple[str, int], deque[tuple[float, int]]] = {}
        """Partitions of collections' topics to be cut: when, and below which offset, :data:`PLANNED_MAX` at most."""
        self.cut: dict[tuple[str, int], int] = {}
        """Partitions that were cut by this process, and below which offset."""
        self.count = 0
        """How often it cut one."""

    def plan(self, image: Image, oracle: OracleState, views: ViewsState, segments: SegmentsState) -> None:
        """Topics that may be cut, from when on."""
        self._planned = {place: cut for place, cut in self._planned.items() if place[0] in segments.collections}
        self.cut = {place: cut for place, cut in self.cut.items() if place[0] in segments.collections}
        for name, sealed in segments.collections.items():
            item = image.item(name) if sealed.was_on_topics else None
            if item is None or is_of_the_user(item):
                continue
            if isinstance(item, MaterializedView):
                bound = views.views[name].bound if name in views.views else NOTHING
            else:
                bound = oracle.bound.get(name, NOTHING)
            found = sealing.cuts(bound, sealed, self._names.data(name), isinstance(item, MaterializedView))
            when = self._clock() + self._grace_s
            for place, below in (((name, partition), below) for partition, below in found.items()):
                planned = self._planned.get(place) or deque()
                last, upto = planned[-1] if planned else (0.0, self.cut.get(place, 0))
                if below > upto and when >= last + self._grace_s / PLANNED_MAX and len(planned) < PLANNED_MAX:
                    self._planned.setdefault(place, planned).append((when, below))

    def make(self, stopped: Callable[[], bool]) -> None:
        """Make those that are due, for :data:`CUTTING_S` at most: the rest is due at the next look."""
        until = self._clock() + CUTTING_S
        for place, planned in list(self._planned.items()):
            if stopped() or self._clock() > until:
                return
            below = 0
            while planned and planned[0][0] <= self._clock():
                _, below = planned.popleft()
            if not planned:
                del self._planned[place]
            if not below:
                continue
            name, partition = place
            told = {"collection": name, "partition": partition}
            upto = TopicPartition(self._names.data(name), partition, below)
            try:
                clients.delete_below(self._bootstrap, upto, CUT_TIMEOUT_S)
            except TidemarkError as error:  # planned again at the next look
                log.warning("a topic was not cut", extra={**told, "reason": error.message, "detail": error.detail})
                continue
            self.cut[place] = below
            self.count += 1
            log.info("cut", extra={**told, "below": below})


def is_of_the_user(item: Item) -> bool:
    """Whether its rows are on a topic that is not ours."""
    return isinstance(item, Source) and item.in_place
