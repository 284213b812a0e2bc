"""The processes of a simulated environment: thin shells around the product's own classes.

An adapter runs the real ``TidemarkExecutor`` (with its DDL queue, inserter and oracle client) on a loop of the
simulation's; a subscriber the real stepper, translation and command sender; a compute controller the real fold of its
commands, ``PeekQueue``, ``Frontiers``, the deciding half of ``Ticking`` and a ``ViewsLog``.  What the simulation plays
itself: sockets, the node registry (a peek goes to the newest controller that answers), rows on data topics (tuples
instead of Avro) and the evaluation of queries (:mod:`tests.judge.simulation.queries`).

An object here is one life of a process.  Killed, it is dropped as it is: nothing of it acts any more.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adapter import ddl_topic
from adapter.executor import TidemarkExecutor
from adapter.session_state import SessionState
from catalog_log import snapshot
from catalog_log.image import EMPTY as NO_IMAGE
from catalog_log.log import CatalogLog
from catalog_log.model import MATERIALIZED_VIEW, Item
from collection.binding import Run
from controllers import commands
from controllers.commands_log import CommandFold
from controllers.compute.inventory import Frontiers
from controllers.compute.ticking import Ticking
from controllers.peek import Peek
from controllers.protocol import Dropped, FrontierAdvanced
from controllers.waiting import Cancelled, PeekQueue, Ready, TimedOut
from controllers.waiting import Dropped as PeekDropped
from journal.aio import Bridge
from journal.api import Entry
from journal.errors import Indeterminate, InvalidUsage, TidemarkError, Unavailable
from journal.folded import FoldedJournal
from journal.timestamps import DataTs
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.errors import SnapshotTooOld, StaleEpoch
from oracle.fold import fold
from oracle.image import load
from oracle.link import unique_writer
from oracle.state import EMPTY
from oracle.views import NO_VIEWS, fold_views
from oracle.views_image import load_views
from oracle.views_log import ViewsLog
from oracle.views_records import ViewCommit
from subscribers.sender import CommandSender
from subscribers.stepper import Stepper
from tests.judge.simulation import queries
from tests.judge.simulation.clock import ACTIVE, MS, S, SimLoop, monotonic_s
from tests.judge.simulation.kafka import SimTransport

if TYPE_CHECKING:
    from tests.judge.simulation.world import World

CLUSTER = "default"
WRITE_TIMEOUT_NS = 30 * S
PEEK_RETRY_NS = 100 * MS


class Process(ABC):
    """One life of a process."""

    kind = "process"

    def __init__(self, world: World, name: str, skew_ms: int = 0) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.ready = False
        self.paused = False
        self.backlog: list[tuple[Callable, tuple]] = []
        self.skew_ms = skew_ms
        self.cut_until = 0
        """Until then nothing it sends arrives in time, and nothing reaches it."""
        self.loop = SimLoop(self)
        self.bridge = Bridge(self.loop)
        self.logs: list[tuple[str, Any]] = []
        """(topic, a journal with ``position``): what the invariants look at."""

    def now_ms(self) -> int:
        """Its wall clock."""
        return self.world.wall_ms() + self.skew_ms

    def start(self) -> Process:
        ACTIVE.booting = self
        try:
            self.boot()
        finally:
            ACTIVE.booting = None
        self.loop.run_ready()
        return self

    @abstractmethod
    def boot(self) -> None:
        """Open what it reads and begin its work."""

    def transport(self, topic: str) -> SimTransport:
        return SimTransport(self, self.world.topic(topic))

    def spawn(self, work: Any) -> asyncio.Task:
        """Run a coroutine as long as the process lives."""
        return self.loop.create_task(work)

    def serve(self, work: Any) -> None:
        """As :meth:`spawn`, for the process's own work: what that raises is a fault of the product's or ours."""

        def ended(task: asyncio.Task) -> None:
            if self.alive and not task.cancelled() and task.exception() is not None:
                error = task.exception()
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.world.broken(f"{self.name}: {type(error).__name__}: {error} at {where.name}:{where.lineno}")
                self.stopped(error)

        self.loop.create_task(work).add_done_callback(ended)

    def kill(self) -> None:
        self.alive = False
        self.backlog.clear()
        self.loop.ready.clear()
        for topic in self.world.topics.values():
            topic.readers = [reader for reader in topic.readers if reader.transport.owner is not self]

    def stopped(self, error: Exception) -> None:
        """It stopped by itself: a stopped process beats a wrong catalog, and somebody starts it again."""
        if self.alive:
            self.world.note_stop(self, error)
            self.kill()
            self.world.restart_later(self.name)

    # -- what several kinds have

    def open_catalog(self, topic: str = "env.catalog") -> CatalogLog:
        world = self.world
        transport = self.transport(topic)
        initial, offset = NO_IMAGE, 0
        saved = world.images.get(topic)
        if saved is not None and (world.topic(topic).start or world.rng.random() < 0.8):
            offset, data = saved
            initial = snapshot.from_bytes(data)
        catalog = world.catalog_class(
            transport, self.name, expected=world.genesis, initial=initial, from_offset=offset,
            bulk_below=transport.bounds()[1], threaded=False,
        )  # fmt: skip
        self.logs.append((topic, catalog.journal))
        catalog.failure.add_done_callback(lambda failed: self.stopped(failed.result()))
        return catalog

    def open_oracle(self, catalog_upper: Callable[[], int], topic: str = "env.oracle") -> Oracle:
        world = self.world
        state = EMPTY
        store = world.store(topic)
        saved = store.load()
        if saved is not None and (world.topic(topic).start or world.rng.random() < 0.9):
            state = load(saved[1], topic)
        journal = FoldedJournal(
            self.transport(topic), fold, state, state.next_offset, name="oracle", start=False, threaded=False
        )
        self.logs.append((topic, journal))
        oracle = Oracle(
            journal, unique_writer(self.name), catalog_upper, Checkpoints(store, topic), now_ms=self.now_ms,
            clock=monotonic_s,
        )  # fmt: skip
        oracle.failure.add_done_callback(lambda failed: self.stopped(failed.result()))
        return oracle

    def open_views(self) -> ViewsLog:
        topic = "env.views"
        state = NO_VIEWS
        store = self.world.store(topic)
        saved = store.load()
        if saved is not None and (self.world.topic(topic).start or self.world.rng.random() < 0.9):
            state = load_views(saved[1], topic)
        journal = FoldedJournal(
            self.transport(topic), fold_views, state, state.next_offset, name="views", start=False, threaded=False
        )
        self.logs.append((topic, journal))
        views = ViewsLog(journal, unique_writer(self.name), Checkpoints(store, topic))
        views.failure.add_done_callback(lambda failed: self.stopped(failed.result()))
        return views

    async def caught_up(self, *journals: FoldedJournal) -> None:
        """Everything is folded that the topics held, as far as this process can see."""
        for journal in journals:
            while True:
                try:
                    await self.bridge.wait(journal.caught_up(60))
                    break
                except Unavailable:
                    continue


class DataWriter:
    """``adapter.insert.Writer`` onto virtual data topics: ``collection.writer`` without its thread.

    A write that gets no answer is sent again by a fresh producer; what lands twice is garbage that nothing binds.
    """

    def __init__(self, owner: Process) -> None:
        self._owner = owner
        self._transports: dict[str, SimTransport] = {}

    def write(self, collection_id: str, columns: Any, rows: pa.Table | Sequence, attempt: str) -> Future:
        if isinstance(rows, pa.Table):
            rows = list(zip(*[column.to_pylist() for column in rows.columns], strict=True))
        done: Future = Future()
        if not rows:
            done.set_result([])
            return done
        name = f"env.data.{collection_id}"
        transport = self._transports.get(name)
        if transport is None:
            transport = self._transports[name] = self._owner.transport(name)
        self._send(transport, (attempt, tuple(rows)), done, self._owner.world.schedule.now + WRITE_TIMEOUT_NS)
        return done

    def _send(self, transport: SimTransport, value: tuple, done: Future, deadline: int) -> None:
        def sent(answer: Future) -> None:
            if done.done():
                return
            if answer.exception() is None:
                offset = answer.result()
                done.set_result([Run(transport.topic.name, 0, offset, offset + 1, value[0], len(value[1]))])
            elif self._owner.world.schedule.now >= deadline:
                done.set_exception(Unavailable("the rows could not be written", detail="nothing happened"))
            else:
                transport.renew()
                self._send(transport, value, done, deadline)

        transport.append(value).add_done_callback(sent)


class _Answer:
    def __init__(self, rows: list[tuple], width: int, as_of: int) -> None:
        self.as_of = as_of
        self._rows = rows
        self._width = width

    async def batches(self):
        columns = list(zip(*self._rows, strict=True)) if self._rows else [[]] * self._width
        arrays = [pa.array(column) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


class SimPeeks:
    """``adapter.peeks.Peeks`` over the virtual network: to the newest controller, again where that one is gone."""

    def __init__(self, owner: Process) -> None:
        self._owner = owner

    async def peek(self, peek: Peek, cluster_id: str, deadline_s: float) -> _Answer:
        world, owner = self._owner.world, self._owner
        deadline = int(deadline_s * S)
        while True:
            left = deadline - world.schedule.now
            if left <= 0:
                raise TidemarkError("canceling statement due to statement timeout", sqlstate="57014")
            answer = owner.loop.create_future()
            target = world.compute_for(peek)
            if target is not None:
                asked = peek._replace(timeout_ms=left // MS)
                world.schedule.after(world.delay(300_000), target, target.asked, asked, owner, answer)
                # A node that dies closes its connections; the adapter sees that a moment later.
                target.clients.append((owner, answer))
                try:
                    return await answer
                except Unavailable:
                    pass
            await asyncio.sleep(PEEK_RETRY_NS / S)

    async def lookup(self, peek: Peek, cluster_id: str) -> None:
        """No index answers at once here: every read waits for its frontiers, which is what the simulation is about."""

    def close(self) -> None:
        pass


class Adapter(Process):
    """Sessions, the DDL topic, and checkpoints now and then."""

    kind = "adapter"

    def boot(self) -> None:
        self.catalog = self.open_catalog()
        self.oracle = self.open_oracle(self.catalog.upper)
        self.executor = TidemarkExecutor(
            self.catalog, self.oracle, DataWriter(self), SimPeeks(self), self.bridge, now_ms=self.now_ms
        )
        self.sessions = 0
        self.open_calls: dict[int, Callable[[Any], None]] = {}
        self.serve(self._open())

    async def _open(self) -> None:
        await self.caught_up(self.catalog.journal, self.oracle._journal)
        self.executor.start()
        self.ready = True
        self.world.on_ready(self)

    def session(self) -> Sql:
        self.sessions += 1
        return Sql(self, SessionState(self.sessions))

    def serve_ddl(self) -> None:
        """Take over the DDL topic: what was not committed there is executed (perhaps again)."""
        self.serve(self._serve_ddl())

    async def _serve_ddl(self) -> None:
        world = self.world
        offset = world.ddl_committed
        while self.ready and (world.ddl_owner is self or world.rng.random() < 0.3):
            batch = world.ddl_log[offset : offset + 8]
            if not batch:
                if world.ddl_owner is not self:
                    return
                await asyncio.sleep(world.rng.randrange(5, 40) / 1000)
                continue
            answers = await asyncio.gather(*(ddl_topic.answer(self.executor, value, None) for value in batch))
            for _, reply in answers:
                world.ddl_reply(json.loads(reply))
            offset += len(batch)
            world.ddl_committed = max(world.ddl_committed, offset)


class Sql:
    """A session as a client of it sees it: text and parameters in, rows out."""

    def __init__(self, adapter: Adapter, state: SessionState) -> None:
        self.adapter = adapter
        self.state = state

    async def __call__(self, text: str, *params: Any) -> list[tuple]:
        executor = self.adapter.executor
        prepared = await executor.prepare(self.state, text)
        result = await executor.run(self.state, prepared, params)
        if result.columns is None:
            return []
        rows: list[tuple] = []
        if hasattr(result.batches, "__aiter__"):
            async for batch in result.batches:
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        else:
            for batch in result.batches:
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return rows

    async def transaction(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """``BEGIN; …; COMMIT`` of INSERTs, as ``adapter.session`` does it."""
        state = self.state
        state.defers_writes = True
        try:
            for text, params in statements:
                await self(text, *params)
        except BaseException:
            state.buffer.clear()
            raise
        finally:
            state.defers_writes = False
        await self.adapter.executor.commit(state)


class LogClient(Process):
    """A client of the log API: a catalog and an oracle of its own."""

    kind = "client"

    def __init__(self, world: World, name: str, skew_ms: int, env: str) -> None:
        super().__init__(world, name, skew_ms)
        self.env = env

    def boot(self) -> None:
        self.catalog = self.open_catalog(f"{self.env}.catalog")
        self.oracle = self.open_oracle(self.catalog.upper, f"{self.env}.oracle")
        self.open_calls: dict[int, Callable[[Any], None]] = {}
        self.serve(self._open())

    async def _open(self) -> None:
        await self.caught_up(self.catalog.journal, self.oracle._journal)
        self.ready = True
        self.world.on_ready(self)

    def session(self) -> LogClient:
        return self


class Subscriber(Process):
    """Feeds one controller: ``subscribers.worker.Subscriber`` without Faust, whose part the world's reader plays."""

    kind = "subscriber"

    def __init__(self, world: World, name: str, skew_ms: int, controller: str) -> None:
        super().__init__(world, name, skew_ms)
        self.controller = controller

    def boot(self) -> None:
        self.queue: list[Entry] = []
        self.arrived = asyncio.Event()
        self.sender = CommandSender(self.transport(f"env.commands.{self.controller}"), self.loop)
        catalog = self.transport("env.catalog")
        self.begin = catalog.bounds()[1]
        catalog.subscribe(0, self._on_entries, self.stopped)
        self.ready = True
        self.serve(self._work())

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        self.queue.extend(entries)
        self.arrived.set()

    async def _work(self) -> None:
        stepper = None
        try:
            while True:
                await self.arrived.wait()
                self.arrived.clear()
                taken, self.queue = self.queue, []
                for entry in taken:
                    if stepper is None:
                        state = await self.sender.learn()
                        await self.sender.flush()
                        stepper = self.world.stepper(self.controller, state.frontier, self.begin)
                    found = stepper.feed(entry)
                    if found:
                        await self.sender.send(found)
        except TidemarkError as error:
            self.stopped(error)


