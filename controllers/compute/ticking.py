"""The steps of a tick: read what changed, evaluate, write, bind by one record.

Promises: a tick at ``ts`` brings every view of the cluster that needs it to ``ts``, or (where anything fails that is
not a view's own fault) binds nothing and raises; the process then starts again from what is bound.  A tick that comes
twice finds nothing to do: uppers decide.  Runs in one thread; ``status`` may be called from others.

Which views, in which step, is the core's to say (:mod:`controllers.compute.core`).  What fails while one view is
loaded, installed or evaluated is that view's error.  A view that reads much is brought into memory beside the ticks
(:mod:`controllers.compute.beside`), and is one of the others from the next step on.
"""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

import pyarrow as pa

from catalog_log.objects import Item, MaterializedView
from collection.binding import Run, joined
from collection.columns import Columns, sql_type
from collection.writer import CollectionWriter
from controllers.at_work import AtWork
from controllers.compute.beside import Job, Made
from controllers.compute.core import Begun, Held, Rest, Returned, Step, Stepped, to_be_told
from controllers.compute.failures import of_object
from controllers.compute.frontiers import Frontiers
from controllers.compute.handling import Handling
from controllers.compute.inventory import Inventory
from controllers.compute.maintainer import Maintainer
from controllers.compute.operators.planned import Planned
from controllers.compute.outputs import Outputs
from controllers.compute.relation import Relation
from controllers.compute.view import Change, View
from controllers.compute.view_plans import ViewPlans
from controllers.peeks.peek_codec import decode_error, encode_error
from journal.errors import Rejected, TidemarkError
from journal.timestamps import DataTs
from oracle.model import BINDINGS_MAX
from oracle.views import ViewProgress
from oracle.views_log import ViewsLog
from oracle.views_records import ViewCommit
from values.types import carried

