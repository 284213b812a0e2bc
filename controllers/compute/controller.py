"""The compute controller of one cluster: its views kept, its indexes followed, its peeks answered.

Promises: every view is maintained by the holder of the cluster's newest epoch only; a tick's outputs become visible by
one record, all or none; after a crash at any point nothing is lost or doubled, because rows count only once they are
bound, and uppers decide what is still to be done.  A controller whose epoch has passed stops itself.

What is to be done is the core's to say (:mod:`controllers.compute.core`); here are the threads that bring it what
happens and do what it says.  The commands' and the journals' readers only say that something moved; the control loop
(:meth:`run`) takes that in, releases peeks and asks for ticks; ticks run in the streaming query's thread, which
installs and evaluates views, but for one that reads much, which has a thread of its own for as long as that takes; one
thread follows indexes, one seals and merges chunks.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from catalog_log.log import CatalogLog
from catalog_log.model import NODES, Node
from catalog_log.settings import GEAR, key_of, setting_of
from collection.topic_keeper import PARTITIONS
from collection.writer import CollectionWriter
from controllers.at_work import open_at_work
from controllers.command_topic import open_command_topic
from controllers.commands import compute
from controllers.commands_log import Compaction, follow
from controllers.compute import core
from controllers.compute.core import (
    Answer,
    Claim,
    Claimed,
    Core,
    Drop,
    End,
    Follow,
    Moved,
    Opened,
    Outrun,
    Released,
    Started,
    Tick,
)
from controllers.compute.failures import of_object
from controllers.compute.feed import Feed
from controllers.compute.handling import Handling
from controllers.compute.heartbeat import Heartbeat, SparkEnded
from controllers.compute.indexes import Indexes
from controllers.compute.inventory import Inventory
from controllers.compute.judging_desk import JudgingDesk
from controllers.compute.lookup_server import LookupServer
from controllers.compute.maintainer import Maintainer
from controllers.compute.outlet import Outlet
from controllers.compute.peeks import PeekDesk
from controllers.compute.relation import Relation
from controllers.compute.server import ComputeServer
from controllers.compute.session import StartingSession, serve_files, stop_session, watched
from controllers.compute.ticking import Ticking
from controllers.compute.ticks import Ticker
from controllers.node_status import NodeStatus
from controllers.nodes import register
from controllers.protocol import ControllerState, Effect
from controllers.turns import SESSION_TIMEOUT_S, Turn
from journal.api import Subscription
from journal.errors import Indeterminate, TidemarkError, Unavailable
from journal.names import TopicNames
from journal.process import close_all
from journal.reading import READ_TIMEOUT_S
from journal.timestamps import DataTs
from oracle.client import Oracle, wall_clock_ms
from oracle.errors import StaleEpoch
from oracle.views_log import ViewsLog
from segments.log import SegmentsLog
from segments.reader import SegmentReader, of_environment
from segments.store import Store

log = logging.getLogger(__name__)

WINDOW_MS = 300_000
"""How far back reads may go in what merging and compaction forget: the oracle's own window."""

LANES = 4
"""Connections by which a tick's outputs go, so that a broker flushes several at once (``num.io.threads`` of ours).
Eight records to eight topics, in turns on a busy machine: 8.1 ms by one, 6.2 by two, 5.6 by four (p90 69, 33 and 23),
for the same time of a processor."""

CHECKPOINT_EVERY = 20_000
"""Records of the views' journal between checkpoints, as the storage controller has it for the oracle's."""

STANDS_BY_S = SESSION_TIMEOUT_S + 4.0
"""Who waits for its turn for longer stands by: one that died has lost it by then, and a broker with Kafka's defaults
has taken the 3 s in which it waits for others to join."""

LOOK_S = 1.0
"""How often failures and checkpoints are looked after; everything else is woken by events."""

FINISH_S = 5.0
"""How long a stopping controller waits for reads and ticks to end, which it cancels: a query of Spark's is given the
same by Spark.  What a tick had written is bound or counts for nothing."""

