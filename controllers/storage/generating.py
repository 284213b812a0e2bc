"""A source over a load generator: makes the events that are due and binds them, for as long as the source lives.

Promises: the rows of each event are bound exactly once, whatever dies when: the number of the next event is kept
nowhere but in the bindings themselves, under the source's *progress*, which is contiguous and in the same part of a
commit as the rows.  So two controllers bind nothing twice, and what is missed while none is there is made up for.  The
rows are a function of the event's number alone (:mod:`collection.generators`), and how many are due one of the clock
(:mod:`collection.generators.pacing`).

A source with parts makes the rows of all of them, and binds them in one part of a commit with the one progress that
they have: so at each timestamp all have the rows of the same events.  Its own row, how many those are, is bound with
them.

The next events are made while the rows of the last are written and their commit is under way, but at most one commit
is, in the order of the numbers; what was written and not committed is bound by nobody and seen by nobody.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from catalog_log.objects import Column, Generator
from catalog_log.objects import Source as SourceItem
from catalog_log.objects.generator import FORMAT
from collection.binding import Binding, Run, joined
from collection.columns import DIFF
from collection.generators.core import Core
from collection.generators.kinds import KINDS, OFFSET_COLUMNS, core_of, offsets, parts_of
from collection.generators.pacing import batch, due, due_ms
from collection.writer import CollectionWriter
from controllers.at_work import AtWork
from controllers.storage.remap import Prepared
from controllers.storage.source_thread import FINISHED, RUNNING, SourceThread
from controllers.storage.taking import ANSWER_TIMEOUT_S
from oracle.client import Oracle, wall_clock_ms
from oracle.model import CommitPart

log = logging.getLogger(__name__)

COMMIT_EVERY_S = 0.1
"""Between the commits of a source that keeps up: ten records a second for everybody to fold, and rows are at most so
much later than they are due."""

NOTHING_EVERY_S = 1.0
"""Between commits that bind progress alone: of fifty events of Nexmark one is a person."""

LOOK_S = 1.0
"""How long it waits at most until it looks at the clock again, which may have been set."""


AHEAD = 3
"""Batches whose rows may be on their way at once: making one takes some 50 ms, until a broker has it some more."""


class _Begun(NamedTuple):
    """Events whose rows are on their way: the numbers, and by collection where rows are that are there already, and
    such on their way."""

    run: Run
    attempt: str
    runs: Mapping[str, list[Run]]
    writing: Sequence[tuple[str, Future[list[Run]]]]


class _Made(NamedTuple):
    """A collection, its columns as they are stored, and what makes its rows."""

    collection_id: str
    stored: Sequence[Column]
    core: Core


class Generating(SourceThread):
    """Its thread makes events, and waits for them to be there and bound."""

    def __init__(
        self, item: SourceItem, writer: CollectionWriter, oracle: Oracle, incarnation: str, at_work: AtWork,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:  # fmt: skip
        super().__init__(item, oracle, incarnation, at_work)
        assert item.generator is not None, f"{item.id} has no generator"
        self._generator: Generator = item.generator
        self._made: list[_Made]
        self._batch = 1
        self._writer = writer
        self._now_ms = now_ms
        self.begin()

    def _ingest(self) -> None:
        if self._generator.members:
            self._made = [_Made(each, columns, core) for each, columns, core in parts_of(self._generator)]
        else:
            self._made = [_Made(self.item.id, self.item.stored, core_of(self._generator))]
        self._batch = min(each.core.batch for each in self._made)
        # Before it is at work alone: it takes seconds that are no source's fault if the process ends in them, and in
        # which a source that may have ended the last process would keep the others from theirs.
        KINDS[self._generator.kind].ready()
        state = self._oracle.barrier().result(ANSWER_TIMEOUT_S)
        at = state.bindings(self.item.progress_id).end(FORMAT, 0) or 0
        status = self.status
        status.positions = {0: at}
        if status.caught_up_ms is None:
            status.caught_up_ms = state.last_change(self.item.id)
        # What comes first may be what ended the process that made it last; it is bound before more is made.
        with self._at_work.on([self.item.id]):
            status.state, status.error = RUNNING, None
            log.info("source runs", extra={"source": self.item.id, "event": at})
            at = self._go_on(at, first=True)
        self._go_on(at, first=False)

    def _go_on(self, at: int, first: bool) -> int:
        """Bind what comes from event ``at`` on, until stopped or, where it is the ``first``, until something was bound
        or there is nothing yet.  Where it goes on."""
        begun: deque[_Begun] = deque()
        under_way: tuple[Future[int], Prepared, int, int] | None = None
        committed_s = time.monotonic()
        try:
            while not self._stopped.is_set():
                now_ms = self._now_ms()
                due_now = due(self._generator, now_ms)
                lower = begun[-1].run.upper if begun else at
                upper = batch(self._generator, lower, due_now, self._batch)
                if upper > lower:
                    made = self._begun(lower, upper, whole=time.monotonic() >= committed_s + NOTHING_EVERY_S)
                    if made is not None:
                        begun.append(made)
                        if not first and len(begun) < AHEAD and due_now - upper >= self._batch:
                            continue
                if begun:
                    oldest = begun.popleft()
                    prepared, part = self._part(oldest)
                    if under_way is not None:
                        self._bound(*under_way)
                        under_way = None
                    under_way = self._oracle.commit(part), prepared, due_now, now_ms
                    committed_s = time.monotonic()
                    at = oldest.run.upper
                    if first:
                        break
                    if due_now - at < self._batch:
                        self._stopped.wait(COMMIT_EVERY_S)
                    continue
                if under_way is not None:
                    last, under_way = under_way, None
                    self._bound(*last)
                self._see(at, due_now, now_ms)
                if first:
                    break
                self._wait(max(at, upper))
            if under_way is not None:
                last, under_way = under_way, None
                self._bound(*last)
            return at
        finally:
            if under_way is not None:
                # It failed or will be found in the bindings when we begin anew.
                under_way[0].exception(ANSWER_TIMEOUT_S)

    def _ended(self) -> None:
        """It holds nothing."""

    def _wait(self, number: int) -> None:
        """Until event ``number`` is due, or the clock is to be looked at again; for ever where there is none."""
        if number >= self._generator.bound:
            self.status.state = FINISHED
            self._stopped.wait()
            return
        left_s = (due_ms(self._generator, number) - self._now_ms()) / 1000
        self._stopped.wait(min(max(left_s, COMMIT_EVERY_S), LOOK_S))

    def _begun(self, lower: int, upper: int, whole: bool) -> _Begun | None:
        """The events ``[lower, upper)``, on their way to the topic; ``None`` where they are not to be bound now: there
        are no rows of them and it is not yet time to say that (``whole``), or it was stopped."""
        attempt = self._attempt()
        runs: dict[str, list[Run]] = {}
        writing: list[tuple[str, Future[list[Run]]]] = []
        rows = 0
        # More than one where all of a snapshot is to be visible at once.
        places = [*range(lower, upper, self._batch), upper]
        for low, high in pairwise(places):
            _settle(runs, writing)
            writing = []
            for made in self._made:
                changes = made.core.changes(low, high)
                if changes.num_rows:
                    writing.append((made.collection_id, self._write(made.collection_id, made.stored, changes, attempt)))
                    rows += pc.sum(pc.greater(changes.column(DIFF), 0)).as_py()
            if self._stopped.is_set() and high < upper:
                return None
        if not rows and not whole and upper < self._generator.bound and upper - lower < self._batch:
            return None
        if self._generator.members:
            writing.append((self.item.id, self._write(self.item.id, OFFSET_COLUMNS, offsets(lower, upper), attempt)))
        return _Begun(Run(FORMAT, 0, lower, upper, "", rows), attempt, runs, writing)

    def _write(
        self, collection_id: str, stored: Sequence[Column], changes: pa.Table, attempt: str
    ) -> Future[list[Run]]:
        """``changes`` by the names that the columns are kept by, on their way."""
        called = changes.rename_columns([*(column.name for column in stored), DIFF])
        return self._writer.write(collection_id, stored, called, attempt)

    def _part(self, begun: _Begun) -> tuple[Prepared, CommitPart]:
        """What binds the events, of all that are generated together, once their rows are where they are."""
        runs = dict(begun.runs)
        _settle(runs, begun.writing)
        run = begun.run
        progress = Binding(self.item.progress_id, run, contiguous=True)
        bound = [Binding(each, one) for each, found in runs.items() for one in joined(found)]
        return Prepared((run,), (), run.rows, {0: run.upper}), CommitPart(begun.attempt, (progress, *bound))

    def _bound(self, commit: Future[int], prepared: Prepared, due_now: int, now_ms: int) -> None:
        self._await_commit(commit, prepared)
        self._see(prepared.positions[0], due_now, now_ms)

    def _see(self, at: int, due_now: int, now_ms: int) -> None:
        """How far it is: it was to have ``due_now`` at ``now_ms``."""
        status, generator = self.status, self._generator
        if not generator.events and not generator.ends:
            return  # there is no saying how far behind it is
        status.ends, status.behind = {0: due_now}, max(0, due_now - at)
        if not status.behind:
            status.caught_up_ms = now_ms


def _settle(runs: dict[str, list[Run]], writing: Sequence[tuple[str, Future[list[Run]]]]) -> None:
    """Wait for what is on its way, and put it to ``runs``."""
    for collection_id, each in writing:
        runs.setdefault(collection_id, []).extend(each.result(ANSWER_TIMEOUT_S))
