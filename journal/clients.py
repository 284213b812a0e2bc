"""Settings that every Kafka client of ours has, in one place, with where each number came from.

Measured: with ``linger.ms=0`` and Nagle off on both sides a record is consumed 0.3 ms after it was produced, against
5.8 ms with the defaults; the rest of librdkafka's defaults are left alone unless a comment says why.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from journal.errors import Unavailable

REACH_TIMEOUT_S = 10.0
"""How long a broker may be away at start: twice the slowest restart of a tuned single node that was measured (4 s)."""

RECORD_BYTES_MAX = 8 * 1024 * 1024
"""``max.message.bytes`` of our topics; a client must allow at least as much."""

PRODUCE_QUEUE_LEN_MAX = 100_000
PRODUCE_QUEUE_KIB_MAX = 64 * 1024
"""Records and KiB that may wait in a producer: three seconds of the fastest pipelined rate measured (34,000/s); at
8 MiB a record the bytes bind first."""

FETCH_QUEUE_KIB_MAX = 32 * 1024
"""KiB that a consumer fetches ahead: four of the largest records."""

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
        "allow.auto.create.topics": False,
        "isolation.level": "read_uncommitted",
        "check.crcs": True,
        "fetch.error.backoff.ms": 50,
        "fetch.message.max.bytes": RECORD_BYTES_MAX,
        "queued.max.messages.kbytes": FETCH_QUEUE_KIB_MAX,
        **override,
    }


def make_producer(bootstrap: str, **override: object) -> Producer:
    """A producer; somebody must poll it."""
    return Producer(producer_settings(bootstrap, **override))


def make_consumer(bootstrap: str, **override: object) -> Consumer:
    """A consumer; close it."""
    return Consumer(consumer_settings(bootstrap, **override))


def make_admin(bootstrap: str) -> AdminClient:
    """An admin client (needs no closing)."""
    return AdminClient(common_settings(bootstrap))


def reach(bootstrap: str, call: Callable[[float], object], timeout_s: float = REACH_TIMEOUT_S) -> object:
    """``call(timeout_s)``, a metadata request; a broker that does not answer becomes one clear ``Unavailable``."""
    try:
        return call(timeout_s)
    except KafkaException as error:
        raise unreachable(bootstrap, timeout_s, error.args[0]) from None


def unreachable(bootstrap: str, timeout_s: float, error: KafkaError) -> Unavailable:
    """The one line for a broker that is away."""
    return Unavailable(
        f"cannot reach kafka at {bootstrap}: no answer within {timeout_s:g} s",
        sqlstate="08001",
        detail=error.str(),
        hint="is the broker running, and is the address right?",
    )


def _quiet(error: KafkaError) -> None:
    _log.debug("%s", error.str())
