"""What a journal's transport promises, so that memory, unreliable and Kafka ones are interchangeable.

Promises: appended values come back to every reader in one order, at increasing offsets, byte for byte; an append
whose future gives an offset is durable.  It does *not* promise that an append whose future failed with
:class:`~journal.errors.Indeterminate` did not happen, nor that it will not happen later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """One record of a journal as read back."""

    offset: int
    value: bytes


class Subscription(Protocol):
    """A running reader.  ``close`` stops it and returns when no further call will be made."""

    def close(self) -> None: ...


class Transport(Protocol):
    """One topic with one partition.  All methods may be called from any thread."""

    def append(self, value: bytes) -> Future[int]:
        """Append ``value``; the future gives its offset once it is durable (acks=all).

        Fails with ``Rejected`` (too large, local queue full: it did not and will not happen) or ``Indeterminate``
        (no answer in time: it may have happened and may still happen).  Completes no other future before it returns.
        """
        ...

    def subscribe(
        self,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
    ) -> Subscription:
        """Call ``on_entries`` with batches in offset order, from one thread of the transport's own, for ever.

        ``on_error`` is called once, instead of any further batch, where reading cannot go on (the start offset was
        cut away, the topic was deleted).  A broker that is away is not such an error: the reader waits for it.
        """
        ...

    def bounds(self) -> tuple[int, int]:
        """``[start, end)`` of the offsets retained now.  Advisory: never a linearizable read (DESIGN I4)."""
        ...

    def cut(self, below_offset: int) -> None:
        """Delete every record below ``below_offset`` (after a verified checkpoint, never before)."""
        ...

    def renew(self) -> None:
        """Give up the present producer and open a fresh one bootstrapped from all brokers (watchdog, FACTS)."""
        ...

    def close(self) -> None: ...
