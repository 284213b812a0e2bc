"""Kafka sources in the simulation: a user's topic, and the loop that reads it, around the product's own decisions.

What is the product's: which positions to begin at, what a topic made anew means, how records are judged, what one
commit binds (``controllers.storage.remap``), the pins of what is bound and their place in the oracle's fold.  What is
played here is who asks those: one thread of ``controllers.storage.source``, its fetches and its questions for ids.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from catalog_log.objects import Item
from collection import binding
from collection.binding import Run
from controllers.storage import remap
from journal.errors import Rejected, TidemarkError, Unavailable
from judge.simulation.clock import MS, S
from oracle.model import CommitPart

if TYPE_CHECKING:
    from judge.simulation.controllers import Storage
    from judge.simulation.world import World

TOPIC = "user-messages"

BATCH_LEN_MAX = 50
POLL_S = 0.03
BACKOFF_S = 0.5


class UserTopic:
    """A topic of the user's, one partition, in one of its lives."""

    def __init__(self, number: int) -> None:
        self.id = f"topic-{number}"
        self.values: list[bytes] = []


class UserTopics:
    """Those that there are, by name; brokers answer at once and never lie about them."""

    def __init__(self) -> None:
        self.there: dict[str, UserTopic] = {}
        self._made = 0

    def make(self, name: str) -> UserTopic:
        self._made += 1
        found = self.there[name] = UserTopic(self._made)
        return found

    def delete(self, name: str) -> None:
        del self.there[name]

    def rows(self, run: Run) -> list[tuple]:
        """The good rows of what is bound.  Raises 58P01 where they are gone."""
        topic, pin = self.there.get(run.topic), binding.pinned(run)
        if topic is None:
            raise Unavailable(f"topic {run.topic} does not exist", sqlstate="58P01", detail=f"{run}")
        if (pin is not None and pin != topic.id) or run.upper > len(topic.values):
            raise Rejected(f"rows of topic {run.topic} are gone", sqlstate="58P01", detail=f"{run}")
        return [(json.loads(value)["id"],) for value in topic.values[run.lower : run.upper]]


class Trouble(Exception):
    """Why this source cannot go on now."""


class SimSource:
    """One source in one life of the storage controller."""

    def __init__(self, storage: Storage, item: Item) -> None:
        self._storage = storage
        self._item = item
        self._attempts = 0
        self.stopped = False
        storage.serve(self._run())

    async def _run(self) -> None:
        while not self.stopped:
            try:
                await self._ingest()
            except (Trouble, TidemarkError):
                await asyncio.sleep(BACKOFF_S * (0.5 + self._world.rng.random()))

    @property
    def _world(self) -> World:
        return self._storage.world

    def _topic(self) -> UserTopic:
        found = self._world.user_topics.there.get(self._item.topic)
        if found is None:
            raise Trouble("it is not there")
        return found

    async def _answer(self) -> None:
        """What asking a broker takes."""
        await asyncio.sleep(self._world.delay(2 * MS) / S)

    async def _ingest(self) -> None:
        item, storage = self._item, self._storage
        await self._answer()
        topic_id = self._topic().id
        state = await storage.bridge.wait(storage.oracle.barrier())
        bound = state.bindings(item.id)
        if remap.made_anew(item.topic, topic_id, bound.pins()):
            raise Trouble("another topic")
        await self._answer()
        ends = {p: end for (t, p), end in bound.ends().items() if t == item.topic}
        positions = remap.start_positions(item.topic, ends, {0: (0, len(self._topic().values))})
        if isinstance(positions, remap.Problem):
            raise Trouble(positions.message)
        while not self.stopped:
            await self._answer()
            values = self._topic().values[positions[0] : positions[0] + BATCH_LEN_MAX]
            if not values:
                await asyncio.sleep(POLL_S * (0.5 + self._world.rng.random()))
                continue
            await self._answer()
            self._check_id(topic_id)  # asked after the fetch
            positions = await self._bind(values, positions, topic_id)

    def _check_id(self, topic_id: str) -> None:
        if self._topic().id != topic_id:
            raise Trouble("another topic")

    async def _bind(self, values: Sequence[bytes], positions: dict[int, int], topic_id: str) -> dict[int, int]:
        polled = {0: list(enumerate(values, positions[0]))}
        prepared = remap.prepare(self._item, polled, positions, binding.pin(topic_id))
        self._attempts += 1
        attempt = f"{self._storage.name}-{self._storage.life}/{self._item.id}/{self._attempts}"
        part = CommitPart(attempt, remap.bindings(self._item, prepared, ()))
        await self._storage.bridge.wait(self._storage.oracle.commit(part))
        return dict(prepared.positions)
