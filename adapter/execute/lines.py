"""Who changes a table waits until those have done so who came before: here, in this process, and outside of blocks.

What changes a table reads it, so of two at once one would be refused (:mod:`oracle.conflicts`) and begin again.  Those
of other adapters still may be; but no session of this one is overtaken for ever by its neighbours.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary


class Lines:
    """One line a table.  Lives on one event loop; a session waits in one place at a time, so their length is
    bounded."""

    def __init__(self) -> None:
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def first_of(self, tables: Iterable[str]) -> AsyncIterator[bool]:
        """Within it nobody else is at the head of the line of any of ``tables``; gives whether it had to wait."""
        waited = False
        async with AsyncExitStack() as stack:
            for each in sorted(set(tables)):  # all by one order, so nobody waits in a circle
                lock = self._lines.get(each) or self._lines.setdefault(each, asyncio.Lock())
                waited = waited or lock.locked()
                await stack.enter_async_context(lock)
            yield waited


PAUSE_S_MAX = 0.1
"""The longest pause before a statement is made anew.  It is any part of 5 ms the first time and of twice as much each
time: so two that met do not meet again, and 16 tries together take two seconds at most."""

_PAUSE_S_FIRST = 0.005


async def pause(done: int) -> None:
    """Between two tries of a statement, of which ``done`` are done: one at least."""
    await asyncio.sleep(random.uniform(0, min(PAUSE_S_MAX, _PAUSE_S_FIRST * 2 ** (done - 1))))
