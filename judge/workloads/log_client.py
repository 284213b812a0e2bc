"""The catalog's log and the oracle without any adapter between: what a process of Tidemark's own holds of them.

Promises: :meth:`Logs.image_in_force` is a linearizable read (a barrier, then the image at exactly the upper that the
barrier found in force; a newer one, admitted and not yet applied, may be unknown to the next reader).  Every wait ends
within ``OP_TIMEOUT_S``.

Threads of one process share a :class:`Logs` for each environment, as sessions of an adapter do: their barriers share
records, and their proposals race.  One that failed for good is opened anew by whoever asks next.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from catalog_log.image import Image
from catalog_log.log import CatalogLog
from journal.clients import make_admin, reach
from journal.names import TopicNames
from judge.workloads.api import OP_TIMEOUT_S, World
from judge.workloads.outcome import outcome
from oracle.client import Oracle

T = TypeVar("T")

BROKERS_FOR_THREE_COPIES = 3


class Patience:
    """What is left of one operation's ``OP_TIMEOUT_S``."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + OP_TIMEOUT_S

    @property
    def left_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def result(self, future: Future[T]) -> T:
        """Raises what the future raises, or ``TimeoutError``: later than the product's own deadline, so a bug of it."""
        return future.result(self.left_s)


class Logs:
    """A catalog log and an oracle on one environment.  Any thread."""

    def __init__(self, kafka: str, env: str, writer: str) -> None:
        names = TopicNames(env)
        self.catalog = CatalogLog.open(kafka, names, writer, timeout_s=OP_TIMEOUT_S)
        try:
            self.oracle = Oracle.open(kafka, names, writer, self.catalog.upper)
        except BaseException:
            self.catalog.close()
            raise

    @property
    def failed(self) -> bool:
        return self.catalog.failed is not None or self.oracle.failed is not None

    def image_in_force(self, patience: Patience) -> Image:
        """The catalog as it is in force for everybody: everything acknowledged before this call is in it."""
        upper = patience.result(self.oracle.barrier()).catalog_upper
        image = self.catalog.image
        if image.upper < upper:
            image = patience.result(self.catalog.when_upper(upper, patience.left_s))
        return image if image.upper == upper else self.catalog.snapshot_at(upper - 1)

    def close(self) -> None:
        self.oracle.close()
        self.catalog.close()


class Shared:
    """This process's :class:`Logs` by environment, opened at the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[tuple[str, str], Future[Logs]] = {}

    def get(self, kafka: str, env: str) -> Logs:
        """Raises ``Failed`` where they cannot be opened: nothing was attempted then.

        Whoever asks while they are being opened shares the outcome; asked in turn, each would wait for a timeout.
        """
        with self._lock:
            opened = self._opened.get((kafka, env))
            mine = opened is None or (opened.done() and opened.result().failed)
            if mine:
                before, opened = opened, Future()
                self._opened[kafka, env] = opened
        if mine:
            try:
                if before is not None:
                    before.result().close()
                opened.set_result(Logs(kafka, env, f"judge-{os.getpid()}"))
            except BaseException as error:
                with self._lock:
                    del self._opened[kafka, env]
                opened.set_exception(error)
        try:
            return opened.result(2 * OP_TIMEOUT_S)
        except Exception as error:
            raise outcome(error, write=False) from error

    def close(self) -> None:
        with self._lock:
            opened, self._opened = list(self._opened.values()), {}
        for each in opened:
            if each.done():
                each.result().close()


LOGS = Shared()
"""Of this process.  Clients do not close it: others use it.  A worker process closes it when it ends."""


class LogClient:
    """The common part of clients that speak to :class:`Logs`."""

    node = "log"

    def __init__(self, kafka: str, env: str) -> None:
        self._kafka = kafka
        self._env = env
        _ = self.logs  # what cannot be opened fails here, where nothing was begun yet

    @property
    def logs(self) -> Logs:
        return LOGS.get(self._kafka, self._env)

    def close(self) -> None:
        """Nothing: the logs are the process's."""


def replication_factor(kafka: str) -> int:
    """3 where there are three brokers, else 1: what the environment's own topics have."""
    admin = make_admin(kafka)
    brokers = reach(kafka, lambda timeout_s: admin.list_topics(timeout=timeout_s)).brokers
    return 3 if len(brokers) >= BROKERS_FOR_THREE_COPIES else 1


def create_topic(world: World, topic: str, partitions: int) -> None:
    """A topic that a workload writes or reads itself, kept as safely as the environment's own.  Safe to call again."""
    copies = replication_factor(world.kafka)
    config = {"min.insync.replicas": "2"} if copies > 1 else {}
    admin = make_admin(world.kafka)
    made = admin.create_topics([NewTopic(topic, partitions, copies, config=config)])
    try:
        made[topic].result(timeout=OP_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
