"""Rows out to a collection's topic, and the exact offsets that they got.

Promises: a future that gives runs gives precisely the offsets of these rows, durable (acks=all), and nobody sees the
rows before somebody binds the runs.  Because unbound rows are invisible, *every* failure here is a certain one: the
write is not bound, so it did not happen (``Rejected``: the same write cannot succeed; ``Unavailable``: it may be tried
again).  What a failed write left on the topic is garbage that no reader looks at.

It does *not* promise order between two writes, nor that a run is one range: another writer's records may lie between.
Records go to any of their topic's partitions, since what is bound says where each is: Kafka's client draws one for each
record, or one for a whole write whose runs should be few (by the hash of a key, which nobody reads).  So nothing here
knows how many there are, and those that somebody adds are written to once the client has heard of them.

A producer can hang on a deposed leader until the network heals (FACTS).  So a write without an answer for
``WATCHDOG_S``, or whose topic most brokers say has another leader by now (:mod:`journal.leaders`), makes a fresh
producer, bootstrapped from brokers that agree, and is sent again; its first copies, if they land
after all, are garbage like any other.  The wait doubles each time to ``WATCHDOG_MAX_S``, up to ``WRITE_TIMEOUT_S`` in
all.  Who looks after that is another thread than the one that polls, which may hang itself (:mod:`journal.watch`).
For the same reason the producer is not idempotent: a repeated record is garbage, its delivery report names the
copy that counts, and a producer without an id writes its first record in 3 ms instead of 40 and never fails for good.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Protocol

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from collection.binding import Run
from collection.columns import Columns, table_from_rows
from collection.rows import EncodedBatch, encode
from collection.topic_keeper import PARTITIONS, TopicKeeper
from journal.clients import make_producer
from journal.errors import Rejected, TidemarkError, Unavailable
from journal.leaders import SUSPECT_S, SUSPECTED_MAX, leaders_of
from journal.names import TopicNames
from journal.topic_checks import TopicChecks
from journal.watch import Watch

log = logging.getLogger(__name__)

WATCHDOG_S = 2.0
"""A healthy broker acks in milliseconds and a fresh producer needs 1.6 s after a leader is deposed (FACTS)."""

WATCHDOG_MAX_S = 4.0
"""A broker that is restarted serves again within 4 s (FACTS)."""

WRITE_TIMEOUT_S = 30.0
"""Bound on all of it, the wait for a topic that is being created included."""

PENDING_BYTES_MAX = 64 * 1024 * 1024
"""Bytes that may be unanswered at once; they are held here to be sent again.  As much as a producer may queue."""

REPLICATED_MS = 1500
"""``request.timeout.ms``: how long a leader may wait for its followers.  Whoever is told sooner sends again, which
without an id is another record with as long to wait: behind a network that takes 0.15 to 0.25 s each way, followers
confirmed after 0.6 to 0.9 s, and at half a second no row was ever acknowledged until it healed (8 s; now 1.6 s).
Below the socket's 2 s, so that it can be said; a leader that was deposed is found out by asking who leads."""

KEY_BYTES = 4
"""Of a key that is drawn: enough that its hash is any of the partitions there may be."""

_POLL_S = 0.1

_MISSING = (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
_GIVEN_UP = (KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)


class Keeper(Protocol):
    """Who makes topics (:class:`~collection.topic_keeper.TopicKeeper`)."""

    def create(self, ids: Iterable[str]) -> None: ...

    def close(self, timeout_s: float | None = None) -> None: ...


class _Write:
    """One call of ``write``: its records, and where those of its present generation landed.

    ``told_apart``: the caller must know which batch is where, and not only where they are.  ``key``: what has one is in
    one partition.
    """

    def __init__(
        self, topic: str, attempt: str, batches: list[EncodedBatch], told_apart: bool, key: bytes | None, now: float
    ) -> None:
        self.topic = topic
        self.attempt = attempt
        self.batches = batches
        self.told_apart = told_apart
        self.key = key
        self.bytes = sum(len(b.value) for b in batches)
        self.future: Future[list[Run]] = Future()
        self.deadline = now + WRITE_TIMEOUT_S
        self.suspect_at = now + SUSPECT_S
        self.renew_at = now + WATCHDOG_S
        self.patience_s = WATCHDOG_S
        self.generation = 0
        self.landed: dict[int, tuple[int, int, int]] = {}
        """Batch -> (partition, offset, rows).  A request that is sent again lands behind those that came after it, so
        their offsets need not be in the order of the batches."""


class _Polled:
    """A producer and the thread that polls it until somebody lets go of it.

    Then the thread lets go too, and is the last that knows it: its end has no bound (a silent leader, a clock set
    back).
    """

    def __init__(self, producer: Producer) -> None:
        self.producer: Producer | None = producer
        self._lock = threading.Lock()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="collection-writer", daemon=True)
        self._thread.start()

    def let_go(self) -> None:
        """Returns at once.  What it had no answer to is answered by an error, which also ends a poll that hangs."""
        with self._lock:
            self._ended = True
            if self.producer is not None:
                self.producer.purge(blocking=False)

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        assert self.producer is not None
        poll = self.producer.poll
        while not self._ended:
            poll(_POLL_S)
        with self._lock:
            self.producer = None
        poll(0)


