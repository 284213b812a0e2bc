"""The oracle's state: what every process that folded the same prefix of the topic agrees on.  Pure and immutable."""

from __future__ import annotations

from typing import NamedTuple

import immutables

from journal.fences import Fences
from journal.timestamps import CATALOG, TABLE, CatalogTs, DataTs
from oracle.bindings import NOTHING, Bound, BoundRuns, carried_for_good
from oracle.timeline import Timeline
from oracle.unbound import Claim

HELD_BYTES_MAX = 32 << 20
"""Rows that the log may carry, of all collections: everybody who folds it holds them, and every image has them.  More
is refused; adapters stop at half of it (``adapter.execute.placing``), so that this is met by none of ours."""

HELD_RUN_BYTES = 200
"""What a run costs beside its rows, which counts too: else there could be any number of nearly empty batches."""


def held_bytes(value: bytes) -> int:
    """What an inline batch counts for; 0 for what is none."""
    return len(value) + HELD_RUN_BYTES if value else 0


def held_for_good(bound: Bound) -> int:
    """What the log carries of a collection at or below ``since``, in bytes."""
    return sum(held_bytes(each.value) for each in carried_for_good(bound)) if bound.base else 0


class Stats(NamedTuple):
    """Counts since the log began: for the ``status`` and ``log`` commands, and equal in every reader like all else."""

    records: int = 0
    malformed: int = 0
    fenced: int = 0
    parts_admitted: int = 0
    parts_refused: int = 0


class OracleState(NamedTuple):
    """A fold of the oracle topic up to (not including) ``next_offset``."""

    next_offset: int = 0
    catalog_upper: CatalogTs = CatalogTs(0)
    """The newest catalog upper that is in force: whoever reads after this must know the catalog up to it."""
    since: DataTs = DataTs(0)
    """Snapshots below it are no longer told apart."""
    timelines: immutables.Map[str, Timeline] = immutables.Map()
    bound: immutables.Map[str, Bound] = immutables.Map()
    kept: immutables.Map[str, int] = immutables.Map()
    """Collections of which timestamps below ``since`` are told apart, and from where on."""
    claims: tuple[Claim, ...] = ()
    """Offsets that are not to be given up yet, in the order in which they were claimed."""
    hot: immutables.Map[str, None] = immutables.Map()
    """Collections with runs that were not merged yet: what the next COMPACT has to look at."""
    managers: immutables.Map = immutables.Map()
    held: immutables.Map[str, int] = immutables.Map()
    """Collections whose rows the log carries itself, and how many bytes it carries of each (:data:`HELD_BYTES_MAX`)."""
    held_bytes: int = 0
    """Of all of them."""
    held_for_good: int = 0
    """Of these, bytes at or below ``since`` (of the collection): such rows are told apart no more."""
    record_version: int = 1
    """The newest version that records may have: moved on by a record, so that everybody moves on at the same place."""
    fences: Fences = Fences()
    stats: Stats = Stats()

    @property
    def last_ts(self) -> DataTs:
        """The newest complete timestamp of ``table``: the ``as_of`` of a strict read."""
        return DataTs(self.timelines.get(TABLE, Timeline()).read_ts)

    def read_ts(self, timeline: str) -> int:
        """The read timestamp of ``timeline``: 0 where nobody wrote yet, -1 for a catalog that holds nothing."""
        if timeline == CATALOG:
            return self.catalog_upper - 1
        return self.timelines.get(timeline, Timeline()).read_ts

    def bindings(self, collection: str) -> BoundRuns:
        """What is visible of ``collection`` at each timestamp from :meth:`since_of` to ``last_ts``."""
        return BoundRuns(self.bound.get(collection, NOTHING), self.since_of(collection), self.last_ts)

    def since_of(self, collection: str) -> DataTs:
        """Snapshots of ``collection`` below it are no longer told apart."""
        return DataTs(self.kept.get(collection, self.since))

    def last_change(self, collection: str) -> DataTs | None:
        """The newest timestamp at which rows of ``collection`` became visible; ``None`` if there never were any."""
        bound = self.bound.get(collection)
        return None if bound is None or bound.last_change is None else DataTs(bound.last_change)

    def forgettable(self, collection: str, dropped_below: int) -> bool:
        """Whether a FORGET of ``collection``, which was dropped below that catalog upper, can change no verdict any
        more: once true it stays true.

        A FORGET erases which timestamps wrote the collection, and somebody's transaction may have read it before: that
        one would be admitted as if nobody had written.  So a FORGET waits until ``since`` has passed the last write
        (an older ``read_ts`` is refused as too old), and until no commit that was planned before the drop can come.
        The record itself means what it always meant.  Keeping the writes through a FORGET instead would have made two
        releases side by side give one record two verdicts.
        """
        manager = self.managers.get(collection)
        return self.catalog_upper >= dropped_below and (manager is None or manager.last <= self.since)


EMPTY = OracleState()
