"""The arrangements of a cluster's indexes: followed as their relations change, read without Spark.

Promises: a lookup at ``as_of`` sees the relation exactly as of then, because it brings the arrangement there first if
it is behind (usually it is not: a thread follows).  A relation too large to be held disables its index, with the
reason in the status, until there is much less of it, and its reads go to Spark; so does a mistake.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from catalog_log.objects import Item
from collection.columns import sql_type
from controllers.arrangements.arrangement import ROWS_MAX, Arrangement, TooLarge
from controllers.arrangements.residual import Residual, TooManyRows, compile_residual
from controllers.arrangements.tuples import Row, canonical, to_rows
from controllers.at_work import AtWork
from controllers.changes import TS
from controllers.compute.frontiers import Frontiers
from controllers.compute.inventory import Inventory, layout
from controllers.peeks.lookup_codec import Found, Key
from controllers.peeks.peek import Question
from journal.errors import InvalidUsage, TidemarkError
from journal.timestamps import DataTs
from values.types import SqlType, carried

log = logging.getLogger(__name__)

AGAIN_ROWS_MAX = ROWS_MAX // 2
"""Changes of a relation at which an index that was too large is begun anew: it has room for as many rows again."""

RESIDUALS_MAX = 1000
"""Compiled residuals kept: a statement's text repeats, with its values in the key."""


class _Off(NamedTuple):
    """Why an index is not followed, and at how many changes of its relation it is begun anew, if ever."""

    why: str
    again_at: int = -1


class _Index:
    def __init__(self, item: Item, relation: Item) -> None:
        self.item = item
        self.relation: Item | None = relation
        """As it was when somebody looked last."""
        self.relation_id = relation.id
        self.layout = layout(relation)
        self.types = [carried(sql_type(c.type)) for c in relation.stored]
        names = [c.name for c in relation.stored]
        self.key_columns = [names.index(n) for n in item.key]
        self.arrangement = Arrangement(self.key_columns)
        self.off: _Off | None = None
        self.behind: tuple[str, str | None] | None = None
        """Why it could not be brought up when that was tried last."""
        self.lock = threading.Lock()


