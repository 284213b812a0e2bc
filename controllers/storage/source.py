"""One source: reads the user's topic and binds what it read, for as long as the source lives.

Promises: a record that arrives is bound by the next commit (two round trips, ``LINGER_S`` more under load); every
record is bound exactly once whatever dies when, since the position is never kept anywhere but in the bindings
themselves (:mod:`controllers.storage.remap` says why that suffices); trouble of this source stops this source only, is
in its status, and is tried again with growing pauses.

A topic that is deleted and made anew under its source is another topic: what is bound carries the topic's id, each
batch is committed only once the brokers have said, after it was fetched, that the topic still has that id, and a source
whose bindings are of another one has failed until it is dropped or reset.

A source that is far behind is judged by clusters' executors (:mod:`controllers.storage.backlog`), and bound here.

The next batch is read and judged while the commit of the last is under way, but at most one commit is: so under load
batches grow by themselves, and after a failed commit there is nothing later to take back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from catalog_log.objects import Source as SourceItem
from collection.binding import pin
from controllers.at_work import AtWork
from controllers.storage.backlog import Backlog
from controllers.storage.brokers import Brokers
from controllers.storage.remap import Prepared, Problem, made_anew, start_positions
from controllers.storage.source_thread import RUNNING, SourceProblem, SourceStatus, SourceThread
from controllers.storage.taking import ANSWER_TIMEOUT_S, Polled, Taking
from journal.clients import discard, reach
from journal.errors import Unavailable
from journal.lasting import QUIET_S, forsaken
from oracle.client import Oracle, wall_clock_ms
from oracle.model import CommitPart
from oracle.state import OracleState

log = logging.getLogger(__name__)

BATCH_ROWS_MAX = 20_000
"""Rows of one commit: judged in about 50 ms, so that no other commit waits long behind them."""

LINGER_S = 0.02
"""Least time between the commits of a source: at most 50 a second for one that trickles.  A record that comes after a
longer silence is bound at once, so this costs a quiet source nothing.

