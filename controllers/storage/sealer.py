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
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.objects import Item, Relation
from catalog_log.settings import kept_history, next_item_id
from collection.binding import BoundRun
from collection.columns import Columns
from collection.reader import JSON, ROWS, RunReader
from controllers.storage import clustering, sealing
from controllers.storage.clustering import key_of
from controllers.storage.cutting import Cuts, is_of_the_user
from controllers.storage.failing import Failing
from controllers.storage.giving_up import PATIENCE_S, GivingUp
from controllers.storage.reconcile import is_below
from controllers.storage.retiring import Retiring
from controllers.storage.rewriting import Read, merged, rewritten
from controllers.storage.sealed_files import SealedFiles
from controllers.storage.sealing import SEAL_FACTOR, Shape
from controllers.storage.sharing import CARRIED_BYTES, Sharing
from controllers.vacuum import ALL_ROWS, WAITING_MAX, Asked, Waiting, Won
from journal.errors import Indeterminate, Rejected, TidemarkError, Unavailable
from journal.names import TopicNames
from oracle.bindings import Bound
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle, wall_clock_ms
from oracle.state import OracleState
from oracle.views_log import ViewsLog
from segments.fold import Sealed
from segments.log import SegmentsLog
from segments.model import Exchange, Segment, number_begun, place_of
from segments.records import STATISTICS_VERSION
from segments.statistics import shown
from segments.store import Store

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Between two looks at what there is to do: rows are sealed minutes after they came, so seconds more are nothing."""

GRACE_S = 300.0
"""For so long what was exchanged stays where it was, on its topic and in its files: longer than the longest read should
take.  Whoever takes longer, or has not heard of the exchange yet, finds it gone and begins anew with what there is."""

ORPHANED_S = 3600.0
"""After so long files that nobody added go.  By this process's own time, whatever clocks say."""

MOVE_EVERY_S = 30.0
"""Between two times that ``since`` is moved for the sake of sealing alone: everybody merges what is older then."""

CATALOG_TIMEOUT_S = 30.0

TOLD_MAX = 10_000
"""Files that a status names, and collections of which it says what theirs come to: 3 MB, every few seconds at most."""

TOLD_COLUMNS_OF = 1_000
TOLD_COLUMNS = 8
"""Of so many files a status tells what so many of their columns hold: 1 MB."""


class Waits(NamedTuple):
    """How long what was exchanged stays, in seconds; tests have less."""

    grace_s: float = GRACE_S
    orphaned_s: float = ORPHANED_S
    patience_s: float = PATIENCE_S


WAITS = Waits()


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
        return Shape(batches=not is_of_the_user(self.item))