CLOSE_TIMEOUT_S = 4.0
"""For Spark and the clients of Kafka after that: Spark's JVM takes 2 to 4 s.  Both together stay below the 10 s after
which a supervisor kills."""


class ComputeController:
    """Open, :meth:`run` in one thread, done."""

    def __init__(
        self, bootstrap: str, names: TopicNames, cluster: str, spark: StartingSession, *,
        host: str = "127.0.0.1", port: int = 0, lookup_port: int = 0, store: Store | None = None,
        partitions: int = PARTITIONS,
    ) -> None:  # fmt: skip
        self._bootstrap = bootstrap
        self._names = names
        self._cluster = cluster
        self._incarnation = uuid.uuid4().hex[:12]
        self._wake = threading.Event()
        self._warm = threading.Event()
        """Set by the first tick of a life."""
        self._stop = threading.Event()
        self._standing_by = False
        self._commands = open_command_topic(bootstrap, names, compute(cluster))
        self._compaction = Compaction(self._commands)
        writer_id = f"compute-{cluster}"
        self._catalog = CatalogLog.open(bootstrap, names, writer_id)
        self._oracle = Oracle.open(bootstrap, names, writer_id, self._catalog.upper)
        self._views = ViewsLog.open(bootstrap, names, writer_id)
        for each in (self._catalog.journal.transport, self._views):
            each.make_ready()  # or who takes over waits for a second or two until it has claimed and registered
        self._writer = CollectionWriter(bootstrap, names, partitions=partitions, lanes=LANES)
        self._attempts = (f"{self._incarnation}-s{n}" for n in itertools.count(1))
        self._at_work = open_at_work(bootstrap, names, compute(cluster), self._incarnation)
        self._scratch = spark.scratch
        self._spark = spark.result()
        self._files = serve_files(self._spark, self._scratch / "chunks")
        log_of_segments = SegmentsLog.open(bootstrap, names, writer_id)
        segments = SegmentReader(log_of_segments, of_environment(store, log_of_segments))
        self._feed = Feed(bootstrap, self._oracle, self._views, segments)
        self._inventory = Inventory(
            self._spark, self._scratch / "chunks", self._feed, self._oracle, self._views, self._at_work,
            str if self._files is None else self._files.uri,
        )  # fmt: skip
        self._indexes = Indexes(self._inventory, cluster, WINDOW_MS, self._at_work)
        self._core = Handling(Core(cluster, self._at_work, self._inventory.reads_much))
        self._desk = PeekDesk(self._core, self._spark, self._inventory, self._indexes, self._gear)
        self._lookups = LookupServer(host, lookup_port, self._desk)
        self._judging = JudgingDesk(self._spark, bootstrap)
        self._server = ComputeServer(
            host, port, self._desk, self.status, self._lookups.port, self._retry, self._judging,
            lambda: self._at_work.has_begun,
        )  # fmt: skip
        self._command_offset = 0
        self._acted_offset = 0
        """What is below it was acted on, drops included."""
        self._blamed = False
        self._failure: BaseException | None = None
        self._checkpointing: threading.Thread | None = None
        self._ticking: Ticking | None = None
        self._ticker: Ticker | None = None
        self._follow_wake = threading.Event()
        self._heartbeat = Heartbeat(watched(self._spark), self._fail)
        # Last: whose turn comes is to begin, and not to wait for its Spark.
        self._turn = Turn(bootstrap, names, compute(cluster))

    def run(
        self, stopped: threading.Event, on_ready: Callable[[str], None],
        on_standing_by: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Serve until ``stopped``, once it is our turn; ``on_ready(address)`` when warm and registered, and
        ``on_standing_by()`` before that where another has the turn and lives.

        Raises what made it impossible to go on, :class:`~oracle.errors.StaleEpoch` if another took over.
        """
        subscription = None
        threads: list[threading.Thread] = []
        unsubscribe: list[Callable[[], None]] = []
        try:
            self._ticker = Ticker(self._spark, self._scratch / "ticks", lambda target: self._tick(target.ts))
            if not self._turn_comes(stopped, on_standing_by):
                return
            self._at_work.begin()
            self._carry_out(self._core.handle(Started()))
            end = self._commands.bounds()[1]
            subscription = follow(self._commands, self._on_commands, self._fail)
            self._await_commands(stopped, end)
            self._at_work.begun_with(self._inventory.catalog.objects)
            unsubscribe.append(self._oracle.subscribe(lambda *_: self._wake.set()))
            unsubscribe.append(self._views.subscribe(lambda *_: self._wake.set()))
            maintainer = Maintainer(self._spark, self._gear, self._outlet)
            self._ticking = Ticking(
                self._core, maintainer, self._inventory, self._views, self._writer, self._cluster, self._incarnation,
                WINDOW_MS, self._at_work, self._wake.set,
            )  # fmt: skip
            self._carry_out(self._core.handle(Opened(self._inventory.known(self._cluster))))
            while not self._warm.wait(0.1):
                self._check()
                self._look()
                if stopped.is_set():
                    return
            threads = [
                threading.Thread(target=self._guard, args=(target,), name=name, daemon=True)
                for target, name in ((self._follow_indexes, "index-follower"), (self._maintain, "chunk-keeper"))
            ]
            for thread in threads:
                thread.start()
            register(self._catalog, Node("compute", self._cluster, self._server.address, self._incarnation,
                                         wall_clock_ms()))  # fmt: skip
            on_ready(self._server.address)
            # ``stopped`` is set by a signal or a closed pipe: nothing wakes us for it, so look every so often.
            while not stopped.is_set():
                self._wake.wait(0.2)
                self._wake.clear()
                self._check()
                self._look()
                self._checkpoint_if_due()
        except TidemarkError as error:
            self._blame(error)
            raise
        except BaseException as error:
            # A JVM that ends takes down whoever asks it something, before the heartbeat looks: that is no error of
            # ours, and a start that met it may be tried again.
            ended = self._heartbeat.last_word()
            self._blame(ended or error)
            if ended is None:
                raise
            raise ended from error
        finally:
            self._close(subscription, unsubscribe, threads)

    def status(self) -> dict[str, object]:
        """For people and for the status command; any thread."""
        frontiers = self._inventory.frontiers()
        ticking = self._ticking
        return {
            "controller": compute(self._cluster),
            "incarnation": self._incarnation,
            "standing_by": self._standing_by,
            "ending": self._stop.is_set(),
            "catalog_frontier": self._inventory.catalog.frontier,
            "table_ts": frontiers.oracle.last_ts,
            "views": {} if ticking is None else ticking.status(frontiers),
            "indexes": self._indexes.status(),
            "peeks": self._desk.status(),
            "judging": self._judging.status(),
            "quarantined": self._at_work.notes.quarantined(),
            **({} if ticking is None else {"ticks": ticking.counts()}),
        }

    # -- what moved ---------------------------------------------------------------------------------------------------

    def _on_commands(self, state: ControllerState, effects: Sequence[Effect], next_offset: int) -> None:
        """On the command reader's thread."""
        self._inventory.take(state, effects)
        self._command_offset = next_offset
        self._wake.set()

    def _await_commands(self, stopped: threading.Event, end: int) -> None:
        """Until all commands that were there at the start are folded: nothing is built for what is gone by then.

        Raises ``Unavailable`` where none comes for ``READ_TIMEOUT_S``.
        """
        read, deadline = self._command_offset, time.monotonic() + READ_TIMEOUT_S
        while self._command_offset < end and not stopped.is_set():
            self._wake.wait(0.2)
            self._wake.clear()
            self._check()
            if self._command_offset > read:
                read, deadline = self._command_offset, time.monotonic() + READ_TIMEOUT_S
            elif time.monotonic() > deadline:
                raise Unavailable(f"no command came within {READ_TIMEOUT_S:g} s",
                                  detail=f"{read} of {end} are read")  # fmt: skip

    def _look(self) -> None:
        """Take in what moved: drop, release peeks, ask for a tick."""
        heard = self._command_offset
        dropped = self._inventory.dropped()
        self._carry_out(self._core.handle(Moved(self._inventory.known(self._cluster), dropped)))
        self._at_work.release(item.id for item in dropped)  # one note for all: each is waited for
        self._acted_offset = heard

    def _carry_out(self, effects: Sequence[core.Effect]) -> None:
        """On the control loop's thread, in this order."""
        for effect in effects:
            match effect:
                case Claim():
                    self._carry_out(self._core.handle(self._claimed()))
                case End(error):
                    raise error
                case Drop(item, ours):
                    if ours:
                        self._ticking.drop(item)
                    self._inventory.forget(item.id)
                case Follow():
                    if self._ticking.let_go():
                        self._wake.set()
                    self._indexes.reconcile()
                    self._follow_wake.set()
                case Answer(outcome):
                    self._desk.told(outcome)
                case Tick(ts, again):
                    self._ticker.move_to(ts, again=again)
                case other:
                    raise AssertionError(other)

    def _gear(self) -> str:
        """What the cluster's setting is now.  Any thread."""
        return setting_of(GEAR, self._inventory.catalog.settings.get(key_of(GEAR, self._cluster)))

    def _tick(self, ts: int) -> None:
        """On the streaming query's thread."""
        self._ticking.tick(ts, self._warm.set)  # who serves may still have views to come
        self._warm.set()
        self._wake.set()

    def _retry(self, object_id: str) -> bool:
        """Release from quarantine; whether it was there.  Any thread."""
        if self._at_work.refused(object_id) is None:
            return False
        self._at_work.release([object_id])
        self._indexes.forget(object_id)
        self._core.handle(Released())
        self._wake.set()
        return True

    def _blame(self, error: BaseException) -> None:
        """What was at work is to blame, if a tick ended us, or Spark under it, and not the lack of a broker or somebody
        who took over.  Who reads may have ended Spark as well: a view that was at work only then comes through next
        time, and is suspected no more."""
        at = () if self._ticking is None else self._ticking.at
        not_ours = self._failure is not None or isinstance(error, Unavailable | Indeterminate | StaleEpoch)
        if not at or (not_ours and not isinstance(error, SparkEnded)):
            return
        try:
            self._at_work.blame(at)
            self._blamed = True
        except TidemarkError as unknown:
            log.warning("nobody will know what this life ended of", extra={"reason": unknown.message, "at_work": at})

    def _outlet(self, relation: Relation) -> Outlet:
        """For what the view puts out that has ``relation``, where that is much."""
        return Outlet(relation, self._bootstrap, self._names.env, self._writer.order, self._attempts)

    # -- background ---------------------------------------------------------------------------------------------------

    def _guard(self, target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:
            self._fail(error)

    def _follow_indexes(self) -> None:
        while not self._stop.is_set():
            self._follow_wake.wait()
            self._follow_wake.clear()
            if self._stop.is_set():
                return
            self._indexes.follow(self._inventory.frontiers(), self._stop.is_set)

    def _maintain(self) -> None:
        while not self._stop.wait(LOOK_S):
            self._inventory.forget_history(self._cluster, DataTs(self._oracle.state.last_ts - WINDOW_MS))
            for relation in self._inventory.relations():
                try:
                    relation.maintain()
                except Exception as error:
                    # What it holds can be read as it is, and it is tried again.  Raises where Spark is dead.
                    why = of_object(self._spark, error).message
                    log.warning("a collection cannot be tidied up", extra={"collection": relation.id, "why": why})

    def _checkpoint_if_due(self) -> None:
        if self._checkpointing is not None and self._checkpointing.is_alive():
            return
        due = []
        if self._views.records_since_checkpoint >= CHECKPOINT_EVERY:
            due.append(("views", lambda: self._views.checkpoint(self._oracle.state.since)))
        catalog = self._inventory.catalog
        if self._ticking.drops_known() and self._compaction.due(catalog):
            due.append(("commands", partial(self._compaction.run, self._acted_offset, catalog.told)))
        if due:
            self._checkpointing = threading.Thread(target=self._checkpoint, args=(due,), name="checkpoint", daemon=True)
            self._checkpointing.start()

    def _checkpoint(self, due: Sequence[tuple[str, Callable[[], int | None]]]) -> None:
        for what, save in due:
            try:
                log.info("checkpointed", extra={"log": what, "at": save()})
            except TidemarkError as error:
                why = {"log": what, "reason": error.message, "detail": error.detail}
                log.warning("no checkpoint this time", extra=why)

    # -- life ---------------------------------------------------------------------------------------------------------

    def _turn_comes(self, stopped: threading.Event, on_standing_by: Callable[[], None]) -> bool:
        """Whether we have it; not where ``stopped`` came first."""
        began, serves = time.monotonic(), False
        while True:
            if self._turn.comes(0.2):  # nothing wakes us for ``stopped``
                serves = self._another_serves()
                if not serves:
                    break
                self._turn.give_back()
            self._check()
            if stopped.is_set():
                return False
            is_anothers = serves or self._turn.is_anothers()
            if is_anothers and not self._standing_by and time.monotonic() - began > STANDS_BY_S:
                log.info("stands by: another one has the turn", extra={"cluster": self._cluster})
                self._standing_by = True
                on_standing_by()
        if self._standing_by:
            log.info("takes over: whoever had the turn is gone", extra={"cluster": self._cluster})
        self._standing_by = False
        return True

    def _claimed(self) -> Claimed | Outrun:
        """What became of a claim.  Raises ``Unavailable``, ``Indeterminate``."""
        try:
            return Claimed(self._views.claim(self._cluster).result())
        except StaleEpoch as error:
            return Outrun(error)

    def _another_serves(self) -> bool:
        """Whether who is registered answers: brokers that were away for a while do not know whose turn it was."""
        image, key = self._catalog.image, f"compute/{self._cluster}"
        node = image.get(NODES, key)
        asked = NodeStatus()
        try:
            said = asked.ask(image, key)
        finally:
            asked.close()
        return node is not None and said.get("incarnation") == node.incarnation and not said.get("ending")

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._wake.set()

    def _check(self) -> None:
        """A stopped process beats a wrong catalog (I10)."""
        failed = self._failure or self._catalog.failed or self._oracle.failed or self._views.failed
        if failed is None and self._ticker is not None:
            failed = self._ticker.failure()
        if failed is not None:
            raise failed

    def _close(
        self, subscription: Subscription | None, unsubscribe: Sequence[Callable[[], None]],
        threads: Sequence[threading.Thread],
    ) -> None:  # fmt: skip
        """Bounded, whatever hangs: what is left behind is on threads that do not keep the process, and a JVM ends by
        itself with it."""
        self._heartbeat.close()
        self._stop.set()
        self._follow_wake.set()
        for end in unsubscribe:
            end()
        close_all(
            {
                **({} if subscription is None else {"commands' reader": subscription.close}),
                "judging": self._judging.close,
                "reads": self._stop_reads,
                **({} if self._ticker is None else {"ticks": self._stop_ticks}),
                **{thread.name: thread.join for thread in threads},
                "turn": self._leave,
            },
            FINISH_S,
        )
        close_all(
            {
                "at work": self._at_work.close,
                "spark": lambda: stop_session(self._spark),
                **({} if self._files is None else {"files": self._files.close}),
                "feed": self._feed.close,
                "writer": self._writer.close,
                "views": self._views.close,
                "oracle": self._oracle.close,
                "catalog": self._catalog.close,
                "commands": self._commands.close,
            },
            CLOSE_TIMEOUT_S,
        )

    def _leave(self) -> None:
        """Another one may begin while we end: by its epoch what we are still at counts for nothing.  Not before it
        can know that nothing of that is to blame."""
        try:
            if not self._blamed:
                self._at_work.ended()
        finally:
            self._turn.close()

    def _stop_reads(self) -> None:
        self._desk.close()
        self._lookups.close()
        self._server.shutdown()

    def _stop_ticks(self) -> None:
        self._ticker.stop()
        if self._ticking is not None:
            self._ticking.close()
