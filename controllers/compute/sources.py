"""What the queries of one tick read, made once however many views read it, and given back when the tick is over."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from sqlglot import exp

from collection.columns import DIFF
from controllers.compute.failures import Interrupted, ResultTooLarge, of_spark
from controllers.compute.outlet import Outlet
from controllers.compute.relation import Relation, Snapshot, own_name
from controllers.compute.running import MUCH_ROWS
from controllers.compute.sought import Sought
from journal.timestamps import DataTs

_serial = itertools.count()

T = TypeVar("T")

_OF_QUERIES = ("42", "0A")
"""Classes of what Spark says of a query, whatever its rows."""


class Sources(AbstractContextManager):
    """Queries for relations at timestamps.  Use as a context: what they read lives until its end.  Thread-safe."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.outlet: Outlet | None = None
        """Where the rows of the view go that is evaluated, where they are many."""
        self._lock = threading.RLock()
        self._snapshots: dict[tuple[Relation, int, tuple[Sought, ...]], Snapshot] = {}
        self._tables: dict[tuple[Relation, int, int], pa.Table] = {}
        self._deltas: dict[tuple[Relation, int, int], str] = {}
        self._present: dict[tuple[Relation, int], pa.Table | None] = {}
        self.apart = False
        """Whether rows are asked for so that nothing is tried on those that went."""

    def by(self, outlet: Outlet) -> Sources:
        """The same for one view, with where its rows go; whoever has this one closes it."""
        found = copy.copy(self)
        found.outlet = outlet
        return found

    def answer(self, ask: Callable[[Sources], T]) -> T:
        """What ``ask`` gives, which reads :meth:`rows`, :meth:`diffs` or :meth:`resident`.  Raises what Spark throws.

        Conditions and calls are tried on changes before these are added up, which leaves most of them out early; so one
        may fail on a row that is not there any more.  Where something fails it is asked again such that none does.
        """
        try:
            return ask(self)
        except Exception as error:
            failure = of_spark(error)
            if failure is None or isinstance(failure, Interrupted | ResultTooLarge) or not self._may_have_gone():
                raise
            found = copy.copy(self)
            found.apart = True
            try:
                return ask(found)
            except Exception as again:
                if (other := of_spark(again)) is not None and (other.sqlstate or "").startswith(_OF_QUERIES):
                    raise error from None  # it is not to be asked so
                raise

    def _may_have_gone(self) -> bool:
        """Whether there is a change of what was asked for that is no row which came."""
        with self._lock:
            return not all(snapshot.plain for snapshot in self._snapshots.values())

    @property
    def much(self) -> int:
        """The rows of what was asked for so far, changes apart, where they are many; 0 where they are not."""
        with self._lock:
            rows = sum(relation.rows for relation, *_ in self._snapshots)
        return rows if rows >= MUCH_ROWS else 0

    def rows(self, relation: Relation, as_of: DataTs) -> exp.Expression:
        """The rows of ``relation`` at ``as_of``, each as often as it occurs."""
        return self.snapshot(relation, as_of).rows(self.apart)

    def diffs(self, relation: Relation, as_of: DataTs, diff: str = DIFF) -> exp.Expression:
        """The same with ``diff``, not consolidated where nothing failed.  Nothing at all for ``as_of`` before every
        timestamp."""
        return relation.nothing(diff) if as_of < 0 else self.snapshot(relation, as_of).diffs(diff, self.apart)

    def changed(self, relation: Relation, after: DataTs, through: DataTs) -> bool:
        """Whether ``relation`` differs between the two timestamps."""
        return self.table(relation, after, through).num_rows > 0

    def delta(self, relation: Relation, after: DataTs, through: DataTs, diff: str = DIFF) -> exp.Expression:
        """The changes of ``(after, through]`` with ``diff``, consolidated."""
        key = (relation, after, through)
        with self._lock:
            if key in self._deltas:
                return relation.of_local(self._deltas[key], diff)
            view = own_name(f"delta_{next(_serial)}")
            made = relation.local(self.table(relation, after, through), view, diff)
            self._deltas[key] = view
            return made

    def table(self, relation: Relation, after: DataTs, through: DataTs) -> pa.Table:
        """The same as a table: columns by position, then ``__diff``."""
        key = (relation, after, through)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = relation.delta(after, through)
            return self._tables[key]

    def resident(self, relation: Relation, as_of: DataTs) -> pa.Table | None:
        """The same as of :meth:`diffs`, in memory: columns by position; ``None`` where they are too many for that."""
        return relation.resident(as_of, self.apart)

    def present(self, relation: Relation, as_of: DataTs) -> pa.Table | None:
        """The rows of ``relation`` at ``as_of``, each as often as it occurs, its columns by their names; ``None`` where
        they are too many to be held in memory."""
        key = (relation, as_of)
        with self._lock:
            if key not in self._present:
                self._present[key] = relation.present(as_of)
            return self._present[key]

    def snapshot(
        self, relation: Relation, as_of: DataTs, sought: Sequence[Sought] = (), own: pa.Table | None = None
    ) -> Snapshot:
        """What :meth:`rows` and :meth:`diffs` are of, but perhaps for rows for which not all of ``sought`` are true;
        ``own`` as of :meth:`~controllers.compute.relation.Relation.snapshot`.  It lives as long as this."""
        key = (relation, as_of, tuple(sought))
        with self._lock:
            if key not in self._snapshots:
                self._snapshots[key] = relation.snapshot(as_of, key[2], own)
            return self._snapshots[key]

    def close(self) -> None:
        with self._lock:
            for snapshot in self._snapshots.values():
                snapshot.release()
            for (relation, _, _), view in self._deltas.items():
                relation.handing.take_back(view)
            self._snapshots, self._deltas, self._tables, self._present = {}, {}, {}, {}

    def __exit__(self, *exc: object) -> None:
        self.close()
