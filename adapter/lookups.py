"""Lookups of one adapter at one controller, sent together: those that come while a request is under way share the next.

A request of its own costs each reader more than the look-up does (gRPC, threads, two passes over the loop); N readers
who ask at once pay for one.  Equal lookups in a request, same values and same timestamps, are one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pyarrow as pa

from controllers.lookup_codec import LOOKUPS_MAX, LookedUp
from controllers.peek import Peek
from journal.errors import TidemarkError

Ask = Callable[[Sequence[Peek]], Awaitable[Sequence[LookedUp]]]
"""Sends one request.  Where it fails, or the answer is not understood, each is "not now"."""


class TableAnswer:
    """An answer that is all here (:class:`adapter.peeks.PeekAnswer`)."""

    def __init__(self, table: pa.Table, as_of: int) -> None:
        self.schema, self.as_of, self.table = table.schema, as_of, table

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        for batch in self.table.to_batches():
            yield batch


class Lookups:
    """At most one request is under way.  Waiting lookups are bounded by the sessions, each of which has one at a time.

    Lives on one event loop.
    """

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> None:
        self._ask = ask
        self._loop = loop
        self._waiting: dict[Peek, list[asyncio.Future[LookedUp]]] = {}
        self._task: asyncio.Task | None = None
        self._scheduled = False

    async def lookup(self, peek: Peek) -> TableAnswer | None:
        """The answer, ``None`` where it must be asked by itself.  Raises what the controller raised for it."""
        found: asyncio.Future[LookedUp] = self._loop.create_future()
        # Everything that makes the answer, and nothing else: who asks and how patiently does not.
        self._waiting.setdefault(peek._replace(peek_id="", timeout_ms=0), []).append(found)
        if self._task is None and not self._scheduled:
            # Once everybody who is ready has run: readers are usually woken together, by one barrier.
            self._scheduled = True
            self._loop.call_soon(self._begin)
        answer = await found
        if isinstance(answer, TidemarkError):
            raise answer
        return None if answer is None else TableAnswer(*answer)

    def _begin(self) -> None:
        self._scheduled = False
        self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                peeks = list(self._waiting)[:LOOKUPS_MAX]
                waiters = [self._waiting.pop(peek) for peek in peeks]
                answers: Sequence[LookedUp] = ()
                try:
                    answers = await self._ask(peeks)
                finally:
                    if len(answers) != len(peeks):
                        answers = [None] * len(peeks)
                    for futures, answer in zip(waiters, answers, strict=True):
                        for future in futures:
                            if not future.done():  # its reader was cancelled
                                future.set_result(answer)
        finally:
            self._task = None
