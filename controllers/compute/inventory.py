"""What a compute controller knows of its objects: their items and their relations."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from immutables import Map
from pyspark.sql import SparkSession

from catalog_log import objects
from catalog_log.objects import INDEX, MATERIALIZED_VIEW, Item, MaterializedView
from controllers.at_work import AtWork
from controllers.compute.core import Known
from controllers.compute.feed import Feed
from controllers.compute.frontiers import Frontiers
from controllers.compute.operators.given import RESIDENT_ROWS_MAX
from controllers.compute.relation import Relation
from controllers.compute.running import MUCH_ROWS
from controllers.protocol import Altered, ControllerState, Created, Dropped, Effect
from journal.errors import InvalidUsage, Unavailable
from journal.timestamps import DataTs
from oracle.client import Oracle
from oracle.views_log import ViewsLog

_NONE: Map = Map()


def layout(item: Item) -> tuple[tuple[int, str], ...]:
    """What a relation's rows are made of, whatever the columns are called."""
    return tuple((column.id, column.type) for column in item.stored) if isinstance(item, objects.Relation) else ()


class Reads(NamedTuple):
    """A view as of one closed catalog timestamp: its relation and those that it reads have the columns of then."""

    catalog: ControllerState
    item: MaterializedView
    relation: Relation
    inputs: Mapping[str, Relation]


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
        self._kept_by_ticks: tuple[Map, frozenset[str]] = _NONE, frozenset()
        """Views of the cluster that was asked of last, and what they are and read."""
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
        with self._lock:  # at once: relations are those of the catalog that there is
            self._catalog = state
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

    def known(self, cluster: str) -> Known:
        """What is known now, as of one closed catalog timestamp."""
        views = self._views.state
        catalog = self.catalog
        frontiers = Frontiers(catalog.objects, self._oracle.state, views)
        return Known(catalog, self.views_of(cluster), frontiers)

    def item(self, object_id: str) -> Item:
        """Raises ``InvalidUsage`` 42P01 for an object that is not there (any more)."""
        item = self.catalog.objects.get(object_id)
        if item is None:
            raise InvalidUsage(f"relation {object_id} was dropped", sqlstate="42P01")
        return item

    def relation(self, object_id: str) -> Relation:
        """The relation of a collection, whatever it holds so far."""
        with self._lock:
            return self._relation(object_id)

    def _relation(self, object_id: str) -> Relation:
        """The lock is held, also while the item is looked up: it may be getting columns."""
        item = self.item(object_id)
        found = self._relations.get(object_id)
        if found is None:
            found = Relation(self._spark, object_id, item.stored, self._scratch, self._uri)
            self._relations[object_id] = found
        return found

    def reads(self, view_id: str) -> Reads:
        """What somebody needs who plans the view: whatever comes meanwhile, a plan by that catalog fits these
        relations.  Raises as :meth:`item`."""
        with self._lock:
            item = self.item(view_id)
            inputs = {each: self._relation(each) for each in item.inputs}
            return Reads(self._catalog, item, self._relation(view_id), inputs)

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

    def relation_at(self, object_id: str, as_of: DataTs, reads: ExitStack) -> Relation:
        """The relation for a read at ``as_of``, at which it must be complete; readable there until ``reads`` ends.

        Below what the relation of everybody tells apart it is one that is loaded for this read: the logs know more than
        is held in memory for views.  Raises as :meth:`relation_through`, and 22023 where they do not either.
        """
        relation = self.relation_through(object_id, as_of)
        reads.callback(relation.hold(as_of))
        if relation.tells_apart(as_of):
            return relation
        item = self.item(object_id)
        past = Relation(self._spark, object_id, item.stored, self._scratch, self._uri)
        reads.callback(past.close)
        self._feed.catch_up(past, item, as_of)
        past.check_readable(as_of)
        return past

    def many(self, object_id: str) -> bool:
        """Whether a relation that is loaded for one read would be too large for this process."""
        return self._feed.rows(self.item(object_id)) > RESIDENT_ROWS_MAX

    def bring(self, relation: Relation, through: DataTs) -> None:
        """Bring ``relation``, which may be one that was outgrown meanwhile, to ``through``.  Raises likewise."""
        refused = self._at_work.refused(relation.id)
        if refused is not None:
            raise refused
        self._feed.catch_up(relation, self.item(relation.id), through)

    def reads_much(self, view_id: str) -> bool:
        """Whether evaluating a view as a whole takes so long that no tick is to wait for it."""
        return self.rows_read(view_id) >= MUCH_ROWS

    def rows_read(self, view_id: str) -> int:
        """How many changes there are in all that a view reads, about."""
        item = self.catalog.objects.get(view_id)
        return sum(map(self._rows, item.inputs)) if isinstance(item, MaterializedView) else 0

    def _rows(self, object_id: str) -> int:
        """Changes of a collection, about."""
        item, relation = self.catalog.objects.get(object_id), self._relations.get(object_id)
        if item is None:
            return 0
        return relation.rows if relation is not None and relation.upper else self._feed.rows(item)

    def relations(self) -> list[Relation]:
        with self._lock:
            return list(self._relations.values())

    def forget_history(self, cluster: str, horizon: DataTs) -> None:
        """Let relations tell apart nothing below ``horizon`` any more, but for what views of ``cluster`` are and read:
        those go by what the views were brought to.  One thread."""
        views, kept = self._views_by.get(cluster, _NONE), self._kept_by_ticks
        if kept[0] is not views:
            names = frozenset(i for view_id, item in views.items() for i in (view_id, *item.inputs))
            kept = self._kept_by_ticks = views, names
        for relation in self.relations():
            if relation.id not in kept[1]:
                relation.allow_compaction(horizon)

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
