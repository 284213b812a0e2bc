"""A journal on a Kafka topic.

Keeps the promises of :mod:`journal.api`.  One thread reads, one polls the producer; both end with :meth:`close`.

Why a watchdog: a long-lived librdkafka producer was seen to hang on a deposed leader until the network healed, its
write landing 15 s later.  So an append without an answer for two seconds fails with ``Indeterminate``, and whoever
settles it calls :meth:`KafkaTransport.renew` first, which opens a fresh producer.  And a leader that was deposed
without knowing it answers for ever (``journal/leaders.py``): when most brokers name another, producer and readers are
made anew, bootstrapped from those.

A producer that replaces another is not idempotent: it would need an id first, which librdkafka asks of any broker, the
silent one too, and which a broker that was just started asks of a controller that may be lost as well (writers stood
still for 5 to 10 s after some losses).  Copies and late landings are nothing new to a journal's readers: a fold refuses
them, whoever made them (:mod:`journal.fences`; an append that comes twice fails on the upper).

Weak spot: a topic that is deleted and created again *while* we read is noticed only by its offsets; its identity is
checked when a journal is opened.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from confluent_kafka import KafkaError, TopicPartition

from journal import clients
from journal.api import Entry, Subscription
from journal.errors import FatalLog, InvalidUsage, Rejected
from journal.kafka_producer import ACK_TIMEOUT_S, ProducerSession
from journal.kafka_reader import Reader
from journal.lasting import Lasting
from journal.leaders import SUSPECT_S, Agreed, leaders_of
from journal.limits import VALUE_BYTES_MAX, too_large

log = logging.getLogger(__name__)

CUT_TIMEOUT_S = 30.0


class KafkaTransport:
    """One process's access to ``topic`` on the cluster at ``bootstrap``.

    Raises ``Unavailable`` if no broker answers within ``start_timeout_s``, ``FatalLog`` if the topic is missing or has
    more than one partition.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        ack_timeout_s: float = ACK_TIMEOUT_S,
        start_timeout_s: float | None = None,
        producer_settings: dict[str, object] | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self._ack_timeout_s = ack_timeout_s
        self._start_timeout_s = clients.REACH_TIMEOUT_S if start_timeout_s is None else start_timeout_s
        self._producer_settings = producer_settings or {}
        self._lock = threading.Lock()
        self._closed = False
        self._session: ProducerSession | None = None
        self._fruitless = 0
        """Producers in a row, before the present one, that never had an answer."""
        self._moved_at = float("-inf")
        """When most brokers named another leader, last."""
        self._readers: list[Reader] = []
        self._leaders = leaders_of(bootstrap)
        # Metadata comes through a consumer: asking through a producer could create the topic on a lenient broker.
        self._control_lock = threading.Lock()
        """Held while it is asked, which takes up to ``start_timeout_s``: it must not be closed meanwhile.  Nobody who
        holds ``_lock`` waits for it."""
        self._control = Lasting(bootstrap, clients.make_consumer)
        try:
            self._check_topic()
        except Exception:
            self._control.client.close()
            raise
        self._unfollow = self._leaders.follow(topic, self._on_moved)

    def make_ready(self) -> None:
        """Begin to have a producer that has met its topic, for who will append for the first time when somebody waits:
        by itself it takes half a second to get its id, and up to one to meet the topic.  Returns at once."""
        with self._lock:
            if self._closed or self._session is not None:
                return
            self._open_session()
            session = self._session
        session.meet()

    def append(self, value: bytes) -> Future[int]:
        if len(value) > VALUE_BYTES_MAX:
            return _failed(too_large(len(value), VALUE_BYTES_MAX))
        session = self._session
        if session is None or session.broken:
            old = None
            with self._lock:
                if self._closed:
                    return _failed(Rejected(f"journal {self.topic} is closed"))
                if self._session is session:
                    old = self._open_session()
                session = self._session
            if old is not None:
                # Not here: who is told then may want what our caller holds.
                threading.Thread(target=old.abandon, name=f"abandon-{self.topic}", daemon=True).start()
        return session.append(value)

    def subscribe(
        self,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
    ) -> Subscription:
        reader = Reader(self, from_offset, on_entries, on_error)
        with self._lock:
            self._readers.append(reader)
        return reader

    def bounds(self, timeout_s: float | None = None) -> tuple[int, int]:
        """``timeout_s``: as long as at the start, unless given."""
        with self._control_lock:
            if self._closed:
                raise InvalidUsage(f"journal {self.topic} is closed")
            return self._control.ask(
                lambda client, left_s: client.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=left_s),
                self._start_timeout_s if timeout_s is None else timeout_s,
            )

    def cut(self, below_offset: int) -> None:
        start, end = self.bounds()
        if below_offset > end:
            raise InvalidUsage(f"cannot cut {self.topic} below {below_offset}: it ends at {end}")
        if below_offset <= start:
            return
        clients.delete_below(self.bootstrap, TopicPartition(self.topic, 0, below_offset), CUT_TIMEOUT_S)

    def renew(self) -> None:
        with self._lock:
            session = self._session
            # One that is younger than the watchdog cannot have been found hanging: many settlers share one renewal.
            if self._closed or (session is not None and session.age_s() < self._patience_s(session)):
                return
            old = self._open_session()
        if old is not None:
            old.abandon()

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            session, self._session = self._session, None
        self._unfollow()
        for reader in list(self._readers):
            reader.close()
        if session is not None:
            session.close()
        with self._control_lock:
            self._control.client.close()

    def forget(self, reader: Reader) -> None:
        """``reader`` was closed."""
        with self._lock:
            if reader in self._readers:
                self._readers.remove(reader)

    def exists(self, timeout_s: float) -> bool:
        """Whether the topic exists now.  Raises ``Unavailable``."""
        with self._control_lock:
            return self._closed or topic_partitions(self._control, self.bootstrap, self.topic, timeout_s) > 0

    def _open_session(self) -> ProducerSession | None:
        """A fresh producer (lock held); the one before, which the caller abandons without the lock: whoever waited for
        it is told then, and may well append at once."""
        old = self._session
        self._fruitless = self._fruitless + 1 if old is not None and not old.answered else 0
        again = {} if old is None else {"enable.idempotence": False}
        self._session = ProducerSession(
            self.bootstrap_now(), self.topic, self._ack_timeout_s, again | self._producer_settings, self.suspect
        )
        if old is not None:
            log.warning("renewed the producer", extra={"topic": self.topic, "age_s": round(old.age_s(), 3)})
        return old

    def bootstrap_now(self) -> str:
        """The brokers to begin a new client at."""
        return self._leaders.bootstrap(self.topic)

    def suspect(self) -> None:
        """Something is overdue: find out who leads."""
        self._leave_deposed()
        self._leaders.suspect(self.topic)

    def _on_moved(self, agreed: Agreed) -> None:
        """Most brokers name another leader."""
        with self._lock:
            if self._closed:
                return
            log.info("another leader", extra={"topic": self.topic, "leader": agreed.leaders[0]})
            self._moved_at = time.monotonic()
            readers = list(self._readers)
        for reader in readers:
            reader.renew()
        self._leave_deposed()

    def _leave_deposed(self) -> None:
        """Replace a producer that was begun before the leader changed and keeps an append waiting: it may be talking to
        the old one.  A session that has nothing waiting finds the new one by itself, or suspects."""
        with self._lock:
            session = self._session
            if self._closed or session is None or session.opened_s >= self._moved_at:
                return
            # One that never had an answer has no better reason to wait than whom it was begun at.
            if session.waits_s() <= (SUSPECT_S if session.answered else 0.0):
                return
            old = self._open_session()
            self._fruitless = 0  # the one before had no chance
        if old is not None:
            old.abandon()

    def _patience_s(self, session: ProducerSession) -> float:
        """How old ``session`` must be to be replaced."""
        if session.broken:
            return 0.0
        return patience_s(self._ack_timeout_s, 0 if session.answered else self._fruitless)

    def _check_topic(self) -> None:
        def look() -> int | None:
            return topic_partitions(self._control, self.bootstrap, self.topic, self._start_timeout_s) or None

        partitions = clients.known(self.bootstrap, self.topic, look)
        if partitions != 1:
            raise FatalLog(f"topic {self.topic} has {partitions} partitions, expected 1")


