"""Values of sequences: taken from the catalog in reserves, given out one after the other.

Promises: no value is given twice, by all adapters together and whatever becomes of them, as long as nobody sets the
sequence back (setval, RESTART, CYCLE); within one adapter values come in their order and without gaps, for as long as
it lives and no statement that had some fails.  What an adapter has in reserve when it is killed nobody gets: that is a
gap.  When it is closed, or alters the sequence, it gives that back, if nobody took values behind its own meanwhile.

How far a sequence has come is a setting of the catalog (:class:`catalog_log.objects.Sequence`).  A reserve is taken by
one compare-and-append that moves it on; after a conflict it is worked out again on the newest image.  Where nobody
knows what became of the append the reserve is lost, since it may be in the log; the statement hears so.  There is one
asker at a time for each sequence, and nobody who wants values of another one waits for him.

A reserve is not waited for to be in force: nobody's answer hangs on it.  It is said to the oracle all the same, beside
the statement, so that the catalog in force stays near the newest one.  setval is waited for, as DDL is.

As in Postgres for a sequence with a CACHE, an adapter that has a reserve goes on with it until it hears of a setval or
ALTER SEQUENCE elsewhere: that is when it has folded it, milliseconds later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from adapter.execute.ddl_commit import CATALOG_WAIT_S, CLOSE_TIMEOUT_S, TRIES_MAX, image_in_force
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.objects import Sequence
from journal.aio import Bridge, to_its_end
from journal.errors import Conflict, Indeterminate, InvalidUsage, TidemarkError, Unavailable
from journal.timestamps import CatalogTs
from oracle.client import Oracle
from sql.statements.ddl_sequences import position_of, put_position
from values.numeric.sequence_values import Position, count_of, taken

log = logging.getLogger(__name__)

BUSY_S = 1.0
"""A sequence whose reserve was used up sooner is busy, and its next one is twice as large.  So a reserve lasts about
this long, each is a catalog version that every process folds, and a busy sequence costs one or two a second and
adapter."""

RESERVE_MAX = 4_096
"""Values in a reserve that no CACHE and no statement asks for, or that any CACHE of a cycling sequence asks for: an
adapter answers some 2,800 INSERTs a second that draw one each (measured without a broker, on one core).  It is also the
largest gap that an adapter leaves when killed."""


HELD_MAX = 1_000
"""Sequences that an adapter remembers before it looks which of them are gone: more than most catalogs have."""


@dataclass
class _Held:
    """What this adapter has of a sequence.  ``set`` is the position's, of the time when the reserve was taken."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    runs: deque[range] = field(default_factory=deque)
    last: int | None = None
    """The value that was given out of ``runs`` last."""
    end: int | None = None
    """The last value of ``runs``."""
    newest: int = 0
    """How many values the newest reserve had."""
    before: Position = Position(0)
    """Where the sequence was when that was taken: not at the end of ours, if others took values meanwhile."""
    set: int = -1
    size: int = 0
    taken_s: float = float("-inf")
    filling: asyncio.Task[None] | None = None
    """The next reserve under way: it goes on where the statement that asked for it is given up, and is for the next."""

    def missing(self, at: Position, count: int) -> int:
        """How many of ``count`` values are not here, where the sequence is ``at``."""
        if self.set != at.set:
            self.runs.clear()
            self.last, self.set = None, at.set
        return count - count_of(self.runs)

    def next(self, count: int) -> list[int]:
        """The next values of what is here."""
        found: list[int] = []
        while len(found) < count:
            run = self.runs.popleft()
            wanted = count - len(found)
            found += run[:wanted]
            if len(run) > wanted:
                self.runs.appendleft(run[wanted:])
            self.last = found[-1]
        return found

    def without(self, at: Position) -> Position | None:
        """Where the sequence, which is ``at``, is without what is left here; ``None`` where it stays there."""
        if not self.runs or (at.set, at.last) != (self.set, self.end):
            return None
        if count_of(self.runs) >= self.newest:
            return replace(at, last=self.before.last, given=self.before.given)
        return replace(at, last=self.last)


