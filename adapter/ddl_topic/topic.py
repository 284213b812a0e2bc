"""DDL from any Kafka client: the ``<env>.ddl`` topic, read by all adapters as one consumer group (DESIGN §7).

Promises: every record is answered (if it says where), garbage included, and none stops the rest; a statement is
executed at most once per request id, in whichever adapter it lands and however often it is delivered, because the id
is recorded in the same proposal; offsets are committed only after the answers were produced, so an adapter that dies
in between leaves the request to the next one, which finds the record of its execution and answers from it.

It does not promise an order between requests of different partitions, nor that an answer is sent only once.  A reply
topic that takes no answers (there is none, or it is one of the environment's own) costs its own requests their answers
and holds up nobody: answers are on their way while the next requests are executed, and are given up after a time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from adapter.ddl_topic.messages import (
    DdlRequest,
    Garbage,
    decode_request,
    error_reply,
    garbage_reply,
    ok_reply,
    parse_ddl,
    reply_headers,
    reply_topic,
)
from adapter.execute.ddl_commit import Asked
from adapter.execute.executor import TidemarkExecutor
from adapter.state.session_state import DEFAULT_DATABASE
from adapter.system.schemas import RELATIONS
from journal.clients import make_consumer, make_producer
from journal.errors import TidemarkError, internal, logged
from journal.lasting import QUIET_S, forsaken, lasting_of
from journal.names import TopicNames
from sql.objects.names import Names

log = logging.getLogger(__name__)

BATCH_LEN_MAX = 256
"""Requests in progress at once: one group of DDL (ddl_commit)."""

POLL_S = 0.25
"""How long a poll waits for the first request, and so how soon a stop is noticed."""

REPLY_TIMEOUT_S = 10.0
"""How long answers may take to be produced before they are given up: as an election may."""

REPLY_TOPIC_S = 2.0
"""How long a reply topic that is not there is looked for: as any other (``journal/clients.py``)."""

ANSWERS_S = 0.05
"""How long the next requests wait for the answers of the last to be there: healthy brokers take a tenth of that."""

TOPICS_LOGGED_MAX = 10

ANSWERS_MAX = 8192
"""Answers on their way at once, 32 full batches; above that no more requests are taken until some are there or given
up.  A reply topic that is missing takes requests at this many in two seconds."""

STOP_TIMEOUT_S = 5.0
"""How long a stop waits for the batch under way: half of the time after which a supervisor kills.  A batch that is left
is delivered to another adapter, once the group has missed us."""


async def answer(executor: TidemarkExecutor, value: bytes | None, key: bytes | None) -> tuple[str, bytes]:
    """``(request id, answer)`` for one record.  Never raises but for cancellation."""
    request = decode_request(value, key)
    if isinstance(request, Garbage):
        return request.request_id, garbage_reply(request)
    try:
        statement = await executor.beside(request.sql, parse_ddl)
        outcome = await executor.execute_ddl(statement, _names(request), Asked(request.sql), request.request_id)
    except TidemarkError as error:
        return request.request_id, error_reply(request.request_id, error)
    except Exception as error:
        extra = {"request_id": request.request_id, "reference": logged(error)}
        log.exception("a DDL request failed", extra=extra)
        return request.request_id, error_reply(request.request_id, internal(error, "the adapter"))
    if outcome.already is not None:
        return request.request_id, ok_reply(request.request_id, outcome.already.catalog_ts, outcome.already.message)
    return request.request_id, ok_reply(request.request_id, outcome.catalog_ts, outcome.tag)


def _names(request: DdlRequest) -> Names:
    return Names(request.database or DEFAULT_DATABASE, (request.schema or "public",), system=RELATIONS)


class DdlTopic:
    """One adapter's share of the DDL topic.  :meth:`start` on the event loop that the executor lives on."""

    def __init__(self, bootstrap: str, names: TopicNames, executor: TidemarkExecutor) -> None:
        self._bootstrap = bootstrap
        self._names = names
        self._executor = executor
        self._stopped = threading.Event()
        self._left = threading.Event()
        """Nobody waits for us any more: what is answered now is said by the end of the executor, not by the catalog."""
        self._ended = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._others = lasting_of(bootstrap)
        self._doubted_at = time.monotonic()
        """When there was something to read last, or it was made sure that there was nothing."""
        self._lost = False
        """Whether an answer was lost since."""
        self.unanswered = 0
        """Requests that asked for an answer and could not be given one."""
        self._under_way: deque[_Batch] = deque()
        self.assigned = threading.Event()
        """Set when the group has given this adapter partitions (perhaps none) for the first time."""

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._follow, name="ddl-topic", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Finish the batch under way, leave the group; what takes longer than ``STOP_TIMEOUT_S`` is left behind."""
        self._stopped.set()
        if self._thread is not None:
            try:
                await asyncio.wait_for(self._ended.wait(), STOP_TIMEOUT_S)
            except TimeoutError:
                self._left.set()
                log.warning("was left behind", extra={"what": "ddl topic"})

    def _follow(self) -> None:
        try:
            self._run()
        finally:
            try:
                self._loop.call_soon_threadsafe(self._ended.set)
            except RuntimeError:
                pass  # the loop was closed: nobody waits any more

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._run_once()

    def _run_once(self) -> None:
        """Until stopped, or until a client must be made anew."""
        consumer = make_consumer(
            self._bootstrap,
            **{
                "group.id": f"{self._names.env}.ddl",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
                "partition.assignment.strategy": "cooperative-sticky",
            },
        )
        producer = make_producer(
            self._bootstrap,
            **{
                "message.timeout.ms": int(REPLY_TIMEOUT_S * 1000),
                "topic.metadata.propagation.max.ms": int(REPLY_TOPIC_S * 1000),
            },
        )
        try:
            consumer.subscribe([self._names.ddl], on_assign=lambda *_: self.assigned.set())
            while not self._stopped.is_set() and not self._forsaken(consumer, producer):
                self._turn(consumer, producer)
            if producer.flush(STOP_TIMEOUT_S / 2):
                producer.purge()
            self._commit_answered(consumer)
        finally:
            consumer.close()

    def _forsaken(self, consumer: Consumer, producer: Producer) -> bool:
        """Whether one of them hears of no broker any more.  Asked only after a while in which nothing could be read, or
        in which an answer was lost."""
        now = time.monotonic()
        if now < self._doubted_at + QUIET_S:
            return False
        asked = (consumer, producer) if self._lost else (consumer,)
        self._doubted_at, self._lost = now, False
        found = any(forsaken(client, self._names.ddl, self._others) for client in asked)
        if found:
            log.warning("a client knows no broker, another goes on", extra={"topic": self._names.ddl})
        return found

    def _turn(self, consumer: Consumer, producer: Producer) -> None:
        # The answers of the last batch are mostly there at once: their requests are then committed before we wait.
        producer.flush(ANSWERS_S if self._under_way else 0)
        self._commit_answered(consumer)
        if sum(batch.left for batch in self._under_way) >= ANSWERS_MAX:
            producer.poll(POLL_S)
            return
        try:
            # ``consume`` waits for a whole batch: only what is there already may be taken with the first.
            first = consumer.poll(POLL_S)
            found = [first, *consumer.consume(BATCH_LEN_MAX - 1, 0)] if first is not None else []
            messages = [m for m in found if not _failed(m)]
        except KafkaException as error:
            log.warning("the DDL topic could not be read", extra={"error": str(error)})
            self._stopped.wait(POLL_S)
            return
        if not messages:
            return
        if not self._lost:
            self._doubted_at = time.monotonic()
        answers = self._answers(messages)
        if answers is None:
            return  # stopping: nothing is committed, so the requests are delivered again
        batch = _Batch(self._count_lost)
        for message in messages:
            place = (message.topic(), message.partition())
            batch.offsets[place] = max(batch.offsets.get(place, 0), message.offset() + 1)
        self._under_way.append(batch)
        self._reply(producer, batch, messages, answers)

    def _commit_answered(self, consumer: Consumer) -> None:
        """Commit the offsets of the oldest batches that have no answer on its way any more."""
        offsets: dict[tuple[str, int], int] = {}
        while self._under_way and not self._under_way[0].left:
            batch = self._under_way.popleft()
            offsets |= batch.offsets
            if batch.lost:
                log.warning(
                    "DDL requests could not be answered",
                    extra={"topics": dict(batch.lost.most_common(TOPICS_LOGGED_MAX)), "so_far": self.unanswered},
                )
        if not offsets:
            return
        try:
            consumer.commit(offsets=[TopicPartition(t, p, o) for (t, p), o in offsets.items()], asynchronous=False)
        except KafkaException as error:
            # The partition went to another adapter meanwhile: it will answer again, from the recorded requests.
            log.info("offsets of the DDL topic were not committed", extra={"error": str(error)})

    def _answers(self, messages: Sequence[Message]) -> list[tuple[str, bytes]] | None:
        async def all_of_them() -> list[tuple[str, bytes]]:
            # In topic order into the queue: a later statement of a batch sees what an earlier one made.
            return await asyncio.gather(*(answer(self._executor, m.value(), m.key()) for m in messages))

        try:
            answers = asyncio.run_coroutine_threadsafe(all_of_them(), self._loop).result()
            return None if self._left.is_set() else answers
        except (RuntimeError, asyncio.CancelledError, TimeoutError):
            self._stopped.set()
            return None

    def _reply(
        self, producer: Producer, batch: _Batch, messages: Sequence[Message], answers: Sequence[tuple[str, bytes]]
    ) -> None:
        for message, (request_id, value) in zip(messages, answers, strict=True):
            topic = reply_topic(message.headers())
            if topic is None:
                continue
            if not self._names.takes_replies(topic):
                batch.lose(f"{topic}: topics {self._names.env}.* are Tidemark's own")
                continue
            try:
                producer.produce(
                    topic,
                    value,
                    key=request_id.encode(),
                    headers=reply_headers(message.headers()),
                    on_delivery=batch.delivered,
                )
                batch.left += 1
            except (BufferError, KafkaException) as error:
                batch.lose(f"{topic}: {error}")

    def _count_lost(self) -> None:
        self._lost = True
        self.unanswered += 1


class _Batch:
    """Requests that were executed, until the last of their answers is there or given up."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self.offsets: dict[tuple[str, int], int] = {}
        self.left = 0
        """Answers on their way."""
        self.lost: Counter[str] = Counter()

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        self.left -= 1
        if error is not None:
            self.lose(f"{message.topic()}: {error.str()}")

    def lose(self, why: str) -> None:
        """An answer that will not be there."""
        self.lost[why] += 1
        self._on_lost()


def _failed(message: Message) -> bool:
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        log.warning("the DDL topic could not be read", extra={"error": error.str()})
    return error is not None
