"""What was bound below where a topic is cut becomes one run, however many it was (:func:`oracle.bindings.retire`).

Runs that have a gap between them which was given up never become one by themselves, and everybody who reads looks at
each.  Promises: that the log of segments says of all those offsets that they are in files, of gaps too, before the
oracle's says so.  A reader that knows the second and not the first finds the topic cut, as whoever is late, waits for
the log of segments to tell more, and begins anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from collection.binding import BoundRun, Run
from journal.errors import Conflict, Rejected
from journal.names import TopicNames
from oracle.bindings import Bound
from oracle.client import Oracle
from oracle.model import Offsets
from oracle.records import GIVING_UP
from oracle.state import OracleState
from segments.fold import SegmentsState
from segments.model import RUNS_MAX, Exchange
from segments.unsealed import unsealed

log = logging.getLogger(__name__)

RUNS_LEFT = 16
"""Of one partition, below where it is cut: so many may stay.  Each costs a reader a microsecond, and a record costs
everybody a hundred."""


class Retiring:
    """For one thread.  ``exchange`` has the log of segments say something, and raises what keeps it from it."""

    def __init__(self, names: TopicNames, oracle: Oracle, exchange: Callable[[Exchange], None]) -> None:
        self._names = names
        self._oracle = oracle
        self._exchange = exchange
        self.count = 0
        """Runs that became one with others by this process."""

    def look(self, cut: Mapping[tuple[str, int], int], oracle: OracleState, segments: SegmentsState) -> None:
        """Retire what is below where partitions were ``cut``.  Raises ``Unavailable`` or ``Indeterminate``."""
        if oracle.record_version < GIVING_UP:
            return
        for (name, partition), below in cut.items():
            bound = oracle.bound.get(name)
            if bound is None or len(bound.base) <= RUNS_LEFT:
                continue
            topic = self._names.data(name)
            runs = _below(bound, topic, partition, below)
            if len(runs) <= RUNS_LEFT:
                continue
            sealed = segments.sealed(name)
            if next(unsealed(runs, sealed), None) is not None:
                continue  # this process has not heard of what another one sealed before it cut
            whole = Run(topic, partition, runs[0].run.lower, runs[-1].run.upper)
            between = [each.run for each in unsealed((BoundRun(0, whole),), sealed)]
            try:
                for at in range(0, len(between), RUNS_MAX):
                    self._exchange(Exchange(name, runs=tuple(between[at : at + RUNS_MAX])))
                self._oracle.retire(Offsets(name, whole)).result()
            except (Conflict, Rejected) as error:  # another controller was first, or it was dropped
                log.info("runs stay for a while", extra={"collection": name, "reason": error.detail})
                continue
            self.count += len(runs)
            log.info("retired", extra={"collection": name, "partition": partition, "runs": len(runs),
                                       "below": whole.upper})  # fmt: skip


def _below(bound: Bound, topic: str, partition: int, below: int) -> Sequence[BoundRun]:
    """The runs that end at or before ``below``, in order."""
    return [each for each in bound.base if each.run[:2] == (topic, partition) and each.run.upper <= below]