def new_stepper(controller: str, frontier: int, begin: int) -> Stepper:
    return Stepper(controller, frontier, begin)


class Storage(Process):
    """The storage controller as far as the catalog is concerned: it folds its commands."""

    kind = "storage"

    def boot(self) -> None:
        self.fold = CommandFold()
        self.ready = True
        self.transport("env.commands.storage").subscribe(0, self._on_entries, self.stopped)

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if any(isinstance(effect, FrontierAdvanced) for effect in self.fold.take(entry)):
                self.world.check_controller("storage", self.fold.state)


class _Inventory:
    """What ``Ticking`` asks of ``controllers.compute.inventory.Inventory``."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    @property
    def catalog(self) -> Any:
        return self._compute.fold.state

    def frontiers(self) -> Frontiers:
        views = self._compute.views.state
        return Frontiers(self._compute.fold.state.objects, self._compute.oracle.state, views)

    def views_of(self, cluster: str) -> dict[str, Item]:
        return self._compute.views_by_id


class SimTicking(Ticking):
    """The real decisions; evaluating and committing are the world's, one event after the other."""

    def __init__(self, compute: Compute, epoch: int) -> None:
        super().__init__(None, _Inventory(compute), compute.views, None, CLUSTER, epoch, compute.name, 0)
        self._compute = compute

    def tick(self, ts: int) -> None:
        frontiers = self._inventory.frontiers()
        ts = DataTs(min(ts, self._reachable(frontiers)))
        needing = self._needing(frontiers, ts)
        if not needing:
            return
        todo = sorted(v for v in self._with_readers(needing) if self._ready(v, frontiers, ts))
        self.busy = True
        self._compute.serve(self._compute.run_tick(todo, frozenset(needing), frontiers, ts))