class Sealer:
    """:meth:`run` in a thread of its own.  It owns ``views`` and ``segments``, and closes them."""

    def __init__(
        self, bootstrap: str, names: TopicNames, store: Store, catalog: CatalogLog, oracle: Oracle, views: ViewsLog,
        segments: SegmentsLog, *, rows: int = sealing.SEAL_ROWS, policy: Callable[[], CheckpointPolicy],
        waits: Waits = WAITS, measures: bool = True, clock: Callable[[], float] = time.monotonic,
        carried: int = CARRIED_BYTES,
    ) -> None:  # fmt: skip
        """``rows``: what may be left on a topic; ``policy``: the history that stays now, as checkpoints have it;
        ``measures``: whether the log may say which values files hold, as the catalog's format has it; ``carried``: what
        the oracle's log may carry of rows that are told apart no more."""
        self._bootstrap = bootstrap
        self._names = names
        self._files = SealedFiles(store)
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
        self._failing = Failing(clock)
        """Collections that could not be sealed."""
        self._looked: dict[str, tuple[Bound, Sealed]] = {}
        """Collections of which nothing is to be done before they change."""
        self._stays: dict[str, int] = {}
        """Changes of which writing anew takes none away, where they are more than should be: so it is not done again
        for these."""
        self._crowded: dict[str, int] = {}
        """Likewise, files that hold one key and still do after they were written anew."""
        self._cuts = Cuts(bootstrap, names, waits.grace_s, clock)
        self._giving_up = GivingUp(names, oracle, waits.patience_s, clock)
        self._retiring = Retiring(names, oracle, self._exchange)
        self._move_at = clock()
        """When ``since`` may be moved again."""
        self._swept: tuple[float, int] | None = None
        self._exchanges = self._collected = 0
        self._stopped = threading.Event()
        self._sharing = Sharing(
            oracle, segments, self._files, self._columns_in, self._write, self._stopped.is_set, carried, clock
        )  # fmt: skip
        self._asked: queue.Queue[Waiting | None] = queue.Queue(WAITING_MAX)
        """Vacuums that somebody waits for; ``None`` wakes the thread up."""

    @property
    def _policy(self) -> CheckpointPolicy:
        return self._policy_now()

    def _retain_ms(self) -> int:
        """How much history of everybody's stays by now."""
        last_ts = self._oracle.state.last_ts
        return last_ts - self._policy.since(last_ts)

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
        sums = {name: _sums(sealed) for name, sealed in islice(state.collections.items(), TOLD_MAX)}
        failing = {**self._sharing.failing.reasons(), **self._failing.reasons()}
        gone = len(state.gone)
        return {
            "files": told, "files_in_all": len(files), "collections": sums,
            "collections_in_all": len(state.collections), "gone": gone, "failing": failing,
            "exchanges": self._exchanges, "cuts": self._cuts.count, "collected": self._collected,
            "given_up": self._giving_up.count, "retired": self._retiring.count, "shared": self._sharing.count,
            "files_written": self._files.written, "bytes_written": self._files.written_bytes,
        }  # fmt: skip

    def look(self) -> None:
        """Do whatever is due.  Raises what keeps all collections from it; of one alone it is logged."""
        if self._measures and self._segments.state.record_version < STATISTICS_VERSION:
            self._segments.raise_format(STATISTICS_VERSION).result()
        oracle, image = self._known()
        self._forget(image)
        found = list(self._changed(oracle, image))
        comes_due = self._sharing.comes_due(image, oracle) or any(self._comes_due(each) for each in found)
        if self._clock() >= self._move_at and comes_due:
            self._move_at = self._clock() + MOVE_EVERY_S
            self._move_since()
            oracle, image = self._known()
            found = list(self._changed(oracle, image))
        for each in sorted(found, key=lambda each: -sealing.total(each.ready, each.shape)):
            if self._stopped.is_set():
                return
            self._one(each)
        self._cut(image)
        self._collect()
        self._sweep()
        self._giving_up.look(image, self._oracle.state, self._segments.state)
        self._retiring.look(self._cuts.cut, self._oracle.state, self._segments.state)
        self._sharing.look(image, oracle)  # last: it raises where the store is full, and all else makes room

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
        self._move_since()
        oracle, image = self._known()
        self._forget(image)
        collected, written = self._collected, dict[str, int]()
        everything = {each.item.id: each for each in self._all(oracle, image)}
        names = [name for name in dict.fromkeys(asked.names or everything) if name in everything]
        won, before = Won(), self._sizes(names)
        for name in names:
            if self._clock() >= until or self._stopped.is_set():
                won.late = True
                break
            try:
                written[name] = self._tidied(everything[name], asked, until)
                self._failing.succeeded(name)
            except Exception as error:
                if self._stopped.is_set():
                    raise _stopping() from error
                why = error.message if isinstance(error, TidemarkError) else str(error) or type(error).__name__
                self._failing.leave(name, error)
                won.failing[name] = why
                log.warning("a collection was not vacuumed", extra={"collection": name, "reason": why})
        self._cut(image)
        self._collect()
        after = self._sizes(names)
        won.sealed = sum(written.values())
        won.files, won.bytes = (before[0], after[0]), (before[1], after[1])
        won.collected, won.waiting = self._collected - collected, len(self._segments.state.gone)
        won.recent = sum(sealing.recent_rows(everything[name].bound, everything[name].since) for name in names)
        won.late = won.late or self._clock() >= until
        return won

    def _all(self, oracle: OracleState, image: Image) -> Iterator[_Collection]:
        views = self._views.state
        bound = [(name, each, oracle.since_of(name)) for name, each in oracle.bound.items()]
        bound += [(name, view.bound, views.since) for name, view in views.views.items()]
        for name, each, since in bound:
            item = image.item(name)
            if isinstance(item, Relation):
                sealed, retain_ms = self._segments.state.sealed(name), self._retain_ms()
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

    def _move_since(self) -> None:
        """By records alone: an image of each log is made where there is much to be folded without it."""
        self._oracle.compact(self._policy, kept_now(self._oracle, self._catalog))
        self._views.compact(self._oracle.state.since)

    def _known(self) -> tuple[OracleState, Image]:
        """What is bound, and a catalog in which everything is that was bound: all columns that rows may have are in
        it."""
        state = self._oracle.state
        return state, self._catalog.when_upper(state.catalog_upper, CATALOG_TIMEOUT_S).result()

    def _changed(self, oracle: OracleState, image: Image) -> Iterator[_Collection]:
        """The collections that may have something to be done for."""
        views, segments = self._views.state, self._segments.state
        kept = kept_history(image)
        bound = [(name, each, oracle.since_of(name)) for name, each in oracle.bound.items()]
        bound += [(name, view.bound, views.since) for name, view in views.views.items()]
        there = {name for name, _, _ in bound}
        self._looked = {name: seen for name, seen in self._looked.items() if name in there}
        self._failing.keep(there)
        self._stays = {name: left for name, left in self._stays.items() if name in there}
        self._crowded = {name: left for name, left in self._crowded.items() if name in there}
        for name, each, since in bound:
            sealed = segments.sealed(name)
            seen = self._looked.get(name)
            if seen is not None and seen[0] is each and seen[1] is sealed:
                continue
            item = image.item(name)
            if isinstance(item, Relation) and not self._failing.is_left(name):
                retain_ms = max(self._retain_ms(), kept.get(name, 0))
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
            self._failing.succeeded(name)
        except TidemarkError as error:
            if self._stopped.is_set():
                return
            self._failing.leave(name, error)
            log.warning("a collection was not sealed", extra={"collection": name, **_told(error)})
        except Exception as error:  # no room for what is spread, more text than Arrow takes, a mistake of ours
            self._failing.leave(name, error)
            log.exception("a collection was not sealed", extra={"collection": name})

    def _seal(self, found: _Collection, runs: Sequence[BoundRun]) -> int:
        """How many rows are in files by it."""
        name = found.item.id
        format_ = ROWS if found.shape.batches else JSON
        if self._reader is None:
            self._reader = RunReader(self._bootstrap)
        begun = self._clock()
        with closing(self._reader.chunks((each.run for each in runs), found.columns, format_)) as tables:
            added = self._write(name, found.columns, tables, found.key)
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
            self._replace(name, sealed, pair, merged)
        elif crowd := self._crowd(found, sealed):
            self._replace(name, sealed, crowd, rewritten)
            self._crowded.pop(name, None)
            if left := self._crowd(found, self._segments.state.sealed(name)):
                if len(left) >= len(crowd):
                    self._crowded[name] = len(left)
        else:
            return False
        return True

    def _rewrite(self, name: str, sealed: Sealed) -> None:
        """Write all of its files anew."""
        after = sealed._replace(files=self._replace(name, sealed, sealed.files, rewritten))
        self._stays.pop(name, None)
        if sealing.to_rewrite(after, 0):
            self._stays[name] = after.changes

    def _replace(
        self, name: str, sealed: Sealed, files: Sequence[Segment],
        made: Callable[[Read, Sequence[Segment], Columns, Sequence[int]], Iterator[pa.Table]],
    ) -> tuple[Segment, ...]:  # fmt: skip
        """Have what is ``made`` of ``files`` in their place; the new ones."""
        columns, key = self._columns_in(name, sealed)
        with closing(made(self._read, files, columns, key)) as tables:
            added = self._write(name, columns, tables, key)
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

    def _read(self, files: Iterable[Segment], columns: Columns) -> Iterator[pa.Table]:
        return self._until_stopped(self._files.read(files, columns))

    def _write(self, name: str, columns: Columns, tables: Iterable[pa.Table], key: Sequence[int]) -> list[Segment]:
        state = self._segments.state
        measures = state.record_version >= STATISTICS_VERSION
        tables = self._until_stopped(tables)
        return self._files.write(name, state.next_offset, columns, tables, key, measures, state.names_files)

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
        return self._files.read(sealed.files, columns)

    def _exchange(self, exchange: Exchange) -> None:
        try:
            self._segments.exchange(exchange).result()
        except Indeterminate:
            raise  # the files may be somebody's: they are swept if they are not
        except TidemarkError:
            self._files.delete(exchange.added)
            raise
        self._exchanges += 1

    # -- what goes

    def _cut(self, image: Image) -> None:
        self._cuts.plan(image, self._oracle.state, self._views.state, self._segments.state)
        self._cuts.make(self._stopped.is_set)

    def _forget(self, image: Image) -> None:
        """Collections that were dropped: their files go.  One that this image does not know yet is none of them."""
        next_id = next_item_id(image)
        names = [name for name in self._segments.state.collections if image.item(name) is None]
        asked = [self._segments.forget(name) for name in names if is_below(name, next_id)]
        for done in asked:
            done.result()

    def _collect(self) -> None:
        """Remove files that hold nothing any more, once nobody should be reading them."""
        before = wall_clock_ms() - int(1000 * self._waits.grace_s)
        due = [path for path, at_ms in self._segments.state.gone.items() if at_ms <= before]
        removed = [path for path in due if self._files.remove(path)]
        for done in [self._segments.collected(path) for path in removed]:
            done.result()
        self._collected += len(removed)

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
        named = (each.path for sealed in state.collections.values() for each in sealed.files)
        known = {place_of(path).file for path in (*named, *state.gone)}
        for each in self._files.store.files():
            begun = number_begun(each.path)
            if begun is not None and begun < number and each.path not in known and self._files.remove(each.path):
                log.info("removed a file that nobody added", extra={"path": each.path})


