"""The topic of a sink: messages and the note of how far they go, in one transaction of Kafka's.

Promises: as :class:`controllers.storage.sinking.Target`.  The transactions of a sink have one name, so that whoever
claims it ends what another began and shuts that one out.  What is committed is asked for behind a record of one's own
(a claim), since a leader that was deposed tells an old end of its log for a while.

A note is a record of the progress topic: its key names the environment's log and the sink, its value has ``timestamp``.
Several sinks may share one; then who begins waits until what others have under way is over.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from catalog_log.objects import Sink
from controllers.storage import sinking
from controllers.storage.sinking import SinkRefused
from journal.clients import admin_with, consumer_with, discard, transactional_producer
from journal.errors import Unavailable

log = logging.getLogger(__name__)

HEADER = "tidemark-timestamp"
"""The header of each message with its timestamp, as digits."""

TRANSACTION_MS_MAX = 900_000
"""What a broker allows unless told otherwise (``transaction.max.timeout.ms``): all rows with which a sink begins are
one transaction, of some hundred thousand a second."""

ANSWER_S = 10.0
"""For one request; a transaction's end too, which is asked for again."""

TRIES_MAX = 3
"""To end a transaction: half a minute, in which a coordinator that is lost has another one in its place."""

STALLED_S = 30.0
"""With no room for a further record: nothing is delivered."""

READ_S = 60.0
"""To read all notes that there are, up to one's own claim."""