class Compute(Process):
    """The compute controller of the one cluster."""

    kind = "compute"

    def boot(self) -> None:
        self.fold = CommandFold()
        self.catalog = self.open_catalog()
        self.oracle = self.open_oracle(self.catalog.upper)
        self.views = self.open_views()
        self.writer = DataWriter(self)
        self.queue = PeekQueue()
        self.ticking: SimTicking | None = None
        self.views_by_id: dict[str, Item] = {}
        self.waiting: dict[str, tuple[Process, asyncio.Future]] = {}
        self.clients: list[tuple[Process, asyncio.Future]] = []
        self.contents = Contents(self)
        self.epoch = 0
        self.writes = 0
        self._looking = False
        self._ticking_soon = False
        self._next_offset = 0
        self._gone: list[Item] = []
        self.serve(self._open())

    async def _open(self) -> None:
        try:
            await self.caught_up(self.catalog.journal, self.oracle._journal, self.views._journal)
            for _ in range(20):
                try:
                    self.epoch = await self.bridge.wait(self.views.claim(CLUSTER))
                    break
                except StaleEpoch:
                    continue
            transport = self.transport(f"env.commands.{commands.compute(CLUSTER)}")
            end = transport.bounds()[1]
            transport.subscribe(0, self._on_entries, self.stopped)
            while self._next_offset < end:
                await asyncio.sleep(0.02)
            self.ticking = SimTicking(self, self.epoch)
            self.oracle.subscribe(lambda *_: self.look_soon())
            self.views.subscribe(lambda *_: self.look_soon())
            self.ready = True
            self.world.on_ready(self)
            self.look_soon()
        except TidemarkError as error:
            self.stopped(error)

    def kill(self) -> None:
        super().kill()
        world = self.world
        for owner, answer in self.clients:
            if not answer.done():
                world.schedule.after(world.delay(1_000_000), owner, _refuse, answer)

    def stopped(self, error: Exception) -> None:
        super().stopped(error)

    def _on_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for effect in self.fold.take(entry):
                if isinstance(effect, Dropped):
                    self._gone.append(effect.item)
                elif isinstance(effect, FrontierAdvanced):
                    self.world.check_controller(commands.compute(CLUSTER), self.fold.state)
        objects = self.fold.state.objects
        self.views_by_id = {i: objects[i] for i in sorted(objects) if objects[i].kind == MATERIALIZED_VIEW}
        self._next_offset = entries[-1].offset + 1
        self.look_soon()

    # -- looking, as the real controller's loop does

    def look_soon(self) -> None:
        if not self._looking and self.ready:
            self._looking = True
            self.world.schedule.after(self.world.delay(500_000), self, self._look)

    def _look(self) -> None:
        self._looking = False
        views = self.views.state
        if views.epoch(CLUSTER) > self.epoch:
            self.stopped(StaleEpoch(self.epoch, views.epoch(CLUSTER)))
            return
        catalog = self.fold.state
        gone, self._gone = self._gone, []
        for item in gone:
            if item.id not in catalog.objects:
                self.ticking.drop(item)
        frontiers = Frontiers(catalog.objects, self.oracle.state, views)
        outcomes = []
        if catalog.frontier > self.queue.catalog_frontier:
            outcomes += self.queue.on_catalog_frontier(catalog.frontier, catalog.objects)
        outcomes += self.queue.on_data_frontier(frontiers.exact)
        outcomes += self.queue.on_time(self.world.schedule.now // MS)
        self._settle(outcomes)
        if not self._ticking_soon and not self.ticking.busy:
            target = self.ticking.wanted(frontiers)
            if target is not None:
                self._ticking_soon = True
                self.world.schedule.after(self.world.delay(2_000_000), self, self._tick, target)
        deadline = self.queue.next_deadline_ms()
        if deadline is not None:
            self.world.schedule.at(max(deadline * MS, self.world.schedule.now + S), self, self.look_soon)

    def _tick(self, target: int) -> None:
        self._ticking_soon = False
        self.ticking.tick(target)

    async def run_tick(self, todo: Sequence[str], needing: frozenset, frontiers: Frontiers, ts: DataTs) -> None:
        """One tick: evaluate at ``ts``, write the differences, commit all views together."""
        try:
            commits = []
            made: dict[str, list[tuple]] = {}
            for view_id in self._in_order(todo):
                item = self.views_by_id.get(view_id)
                if item is None:
                    continue
                progress = frontiers.views.view(view_id)
                before = self.contents.of_view(view_id, progress, progress.upper - 1) if progress.upper else []
                inputs = {
                    self._label(i): made[i] if i in made else self.contents.at(i, frontiers, ts) for i in item.inputs
                }
                after = queries.VIEWS[item.name.split("__")[0]][1](inputs)
                made[view_id] = after
                rows = _difference(before, after)
                rows = self.world.view_rows(self, view_id, rows)
                if not rows and view_id not in needing:
                    continue
                self.writes += 1
                runs = []
                if rows:
                    attempt = f"{self.name}-{self.epoch}-{self.writes}"
                    runs = await self.bridge.wait(self.writer.write(view_id, (), rows, attempt))
                commits.append(ViewCommit(view_id, progress.upper, tuple(runs)))
            if commits:
                await self.bridge.wait(self.views.commit(CLUSTER, self.epoch, ts, commits))
        except (TidemarkError, KeyError) as error:
            if isinstance(error, KeyError):
                raise
            self.stopped(error)
        finally:
            self.ticking.busy = False
            self.look_soon()

    def _in_order(self, todo: Sequence[str]) -> list[str]:
        """Views after the views that they read."""
        done: list[str] = []
        left = list(todo)
        while left:
            ready = [v for v in left if not any(i in left for i in self.views_by_id[v].inputs)] or left
            done += ready
            left = [v for v in left if v not in ready]
        return done

    def _label(self, object_id: str) -> str:
        item = self.fold.state.objects[object_id]
        return item.name

    # -- peeks

    def asked(self, peek: Peek, client: Process, answer: asyncio.Future) -> None:
        if not self.ready:
            self._send(client, answer, Unavailable("the controller is starting"))
            return
        self.waiting[peek.peek_id] = client, answer
        try:
            self._settle(self.queue.add(peek, self.world.schedule.now // MS))
        except TidemarkError as error:
            self._send(client, answer, error)
        self.look_soon()

    def _settle(self, outcomes: Sequence[Any]) -> None:
        for outcome in outcomes:
            client, answer = self.waiting.pop(outcome.peek.peek_id, (None, None))
            if client is None or isinstance(outcome, Cancelled):
                continue
            match outcome:
                case Ready(peek, as_of):
                    self.world.schedule.after(self.world.delay(500_000), self, self._run, peek, as_of, client, answer)
                case PeekDropped(_, object_id):
                    self._send(client, answer, InvalidUsage(f"relation {object_id} was dropped", sqlstate="42P01"))
                case TimedOut(peek, waiting_for):
                    self._send(client, answer, TidemarkError("canceling statement due to statement timeout",
                               sqlstate="57014", detail=waiting_for))  # fmt: skip

    def _run(self, peek: Peek, as_of: int, client: Process, answer: asyncio.Future) -> None:
        self.world.check_peek(self, peek, as_of)
        text, params, named, width = json.loads(peek.sql)
        frontiers = Frontiers(self.fold.state.objects, self.oracle.state, self.views.state)
        try:
            if peek.lookup is not None and peek.lookup.index_id not in self.fold.state.objects:
                raise InvalidUsage(f"index {peek.lookup.index_id} is unknown here", sqlstate="42704")
            inputs = {name: self.contents.at(i, frontiers, as_of) for name, i in named.items()}
            rows = queries.answer(text, params, inputs)
        except TidemarkError as error:
            self._send(client, answer, error)
            return
        self._send(client, answer, _Answer(rows, width, as_of))

    def _send(self, client: Process, answer: asyncio.Future, found: Any) -> None:
        self.clients = [pair for pair in self.clients if pair[1] is not answer]
        self.world.schedule.after(self.world.delay(300_000), client, _complete, answer, found)


class Contents:
    """Collections as lists of rows at a timestamp, read from bound runs: what a controller keeps in memory."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._kept: dict[str, tuple[int, list[int], list[tuple]]] = {}
        """Collection -> (through, timestamps, rows): tables only grow."""

    def at(self, object_id: str, frontiers: Frontiers, ts: int) -> list[tuple]:
        if frontiers.inputs_of(object_id) is not None:
            return self.of_view(object_id, frontiers.views.view(object_id), ts)
        bindings = frontiers.oracle.bindings(object_id)
        through, times, rows = self._kept.get(object_id, (0, [], []))
        if ts > through:
            try:
                found = bindings.between(through + 1, ts + 1) if through else bindings.at(ts)
            except SnapshotTooOld:
                times, rows, found = [], [], bindings.at(ts)
            for bound in sorted(found, key=lambda bound: bound.ts):
                for row in self._rows(bound.run):
                    times.append(bound.ts)
                    rows.append(row)
            self._kept[object_id] = ts, times, rows
            return rows
        return rows[: bisect_right(times, ts)]

    def of_view(self, view_id: str, progress: Any, ts: int) -> list[tuple]:
        counts: Counter = Counter()
        for bound in progress.runs.at(ts):
            for diff, row in self._rows(bound.run):
                counts[row] += diff
        if any(count < 0 for count in counts.values()):
            self._compute.world.violated("view-negative", f"view {view_id} has rows less than no times at {ts}")
        return [row for row, count in counts.items() for _ in range(count)]

    def _rows(self, run: Run) -> list[tuple]:
        topic = self._compute.world.topic(run.topic)
        found: list[tuple] = []
        for offset in range(run.lower, run.upper):
            value = topic.values[offset] if offset < topic.end else ("", ())
            if run.attempt and value[0] != run.attempt:
                self._compute.world.violated(
                    "lost-rows", f"{run.topic} offset {offset} is bound to attempt {run.attempt} and holds {value[0]!r}"
                )
                raise TidemarkError("rows are gone", sqlstate="58P01", detail=f"{run}")
            found.extend(value[1])
        return found


def _difference(before: Sequence[tuple], after: Sequence[tuple]) -> list[tuple[int, tuple]]:
    counts = Counter(after)
    counts.subtract(Counter(before))
    return [(count, row) for row, count in counts.items() if count]


def _refuse(answer: asyncio.Future) -> None:
    if not answer.done():
        answer.set_exception(Unavailable("the cluster's controller cannot be reached"))


def _complete(answer: asyncio.Future, found: Any) -> None:
    if answer.done():
        return
    if isinstance(found, BaseException):
        answer.set_exception(found)
    else:
        answer.set_result(found)


__all__ = ["Adapter", "Compute", "Indeterminate", "LogClient", "Process", "Sql", "Storage", "Subscriber"]
