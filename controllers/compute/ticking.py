"""The steps of a tick: read what changed, evaluate, write, bind by one record.

Promises: a tick at ``ts`` brings every view of the cluster that needs it to ``ts``, or (where anything fails that is
not a view's own fault) binds nothing and raises; the process then starts again from what is bound.  A tick that comes
twice finds nothing to do: uppers decide.  Runs in one thread; ``status`` may be called from others.

Which views, in which step, is the core's to say (:mod:`controllers.compute.core`).  What fails while one view is
loaded, installed or evaluated is that view's error.
"""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

import pyarrow as pa

from catalog_log.objects import Item, MaterializedView
from collection.binding import Run
from collection.writer import CollectionWriter
from controllers.at_work import AtWork
from controllers.compute.core import Begun, Held, Rest, Step, Stepped, to_be_told
from controllers.compute.failures import of_object
from controllers.compute.frontiers import Frontiers
from controllers.compute.handling import Handling
from controllers.compute.inventory import Inventory
from controllers.compute.maintainer import Maintainer
from controllers.compute.operators.planned import Planned
from controllers.compute.relation import Relation
from controllers.compute.view import Change, View
from controllers.compute.view_plans import ViewPlans
from controllers.peeks.peek_codec import decode_error, encode_error
from journal.errors import Rejected, TidemarkError, Unavailable
from journal.timestamps import DataTs
from oracle.views_log import ViewsLog
from oracle.views_records import ViewCommit

log = logging.getLogger(__name__)

WRITE_TRIES_MAX = 4
"""A write waits up to 30 s for a broker by itself, so this rides out two minutes; then the process starts again."""

WRITE_BYTES_MAX = 8 << 20
"""Of Arrow data written at once for one view; as Avro it is of the same order, an eighth of what may be pending."""

WRITES_MAX = 8
"""Views written at once, so that all of them together stay below what may be pending (64 MiB)."""

COMMIT_VIEWS_MAX = 1000
"""Views in one record: some 100 bytes each, far below the 4 MiB a record may have."""

STRATEGIES_MAX = 10_000
"""Views that are not in memory whose strategy is remembered, which takes 3 ms to find."""

RECENT_TICKS = 100

_NO_ROWS = pa.table({})