class CollectionWriter:
    """Writes rows of any collection of one environment.  All methods may be called from any thread."""

    def __init__(
        self, bootstrap: str, names: TopicNames, keeper: Keeper | None = None, partitions: int = PARTITIONS,
        lanes: int = 1,
    ) -> None:  # fmt: skip
        """``keeper`` is who makes topics, where this process removes some too: of one keeper the last order wins.
        Otherwise they are made with ``partitions``.

        ``lanes`` are connections to each broker, between which topics are shared out: what comes by one connection a
        broker takes in turn, a flush each, and what comes by several at the same time.
        """
        assert lanes > 0
        self._names = names
        self._lock = threading.Lock()
        self._lanes = [_Polled(_make_producer(bootstrap)) for _ in range(lanes)]
        self._lane_of: dict[str, int] = {}
        """By topic: a short name for each that is written, as in :attr:`_ordered`."""
        self._checks = TopicChecks(bootstrap, names)
        self._keeper = keeper or TopicKeeper(bootstrap, names, partitions)
        self._ordered: set[str] = set()
        """Collections whose topic was ordered here: at most one short name for each that is written."""
        self._leaders = leaders_of(bootstrap)
        self._suspected: dict[str, Callable[[], None]] = {}
        """Topics that somebody waits for too long, and how to stop asking about each.  The watch's own."""
        self._generation = 0
        self._pending: dict[int, _Write] = {}
        self._pending_bytes = 0
        self._closed = threading.Event()
        self._watch = Watch(self._look, "collection-writer-watch")

    def write(
        self, collection_id: str, columns: Columns, rows: pa.Table | Sequence[Sequence[object]], attempt: str,
        key: bytes | None = None,
    ) -> Future[list[Run]]:  # fmt: skip
        """Write ``rows`` (an Arrow table with or without ``__diff``, or tuples) and give their runs, in offset order.
        All that is written with the same ``key`` goes to the same partition.

        No rows give no runs.  The future fails with ``Rejected`` (54000 too large, 53400 too much is pending, 55000 the
        topic is configured so that it would lose rows) or ``Unavailable`` (no broker, no topic within
        ``WRITE_TIMEOUT_S``).  Raises ``InvalidUsage`` where the rows do not fit the columns: nothing was sent then.
        """
        table = rows if isinstance(rows, pa.Table) else table_from_rows(columns, rows)
        return self._write(collection_id, list(encode(columns, table, attempt)), attempt, told_apart=False, key=key)

    def write_batches(self, collection_id: str, batches: Sequence[EncodedBatch], attempt: str) -> Future[list[Run]]:
        """As :meth:`write`, of rows that are batches already, one record each; the runs say that ``attempt`` wrote
        them, and are in the order of the batches, wherever these landed: in one partition, so that they are few."""
        return self._write(collection_id, list(batches), attempt, told_apart=True, key=os.urandom(KEY_BYTES))

    def _write(
        self, collection_id: str, batches: list[EncodedBatch], attempt: str, told_apart: bool, key: bytes | None
    ) -> Future[list[Run]]:
        write = _Write(self._names.data(collection_id), attempt, batches, told_apart, key, time.monotonic())
        if not write.batches:
            write.future.set_result([])
            return write.future
        self._order_topic(collection_id, write.topic)
        with self._lock:
            if self._closed.is_set():
                raise Unavailable("the writer is closed")
            if self._pending and self._pending_bytes + write.bytes > PENDING_BYTES_MAX:
                refused = Rejected("too many rows are waiting to be written", sqlstate="53400",
                                   detail=f"{self._pending_bytes} bytes wait, at most {PENDING_BYTES_MAX}",
                                   hint="try again when earlier writes are done")  # fmt: skip
                write.future.set_exception(refused)
                return write.future
            self._pending[id(write)] = write
            self._pending_bytes += write.bytes
            failed = self._send(write)
        self._watch.wake()
        if failed:
            self._finish(write, failed)
        return write.future

    def _order_topic(self, collection_id: str, topic: str) -> None:
        """Have it made, where it is not known to be there; the records wait for it meanwhile."""
        if collection_id not in self._ordered and not self._checks.good(topic):
            self._ordered.add(collection_id)
            self._keeper.create([collection_id])

    def order(self, collection_id: str) -> None:
        """Have the topic of a collection made, where it is not there, for others who write to it."""
        self._order_topic(collection_id, self._names.data(collection_id))

    def check(self, collection_id: str) -> Future[Rejected | None]:
        """What is wrong with the topic of a collection, so that writing to it would fail; ``None``: nothing, or it is
        not there yet.  Costs nothing once it was found to be right."""
        topic = self._names.data(collection_id)
        if not self._checks.good(topic):
            return self._checks.check(topic)
        right: Future[Rejected | None] = Future()
        right.set_result(None)
        return right

    def close(self) -> None:
        """Stop; writes without an answer fail with ``Unavailable``."""
        with self._lock:
            self._closed.set()
        self._watch.stop()
        for write in list(self._pending.values()):
            self._finish(write, Unavailable("the writer was closed before the rows were written"))
        for each in self._lanes:
            each.let_go()
        for each in self._lanes:
            each.join(WATCHDOG_S)  # it ends when its poll does, by a clock that may have been set
        for unfollow in self._suspected.values():
            unfollow()
        self._keeper.close(WATCHDOG_S)  # a request under way may be answered long after

    def _send(self, write: _Write) -> TidemarkError | None:
        """Hand all records of ``write`` to the present producer (lock held)."""
        # The next topic's lane is the next one: of those that are written together each has as many.
        lane = self._lane_of.setdefault(write.topic, len(self._lane_of) % len(self._lanes))
        producer = self._lanes[lane].producer
        assert producer is not None, "nobody lets go of the present one"
        generation = write.generation = self._generation
        write.landed = {}
        for index, batch in enumerate(write.batches):

            def delivered(error, message, index=index, rows=batch.rows):
                self._on_delivery(write, generation, index, rows, error, message)

            try:
                producer.produce(write.topic, batch.value, write.key, on_delivery=delivered)
            except BufferError:
                return Rejected("too many rows are waiting to be written", sqlstate="53400")
            except KafkaException as error:
                return _failure(write, error.args[0])
        return None

    def _on_delivery(
        self, write: _Write, generation: int, index: int, rows: int, error: KafkaError | None, message
    ) -> None:
        """On a polling thread, once per record."""
        with self._lock:  # held until it is taken out: what is sent again forgets what has landed
            if generation != write.generation or write.future.done():
                return
            if error is None:
                write.landed[index] = message.partition(), message.offset(), rows
                ended = len(write.landed) == len(write.batches) and self._take(write)
            elif error.fatal() or error.code() in _GIVEN_UP:
                write.renew_at = 0.0
                return
            else:
                ended = self._take(write)
        if ended:
            self._tell(write, None if error is None else _failure(write, error))

    def _finish(self, write: _Write, error: Exception) -> None:
        with self._lock:
            if not self._take(write):
                return
        self._tell(write, error)

    def _take(self, write: _Write) -> bool:
        """Take ``write`` out of what is pending (lock held); whether it was there."""
        if self._pending.pop(id(write), None) is None:
            return False
        self._pending_bytes -= write.bytes
        return True

    def _tell(self, write: _Write, error: Exception | None) -> None:
        if error is not None:
            write.future.set_exception(error)
        elif self._checks.good(write.topic):
            write.future.set_result(_runs(write))
        else:
            # Now that the topic is there for certain, and before anybody may bind what lies on it.
            self._checks.check(write.topic).add_done_callback(lambda told: _checked(write, told.result()))

    def _look(self) -> bool:
        now = time.monotonic()
        with self._lock:
            late = [w for w in self._pending.values() if now >= w.deadline]
            renew = any(now >= w.renew_at for w in self._pending.values())
        for write in late:
            self._finish(write, _timed_out(write))
        self._suspect(now)
        if renew:
            self._renew(now)
        return bool(self._pending or self._suspected)

    def _suspect(self, now: float) -> None:
        """Find out who leads the topics that kept somebody waiting, for as long as they do."""
        with self._lock:
            waiting = {write.topic for write in self._pending.values() if now >= write.suspect_at}
        for topic in [topic for topic in self._suspected if topic not in waiting]:
            self._suspected.pop(topic)()
        for topic in sorted(waiting)[:SUSPECTED_MAX]:
            if topic not in self._suspected:
                self._suspected[topic] = self._leaders.follow(topic, lambda _, topic=topic: self._on_moved(topic))
            self._leaders.suspect(topic)

    def _on_moved(self, topic: str) -> None:
        """Most brokers name another leader now: what waits for the topic is sent again at the next poll."""
        with self._lock:
            for write in self._pending.values():
                if write.topic == topic and write.generation == self._generation:
                    write.renew_at = 0.0

    def _renew(self, now: float) -> None:
        failures: list[tuple[_Write, TidemarkError]] = []
        bootstrap = self._leaders.bootstrap(*self._suspected)
        with self._lock:
            if self._closed.is_set():
                return
            old, self._lanes = self._lanes, [_Polled(_make_producer(bootstrap)) for _ in self._lanes]
            self._generation += 1
            for write in self._pending.values():
                if now >= write.renew_at:
                    write.patience_s = min(2 * write.patience_s, WATCHDOG_MAX_S)
                write.renew_at = now + write.patience_s
                failed = self._send(write)
                if failed:
                    failures.append((write, failed))
            pending = len(self._pending)
        for each in old:
            each.let_go()
        for write, failed in failures:
            self._finish(write, failed)
        log.warning("no answer from kafka, writing with a fresh producer", extra={"writes": pending})


