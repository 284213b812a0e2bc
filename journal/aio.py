"""From threads to asyncio: many completions, one wake-up of the loop.

Waking the loop for every message costs more than Kafka does (FACTS), so completions are collected and handed over by
one ``call_soon_threadsafe`` for all that arrived before the loop got to it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import TypeVar

from journal.errors import Conflict, Indeterminate

T = TypeVar("T")


async def to_its_end(sent: Awaitable[T]) -> T:
    """The answer to ``sent``, awaited even if the caller is cancelled: what was sent cannot be taken back.

    ``sent`` bounds itself.
    Where it was refused (``Conflict``) and the caller was cancelled meanwhile, the cancel is the answer: nothing
    happened, and nobody wants it to be tried again.  Cancelled a second time, because the process ends, it raises
    ``Indeterminate``: what comes of it nobody will hear.
    """
    asked = asyncio.ensure_future(sent)
    try:
        return await asyncio.shield(asked)
    except asyncio.CancelledError as cancelled:
        if asked.cancelled():
            raise
        try:
            return await asyncio.shield(asked)
        except Conflict:
            raise cancelled from None
        except asyncio.CancelledError:
            if asked.cancelled():
                raise
            asked.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            raise Indeterminate(
                "the adapter is shutting down before anybody knows what became of the statement",
                hint="it may have happened and may still: look before trying again",
            ) from None


class Bridge:
    """Lets coroutines of ``loop`` await futures that other threads complete."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ready: deque[tuple[asyncio.Future, Future]] = deque()  # bounded by the waits in progress
        self._scheduled = False
        self._lock = threading.Lock()

    async def wait(self, future: Future[T]) -> T:
        """The result of ``future``, or its exception.  Cancelling the wait leaves ``future`` alone."""
        if future.done():
            return future.result()
        waiting: asyncio.Future[T] = self._loop.create_future()
        future.add_done_callback(lambda done: self._hand_over(waiting, done))
        return await waiting

    def _hand_over(self, waiting: asyncio.Future, done: Future) -> None:
        with self._lock:
            self._ready.append((waiting, done))
            if self._scheduled:
                return
            self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop was closed: nobody waits any more
            self._ready.clear()

    def _drain(self) -> None:
        with self._lock:
            ready, self._ready = self._ready, deque()
            self._scheduled = False
        for waiting, done in ready:
            if waiting.done():
                continue  # cancelled meanwhile
            error = done.exception()
            if error is None:
                waiting.set_result(done.result())
            else:
                waiting.set_exception(error)
