"""A plain Kafka producer that replays flights at a given speed and remembers when it sent each."""

from __future__ import annotations

import threading
import time

import numpy as np
from confluent_kafka import Consumer as _Consumer
from confluent_kafka import KafkaException, Producer

from demo.flights import value_at
from demo.topics import end_offset
from journal.errors import Indeterminate

SLICE_S = 0.01
"""Rows are sent in slices of 10 ms: fine enough not to add to freshness, coarse enough not to cost a core."""
UNACKED_MAX = 50_000
"""About 20 MB of rows on their way: seconds at the speeds of a laptop, so it only fills when Kafka is away."""
DELIVERY_TIMEOUT_MS = 120_000
"""A broker that is killed and started again is back in seconds; after two minutes the demo has failed."""


def rows_in(bootstrap: str, topic: str) -> int:
    """How many rows the topic holds."""
    consumer = _Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 2})
    try:
        return end_offset(consumer, topic)
    finally:
        consumer.close()


class Replay:
    """Sends the rows ``[start, start + count)`` of the endless sequence from a thread of its own.

    Idempotence keeps their order through retries, so a row's offset is its place in the sequence.
    """

    def __init__(self, bootstrap: str, topic: str, start: int, count: int, rows_per_s: float | None) -> None:
        self.start_at, self.count = start, count
        self._topic, self._rows_per_s = topic, rows_per_s
        self._sent_at = np.zeros(count, dtype=np.float64)
        self.sent = 0
        self.acked = 0
        self.began_s = 0.0
        self.failure: Exception | None = None
        self.finished = threading.Event()
        self._stopping = threading.Event()
        self._room = threading.Condition()
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5,
            "compression.type": "lz4", "delivery.timeout.ms": DELIVERY_TIMEOUT_MS, "log_level": 2,
            "queue.buffering.max.messages": UNACKED_MAX, "error_cb": self._on_error,
        })  # fmt: skip
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=10)

    def sent_at(self, below: int) -> np.ndarray:
        """When (``time.monotonic``) each of the rows ``[start_at, start_at + below)`` was sent; only ever grows."""
        return self._sent_at[: min(below, self.sent)]

    def _on_error(self, error) -> None:
        if error.fatal():
            self.failure = KafkaException(error)

    def _on_delivery(self, error, message) -> None:
        if error is not None:
            self.failure = self.failure or Indeterminate(f"a flight could not be delivered: {error.str()}")
            return
        expected = self.start_at + self.acked
        if message.offset() != expected and message.offset() >= 0:
            self.failure = self.failure or Indeterminate(
                f"a flight was written at offset {message.offset()}, expected {expected}",
                hint="something else writes to the flights topic; start over with --fresh",
            )
        self.acked += 1

    def _run(self) -> None:
        try:
            self.began_s = time.monotonic()
            while self.sent < self.count and not self._stopping.is_set() and self.failure is None:
                self._send_slice()
            while self.acked < self.sent and not self._stopping.is_set() and self.failure is None:
                self._producer.poll(0.1)
        except Exception as error:  # handed to the demo, which ends with it
            self.failure = error
        finally:
            if self.failure or self._stopping.is_set():
                self._producer.purge()
            self.finished.set()

    def _send_slice(self) -> None:
        now = time.monotonic()
        due = self.count if self._rows_per_s is None else int((now - self.began_s + SLICE_S) * self._rows_per_s)
        upto = min(self.count, due, self.sent + 1000)
        while self.sent < upto:
            try:
                self._producer.produce(self._topic, value_at(self.start_at + self.sent), on_delivery=self._on_delivery)
            except BufferError:
                self._producer.poll(0.1)
                return
            self._sent_at[self.sent] = now
            self.sent += 1
        self._producer.poll(0)
        if self.sent >= due:
            self._stopping.wait(SLICE_S)
