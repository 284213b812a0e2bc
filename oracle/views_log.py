"""One process's access to ``<env>.views``: claim a cluster, commit its ticks, follow every view's progress (DESIGN §5).

Promises: :meth:`ViewsLog.commit` answers with success iff the whole tick is in the log, once.  After ``StaleEpoch``
the writer is a zombie for good and must stop.  Answers that get lost are settled as the oracle's are.
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
from journal.timestamps import DataTs
from journal.topics import verify_journal
from oracle.checkpointed import CheckpointedLog
from oracle.checkpoints import CHECKPOINT_POLICY, CheckpointPolicy, Checkpoints, open_recovered
from oracle.errors import Reason, StaleEpoch, StaleUpper, refusal
from oracle.model import Outcome, check_name
from oracle.views import NO_VIEWS, ViewsState, fold_views
from oracle.views_image import dump_views, load_views
from oracle.views_records import (
    ERROR_LENGTH_MAX,
    Tick,
    ViewCommit,
    ViewsKind,
    ViewsRecord,
    check_tick,
    encode_views_record,
)

NAMES_PER_RECORD_MAX = 10_000


class ViewsLog(CheckpointedLog[ViewsState]):
    """Open one with :meth:`open` (Kafka) or :meth:`over` (any transport); close it.  Any thread may call it."""

    def __init__(
        self,
        journal: FoldedJournal[ViewsState, Outcome],
        writer: str,
        checkpoints: Checkpoints,
        *,
        deadline_ms: int = DEADLINE_MS,
    ) -> None:
        super().__init__(journal, writer, checkpoints)
        lanes = _lanes(lambda: journal.state)
        # A tick that lands twice would be refused, a drop would not: what is numbered is settled alike.
        self._link = Link(journal, writer, lanes, Fence(_fence_record), deadline_ms=deadline_ms).start()

    @classmethod
    def open(cls, bootstrap: str, names: TopicNames, writer_id: str) -> ViewsLog:
        """Recover from the newest checkpoint, fold the rest, be ready.  Raises as :meth:`oracle.client.Oracle.open`."""
        topic_id = verify_journal(bootstrap, names.views)
        checkpoints = Checkpoints(CheckpointStore(bootstrap, names.checkpoints(names.views)), topic_id)
        return cls.over(lambda: KafkaTransport(bootstrap, names.views), checkpoints, writer_id)

    @classmethod
    def over(
        cls,
        connect: Callable[[], Transport],
        checkpoints: Checkpoints,
        writer_id: str,
        *,
        deadline_ms: int = DEADLINE_MS,
    ) -> ViewsLog:
        """As :meth:`open`, over whatever ``connect`` connects to."""

        def build(transport: Transport, state: ViewsState) -> tuple[ViewsLog, FoldedJournal]:
            journal = FoldedJournal(transport, fold_views, state, state.next_offset, name="views", start=False)
            return cls(journal, unique_writer(writer_id), checkpoints, deadline_ms=deadline_ms), journal

        return open_recovered(connect, checkpoints, load_views, NO_VIEWS, build)

    def claim(self, cluster: str) -> Future[int]:
        """Become the writer of ``cluster``; the new epoch.  Whoever held it before can commit nothing more.

        Fails with :class:`~oracle.errors.StaleEpoch` where another claimed it first: claim again, or leave it.
        """
        check_name("cluster", cluster)
        return self._link.call(ViewsKind.CLAIM, cluster)

    def commit(self, cluster: str, epoch: int, ts: int, views: Sequence[ViewCommit]) -> Future[DataTs]:
        """Commit one tick: every view's output at ``ts``, all or none; then their uppers are ``ts + 1``.

        Fails with :class:`~oracle.errors.StaleEpoch`, :class:`~oracle.errors.StaleUpper` or ``Conflict`` (it did not
        and never will happen), ``Unavailable`` (likewise) or ``Indeterminate`` (the state will tell: wait for it).
        Errors longer than 4,096 characters are cut.  Raises ``InvalidUsage`` for a tick that breaks its rules.
        """
        cut = tuple(v._replace(error=v.error[:ERROR_LENGTH_MAX]) if v.error is not None else v for v in views)
        tick = Tick(cluster, epoch, ts, cut)
        check_tick(tick)
        return self._link.call(ViewsKind.COMMIT, tick, _tick_weight(tick))

    def drop(self, view_id: str) -> Future[None]:
        """``view_id`` was dropped: forget it.  Its id must never be used again."""
        check_name("view id", view_id)
        return self._link.call(ViewsKind.DROP, view_id, 4 * len(view_id) + 10)

    def compact(self, since: int) -> None:
        """As :meth:`oracle.client.Oracle.compact`; ``since`` is the oracle's, so that both keep the same history."""
        if since > self.state.since:
            self._link.call(ViewsKind.COMPACT, since).result()

    def checkpoint(self, since: int, policy: CheckpointPolicy = CHECKPOINT_POLICY) -> int:
        """As :meth:`oracle.client.Oracle.checkpoint`, after :meth:`compact`."""
        self.compact(since)
        return self._save_and_cut(dump_views, load_views, policy)


