"""One process's access to the oracle: timestamps, barriers, commits (DESIGN §4; I3, I4, I10).

Promises: :class:`~oracle.timeline.TimestampOracle` for ``table`` and every generic timeline.  A barrier serves only
callers that arrived before its record was sent; N callers who arrive while one is under way share the next, for all
timelines at once.  A commit that answers with a timestamp happened exactly once; one that fails with ``Conflict``,
``Rejected`` or ``Unavailable`` did not and never will; ``Indeterminate`` says that it is not known.

It does not promise that a ``write_ts`` of ``catalog`` is good by itself: the catalog's compare-and-append proves it.

Every method may be called from any thread.  Each has an ``_async`` twin for coroutines, which answers all waiters of
one record with one wake-up of their loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from collection.binding import Move
from journal.api import Entry, Transport
from journal.checkpoint import CheckpointStore
from journal.errors import InvalidUsage
from journal.folded import FoldedJournal
from journal.kafka import KafkaTransport
from journal.link import Link, unique_writer
from journal.names import TopicNames
from journal.sender import DEADLINE_MS
from journal.settling import Fence
from journal.timestamps import CATALOG, TABLE, CatalogTs, DataTs
from journal.topics import verify_journal
from oracle.checkpointed import CheckpointedLog
from oracle.checkpoints import CHECKPOINT_POLICY, CheckpointPolicy, Checkpoints, open_recovered
from oracle.fold import fold
from oracle.image import dump, load
from oracle.lanes import Commit, Compaction, fence_record, make_lanes, move_weight, offsets_weight, part_weight
from oracle.model import (
    CommitPart,
    Kind,
    Offsets,
    Outcome,
    Stamp,
    check_move,
    check_name,
    check_offsets,
    check_part,
    check_ts,
)
from oracle.records import CARRIED_SEALED, CARRYING, KEEPING
from oracle.retention import NONE_KEPT, kept_since
from oracle.state import EMPTY, OracleState

log = logging.getLogger(__name__)

AHEAD_MS_MAX = 10_000
"""How far ``table`` may be ahead of this process's clock before it says so: far above what NTP leaves."""

ALARM_EVERY_MS = 60_000


def wall_clock_ms() -> int:
    """Milliseconds since the epoch by this machine."""
    return time.time_ns() // 1_000_000


class _Read:
    """What the journal's thread has read since the image that it began with, and how much of it was saved since."""

    def __init__(self) -> None:
        self.bytes = 0
        self.saved = 0

    def fold(self, state: OracleState, entry: Entry) -> tuple[OracleState, Outcome]:
        folded = fold(state, entry)
        self.bytes += len(entry.value)
        return folded


