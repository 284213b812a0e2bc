"""Settled rows become files, topics are cut below them, and files that hold nothing any more go (DESIGN §5).

Promises: no reader can tell, at any timestamp that may still be read (I5): a file is durable before the log says that
it holds rows, and what was read before stays for :data:`GRACE_S`.  Killed at any moment it leaves at most files that
nobody added, which go later; two of them beside each other seal each row once.  A collection that cannot be sealed
keeps no other from it.

One thread, which works on one collection at a time; memory is bounded by a file (:mod:`controllers.storage.sealing`).
"""

from __future__ import annotations

import logging
import queue
import tempfile
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import TopicPartition

from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.objects import Item, MaterializedView, Relation, Source
from catalog_log.settings import kept_history, next_item_id
from collection.binding import BoundRun
from collection.columns import DIFF, Columns
from collection.reader import JSON, ROWS, RunReader
from collection.rows import has_ids
from controllers.changes import canonical, consolidate, only_insertions
from controllers.storage import clustering, sealing
from controllers.storage.clustering import Ranges, key_of
from controllers.storage.reconcile import is_below
from controllers.storage.sealing import FILE_BYTES, FILE_ROWS, SEAL_FACTOR, Shape
from controllers.storage.spread import parts
from controllers.vacuum import ALL_ROWS, WAITING_MAX, Asked, Waiting, Won
from journal import clients
from journal.errors import Indeterminate, Rejected, TidemarkError, Unavailable
from journal.names import TopicNames
from oracle.bindings import NOTHING, Bound
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle, wall_clock_ms
from oracle.state import OracleState
from oracle.views_log import ViewsLog
from segments.fold import Sealed
from segments.log import SegmentsLog
from segments.model import Exchange, Segment, new_path, number_of
from segments.parquet import chunks, encode, in_order
from segments.records import STATISTICS_VERSION
from segments.statistics import bounded, measured, packed, shown
from segments.store import Store

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Between two looks at what there is to do: rows are sealed minutes after they came, so seconds more are nothing."""

GRACE_S = 300.0
"""For so long what was exchanged stays where it was, on its topic and in its files: longer than the longest read should
take.  Whoever takes longer, or has not heard of the exchange yet, finds it gone and begins anew with what there is."""

ORPHANED_S = 3600.0
"""After so long files that nobody added go.  By this process's own time, whatever clocks say."""

AFTER_FAILURE_S = 30.0
AFTER_FAILURE_MAX_S = 600.0
"""Before a collection is tried again that could not be sealed; twice as long after each failure."""

MOVE_EVERY_S = 30.0
"""Between two checkpoints that are made for the sake of sealing alone, so that ``since`` moves: each is an image."""

CATALOG_TIMEOUT_S = 30.0
CUT_TIMEOUT_S = 10.0
CUTTING_S = 5.0
"""Of a look: after a start all partitions are cut once more, 26 ms each, and of twenty thousand that would be nine
minutes in which nothing is sealed.  (One that does not answer takes :data:`CUT_TIMEOUT_S`.)"""

TOLD_MAX = 10_000
"""Files that a status names: 2 MB, and it is asked for every few seconds."""

TOLD_COLUMNS_OF = 1_000
TOLD_COLUMNS = 8
"""Of so many files a status tells what so many of their columns hold: 1 MB."""

GROUP_ROWS = 65_536
"""Of what is spread over parts, rows that are written to a part at once."""


Places = Callable[[pa.Table], np.ndarray]
"""The part of each row of a table, by position, whose last column are the diffs."""


class Waits(NamedTuple):
    """How long what was exchanged stays, in seconds; tests have less."""

    grace_s: float = GRACE_S
    orphaned_s: float = ORPHANED_S


WAITS = Waits()


class _Failure(NamedTuple):
    """Why a collection could not be sealed, until when it is left, and how long that is."""

    reason: str
    not_before: float
    waits_s: float