def patience_s(ack_timeout_s: float, fruitless: int) -> float:
    """How old a producer must be to be replaced, after ``fruitless`` ones in a row that never had an answer.  Pure.

    A fresh one needs 0.5 to 1.6 s for metadata and its id (librdkafka's timers), so on a busy machine replacing each
    after the watchdog's 2 s could go on without end.  The first replacement gets no more than that, though: most often
    it was begun at a leader that was just deposed (measured: 4 s for it made gaps of 5 to 12 s out of 2 to 3).
    """
    return ack_timeout_s * 2 ** min(fruitless, 2)


def topic_partitions(control: Lasting, bootstrap: str, topic: str, timeout_s: float) -> int:
    """How many partitions ``topic`` has; 0 if there is no such topic.  Raises ``Unavailable``."""
    found = control.ask(lambda client, left_s: client.list_topics(topic, timeout=left_s), timeout_s)
    metadata = found.topics.get(topic)
    if metadata is None or metadata.error is not None:
        code = None if metadata is None else metadata.error.code()
        if code in (None, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return 0
        raise clients.unreachable(bootstrap, timeout_s, metadata.error)
    return len(metadata.partitions)


def _failed(error: Exception) -> Future[int]:
    done: Future[int] = Future()
    done.set_exception(error)
    return done
