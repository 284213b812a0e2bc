"""Whose turn it is, of several processes that are one controller: a consumer group of Kafka's says.

Promises: of all that are members of it at most one has the turn as Kafka sees it; it keeps it while it lives, also as
others join; another has it within ``SESSION_TIMEOUT_S`` of its death, and at once where it leaves (:meth:`Turn.close`).

This is no lock, and nothing hangs on it but when somebody begins: who was cut off goes on without knowing that another
has the turn, until its next record is refused for its epoch (:mod:`oracle.views_log`).  So it may be wrong, for as long
as it likes, and costs no more than that.

Why a group and not a look at the other's address: what both need is Kafka, and nothing else.  Who asked each other over
a network that is cut between them would take over from one another for as long as that lasts.
"""

from __future__ import annotations

import logging
import threading
import time

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from journal.clients import make_consumer
from journal.errors import FatalLog
from journal.lasting import QUIET_S, forsaken, lasting_of
from journal.names import TopicNames

log = logging.getLogger(__name__)

REFUSED = (
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.INVALID_SESSION_TIMEOUT,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL,
)
"""What a broker says for good: who waits would wait for ever."""

SESSION_TIMEOUT_S = 6.0
"""How long who died keeps the turn: the least that a broker accepts by default, as subscribers have it."""

STILL_S = 30.0
"""How long a member may do nothing at all before Kafka takes it for dead: as long as a process of ours may stand still
before it is ended (``journal/process.py``)."""

POLL_S = 0.2
"""How soon a member leaves that is told to; what Kafka says wakes it."""


class Turn:
    """A member of ``controller``'s group from the start, on a thread of its own.  Any thread may ask; close it.

    The group's one partition is that of the topic of notes, which is there by then; nothing of it is read.
    """

    def __init__(self, bootstrap: str, names: TopicNames, controller: str) -> None:
        self._bootstrap = bootstrap
        self._topic = names.work(controller)
        self._group = f"{names.env}.turn.{controller}"
        self._others = lasting_of(bootstrap)
        self._has = threading.Event()
        self._closed = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="turn", daemon=True)
        self._thread.start()

    def comes(self, timeout_s: float) -> bool:
        """Whether it is ours, waiting for it so long.  Raises what keeps us from ever hearing: ``FatalLog`` where the
        brokers refuse."""
        had = self._has.wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return had

    def close(self) -> None:
        """Leave, so that another need not wait; bounded by nothing but Kafka's client."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                self._be_member()
        except BaseException as error:  # told to whoever waits
            self._failure = error
            self._has.set()
            log.warning("nobody tells whose turn it is", extra={"group": self._group, "reason": str(error)})

    def _be_member(self) -> None:
        """Until closed, or until a client must be made anew."""
        consumer = make_consumer(self._bootstrap, **{
            "group.id": self._group,
            "session.timeout.ms": int(1000 * SESSION_TIMEOUT_S),
            "max.poll.interval.ms": int(1000 * STILL_S),
            # Of all ways to share partitions the one by which who has it keeps it.
            "partition.assignment.strategy": "cooperative-sticky",
        })  # fmt: skip
        try:
            consumer.subscribe([self._topic], on_assign=self._given, on_revoke=self._taken, on_lost=self._taken)
            self._listen(consumer)
        finally:
            self._has.clear()
            consumer.close()

    def _listen(self, consumer: Consumer) -> None:
        doubted, said = time.monotonic(), ""
        while not self._closed.is_set():
            message = consumer.poll(POLL_S)
            error = None if message is None else message.error()
            if error is not None and error.code() in REFUSED:
                raise FatalLog(f"the brokers let nobody into the group {self._group}", detail=error.str())
            if error is not None and error.str() != said:
                said = error.str()
                log.warning("whose turn it is may be told late", extra={"group": self._group, "reason": said})
            if time.monotonic() - doubted > QUIET_S:
                if forsaken(consumer, self._topic, self._others):
                    log.warning("a client knows no broker, another goes on", extra={"group": self._group})
                    return
                doubted = time.monotonic()

    def _given(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        ours = [TopicPartition(each.topic, each.partition, OFFSET_END) for each in partitions]
        consumer.incremental_assign(ours)
        consumer.pause(ours)
        if ours:
            self._has.set()

    def _taken(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._has.clear()
        try:
            consumer.incremental_unassign(partitions)
        except KafkaException as error:  # it was lost with the session
            log.debug("the turn went with the session", extra={"reason": str(error)})
