"""Rows that the oracle's log carries, moved to the topics of their collections.

Promises: no reader can tell, at any timestamp (I5): a move puts the same batches, each visible since its own timestamp,
on a topic, and the fold exchanges all of a record's moves of a collection or none.  A mover that is killed between
writing and exchanging leaves garbage that nobody reads; two of them beside each other exchange each batch once.

What is small stays where it is: a table with a few rows costs no topic.  What is moved is what is much: the rows of a
collection above :data:`COLLECTION_BYTES`, and of the largest while all together are above :data:`HELD_BYTES_LOW`.  What
nobody tells apart any more is not moved where it can be put into files instead (:mod:`controllers.storage.sharing`).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from itertools import islice
from typing import Protocol

from collection.binding import BoundRun, Move, Run
from collection.rows import EncodedBatch
from journal.errors import TidemarkError
from oracle.bindings import carried
from oracle.client import Oracle
from oracle.records import CARRIED_SEALED
from oracle.state import HELD_BYTES_MAX, OracleState, held_bytes, held_for_good

log = logging.getLogger(__name__)

COLLECTION_BYTES = 256 << 10
"""Of one collection that the log may keep carrying: what is below is some hundred small writes."""

HELD_BYTES_LOW = HELD_BYTES_MAX // 8
"""Of all collections: an eighth of what is refused and a quarter of where adapters stop, so that a mover which is
restarted (5 s) is not noticed at 2 MB/s of small writes."""

SMALL_BYTES = 16 << 10
HELD_BYTES_HIGH = 3 * HELD_BYTES_MAX // 8
"""A collection that has less than that is moved only where all of them hold more than this, three quarters of where
adapters stop: in minutes it has a part of a file (:mod:`controllers.storage.sharing`), and a topic costs a broker some
100 kB for ever.  A broker of 1 GB that was given 9,000 topics by and by answered nobody any more."""

MOVE_BYTES_MAX = 4 << 20
MOVE_BATCHES_MAX = 5_000
"""Of one collection at once.  Written in some 50 ms, and folded in as many, which everybody waits for; its record has
one move for each stretch of offsets."""

UNDER_WAY_MAX = 100
"""Collections at once: where there are many thousands with a row each, thousands are due together, and the brokers are
not asked for that many topics in the time of one write."""

AFTER_FAILURE_S = 5.0
AFTER_FAILURE_MAX_S = 80.0
"""Before a collection is tried again whose move failed: twice as long after each failure.  What is written to a topic
that turns out to be no good stays on it, and whoever waits for one that is not there has all of this process's writes
sent again with a fresh producer."""


class Batches(Protocol):
    """``collection.writer.CollectionWriter``."""

    def write_batches(self, collection_id: str, batches: list[EncodedBatch], attempt: str) -> Future[list[Run]]: ...


def due(state: OracleState, dropped: Collection[str] = ()) -> list[str]:
    """The collections to be moved, the largest first.  Pure.

    Not what was ``dropped``: its topic is gone, and its rows go when it is forgotten.
    """
    kept = {name: size for name, size in state.held.items() if name not in dropped}
    total, stays, small = sum(kept.values()), 0, 0
    if _stay(state):
        gone = sum(held_for_good(state.bound[name]) for name in list(dropped) if name in state.held)
        stays, small = state.held_for_good - gone, SMALL_BYTES
        total -= stays
    least = COLLECTION_BYTES + 1 if total <= HELD_BYTES_LOW else small if total + stays <= HELD_BYTES_HIGH else 0
    kept = {name: size for name, size in kept.items() if size >= least}  # hardly any, of however many there are
    if stays:
        kept = {name: size - held_for_good(state.bound[name]) for name, size in kept.items()}
    found = []
    for name in sorted(kept, key=lambda name: (-kept[name], name)):
        enough = HELD_BYTES_LOW if kept[name] >= small else HELD_BYTES_HIGH - stays
        if not kept[name] or kept[name] <= COLLECTION_BYTES and total <= enough:
            break
        found.append(name)
        total -= kept[name]
    return found


def movable(state: OracleState, name: str) -> Iterable[BoundRun]:
    """The batches of a collection that may be moved.  Pure."""
    return (each for each in state.bound[name].recent if each.value) if _stay(state) else carried(state.bound[name])


def _stay(state: OracleState) -> bool:
    """Whether what is told apart no more stays where it is until it is in files (:mod:`controllers.storage.sharing`).
    """
    return state.record_version >= CARRIED_SEALED


def taken(runs: Iterable[BoundRun]) -> list[BoundRun]:
    """The first of ``runs`` that make one move.  Pure."""
    found, size = [], 0
    for each in islice(runs, MOVE_BATCHES_MAX):
        size += held_bytes(each.value)
        if found and size > MOVE_BYTES_MAX:
            break
        found.append(each)
    return found


def moves_of(collection: str, batches: list[BoundRun], runs: Iterable[Run]) -> list[Move]:
    """The moves that put ``batches``, in their order, where ``runs`` are.  Pure.

    A move is of numbers without a gap and of offsets without a gap: another writer may have written in between, and
    another mover may have taken some in the middle.
    """
    places = [(run, offset) for run in runs for offset in range(run.lower, run.upper)]
    moves: list[Move] = []
    for (run, offset), batch in zip(places, batches, strict=True):
        number = batch.run.lower
        last = moves[-1] if moves else None
        if (
            last is not None
            and last.run.partition == run.partition
            and last.run.upper == offset
            and last.number + last.run.upper - last.run.lower == number
        ):
            moves[-1] = last._replace(run=last.run._replace(upper=offset + 1))
        else:
            moves.append(Move(collection, number, run._replace(lower=offset, upper=offset + 1, rows=-1)))
    return moves


class Mover:
    """``look`` is called often, by one thread, and returns at once; the rest happens on the clients' threads."""

    def __init__(self, oracle: Oracle, writer: Batches, clock: Callable[[], float] = time.monotonic) -> None:
        self._oracle = oracle
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: set[str] = set()
        self._not_before: dict[str, tuple[float, float]] = {}
        """Collections whose last move failed: until when they are left, and how long that is; bounded by what is
        held."""
        self._moved = 0

    def look(self, dropped: Collection[str] = ()) -> None:
        """Begin whatever is due and not under way."""
        state = self._oracle.state
        now = self._clock()
        with self._lock:
            self._not_before = {name: left for name, left in self._not_before.items() if name in state.held}
            begin = [
                name for name in due(state, dropped)
                if name not in self._under_way and self._not_before.get(name, (now, 0))[0] <= now
            ][: max(UNDER_WAY_MAX - len(self._under_way), 0)]  # fmt: skip
            self._under_way.update(begin)
        for name in begin:
            self._write(name, state)

    def status(self) -> dict[str, int]:
        """For people: bytes that the log carries, of how many collections, and batches moved since the start."""
        state = self._oracle.state
        return {"held_bytes": state.held_bytes, "collections": len(state.held), "moved": self._moved}

    def _write(self, name: str, state: OracleState) -> None:
        batches = taken(movable(state, name))
        asked = [EncodedBatch(each.value, each.run.rows) for each in batches]
        try:
            written = self._writer.write_batches(name, asked, uuid.uuid4().hex)
        except TidemarkError as error:
            self._failed(name, error)
            return
        written.add_done_callback(lambda runs: self._exchange(name, batches, runs))

    def _exchange(self, name: str, batches: list[BoundRun], written: Future[list[Run]]) -> None:
        error = written.exception()
        if error is not None:
            self._failed(name, error)
            return
        asked = [self._oracle.move(move) for move in moves_of(name, batches, written.result())]
        left = _Countdown(len(asked), lambda error: self._ended(name, len(batches), error))
        for each in asked:
            each.add_done_callback(left.one)

    def _ended(self, name: str, count: int, error: BaseException | None) -> None:
        if error is not None:
            self._failed(name, error)
            return
        with self._lock:
            self._under_way.discard(name)
            self._not_before.pop(name, None)
            self._moved += count

    def _failed(self, name: str, error: BaseException) -> None:
        """What was written is garbage, if anything was; the rows are where they were, or somebody else moved them."""
        with self._lock:
            self._under_way.discard(name)
            if name in self._oracle.state.held:
                waited_s = self._not_before.get(name, (0, 0))[1]
                wait_s = min(max(2 * waited_s, AFTER_FAILURE_S), AFTER_FAILURE_MAX_S)
                self._not_before[name] = self._clock() + wait_s, wait_s
                told = {"collection": name, "reason": str(error), "detail": getattr(error, "detail", None)}
                log.warning("rows were not moved out of the log", extra=told)


class _Countdown:
    """Calls ``done`` with the first error, or ``None``, once ``count`` futures are answered."""

    def __init__(self, count: int, done: Callable[[BaseException | None], None]) -> None:
        self._left = count
        self._done = done
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def one(self, answered: Future) -> None:
        with self._lock:
            self._error = self._error or answered.exception()
            self._left -= 1
            ended = self._left == 0
        if ended:
            self._done(self._error)