class _Collection(NamedTuple):
    """What one look knows of a collection."""

    item: Item
    bound: Bound
    since: int
    sealed: Sealed
    retain_ms: int
    """Of its history that stays."""
    key: tuple[int, ...] = ()
    """Where the columns are that its files are kept apart by."""
    ready: Sequence[BoundRun] = ()
    """The runs to be sealed."""

    @property
    def columns(self) -> Columns:
        assert isinstance(self.item, Relation)
        return self.item.stored

    @property
    def shape(self) -> Shape:
        return Shape(batches=not _of_the_user(self.item))


class Sealer:
    """:meth:`run` in a thread of its own.  It owns ``views`` and ``segments``, and closes them."""

    def __init__(
        self, bootstrap: str, names: TopicNames, store: Store, catalog: CatalogLog, oracle: Oracle, views: ViewsLog,
        segments: SegmentsLog, *, rows: int = sealing.SEAL_ROWS, policy: Callable[[], CheckpointPolicy],
        waits: Waits = WAITS, measures: bool = True, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``rows``: what may be left on a topic; ``policy``: the history that stays now, as checkpoints have it;
        ``measures``: whether the log may say which values files hold, as the catalog's format has it."""
        self._bootstrap = bootstrap
        self._names = names
        self._store = store
        self._catalog = catalog
        self._oracle = oracle
        self._views = views
        self._segments = segments
        self._rows = rows
        self._policy_now = policy
        self._waits = waits
        self._measures = measures
        self._clock = clock
        self._reader: RunReader | None = None
        self._failing: dict[str, _Failure] = {}
        """Collections that could not be sealed; bounded by what there is."""
        self._looked: dict[str, tuple[Bound, Sealed]] = {}
        """Collections of which nothing is to be done before they change."""
        self._stays: dict[str, int] = {}
        """Changes of which writing anew takes none away, where they are more than should be: so it is not done again
        for these."""
        self._crowded: dict[str, int] = {}
        """Likewise, files that hold one key and still do after they were written anew."""
        self._cuts: dict[tuple[str, int], tuple[float, int]] = {}
        """Partitions of collections' topics to be cut: when, and below which offset."""
        self._cut: dict[tuple[str, int], int] = {}
        self._move_at = clock()
        """When ``since`` may be moved again."""
        self._swept: tuple[float, int] | None = None
        self._counts = {"exchanges": 0, "files_written": 0, "bytes_written": 0, "cuts": 0, "collected": 0}
        self._stopped = threading.Event()
        self._asked: queue.Queue[Waiting | None] = queue.Queue(WAITING_MAX)
        """Vacuums that somebody waits for; ``None`` wakes the thread up."""

    @property
    def _policy(self) -> CheckpointPolicy:
        return self._policy_now()

    def run(self) -> None:
        """Until :meth:`stop`."""
        looked_at = self._clock()
        while not self._stopped.is_set():
            asked = self._next_asked()
            if self._stopped.is_set():
                self._refuse(asked)
                break
            if asked is not None:
                self._answer(asked)
            if asked is not None and self._clock() < looked_at + LOOK_S:
                continue
            looked_at = self._clock()
            try:
                self.look()
            except TidemarkError as error:
                # Each is tried again at the next look: a broker, a journal or the store is away.
                log.warning("segments are not as they should be yet", extra=_told(error))
        while not self._asked.empty():
            self._refuse(self._next_asked())

    def _next_asked(self) -> Waiting | None:
        try:
            return self._asked.get(timeout=LOOK_S)
        except queue.Empty:
            return None

    def _refuse(self, asked: Waiting | None) -> None:
        if asked is not None:
            asked.done.set_exception(_stopping())

    def stop(self) -> None:
        """Returns at once; what is being read or written is given up at the next piece of it."""
        self._stopped.set()
        with suppress(queue.Full):  # then it is awake
            self._asked.put_nowait(None)

    def vacuum(self, asked: Asked) -> Future[Won]:
        """Have it done soon, beside readers and writers, whom it never holds up.  Any thread.

        Raises ``Rejected`` 53400 where too many wait.  What is answered is done and in the log; fails with what keeps
        all of it from being done.
        """
        done: Future[Won] = Future()
        try:
            self._asked.put_nowait(Waiting(asked, self._clock() + asked.timeout_s, done))
        except queue.Full:
            raise Rejected("too many are waiting for VACUUM", sqlstate="53400", hint="try again later") from None
        if self._stopped.is_set():
            raise _stopping()
        return done

    def close(self) -> None:
        """Once :meth:`run` has returned."""
        if self._reader is not None:
            self._reader.close()
        self._segments.close()
        self._views.close()

    @property
    def failed(self) -> Exception | None:
        """What stopped a journal of its own for good, or ``None``."""
        return self._views.failed or self._segments.failed

    def status(self) -> dict[str, object]:
        """For people; any thread."""
        state = self._segments.state
        files = [(name, sealed.through, each) for name, sealed in state.collections.items() for each in sealed.files]
        told = [
            {"collection": name, "path": each.path, "bytes": each.size, "changes": each.changes, "rows": each.net,
             "through": through, "columns": _told_columns(each) if n < TOLD_COLUMNS_OF else None}
            for n, (name, through, each) in enumerate(files[:TOLD_MAX])
        ]  # fmt: skip
        failing = {name: each.reason for name, each in list(self._failing.items())}
        gone = len(state.gone)
        return {"files": told, "files_in_all": len(files), "gone": gone, "failing": failing, **self._counts}

    def look(self) -> None:
        """Do whatever is due.  Raises what keeps all collections from it; of one alone it is logged."""
        if self._measures and self._segments.state.record_version < STATISTICS_VERSION:
            self._segments.raise_format().result()
        oracle, image = self._known()
        self._forget(image)
        found = list(self._changed(oracle, image))
        if self._clock() >= self._move_at and any(self._comes_due(each) for each in found):
            self._move_at = self._clock() + MOVE_EVERY_S
            checkpointed(self._oracle, self._catalog, self._policy)
            self._views.checkpoint(self._oracle.state.since, self._policy)
            oracle, image = self._known()
            found = list(self._changed(oracle, image))
        for each in sorted(found, key=lambda each: -sealing.total(each.ready, each.shape)):
            if self._stopped.is_set():
                return
            self._one(each)
        self._plan_cuts(image)
        self._cut_due()
        self._collect()
        self._sweep()

    def checkpoint_due(self, every: int) -> bool:
        """Whether its log has so many records above the newest image."""
        return self._segments.records_since_checkpoint >= every

    def checkpoint(self) -> int:
        """Of its own log; as :meth:`segments.log.SegmentsLog.checkpoint`."""
        return self._segments.checkpoint(self._policy)

    # -- what somebody asks for

    def _answer(self, asked: Waiting) -> None:
        try:
            asked.done.set_result(self._vacuumed(asked.asked, asked.until))
        except TidemarkError as error:
            asked.done.set_exception(error)
        except Exception as error:
            log.exception("a vacuum failed")
            asked.done.set_exception(TidemarkError("VACUUM failed", detail=str(error) or type(error).__name__))

    def _vacuumed(self, asked: Asked, until: float) -> Won:
        """Seal what may be, merge and write anew what takes anything away, remove what nobody holds."""
        checkpointed(self._oracle, self._catalog, self._policy)
        self._views.checkpoint(self._oracle.state.since, self._policy)
        oracle, image = self._known()
        self._forget(image)
        collected, written = self._counts["collected"], dict[str, int]()
        everything = {each.item.id: each for each in self._all(oracle, image)}
        names = [name for name in dict.fromkeys(asked.names or everything) if name in everything]
        won, before = Won(), self._sizes(names)
        for name in names:
            if self._clock() >= until or self._stopped.is_set():
                won.late = True
                break
            try:
                written[name] = self._tidied(everything[name], asked, until)
                self._failing.pop(name, None)
            except Exception as error:
                if self._stopped.is_set():
                    raise _stopping() from error
                why = error.message if isinstance(error, TidemarkError) else str(error) or type(error).__name__
                self._leave(name, why)
                won.failing[name] = why
                log.warning("a collection was not vacuumed", extra={"collection": name, "reason": why})
        self._plan_cuts(image)
        self._cut_due()
        self._collect()
        after = self._sizes(names)
        won.sealed = sum(written.values())
        won.files, won.bytes = (before[0], after[0]), (before[1], after[1])
        won.collected, won.waiting = self._counts["collected"] - collected, len(self._segments.state.gone)
        won.late = won.late or self._clock() >= until
        return won

    def _all(self, oracle: OracleState, image: Image) -> Iterator[_Collection]:
        views = self._views.state
        bound = [(name, each, oracle.since_of(name)) for name, each in oracle.bound.items()]
        bound += [(name, view.bound, views.since) for name, view in views.views.items()]
        for name, each, since in bound:
            item = image.item(name)
            if isinstance(item, Relation):
                sealed, retain_ms = self._segments.state.sealed(name), self._policy.retain_ms
                yield _Collection(item, each, since, sealed, retain_ms, key_of(item, image))

    def _sizes(self, names: Iterable[str]) -> tuple[int, int]:
        files = [each for name in names for each in self._segments.state.sealed(name).files]
        return len(files), sum(each.size for each in files)

    def _tidied(self, found: _Collection, asked: Asked, until: float) -> int:
        """One collection; how many rows were sealed."""
        name, sealed = found.item.id, 0
        least = 1 if asked.names else ALL_ROWS
        while self._clock() < until:
            runs = sealing.old(found.bound, found.sealed, found.since)
            if sealing.total(runs, found.shape) < least:
                break
            sealed += self._seal(found, sealing.taken(runs, found.shape, SEAL_FACTOR * self._rows))
            found = found._replace(sealed=self._segments.state.sealed(name))
        if asked.full and self._clock() < until and self._is_loose(found):
            self._rewrite(name, self._segments.state.sealed(name))
        while self._clock() < until and self._merge(found, slack=0):
            pass
        return sealed

    # -- what there is

    def _known(self) -> tuple[OracleState, Image]:
        """What is bound, and a catalog in which everything is that was bound: all columns that rows may have are in
        it."""
        state = self._oracle.state
        return state, self._catalog.when_upper(state.catalog_upper, CATALOG_TIMEOUT_S).result()

    def _changed(self, oracle: OracleState, image: Image) -> Iterator[_Collection]:
        """The collections that may have something to be done for."""
        views, segments = self._views.state, self._segments.state
        now, kept = self._clock(), kept_history(image)
        bound = [(name, each, oracle.since_of(name)) for name, each in oracle.bound.items()]
        bound += [(name, view.bound, views.since) for name, view in views.views.items()]
        there = {name for name, _, _ in bound}
        self._looked = {name: seen for name, seen in self._looked.items() if name in there}
        self._failing = {name: each for name, each in self._failing.items() if name in there}
        self._stays = {name: left for name, left in self._stays.items() if name in there}
        self._crowded = {name: left for name, left in self._crowded.items() if name in there}
        for name, each, since in bound:
            sealed = segments.sealed(name)
            seen = self._looked.get(name)
            if seen is not None and seen[0] is each and seen[1] is sealed:
                continue
            item = image.item(name)
            failing = self._failing.get(name)
            if isinstance(item, Relation) and (failing is None or failing.not_before <= now):
                retain_ms = max(self._policy.retain_ms, kept.get(name, 0))
                found = _Collection(item, each, since, sealed, retain_ms, key_of(item, image))
                found = found._replace(ready=self._ready(found))
                if not each.recent and not found.ready and not self._merging(found):
                    self._looked[name] = each, sealed
                yield found

    def _ready(self, found: _Collection) -> list[BoundRun]:
        """The runs to be sealed, or nothing where they are too few."""
        runs = sealing.old(found.bound, found.sealed, found.since)
        return runs if sealing.total(runs, found.shape) >= self._rows else []

    def _comes_due(self, found: _Collection) -> bool:
        """Whether there would be something to seal if ``since`` were where it may be."""
        horizon = self._oracle.state.last_ts - found.retain_ms
        if horizon <= found.since:
            return False
        runs = sealing.old(found.bound, found.sealed, horizon)
        return sealing.total(runs, found.shape) >= self._rows

    def _merging(self, found: _Collection) -> bool:
        sealed = found.sealed
        due = sealing.to_rewrite(sealed, self._rows) or sealing.to_merge(sealed.files) is not None
        return due or bool(self._crowd(found, sealed))

    def _crowd(self, found: _Collection, sealed: Sealed) -> tuple[Segment, ...]:
        """Files that are to be kept apart."""
        most = max(clustering.CROWD, self._crowded.get(found.item.id, 0))
        return clustering.crowd(sealed.files, found.columns, found.key, most)[-clustering.TOGETHER_MAX :]

    def _is_loose(self, found: _Collection) -> bool:
        """Whether writing all of it anew is worth it to who asks for all that can be done."""
        sealed = self._segments.state.sealed(found.item.id)
        return sealing.is_loose(sealed) or bool(
            clustering.crowd(sealed.files, found.columns, found.key, clustering.LOOSE)
        )

    # -- one collection

    def _one(self, found: _Collection) -> None:
        name = found.item.id
        try:
            if found.ready:
                self._seal(found, sealing.taken(found.ready, found.shape, SEAL_FACTOR * self._rows))
            while not self._stopped.is_set() and self._merge(found):
                pass
            self._failing.pop(name, None)
        except TidemarkError as error:
            if self._stopped.is_set():
                return
            self._leave(name, error.message if error.detail is None else f"{error.message}: {error.detail}")
            log.warning("a collection was not sealed", extra={"collection": name, **_told(error)})
        except Exception as error:  # no room for what is spread, more text than Arrow takes, a mistake of ours
            self._leave(name, str(error) or type(error).__name__)
            log.exception("a collection was not sealed", extra={"collection": name})

    def _leave(self, name: str, reason: str) -> None:
        """Leave a collection alone for a while: nothing of it was exchanged."""
        before = self._failing.get(name)
        waits_s = AFTER_FAILURE_S if before is None else min(2 * before.waits_s, AFTER_FAILURE_MAX_S)
        self._failing[name] = _Failure(reason, self._clock() + waits_s, waits_s)

    def _seal(self, found: _Collection, runs: Sequence[BoundRun]) -> int:
        """How many rows are in files by it."""
        name = found.item.id
        format_ = ROWS if found.shape.batches else JSON
        if self._reader is None:
            self._reader = RunReader(self._bootstrap)
        begun = self._clock()
        with closing(self._reader.chunks((each.run for each in runs), found.columns, format_)) as tables:
            added = self._write(name, found.columns, self._until_stopped(tables), found.key)
        through = max(each.ts for each in runs)
        offsets = tuple(each.run._replace(attempt="", rows=-1) for each in runs)
        self._exchange(Exchange(name, through, offsets, tuple(added)))
        rows = sum(each.changes for each in added)
        log.info("sealed", extra={"collection": name, "rows": rows, "files": len(added),
                                  "took_s": round(self._clock() - begun, 3)})  # fmt: skip
        return rows

    def _merge(self, found: _Collection, slack: int | None = None) -> bool:
        """Put files together or apart, or write all of them anew; whether there was anything to do.  ``slack``: changes
        that may be there without a need, where that is not as always."""
        name = found.item.id
        sealed = self._segments.state.sealed(name)
        if sealing.to_rewrite(sealed, max(self._stays.get(name, 0), self._rows if slack is None else slack)):
            self._rewrite(name, sealed)
        elif pair := sealing.to_merge(sealed.files):
            self._replace(name, sealed, pair, self._merged)
        elif crowd := self._crowd(found, sealed):
            self._replace(name, sealed, crowd, self._rewritten)
            self._crowded.pop(name, None)
            if left := self._crowd(found, self._segments.state.sealed(name)):
                if len(left) >= len(crowd):
                    self._crowded[name] = len(left)
        else:
            return False
        return True

    def _rewrite(self, name: str, sealed: Sealed) -> None:
        """Write all of its files anew."""
        after = sealed._replace(files=self._replace(name, sealed, sealed.files, self._rewritten))
        self._stays.pop(name, None)
        if sealing.to_rewrite(after, 0):
            self._stays[name] = after.changes

    def _replace(
        self, name: str, sealed: Sealed, files: Sequence[Segment],
        read: Callable[[Sequence[Segment], Columns, Sequence[int]], Iterator[pa.Table]],
    ) -> tuple[Segment, ...]:  # fmt: skip
        """Have what ``read`` makes of ``files`` in their place; the new ones."""
        columns, key = self._columns_in(name, sealed)
        with closing(read(files, columns, key)) as tables:
            added = self._write(name, columns, self._until_stopped(tables), key)
        self._exchange(Exchange(name, removed=tuple(each.path for each in files), added=tuple(added)))
        return tuple(added)

    def _columns_in(self, name: str, sealed: Sealed) -> tuple[Columns, tuple[int, ...]]:
        """All columns that rows in these files may have, and where those of the key are among them.

        Not those of when this look began: another controller may have sealed since what was written since, with columns
        that were added since, and what is merged without a column has lost it.
        """
        state = self._oracle.state
        if state.since_of(name) < sealed.through:  # that another one sealed by, and this one has not heard of yet
            state = self._oracle.when(lambda state: state.since_of(name) >= sealed.through, CATALOG_TIMEOUT_S).result()
        image = self._catalog.when_upper(state.catalog_upper, CATALOG_TIMEOUT_S).result()
        item = image.item(name)
        if not isinstance(item, Relation):
            raise Unavailable(f"{name} was dropped while it was sealed")
        return item.stored, key_of(item, image)

    def _until_stopped(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            if self._stopped.is_set():
                raise Unavailable("the controller is stopping")
            yield table

    def sealed(self, name: str) -> Sealed:
        """What is in files of a collection, by what is known now; any thread."""
        return self._segments.state.sealed(name)

    def settled(self, sealed: Sealed, columns: Columns) -> Iterator[pa.Table]:
        """All changes in these files; any thread.  Raises ``Gone`` where others have taken the place of one since."""
        return self._read(sealed.files, columns)

    def _read(self, files: Iterable[Segment], columns: Columns) -> Iterator[pa.Table]:
        for each in files:
            yield from chunks(each, self._store.read(each.path), columns)

    def _merged(self, files: Sequence[Segment], columns: Columns, _key: Sequence[int]) -> Iterator[pa.Table]:
        """All changes of ``files``, which are few, at once: what cancels out is merged where they are written."""
        yield pa.concat_tables(self._read(files, columns))

    def _rewritten(self, files: Sequence[Segment], columns: Columns, key: Sequence[int]) -> Iterator[pa.Table]:
        """All changes of ``files``, of however many, in parts that each have all that is equal: one range of keys after
        the other, where there is a key."""
        count, place = self._parted(files, columns, key)
        if count == 1:
            yield from self._merged(files, columns, key)
            return
        with tempfile.TemporaryDirectory(prefix="tidemark-sealer-") as directory:
            paths = [Path(directory) / f"{n}.parquet" for n in range(count)]
            self._spread(self._read(files, columns), paths, place)
            for path in paths:
                # Here, and not only where it is written: a part may be more than a file takes, and is cut as it lies.
                part = consolidate(pq.read_table(path))
                yield in_order(columns, part, key) if key else part
                path.unlink()

    def _parted(self, files: Sequence[Segment], columns: Columns, key: Sequence[int]) -> tuple[int, Places]:
        """Into how many parts the rows of ``files`` go, and into which each of them."""
        count = sealing.parts_of(files)
        if count == 1 or not key:
            return count, lambda table: parts(table, range(table.num_columns - 1), count)
        # Those alone are read, where files know their columns by ids.
        keys, at = (columns, key) if not has_ids(columns) else ([columns[n] for n in key], range(len(key)))
        tables = (table.select(list(at)) for table in self._until_stopped(self._read(files, tuple(keys))))
        rows = sum(each.changes for each in files)
        ranges = Ranges.of(clustering.sampled(tables, rows, count), count)
        return ranges.count, lambda table: ranges.parts(table, key)

    def _spread(self, tables: Iterable[pa.Table], paths: Sequence[Path], place: Places) -> None:
        writers: list[pq.ParquetWriter] = []
        try:
            for table in tables:
                table = _positions(table)
                if not writers:
                    writers = [pq.ParquetWriter(path, table.schema) for path in paths]
                places = place(table)
                for n, writer in enumerate(writers):
                    writer.write_table(table.filter(pa.array(places == n)), row_group_size=GROUP_ROWS)
        finally:
            for writer in writers:
                writer.close()

    def _write(
        self, name: str, columns: Columns, tables: Iterable[pa.Table], key: Sequence[int]
    ) -> list[Segment]:
        """Files of all changes, each durable; on failure none of them is left."""
        number = self._segments.state.next_offset
        added: list[Segment] = []
        pieces: list[pa.Table] = []
        try:
            for table in tables:
                for start in range(0, table.num_rows, FILE_ROWS):
                    pieces.append(_positions(table.slice(start, FILE_ROWS)))
                    if sum(p.num_rows for p in pieces) >= FILE_ROWS or sum(p.nbytes for p in pieces) >= FILE_BYTES:
                        self._write_file(name, number, columns, key, pieces, added)
                        pieces = []
            self._write_file(name, number, columns, key, pieces, added)
        except BaseException:
            self._delete(added)
            raise
        return bounded(added)

    def _write_file(
        self, name: str, number: int, columns: Columns, key: Sequence[int], pieces: Sequence[pa.Table],
        added: list[Segment],
    ) -> None:  # fmt: skip
        if not pieces:
            return
        changes = canonical(pa.concat_tables(pieces))
        if not (plain := only_insertions(changes)):
            changes = consolidate(changes)
            plain = only_insertions(changes)
        if not changes.num_rows:
            return
        changes = in_order(columns, changes, key)
        knows = self._segments.state.record_version >= STATISTICS_VERSION
        statistics = packed(measured(columns, changes)) if knows else b""
        data = encode(columns, changes)
        path = new_path(name, number, uuid.uuid4().hex)
        self._store.write(path, data)
        net = pc.sum(changes.column(DIFF)).as_py()
        crc32 = zlib.crc32(data)
        added.append(Segment(path, len(data), changes.nbytes, changes.num_rows, net, plain, crc32, statistics))
        self._counts["files_written"] += 1
        self._counts["bytes_written"] += len(data)

    def _exchange(self, exchange: Exchange) -> None:
        try:
            self._segments.exchange(exchange).result()
        except Indeterminate:
            raise  # the files may be somebody's: they are swept if they are not
        except TidemarkError:
            self._delete(exchange.added)
            raise
        self._counts["exchanges"] += 1

    def _delete(self, files: Iterable[Segment]) -> None:
        """Files that nobody has and nobody will have; what cannot be removed now is swept."""
        for each in files:
            self._removed(each.path)

    def _removed(self, path: str) -> bool:
        """Remove a file; whether it is gone.  One that cannot be removed keeps no other there."""
        try:
            self._store.delete(path)
        except TidemarkError as error:
            log.warning("a file was left behind", extra=_told(error))
            return False
        return True

    # -- what goes

    def _forget(self, image: Image) -> None:
        """Collections that were dropped: their files go.  One that this image does not know yet is none of them."""
        next_id = next_item_id(image)
        names = [name for name in self._segments.state.collections if image.item(name) is None]
        asked = [self._segments.forget(name) for name in names if is_below(name, next_id)]
        for done in asked:
            done.result()

    def _plan_cuts(self, image: Image) -> None:
        """Topics that may be cut once everybody had time to hear of it."""
        oracle, views, segments = self._oracle.state, self._views.state, self._segments.state
        self._cuts = {place: cut for place, cut in self._cuts.items() if place[0] in segments.collections}
        self._cut = {place: cut for place, cut in self._cut.items() if place[0] in segments.collections}
        for name, sealed in segments.collections.items():
            item = image.item(name)
            if item is None or _of_the_user(item):
                continue
            if isinstance(item, MaterializedView):
                bound = views.views[name].bound if name in views.views else NOTHING
            else:
                bound = oracle.bound.get(name, NOTHING)
            found = sealing.cuts(bound, sealed, self._names.data(name), isinstance(item, MaterializedView))
            for place, below in (((name, partition), below) for partition, below in found.items()):
                if below > self._cut.get(place, 0) and place not in self._cuts:
                    self._cuts[place] = self._clock() + self._waits.grace_s, below

    def _cut_due(self) -> None:
        until = self._clock() + CUTTING_S
        for place, (when, below) in list(self._cuts.items()):
            if self._stopped.is_set() or self._clock() > until:
                return  # the rest is due at the next look
            if when > self._clock():
                continue
            del self._cuts[place]
            name, partition = place
            told = {"collection": name, "partition": partition}
            upto = TopicPartition(self._names.data(name), partition, below)
            try:
                clients.delete_below(self._bootstrap, upto, CUT_TIMEOUT_S)
            except TidemarkError as error:  # planned again at the next look
                log.warning("a topic was not cut", extra={**told, **_told(error)})
                continue
            self._cut[place] = below
            self._counts["cuts"] += 1
            log.info("cut", extra={**told, "below": below})

    def _collect(self) -> None:
        """Remove files that hold nothing any more, once nobody should be reading them."""
        before = wall_clock_ms() - int(1000 * self._waits.grace_s)
        due = [path for path, at_ms in self._segments.state.gone.items() if at_ms <= before]
        removed = [path for path in due if self._removed(path)]
        for done in [self._segments.collected(path) for path in removed]:
            done.result()
        self._counts["collected"] += len(removed)

    def _sweep(self) -> None:
        """Remove files that nobody added: of writers that died, and of exchanges that were refused."""
        now = self._clock()
        if self._swept is None:
            self._swept = now, self._segments.state.next_offset
            return
        since, number = self._swept
        if now - since < self._waits.orphaned_s:
            return
        self._segments.sweep(number).result()
        self._swept = now, self._segments.state.next_offset
        state = self._segments.state
        known = {each.path for sealed in state.collections.values() for each in sealed.files}.union(state.gone)
        for each in self._store.files():
            found = number_of(each.path)
            # What is no path of ours is what a writer that died had begun with, or somebody else's: the number decides.
            begun = number_of(each.path.split(".parquet")[0] + ".parquet") if found is None else found
            if begun is not None and begun < number and each.path not in known and self._removed(each.path):
                log.info("removed a file that nobody added", extra={"path": each.path})


def _of_the_user(item: Item) -> bool:
    """Whether its rows are on a topic that is not ours."""
    return isinstance(item, Source) and item.in_place


def checkpointed(oracle: Oracle, catalog: CatalogLog, policy: CheckpointPolicy) -> int:
    """A checkpoint of the oracle's log that keeps what relations say of their history, by a catalog that has all that
    was acknowledged before: who asks for history must not lose any to who has not heard of it yet."""
    upper = oracle.barrier().result().catalog_upper
    image = catalog.when_upper(upper, CATALOG_TIMEOUT_S).result()
    return oracle.checkpoint(policy, kept_history(image))


def _stopping() -> Unavailable:
    return Unavailable("the storage controller is stopping", hint="try again")


def _positions(table: pa.Table) -> pa.Table:
    """With columns by their places, and the diffs: two columns may be called alike."""
    names = [f"c{n}" for n in range(table.num_columns - 1)]
    return table.rename_columns([*names, DIFF])


@lru_cache(maxsize=2 * TOLD_COLUMNS_OF)
def _told_columns(file: Segment) -> dict[str, object] | None:
    """Remembered, since a status is asked for every few seconds and files do not change."""
    return dict(islice(shown(file), TOLD_COLUMNS)) or None


def _told(error: TidemarkError) -> dict[str, object]:
    return {"reason": error.message, "detail": error.detail}
