"""Changes from the logs into relations: what the oracle and the views' journal bound, read where it is.

What is recent is in the log itself or on a topic; what is settled may be in segments (:mod:`segments`), and a relation
that is loaded has those files themselves for what is in them.

Promises: after ``catch_up(relation, item, through)`` the relation holds exactly the changes bound at or before
``through``, each at its own timestamp as far back as the journals tell timestamps apart.  A relation that fell behind
what they still tell apart is loaded anew; where ``through`` itself is older than that, with what came until then, and
its own ``since`` says that ``through`` cannot be read.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from catalog_log.objects import Item, MaterializedView, Source
from collection.binding import BoundRun
from collection.reader import JSON, ROWS, RunReader, carried_chunks, on_topics
from controllers.changes import stamp
from controllers.compute.chunks import Adopted
from controllers.compute.intake import Intake
from controllers.compute.relation import Relation
from journal.errors import Unavailable
from journal.timestamps import DataTs
from oracle.bindings import BoundRuns
from oracle.client import Oracle
from oracle.errors import SnapshotTooOld
from oracle.state import OracleState
from oracle.views import ViewsState
from oracle.views_log import ViewsLog
from segments.fold import NOTHING, Sealed
from segments.parquet import LocalFile
from segments.reader import SegmentReader
from segments.store import Gone
from segments.unsealed import unsealed

log = logging.getLogger(__name__)

LOADS_MAX = 5
"""Each further try means that rows were sealed, or files merged, and both kept for minutes, while they were read."""

SINCE_TIMEOUT_S = 30.0
"""For a journal to get to where another one is that was written after it."""

READERS_MAX = 6
"""Consumers kept open: four reads and a tick's two at once.  Each holds a connection per broker and 32 MiB at most."""


