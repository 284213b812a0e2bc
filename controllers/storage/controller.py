"""The storage controller: what the commands say becomes topics and running sources.

Promises: topics are made for live objects only, also after a restart (the whole command log is folded before anything
is done); topics of dropped objects go, foreign topics are never touched; each live source is read by one thread; the
table timeline moves on once a second without writes; rows that the oracle's log carries are moved out of it where they
are many; what is settled is sealed in files where there is a store; the log is checkpointed and cut.  Each live sink
is written by one thread, and what it has not written yet stays readable (:mod:`controllers.storage.sinks`).

It keeps nothing of its own: commands, bindings and the catalog are all it needs to begin again.  A second storage
controller beside it does no harm: bindings are contiguous, so one of the two commits each range.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from dataclasses import replace
from functools import partial

import pyarrow as pa

from catalog_log import objects
from catalog_log.log import CatalogLog
from catalog_log.model import Node
from catalog_log.objects.source import whose_progress
from catalog_log.records import INLINE_FROM, SEGMENTS_FROM, STATISTICS_FROM
from catalog_log.settings import next_item_id
from collection.binding import BoundRun
from collection.reader import RunReader
from collection.topic_keeper import PARTITIONS, TopicKeeper
from collection.writer import CollectionWriter
from controllers.at_work import open_at_work
from controllers.command_topic import open_command_topic
from controllers.commands import STORAGE
from controllers.commands_log import Compaction, follow
from controllers.copying import may_be_copied_elsewhere
from controllers.nodes import register
from controllers.protocol import Altered, ControllerState, Created, Dropped, Effect
from controllers.storage import waves
from controllers.storage.backlog import Backlog
from controllers.storage.brokers import Brokers, Elsewhere
from controllers.storage.copied import Copied
from controllers.storage.executors import Executors
from controllers.storage.generating import Generating
from controllers.storage.mover import Mover
from controllers.storage.reconcile import WRITTEN, may_be_written, reconcile
from controllers.storage.sealer import WAITS, Sealer, Waits, checkpointed
from controllers.storage.sealing import SEAL_ROWS
from controllers.storage.sharing import CARRIED_BYTES
from controllers.storage.sinks import Sinks
from controllers.storage.source import Source
from controllers.storage.source_thread import SourceThread
from controllers.storage.status_server import StatusServer
from controllers.storage.taking import InPlace, Taking
from controllers.vacuum import Won, decode_asked, encode_won
from journal.api import Subscription
from journal.errors import TidemarkError, Unavailable
from journal.names import TopicNames
from journal.process import close_all
from journal.timestamps import TABLE, CatalogTs
from oracle.checkpoints import CHECKPOINT_POLICY, CheckpointPolicy
from oracle.client import Oracle, wall_clock_ms
from oracle.views_log import ViewsLog
from segments.fold import NOTHING
from segments.log import SegmentsLog
from segments.reader import of_environment
from segments.store import Store
from segments.unsealed import unsealed

log = logging.getLogger(__name__)

CHECKPOINT_EVERY = 20_000
"""Records of the oracle's log between checkpoints: folded in about a second by whoever starts."""

CHECKPOINT_EVERY_BYTES = 64 << 20
"""Likewise, of records that carry rows: 20,000 of those can be gigabytes, and reading them takes longer than a start
may (``oracle.checkpoints.RECOVER_TIMEOUT_S``).  Twice what an image may hold of rows, so that most of what is written
is not images."""

IDLE_ADVANCE_S = 1.0

FINISH_S = 5.0
"""How long a stopping controller waits for what is under way: a commit is answered within a watchdog or two.  What is
not is found in the bindings by whoever begins anew."""

CLOSE_TIMEOUT_S = 2.0
"""For the clients of Kafka after that: a producer's watchdog.  Both together stay below the 10 s after which a
supervisor kills."""

CATALOG_TIMEOUT_S = 60.0
"""For folding the catalog up to what the oracle knows of it, at a start."""

BATCHES_MAX = 1000
"""Command batches read ahead of us."""

NOWHERE = CatalogTs(0)

Batch = tuple[ControllerState, Sequence[Effect], int]


