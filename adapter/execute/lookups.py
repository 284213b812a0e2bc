"""Lookups of one adapter at one controller, sent together: those that come while a request is under way share the next.

A request of its own costs each reader more than the look-up does (gRPC, threads, two passes over the loop); N readers
who ask at once pay for one.  Readers of the same statement ask one question of several keys, and equal keys are one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from adapter.state.interfaces import Part
from controllers.peeks.lookup_codec import LOOKUPS_MAX, Answer, Asked, Found, Key
from controllers.peeks.peek import Peek, Question
from journal.errors import TidemarkError

TOLD_AT_ONCE = 16
"""Keys answered in one pass of the loop.  A statement behind each takes some 0.1 ms, so a pass takes a millisecond or
two, and what the first of 64 do next is under way while the others are served (a sixth more of them a second)."""

T = TypeVar("T")

Ask = Callable[[Sequence[Asked]], Awaitable[Sequence[Answer]]]
"""Sends one request.  Where it fails, or the answer is not understood, each is "not now"."""


class Whole:
    """The rows that one request found for all readers of a question."""

    __slots__ = ("_cast", "_columns", "batch")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._columns: object = None
        self._cast = batch

    def cast(self, columns: T, cast: Callable[[pa.RecordBatch, T], pa.RecordBatch]) -> pa.RecordBatch:
        """``cast(batch, columns)``, done once for readers who name the very same ``columns``: a plan's."""
        if self._columns is not columns:
            self._cast, self._columns = cast(self.batch, columns), columns
        return self._cast


class TableAnswer:
    """A :class:`adapter.execute.peeks.PeekAnswer` that is all here: ``count`` rows of ``whole`` from ``at`` on."""

    __slots__ = ("as_of", "at", "count", "whole")

    def __init__(self, whole: Whole, at: int, count: int, as_of: int) -> None:
        self.whole, self.at, self.count, self.as_of = whole, at, count, as_of

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        for batch in Part(self.whole.batch, self.at, self.count):
            yield batch


Told = TableAnswer | TidemarkError | None
Readers = list[asyncio.Future[TableAnswer | None]]


class Lookups:
    """At most one request is under way.  Waiting lookups are bounded by the sessions, each of which has one at a time.

    Lives on one event loop.
    """

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> None:
        self._ask = ask
        self._loop = loop
        self._waiting: dict[Question, dict[Key, Readers]] = {}
        self._task: asyncio.Task | None = None
        self._scheduled = False

    def lookup(self, peek: Peek) -> Awaitable[TableAnswer | None]:
        """The answer, ``None`` where it must be asked by itself.  Raises what the controller raised for it."""
        found: asyncio.Future[TableAnswer | None] = self._loop.create_future()
        self._waiting.setdefault(peek.question(), {}).setdefault(peek.lookup.key, []).append(found)
        if self._task is None and not self._scheduled:
            # Once everybody who is ready has run: readers are usually woken together, by one barrier.
            self._scheduled = True
            self._loop.call_soon(self._begin)
        return found

    def _begin(self) -> None:
        self._scheduled = False
        self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                asked, readers = self._next()
                answers: Sequence[Answer] = ()
                try:
                    answers = await self._ask(asked)
                finally:
                    if len(answers) != len(asked):
                        answers = [None] * len(asked)
                    told = [pair for answer, each in zip(answers, readers, strict=True) for pair in _each(answer, each)]
                    self._tell(told)
        finally:
            self._task = None

    def _tell(self, told: Sequence[tuple[Readers, Told]]) -> None:
        """Some now, the others at the loop's next pass: what the first do next is not behind all of them."""
        for readers, answer in told[:TOLD_AT_ONCE]:
            _resolve(readers, answer)
        if len(told) > TOLD_AT_ONCE:
            self._loop.call_soon(self._tell, told[TOLD_AT_ONCE:])

    def _next(self) -> tuple[list[Asked], list[list[Readers]]]:
        """What the next request asks, and for each question who waits for each of its keys."""
        asked, readers, room = [], [], LOOKUPS_MAX
        while self._waiting and room:
            question, by_key = next(iter(self._waiting.items()))
            keys = list(islice(by_key, room))
            asked.append(Asked(question, keys))
            readers.append([by_key.pop(key) for key in keys])
            room -= len(keys)
            if not by_key:
                del self._waiting[question]
        return asked, readers


def _each(answer: Answer, by_key: Sequence[Readers]) -> Iterator[tuple[Readers, Told]]:
    """Who waits for each key, and what was found for it."""
    if not isinstance(answer, Found):
        for readers in by_key:
            yield readers, answer
        return
    at, whole = 0, Whole(answer.batch)
    for readers, count in zip(by_key, answer.counts, strict=True):
        if isinstance(count, TidemarkError):
            yield readers, count
            continue
        yield readers, TableAnswer(whole, at, count, answer.as_of)
        at += count


def _resolve(readers: Readers, answer: Told) -> None:
    for reader in readers:
        if reader.done():
            continue  # it was cancelled
        if isinstance(answer, TidemarkError):
            reader.set_exception(answer)
        else:
            reader.set_result(answer)
