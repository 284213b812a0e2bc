"""The listening socket, its connections, and their limits: the only place that knows asyncio's transports.

Limits, all of them bounds on what a client can make this process hold: connections (53300 beyond), bytes of a message,
bytes read ahead of a running statement, bytes written ahead of a slow reader, seconds until authenticated.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
from dataclasses import dataclass

from adapter.server import startup
from adapter.server.authentication import Scram
from adapter.session.interruption import Interrupt
from adapter.session.session import Session
from adapter.state.interfaces import Executor
from adapter.state.session_state import SessionState
from adapter.wire import messages as m
from adapter.wire.machine import MESSAGE_BYTES_MAX, Machine
from journal.errors import InvalidUsage, Rejected, Unavailable

log = logging.getLogger(__name__)


SAY_S = 0.5
"""What a session needs to say its last words: nothing is awaited for them, so this only serves a busy machine."""


@dataclass(frozen=True)
class Limits:
    connections_max: int = 5000
    """Sessions at once.  An idle one holds 7 KiB (`docs/wire-protocol.md`), so this is a bound on runaway pools."""
    strangers_max: int = 200
    """Sockets that are not sessions: on their way in, cancel requests, and those above the limit being told so.  None
    of them has a session's place before it is authenticated."""
    strangers_rush_s: float = 2.0
    """Where there are as many, a newcomer takes the place of the one that came first, once that is here for so long: a
    login takes some milliseconds, and a client behind a slow line a second."""
    message_bytes_max: int = MESSAGE_BYTES_MAX
    read_ahead_bytes: int = 256 * 1024
    """While a statement runs, the client is read this far ahead and then no more, until the statement is done."""
    write_ahead_bytes: int = 256 * 1024
    """Unsent bytes at which a session stops producing."""
    authentication_s: float = 60.0
    """Postgres's authentication_timeout."""
    stop_grace_s: float = 4.0
    """How long a stopping server lets running statements finish before it cancels them.  With the next one and closing
    the logs it stays below the 10 s after which a supervisor kills."""
    stop_settle_s: float = 2.0
    """How long it then waits for what was sent already: a producer's watchdog.  After that, whoever asked is told that
    nobody knows."""