class Oracle(CheckpointedLog[OracleState]):
    """Open one with :meth:`open` (Kafka) or :meth:`over` (any transport); close it."""

    def __init__(
        self,
        journal: FoldedJournal[OracleState, Outcome],
        writer: str,
        catalog_upper: Callable[[], int],
        checkpoints: Checkpoints,
        *,
        read: _Read | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
        deadline_ms: int = DEADLINE_MS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(journal, writer, checkpoints)
        self._read = read or _Read()
        self._catalog_upper = catalog_upper
        self._now_ms = now_ms
        self._alarm_at_ms = 0
        lanes = make_lanes(catalog_upper, now_ms, lambda: journal.state)
        # A commit expects nothing of the log: it may be sent anew only once it is known that the first never counts.
        fence = Fence(lambda token: fence_record(token, catalog_upper(), journal.state.record_version))
        self._link = Link(journal, writer, lanes, fence, deadline_ms=deadline_ms, clock=clock)
        journal.subscribe(self._watch_clock)
        self._link.start()

    @classmethod
    def open(
        cls,
        bootstrap: str,
        names: TopicNames,
        writer_id: str,
        catalog_upper: Callable[[], CatalogTs],
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> Oracle:
        """Recover from the newest checkpoint, fold the rest, and be ready.

        ``writer_id`` names this process to people; the incarnations in the log get an ending of their own.
        ``catalog_upper`` gives the newest catalog upper that this process has folded, from any thread, at once.
        Raises ``Unavailable`` (no broker), ``FatalLog`` (missing, misconfigured, or not the topic of the checkpoint).
        """
        topic_id = verify_journal(bootstrap, names.oracle)
        return cls.over(
            lambda: KafkaTransport(bootstrap, names.oracle),
            Checkpoints(CheckpointStore(bootstrap, names.checkpoints(names.oracle)), topic_id),
            writer_id,
            catalog_upper,
            now_ms=now_ms,
        )

    @classmethod
    def over(
        cls,
        connect: Callable[[], Transport],
        checkpoints: Checkpoints,
        writer_id: str,
        catalog_upper: Callable[[], int],
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        deadline_ms: int = DEADLINE_MS,
    ) -> Oracle:
        """As :meth:`open`, over whatever ``connect`` connects to (called again where a cut overtook the recovery)."""

        def build(transport: Transport, state: OracleState) -> tuple[Oracle, FoldedJournal]:
            read = _Read()
            journal = FoldedJournal(transport, read.fold, state, state.next_offset, name="oracle", start=False)
            writer = unique_writer(writer_id)
            oracle = cls(journal, writer, catalog_upper, checkpoints, read=read, now_ms=now_ms, deadline_ms=deadline_ms)
            return oracle, journal

        return open_recovered(connect, checkpoints, load, EMPTY, build)

    def barrier(self) -> Future[OracleState]:
        """A state that holds everything acknowledged before this call.  May fail with ``Unavailable``."""
        return self._link.call(Kind.BARRIER, None)

    def barrier_async(self) -> asyncio.Future[OracleState]:
        """:meth:`barrier` for a coroutine to await.  Coroutines of one loop that ask at once share one."""
        return self._link.ask_async(Kind.BARRIER)

    def read_ts(self, timeline: str) -> Future[int]:
        """The timestamp of ``timeline`` at a barrier."""
        return _then(self.barrier(), lambda state: state.read_ts(timeline))

    async def read_ts_async(self, timeline: str) -> int:
        """:meth:`read_ts` for a coroutine."""
        return (await self.barrier_async()).read_ts(timeline)

    def write_ts(self, timeline: str) -> Future[int]:
        """A new timestamp of ``timeline``, at least the present by this process's clock.

        ``table``: takes effect at once, as an empty commit.  ``catalog``: no record, see the module's promise.
        """
        if timeline == CATALOG:
            return _given(self.catalog_write_ts())
        if timeline == TABLE:
            return self.commit(CommitPart("write_ts"))
        return self._link.call(Kind.WRITE_TS, _stamp(timeline, self._now_ms()), _stamp_weight(timeline))

    async def write_ts_async(self, timeline: str) -> int:
        """:meth:`write_ts` for a coroutine."""
        if timeline == CATALOG:
            return self.catalog_write_ts()
        if timeline == TABLE:
            return await self.commit_async(CommitPart("write_ts"))
        stamp = _stamp(timeline, self._now_ms())
        return await self._link.call_async(Kind.WRITE_TS, stamp, _stamp_weight(timeline))

    def catalog_write_ts(self) -> CatalogTs:
        """The timestamp to propose a catalog change at: the present, but not below the upper."""
        return CatalogTs(max(self._now_ms(), self._catalog_upper(), self.state.catalog_upper))

    def apply_write(self, timeline: str, ts: int) -> Future[None]:
        """The write at ``ts`` is finished.  ``catalog``: as :meth:`apply_catalog` of ``ts + 1``."""
        check_ts(ts)
        if timeline == CATALOG:
            return self.apply_catalog(CatalogTs(ts + 1))
        kind = Kind.ADVANCE if timeline == TABLE else Kind.APPLY_WRITE
        return self._link.call(kind, _stamp(timeline, ts), _stamp_weight(timeline))

    def apply_catalog(self, upper: CatalogTs) -> Future[None]:
        """Catalog changes below ``upper``, which this process has folded, are in force for everybody from now on.

        Costs nothing where somebody's record has said so already.
        """
        check_ts(upper)
        if self.state.catalog_upper >= upper:
            return _given(None)
        return self._link.call(Kind.APPLY, upper)

    async def apply_catalog_async(self, upper: CatalogTs) -> None:
        """:meth:`apply_catalog` for a coroutine."""
        check_ts(upper)
        if self.state.catalog_upper < upper:
            await self._link.call_async(Kind.APPLY, upper)

    def commit(self, part: CommitPart, upper_now: Callable[[], int] | None = None) -> Future[DataTs]:
        """Make ``part`` happen at a new timestamp, which is the answer.

        ``upper_now`` is asked when the record is sent, on any thread, and must answer at once: the newest catalog upper
        on which ``part`` would be planned alike.  A part waits for the records before it, and DDL that has nothing to
        do with it must not refuse it for what went on meanwhile.

        Fails with :class:`~oracle.errors.StaleCatalog`, ``Conflict``, :class:`~oracle.errors.SnapshotTooOld`,
        ``Rejected``, ``Unavailable`` (each: it did not and never will happen) or ``Indeterminate``.
        Raises ``InvalidUsage`` for a part that breaks the rules of :func:`~oracle.model.check_part`.
        """
        check_part(part)
        return self._link.call(Kind.COMMIT, Commit(part, upper_now), part_weight(part))

    def commit_async(self, part: CommitPart, upper_now: Callable[[], int] | None = None) -> asyncio.Future[DataTs]:
        """:meth:`commit` for a coroutine to await."""
        check_part(part)
        return self._link.call_async(Kind.COMMIT, Commit(part, upper_now), part_weight(part))

    def advance(self, timeline: str, ts: int) -> Future[None]:
        """Time of ``timeline`` is at least ``ts`` from now on, without a write."""
        return self._link.call(Kind.ADVANCE, _stamp(timeline, ts), _stamp_weight(timeline))

    def forget(self, collection: str, dropped_below: CatalogTs) -> Future[None]:
        """``collection`` was dropped below that catalog upper: forget its bindings.  Its id must never be used again.

        Raises ``InvalidUsage`` before :meth:`~oracle.state.OracleState.forgettable` says that nobody needs them.
        """
        check_name("collection", collection)
        if not self.state.forgettable(collection, dropped_below):
            raise InvalidUsage(f"{collection} cannot be forgotten yet: somebody may have read it before its last write")
        return self._link.call(Kind.FORGET, collection, 4 * len(collection) + 10)

    def raise_format(self, version: int = CARRYING) -> Future[None]:
        """Records may be of ``version`` from here on, also those of others.

        Only in an environment that no code may open which does not know it.
        """
        return self._link.call(Kind.FORMAT, version)

    def move(self, move: Move) -> Future[None]:
        """Rows that the log carries are the records of ``move.run`` now.  No reader can tell, at any timestamp.

        Fails with ``Rejected`` (those rows are not in the log, or not any more) or ``Conflict`` (the run overlaps what
        is bound): then nothing was moved, of the other moves of that collection in the same record neither;
        ``Unavailable`` or ``Indeterminate``.
        """
        check_move(move)
        return self._link.call(Kind.MOVE, move, move_weight(move))

    def claim_async(self, unbound: Offsets) -> asyncio.Future[None]:
        """``unbound`` is still to be bound by this process: not to be given up for :data:`~oracle.unbound.CLAIM_MS`."""
        check_offsets(unbound)
        return self._link.call_async(Kind.CLAIM, unbound, offsets_weight(unbound))

    def give_up(self, unbound: Offsets) -> Future[None]:
        """Nobody binds ``unbound`` any more, which comes before something that is bound.  No reader can tell.

        Fails with ``Rejected`` (it is claimed, or nothing behind it is bound) or ``Conflict`` (somebody bound some of
        it, or gave it up): then none of it was given up; ``Unavailable`` or ``Indeterminate``.
        """
        check_offsets(unbound)
        return self._link.call(Kind.GIVE_UP, unbound, offsets_weight(unbound))

    def retire(self, offsets: Offsets) -> Future[None]:
        """The rows of ``offsets`` are in files, by the log of segments, and on no topic; or, where these are numbers of
        what the log carries, it carries them no more.  No reader can tell.

        Fails with ``Rejected`` where they are not all bound or given up, as whole runs that nobody tells apart any
        more; ``Unavailable`` or ``Indeterminate``.
        """
        check_offsets(offsets, may_be_carried=self.state.record_version >= CARRIED_SEALED)
        return self._link.call(Kind.RETIRE, offsets, offsets_weight(offsets))

    def compact(self, policy: CheckpointPolicy = CHECKPOINT_POLICY, kept: Mapping[str, int] = NONE_KEPT) -> None:
        """Move ``since``, by one record.

        ``kept``: of these collections so many milliseconds of history stay, which is for whoever knows all of the
        catalog that was acknowledged before to say; what is in no such mapping any more is as all others are.

        Blocks (not to be called on the reader thread).  Any process may do it at any time.  Raises ``Unavailable`` or
        ``Indeterminate``.
        """
        state = self.state
        since = policy.since(state.last_ts)
        if since > state.since:
            asked = kept_since(state, kept, state.last_ts - since)
            if asked and state.record_version < KEEPING:
                self.raise_format(KEEPING).result()
            self._link.call(Kind.COMPACT, Compaction(since, asked)).result()

    def checkpoint(self, policy: CheckpointPolicy = CHECKPOINT_POLICY, kept: Mapping[str, int] = NONE_KEPT) -> int:
        """:meth:`compact`, then save an image, verify it, and cut the log below it; the new start of the log.

        One process at a time is enough.  Raises ``FatalLog``, too; the log is cut only after the image was read back.
        """
        self.compact(policy, kept)
        read_bytes = self._read.bytes  # what is folded at this moment is in the image and not counted: saved again
        start = self._save_and_cut(dump, load, policy)
        self._read.saved = max(self._read.saved, read_bytes)
        return start

    @property
    def bytes_since_checkpoint(self) -> int:
        """As :attr:`records_since_checkpoint`, of their bytes: records that carry rows have up to 4 MiB each."""
        return self._read.bytes - self._read.saved

    def _watch_clock(self, old: OracleState, new: OracleState, _outcomes: Sequence[Outcome]) -> None:
        """Somebody's clock runs ahead: every timestamp follows it, so a person should know."""
        if new.last_ts == old.last_ts:
            return
        now = self._now_ms()
        if new.last_ts - now > AHEAD_MS_MAX and now >= self._alarm_at_ms:
            self._alarm_at_ms = now + ALARM_EVERY_MS
            log.warning("the table timeline is ahead of this machine's clock", extra={"ahead_ms": new.last_ts - now})


def _stamp(timeline: str, ts: int) -> Stamp:
    check_name("timeline", timeline)
    check_ts(ts)
    return Stamp(timeline, ts)


def _stamp_weight(timeline: str) -> int:
    return 4 * len(timeline) + 20


def _given(value: object) -> Future:
    done: Future = Future()
    done.set_result(value)
    return done


def _then(asked: Future, then: Callable) -> Future:
    """``then(result)`` of a future."""
    done: Future = Future()
    done.set_running_or_notify_cancel()

    def finish(answered: Future) -> None:
        error = answered.exception()
        if error is None:
            done.set_result(then(answered.result()))
        else:
            done.set_exception(error)

    asked.add_done_callback(finish)
    return done
