"""What a session sees of its socket, and the answers that it collects before they are handed to it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from adapter.session.replies import notice_message
from adapter.state.interfaces import Notice
from adapter.wire.machine import Machine

FLUSH_BYTES = 64 * 1024
"""Answers are handed to the socket at least this often; the socket's own limits then slow the session down."""


class Ended(Exception):
    """The session is over; what there was to say has been said."""


class Connection(Protocol):
    """What a session needs of its socket."""

    machine: Machine
    closed: bool

    @property
    def behind(self) -> bool:
        """Whether the socket takes nothing more for now, and :meth:`drain` would wait."""
        ...

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Returns once the socket takes more; at once if it does, or if the connection is closed."""
        ...

    async def received(self, timeout_s: float | None = None) -> bool:
        """Returns once more bytes came or the connection closed; ``False``: neither happened in time."""
        ...


class Outbox:
    """Answers in order.  Holds ``FLUSH_BYTES`` and one message at most, if its user calls :meth:`flush_if_large`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parts: list[bytes | memoryview] = []
        self._bytes = 0

    def send(self, data: bytes | memoryview) -> None:
        self._parts.append(data)
        self._bytes += len(data)

    def notice(self, notice: Notice, least: str) -> None:
        """``least``: the session's client_min_messages."""
        self.send(notice_message(notice, least))

    @property
    def large(self) -> bool:
        return self._bytes >= FLUSH_BYTES

    def flush(self) -> None:
        """Hand everything to the socket."""
        if self._parts and not self._connection.closed:
            self._connection.write(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))
        self._parts.clear()
        self._bytes = 0

    async def flush_if_large(self) -> None:
        """Send, and let others run: a socket that takes everything (or is dead) would otherwise never make us wait,
        and then nobody else is served, nor is it noticed that the client is gone."""
        if self.large:
            self.flush()
            await asyncio.sleep(0)
            await self._connection.drain()