class Indexes:
    """Any thread may call it."""

    def __init__(self, inventory: Inventory, cluster: str, window_ms: int, at_work: AtWork) -> None:
        self._inventory = inventory
        self._cluster = cluster
        self._window_ms = window_ms
        self._at_work = at_work
        self._seen: object = None
        """The indexes that there are an arrangement for each of."""
        self._indexes: dict[str, _Index] = {}
        self._residuals: dict[tuple[str, str], Residual] = {}
        self._lock = threading.Lock()

    def reconcile(self) -> None:
        """Have an arrangement for each live index, and none for others."""
        wanted = self._inventory.indexes_of(self._cluster)
        if wanted is self._seen:
            return
        objects = self._inventory.catalog.objects
        missing = 0
        with self._lock:
            for gone in [i for i in self._indexes if i not in wanted]:
                del self._indexes[gone]
                self._residuals = {k: r for k, r in self._residuals.items() if k[0] != gone}
            for index_id in [i for i in wanted if i not in self._indexes]:
                item = wanted[index_id]
                relation = objects.get(item.relation_id)
                if relation is None:
                    missing += 1
                    continue
                index = self._indexes[index_id] = _Index(item, relation)
                refused = self._at_work.refused(index_id)
                index.off = None if refused is None else _Off(refused.message)
            self._seen = None if missing else wanted

    def forget(self, index_id: str) -> None:
        """Begin the index anew: it was released from quarantine."""
        with self._lock:
            self._indexes.pop(index_id, None)
            self._seen = None

    def follow(self, frontiers: Frontiers, stopped: Callable[[], bool] = lambda: False) -> None:
        """Bring every index whose relation changed to where that is complete; those that are left once ``stopped()``,
        nobody needs."""
        with self._lock:
            indexes = list(self._indexes.values())
        for index in indexes:
            if stopped():
                return
            index = self._present(index)
            through = frontiers.complete(index.relation_id)
            if through < 0 or (index.off is not None and not self._begun_anew(index, index.off)):
                continue
            if index.arrangement.upper == 0 or frontiers.changed_since(index.relation_id, index.arrangement.upper):
                self._follow(index, through)

    def _begun_anew(self, index: _Index, off: _Off) -> bool:
        """Whether so little is left of what an index was given up on that it is tried again, by what is held of its
        relation: whoever reads that while it has no index has it brought up."""
        rows = self._rows(index)
        if rows is None or rows > off.again_at:
            return False
        index.off = None
        log.info("an index is begun anew", extra={"index": index.item.id})
        return True

    def _rows(self, index: _Index) -> int | None:
        """How many changes are held of its relation; ``None`` once that was dropped."""
        try:
            return self._inventory.relation(index.relation_id).rows
        except InvalidUsage:
            return None

    def _follow(self, index: _Index, through: DataTs) -> None:
        """Bring one index up.  Whatever is wrong with it keeps no other one waiting, and it goes on without it."""
        try:
            self._bring(index, through)
            index.behind = None
        except TidemarkError as error:
            # Dropped since, a broker or the store is away, rows are gone: it is tried again soon, and said once.
            before, index.behind = index.behind, (error.message, error.detail)
            if error.sqlstate != "42P01" and index.behind != before:
                why = {"index": index.item.id, "why": error.message, "detail": error.detail}
                log.warning("an index is behind", extra=why)
        except Exception as error:
            log.exception("an index failed, its reads go to spark", extra={"index": index.item.id})
            index.off = _Off(f"it failed: {type(error).__name__}", (self._rows(index) or 0) // 2)
            index.arrangement = Arrangement(index.key_columns)

    def answer(
        self, question: Question, keys: Sequence[Key], as_of: DataTs, timeout_s: float | None = None
    ) -> Found | None:
        """The answers to ``question`` of each of ``keys`` at ``as_of``, at which the relation is complete, in one
        batch; ``None`` if the index cannot.

        An index that is behind is brought there first; without ``timeout_s`` only as far as time alone has passed, and
        a question that may be answered ``behind`` is answered as of where it is.  Raises ``TimeoutError`` where
        somebody else is still bringing it there after ``timeout_s``.
        """
        readable = self._at(question, as_of, timeout_s)
        if readable is None:
            return None
        index, as_of = readable
        types = index.types
        residual = self._compiled(question.index_id, question.residual, types)
        rows: list[Row] = []
        counts: list[int | TidemarkError] = []
        for key in keys:
            try:
                found = residual.rows(index.arrangement.rows(as_of, _canonical(index, key, types)))
            except TooManyRows:
                return None
            except TidemarkError as error:
                if as_of < index.arrangement.since:
                    return None  # it went on meanwhile, and gave that timestamp up
                counts.append(error)
            else:
                rows += found
                counts.append(len(found))
        return Found(residual.batch(rows), as_of, counts)

    def status(self) -> dict[str, dict]:
        with self._lock:
            return {
                i: {"relation": x.relation_id, "rows": len(x.arrangement), "upper": x.arrangement.upper,
                    "error": None if x.off is None else x.off.why}
                for i, x in self._indexes.items()
            }  # fmt: skip

    def _at(self, question: Question, as_of: DataTs, timeout_s: float | None) -> tuple[_Index, DataTs] | None:
        """The index and where it is read, if it can be read at ``as_of``; see :meth:`answer`."""
        with self._lock:
            index = self._indexes.get(question.index_id)
        if index is None or index.relation_id != question.relation_id:
            return None
        index = self._present(index)
        if index.off is not None:
            return None
        if index.arrangement.upper <= as_of:
            if timeout_s is not None:
                self._bring(index, as_of, timeout_s)
            elif not self._idle_through(index, as_of):
                if not question.behind:
                    return None
                as_of = DataTs(index.arrangement.upper - 1)
            if index.off is not None or as_of < 0 or index.arrangement.upper <= as_of:
                return None
        return None if as_of < index.arrangement.since else (index, as_of)

    def _present(self, index: _Index) -> _Index:
        """``index``, or the one in its place where its relation has got columns since it was begun: rows of both are
        told apart by nothing but their length."""
        relation = self._inventory.catalog.objects.get(index.relation_id)
        if relation is index.relation:  # nearly always
            return index
        if relation is None or layout(relation) == index.layout:
            index.relation = relation
            return index
        with self._lock:
            found = self._indexes.get(index.item.id)
            if found is index:
                found = self._indexes[index.item.id] = _Index(index.item, relation)
                found.off = index.off
                self._residuals = {k: r for k, r in self._residuals.items() if k[0] != index.item.id}
        return index if found is None else found

    def _idle_through(self, index: _Index, as_of: DataTs) -> bool:
        """Bring an index that is behind to ``as_of`` if time alone has passed: its relation did not change since."""
        frontiers = self._inventory.frontiers()
        if frontiers.complete(index.relation_id) < as_of or not index.lock.acquire(blocking=False):
            return False
        try:
            arrangement = index.arrangement
            if arrangement.upper == 0 or frontiers.changed_since(index.relation_id, arrangement.upper):
                return False
            arrangement.apply((), DataTs(max(as_of + 1, arrangement.upper)))
            return True
        finally:
            index.lock.release()

    def _compiled(self, index_id: str, text: str, types: Sequence[SqlType]) -> Residual:
        key = (index_id, text)
        found = self._residuals.get(key)
        if found is None:
            found = compile_residual(text, types)
            with self._lock:
                while len(self._residuals) >= RESIDUALS_MAX:
                    del self._residuals[next(iter(self._residuals))]
                self._residuals[key] = found
        return found

    def _bring(self, index: _Index, through: DataTs, timeout_s: float = -1) -> None:
        # A read has a deadline, and whoever is at it may be waiting for rows from a broker that is away.
        if not index.lock.acquire(timeout=timeout_s):
            raise TimeoutError(f"index {index.item.id} is behind {through}")
        try:
            # The first time everything is read; from then on what changed.
            with self._at_work.on([index.item.id]):
                self._bring_locked(index, through)
        finally:
            index.lock.release()

    def _bring_locked(self, index: _Index, through: DataTs) -> None:
        arrangement = index.arrangement
        if arrangement.upper > through or index.off is not None:
            return
        relation = self._inventory.relation_through(index.relation_id, through)
        if [c.id for c in relation.columns] != [column_id for column_id, _ in index.layout]:
            return  # it got columns just now: whoever asks next finds another index in this one's place
        try:
            while True:
                after = DataTs(arrangement.upper - 1)
                if 0 <= after < relation.since:
                    # It lay idle while the relation forgot: begin anew.
                    arrangement = Arrangement(index.key_columns)
                    continue
                try:
                    arrangement.apply(_updates(relation.changes(after, through)), DataTs(through + 1))
                    break
                except InvalidUsage:
                    if not 0 <= after < relation.since:
                        raise  # else it forgot just now, before it gave anything
            index.arrangement = arrangement
        except TooLarge as error:
            index.off = _Off(error.message, AGAIN_ROWS_MAX)
            index.arrangement = Arrangement(index.key_columns)
            log.warning("an index is too large, its reads go to spark",
                        extra={"index": index.item.id, "why": error.message})  # fmt: skip
            return
        arrangement.compact(DataTs(max(relation.since, through - self._window_ms)))


def _canonical(index: _Index, key: Key, types: Sequence[SqlType]) -> list[object]:
    if len(key) > len(index.key_columns):
        raise InvalidUsage("malformed lookup", sqlstate="08P01", detail="more key values than index columns")
    return [canonical(value, types[column]) for value, column in zip(key, index.key_columns, strict=False)]


def _updates(tables: Iterable[pa.Table]) -> Iterator[tuple[int, Row, int]]:
    for table in tables:
        stamps = table.column(TS).to_pylist()
        for ts, row in zip(stamps, to_rows(table.drop_columns([TS])), strict=True):
            yield ts, row[:-1], row[-1]