log = logging.getLogger(__name__)

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
        cluster: str, incarnation: str, window_ms: int, at_work: AtWork, moved: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """``moved()`` is called when what was begun beside the ticks has ended: :meth:`let_go` then, soon."""
        self._at: tuple[str, ...] = ()
        self._core = core
        self._at_work = at_work
        self._ticking = threading.Lock()
        """Held by a tick, and by whoever tells all that a view is gone: the tick may be about to commit it."""
        self._gone: deque[Item] = deque()
        self._job: Job | None = None
        """What is at work beside the ticks."""
        self._fresh: dict[str, Made] = {}
        """Views that came from there and have not gone on yet."""
        self._moved = moved
        self._telling: list[Future] = []
        self._maintainer = maintainer
        self._inventory = inventory
        self._views = views
        self._outputs = Outputs(writer, lambda: inventory.catalog.objects, incarnation)
        self._cluster = cluster
        self._window_ms = window_ms
        self._ticks = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT_TICKS)
        self._phases: deque[tuple[float, ...]] = deque(maxlen=RECENT_TICKS)
        self._strategies: dict[str, tuple[str, str]] = {}
        """Of views that are not in memory, by what Spark is told of them."""
        self._plans = ViewPlans(at_work)

    @property
    def at(self) -> tuple[str, ...]:
        """Views that are being evaluated and written, or a collection that is being loaded alone."""
        job = self._job
        return self._at if job is None or job.view_id in self._at else (*self._at, job.view_id)

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
            self._release(gone)
        self._outgrow()
        self._take_over()
        known = self._inventory.known(self._cluster)
        [told] = self._core.handle(Begun(ts, known, self._held()))
        while isinstance(told, Step):
            ts = told.ts
            if told.beside:
                self._begin_beside(told, known.frontiers)
            else:
                self._take(told, known.frontiers)
            if told.more:
                on_part()
            self._outgrow()
            self._take_over()
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
                self._at = (input_id,)
                self._load(self._inventory.relation(input_id), step.ts, self._maintainer.errors)
                self._at = ()
        objects = self._inventory.catalog.objects
        inputs = {i for v in step.views if v in objects for i in objects[v].inputs}
        names = [*step.views, *sorted(inputs)]
        with self._at_work.on([n for n in names if self._at_work.refused(n) is None]):
            self._at = step.views
            self._install(step.views, frontiers)
            self._step(step, frontiers)
            self._at = ()

    def drop(self, item: Item) -> None:
        """A view of ours is gone: its progress is forgotten by all, once no tick is at it."""
        self._gone.append(item)
        self._outputs.dropped()
        job = self._job
        if job is not None and job.view_id == item.id:
            job.cancel()
        view = self._maintainer.views.get(item.id)
        if view is not None and view.outlet is not None:
            view.outlet.cancel()
        self._forget_dropped()

    def drops_known(self) -> bool:
        """Whether all were told of every view of ours that was dropped."""
        return not self._gone and all(_succeeded(done) for done in self._telling)

    def let_go(self) -> bool:
        """Let go of relations that were outgrown and take over what was made beside the ticks, unless a tick is under
        way, which does so itself; whether there may be more to be done for it.  Raises what ended that."""
        taken = False
        if self._ticking.acquire(blocking=False):
            try:
                self._outgrow()
                taken = self._take_over()
            finally:
                self._ticking.release()
        if taken:
            self._forget_dropped()
        return taken

    def _outgrow(self) -> None:
        """Views on a relation that has got columns are restored on the new one, when they are needed next."""
        for relation in self._inventory.outgrown():
            reading = [v for v, view in self._maintainer.views.items() if view.inputs.get(relation.id) is relation]
            for view_id in reading:
                del self._maintainer.views[view_id]
                self._release(view_id)
            relation.supersede()
            log.info("a relation has other columns", extra={"collection": relation.id, "views": reading})

    def _forget_dropped(self) -> None:
        # Whoever holds it comes here afterwards, and so does who takes over what is at work beside the ticks.
        while self._may_forget() and self._ticking.acquire(blocking=False):
            try:
                for item in [self._gone.popleft() for _ in range(len(self._gone))]:
                    if self._job is not None and item.id == self._job.view_id:
                        self._gone.append(item)
                        continue
                    # At a start these are all that there ever were, of which everybody heard long ago.
                    if item.id in self._views.state.views:
                        done = self._views.drop(item.id)
                        done.add_done_callback(_log_failure)
                        self._telling = [f for f in self._telling if not _succeeded(f)] + [done]
            finally:
                self._ticking.release()

    def _may_forget(self) -> bool:
        job = self._job
        return any(job is None or item.id != job.view_id for item in list(self._gone))

    def status(self, frontiers: Frontiers) -> dict[str, dict]:
        """By view: upper, complete_through, strategy, gear and why, ticks by gear, rows, error, hydrated, and how far
        one is that is being made beside the ticks."""
        found, job = {}, self._job
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
                "beside": job.status() if job is not None and job.view_id == view_id else None,
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
        job = self._job
        if job is not None:
            job.cancel()
            job.join()
        self._maintainer.close()

    def _strategy_name(self, item: MaterializedView) -> str:
        """For a view that is not in memory: what its query says."""
        try:
            query = self._plans.query(item, self._inventory.catalog.objects)
            known = self._strategies.get(item.id)
            if known is None or known[0] != query.spark_sql:
                types = [carried(sql_type(column.type)) for column in item.stored]
                known = query.spark_sql, Planned(query.query).strategy(types).name
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
                view, goes_on = self._in_memory(view_id, progress, self._maintainer.errors)
            except Exception as error:
                self._maintainer.errors[view_id] = of_object(self._maintainer.spark, error)
                log.warning("view cannot be installed", extra={"view": view_id, "why": str(error)[:500]})
                continue
            self._maintainer.install(view)
            if progress.error is not None:
                self._maintainer.errors[view_id] = decode_error(progress.error)
            if goes_on:
                resumed.append((view, progress.upper))
            log.info("view installed", extra={"view": view_id, "strategy": view.strategy.name})
        if resumed:
            self._maintainer.restore(resumed)
        self._check_topics(todo)

    def _check_topics(self, todo: Sequence[str]) -> None:
        """Find the views whose topics would lose rows: each is in error until its topic is corrected, and looked at
        again at each of its ticks."""
        for view_id, wrong in self._outputs.unwritable(todo).items():
            if wrong is None:
                self._maintainer.unwritable.pop(view_id, None)
            else:
                self._maintainer.unwritable[view_id] = wrong

    def _in_memory(
        self, view_id: str, progress: ViewProgress, errors: dict[str, TidemarkError]
    ) -> tuple[View, bool]:
        """The view with all that it had put out; and whether it can go on from there, once it is restored.

        Raises what keeps it from being so: its own error or the cluster's end (:func:`failures.of_object` tells).
        ``errors`` as :meth:`_load`.
        """
        catalog, item, relation, inputs = self._inventory.reads(view_id)
        query = self._plans.query(item, catalog.objects)
        if progress.upper > 0:
            through = DataTs(progress.upper - 1)
            self._inventory.relation_through(item.id, through)
            for input_relation in inputs.values():
                self._load(input_relation, through, errors)
        view = self._maintainer.make(relation, query, inputs)
        as_before = self._plans.begins(item, query, anew=progress.upper == 0)
        if progress.error is not None:
            view.state_ts = None
        elif not as_before:
            view.state_ts = None
            log.info("view is planned otherwise than before: compared as a whole", extra={"view": item.id})
        return view, progress.error is None and as_before and progress.upper > 0

    def _load(self, relation: Relation, through: DataTs, errors: dict[str, TidemarkError]) -> None:
        """Bring an input that no view of ours computes to ``through``.

        Where that fails for good (its rows are lost, or too many), that is an error of the views that read it, not the
        cluster's end: it is among ``errors`` then, and not if it can be read.
        """
        try:
            self._inventory.bring(relation, through)
        except Exception as error:
            found = of_object(self._maintainer.spark, error)
            log.warning("an input cannot be read", extra={"collection": relation.id, "why": found.message})
            errors[relation.id] = found
        else:
            if relation.id not in self._maintainer.views:
                errors.pop(relation.id, None)

    def _step(self, step: Step, frontiers: Frontiers) -> None:
        started = time.perf_counter()
        todo, ts = step.views, step.ts
        views = self._maintainer.views
        out = [v for v in todo if v not in views]
        # The relations that the views have, not those that there are by now: a table may have got columns meanwhile.
        inputs = [pair for v in todo if v in views for pair in views[v].inputs.items()]
        outside = {relation: i for i, relation in inputs if i not in views and i not in out}
        errors = self._maintainer.errors
        # What has nothing new is there at once: handed to a thread it would take as long as what is read.
        idle = [r for r, i in outside.items() if r.upper and not frontiers.changed_since(i, r.upper)]
        for relation in idle:
            self._load(relation, ts, errors)
        read = sorted(outside.keys() - idle, key=outside.get)
        self._maintainer.run_pool(read, lambda relation: self._load(relation, ts, errors))
        for input_id in set(outside.values()):
            error = frontiers.views.view(input_id).error
            if error is not None:
                errors[input_id] = decode_error(error)
        loaded = time.perf_counter()
        changes = [*(_failed(v, errors[v]) for v in out), *self._maintainer.evaluate(todo, ts)]
        evaluated = time.perf_counter()
        changes = [
            c for c in changes
            if to_be_told(step, c.view_id, c.rows.num_rows > 0 or bool(c.sent.runs), c.error, c.view_id in errors)
        ]  # fmt: skip
        runs = self._written(changes, {v: view.relation.columns for v, view in views.items()}, self._blame)
        written = time.perf_counter()
        there = self._inventory.catalog.objects
        changes = [c for c in changes if c.view_id in there]  # nobody reads what was dropped meanwhile
        self._bind(changes, runs, frontiers, ts)
        self._maintainer.accept(changes)
        for each in changes:
            self._release(each.view_id)
        marks = (started, loaded, evaluated, written, time.perf_counter())
        self._phases.append(tuple(b - a for a, b in zip(marks, marks[1:], strict=False)))
        horizon = DataTs(ts - self._window_ms)
        for view in [views[c.view_id] for c in changes if c.view_id in views]:
            for relation in (view.relation, *view.inputs.values()):
                relation.allow_compaction(horizon)

    def _written(
        self, changes: Sequence[Change], columns: Mapping[str, Columns], failed: Callable[[tuple[str, ...]], None]
    ) -> dict[str, list[Run]]:
        """The runs of all that views put out, with those that tasks wrote already; as :meth:`Outputs.write`."""
        written = self._outputs.write(changes, columns, failed)
        for change in changes:
            if change.sent.runs:
                written[change.view_id] = joined([*written.get(change.view_id, ()), *change.sent.runs])
        return written

    def _bind(
        self, changes: Sequence[Change], runs: Mapping[str, Sequence[Run]], frontiers: Frontiers, ts: DataTs
    ) -> None:
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
        self._plans.committed(c.view_id for c in changes if c.error is None)

    def _blame(self, view_ids: tuple[str, ...]) -> None:
        self._at = view_ids

    # -- beside the ticks ---------------------------------------------------------------------------------------------

    def _begin_beside(self, step: Step, frontiers: Frontiers) -> None:
        [view_id] = step.views
        assert self._job is None, (self._job.view_id, view_id)
        log.info("a view is made beside the ticks", extra={"view": view_id, "ts": step.ts})
        rows, spark = self._inventory.rows_read(view_id), self._maintainer.spark
        self._job = Job(view_id, rows, spark, lambda: self._make(view_id, step.ts, frontiers), self._moved)

    def _make(self, view_id: str, ts: DataTs, frontiers: Frontiers) -> Made:
        """On the job's thread: the view at ``ts``, bound there, or as it was where it can go on from that."""
        item = self._inventory.catalog.objects.get(view_id)
        refused = [self._at_work.refused(n) for n in (view_id, *(item.inputs if item is not None else ()))]
        if item is None or any(refused):
            return Made()  # a tick says why
        progress = frontiers.views.view(view_id)
        inputs = [self._inventory.relation(i) for i in item.inputs]
        held = min(ts, DataTs(progress.upper - 1)) if progress.upper else ts
        made = Made(holds=[relation.hold(held) for relation in inputs])
        try:
            with self._at_work.on([view_id, *sorted(item.inputs)]):
                view, error = self._made(item, inputs, ts, frontiers)
            made = made._replace(view=view, error=error)
        finally:
            if made.view is None:
                made.let_go()
        return made

    def _made(
        self, item: MaterializedView, inputs: Sequence[Relation], ts: DataTs, frontiers: Frontiers
    ) -> tuple[View | None, TidemarkError | None]:
        """The view, or its error; neither where it is given up."""
        progress = frontiers.views.view(item.id)
        begun = False
        # Not the maintainer's: that is the ticks', which may be at another timestamp by now.
        errors: dict[str, TidemarkError] = {}
        try:
            view, goes_on = self._in_memory(item.id, progress, errors)
            if any(view.inputs[relation.id] is not relation for relation in inputs):
                return None, None  # one has got columns meanwhile
            if goes_on:
                self._maintainer.restore_alone(view, progress.upper)
                if view.state_ts is not None:
                    return view, None
            for relation in view.inputs.values():
                self._load(relation, ts, errors)
                told = frontiers.views.view(relation.id).error  # at ``ts``, where all that it reads is exact
                if told is not None:
                    errors[relation.id] = decode_error(told)
            if any(relation.since > ts for relation in inputs):
                return None, None  # one took so long that ``ts`` is not told apart any more
            self._check_topics([item.id])
            begun = True
            change = self._maintainer.evaluate_alone(view, ts, errors)
        except Exception as error:
            if begun:
                view.relation.reset()
            if any(relation.superseded for relation in inputs) or item.id not in self._inventory.catalog.objects:
                return None, None  # another one is in its place, or none
            failed = _failed(item.id, of_object(self._maintainer.spark, error))
            self._bind([failed], {}, frontiers, ts)
            return None, failed.error
        if change.error is not None and any(relation.superseded for relation in inputs):
            view.relation.reset()
            return None, None
        # It is at work anyway, so nobody is to blame besides.
        runs = self._written([change], {item.id: view.relation.columns}, lambda _: None)
        if item.id not in self._inventory.catalog.objects:
            view.relation.reset()
            return None, None
        if (pieces := len(runs.get(item.id, ()))) > BINDINGS_MAX:
            view.relation.reset()
            failed = _failed(item.id, _scattered(pieces))
            self._bind([failed], {}, frontiers, ts)
            return None, failed.error
        self._bind([change], runs, frontiers, ts)
        change.accept()
        return (view, None) if change.error is None else (None, change.error)

    def _take_over(self) -> bool:
        """Have what was made beside the ticks among the others; whether there was anything.  Raises what ended it."""
        job = self._job
        if job is None or not job.done:
            return False
        if job.failure is not None:
            raise job.failure
        self._job, made = None, job.made
        ours = job.view_id in self._inventory.views_of(self._cluster)
        if made.view is not None and ours and not any(r.superseded for r in made.view.inputs.values()):
            self._maintainer.install(made.view)
            self._maintainer.errors.pop(job.view_id, None)
            self._fresh[job.view_id] = made
        else:
            made.let_go()
        if made.error is not None and ours:
            self._maintainer.errors[job.view_id] = made.error
        log.info("it is no more beside the ticks", extra={"view": job.view_id, "there": made.view is not None})
        self._core.handle(Returned(job.view_id))
        return True

    def _release(self, view_id: str) -> None:
        if (made := self._fresh.pop(view_id, None)) is not None:
            made.let_go()


def _failed(view_id: str, error: TidemarkError) -> Change:
    """The change of a view that is not in memory."""
    return Change(view_id, _NO_ROWS, error, lambda: None)


def _scattered(runs: int) -> TidemarkError:
    """Tasks that were tried again have left their garbage between the rows of many others."""
    return Rejected(
        "what the view puts out lies in too many pieces", sqlstate="54000",
        detail=f"{runs} pieces of its topic, at most {BINDINGS_MAX}: tasks were tried again while others wrote",
        hint="it is made again when something that it reads changes",
    )  # fmt: skip


def _median_ms(seconds: Sequence[float]) -> float | None:
    return round(statistics.median(seconds) * 1000, 1) if seconds else None


def _succeeded(done: Future) -> bool:
    return done.done() and done.exception() is None


def _log_failure(done) -> None:
    error = done.exception()
    if error is not None:
        log.warning("a dropped view's progress was not forgotten", extra={"reason": str(error)})
