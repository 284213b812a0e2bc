"""Whether the topics that we write are as ours must be (``journal/topics.py``), asked once a process for each.

A topic that exists was not always made by us: a broker with Kafka's defaults makes one for whoever only asks for it,
with seven days' retention, and a person may have changed it.  What is acknowledged on such a topic goes one day.  A
journal like that stops its process; a collection like that is told to whoever writes it, and nobody else is held up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, ResourceType

from journal import clients
from journal.errors import Rejected
from journal.lasting import Lasting
from journal.names import TopicNames
from journal.topics import data_spec, differences

log = logging.getLogger(__name__)

ASK_TIMEOUT_S = clients.ADMIN_TRY_S
"""For the answers; where none comes the topic is asked for again by whoever writes next."""


class TopicChecks:
    """Of one environment; from any thread.  At most one answer is kept for each topic that is written."""

    def __init__(self, bootstrap: str, names: TopicNames) -> None:
        self._names = names
        self._admin = Lasting(bootstrap)
        self._lock = threading.Lock()
        self._hearing = threading.Lock()
        self._good: set[str] = set()
        self._asked: dict[str, Future[Rejected | None]] = {}

    def good(self, topic: str) -> bool:
        """Whether ``topic`` was found to be as it must be."""
        return topic in self._good

    def check(self, topic: str) -> Future[Rejected | None]:
        """What is wrong with ``topic``; ``None`` where nothing is, or nobody could tell now.  Never fails."""
        with self._lock:
            if topic in self._asked:
                return self._asked[topic]
            told = self._asked[topic] = Future()
        admin = self._admin.client
        described = admin.describe_topics(
            TopicCollection([topic, self._names.catalog]), request_timeout=ASK_TIMEOUT_S
        )
        [config] = admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=ASK_TIMEOUT_S
        ).values()
        answers = [described[topic], described[self._names.catalog], config]
        _when_all(answers, lambda: self._judge(topic, answers, told, admin))
        return told

    def _judge(self, topic: str, answers: list[Future], told: Future[Rejected | None], admin: Any) -> None:
        """``admin`` is who was asked: its answers come for as long as somebody holds it."""
        wrong: Rejected | None = None
        try:
            partitions = answers[0].result().partitions
            replicas = min((len(each.replicas) for each in partitions), default=0)
            actual = {key: entry.value for key, entry in answers[2].result().items()}
            found = differences(data_spec(topic, replicas, len(partitions)), len(partitions), actual)
            wanted = _replicas_of(answers[1])
            if replicas < wanted:
                found.append(f"it has {replicas} replicas, expected {wanted}")
            if found:
                wrong = Rejected(
                    f"topic {topic} is configured wrongly: {'; '.join(found)}",
                    sqlstate="55000",
                    detail="rows that were acknowledged could be lost on it",
                    hint="correct it with kafka-configs and try again; rows may be lost already",
                )
            else:
                self._good.add(topic)
        except KafkaException:
            # Nobody could tell; whoever writes next asks again, and no controller that is away (CONTROLLER_TRY_S).
            self._hear_of_controller(topic, admin)
        finally:
            with self._lock:
                del self._asked[topic]
            told.set_result(wrong)

    def _hear_of_controller(self, topic: str, admin: Any) -> None:
        """Have ``admin`` hear who that is now, on a thread of its own: this one is Kafka's, and others wait for it."""
        if not self._hearing.acquire(blocking=False):
            return

        def hear() -> None:
            try:
                admin.list_topics(topic, timeout=clients.ADMIN_TRY_S)
            except KafkaException:
                self._admin.anew(admin)
                log.debug("no broker says who the controller is", extra={"topic": topic})
            finally:
                self._hearing.release()

        threading.Thread(target=hear, name="topic-checks", daemon=True).start()


def _replicas_of(answer: Future) -> int:
    """How many replicas the environment's topics have: as many as its catalog."""
    return 0 if answer.exception() is not None else len(answer.result().partitions[0].replicas)


def _when_all(answers: list[Future], then: Callable[[], None]) -> None:
    lock, left = threading.Lock(), [len(answers)]

    def one(_done: Future) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            then()

    for answer in answers:
        answer.add_done_callback(one)
