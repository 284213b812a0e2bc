"""What a compute controller knows of its objects: their items, their relations, how far each is complete."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from immutables import Map
from pyspark.sql import SparkSession

from catalog_log import objects
from catalog_log.objects import INDEX, MATERIALIZED_VIEW, Item, MaterializedView
from controllers.at_work import AtWork
from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.protocol import Altered, ControllerState, Created, Dropped, Effect
from controllers.waiting import NOTHING
from journal.errors import InvalidUsage, Unavailable
from journal.timestamps import DataTs
from oracle.client import Oracle
from oracle.completeness import complete_through_all
from oracle.state import OracleState
from oracle.views import ViewsState
from oracle.views_log import ViewsLog

_NONE: Map = Map()


def layout(item: Item) -> tuple[tuple[int, str], ...]:
    """What a relation's rows are made of, whatever the columns are called."""
    return tuple((column.id, column.type) for column in item.stored) if isinstance(item, objects.Relation) else ()


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


class Inventory:
    """Relations by id, made when first needed.  Any thread may call it."""

    def __init__(
        self, spark: SparkSession, scratch: Path, feed: Feed, oracle: Oracle, views: ViewsLog, at_work: AtWork,
        uri: Callable[[Path], str] = str,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._scratch = scratch
        self._uri = uri
        self._feed = feed
        self._oracle = oracle
        self._views = views
        self._at_work = at_work
        self._relations: dict[str, Relation] = {}
        self._lock = threading.Lock()
        self._catalog = ControllerState()
        self._views_by: dict[str, Map] = {}
        self._indexes_by: dict[str, Map] = {}
        self._gone: deque[Item] = deque()
        self._outgrown: deque[Relation] = deque()

    @property
    def catalog(self) -> ControllerState:
        """As of the newest closed catalog timestamp."""
        return self._catalog

    def take(self, state: ControllerState, effects: Iterable[Effect]) -> None:
        """The catalog moved on to ``state``, by ``effects``.  What that costs is what changed.  One thread."""
        dropped, altered = [], []
        for effect in effects:
            match effect:
                case Created(_, item):
                    self._list(item, True)
                case Altered(_, before, item):
                    self._list(item, True)
                    if layout(before) != layout(item):
                        altered.append(item.id)
                case Dropped(_, item):
                    self._list(item, False)
                    dropped.append(item)
        self._catalog = state
        with self._lock:
            for object_id in altered:
                if (relation := self._relations.pop(object_id, None)) is not None:
                    self._outgrown.append(relation)
        # After it: whoever is told that something is gone finds it gone.
        self._gone.extend(dropped)

    def dropped(self) -> list[Item]:
        """What was dropped since this was last asked."""
        return [self._gone.popleft() for _ in range(len(self._gone))]

    def outgrown(self) -> list[Relation]:
        """Relations that are not what is stored any more, since their collections got columns; those that are new since
        this was last asked.  They go on as they are until whoever maintains views on them lets go of them."""
        return [self._outgrown.popleft() for _ in range(len(self._outgrown))]

    def _list(self, item: Item, there: bool) -> None:
        by = {MATERIALIZED_VIEW: self._views_by, INDEX: self._indexes_by}.get(item.kind)
        if by is None or item.cluster_id is None:
            return
        known = by.get(item.cluster_id, Map())
        if there:
            by[item.cluster_id] = known.set(item.id, item)
        elif item.id in known:
            by[item.cluster_id] = known.delete(item.id)

    def frontiers(self) -> Frontiers:
        """By the newest states of both journals (the views' first: it never knows more than the oracle then)."""
        views = self._views.state
        return Frontiers(self.catalog.objects, self._oracle.state, views)

    def item(self, object_id: str) -> Item:
        """Raises ``InvalidUsage`` 42P01 for an object that is not there (any more)."""
        item = self.catalog.objects.get(object_id)
        if item is None:
            raise InvalidUsage(f"relation {object_id} was dropped", sqlstate="42P01")
        return item

    def relation(self, object_id: str) -> Relation:
        """The relation of a collection, whatever it holds so far."""
        with self._lock:  # also while the item is looked up: it may be getting columns
            item = self.item(object_id)
            found = self._relations.get(object_id)
            if found is None:
                found = Relation(self._spark, object_id, item.stored, self._scratch, self._uri)
                self._relations[object_id] = found
            return found

    def relation_through(self, object_id: str, through: DataTs) -> Relation:
        """The relation with everything through ``through``, at which it must be complete.

        Raises as :meth:`controllers.compute.feed.Feed.catch_up`, and 58000 where it is in quarantine.
        """
        while True:
            relation = self.relation(object_id)
            try:
                self.bring(relation, through)
            except Unavailable:
                if relation.superseded:
                    continue
                raise
            return relation

    def bring(self, relation: Relation, through: DataTs) -> None:
        """Bring ``relation``, which may be one that was outgrown meanwhile, to ``through``.  Raises likewise."""
        refused = self._at_work.refused(relation.id)
        if refused is not None:
            raise refused
        self._feed.catch_up(relation, self.item(relation.id), through)

    def relations(self) -> list[Relation]:
        with self._lock:
            return list(self._relations.values())

    def views_of(self, cluster: str) -> Map:
        """The materialized views that ``cluster`` maintains, ``Map[str, Item]``: the same object while they are."""
        return self._views_by.get(cluster, _NONE)

    def indexes_of(self, cluster: str) -> Map:
        """The indexes of ``cluster``, likewise."""
        return self._indexes_by.get(cluster, _NONE)

    def forget(self, object_id: str) -> None:
        """The object was dropped."""
        with self._lock:
            relation = self._relations.pop(object_id, None)
        if relation is not None:
            relation.close()