POLL_EVERY = 1_000
"""Messages between two looks at whether one could not be delivered."""

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class SinkTopic:
    """For one thread; close it."""

    def __init__(
        self, sink: Sink, of_log: str, settings: Callable[[], dict[str, object]], stopping: Callable[[], bool]
    ) -> None:
        """``of_log``: the identity of the environment's log; ``settings``: of clients of its brokers, asked for anew
        each time that one is made, since secrets may change.  May raise what they raise."""
        self._sink = sink
        self._name = f"tidemark-{of_log}-{sink.id}"
        self._key = json.dumps({"log": of_log, "sink": sink.id}).encode()
        self._claim_key = json.dumps({"log": of_log, "sink": sink.id, "claim": True}).encode()
        self._settings = settings
        self._stopping = stopping
        self._producer: Producer | None = None
        self._failed: KafkaError | None = None
        self._open = False
        self.bytes = 0
        """Of the messages of the newest transaction."""

    def claim(self) -> int | None:
        """As :meth:`controllers.storage.sinking.Target.claim`.  Raises ``Unavailable``."""
        self.close()
        settings = self._settings()
        self._make_topics(settings)
        self._failed = None
        try:
            self._producer = transactional_producer(settings, self._name, TRANSACTION_MS_MAX)
        except (KafkaException, ValueError):  # whose text may be of a key's
            raise SinkRefused("its connection has certificates or a key that are none") from None
        life = json.dumps({"claim": uuid.uuid4().hex}).encode()
        try:
            self._producer.init_transactions(ANSWER_S)
            self._begin()
            self._producer.produce(self._sink.progress_topic, life, self._claim_key, 0, on_delivery=self._delivered)
            self._commit()
        except KafkaException as error:
            raise self._away(error.args[0]) from None
        return self._newest(settings, life)

    def write(self, messages: Iterable[sinking.Message], through: int) -> int:
        """As :meth:`controllers.storage.sinking.Target.write`.  Raises ``Unavailable``."""
        count = size = 0
        try:
            self._begin()
            topic, delivered = self._sink.topic, self._delivered
            produce = self._producer.produce
            stamped, headers = None, [(HEADER, b"")]
            for ts, key, value in messages:
                if ts != stamped:
                    stamped, headers = ts, [(HEADER, b"%d" % ts)]
                try:
                    produce(topic, value, key, headers=headers, on_delivery=delivered)
                except BufferError:
                    self._produce(key, value, headers)
                count += 1
                size += len(key or b"") + len(value or b"")
                if count % POLL_EVERY == 0:
                    self._look()
            note = json.dumps({"timestamp": through}).encode()
            self._producer.produce(self._sink.progress_topic, note, self._key, 0, on_delivery=self._delivered)
            self._commit()
        except KafkaException as error:
            raise self._away(error.args[0]) from None
        self.bytes = size
        return count

    def close(self) -> None:
        """Give up what is under way, so that consumers need not wait until that has been for too long."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        producer.purge(in_queue=True, in_flight=True, blocking=False)
        if self._open:
            self._open = False
            try:
                producer.abort_transaction(ANSWER_S)
            except KafkaException as error:
                log.info("a transaction is left to whoever comes next",
                         extra={"sink": self._sink.id, "reason": error.args[0].str()})  # fmt: skip

    def _begin(self) -> None:
        assert self._producer is not None, "claim it first"
        self._producer.begin_transaction()
        self._open = True

    def _produce(self, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        """As soon as there is room for it."""
        until = time.monotonic() + STALLED_S
        while True:
            self._producer.poll(0.1)
            self._look()
            try:
                self._producer.produce(self._sink.topic, value, key, headers=headers, on_delivery=self._delivered)
                return
            except BufferError:
                if time.monotonic() > until:
                    raise Unavailable(f"nothing is delivered to topic {self._sink.topic}") from None

    def _look(self) -> None:
        self._producer.poll(0)
        if self._failed is not None:
            raise self._away(self._failed)
        if self._stopping():
            raise Unavailable("the controller is stopping")

    def _commit(self) -> None:
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                self._producer.commit_transaction(ANSWER_S)
                self._open = False
                return
            except KafkaException as error:
                if not error.args[0].retriable() or not tries_left or self._stopping():
                    raise

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if self._failed is None and error is not None:
            self._failed = error

    def _away(self, error: KafkaError) -> Exception:
        first = self._failed or error
        if first.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return SinkRefused(f"a message is larger than topic {self._sink.topic} takes")
        if error.code() in _FENCED:
            return Unavailable("another process has taken this sink over")
        return Unavailable(f"kafka did not take what was written: {first.str()}")

    def _make_topics(self, settings: dict[str, object]) -> None:
        sink = self._sink
        try:
            admin = admin_with(settings)
        except (KafkaException, ValueError):
            raise SinkRefused("its connection has certificates or a key that are none") from None
        replicas = sink.replicas or -1
        wanted = {
            sink.topic: NewTopic(sink.topic, sink.partitions or -1, replicas),
            sink.progress_topic: NewTopic(sink.progress_topic, 1, replicas, config={"cleanup.policy": "compact"}),
        }
        try:
            for name in list(wanted):
                found = admin.list_topics(name, timeout=ANSWER_S).topics[name]
                if found.error is None:
                    del wanted[name]
                    if name == sink.progress_topic and len(found.partitions) != 1:
                        raise SinkRefused(f"topic {name} has {len(found.partitions)} partitions: notes need one")
            for name, made in admin.create_topics(list(wanted.values()), request_timeout=ANSWER_S).items() \
                    if wanted else ():  # fmt: skip
                try:
                    made.result(2 * ANSWER_S)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise Unavailable(f"topic {name} cannot be made: {error.args[0].str()}") from None
        except KafkaException as error:
            raise Unavailable(f"its brokers do not answer: {error.args[0].str()}") from None

    def _newest(self, settings: dict[str, object], life: bytes) -> int | None:
        """The newest note below the claim that has ``life`` in it."""
        consumer = consumer_with(settings, **{"isolation.level": "read_committed"})
        try:
            return self._read(consumer, life)
        except KafkaException as error:
            raise self._away(error.args[0]) from None
        finally:
            discard(consumer, self._sink.progress_topic)

    def _read(self, consumer: Consumer, life: bytes) -> int | None:
        topic = self._sink.progress_topic
        consumer.list_topics(topic, ANSWER_S)  # or it would take a second to meet a topic that it has not heard of
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        newest: int | None = None
        until = time.monotonic() + READ_S
        while time.monotonic() < until and not self._stopping():
            first = consumer.poll(0.2)
            for message in () if first is None else (first, *consumer.consume(1_000, 0)):
                if message.error() is not None:
                    continue  # a broker is away: librdkafka goes on, and the time is bounded
                if message.key() == self._key and message.value() is not None:
                    newest = _timestamp(topic, message.value())
                if message.key() == self._claim_key and message.value() == life:
                    return newest
        raise Unavailable(f"topic {topic} could not be read up to its end")


def _timestamp(topic: str, note: bytes) -> int:
    try:
        found = json.loads(note)["timestamp"]
        if isinstance(found, int):
            return found
    except (ValueError, LookupError, TypeError):
        pass
    raise SinkRefused(f"topic {topic} has a note of this sink that is none: {note[:100]!r}")
