"""Whose turn it is, of several processes that are one controller: a consumer group of Kafka's says.

Promises: of all that are members of it at most one has the turn as Kafka sees it, and keeps it as others join; another
has it ``SESSION_TIMEOUT_S`` after its last word, and within a second where it leaves (:meth:`Turn.close`).  Where
brokers were away for longer than that anyone may have it: who gets it asks whether another one serves, and gives it
back then (:meth:`Turn.give_back`).

This is no lock, and nothing hangs on it but when somebody begins: who was cut off goes on without knowing that another
has the turn, until its next record is refused for its epoch (:mod:`oracle.views_log`).  So it may be wrong, for as long
as it likes, and costs no more than that.

Why a group and not a look at the other's address alone: what both need is Kafka, and nothing else.  Who asked only each
other over a network that is cut between them would take over from one another for as long as that lasts.
"""

from __future__ import annotations

import logging
import threading
import time

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from journal.clients import discard, make_consumer
from journal.errors import FatalLog, Unavailable
from journal.lasting import QUIET_S, forsaken, lasting_of
from journal.names import TopicNames

log = logging.getLogger(__name__)

REFUSED = (
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.INVALID_SESSION_TIMEOUT,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL,
)
"""What a broker says until somebody changes its mind: who waits is told, and may end."""

SESSION_TIMEOUT_S = 6.0
"""How long who died keeps the turn: the least that a broker accepts by default, as subscribers have it."""

HEARTBEAT_S = 0.5
"""By its heartbeats a member hears that another one joined or left.  Kafka's default of 3 s would be the pause of each
orderly change."""

STILL_S = 30.0
"""How long a member may do nothing at all before Kafka takes it for dead: as long as a process of ours may stand still
before it is ended (``journal/process.py``)."""

POLL_S = 0.2
"""How soon a member leaves that is told to; what Kafka says wakes it."""

AGAIN_S = 1.0
"""Before a member that gave its turn back, or could not be one, joins again: two heartbeats of the others."""

HANGS_S = 15.0
"""A poll that does not return for so long never does, or when a clock that was set back has come round again
(``journal/ending.py``); a look for brokers takes up to four seconds."""


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
        self._back = threading.Event()
        self._closed = threading.Event()
        self._member = False
        self._refusal: FatalLog | None = None
        self._ran_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="turn", daemon=True)
        self._thread.start()

    def comes(self, timeout_s: float) -> bool:
        """Whether it is ours, waiting for it so long.

        Raises ``FatalLog`` where the brokers let nobody be a member, ``Unavailable`` where Kafka's client hangs: who
        waits on would wait for ever."""
        had = self._has.wait(timeout_s)
        if self._refusal is not None:
            raise self._refusal
        if (still_s := time.monotonic() - self._ran_at) > HANGS_S:
            raise Unavailable("nobody can say whose turn it is", detail=f"Kafka's client hangs for {still_s:.0f} s")
        return had

    def is_anothers(self) -> bool:
        """Whether another member has it, as far as the brokers say: they answer, and it is not ours."""
        return self._member and not self._has.is_set()

    def give_back(self) -> None:
        """Let another member have it, and wait again."""
        self._back.set()
        self._has.clear()

    def close(self) -> None:
        """Leave, so that another need not wait; bounded by nothing but Kafka's client."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            again_s = AGAIN_S
            try:
                self._be_member()
            except FatalLog as refusal:
                self._refusal, again_s = refusal, STILL_S
                log.warning("whose turn it is is not told", extra={"group": self._group, "reason": refusal.detail})
            except Exception as error:
                log.warning("whose turn it is may be told late", extra={"group": self._group, "reason": str(error)})
            self._ran_at = time.monotonic()
            self._closed.wait(again_s)

    def _be_member(self) -> None:
        """Until closed, until it is to be given back, or until a client must be made anew."""
        self._back.clear()
        consumer = make_consumer(self._bootstrap, **{
            "group.id": self._group,
            "session.timeout.ms": int(1000 * SESSION_TIMEOUT_S),
            "heartbeat.interval.ms": int(1000 * HEARTBEAT_S),
            "max.poll.interval.ms": int(1000 * STILL_S),
            # Of all ways to share partitions the one by which who has it keeps it.
            "partition.assignment.strategy": "cooperative-sticky",
        })  # fmt: skip
        lost = True
        try:
            consumer.subscribe([self._topic], on_assign=self._given, on_revoke=self._taken, on_lost=self._taken)
            lost = self._listen(consumer)
        finally:
            self._member = False
            self._has.clear()
            if lost:
                discard(consumer, self._group)
            else:
                consumer.close()

    def _listen(self, consumer: Consumer) -> bool:
        """Whether it ends because the client is none any more."""
        doubted, said = time.monotonic(), False
        while not self._closed.is_set() and not self._back.is_set():
            message = consumer.poll(POLL_S)
            self._ran_at = time.monotonic()
            error = None if message is None else message.error()
            if error is not None and error.code() in REFUSED:
                raise FatalLog(f"the brokers let nobody into the group {self._group}", detail=error.str())
            if error is not None and not said:  # once: what is away is told by those that need it
                log.warning("whose turn it is may be told late", extra={"group": self._group, "reason": error.str()})
                said = True
            self._member = bool(consumer.memberid())
            if not self._member and self._ran_at - doubted > QUIET_S:
                if forsaken(consumer, self._topic, self._others):
                    log.warning("a client knows no broker, another goes on", extra={"group": self._group})
                    return True
                doubted = time.monotonic()
        return False

    def _given(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        ours = [TopicPartition(each.topic, each.partition, OFFSET_END) for each in partitions]
        consumer.incremental_assign(ours)
        consumer.pause(ours)
        if ours:
            self._refusal = None
            self._has.set()

    def _taken(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._has.clear()
        try:
            consumer.incremental_unassign(partitions)
        except KafkaException as error:  # it was lost with the session
            log.debug("the turn went with the session", extra={"reason": str(error)})