Each commit is a record that every process of the environment folds: with 5 ms, 200 rows a second cost so much of two
cores that a view over them was later, not sooner (p50 62 to 68 ms, with this 54 to 58 ms)."""

POLL_S = 0.1
MEASURE_S = 0.25
"""Between two looks at how far the topic goes: what they cost is a call into librdkafka for each partition."""

LOOK_AGAIN_S = 5.0
"""How often new partitions are looked for."""

FIRST_S = 5.0
"""How long the first records of a source may take where there are some: what aborted transactions left is none."""

METADATA_TIMEOUT_S = 5.0
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)

__all__ = ["Source", "SourceProblem", "SourceStatus"]


class Source(SourceThread):
    """A topic that is read."""

    def __init__(
        self, item: SourceItem, brokers: Callable[[], Brokers], taking: Callable[[], Taking], oracle: Oracle,
        incarnation: str, at_work: AtWork, refused: str | None = None, backlog: Backlog | None = None,
    ) -> None:  # fmt: skip
        """``brokers``: those it reads from, asked anew whenever it begins; ``taking``: what it does with what it reads;
        ``refused`` says why nothing may be read for it, whatever its topic holds; ``backlog``: who judges what it is
        far behind with, if anybody does."""
        super().__init__(item, oracle, incarnation, at_work)
        self._of_brokers = brokers
        self._of_taking = taking
        self._backlog = backlog
        self._brokers: Brokers
        self._taking: Taking | None = None
        self._unfollow: Callable[[], None] = lambda: None
        self._read: dict[int, int] = {}
        """Up to where it has read, of each partition."""
        self._reached: dict[int, int] = {}
        """Where the reading came to the end of a partition."""
        self._bound_by: OracleState
        """What is bound, by the barrier that it began with."""
        self._topic_id = ""
        """Of the topic that is being read."""
        self._moved = threading.Event()
        """Set when most brokers name another leader of the topic, or the consumer hears of none any more."""
        self._final = None if refused is None else Problem(refused, final=True)
        self._committed_at = 0.0
        self.begin()

    def _ended(self) -> None:
        self._unfollow()
        if self._taking is not None:
            self._taking.close()

    def _measure(self, consumer: Consumer, positions: dict[int, int]) -> None:
        """How far the topic goes beyond what is bound, as the fetches tell: no request of its own."""
        status, self._read = self.status, positions
        for partition in positions:
            try:
                _, high = consumer.get_watermark_offsets(TopicPartition(status.topic, partition), cached=True)
            except KafkaException:
                continue  # not fetched from yet
            if high >= 0:
                status.ends[partition] = high
        self._count_behind()

    def _count_behind(self) -> None:
        status = self.status
        behind = 0
        for partition, end in status.ends.items():
            at = status.positions.get(partition, 0)
            # A record that ends a transaction is none of the user's: who has bound what came, up to the end, has all.
            if at == self._read.get(partition):
                at = max(at, self._reached.get(partition, 0))
            behind += max(0, end - at)
        status.behind = behind
        if not status.behind:
            status.caught_up_ms = wall_clock_ms()

    def _ingest(self) -> None:
        """Read, judge and bind until stopped or until something is wrong."""
        self._moved.clear()
        self._meet()
        if self._taking is None:
            self._taking = self._of_taking()
        settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = self._brokers.consumer(self.status.topic, **settings)
        under_way: tuple[Future, Prepared] | None = None
        try:
            positions = self._begin(consumer)
            # What comes first may be what ended the process that read it last; it is bound before more is read.
            with self._at_work.on([self.item.id]):
                self._taking.begin(self._bound_by)
                self._runs(positions)
                polled = self._first(consumer, positions)
                if polled:
                    prepared, part = self._judged(polled, positions)
                    self._await_commit(self._oracle.commit(part), prepared)
                    positions = prepared.positions
            look_again_at = time.monotonic() + LOOK_AGAIN_S
            measure_at = 0.0
            quiet_since = time.monotonic()
            # Where the topic has another leader by the word of most brokers we begin anew with a fresh consumer: this
            # one may be asking a leader that does not know it was deposed, and has nothing new for ever.
            while not self._stopped.is_set() and not self._moved.is_set():
                polled = self._poll(consumer, positions)
                if polled:
                    prepared, part = self._judged(polled, positions)
                    if under_way is not None:
                        self._await_commit(*under_way)
                        under_way = None
                    under_way = self._oracle.commit(part), prepared
                    self._committed_at = quiet_since = time.monotonic()
                    positions = prepared.positions
                elif under_way is not None and under_way[0].done():
                    self._await_commit(*under_way)
                    under_way = None
                if time.monotonic() >= measure_at:
                    self._measure(consumer, positions)
                    measure_at = time.monotonic() + MEASURE_S
                if self._backlog is not None and self._backlog.is_due(self.status.behind):
                    if under_way is not None:
                        last, under_way = under_way, None
                        self._await_commit(*last)
                    positions = self._by_executors(self._backlog, consumer, positions)
                if time.monotonic() >= look_again_at:
                    self._look_again(consumer, positions)
                    look_again_at = time.monotonic() + LOOK_AGAIN_S
                if time.monotonic() >= quiet_since + QUIET_S:
                    if forsaken(consumer, self.item.topic, self._brokers.others):
                        log.warning("a consumer knows no broker, another goes on", extra={"source": self.item.id})
                        self._moved.set()
                    quiet_since = time.monotonic()
            if under_way is not None:
                last, under_way = under_way, None
                self._await_commit(*last)
        except KafkaException as error:
            consumer.poll(0)  # what it was told of who we are
            raise self._brokers.said(error) or error from None
        finally:
            if under_way is not None:
                under_way[0].exception(
                    ANSWER_TIMEOUT_S
                )  # it failed or will be found in the bindings when we begin anew
            # We begin anew by another one, or end; neither waits for what librdkafka waits for.
            discard(consumer, f"source-{self.item.id}")

    def _judged(self, polled: Polled, positions: dict[int, int]) -> tuple[Prepared, CommitPart]:
        asked = self._brokers.ids.ask([self.status.topic])  # after the fetch, and answered while we judge
        assert self._taking is not None, "it has begun"
        prepared, part = self._taking.part(polled, positions, pin(self._topic_id), self._attempt())
        self._check_id(asked()[self.status.topic])
        return prepared, part

    def _by_executors(self, backlog: Backlog, consumer: Consumer, positions: dict[int, int]) -> dict[int, int]:
        """Bind what it is far behind with, wave by wave, as long as executors judge it; where that ended."""
        begun, look_again_at = positions, time.monotonic() + LOOK_AGAIN_S
        try:
            while not self._stopped.is_set() and not self._moved.is_set():
                attempt = self._attempt()
                prepared = self._wave(backlog, positions, attempt)
                if prepared is None or self._stopped.is_set():
                    break
                self._bind(prepared, attempt)
                positions = prepared.positions
                if time.monotonic() >= look_again_at:
                    self._look_again(consumer, positions)
                    look_again_at = time.monotonic() + LOOK_AGAIN_S
        except Exception:
            backlog.leave()  # they are not asked for the same as soon as it begins anew
            raise
        if positions is not begun:
            consumer.assign([TopicPartition(self.status.topic, p, at) for p, at in positions.items()])
            self._committed_at = time.monotonic()
        return positions

    def _bind(self, prepared: Prepared, attempt: str) -> None:
        assert self._taking is not None, "it has begun"
        self._await_commit(self._oracle.commit(self._taking.to_bind(prepared, attempt)), prepared)
        self.status.by_executors += prepared.good_count + len(prepared.bad)
        self._count_behind()

    def _wave(self, backlog: Backlog, positions: dict[int, int], attempt: str) -> Prepared | None:
        """What executors judged, of the topic that we began with; ``None`` where it is for this thread to go on."""
        topic = self.status.topic
        try:
            ends = self._brokers.stable_ends(topic, positions)
        except (KafkaException, Unavailable):  # which who polls overcomes, or is told in other words
            backlog.leave()
            return None
        self.status.ends |= {p: max(end, self.status.ends.get(p, 0)) for p, end in ends.items()}
        assert self._taking is not None, "it has begun"
        prepared = backlog.judged(positions, ends, pin(self._topic_id), partial(self._taking.order, attempt=attempt))
        if prepared is not None:
            self._check_id(self._brokers.ids.ask([topic])()[topic])
        return prepared

    def _begin(self, consumer: Consumer) -> dict[int, int]:
        """Where to go on, by a barrier: everything that was ever bound is known, also by commits of dead processes."""
        topic = self.item.topic
        partitions = self._partitions(consumer)
        if not partitions:
            raise SourceProblem(Problem(f"topic {topic} does not exist yet", missing=True))
        found = self._brokers.ids.ask([topic])()[topic]
        if found is None:
            raise SourceProblem(Problem(f"topic {topic} does not exist yet", missing=True))
        self._topic_id = found
        state = self._oracle.barrier().result(ANSWER_TIMEOUT_S)
        progress = state.bindings(self.item.progress_id)
        if problem := made_anew(topic, found, progress.pins()):
            self.status.ends, self.status.behind = {}, None  # how far another topic goes says nothing
            raise SourceProblem(problem)
        bound = {p: end for (t, p), end in progress.ends().items() if t == topic}
        retained = {p: self._watermarks(consumer, p) for p in partitions}
        self._reached = {}
        if self.status.caught_up_ms is None:
            self.status.caught_up_ms = state.last_change(self.item.id)
        self.status.positions = {p: bound.get(p, low) for p, (low, _) in retained.items()}
        self.status.ends = {p: high for p, (_, high) in retained.items()}
        self._count_behind()
        first = self._first_offsets(consumer, {p: retained[p] for p in retained if p not in bound})
        positions = start_positions(topic, bound, retained, first)
        if isinstance(positions, Problem):
            raise SourceProblem(positions)
        consumer.assign([TopicPartition(topic, p, at) for p, at in positions.items()])
        self.status.positions = dict(positions)
        self._bound_by = state
        return positions

    def _runs(self, positions: dict[int, int]) -> None:
        self.status.state, self.status.error = RUNNING, None
        told = {"source": self.item.id, "topic": self.item.topic, "positions": dict(positions)}
        log.info("source runs", extra=told)

    def _meet(self) -> None:
        """The brokers to read from, and what is to be heard of who leads the topic there."""
        found = self._of_brokers()
        if found is getattr(self, "_brokers", None):
            return
        self._unfollow()
        self._brokers = found
        self._unfollow = found.follow(self.status.topic, self._moved.set)

    def _first_offsets(self, consumer: Consumer, retained: dict[int, tuple[int, int]]) -> dict[int, int]:
        """Where to begin with partitions that nothing is bound of, by the word of who made the source."""
        reading = self.item.reading
        if reading is None or not retained:
            return {}
        if reading.start_ms is None:
            return {p: at for p, at in enumerate(reading.start_offsets) if p in retained}
        asked = [TopicPartition(self.item.topic, p, reading.start_ms) for p in retained]
        found = reach(
            self._brokers.bootstrap, lambda timeout: consumer.offsets_for_times(asked, timeout), METADATA_TIMEOUT_S
        )
        # Of a partition that has nothing so late it is the end: what comes is of then or later, or came before.
        return {each.partition: each.offset if each.offset >= 0 else retained[each.partition][1] for each in found}

    def _check_id(self, topic_id: str | None) -> None:
        """Raise unless the topic, asked after a fetch, still is the one that we began with."""
        topic = self.status.topic
        if topic_id is None:
            raise SourceProblem(Problem(f"topic {topic} does not exist any more", missing=True))
        if topic_id != self._topic_id:  # whether that matters hangs on whether anything is bound: we begin anew
            raise SourceProblem(Problem(f"topic {topic} was deleted and made anew while it was read"))

    def _first(self, consumer: Consumer, positions: dict[int, int]) -> Polled:
        """The first records; none where there is nothing to read yet, or nothing comes."""
        behind = any(self._watermarks(consumer, p)[1] > at for p, at in positions.items())
        deadline = time.monotonic() + (FIRST_S if behind else 0.0)
        while True:
            polled = self._poll(consumer, positions)
            if polled or self._stopped.is_set() or self._moved.is_set() or time.monotonic() >= deadline:
                return polled

    def _poll(self, consumer: Consumer, positions: dict[int, int]) -> Polled:
        first = consumer.poll(POLL_S)
        if first is None:
            return {}
        polled: Polled = {}
        assert self._taking is not None, "it has begun"
        record = self._taking.record
        linger_s = max(0.0, min(LINGER_S, self._committed_at + LINGER_S - time.monotonic()))
        for message in (first, *consumer.consume(BATCH_ROWS_MAX - 1, linger_s)):
            error = message.error()
            if error is None:
                polled.setdefault(message.partition(), []).append((message.offset(), record(message)))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached[message.partition()] = message.offset()
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._offsets_gone(consumer, positions, message.partition())
            elif error.code() in _MISSING:
                raise SourceProblem(Problem(f"topic {self.item.topic} does not exist any more", missing=True))
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise SourceProblem(Problem(f"kafka does not allow reading topic {self.item.topic}"))
            # Anything else is a broker being away, which librdkafka overcomes by itself.
        return polled

    def _offsets_gone(self, consumer: Consumer, positions: dict[int, int], partition: int) -> None:
        retained = {partition: self._watermarks(consumer, partition)}
        found = start_positions(self.item.topic, {partition: positions[partition]}, retained)
        if isinstance(found, Problem):
            raise SourceProblem(found)
        raise SourceProblem(Problem(f"topic {self.item.topic} partition {partition} cannot be read from "
                                    f"offset {positions[partition]}"))  # fmt: skip

    def _await_commit(self, commit: Future, prepared: Prepared) -> None:
        super()._await_commit(commit, prepared)
        assert self._taking is not None, "it has begun"
        self._taking.bound()

    def _look_again(self, consumer: Consumer, positions: dict[int, int]) -> None:
        """Take on partitions that were added."""
        try:
            partitions = self._partitions(consumer)
            added = [p for p in partitions if p not in positions]
            retained = {p: self._watermarks(consumer, p) for p in added}
            first = self._first_offsets(consumer, retained)
            begin = {p: max(low, first.get(p, low)) for p, (low, _) in retained.items()}
            begin = {p: at for p, at in begin.items() if at <= retained[p][1]}  # others are waited for
        except (KafkaException, Unavailable) as error:
            why = self._brokers.said(error) if isinstance(error, KafkaException) else error
            self.status.error = "the brokers are away" if why is None else why.message
            return  # we look again; what was fetched goes on
        self.status.error = None
        if not partitions:
            raise SourceProblem(Problem(f"topic {self.item.topic} does not exist any more", missing=True))
        if begin:
            positions.update(begin)
            consumer.incremental_assign([TopicPartition(self.item.topic, p, at) for p, at in begin.items()])
            log.info("source has new partitions", extra={"source": self.item.id, "partitions": sorted(begin)})

    def _partitions(self, consumer: Consumer) -> list[int]:
        found = consumer.list_topics(self.item.topic, METADATA_TIMEOUT_S).topics[self.item.topic]
        if found.error is not None:
            if found.error.code() in _MISSING:
                return []
            raise Unavailable(f"topic {self.item.topic} cannot be looked up", detail=found.error.str())
        return sorted(found.partitions)

    def _watermarks(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        asked = TopicPartition(self.item.topic, partition)
        return reach(
            self._brokers.bootstrap, lambda timeout: consumer.get_watermark_offsets(asked, timeout), METADATA_TIMEOUT_S
        )
