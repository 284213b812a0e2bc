"""Read a stretch of a journal that is already there, to its end, in the caller's thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence

from journal.api import Entry, Transport
from journal.errors import Unavailable

READ_TIMEOUT_S = 60.0
"""How long the next batch may take: as long as a broker that is restarted needs, several times over."""

AHEAD_MAX = 8
"""Batches read ahead of the caller."""


def read_range(
    transport: Transport, lower: int, upper: int, timeout_s: float = READ_TIMEOUT_S
) -> Iterator[Sequence[Entry]]:
    """The entries in ``[lower, upper)`` in batches.

    Raises ``FatalLog`` where ``lower`` was cut away, ``Unavailable`` if nothing comes for ``timeout_s``.
    """
    if lower >= upper:
        return
    batches: queue.Queue[Sequence[Entry] | Exception] = queue.Queue(AHEAD_MAX)
    ended = threading.Event()

    def offer(found: Sequence[Entry] | Exception) -> None:
        while not ended.is_set():
            try:
                batches.put(found, timeout=0.1)
                return
            except queue.Full:
                continue  # the caller is slower: hold the reader until it takes or leaves

    subscription = transport.subscribe(lower, offer, offer)
    deadline = time.monotonic() + timeout_s
    try:
        while lower < upper:
            try:
                batch = batches.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Unavailable(f"nothing came from the journal at offset {lower} within {timeout_s:g} s") from None
            if isinstance(batch, Exception):
                raise batch
            lower, deadline = batch[-1].offset + 1, time.monotonic() + timeout_s
            yield batch if lower <= upper else [e for e in batch if e.offset < upper]
    finally:
        ended.set()
        subscription.close()
