"""What sinks know of the journals: when a collection is complete, and what is bound of it.  Any thread.

The oracle's is the controller's own; those of views and segments are opened when the first sink needs them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from catalog_log.objects import Item, MaterializedView, Relation, view_inputs
from controllers.commands import STORAGE
from journal.errors import Unavailable
from journal.names import TopicNames
from oracle.bindings import BoundRuns
from oracle.client import Oracle
from oracle.completeness import complete_through
from oracle.state import OracleState
from oracle.views import ViewsState
from oracle.views_log import ViewsLog
from segments.log import SegmentsLog
from segments.reader import of_environment
from segments.store import Store

SINCE_TIMEOUT_S = 30.0
"""For a journal to get to where the log of segments is, which was written after it."""


class Journals:
    """Close it once nobody uses it any more."""

    def __init__(
        self, bootstrap: str, names: TopicNames, oracle: Oracle, store: Store | None,
        objects: Callable[[], Mapping[str, Item]],
    ) -> None:  # fmt: skip
        """``objects``: what there is now, by id."""
        self.oracle = oracle
        self._bootstrap, self._names = bootstrap, names
        self._whole_store = store
        self._objects = objects
        self._lock = threading.Lock()
        self._views: ViewsLog | None = None
        self.segments: SegmentsLog | None = None
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        if self._store is None:
            raise Unavailable("rows are in files of a store that this process was not told of",
                              hint="start it with --store")  # fmt: skip
        return self._store

    def open(self) -> None:
        """Have the journals of views and segments, too.  Raises ``Unavailable``, ``FatalLog``."""
        with self._lock:
            if self._views is None:
                self._views = ViewsLog.open(self._bootstrap, self._names, STORAGE)
            if self.segments is None:
                self.segments = SegmentsLog.open(self._bootstrap, self._names, STORAGE)
                self._store = of_environment(self._whole_store, self.segments)

    @property
    def views(self) -> ViewsLog:
        assert self._views is not None, "open it first"
        return self._views

    def bound(self, relation: Relation) -> BoundRuns:
        """What is bound of ``relation``, by a state in which no timestamp below what is in files is told apart: the
        files do not say when a row came."""
        assert self.segments is not None, "open it first"
        journal = self.views if isinstance(relation, MaterializedView) else self.oracle
        sealed = self.segments.state.sealed(relation.id).through
        found = _bound_in(journal.state, relation)
        if found.since < sealed:
            state = journal.when(lambda state: _bound_in(state, relation).since >= sealed, SINCE_TIMEOUT_S).result()
            found = _bound_in(state, relation)
        return found

    def complete(self, relation: Relation) -> int:
        """Through when ``relation`` is complete; -1 where that is never yet."""
        if not isinstance(relation, MaterializedView):
            return self.oracle.state.last_ts
        objects = self._objects()

        def inputs_of(name: str) -> tuple[str, ...] | None:
            item = objects.get(name)
            return view_inputs(item) if isinstance(item, MaterializedView) else None

        if inputs_of(relation.id) is None:  # dropped: the sink goes, too
            return -1
        return complete_through(relation.id, inputs_of, self.oracle.state, self.views.state)

    def error(self, relation: Relation) -> str | None:
        """Why ``relation`` has no contents now."""
        return self.views.state.view(relation.id).error if isinstance(relation, MaterializedView) else None

    def follow(self, moved: Callable[[], None]) -> Callable[[], None]:
        """Call ``moved`` whenever one may have moved on, on its reader's thread; what is returned ends that."""
        ends = [self.oracle.subscribe(lambda *_: moved()), self.views.subscribe(lambda *_: moved())]
        return lambda: [end() for end in ends] and None

    def failed(self) -> Exception | None:
        """What stopped one for good, or ``None``."""
        views, segments = self._views, self.segments
        return (views and views.failed) or (segments and segments.failed) or None

    def close(self) -> None:
        with self._lock:
            for each in (self._views, self.segments):
                if each is not None:
                    each.close()


def _bound_in(state: OracleState | ViewsState, relation: Relation) -> BoundRuns:
    """By a state of the journal that binds what ``relation`` holds."""
    return state.view(relation.id).runs if isinstance(relation, MaterializedView) else state.bindings(relation.id)
