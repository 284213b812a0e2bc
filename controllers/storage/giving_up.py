"""Offsets that nobody binds are given up, so that topics can be cut behind them (:mod:`oracle.unbound`).

Promises: a gap is given up once it has been one for a while (:data:`PATIENCE_S`), unless who wrote it claims it; no
reader can tell, and who comes later with a commit of it is refused.  Of collections that have rows in files alone: of
others nothing would be cut.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from catalog_log.image import Image
from catalog_log.objects import MaterializedView
from catalog_log.records import GIVING_UP_FROM
from collection.binding import Run
from controllers.storage.cutting import is_of_the_user
from journal.errors import Conflict, Rejected
from journal.names import TopicNames
from oracle.client import Oracle
from oracle.model import OFFSETS_MAX, Offsets
from oracle.records import GIVING_UP
from oracle.state import OracleState
from oracle.unbound import CLAIM_MS, gaps
from segments.fold import SegmentsState

log = logging.getLogger(__name__)

PATIENCE_S = CLAIM_MS / 1000
"""From when a gap is seen until it is given up, and until it is asked for again where it is claimed.  A statement has
bound what it wrote within half a minute or never will; whoever takes longer has claimed it by the first minute."""


class Gap(NamedTuple):
    """Offsets of a collection's topic that lie before others which are bound."""

    collection: str
    partition: int
    lower: int
    upper: int


class GivingUp:
    """For one thread."""

    def __init__(self, names: TopicNames, oracle: Oracle, patience_s: float, clock: Callable[[], float]) -> None:
        self._names = names
        self._oracle = oracle
        self._patience_s = patience_s
        self._clock = clock
        self._since: dict[Gap, float] = {}
        """From when on each gap waits; as many as there are."""
        self.count = 0
        """Gaps that were given up by this process."""

    def look(self, image: Image, oracle: OracleState, segments: SegmentsState) -> None:
        """Give up what is due.  Raises ``Unavailable`` or ``Indeterminate``: then it is still there at the next look,
        or is not."""
        if image.genesis is None or image.genesis.format_version < GIVING_UP_FROM:
            return
        now = self._clock()
        found = list(self._gaps(image, oracle, segments))
        if found and oracle.record_version < GIVING_UP:
            self._oracle.raise_format(GIVING_UP).result()
            self._since = {}  # nobody could claim anything before
        self._since = {gap: self._since.get(gap, now) for gap in found}
        due = list(islice((gap for gap in found if self._since[gap] + self._patience_s <= now), OFFSETS_MAX))
        asked = [self._oracle.give_up(self._unbound(gap)) for gap in due]
        done: Counter[str] = Counter()
        for gap, answer in zip(due, asked, strict=True):
            try:
                answer.result()
            except (Conflict, Rejected):  # it is claimed, or was bound meanwhile
                self._since[gap] = now
            else:
                done[gap.collection] += 1
        self.count += done.total()
        for name, gaps_in in done.items():
            log.info("gave up what nobody bound", extra={"collection": name, "gaps": gaps_in})

    def _gaps(self, image: Image, oracle: OracleState, segments: SegmentsState) -> Iterator[Gap]:
        for name in segments.collections:
            item, bound = image.item(name), oracle.bound.get(name)
            if bound is None or item is None or is_of_the_user(item) or isinstance(item, MaterializedView):
                continue
            topic = self._names.data(name)
            for of, partition in bound.coverage:
                if of == topic:
                    yield from (Gap(name, partition, *each) for each in gaps(bound, (of, partition)))

    def _unbound(self, gap: Gap) -> Offsets:
        topic = self._names.data(gap.collection)
        return Offsets(gap.collection, Run(topic, gap.partition, gap.lower, gap.upper))
