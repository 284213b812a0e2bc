"""Stories over a :class:`~tests.adapter.world.World`: how they run, and adapters that lag behind in them."""

from __future__ import annotations

import asyncio

import pytest

from journal.errors import TidemarkError
from journal.memory import MemoryTransport
from tests.adapter.world import World
from tests.finishing import finished


def run(story):
    """Run ``story(world)`` on a loop of its own, bounded: where commit records carry rows, and where they do not."""
    for carries in (True, False):
        finished(story(World(carries)))


async def refused(awaitable) -> TidemarkError:
    with pytest.raises(TidemarkError) as caught:
        await awaitable
    return caught.value


async def until(condition) -> None:
    """Wait for a condition that another thread brings about; the caller's story is bounded."""
    while not condition():
        await asyncio.sleep(0.001)


class HeldTransport:
    """A catalog transport whose deliveries a test can hold back: an adapter that lags behind."""

    def __init__(self, topic):
        self.inner = MemoryTransport(topic)
        self.held = False
        self.waiting = []
        self.on_entries = None

    def append(self, value):
        return self.inner.append(value)

    def subscribe(self, from_offset, on_entries, on_error):
        self.on_entries = on_entries

        def deliver(entries):
            if self.held:
                self.waiting.append(entries)
            else:
                on_entries(entries)

        return self.inner.subscribe(from_offset, deliver, on_error)

    def release(self):
        self.held = False
        for entries in self.waiting:
            self.on_entries(entries)
        self.waiting.clear()

    def __getattr__(self, name):
        return getattr(self.inner, name)


def before_commit(adapter, change):
    """Have ``change`` happen once the next INSERT of ``adapter`` is planned, before it is committed."""
    commits, commit = adapter.executor.commits, adapter.executor.commits.commit

    async def after_the_change(session, entries):
        commits.commit = commit
        await change()
        await commit(session, entries)

    commits.commit = after_the_change


def lag(adapter):
    """Have the next statement of ``adapter`` prepared and planned on the catalog as it is now, whatever comes."""
    image, present, calls = adapter.catalog.image, adapter.executor.images.known, iter(range(2))

    async def as_it_was(upper):
        return await present(upper) if next(calls, None) is None else image

    adapter.executor.images.known = as_it_was