class StorageController:
    """Runs in the thread that calls :meth:`run`."""

    def __init__(
        self, bootstrap: str, names: TopicNames, *, checkpoint_every: int = CHECKPOINT_EVERY,
        host: str = "127.0.0.1", port: int = 0, store: Store | None = None, seal_rows: int = SEAL_ROWS,
        carried: int = CARRIED_BYTES, policy: CheckpointPolicy = CHECKPOINT_POLICY, waits: Waits = WAITS,
        partitions: int = PARTITIONS,
    ) -> None:  # fmt: skip
        """``store``: where settled rows go (none: they stay on topics); ``seal_rows``, ``carried``, ``policy`` and
        ``waits``: when, what history stays readable, and for how long what was exchanged stays; ``partitions``: of
        topics that are made."""
        self._bootstrap = bootstrap
        self._names = names
        self._checkpoint_every = checkpoint_every
        self._incarnation = uuid.uuid4().hex[:12]
        self._state = ControllerState()
        self._sources: dict[str, SourceThread] = {}
        self._batches: queue.Queue[Batch | Exception] = queue.Queue(BATCHES_MAX)
        self._checkpointing: threading.Thread | None = None
        self._closing: list[threading.Thread] = []
        self._to_forget: dict[str, CatalogTs] = {}
        """Dropped collections with bindings, each with the catalog's upper that its drop is below.  Bounded by what was
        dropped since ``since`` last moved."""
        self._forget_lock = threading.Lock()
        self._forgot_at: tuple[int, int] | None = None
        """``since`` and the catalog upper when all of them were last looked at."""
        self._folded = 0
        self._topics_early = True
        """Whether topics are made before anybody writes to them: in catalogs of a format that code may know which waits
        for them."""
        self._may_seal = False
        self._may_measure = False
        self._ended = threading.Event()
        self._commands = open_command_topic(bootstrap, names, STORAGE)
        self._compaction = Compaction(self._commands)
        self._catalog = CatalogLog.open(bootstrap, names, STORAGE)
        self._oracle = Oracle.open(bootstrap, names, STORAGE, self._catalog.upper)
        for each in (self._catalog.journal.transport, self._oracle):
            each.make_ready()
        self._keeper = TopicKeeper(bootstrap, names, partitions)
        self._writer = CollectionWriter(bootstrap, names, self._keeper)
        self._mover = Mover(self._oracle, self._writer)
        self._store = store
        self._policy = policy
        self._seal_rows, self._carried, self._waits = seal_rows, carried, waits
        self._sealer: Sealer | None = None
        self._sealing = threading.Thread(target=self._seal, name="sealer", daemon=True)
        self._sealing_failed: BaseException | None = None
        self._at_work = open_at_work(bootstrap, names, STORAGE, self._incarnation).begin()
        self._executors = Executors(lambda: self._catalog.image)
        self._sinks = Sinks(
            bootstrap, names, self._oracle, store, self._catalog, self._at_work, lambda: self._state
        )
        self._server = StatusServer(host, self.status, port, self._retry, self._vacuum)

    def run(self, stopped: threading.Event, on_ready) -> None:
        """Serve until ``stopped``.  Calls ``on_ready(address)`` once everything that was known is being served.

        Raises what made it impossible to go on: the process should end then.
        """
        subscription = follow(self._commands, self._on_effects, self._offer)
        try:
            self._catch_up(stopped)
            self._begin_sealing()
            register(self._catalog, Node(STORAGE, "", self._server.address, self._incarnation, wall_clock_ms()))
            on_ready(self._server.address)
            advance_at = time.monotonic()
            while not stopped.is_set():
                self._take(max(0.0, min(advance_at - time.monotonic(), 0.2)))
                self._check()
                self._mover.look(self._to_forget)
                if time.monotonic() >= advance_at:
                    advance_at = time.monotonic() + IDLE_ADVANCE_S
                    self._advance()
                    self._checkpoint_if_due()
                    self._forget_due()
        finally:
            self._ended.set()
            self._close(subscription)

    def status(self) -> dict[str, object]:
        """For people: read from any thread."""
        sources = [s.status.told(wall_clock_ms()) for s in list(self._sources.values())]
        return {
            "controller": STORAGE,
            "incarnation": self._incarnation,
            "catalog_frontier": self._state.frontier,
            "objects": len(self._state.objects),
            "commands_ignored": self._state.ignored,
            "table_ts": self._oracle.state.last_ts,
            "topics": self._keeper.status(),
            "carried": self._mover.status(),
            **({} if self._sealer is None else {"segments": self._sealer.status()}),
            "sources": sources,
            "sinks": self._sinks.status(),
            "quarantined": self._at_work.notes.quarantined(),
        }

    def _retry(self, object_id: str) -> bool:
        """Release a source from quarantine; whether it was there.  It goes on by itself.  Any thread."""
        return bool(self._at_work.refused(object_id)) and bool(self._at_work.release([object_id]))

    def _vacuum(self, body: bytes) -> bytes:
        """Done, and what it won.  Any thread; raises ``TidemarkError``."""
        asked = decode_asked(body)
        if self._sealer is None:
            return encode_won(Won(store=False))
        done = self._sealer.vacuum(asked)
        while True:
            try:
                return encode_won(done.result(IDLE_ADVANCE_S))
            except FutureTimeout:
                if done.done():
                    raise
                if self._ended.is_set():
                    raise Unavailable("the storage controller is stopping", hint="try again") from None

    # -- commands

    def _on_effects(self, state: ControllerState, effects: Sequence[Effect], next_offset: int) -> None:
        self._offer((state, effects, next_offset))

    def _offer(self, found: Batch | Exception) -> None:
        """On the reader's thread."""
        while not self._ended.is_set():
            try:
                self._batches.put(found, timeout=0.2)
                return
            except queue.Full:
                continue  # we are slower than the log: hold the reader

    def _catch_up(self, stopped: threading.Event) -> None:
        """Fold what is there, then make the world match it.  Nothing is done for objects that lived in between."""
        end = self._commands.bounds()[1]
        while self._folded < end and not stopped.is_set():
            batch = self._next(0.2)
            if batch is None:
                continue
            self._state, _, self._folded = batch
        existing = self._keeper.existing()
        bound = self._oracle.barrier().result()
        # By the catalog's word: the commands may have been cut above what was dropped.
        image = self._catalog.when_upper(bound.catalog_upper, CATALOG_TIMEOUT_S).result()
        self._topics_early = image.genesis.format_version < INLINE_FROM
        self._may_seal = image.genesis.format_version >= SEGMENTS_FROM
        self._may_measure = image.genesis.format_version >= STATISTICS_FROM
        known, next_id = self._state.objects, next_item_id(image)
        plan = reconcile(
            known, lambda each: image.item(each) is not None, next_id, existing, self._names, self._topics_early
        )
        self._keeper.create(plan.create)
        self._keeper.delete(plan.delete)
        for collection_id in bound.bound:
            owner = whose_progress(collection_id)
            if owner not in self._state.objects and image.item(owner) is None:
                self._forget(collection_id, CatalogTs(image.upper))
        for item in self._state.objects.values():
            self._begin_source(item)
            self._sinks.begin(item)

    def _take(self, timeout_s: float) -> None:
        batch = self._next(timeout_s)
        if batch is None:
            return
        self._state, effects, self._folded = batch
        create, delete = [], []
        for effect in effects:
            match effect:
                case Created(_, item):
                    if item.kind in WRITTEN and self._topics_early:
                        create.append(item.id)
                    self._begin_source(item)
                    self._sinks.begin(item)
                case Dropped(_, item):
                    if self._may_have_topic(item):
                        delete.append(item.id)
                    self._drop(item)
                case Altered(_, _, item) if isinstance(item, objects.Sink):
                    self._sinks.changed(item)
                case Altered(_, before, item) if isinstance(item, objects.Source):
                    if _reads_otherwise(before, item):
                        self._end_source(before, then=lambda: None)
                        self._begin_source(item)
                    elif item.id in self._sources:
                        self._sources[item.id].status.name = item.name
        self._keeper.create(create)
        self._keeper.delete(delete)

    def _may_have_topic(self, item: objects.Item) -> bool:
        """Whether the brokers are to be asked to remove it.  Where one holds nothing but garbage of a writer that died,
        they are at the next start."""
        if not may_be_written(item):
            return False
        if self._topics_early or isinstance(item, objects.MaterializedView):  # whose rows another journal binds
            return True
        return self._oracle.state.bindings(item.id).end(self._names.data(item.id), 0) is not None

    def _next(self, timeout_s: float) -> Batch | None:
        try:
            found = self._batches.get(timeout=max(timeout_s, 0.001))
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def _drop(self, item: objects.Item) -> None:
        self._at_work.release([item.id])
        if isinstance(item, objects.Source):
            if not item.group:  # whose rows are bound by the whole's thread until that ends
                parts = () if item.generator is None else item.generator.members
                gone = {item.id, item.progress_id, *(each for _, each in parts)}
                self._end_source(item, then=lambda: [self._forget(each) for each in gone])
        elif isinstance(item, objects.Sink):
            self._sinks.end(item)
        else:
            self._forget(item.id)

    # -- sources

    def _begin_source(self, item: objects.Item) -> None:
        if not isinstance(item, objects.Source) or item.id in self._sources or item.group:
            return
        if item.generator is not None:
            self._sources[item.id] = Generating(item, self._writer, self._oracle, self._incarnation, self._at_work)
        else:
            refused = f"topic {item.topic} is Tidemark's own" if self._names.kept(item.topic) else None
            self._sources[item.id] = Source(
                item, self._brokers_of(item), partial(self._taking, item), self._oracle, self._incarnation,
                self._at_work, refused, self._backlog_of(item),
            )  # fmt: skip

    def _backlog_of(self, item: objects.Source) -> Backlog | None:
        if item.in_place:
            return Backlog(self._executors, waves.RANGE_RECORDS)
        return Backlog(self._executors, waves.FIRST_RECORDS) if may_be_copied_elsewhere(item) else None

    def _brokers_of(self, item: objects.Source) -> Callable[[], Brokers]:
        """On the source's thread."""
        if item.reading is None or not item.reading.connection_id:
            ours = Brokers(self._bootstrap)
            return lambda: ours
        connection_id = item.reading.connection_id
        return lambda: Elsewhere(self._connection(connection_id))

    def _taking(self, item: objects.Source) -> Taking:
        if item.in_place:
            return InPlace(item, self._writer)
        return Copied(item, self._writer, self._connection, self._rows_of, self._names.env)

    def _connection(self, connection_id: str) -> objects.Connection:
        """One that a source names, which was there before it.  Raises ``Unavailable`` where it is gone."""
        image = self._catalog.when_upper(self._state.frontier, CATALOG_TIMEOUT_S).result()
        found = image.item(connection_id)
        if not isinstance(found, objects.Connection):
            raise Unavailable("the connection is gone", sqlstate="42704")
        return found

    def _rows_of(self, item: objects.Source, bound: Sequence[BoundRun]) -> Iterator[pa.Table]:
        """All changes of a copied source, wherever they are: the columns, then the diffs."""
        sealed = NOTHING if self._sealer is None else self._sealer.sealed(item.id)
        if self._sealer is not None:
            yield from self._sealer.settled(sealed, item.stored)
        with closing(RunReader(self._bootstrap)) as reader:
            for table, _ in reader.bound_chunks(unsealed(bound, sealed), item.stored):
                yield table

    def _end_source(self, item: objects.Item, then) -> None:
        """Stop it, and when its last commit is answered, ``then``.  Nobody waits for that."""
        source = self._sources.pop(item.id, None)
        if source is None:
            then()
            return
        source.stop()

        def wait() -> None:
            source.join()
            then()

        thread = threading.Thread(target=wait, name=f"end-{item.id}", daemon=True)
        thread.start()
        self._closing = [t for t in self._closing if t.is_alive()] + [thread]

    # -- segments

    def _begin_sealing(self) -> None:
        if self._store is None or not self._may_seal:
            return
        segments = SegmentsLog.open(self._bootstrap, self._names, STORAGE)
        self._sealer = Sealer(
            self._bootstrap, self._names, of_environment(self._store, segments), self._catalog, self._oracle,
            ViewsLog.open(self._bootstrap, self._names, STORAGE), segments,
            rows=self._seal_rows, policy=lambda: self._sinks.holding(self._policy), waits=self._waits,
            measures=self._may_measure, carried=self._carried,
        )  # fmt: skip
        self._sealing.start()

    def _seal(self) -> None:
        try:
            self._sealer.run()
        except BaseException as error:
            self._sealing_failed = error

    # -- the oracle

    def _forget(self, collection_id: str, upper: CatalogTs = NOWHERE) -> None:
        """Its bindings go once nobody can need them (``OracleState.forgettable``); from any thread."""
        with self._forget_lock:
            self._to_forget[collection_id] = max(upper, self._state.frontier)
            self._forgot_at = None

    def _forget_due(self) -> None:
        state = self._oracle.state
        at = state.since, state.catalog_upper
        with self._forget_lock:
            if self._forgot_at == at:
                return
            self._forgot_at = at
            due = {name: upper for name, upper in self._to_forget.items() if state.forgettable(name, upper)}
            for name in due:
                del self._to_forget[name]
        for name, upper in due.items():
            self._oracle.forget(name, upper).add_done_callback(_log_failure("bindings were not forgotten"))

    def _advance(self) -> None:
        now = wall_clock_ms()
        if self._oracle.state.last_ts < now - 1000 * IDLE_ADVANCE_S:
            self._oracle.advance(TABLE, now).add_done_callback(_log_failure("the table timeline did not advance"))

    def _checkpoint_if_due(self) -> None:
        if self._checkpointing is not None and self._checkpointing.is_alive():
            return
        due = []
        oracle = self._oracle
        many = oracle.records_since_checkpoint >= self._checkpoint_every
        if many or oracle.bytes_since_checkpoint >= CHECKPOINT_EVERY_BYTES:
            due.append(("oracle", partial(checkpointed, oracle, self._catalog, self._sinks.holding(self._policy))))
        if self._catalog.checkpoint_due():
            due.append(("catalog", self._catalog.checkpoint))
        if self._sealer is not None and self._sealer.checkpoint_due(self._checkpoint_every):
            due.append(("segments", self._sealer.checkpoint))
        busy = self._keeper.status()["pending"] or any(thread.is_alive() for thread in self._closing)
        if not busy and self._compaction.due(self._state):
            # Topics of what was dropped are gone, and bindings of it are known by the catalog itself.
            due.append(("commands", partial(self._compaction.run, self._folded, self._state.told)))
        if due:
            self._checkpointing = threading.Thread(target=self._checkpoint, args=(due,), name="checkpoint", daemon=True)
            self._checkpointing.start()

    def _checkpoint(self, due: Sequence[tuple[str, Callable[[], int | None]]]) -> None:
        for what, save in due:
            try:
                log.info("checkpointed", extra={"log": what, "at": save()})
            except (TidemarkError, TimeoutError) as error:
                why = {"log": what, "reason": str(error), "detail": getattr(error, "detail", None)}
                log.warning("no checkpoint this time", extra=why)

    def _check(self) -> None:
        """A stopped process beats a wrong catalog (I10)."""
        failed = self._catalog.failed or self._oracle.failed or self._sealing_failed or self._sinks.failed
        if failed is None and self._sealer is not None:
            failed = self._sealer.failed
        if failed is not None:
            raise failed

    def _close(self, subscription: Subscription) -> None:
        """Bounded, whatever hangs: what is left behind is on threads that do not keep the process."""
        for source in self._sources.values():
            source.stop()
        self._sinks.stop()
        if self._sealer is not None:
            self._sealer.stop()
        ending = [*self._closing, *([] if self._checkpointing is None else [self._checkpointing])]
        ending += [self._sealing] if self._sealing.ident is not None else []
        close_all(
            {
                "commands' reader": subscription.close,
                "status server": self._server.shutdown,
                "topic keeper": self._keeper.close,
                "notes": self._at_work.ended,
                **{f"source {each.item.id}": each.join for each in self._sources.values()},
                **self._sinks.joins(),
                **{thread.name: thread.join for thread in ending},
            },
            FINISH_S,
        )
        close_all(
            {
                "at work": self._at_work.close,
                "writer": self._writer.close,
                **({} if self._sealer is None else {"sealer": self._sealer.close}),
                "sinks": self._sinks.close,
                "oracle": self._oracle.close,
                "catalog": self._catalog.close,
                "commands": self._commands.close,
            },
            CLOSE_TIMEOUT_S,
        )


def _reads_otherwise(before: objects.Source, after: objects.Source) -> bool:
    """Whether more than its name is another."""
    return replace(before, name=after.name, schema_id=after.schema_id, create_sql=after.create_sql) != after


def _log_failure(what: str):
    def look(done) -> None:
        error = done.exception()
        if error is not None:
            log.warning(what, extra={"reason": str(error)})

    return look
