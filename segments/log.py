"""One process's access to ``<env>.segments``: which files hold which rows, and exchanging them (DESIGN §5).

Promises: :meth:`SegmentsLog.exchange` answers with success iff the exchange is in the log, once.  Answers that get lost
are settled as the oracle's are.  Any number of processes may exchange at once: of two exchanges of the same rows one
happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from journal.api import Transport
from journal.checkpoint import CheckpointStore
from journal.folded import FoldedJournal
from journal.kafka import KafkaTransport
from journal.link import Answer, Lane, Link, unique_writer
from journal.names import TopicNames
from journal.sender import DEADLINE_MS, LaneSpec
from journal.settling import Fence, Token
from journal.topics import verify_journal
from oracle.checkpointed import CheckpointedLog
from oracle.checkpoints import CHECKPOINT_POLICY, CheckpointPolicy, Checkpoints, open_recovered
from oracle.client import wall_clock_ms
from oracle.errors import refusal
from oracle.model import Outcome, check_name
from segments.fold import NO_SEGMENTS, SegmentsState, fold_segments
from segments.image import dump_segments, load_segments
from segments.model import FILES_MAX, Exchange, SegmentsKind, SegmentsRecord, check_exchange, check_path
from segments.records import encode_segments_record

NAMES_PER_RECORD_MAX = 10_000


class SegmentsLog(CheckpointedLog[SegmentsState]):
    """Open one with :meth:`open` (Kafka) or :meth:`over` (any transport); close it.  Any thread may call it."""

    def __init__(
        self,
        journal: FoldedJournal[SegmentsState, Outcome],
        writer: str,
        checkpoints: Checkpoints,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        deadline_ms: int = DEADLINE_MS,
    ) -> None:
        super().__init__(journal, writer, checkpoints)
        # An exchange that lands twice would be refused; what is numbered is settled alike.
        lanes, fence = _lanes(now_ms, self._encoded), Fence(lambda token: self._encoded(_fence_record(token)))
        self._link = Link(journal, writer, lanes, fence, deadline_ms=deadline_ms).start()

    @classmethod
    def open(cls, bootstrap: str, names: TopicNames, writer_id: str) -> SegmentsLog:
        """Recover from the newest checkpoint, fold the rest, be ready.  Raises as :meth:`oracle.client.Oracle.open`."""
        topic_id = verify_journal(bootstrap, names.segments)
        checkpoints = Checkpoints(CheckpointStore(bootstrap, names.checkpoints(names.segments)), topic_id)
        return cls.over(lambda: KafkaTransport(bootstrap, names.segments), checkpoints, writer_id)

    @classmethod
    def over(
        cls,
        connect: Callable[[], Transport],
        checkpoints: Checkpoints,
        writer_id: str,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        deadline_ms: int = DEADLINE_MS,
    ) -> SegmentsLog:
        """As :meth:`open`, over whatever ``connect`` connects to."""

        def build(transport: Transport, state: SegmentsState) -> tuple[SegmentsLog, FoldedJournal]:
            journal = FoldedJournal(transport, fold_segments, state, state.next_offset, name="segments", start=False)
            writer = unique_writer(writer_id)
            return cls(journal, writer, checkpoints, now_ms=now_ms, deadline_ms=deadline_ms), journal

        return open_recovered(connect, checkpoints, load_segments, NO_SEGMENTS, build)

    def exchange(self, exchange: Exchange) -> Future[None]:
        """Rows are elsewhere from now on.  What is added must be in the store, durably, before this is called.

        Fails with ``Conflict`` (some of that is sealed already) or ``Rejected`` (a file that goes holds nothing any
        more): it did not and never will happen, and the added files are nobody's; with ``Unavailable``, likewise, or
        ``Indeterminate``.  Raises ``InvalidUsage`` for one that breaks the rules of
        :func:`~segments.model.check_exchange`.
        """
        check_exchange(exchange)
        return self._link.call(SegmentsKind.EXCHANGE, exchange)

    def forget(self, collection: str) -> Future[None]:
        """``collection`` was dropped: its files go.  Its id must never be used again."""
        check_name("collection", collection)
        return self._link.call(SegmentsKind.FORGET, collection, 4 * len(collection) + 10)

    def collected(self, path: str) -> Future[None]:
        """The file at ``path``, which held nothing any more, is no longer in the store."""
        check_path(path)
        return self._link.call(SegmentsKind.COLLECTED, path, 4 * len(path) + 10)

    def sweep(self, below: int) -> Future[None]:
        """Nobody adds files with a number below this one from now on."""
        return self._link.call(SegmentsKind.SWEEP, below)

    def raise_format(self, version: int) -> Future[None]:
        """Records may be of ``version`` from here on, also those of others.

        Only in an environment that no code may open which does not know it.
        """
        return self._link.call(SegmentsKind.FORMAT, version)

    def _encoded(self, record: SegmentsRecord) -> bytes:
        return encode_segments_record(record, self.state.record_version)

    def checkpoint(self, policy: CheckpointPolicy = CHECKPOINT_POLICY) -> int:
        """Save an image, verify it, cut the log below it; the new start of the log.  Blocks.

        Raises as :meth:`oracle.client.Oracle.checkpoint`.
        """
        return self._save_and_cut(dump_segments, load_segments, policy)


def _fence_record(token: Token) -> SegmentsRecord:
    return SegmentsRecord(token, SegmentsKind.FENCE)


def _lanes(now_ms: Callable[[], int], encoded: Callable[[SegmentsRecord], bytes]) -> list[Lane]:
    def exchange(token: Token, exchanges: Sequence[Exchange]) -> bytes:
        return encoded(SegmentsRecord(token, SegmentsKind.EXCHANGE, now_ms(), exchanges[0]))

    def forget(token: Token, names: Sequence[str]) -> bytes:
        return encoded(SegmentsRecord(token, SegmentsKind.FORGET, now_ms(), names=tuple(names)))

    def collected(token: Token, paths: Sequence[str]) -> bytes:
        told = tuple(dict.fromkeys(paths))
        return encoded(SegmentsRecord(token, SegmentsKind.COLLECTED, now_ms(), paths=told))

    def sweep(token: Token, below: Sequence[int]) -> bytes:
        return encoded(SegmentsRecord(token, SegmentsKind.SWEEP, now_ms(), below=max(below)))

    def format(token: Token, versions: Sequence[int]) -> bytes:
        return encoded(SegmentsRecord(token, SegmentsKind.FORMAT, now_ms(), below=max(versions)))

    return [
        Lane(LaneSpec(SegmentsKind.EXCHANGE, 1), exchange, _answer),
        Lane(LaneSpec(SegmentsKind.FORGET, NAMES_PER_RECORD_MAX), forget, _answer),
        Lane(LaneSpec(SegmentsKind.COLLECTED, FILES_MAX), collected, _answer),
        Lane(LaneSpec(SegmentsKind.SWEEP), sweep, _answer),
        Lane(LaneSpec(SegmentsKind.FORMAT), format, _answer),
    ]


def _answer(outcome: Outcome, payloads: Sequence[Any]) -> Sequence[Answer]:
    """The record's one verdict, for everybody in it."""
    if outcome.refused is not None:
        return [refusal(outcome.refused, f"at offset {outcome.offset}")] * len(payloads)
    [verdict] = outcome.verdicts
    if verdict.reason is None:
        return [None] * len(payloads)
    return [refusal(verdict.reason, verdict.detail)] * len(payloads)