class Feed:
    """Reads for any number of threads."""

    def __init__(
        self, bootstrap: str, oracle: Oracle, views: ViewsLog, segments: SegmentReader | None = None,
        intake: Intake | None = None,
    ) -> None:  # fmt: skip
        """``segments``: what is sealed, where anything may be; ``intake``: who has Spark's tasks read what is much."""
        self._intake = intake or Intake(bootstrap)
        self._bootstrap = bootstrap
        self._segments = segments
        self._oracle = oracle
        self._views = views
        self._readers: queue.LifoQueue[RunReader | None] = queue.LifoQueue()
        for _ in range(READERS_MAX):
            self._readers.put(None)

    def catch_up(self, relation: Relation, item: Item, through: DataTs) -> None:
        """Bring ``relation`` (of ``item``) to ``through``, which must be complete.

        Raises ``Unavailable`` (no broker, rows are gone), ``Rejected`` 53200 (too large), ``FatalLog``,
        ``InvalidUsage`` 42P01 (dropped).
        """
        if relation.upper > through:
            return
        with relation.advancing:
            if relation.upper > through:
                return
            for tries_left in reversed(range(LOADS_MAX)):
                relation.check_open()
                sealed = NOTHING if self._segments is None else self._segments.sealed(item.id)
                try:
                    self._bring(relation, item, through, sealed)
                    return
                except Unavailable as error:
                    if not tries_left or not self._elsewhere(item, sealed, error):
                        raise
                    log.info("rows were sealed while they were read", extra={"collection": relation.id})
                    relation.reset()

    def _bring(self, relation: Relation, item: Item, through: DataTs, sealed: Sealed) -> None:
        """As :meth:`catch_up`, once, by what is known of segments now; it holds the relation's lock."""
        bound, since = self._bound(item, sealed)
        first = relation.upper == 0
        # Below ``since`` no two timestamps are told apart.  Whoever wants such a one gets what is there at ``since``:
        # the same, if nothing came in between.
        read_to = DataTs(max(through, since))
        try:
            runs = bound.between(relation.upper, read_to + 1)
        except SnapshotTooOld:
            log.info("loading a collection anew", extra={"collection": relation.id, "upper": relation.upper})
            relation.reset()
            first = True
            runs = bound.between(DataTs(0), read_to + 1)
        # What is older than ``since`` is one snapshot, as of the newest run in it; newer runs go by their own.
        merged_at = max((b.ts for b in runs if b.ts <= since), default=0)
        # Not ``read_to``: a view may be complete through its newest run only.
        upper = DataTs(max([through, *(b.ts for b in runs)]) + 1)
        if not first:
            sealed = NOTHING  # what is newer than any snapshot is in no file
        runs = tuple(unsealed(runs, sealed))
        # What was merged is at one timestamp.
        stamped = [bound._replace(ts=max(merged_at, bound.ts)) for bound in runs]
        fetched = self._fetched(relation, item, stamped)
        if fetched is not None:
            stamped = [bound for bound in stamped if bound.value]
        adopted = fetched or []
        with closing(self._read(relation, item, stamped)) as tables:
            if first:
                relation.load(tables, upper, DataTs(merged_at), self._files(relation, sealed), adopted)
            elif runs:
                relation.append(tables, upper, fetched=adopted)
            else:
                relation.advance(upper)

    def _fetched(self, relation: Relation, item: Item, stamped: Sequence[BoundRun]) -> list[Adopted] | None:
        """What is on topics, by tasks of Spark's where that is much; ``None`` where it is to be read here."""
        asked = on_topics(stamped)
        if not self._intake.takes(asked):
            return None
        prefix = relation.own_name("fetched")
        return self._intake.fetch(relation.handing, prefix, asked, relation.columns, _format(item))

    def _elsewhere(self, item: Item, sealed: Sealed, error: Unavailable) -> bool:
        """Whether what could not be read is somewhere else by now: a topic of ours is cut below what is in files, and
        files go whose rows are in others."""
        ours = isinstance(error, Gone) or _format(item) == ROWS
        return (
            self._segments is not None and ours and error.sqlstate == "58P01"
            and self._segments.renewed(item.id, sealed)
        )  # fmt: skip

    def rows(self, item: Item) -> int:
        """How many changes a relation of ``item`` would have to load, about: records may hold many."""
        sealed = NOTHING if self._segments is None else self._segments.sealed(item.id)
        runs = _runs_of(item, self._journal(item).state)
        left = [each.run for each in unsealed((*runs.bound.base, *runs.bound.recent), sealed)]
        return sealed.changes + sum(run.upper - run.lower if run.rows < 0 else run.rows for run in left)

    def close(self) -> None:
        for _ in range(READERS_MAX):
            reader = self._readers.get()
            if reader is not None:
                reader.close()
        if self._segments is not None:
            self._segments.close()

    def _bound(self, item: Item, sealed: Sealed = NOTHING) -> tuple[BoundRuns, int]:
        """The bindings of ``item``, by a state that tells timestamps apart from ``sealed.through`` on at the earliest:
        below it the files do not say when a row came."""
        journal = self._journal(item)
        runs = _runs_of(item, journal.state)
        if runs.since < sealed.through:
            state = journal.when(lambda state: _runs_of(item, state).since >= sealed.through, SINCE_TIMEOUT_S).result()
            runs = _runs_of(item, state)
        return runs, runs.since

    def _journal(self, item: Item) -> ViewsLog | Oracle:
        return self._views if isinstance(item, MaterializedView) else self._oracle

    def _files(self, relation: Relation, sealed: Sealed) -> Iterable[LocalFile]:
        if not sealed.files:
            return ()
        return self._segments.fetched(sealed, relation.handing.directory, relation.own_name("file"))

    def _read(self, relation: Relation, item: Item, stamped: Sequence[BoundRun]) -> Iterator[pa.Table]:
        for table, stamps in carried_chunks(stamped, relation.columns):
            yield stamp(table, stamps, relation.types)
        stamped = on_topics(stamped)
        if not stamped:  # nothing to ask a broker for
            return
        reader = self._readers.get()
        try:
            if reader is None:
                reader = RunReader(self._bootstrap)
            for table, stamps in reader.bound_chunks(stamped, relation.columns, _format(item)):
                yield stamp(table, stamps, relation.types)
        finally:
            self._readers.put(reader)


def _format(item: Item) -> str:
    return JSON if isinstance(item, Source) and item.in_place else ROWS


def _runs_of(item: Item, state: ViewsState | OracleState) -> BoundRuns:
    """By a state of the journal that binds what ``item`` holds."""
    return state.view(item.id).runs if isinstance(item, MaterializedView) else state.bindings(item.id)