class Connection(asyncio.Protocol):
    """One socket.  Its task is the session."""

    __slots__ = ("_deadline", "_drained", "_loop", "_paused", "_received", "_server", "_transport", "admitted",
                 "began_s", "closed", "machine", "session", "task")  # fmt: skip

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._loop = server.loop
        self._received: asyncio.Future[bool] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._paused = False
        self._deadline: asyncio.TimerHandle | None = None
        self.machine = Machine(server.limits.message_bytes_max)
        self.session: Session | None = None
        self.task: asyncio.Task | None = None
        self.closed = False
        self.admitted = False
        self.began_s = self._loop.time()

    # --- called by the event loop ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=self._server.limits.write_ahead_bytes)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._deadline = self._loop.call_later(self._server.limits.authentication_s, self.abort)
        self.task = self._loop.create_task(self._server.converse(self))

    def data_received(self, data: bytes) -> None:
        self.machine.receive(data)
        if self._received is not None:
            if not self._received.done():
                self._received.set_result(True)
        elif self.machine.unread_bytes > self._server.limits.read_ahead_bytes and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False  # a client that will not send anything more is gone: we do not serve half-closed connections

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed = True
        self.established()
        for waiter in (self._received, self._drained):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if self.session is not None:
            self.session.interrupt(Interrupt.GONE)

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # --- called by the session ---------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if not self.closed:
            self._transport.write(data)

    @property
    def behind(self) -> bool:
        return self._drained is not None and not self.closed

    async def drain(self) -> None:
        if self.behind:
            await asyncio.shield(self._drained)  # an interrupted statement must not resolve it for the next one

    async def received(self, timeout_s: float | None = None) -> bool:
        if self.closed:
            return True
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._received = waiter = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, _set_if_waiting, waiter, False) if timeout_s else None
        try:
            return await waiter is not False
        finally:
            self._received = None
            if timer is not None:
                timer.cancel()

    # --- called by the server ----------------------------------------------------------------------------------------

    def established(self) -> None:
        """The client is in: the deadline for that is off."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    @property
    def leaving(self) -> bool:
        """Whether it is closed, or about to be."""
        return self.closed or self._transport.is_closing()

    def wake(self) -> None:
        if self._received is not None:
            _set_if_waiting(self._received, True)

    def close(self) -> None:
        """Close once what was written is sent; a client that does not take it is cut off."""
        if not self.closed:
            self._transport.close()
            self._deadline = self._loop.call_later(self._server.limits.stop_grace_s, self.abort)

    def abort(self) -> None:
        if not self.closed:
            self._transport.abort()


def _set_if_waiting(waiter: asyncio.Future, value: bool) -> None:
    if not waiter.done():
        waiter.set_result(value)


class Server:
    """Serves sessions on one executor until :meth:`stop`."""

    def __init__(self, executor: Executor, *, password: str | None = None, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._executor = executor
        self._scram = Scram(password) if password else None
        self._listener: asyncio.Server | None = None
        self._connections: dict[Connection, None] = {}  # in the order in which they came
        self._sessions: dict[int, tuple[bytes, Connection]] = {}
        self._last_id = 0
        self._stopping = False

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; gives the address in fact (``port`` 0 picks one).  Raises ``InvalidUsage`` if it is taken."""
        # Kept: asking for the running loop costs a system call, and every answer would ask.
        self.loop = asyncio.get_running_loop()
        try:
            self._listener = await self.loop.create_server(lambda: Connection(self), host, port, backlog=512)
        except OSError as e:
            why = f"cannot listen on {host}:{port}: {e.strerror or e}"
            raise InvalidUsage(why, hint="choose another --port") from e
        address = self._listener.sockets[0].getsockname()
        return address[0], address[1]

    @property
    def sessions(self) -> int:
        """Sessions now."""
        return len(self._sessions)

    def session_states(self) -> list[SessionState]:
        """The sessions that have begun and not ended."""
        found = (connection.session for _, connection in self._sessions.values())
        return [session.state for session in found if session is not None]

    async def stop(self) -> None:
        """Take no one new, end idle sessions, give running statements their grace, then cancel them.

        Takes ``stop_grace_s``, ``stop_settle_s`` and ``SAY_S`` at most, twice the last where something of ours hangs.
        """
        self._stopping = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            if connection.session is None:
                connection.abort()
            else:
                connection.session.stop()
                if not connection.session.busy:
                    connection.wake()
        await self._gone(self.limits.stop_grace_s)
        for connection in list(self._connections):
            if connection.session is not None:
                connection.session.interrupt(Interrupt.SHUTDOWN)
        await self._gone(self.limits.stop_settle_s)
        for connection in list(self._connections):
            if connection.task is not None:
                connection.task.cancel()
        await self._gone(SAY_S)
        for connection in list(self._connections):
            connection.abort()
            connection.task.cancel()
        await self._gone(SAY_S)

    async def _gone(self, timeout_s: float) -> None:
        tasks = [c.task for c in self._connections if c.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)

    # --- one connection's life ---------------------------------------------------------------------------------------

    async def converse(self, connection: Connection) -> None:
        """The task of a connection: startup, then its session, then the end."""
        session_id = 0
        self._connections[connection] = None
        try:
            if self._stopping or not self._room_for_a_stranger():
                connection.abort()
                return
            first = await startup.next_event(connection)
            if type(first) is m.CancelRequest:
                self._cancel(first)
                return
            state = await startup.identify(connection, first, self._scram)
            session_id, secret = self._admit(connection, first)
            state.session_id = session_id
            await startup.take_in(connection, state, self._executor, secret)
            connection.established()
            connection.session = Session(connection, self._executor, state)
            await connection.session.serve()
        except startup.Refused:
            pass
        except Exception:
            log.exception("a session ended by an error of ours", extra={"session": session_id})
        finally:
            self._sessions.pop(session_id, None)
            self._connections.pop(connection, None)
            connection.close()

    def _room_for_a_stranger(self) -> bool:
        """Whether one more may come.  Where there are as many as may be, who has been one for longest gives way, unless
        it came just now: silent sockets keep nobody out, and a rush of clients does not end its own logins."""
        if len(self._connections) - len(self._sessions) <= self.limits.strangers_max:
            return True
        oldest = next((c for c in self._connections if not (c.admitted or c.leaving)), None)
        if oldest is None or self.loop.time() - oldest.began_s < self.limits.strangers_rush_s:
            return False
        oldest.abort()
        return True

    def _admit(self, connection: Connection, first: m.Startup) -> tuple[int, bytes]:
        if self._stopping:
            startup.refuse(connection, Unavailable("the database system is shutting down"))
        if len(self._sessions) >= self.limits.connections_max:
            startup.refuse(
                connection,
                Rejected(
                    "sorry, too many clients already", sqlstate="53300",
                    detail=f"this adapter serves at most {self.limits.connections_max} sessions",
                ),
            )  # fmt: skip
        while True:
            self._last_id = self._last_id % 0x7FFFFFFF + 1
            if self._last_id not in self._sessions:
                break
        secret = secrets.token_bytes(startup.secret_bytes(first.minor))
        self._sessions[self._last_id] = (secret, connection)
        connection.admitted = True
        return self._last_id, secret

    def _cancel(self, request: m.CancelRequest) -> None:
        """Cancel what that session runs.  As in Postgres there is no answer, whether the secret was right or not."""
        secret, connection = self._sessions.get(request.process_id, (b"", None))
        if connection is None or not hmac.compare_digest(secret, request.secret):
            log.warning("cancel request with a wrong key", extra={"session": request.process_id})
        elif connection.session is not None:
            connection.session.interrupt(Interrupt.REQUESTED)
