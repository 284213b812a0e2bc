"""A port of this machine that leads to another one, with a delay on the way there and on the way back.

Promises: bytes arrive as they were sent, in their order, each half of ``round_trip_s`` later than without it; nothing
is lost, and nothing is looked at.  So a Kafka broker behind it must tell its clients this port, or they would go round.
It does not promise to be fast: one thread of this process carries everything.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from embedded.ports import HOST

HELD_BYTES_MAX = 16 * 1024 * 1024
"""On their way in one direction of one connection: two of the largest records; beyond it the sender is not read."""

STOP_S = 5.0


class DelayedPath:
    """Connections to ``port`` go to ``to_port``, both of the loopback address.  Use as a context."""

    def __init__(self, port: int, to_port: int, round_trip_s: float = 0.0) -> None:
        self.port = port
        self.to_port = to_port
        self.round_trip_s = round_trip_s
        """May be set at any time, from any thread: for what is read from then on."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"delay-{port}", daemon=True)
        self._ends: set[_End] = set()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> DelayedPath:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_raised: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(lambda: _End(self, accepted=True), HOST, self.port)

    async def _end(self) -> None:
        self._server.close()
        for end in list(self._ends):
            end.abort()

    async def connect(self, accepted: _End) -> None:
        """Lead ``accepted`` on."""
        try:
            _, end = await self._loop.create_connection(lambda: _End(self), HOST, self.to_port)
        except OSError:  # the broker is not there: neither is what leads to it
            accepted.abort()
            return
        end.meet(accepted)
        accepted.meet(end)

    def hold(self, end: _End) -> None:
        self._ends.add(end)

    def let_go(self, end: _End) -> None:
        self._ends.discard(end)

    def later(self, call: object) -> None:
        """``call`` when half a round trip is over."""
        self._loop.call_later(self.round_trip_s / 2, call)

    def soon(self, coroutine: object) -> None:
        self._loop.create_task(coroutine)


class _End(asyncio.Protocol):
    """One end of a connection.  What it reads, the other writes."""

    def __init__(self, path: DelayedPath, accepted: bool = False) -> None:
        self._path = path
        self._accepted = accepted
        self._other: _End | None = None
        self._under_way: deque[bytes | None] = deque()
        """What was read here and is not written there; ``None``: there is no more."""
        self._held = 0
        self._full = False
        """Whether the other's transport takes no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._path.hold(self)
        if self._accepted:
            transport.pause_reading()
            self._path.soon(self._path.connect(self))

    def meet(self, other: _End) -> None:
        self._other = other
        if self._transport.is_closing():  # given up meanwhile
            other.abort()
        elif self._accepted:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._held += len(data)
        self._send(data)
        self._pace()

    def connection_lost(self, _error: Exception | None) -> None:
        self._path.let_go(self)
        self._send(None)

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other._full = True
            self._other._pace()

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other._full = False
            self._other._pace()

    def abort(self) -> None:
        self._transport.abort()

    def _send(self, data: bytes | None) -> None:
        # Timers of one instant may come in any order; what each takes is the oldest, so the bytes do not.
        self._under_way.append(data)
        self._path.later(self._arrive)

    def _arrive(self) -> None:
        data, other = self._under_way.popleft(), self._other
        if other is None:
            return
        if data is None:
            other._transport.close()
            return
        self._held -= len(data)
        if not other._transport.is_closing():
            other._transport.write(data)
        self._pace()

    def _pace(self) -> None:
        if self._transport.is_closing():
            return
        if self._full or self._held > HELD_BYTES_MAX:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