def _tick_weight(tick: Tick) -> int:
    """An upper bound of its bytes in a record."""
    return 100 + 4 * len(tick.cluster) + sum(
        4 * (len(view.view_id) + len(view.error or "")) + 40
        + sum(4 * (len(run.topic) + len(run.attempt)) + 60 for run in view.runs)
        for view in tick.views
    )  # fmt: skip


def _fence_record(token: Token) -> bytes:
    return encode_views_record(ViewsRecord(token, ViewsKind.FENCE))


def _lanes(state: Callable[[], ViewsState]) -> list[Lane]:
    def claim(token: Token, clusters: Sequence[str]) -> bytes:
        epoch = state().epoch(clusters[0])
        record = ViewsRecord(token, ViewsKind.CLAIM, clusters[0], expected_epoch=epoch, epoch=epoch + 1)
        return encode_views_record(record)

    def commit(token: Token, ticks: Sequence[Tick]) -> bytes:
        cluster, epoch, ts, views = ticks[0]
        return encode_views_record(ViewsRecord(token, ViewsKind.COMMIT, cluster, epoch=epoch, ts=ts, views=views))

    def drop(token: Token, names: Sequence[str]) -> bytes:
        return encode_views_record(ViewsRecord(token, ViewsKind.DROP, names=tuple(names)))

    def compact(token: Token, since: Sequence[int]) -> bytes:
        return encode_views_record(ViewsRecord(token, ViewsKind.COMPACT, ts=max(since)))

    return [
        Lane(LaneSpec(ViewsKind.CLAIM, 1), claim, _answer),
        Lane(LaneSpec(ViewsKind.COMMIT, 1), commit, _answer),
        Lane(LaneSpec(ViewsKind.DROP, NAMES_PER_RECORD_MAX), drop, _answer),
        Lane(LaneSpec(ViewsKind.COMPACT), compact, _answer),
    ]


def _answer(outcome: Outcome, payloads: Sequence[Any]) -> Sequence[Answer]:
    """The record's one verdict, for everybody in it."""
    if outcome.refused is not None:
        return [refusal(outcome.refused, f"at offset {outcome.offset}")] * len(payloads)
    [verdict] = outcome.verdicts
    if verdict.reason is None:
        return [verdict.ts if outcome.kind in (ViewsKind.CLAIM, ViewsKind.COMMIT) else None] * len(payloads)
    tick = payloads[0]
    if verdict.reason is Reason.STALE_EPOCH:
        return [StaleEpoch(tick.epoch if isinstance(tick, Tick) else 0, verdict.actual)]
    if verdict.reason is Reason.STALE_UPPER:
        expected = next(view.expected_upper for view in tick.views if view.view_id == verdict.subject)
        return [StaleUpper(verdict.subject, expected, verdict.actual)]
    return [refusal(verdict.reason, verdict.detail)]