def checkpointed(oracle: Oracle, catalog: CatalogLog, policy: CheckpointPolicy) -> int:
    """A checkpoint of the oracle's log that keeps what relations say of their history."""
    return oracle.checkpoint(policy, kept_now(oracle, catalog))


def kept_now(oracle: Oracle, catalog: CatalogLog) -> Mapping[str, int]:
    """What relations say of their history, by a catalog that has all that was acknowledged before: who asks for history
    must not lose any to who has not heard of it yet."""
    upper = oracle.barrier().result().catalog_upper
    return kept_history(catalog.when_upper(upper, CATALOG_TIMEOUT_S).result())


def _stopping() -> Unavailable:
    return Unavailable("the storage controller is stopping", hint="try again")


def _sums(sealed: Sealed) -> dict[str, int]:
    """What the files of one collection come to."""
    size = sum(each.size for each in sealed.files)
    return {"files": len(sealed.files), "bytes": size, "changes": sealed.changes, "rows": sealed.net}


@lru_cache(maxsize=2 * TOLD_COLUMNS_OF)
def _told_columns(file: Segment) -> dict[str, object] | None:
    """Remembered, since a status is asked for every few seconds and files do not change."""
    return dict(islice(shown(file), TOLD_COLUMNS)) or None


def _told(error: TidemarkError) -> dict[str, object]:
    return {"reason": error.message, "detail": error.detail}
