"""How far each materialized view has come and what it put out: the fold of ``<env>.views`` (DESIGN §5, §6).  Pure.

Promises: a view's output at a timestamp is committed at most once, by the holder of the cluster's newest epoch only (a
zombie's commit is refused by every reader), and a tick's views all move or none does.  A view below whose upper nothing
is missing stays definite (I5).  Drop a view and it starts again at upper 0; ids are never used twice, so nobody does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import immutables

from journal.api import Entry
from journal.fences import Fences
from journal.timestamps import DataTs
from oracle.bindings import NOTHING, Bound, BoundRuns, bind, coalesce, cover, refused
from oracle.errors import Reason, SnapshotTooOld
from oracle.growing import Growing
from oracle.model import Outcome, Verdict
from oracle.one_verdict import Stats, fold_one
from oracle.views_records import ViewCommit, ViewsKind, ViewsRecord, decode_views_record


class ErrorAt(NamedTuple):
    """From ``ts`` on the view has no contents because of ``error``; ``None``: it has again."""

    ts: int
    error: str | None


def _ts_of(change: ErrorAt) -> int:
    return change.ts


class View(NamedTuple):
    """What the fold keeps of one view."""

    upper: int = 0
    bound: Bound = NOTHING
    errors: Growing[ErrorAt] = Growing()
    """Each change from or to an error, and first of all the commit that hydrated it."""
    last_change: int | None = None
    """Newest timestamp at which its contents changed, an error coming or going included."""


NEW = View()


def is_hot(view: View) -> bool:
    """Whether a COMPACT may find something to merge."""
    return bool(view.bound.recent) or len(view.errors) > 1


class ViewProgress(NamedTuple):
    """What readers see of a view."""

    view: View
    since: DataTs

    @property
    def upper(self) -> DataTs:
        """Every timestamp below it is maintained; 0: not hydrated yet."""
        return DataTs(self.view.upper)

    @property
    def runs(self) -> BoundRuns:
        """Its output.  Good at ``ts`` above the upper too, as long as :mod:`oracle.completeness` says complete."""
        return BoundRuns(self.view.bound, self.since)

    @property
    def error(self) -> str | None:
        """The error in force at the newest maintained timestamp, or ``None``."""
        return self.view.errors[-1].error if self.view.errors else None

    def error_at(self, ts: int) -> str | None:
        """The error in force at ``ts``, or ``None``.  Raises :class:`~oracle.errors.SnapshotTooOld` below ``since``."""
        if ts < self.since:
            raise SnapshotTooOld("snapshot too old", detail=f"asked for {ts}, the oldest that is kept is {self.since}")
        at = self.view.errors.first_after(ts, _ts_of)
        return self.view.errors[at - 1].error if at else None

    @property
    def last_change(self) -> DataTs | None:
        """The newest timestamp at which its contents changed."""
        return None if self.view.last_change is None else DataTs(self.view.last_change)

    def first_change(self, from_ts: int) -> int | None:
        """As :meth:`oracle.bindings.BoundRuns.first_change`, an error coming or going being a change too."""
        if self.view.last_change is None or self.view.last_change < from_ts:
            return None
        errors = self.view.errors
        at = errors.first_at_or_after(from_ts, _ts_of)
        if at == 0 and errors[0].ts <= self.since:
            return from_ts  # what was before it was merged and may have been a change as well
        changes = (self.runs.first_change(from_ts), errors[at].ts if at < len(errors) else None)
        return min(ts for ts in changes if ts is not None)


class ViewsState(NamedTuple):
    """A fold of the topic up to (not including) ``next_offset``."""

    next_offset: int = 0
    since: DataTs = DataTs(0)
    epochs: immutables.Map[str, int] = immutables.Map()
    views: immutables.Map[str, View] = immutables.Map()
    hot: immutables.Map[str, None] = immutables.Map()
    """Views with history that was not merged yet: what the next COMPACT has to look at."""
    fences: Fences = Fences()
    stats: Stats = Stats()

    def epoch(self, cluster: str) -> int:
        """The epoch in force for ``cluster``; 0: nobody ever claimed it."""
        return self.epochs.get(cluster, 0)

    def view(self, view_id: str) -> ViewProgress:
        """How far ``view_id`` has come; upper 0 if it is unknown."""
        return ViewProgress(self.views.get(view_id, NEW), self.since)


NO_VIEWS = ViewsState()


def fold_views(state: ViewsState, entry: Entry) -> tuple[ViewsState, Outcome]:
    """The state after ``entry`` and what became of it.  Never raises for anything that a record may hold."""
    return fold_one(state, entry, decode_views_record, _APPLY)


def _claim(state: ViewsState, record: ViewsRecord) -> tuple[ViewsState, Verdict]:
    epoch = state.epoch(record.cluster)
    if record.expected_epoch != epoch:
        detail = f"{record.cluster} is at epoch {epoch}, expected {record.expected_epoch}"
        return state, Verdict(0, Reason.STALE_EPOCH, detail, epoch)
    return state._replace(epochs=state.epochs.set(record.cluster, record.epoch)), Verdict(record.epoch)


def _commit(state: ViewsState, record: ViewsRecord) -> tuple[ViewsState, Verdict]:
    epoch = state.epoch(record.cluster)
    if record.epoch != epoch:
        return state, Verdict(0, Reason.STALE_EPOCH, f"{record.cluster} is at epoch {epoch}", epoch)
    views, hot = state.views, state.hot
    for each in record.views:
        moved = _move(views.get(each.view_id, NEW), each, record.ts)
        if isinstance(moved, Verdict):
            return state, moved
        views = views.set(each.view_id, moved)
        if each.view_id not in hot and is_hot(moved):
            hot = hot.set(each.view_id, None)
    return state._replace(views=views, hot=hot), Verdict(record.ts)


def _move(view: View, commit: ViewCommit, ts: int) -> View | Verdict:
    """``view`` with ``commit`` at ``ts``, or why not."""
    if commit.expected_upper != view.upper or ts + 1 <= view.upper:
        detail = f"{commit.view_id} is at {view.upper}, expected {commit.expected_upper}, to be moved to {ts + 1}"
        return Verdict(0, Reason.STALE_UPPER, detail, view.upper, commit.view_id)
    bound, errors, last_change = view.bound, view.errors, view.last_change
    for run in commit.runs:
        if found := refused(bound.coverage, run, False):
            return Verdict(0, found[0], f"{commit.view_id}: {found[1]}", view.upper, commit.view_id)
        bound = bind(bound, ts, run, cover(bound.coverage, run))
    # The first commit is a change even without rows: before it the view was unknown, from it on it is empty.
    if not errors or commit.error != errors[-1].error:
        errors = errors.append(ErrorAt(ts, commit.error))
        last_change = ts
    if commit.runs:
        last_change = ts
    return View(ts + 1, bound, errors, last_change)


def _drop(state: ViewsState, record: ViewsRecord) -> tuple[ViewsState, Verdict]:
    views, hot = state.views, state.hot
    for name in record.names:
        views = views.delete(name) if name in views else views
        hot = hot.delete(name) if name in hot else hot
    return state._replace(views=views, hot=hot), Verdict()


def _compact(state: ViewsState, record: ViewsRecord) -> tuple[ViewsState, Verdict]:
    """As the oracle's: a record, because readers must agree what is too old; never beyond what any view has reached."""
    reached = max((view.upper for view in state.views.values()), default=0) - 1
    since = DataTs(max(state.since, min(record.ts, reached)))
    views, hot = state.views, state.hot
    for view_id in state.hot:
        view = views[view_id]
        kept = max(view.errors.first_after(since, _ts_of) - 1, 0)  # the one in force at since still counts
        errors = Growing(view.errors.slice(kept)) if kept else view.errors
        view = view._replace(bound=coalesce(view.bound, since), errors=errors)
        views = views.set(view_id, view)
        if not is_hot(view):
            hot = hot.delete(view_id)
    return state._replace(since=since, views=views, hot=hot), Verdict(since)


def _nothing(state: ViewsState, _record: ViewsRecord) -> tuple[ViewsState, Verdict]:
    return state, Verdict()


_APPLY: dict[ViewsKind, Callable[[ViewsState, ViewsRecord], tuple[ViewsState, Verdict]]] = {
    ViewsKind.CLAIM: _claim,
    ViewsKind.COMMIT: _commit,
    ViewsKind.DROP: _drop,
    ViewsKind.COMPACT: _compact,
    ViewsKind.FENCE: _nothing,
}