def to_be_tried_again(error: BaseException) -> bool:
    """Whether the same write may succeed later."""
    return isinstance(error, Unavailable) or (isinstance(error, Rejected) and error.sqlstate == "53400")


def _checked(write: _Write, wrong: Rejected | None) -> None:
    if wrong is None:
        write.future.set_result(_runs(write))
    else:
        write.future.set_exception(wrong)


def _make_producer(bootstrap: str) -> Producer:
    return make_producer(
        bootstrap,
        **{
            "enable.idempotence": False,
            "message.timeout.ms": int(1000 * WRITE_TIMEOUT_S),
            "request.timeout.ms": REPLICATED_MS,
            # Each record by itself: by default all of some 10 ms, a large write, go to one.
            "sticky.partitioning.linger.ms": 0,
        },
    )


def _runs(write: _Write) -> list[Run]:
    runs: list[Run] = []
    landed = [write.landed[index] for index in range(len(write.batches))]
    for partition, offset, rows in landed if write.told_apart else sorted(landed):
        last = runs[-1] if runs else None
        if last and last.partition == partition and last.upper == offset:
            runs[-1] = last._replace(upper=offset + 1, rows=last.rows + rows)
        else:
            runs.append(Run(write.topic, partition, offset, offset + 1, write.attempt, rows))
    return runs


def _failure(write: _Write, error: KafkaError) -> TidemarkError:
    if error.code() in _MISSING:
        return Unavailable(f"the topic {write.topic} does not exist", detail=error.str(),
                           hint="it is made when it is first written to; have the brokers a controller?")  # fmt: skip
    if error.code() in _TOO_LARGE:
        return Rejected("row is too large for its topic", sqlstate="54000", detail=error.str())
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return Rejected(f"kafka does not allow writing to {write.topic}", sqlstate="42501", detail=error.str())
    return Unavailable("rows could not be written to kafka", detail=error.str())


def _timed_out(write: _Write) -> Unavailable:
    return Unavailable(
        f"rows could not be written to {write.topic} within {WRITE_TIMEOUT_S:g} s",
        hint="is the broker running, and could the topic be made?",
    )
