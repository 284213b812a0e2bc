"""Orders for the views' figures: an endless sequence, so that how many are visible says which, and what is right."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np
from confluent_kafka import Producer

from journal.errors import Indeterminate

COLUMNS = "id int8 NOT NULL, customer int4 NOT NULL, amount int4, note text"

BLOCK = 1000
"""Rows handed to the producer between two looks at the clock, where they go as fast as they can."""

UNSENT_MAX = 100_000
"""Rows queued in the producer: about 7 MB."""

FLUSH_S = 60.0


def value_at(i: int, customers: int) -> bytes:
    """The JSON of order ``i``, about 70 bytes."""
    return b'{"id": %d, "customer": %d, "amount": %d, "note": "order %d"}' % (i, *_fields(i, customers), i)


def _fields(i: int, customers: int) -> tuple[int, int]:
    """Customer and amount: two small primes scatter them."""
    return i * 7919 % customers, i * 104_729 % 10_007


def expected(count: int, customers: int) -> dict[int, tuple[int, int]]:
    """Number and sum of the first ``count`` orders, by customer."""
    ids = np.arange(count)
    customer, amount = _fields(ids, customers)
    numbers = np.bincount(customer, minlength=customers)
    sums = np.bincount(customer, weights=amount, minlength=customers)  # far below 2**53: exact
    return {k: (int(numbers[k]), int(sums[k])) for k in range(customers) if numbers[k]}


class Sender:
    """Sends ``values`` to ``topic`` from a thread of its own: ``rows_per_s`` evenly, or as fast as it goes.

    Leave it as a context when everything was sent: it raises where a row was not delivered.
    """

    def __init__(self, bootstrap: str, topic: str, values: Sequence[bytes], rows_per_s: float | None) -> None:
        self._topic, self._values, self._rows_per_s = topic, values, rows_per_s
        self.sent_at = np.full(len(values), np.nan)
        """When (``time.monotonic``) each row was handed to the producer."""
        self.began_s = 0.0
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "compression.type": "lz4",
            "linger.ms": 0 if rows_per_s else 20, "queue.buffering.max.messages": UNSENT_MAX, "log_level": 2,
        })  # fmt: skip
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def __enter__(self) -> Sender:
        self.began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None:
            self._stopping.set()
        self._thread.join()
        if self._failure is not None and kind is None:
            raise self._failure

    def _run(self) -> None:
        try:
            if self._rows_per_s is None:
                self._send_all()
            else:
                self._send_evenly(self._rows_per_s)
            left = self._producer.flush(FLUSH_S)
            if left:
                raise Indeterminate(f"{left} rows were not delivered within {FLUSH_S:g} s")
        except Exception as error:  # raised where the block is left
            self._failure = error

    def _send_evenly(self, rows_per_s: float) -> None:
        for i, value in enumerate(self._values):
            due = self.began_s + i / rows_per_s
            if self._stopping.wait(max(0.0, due - time.monotonic())):
                return
            self.sent_at[i] = time.monotonic()
            self._producer.produce(self._topic, value)
            self._producer.poll(0)

    def _send_all(self) -> None:
        for start in range(0, len(self._values), BLOCK):
            if self._stopping.is_set():
                return
            block = self._values[start : start + BLOCK]
            self.sent_at[start : start + BLOCK] = time.monotonic()
            for value in block:
                while True:
                    try:
                        self._producer.produce(self._topic, value)
                        break
                    except BufferError:
                        self._producer.poll(0.01)