class Sequences:
    """The sequences of one adapter.  Lives on one event loop."""

    def __init__(
        self,
        catalog: CatalogLog,
        oracle: Oracle,
        bridge: Bridge,
        now_ms: Callable[[], int],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._bridge = bridge
        self._now_ms = now_ms
        self._clock_s = clock_s
        self._held: dict[str, _Held] = {}
        self._newest = 0
        self._closed = False
        self._saying: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Give back what is left, take no more, and say nothing to the oracle any more: within ``CLOSE_TIMEOUT_S``."""
        self._closed = True
        held = [key for key, each in self._held.items() if each.runs]
        if held:
            giving = asyncio.ensure_future(asyncio.gather(*map(self.give_back, held), return_exceptions=True))
            await asyncio.wait({giving}, timeout=CLOSE_TIMEOUT_S)
            giving.cancel()
        tasks = {each for each in (self._saying, *(held.filling for held in self._held.values())) if each is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _of(self, sequence_id: str) -> _Held:
        if sequence_id not in self._held and len(self._held) >= HELD_MAX:
            self._held = {key: each for key, each in self._held.items() if self._catalog.image.item(key) is not None}
        return self._held.setdefault(sequence_id, _Held())

    def called(self, sequence_id: str) -> str | None:
        """The sequence's name, ``None`` where it is gone."""
        item = self._catalog.image.item(sequence_id)
        return item.name if item is not None else None

    async def take(self, sequence_id: str, count: int) -> list[int]:
        """The next ``count`` values.  2200H where there are not so many left, 42P01 where the sequence is gone;
        ``Indeterminate`` and ``Unavailable`` as the catalog says them: then no value was given."""
        if self._closed:
            raise Unavailable("the adapter is shutting down")
        held = self._of(sequence_id)
        async with held.lock:
            if held.filling is not None and not held.filling.done():
                await asyncio.wait({held.filling})
            _, at = self._known(self._catalog.image, sequence_id)
            if held.missing(at, count) > 0:
                held.filling = asyncio.get_running_loop().create_task(self._refill(sequence_id, held, count))
                held.filling.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                await asyncio.wait({held.filling})
                held.filling.result()
            return held.next(count)

    async def give_back(self, sequence_id: str) -> None:
        """Move the sequence back to the value that was given out last, if what is behind it is ours.  Where that fails
        it is a gap."""
        held = self._held.get(sequence_id)
        if held is None:
            return
        async with held.lock:

            def moved(image: Image) -> tuple[Sequence, Position]:
                item, at = self._known(image, sequence_id)
                back = held.without(at)
                if back is None:
                    raise _NotOurs
                return item, back

            try:
                if held.filling is None or held.filling.done():
                    await self._append(moved)
            except (_NotOurs, TidemarkError) as error:
                log.info("what is left of a reserve is not given back", extra={"reason": repr(error)})
            held.runs.clear()

    async def put(self, sequence_id: str, value: int, given: bool) -> None:
        """Set the sequence to ``value``, and its next to the one behind that where it is ``given``; in force for
        everybody then.  22003, 42P01; ``Unavailable``, ``Indeterminate``."""
        held = self._of(sequence_id)
        async with held.lock:

            def moved(image: Image) -> tuple[Sequence, Position]:
                item, at = self._known(image, sequence_id)
                steps = item.steps
                if not steps.holds(value):
                    raise InvalidUsage(
                        f'setval: value {value} is out of bounds for sequence "{item.name}" '
                        f"({steps.lowest}..{steps.highest})",
                        sqlstate="22003",
                    )
                return item, at.put(value, given)

            await to_its_end(self._put(moved))

    async def _put(self, moved: Callable[[Image], tuple[Sequence, Position]]) -> None:
        upper = await self._append(moved)
        try:
            await self._oracle.apply_catalog_async(CatalogTs(upper))
        except TidemarkError as error:
            told = "the sequence was set, but nobody confirmed that it is in force"
            raise Indeterminate(told, detail=error.message, hint="look at pg_sequences") from error

    async def _refill(self, sequence_id: str, held: _Held, count: int) -> None:
        """Take a reserve with which there are ``count`` values, or more."""
        busy = self._clock_s() - held.taken_s < BUSY_S
        held.size = min(2 * held.size, RESERVE_MAX) if busy else 1
        reserve: tuple[range, ...] = ()
        before = at = Position(0)

        def moved(image: Image) -> tuple[Sequence, Position]:
            nonlocal reserve, before, at
            item, before = self._known(image, sequence_id)
            missing = held.missing(before, count)
            more = max(held.size, item.cache)
            if item.steps.cycle:  # each round is a run of its own
                more = min(more, RESERVE_MAX)
            reserve, at = taken(item.steps, before, max(missing, more))
            if count_of(reserve) < missing:
                raise _exhausted(item)
            return item, at

        try:
            upper = await self._append(moved)
        except InvalidUsage as error:
            if error.sqlstate != EXHAUSTED:
                raise
            state = await self._oracle.barrier_async()  # it may have been set back meanwhile, which is told to us first
            await image_in_force(self._catalog, self._bridge, state.catalog_upper)
            upper = await self._append(moved)
        held.runs.extend(reserve)
        held.end, held.newest, held.before = at.last, count_of(reserve), before
        held.taken_s = self._clock_s()
        self._say(upper)

    async def _append(self, moved: Callable[[Image], tuple[Sequence, Position]]) -> int:
        """Put the position that ``moved`` gives on the newest image; the upper from which it is there."""
        for _ in range(TRIES_MAX):
            image = self._catalog.image
            item, at = moved(image)
            new_upper = max(self._now_ms(), image.upper) + 1
            update = put_position(item, at)
            try:
                sent = self._catalog.compare_and_append(image.upper, new_upper, [update])
                return (await self._bridge.wait(sent)).upper
            except Conflict as conflict:
                actual = getattr(conflict, "actual_upper", image.upper + 1)
                await self._bridge.wait(self._catalog.when_upper(actual, CATALOG_WAIT_S))
        raise Conflict(
            "the catalog changes faster than values of a sequence can be taken",
            detail=f"{TRIES_MAX} proposals were overtaken",
            hint="try again",
        )

    def _known(self, image: Image, sequence_id: str) -> tuple[Sequence, Position]:
        item = image.item(sequence_id)
        if not isinstance(item, Sequence):
            self._held.pop(sequence_id, None)
            raise InvalidUsage("a sequence that the statement names was dropped", sqlstate="42P01")
        return item, position_of(item, image)

    def _say(self, upper: int) -> None:
        self._newest = max(self._newest, upper)
        if self._saying is None or self._saying.done():
            self._saying = asyncio.get_running_loop().create_task(self._apply(), name="sequences")

    async def _apply(self) -> None:
        said = 0
        while said < self._newest:
            said = self._newest
            try:
                await self._oracle.apply_catalog_async(CatalogTs(said))
            except TidemarkError as error:  # the next change of the catalog says it too
                log.info("a reserve of a sequence is not in force yet", extra={"reason": error.message})


class _NotOurs(Exception):
    """Somebody has taken values behind ours, or nothing is left."""


EXHAUSTED = "2200H"


def _exhausted(item: Sequence) -> InvalidUsage:
    word = "maximum" if item.steps.increment > 0 else "minimum"
    told = f'nextval: reached {word} value of sequence "{item.name}" ({item.steps.last})'
    return InvalidUsage(told, sqlstate=EXHAUSTED)
