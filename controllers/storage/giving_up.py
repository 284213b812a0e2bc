"""Offsets that nobody binds are given up, so that topics can be cut behind them (:mod:`oracle.unbound`).

Promises: a gap is given up once it has been one for a while (:data:`PATIENCE_S`) that nobody claimed anew; no reader
can tell, and who comes later with a commit of it is refused.  Of collections that have rows in files alone: of others
nothing would be cut.

The time is this process's own, as claims are renewed by that of theirs: where the log's time jumps ahead, since a
machine slept or its clock was set, all claims lapse at once, and who renews them needs a minute.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""From when a gap is seen, or claimed anew, until it is given up.  A statement has bound what it wrote within half a
minute or never will; whoever takes longer has claimed it by the first minute."""


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
        self._claims: dict[object, int] = {}
        """Until when each claim held at the last look."""
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
        claimed = self._claimed_anew(oracle)
        self._since = {gap: now if _meets(gap, claimed) else self._since.get(gap, now) for gap in found}
        due = list(islice((gap for gap in found if self._since[gap] + self._patience_s <= now), OFFSETS_MAX))
        asked = [self._oracle.give_up(self._offsets(gap)) for gap in due]
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

    def _claimed_anew(self, oracle: OracleState) -> dict[tuple[str, int], list[Run]]:
        """What was claimed since the last look, by collection and partition."""
        before, self._claims = self._claims, {each.of: each.until for each in oracle.claims}
        found: dict[tuple[str, int], list[Run]] = {}
        for each in oracle.claims:
            if before.get(each.of) != each.until:
                found.setdefault((each.collection, each.run.partition), []).append(each.run)
        return found

    def _gaps(self, image: Image, oracle: OracleState, segments: SegmentsState) -> Iterator[Gap]:
        for name, sealed in segments.collections.items():
            if not sealed.was_on_topics:
                continue
            item, bound = image.item(name), oracle.bound.get(name)
            if bound is None or item is None or is_of_the_user(item) or isinstance(item, MaterializedView):
                continue
            topic = self._names.data(name)
            for of, partition in bound.coverage:
                if of == topic:
                    yield from (Gap(name, partition, *each) for each in gaps(bound, (of, partition)))

    def _offsets(self, gap: Gap) -> Offsets:
        topic = self._names.data(gap.collection)
        return Offsets(gap.collection, Run(topic, gap.partition, gap.lower, gap.upper))


def _meets(gap: Gap, claimed: Mapping[tuple[str, int], Sequence[Run]]) -> bool:
    runs = claimed.get((gap.collection, gap.partition), ())
    return any(run.lower < gap.upper and gap.lower < run.upper for run in runs)