class Ticking:
    """See the module."""

    def __init__(
        self, core: Handling, maintainer: Maintainer, inventory: Inventory, views: ViewsLog, writer: CollectionWriter,
        cluster: str, incarnation: str, window_ms: int, at_work: AtWork,
    ) -> None:  # fmt: skip
        self.at: tuple[str, ...] = ()
        """Views that are being evaluated and written, or a collection that is being loaded alone."""
        self._core = core
        self._at_work = at_work
        self._ticking = threading.Lock()
        """Held by a tick, and by whoever tells all that a view is gone: the tick may be about to commit it."""
        self._gone: deque[Item] = deque()
        self._a_drop: Future[None] = Future()
        """Done when the next view of ours is dropped."""
        self._telling: list[Future] = []
        self._maintainer = maintainer
        self._inventory = inventory
        self._views = views
        self._writer = writer
        self._cluster = cluster
        self._incarnation = incarnation
        self._window_ms = window_ms
        self._writes = 0
        self._ticks = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT_TICKS)
        self._phases: deque[tuple[float, ...]] = deque(maxlen=RECENT_TICKS)
        self._strategies: dict[str, tuple[str, str]] = {}
        """Of views that are not in memory, by what Spark is told of them."""
        self._plans = ViewPlans(lambda object_id: inventory.catalog.objects.get(object_id), at_work)

    # -- doing --------------------------------------------------------------------------------------------------------

    def tick(self, ts: int, on_part: Callable[[], None] = lambda: None) -> None:
        """Bring every view that needs it to ``ts`` or what is complete now.  Raises what stops the process.

        ``on_part()`` is called whenever some of them are there, and there may be more.
        """
        with self._ticking:
            self._tick(DataTs(ts), on_part)
        self._forget_dropped()

    def _tick(self, ts: DataTs, on_part: Callable[[], None]) -> None:
        started = time.perf_counter()
        ours = self._inventory.views_of(self._cluster)
        for gone in [v for v in self._maintainer.views if v not in ours]:
            self._maintainer.remove(gone)
        self._outgrow()
        known = self._inventory.known(self._cluster)
        [told] = self._core.handle(Begun(ts, known, self._held()))
        while isinstance(told, Step):
            ts = told.ts
            self._take(told, known.frontiers)
            if told.more:
                on_part()
            self._outgrow()
            known = self._inventory.known(self._cluster)
            [told] = self._core.handle(Stepped(known, self._held()))
        assert isinstance(told, Rest), told
        if told.worked:
            self._ticks += 1
            self._recent.append((time.perf_counter() - started, time.time() * 1000 - ts))

    def _held(self) -> Held:
        return Held(tuple(self._maintainer.views), tuple(self._maintainer.errors))

    def _take(self, step: Step, frontiers: Frontiers) -> None:
        for input_id in step.alone:
            with self._at_work.on([input_id]):
                self.at = (input_id,)
                self._load(self._inventory.relation(input_id), step.ts)
                self.at = ()
        objects = self._inventory.catalog.objects
        inputs = {i for v in step.views if v in objects for i in objects[v].inputs}
        names = [*step.views, *sorted(inputs)]
        with self._at_work.on([n for n in names if self._at_work.refused(n) is None]):
            self.at = step.views
            self._install(step.views, frontiers)
            self._step(step, frontiers)
            self.at = ()

    def drop(self, item: Item) -> None:
        """A view of ours is gone: its progress is forgotten by all, once no tick is at it."""
        self._gone.append(item)
        told, self._a_drop = self._a_drop, Future()
        told.set_result(None)
        self._forget_dropped()

    def drops_known(self) -> bool:
        """Whether all were told of every view of ours that was dropped."""
        return not self._gone and all(_succeeded(done) for done in self._telling)

    def let_go(self) -> None:
        """Let go of relations that were outgrown, unless a tick is under way, which does so itself."""
        if self._ticking.acquire(blocking=False):
            try:
                self._outgrow()
            finally:
                self._ticking.release()

    def _outgrow(self) -> None:
        """Views on a relation that has got columns are restored on the new one, when they are needed next."""
        for relation in self._inventory.outgrown():
            reading = [v for v, view in self._maintainer.views.items() if view.inputs.get(relation.id) is relation]
            for view_id in reading:
                del self._maintainer.views[view_id]
            relation.supersede()
            log.info("a relation has other columns", extra={"collection": relation.id, "views": reading})

    def _forget_dropped(self) -> None:
        # Whoever holds it comes here afterwards.
        while self._gone and self._ticking.acquire(blocking=False):
            try:
                while self._gone:
                    item = self._gone.popleft()
                    # At a start these are all that there ever were, of which everybody heard long ago.
                    if item.id in self._views.state.views:
                        done = self._views.drop(item.id)
                        done.add_done_callback(_log_failure)
                        self._telling = [f for f in self._telling if not _succeeded(f)] + [done]
            finally:
                self._ticking.release()

    def status(self, frontiers: Frontiers) -> dict[str, dict]:
        """By view: upper, complete_through, strategy, gear and why, ticks by gear, rows, error, hydrated."""
        found = {}
        for view_id, item in self._inventory.views_of(self._cluster).items():
            progress = frontiers.views.view(view_id)
            view = self._maintainer.views.get(view_id)
            found[view_id] = {
                "name": item.name,
                "upper": progress.upper,
                "complete_through": frontiers.complete(view_id),
                "strategy": self._strategy_name(item) if view is None else view.strategy.name,
                "gear": None if view is None else view.gears.last,
                "gear_reason": None if view is None else view.gears.reason,
                "ticks": {} if view is None else dict(view.gears.counts),
                "state": None if view is None else view.held,
                "quarantined": self._at_work.refused(view_id) is not None,
                "rows": None if view is None else view.relation.count,
                "error": progress.error,
                "hydrated": progress.upper > 0,
            }
        return found

    def counts(self) -> dict[str, object]:
        """Ticks so far, and medians of the recent ones: duration, its parts, age of the timestamp at the end."""
        recent, phases = list(self._recent), list(self._phases)
        parts = ("load", "evaluate", "write", "commit")
        return {
            "count": self._ticks,
            "tick_ms_p50": _median_ms([seconds for seconds, _ in recent]),
            "freshness_ms_p50": _median_ms([age / 1000 for _, age in recent]),
            **{f"{name}_ms_p50": _median_ms([p[i] for p in phases]) for i, name in enumerate(parts)},
        }

    def close(self) -> None:
        self._maintainer.close()

    def _strategy_name(self, item: MaterializedView) -> str:
        """For a view that is not in memory: what its query says."""
        try:
            query = self._plans.query(item)
            known = self._strategies.get(item.id)
            if known is None or known[0] != query:
                objects = self._inventory.catalog.objects
                columns = {i: objects[i].stored for i in item.inputs}
                known = query, Planned(self._plans.tree(item), columns).strategy().name
                if len(self._strategies) >= STRATEGIES_MAX:
                    self._strategies.clear()
                self._strategies[item.id] = known
            return known[1]
        except Exception as error:  # its own tick says so too; a status is of all
            return f"unknown: {type(error).__name__}"

    def _install(self, todo: Sequence[str], frontiers: Frontiers) -> None:
        """Have these views in memory: one that lay idle since the start is restored only now.

        One that cannot be, or must not be touched, stays out, with its error among the maintainer's.
        """
        resumed = []
        for view_id in todo:
            if view_id in self._maintainer.views:
                continue
            progress = frontiers.views.view(view_id)
            refused = self._at_work.refused(view_id)
            if refused is not None:
                self._maintainer.errors[view_id] = refused
                continue
            try:
                item = self._inventory.item(view_id)
                query = self._plans.query(item)
                view = self._installed(item, query, progress.upper)
            except Exception as error:
                self._maintainer.errors[view_id] = of_object(self._maintainer.spark, error)
                log.warning("view cannot be installed", extra={"view": view_id, "why": str(error)[:500]})
                continue
            as_before = self._plans.begins(item, query, anew=progress.upper == 0)
            if progress.error is not None:
                view.state_ts = None
                self._maintainer.errors[view_id] = decode_error(progress.error)
            elif not as_before:
                view.state_ts = None
                log.info("view is planned otherwise than before: compared as a whole", extra={"view": view_id})
            elif progress.upper > 0:
                resumed.append((view, progress.upper))
            log.info("view installed", extra={"view": view_id, "strategy": view.strategy.name})
        if resumed:
            self._maintainer.restore(resumed)
        self._check_topics(todo)

    def _check_topics(self, todo: Sequence[str]) -> None:
        """Find the views whose topics would lose rows: each is in error until its topic is corrected, and looked at
        again at each of its ticks."""
        for view_id, asked in [(view_id, self._writer.check(view_id)) for view_id in todo]:
            wrong = asked.result()
            if wrong is None:
                self._maintainer.unwritable.pop(view_id, None)
            else:
                self._maintainer.unwritable[view_id] = wrong

    def _installed(self, item: MaterializedView, query: str, upper: DataTs) -> View:
        relation = self._inventory.relation(item.id)
        inputs = {i: self._inventory.relation(i) for i in item.inputs}
        if upper > 0:
            through = DataTs(upper - 1)
            self._inventory.relation_through(item.id, through)
            for input_relation in inputs.values():
                self._load(input_relation, through)
        return self._maintainer.install(relation, query, inputs, self._plans.tree(item))

    def _load(self, relation: Relation, through: DataTs) -> None:
        """Bring an input that no view of ours computes to ``through``.

        Where that fails for good (its rows are lost, or too many), that is an error of the views that read it, not the
        cluster's end.
        """
        try:
            self._inventory.bring(relation, through)
        except Exception as error:
            found = of_object(self._maintainer.spark, error)
            log.warning("an input cannot be read", extra={"collection": relation.id, "why": found.message})
            self._maintainer.errors[relation.id] = found
        else:
            if relation.id not in self._maintainer.views:
                self._maintainer.errors.pop(relation.id, None)

    def _step(self, step: Step, frontiers: Frontiers) -> None:
        started = time.perf_counter()
        todo, ts = step.views, step.ts
        views = self._maintainer.views
        out = [v for v in todo if v not in views]
        # The relations that the views have, not those that there are by now: a table may have got columns meanwhile.
        inputs = [pair for v in todo if v in views for pair in views[v].inputs.items()]
        outside = {relation: i for i, relation in inputs if i not in views and i not in out}
        self._maintainer.run_pool(sorted(outside, key=outside.get), lambda relation: self._load(relation, ts))
        for input_id in set(outside.values()):
            error = frontiers.views.view(input_id).error
            if error is not None:
                self._maintainer.errors[input_id] = decode_error(error)
        loaded = time.perf_counter()
        changes = [*(_failed(v, self._maintainer.errors[v]) for v in out), *self._maintainer.evaluate(todo, ts)]
        evaluated = time.perf_counter()
        in_error = self._maintainer.errors
        changes = [
            c for c in changes
            if to_be_told(step, c.view_id, c.rows.num_rows > 0, c.error, c.view_id in in_error)
        ]  # fmt: skip
        runs = self._write(changes)
        written = time.perf_counter()
        there = self._inventory.catalog.objects
        changes = [c for c in changes if c.view_id in there]  # nobody reads what was dropped meanwhile
        for start in range(0, len(changes), COMMIT_VIEWS_MAX):
            part = changes[start : start + COMMIT_VIEWS_MAX]
            commits = [
                ViewCommit(
                    c.view_id, frontiers.views.view(c.view_id).upper, tuple(runs.get(c.view_id, ())),
                    None if c.error is None else encode_error(c.error),
                )
                for c in part
            ]  # fmt: skip
            self._views.commit(self._cluster, self._core.epoch, ts, commits).result()
        self._maintainer.accept(changes)
        self._plans.committed(c.view_id for c in changes if c.error is None)
        marks = (started, loaded, evaluated, written, time.perf_counter())
        self._phases.append(tuple(b - a for a, b in zip(marks, marks[1:], strict=False)))
        horizon = DataTs(ts - self._window_ms)
        for view in [views[c.view_id] for c in changes if c.view_id in views]:
            for relation in (view.relation, *view.inputs.values()):
                relation.allow_compaction(horizon)

    def _write(self, changes: Sequence[Change]) -> dict[str, list[Run]]:
        """Write all outputs; their runs by view, of those that were not dropped meanwhile.  Unbound rows are invisible,
        so any write may be tried again."""
        small = [c for c in changes if c.rows.num_rows and c.rows.nbytes <= WRITE_BYTES_MAX]
        found: dict[str, list[Run]] = {}
        for start in range(0, len(small), WRITES_MAX):
            part = small[start : start + WRITES_MAX]
            found |= self._write_together({c.view_id: c.rows for c in part})
        for change in changes:
            if change.rows.nbytes > WRITE_BYTES_MAX:
                # A new view over much data: in pieces, one after the other, to fit into what may be pending.
                view_id, rows = change.view_id, max(1, change.rows.num_rows * WRITE_BYTES_MAX // change.rows.nbytes)
                found[view_id] = [
                    run
                    for at in range(0, change.rows.num_rows, rows)
                    for run in self._write_together({view_id: change.rows.slice(at, rows)}).get(view_id, ())
                ]
        return found

    def _write_together(self, todo: dict[str, pa.Table]) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for attempt in range(WRITE_TRIES_MAX):
            futures = {}
            for view_id, rows in todo.items():
                self._writes += 1
                columns = self._maintainer.views[view_id].relation.columns
                futures[view_id] = self._writer.write(view_id, columns, rows, f"{self._incarnation}-{self._writes}")
            ended = {view_id: f for view_id, f in futures.items() if self._await_write(view_id, f)}
            failed = {view_id: error for view_id, f in ended.items() if (error := f.exception()) is not None}
            found |= {view_id: f.result() for view_id, f in ended.items() if view_id not in failed}
            if not failed:
                return found
            for error in failed.values():
                again = isinstance(error, Unavailable) or (isinstance(error, Rejected) and error.sqlstate == "53400")
                if not again or attempt == WRITE_TRIES_MAX - 1:
                    self.at = tuple(failed)
                    raise error
            log.warning("outputs are written again", extra={"views": sorted(failed), "attempt": attempt + 1})
            todo = {view_id: todo[view_id] for view_id in failed}
        return found

    def _await_write(self, view_id: str, written: Future) -> bool:
        """Wait until a write has ended, which takes a bounded time; ``False`` as soon as its view is dropped.

        Its topic goes with it, and a write to a topic that is not there waits for as long as it may: all other views
        of the cluster waited with it, for two minutes, and then the process ended and began anew.
        """
        while not written.done():
            dropped = self._a_drop
            if view_id not in self._inventory.catalog.objects:
                log.info("a view was dropped while it was written", extra={"view": view_id})
                return False
            wait([written, dropped], return_when=FIRST_COMPLETED)
        return True


def _failed(view_id: str, error: TidemarkError) -> Change:
    """The change of a view that is not in memory."""
    return Change(view_id, _NO_ROWS, error, lambda: None)


def _median_ms(seconds: Sequence[float]) -> float | None:
    return round(statistics.median(seconds) * 1000, 1) if seconds else None


def _succeeded(done: Future) -> bool:
    return done.done() and done.exception() is None


def _log_failure(done) -> None:
    error = done.exception()
    if error is not None:
        log.warning("a dropped view's progress was not forgotten", extra={"reason": str(error)})
