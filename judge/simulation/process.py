"""A process of a simulated environment: its loop, its clock, and the logs that it opens as the product does.

An object here is one life of a process.  Killed, it is dropped as it is: nothing of it acts any more.
"""

from __future__ import annotations

import asyncio
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from catalog_log import snapshot
from catalog_log.image import EMPTY as NO_IMAGE
from catalog_log.log import CatalogLog
from journal.aio import Bridge
from journal.errors import Unavailable
from journal.folded import FoldedJournal
from journal.link import unique_writer
from judge.simulation.clock import ACTIVE, SimLoop
from judge.simulation.kafka import SimTransport
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.fold import fold
from oracle.image import load
from oracle.state import EMPTY
from oracle.views import NO_VIEWS, fold_views
from oracle.views_image import load_views
from oracle.views_log import ViewsLog

if TYPE_CHECKING:
    from judge.simulation.world import World


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
