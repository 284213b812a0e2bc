"""Settings that every Kafka client of ours has, in one place, with where each number came from.

Measured: with ``linger.ms=0`` and Nagle off on both sides a record is consumed 0.3 ms after it was produced, against
5.8 ms with the defaults; the rest of librdkafka's defaults are left alone unless a comment says why.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from journal.ending import Owned
from journal.errors import FatalLog, Unavailable
from journal.limits import RECORD_BYTES_MAX

T = TypeVar("T")

REACH_TIMEOUT_S = 10.0
"""How long a broker may be away at start: twice the slowest restart of a tuned single node that was measured (4 s)."""

SOCKET_TIMEOUT_MS = 2000
"""How long any answer may take (a fetch: and its wait on top).  A healthy broker answers in milliseconds, a busy host
of two cores was seen to take most of a second; what must be found out sooner is asked (``journal/leaders.py``)."""

UNKNOWN_S = 2.0
"""How long a topic is looked for before it counts as missing: a broker that was just started, or lags behind the one
that said it is made, does not know it yet.  Metadata reaches the others in milliseconds, on a busy machine later."""

PRODUCE_QUEUE_LEN_MAX = 100_000
PRODUCE_QUEUE_KIB_MAX = 64 * 1024
"""Records and KiB that may wait in a producer: three seconds of the fastest pipelined rate measured (34,000/s); at
8 MiB a record the bytes bind first."""

FETCH_QUEUE_KIB_MAX = 32 * 1024
"""KiB that a consumer fetches ahead: four of the largest records."""

FETCH_AGAIN_MS = 10
"""How soon a consumer whose queue was full asks again.  By default it is a second, in which whoever reads fast has read
it all and stands still: 200,000 records of 75 bytes, as a task judges them, took 1.5 s, and 0.95 with this."""

TRY_AGAIN_S = 0.05
MIN_CALL_S = 0.1
"""Between two tries of a metadata request, and the least that one is given."""

ADMIN_TRY_S = 2.0
"""What one request of an admin client's is given before it is made again; as long as any answer may take.

Where such a client first hears of its cluster while the only broker is fenced (a host that stood still for a second),
it learns of no controller, and librdkafka tells its waiting request nothing once there is one: that goes on when its
time is over, and not before (measured beside a broker that was fenced again and again: a tenth of what was described
and created took exactly the 10 or 30 s that it was given).
"""

CONTROLLER_TRY_S = 0.5
"""What the first request of these is given.

