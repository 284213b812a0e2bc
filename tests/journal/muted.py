"""A consumer that loses its brokers while it is used, as librdkafka's may (:mod:`journal.lasting`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException


class Muted:
    """``client`` until :meth:`mute`; from then on nothing comes from it, and nothing that it is asked is sent."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._muted = threading.Event()

    def mute(self) -> None:
        self._muted.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def poll(self, timeout_s: float) -> Any:
        if self._muted.is_set():
            time.sleep(timeout_s)
            return None
        found = self._client.poll(timeout_s)
        return None if self._muted.is_set() else found

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        if self._muted.is_set():
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))
        return self._client.list_topics(topic, timeout=timeout)


class Makes:
    """Makes clients as ``make`` does, and knows them."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self.made: list[Muted] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Muted:
        self.made.append(Muted(self._make(*args, **kwargs)))
        return self.made[-1]
