"""Through when each collection of a controller is complete, and since when it is exact.  Pure."""

from __future__ import annotations

from immutables import Map

from catalog_log.objects import Item, MaterializedView
from controllers.waiting import NOTHING
from journal.timestamps import DataTs
from oracle.completeness import complete_through_all
from oracle.state import OracleState
from oracle.views import ViewsState


class Frontiers:
    """Through when each collection is complete, by one pair of states; worked out when asked, then remembered."""

    def __init__(self, objects: Map, oracle: OracleState, views: ViewsState) -> None:
        self.oracle = oracle
        self.views = views
        self._objects = objects
        self._known: dict[str, DataTs] = {}
        self._firsts: dict[str, int] = {}

    def inputs_of(self, object_id: str) -> tuple[str, ...] | None:
        """The inputs of a materialized view, ``None`` for anything else."""
        item: Item | None = self._objects.get(object_id)
        return item.inputs if item is not None and isinstance(item, MaterializedView) else None

    def complete(self, object_id: str) -> DataTs:
        """The newest timestamp at which the collection is complete."""
        found = self._known.get(object_id)
        if found is None:
            if object_id not in self._objects:
                found = NOTHING
            elif self.inputs_of(object_id) is None:
                found = self.oracle.last_ts
            else:
                found = complete_through_all((object_id,), self.inputs_of, self.oracle, self.views)[object_id]
            self._known[object_id] = found
        return found

    def exact(self, object_id: str) -> tuple[DataTs, DataTs]:
        """The newest stretch of timestamps, both ends inclusive, at which the collection may be read.

        A view's begins at its last tick: before that it may lag behind inputs that moved on between two ticks.  And no
        sooner than those of the views that it reads: what changed in them since their tick before is told of as one
        change at their last one, so whoever did not move with them cannot tell what they were in between.
        """
        complete = self.complete(object_id)  # first: it refuses views that depend on each other in a circle
        return DataTs(self._first(object_id)), complete

    def _first(self, object_id: str) -> int:
        stack = [object_id]
        while stack:  # not recursive: views may be stacked deeper than Python's call stack
            each = stack.pop()
            if each in self._firsts:
                continue
            inputs = self.inputs_of(each)
            if inputs is None:
                self._firsts[each] = 0
            elif unknown := [i for i in inputs if i not in self._firsts]:
                stack += [each, *unknown]
            else:
                own = max(0, self.views.view(each).upper - 1)
                self._firsts[each] = max([own, *(self._firsts[i] for i in inputs)])
        return self._firsts[object_id]

    def last_change(self, object_id: str) -> int | None:
        """When the collection changed last."""
        if self.inputs_of(object_id) is None:
            return self.oracle.last_change(object_id)
        return self.views.view(object_id).last_change

    def changed_since(self, object_id: str, from_ts: int) -> bool:
        """Whether the collection changed at or after ``from_ts``."""
        last = self.last_change(object_id)
        return last is not None and last >= from_ts
