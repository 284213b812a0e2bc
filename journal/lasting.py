"""A client that only asks, for as long as its process lives: made anew where nobody answers it.

Why: librdkafka (2.10 up to 2.16, its issue 5301) forgets the brokers that an answer about topics does not name, and
begins at its bootstrap servers again once all that it knows are gone.  Where all brokers are fenced an answer names
none (a lone one that is being stopped in good order says so of itself), and of the client's two threads that look
whether all are gone each may leave it to the other: then it knows no broker, asks nobody, and says nothing, for ever.
Measured: of 40 consumers, in eight restarts of their broker, two (a long test does that).

Who reads finds out by itself (:mod:`journal.kafka_reader`, :func:`forsaken`), and who writes for want of an answer
(:mod:`journal.kafka_producer`, :mod:`collection.writer`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection

from journal import clients
from journal.errors import Unavailable

TRY_S = 2.0
"""What a client is given for one answer before another takes its place: as long as any answer may take."""

QUIET_S = 2.0
"""For how long a client may have nothing before it is asked whether it hears of any broker: a question costs one of
them a tenth of a millisecond, and what waits for a consumer that knows none waits that long."""

FORSAKEN_S = 1.0
"""For an answer about one topic, which takes a millisecond, and on a busy machine most of a second."""


class Lasting:
    """What ``make`` gives, or an admin client: it is asked for metadata alone.  Any thread."""

    def __init__(self, bootstrap: str, make: Callable[[str], Any] | None = None) -> None:
        self._bootstrap = bootstrap
        self._make = make or clients.make_admin
        self._lock = threading.Lock()
        self._client = self._make(bootstrap)

    @property
    def client(self) -> Any:
        """The present one.  Who waits for its answer holds it: they never come once nobody does."""
        return self._client

    def ask(self, call: Callable[[Any, float], Any], timeout_s: float | None = None) -> Any:
        """:func:`journal.clients.reach` with ``call(client, timeout_s)``, each time by whom is left to be asked."""
        return clients.reach(self._bootstrap, lambda left_s: self._try(call, min(left_s, TRY_S)), timeout_s)

    def ask_controller(self, topic: str, call: Callable[[Any, float], Any], timeout_s: float | None = None) -> Any:
        """:func:`journal.clients.ask_controller`; ``topic`` is what is asked for beside who that is."""

        def meet(left_s: float) -> Any:
            return self._try(lambda client, given_s: client.list_topics(topic, timeout=given_s), min(left_s, TRY_S))

        return clients.ask_controller(self._bootstrap, meet, lambda left_s: call(self._client, left_s), timeout_s)

    def meet_controller(self, topic: str) -> Any:
        """The present client, which knows a controller (1 ms), for a request that must be given long: see
        ``ADMIN_TRY_S``.  ``topic`` is one that is there.  Raises ``Unavailable``."""

        def ask(client: Any, timeout_s: float) -> Any:
            client.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)[topic].result()
            return client

        return self.ask_controller(topic, ask)

    def anew(self, client: Any) -> None:
        """Another one in the place of ``client``, unless that was done already."""
        with self._lock:
            if self._client is client:
                self._client = self._make(self._bootstrap)

    def _try(self, call: Callable[[Any, float], Any], timeout_s: float) -> Any:
        client = self._client
        try:
            return call(client, timeout_s)
        except KafkaException as error:
            if error.args[0].code() in clients.SILENCE:
                self.anew(client)
            raise


@functools.cache  # a process knows one cluster, tests a few
def lasting_of(bootstrap: str) -> Lasting:
    """This process's admin client of the cluster at ``bootstrap``, for all that has none of its own."""
    return Lasting(bootstrap)


def forsaken(client: Consumer | Producer, topic: str, others: Lasting) -> bool:
    """Whether ``client`` hears of no broker any more while ``others`` do; it takes up to ``FORSAKEN_S`` twice.

    To be asked of one that had nothing for ``QUIET_S``.  Where nobody answers at all the brokers are away, which it
    overcomes by itself.
    """
    try:
        client.list_topics(topic, timeout=FORSAKEN_S)
        return False
    except KafkaException as error:
        if error.args[0].code() not in clients.SILENCE:
            return False
    try:
        others.ask(lambda other, left_s: other.list_topics(topic, timeout=left_s), FORSAKEN_S)
    except Unavailable:
        return False
    return True
