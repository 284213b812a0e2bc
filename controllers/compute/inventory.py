"""What a compute controller knows of its objects: their items, their relations, how far each is complete."""

from __future__ import annotations

import threading
from pathlib import Path

from immutables import Map
from pyspark.sql import SparkSession

from catalog_log.model import INDEX, MATERIALIZED_VIEW, Item
from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.protocol import ControllerState
from controllers.waiting import NOTHING
from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from oracle.client import Oracle
from oracle.completeness import complete_through_all
from oracle.state import OracleState
from oracle.views import ViewsState
from oracle.views_log import ViewsLog


class Frontiers:
    """Through when each collection is complete, by one pair of states; worked out when asked, then remembered."""

    def __init__(self, objects: Map, oracle: OracleState, views: ViewsState) -> None:
        self.oracle = oracle
        self.views = views
        self._objects = objects
        self._known: dict[str, DataTs] = {}

    def inputs_of(self, object_id: str) -> tuple[str, ...] | None:
        """The inputs of a materialized view, ``None`` for anything else."""
        item: Item | None = self._objects.get(object_id)
        return item.inputs if item is not None and item.kind == MATERIALIZED_VIEW else None

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

        A view's begins at its last tick: before that it may lag behind inputs that moved on between two ticks.
        """
        first = 0 if self.inputs_of(object_id) is None else max(0, self.views.view(object_id).upper - 1)
        return DataTs(first), self.complete(object_id)

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

    def __init__(self, spark: SparkSession, scratch: Path, feed: Feed, oracle: Oracle, views: ViewsLog) -> None:
        self._spark = spark
        self._scratch = scratch
        self._feed = feed
        self._oracle = oracle
        self._views = views
        self._relations: dict[str, Relation] = {}
        self._lock = threading.Lock()
        self.catalog = ControllerState()
        """As of the newest closed catalog timestamp."""

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
        item = self.item(object_id)
        with self._lock:
            found = self._relations.get(object_id)
            if found is None:
                found = self._relations[object_id] = Relation(self._spark, object_id, item.columns, self._scratch)
            return found

    def relation_through(self, object_id: str, through: DataTs) -> Relation:
        """The relation with everything through ``through``, at which it must be complete."""
        relation = self.relation(object_id)
        self._feed.catch_up(relation, self.item(object_id), through)
        return relation

    def relations(self) -> list[Relation]:
        with self._lock:
            return list(self._relations.values())

    def views_of(self, cluster: str) -> dict[str, Item]:
        """The materialized views that ``cluster`` maintains."""
        objects = self.catalog.objects
        return {i: o for i, o in objects.items() if o.kind == MATERIALIZED_VIEW and o.cluster_id == cluster}

    def indexes_of(self, cluster: str) -> dict[str, Item]:
        objects = self.catalog.objects
        return {i: o for i, o in objects.items() if o.kind == INDEX and o.cluster_id == cluster}

    def forget(self, object_id: str) -> None:
        """The object was dropped."""
        with self._lock:
            relation = self._relations.pop(object_id, None)
        if relation is not None:
            relation.close()
