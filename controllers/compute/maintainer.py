"""A tick without its log: bring the views that need it to one timestamp, in dependency order.

Promises: every view of a tick is evaluated at the same ``t1``, after the views that it reads; a view whose own query
fails, or that reads one in error, is in error at ``t1`` and every other view is not; a view none of whose inputs
changed is not evaluated, and where none needs to be, no Spark job runs.  Knows Spark, no Kafka.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from catalog_log.settings import AUTO, PROCESS
from collection.rows import ROW_BYTES_MAX, encode
from controllers.changes import stamp
from controllers.compute.core import inherited
from controllers.compute.failures import of_object
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.process import Process
from controllers.compute.ordering import levels
from controllers.compute.outlet import Outlet
from controllers.compute.relation import Relation
from controllers.compute.session import TICK_POOL
from controllers.compute.sources import Sources
from controllers.compute.view import Change, View
from journal.errors import Rejected, TidemarkError
from journal.timestamps import DataTs

log = logging.getLogger(__name__)

PARALLEL_VIEWS = 4
"""Views of one level that Spark evaluates at once: planning of one overlaps execution of another (FACTS: 4).  What is
evaluated in this process is so one after the other: threads would take Python's lock from each other (eight views: 16
ms a tick instead of 20)."""


class Maintainer:
    """The maintained views of one cluster.  ``tick`` and ``install`` are called by one thread at a time."""

    def __init__(
        self, spark: SparkSession, gear: Callable[[], str] = lambda: AUTO,
        outlet: Callable[[Relation], Outlet | None] = lambda _: None,
    ) -> None:  # fmt: skip
        """``gear()``: what the cluster is told of its gears.  ``outlet`` gives where the rows of the view go that has
        that relation, where they are many."""
        self.spark = spark
        self._gear = gear
        self._outlet = outlet
        self._process = Process()
        self.views: dict[str, View] = {}
        self.errors: dict[str, TidemarkError] = {}
        """Views in error, with what they said when last evaluated."""
        self.unwritable: dict[str, TidemarkError] = {}
        """Views whose output cannot be written, and why: they are in error too, without being evaluated."""
        self._pool = ThreadPoolExecutor(
            PARALLEL_VIEWS, thread_name_prefix="tick", initializer=_use_pool, initargs=(spark, TICK_POOL)
        )

    def install(self, view: View) -> None:
        """Maintain ``view`` from the next tick on."""
        self.views[view.id] = view

    def make(self, relation: Relation, lowered: Lowered, inputs: Mapping[str, Relation]) -> View:
        """A view that nobody maintains yet.  ``relation`` is its output, with what it holds already; ``lowered`` its
        query as each engine is told it."""
        view = View(relation, lowered, inputs, self.spark, self._process, self._gear)
        view.outlet = self._outlet(relation)
        return view

    def remove(self, view_id: str) -> None:
        """The view was dropped."""
        self.views.pop(view_id, None)
        self.errors.pop(view_id, None)
        self.unwritable.pop(view_id, None)

    def evaluate(self, view_ids: Iterable[str], t1: DataTs) -> list[Change]:
        """The changes of these views at ``t1``, readers after what they read.

        Each change is put into the view's own relation at once (at ``t1``; nobody may read there before the log says
        so), for the views that read it.  Call :meth:`accept` when all are committed; if that fails, stop the process.
        """
        todo = [v for v in view_ids if v in self.views]
        done: dict[str, Change] = {}
        with Sources(self.spark) as sources:
            for level in levels({v: self.views[v].inputs.keys() for v in todo}):
                self._advance_idle(level, done, t1)
                by_spark = [v for v in level if self.views[v].gears.last != PROCESS]
                here = [v for v in level if self.views[v].gears.last == PROCESS]
                for change in self._run(by_spark, lambda v: self._one(v, sources, done, t1), here):
                    done[change.view_id] = self._put(self.views[change.view_id], change, t1)
        return list(done.values())

    def evaluate_alone(self, view: View, t1: DataTs, errors: Mapping[str, TidemarkError]) -> Change:
        """The change of one view that is not among those that are maintained; on any thread.  All that it reads is
        known through ``t1``, where those are in error that have ``errors``; the change is put into its relation, as by
        :meth:`evaluate`."""
        with Sources(self.spark) as sources:
            return self._put(view, self._changed(view, inherited(view.inputs, {}, errors), sources, t1), t1)

    def restore_alone(self, view: View, upper: DataTs) -> None:
        """As :meth:`restore`, likewise."""
        with Sources(self.spark) as sources:
            self._restore(view, upper, sources)

    def accept(self, changes: Sequence[Change]) -> None:
        """The changes are committed: what the views hold moves on."""
        for change in changes:
            change.accept()
            if change.error is None:
                self.errors.pop(change.view_id, None)
            else:
                self.errors[change.view_id] = change.error

    def restore(self, views: Sequence[tuple[View, DataTs]]) -> None:
        """After a restart: let views find again what they held at their upper."""
        with Sources(self.spark) as sources:
            self._run(views, lambda pair: self._restore(*pair, sources))

    def _restore(self, view: View, upper: DataTs, sources: Sources) -> None:
        try:
            view.restore(sources, upper)
        except Exception as error:
            why = of_object(self.spark, error).message
            log.warning("a view could not be restored", extra={"view": view.id, "why": why})
            view.state_ts = None  # the whole query is asked next, and what that says is the view's error

    def run_pool(self, items: Sequence, function) -> list:
        """Run ``function`` on each item in the tick's threads; the first failure is raised when all are done."""
        return self._run(items, function)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _put(self, view: View, change: Change, t1: DataTs) -> Change:
        """``change``, put into the view's own relation; or the view's error, where it cannot be."""
        try:
            change = _writable(view, change)
            if change.rows.num_rows or change.sent.files:
                rows = stamp(change.rows, t1, view.relation.types)
                view.relation.append([rows], DataTs(t1 + 1), change.sent.files)
        except Exception as error:
            for file in change.sent.files:
                file.path.unlink(missing_ok=True)
            change = view.fail(of_object(self.spark, error))
        view.relation.advance(DataTs(t1 + 1))
        return change

    def _one(self, view_id: str, sources: Sources, done: dict[str, Change], t1: DataTs) -> Change:
        view = self.views[view_id]
        inputs = {i: change.error for i, change in done.items()}
        return self._changed(view, inherited(view.inputs, inputs, self.errors), sources, t1)

    def _changed(self, view: View, error: TidemarkError | None, sources: Sources, t1: DataTs) -> Change:
        """``error`` is that of what it reads."""
        error = self.unwritable.get(view.id, error)
        if error is not None:
            return view.fail(error)
        try:
            return view.evaluate(sources, t1)
        except Exception as error:
            return view.fail(of_object(self.spark, error))

    def _advance_idle(self, level: Sequence[str], done: dict[str, Change], t1: DataTs) -> None:
        """Views that this level reads and that do not change at ``t1`` are complete there too."""
        for view_id in level:
            for input_id, relation in self.views[view_id].inputs.items():
                if input_id in self.views and input_id not in done and relation.upper <= t1:
                    relation.advance(DataTs(t1 + 1))

    def _run(self, items: Sequence, function, here: Sequence = ()) -> list:
        """``function`` of each of ``items`` in the tick's threads, and meanwhile of those ``here`` in this one."""
        if len(items) == 1 and not here:
            items, here = (), items
        futures = [self._pool.submit(function, item) for item in items]
        _use_pool(self.spark, TICK_POOL)
        found, errors = [], []
        for item in here:
            try:
                found.append(function(item))
            except Exception as error:
                errors.append(error)
        errors += [e for f in futures if (e := f.exception()) is not None]
        if errors:
            raise errors[0]
        return [*(f.result() for f in futures), *found]


def _writable(view: View, change: Change) -> Change:
    """``change``, or the view's error if one of its rows is larger than a record may be."""
    if change.rows.nbytes <= ROW_BYTES_MAX:
        return change
    try:
        for _ in encode(view.relation.columns, change.rows, ""):
            pass
    except Rejected as error:
        return view.fail(error)
    return change


_pools = threading.local()


def _use_pool(spark: SparkSession, pool: str) -> None:
    if getattr(_pools, "name", None) != pool:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        _pools.name = pool