It goes to the controller that the client heard of last, which may be a broker that is away by now: the client then
knocks at that one, as fast as it is refused, until the request's time is over, while the others would answer (measured
with one of three brokers killed: nothing for as long as it was away, 30 s and more, at half a processor and 20,000 to
45,000 switches of threads a second, in each process that asked).  A controller that is there answers in milliseconds.
"""

SILENCE = (
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT,
)
_PASSING = (
    *SILENCE,
    KafkaError._WAIT_COORD,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_CONTROLLER,
)

UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)

_log = logging.getLogger("librdkafka")
_log.addHandler(logging.NullHandler())
# librdkafka reports each refused connection; ours report an outage once.  TIDEMARK_LOG=debug shows the raw lines.
_log.propagate = os.environ.get("TIDEMARK_LOG", "").lower() == "debug"


def common_settings(bootstrap: str) -> dict[str, object]:
    """What producers, consumers and admin clients share."""
    return {
        "bootstrap.servers": bootstrap,
        "socket.nagle.disable": True,
        "socket.keepalive.enable": True,
        # A broker that restarts is found again within a quarter of a second instead of ten.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 250,
        "topic.metadata.refresh.fast.interval.ms": 50,
        # A broker that is silent (paused, isolated) is given up for another after this, not after a minute.
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        # And a connection that does not come about is tried anew: by itself TCP would try again after 1, 3, 7, 15 s, so
        # that a host that was cut off for a few seconds stayed away for many more (measured: 26 s after 3.5 s).
        "socket.connection.setup.timeout.ms": SOCKET_TIMEOUT_MS,
        # Producers and admin clients ask brokers to make what they ask about unless told otherwise, and a broker with
        # Kafka's defaults does: with its own settings, before the one who would make it with ours.
        "allow.auto.create.topics": False,
        "logger": _log,
        "error_cb": _quiet,
    }


def producer_settings(bootstrap: str, **override: object) -> dict[str, object]:
    """An idempotent acks=all producer that sends at once."""
    return {
        **common_settings(bootstrap),
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        # How long a leader may wait for its followers before it answers; below the socket's own, so that it can.
        "request.timeout.ms": 530,
        "message.max.bytes": RECORD_BYTES_MAX,
        "queue.buffering.max.messages": PRODUCE_QUEUE_LEN_MAX,
        "queue.buffering.max.kbytes": PRODUCE_QUEUE_KIB_MAX,
        **override,
    }


def consumer_settings(bootstrap: str, **override: object) -> dict[str, object]:
    """A consumer without a group: offsets are given by the caller, and a missing offset is an error, never a jump."""
    return {
        **common_settings(bootstrap),
        "group.id": "tidemark-unused",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",
        "check.crcs": True,
        "fetch.error.backoff.ms": 50,
        "fetch.message.max.bytes": RECORD_BYTES_MAX,
        "queued.max.messages.kbytes": FETCH_QUEUE_KIB_MAX,
        "fetch.queue.backoff.ms": FETCH_AGAIN_MS,
        **override,
    }


def make_producer(bootstrap: str, **override: object) -> Producer:
    """A producer; somebody must poll it.  Dropping it costs nobody time, as with all three (:mod:`journal.ending`)."""
    return cast(Producer, Owned(Producer(producer_settings(bootstrap, **override))))


def make_consumer(bootstrap: str, **override: object) -> Consumer:
    """A consumer; close it."""
    return cast(Consumer, Owned(Consumer(consumer_settings(bootstrap, **override))))


def transactional_producer(settings: dict[str, object], name: str, timeout_ms: int) -> Producer:
    """A producer of transactions called ``name`` to the brokers of ``settings``; each is over after ``timeout_ms``.

    It tells of a record's delivery only where that failed.  What has one key is where Kafka's own producers put it.
    """
    ours = producer_settings("", **{
        **settings, "transactional.id": name, "transaction.timeout.ms": timeout_ms, "linger.ms": 5,
        "message.timeout.ms": 60_000, "delivery.report.only.error": True, "partitioner": "murmur2_random",
    })  # fmt: skip
    return cast(Producer, Owned(Producer(ours)))


def consumer_with(settings: dict[str, object], **override: object) -> Consumer:
    """As :func:`make_consumer`, of the brokers of ``settings``."""
    return cast(Consumer, Owned(Consumer(consumer_settings("", **{**settings, **override}))))


def discard(client: Consumer, name: str) -> None:
    """Close a consumer that another has taken the place of; returns at once.

    Closing has no bound: it joins threads of librdkafka's that wait by the wall clock.  Where that was set back by an
    hour meanwhile, whoever closes in line stands still for an hour, with the locks that it holds.  What is discarded
    was asking a leader that does not answer, which is looked after every half second at most; its thread ends with it.
    """
    threading.Thread(target=client.close, name=f"discard-{name}", daemon=True).start()


def make_admin(bootstrap: str) -> AdminClient:
    """An admin client (needs no closing)."""
    return admin_with(common_settings(bootstrap))


def admin_with(settings: dict[str, object]) -> AdminClient:
    """One with ``settings``.  Raises what librdkafka says of them."""
    return cast(AdminClient, Owned(AdminClient(settings)))


def ask_admin(
    bootstrap: str, admin: AdminClient, topic: str, call: Callable[[float], object], timeout_s: float | None = None
) -> object:
    """:func:`ask_controller` by ``admin``, which hears beside who the controller is of ``topic``, which need not be
    there: of all topics, there may be many."""
    return ask_controller(bootstrap, lambda left_s: admin.list_topics(topic, timeout=left_s), call, timeout_s)


def ask_controller(
    bootstrap: str,
    meet: Callable[[float], object],
    call: Callable[[float], object],
    timeout_s: float | None = None,
) -> object:
    """:func:`reach` for what is asked of the controller: each try is short (``CONTROLLER_TRY_S``, ``ADMIN_TRY_S``).

    Before a further one ``meet`` has the client hear from any broker who that is now.
    """
    first = True

    def one_try(left_s: float) -> object:
        nonlocal first
        if first:
            first = False
            return call(min(left_s, CONTROLLER_TRY_S))
        began = time.monotonic()
        meet(left_s)
        return call(min(max(MIN_CALL_S, left_s - (time.monotonic() - began)), ADMIN_TRY_S))

    return reach(bootstrap, one_try, timeout_s)


def reach(bootstrap: str, call: Callable[[float], object], timeout_s: float | None = None) -> object:
    """``call(timeout_s)``, a metadata request, tried again while its failure is a passing one.

    A broker that does not answer within ``timeout_s`` (``REACH_TIMEOUT_S`` unless given) becomes one clear
    ``Unavailable``, and so does an answer that says no.  A topic that the broker does not know is asked for during
    ``UNKNOWN_S``.  ``call`` must make a new request each time: one that was answered stays answered.
    """
    timeout_s = REACH_TIMEOUT_S if timeout_s is None else timeout_s
    deadline = time.monotonic() + timeout_s
    unknown_until = time.monotonic() + min(UNKNOWN_S, timeout_s)
    while True:
        try:
            left_s = deadline - time.monotonic()
            return call(max(MIN_CALL_S, left_s))
        except KafkaException as error:
            failure = error.args[0]
            # A topic made a moment ago may have no leader yet, as this client's metadata has it.
            until = deadline if failure.code() in _PASSING else unknown_until if failure.code() in UNKNOWN else 0.0
            if time.monotonic() + TRY_AGAIN_S > until:
                raise unreachable(bootstrap, timeout_s, failure) from None
        time.sleep(TRY_AGAIN_S)


def delete_below(bootstrap: str, upto: TopicPartition, timeout_s: float) -> None:
    """Give the records of a partition below the offset of ``upto`` up for good.

    Raises ``Unavailable`` where the broker does not say that it did within ``timeout_s``: it may have.
    """
    admin = make_admin(bootstrap)  # kept in a name: its answers never come once it is collected

    def ask(left_s: float) -> object:
        [answer] = admin.delete_records([upto], request_timeout=left_s).values()
        return answer.result()

    reach(bootstrap, ask, timeout_s)


def known(bootstrap: str, topic: str, look: Callable[[], T | None]) -> T:
    """What ``look`` finds of ``topic``, asked again while it is ``None``.  Raises ``FatalLog`` after ``UNKNOWN_S``."""
    deadline = time.monotonic() + UNKNOWN_S
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise FatalLog(f"topic {topic} does not exist at {bootstrap}", hint="create the environment first")
        time.sleep(TRY_AGAIN_S)
    return found


def unreachable(bootstrap: str, timeout_s: float, error: KafkaError) -> Unavailable:
    """The one line for a broker that is away, or answers that it cannot now."""
    if error.code() not in SILENCE:
        return Unavailable(f"kafka at {bootstrap} could not answer: {error.str()}", sqlstate="08001")
    return Unavailable(
        f"cannot reach kafka at {bootstrap}: no answer within {timeout_s:g} s",
        sqlstate="08001",
        detail=error.str(),
        hint="is the broker running, and is the address right?",
    )


def _quiet(error: KafkaError) -> None:
    _log.debug("%s", error.str())
