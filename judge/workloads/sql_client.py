"""One logical process's connections to the adapters, every wait bounded.

Promises: :meth:`Sql.run` ends within ``OP_TIMEOUT_S``, with rows, ``Failed`` or ``Unknown``.  A connection that broke,
or that was given up, is never used again; the next statement opens another, through the next adapter, so that nobody
sticks to one that is away.

A hung server cannot be told from a slow one by libpq (a stopped process's kernel still acknowledges), so one thread
of the process shuts the socket of whoever is late; libpq then reports a lost connection, which is what it is.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from judge.workloads.api import OP_TIMEOUT_S, Failed, Invocation, World
from judge.workloads.outcome import outcome

CONNECT_TIMEOUT_S = 5
"""A local connection takes milliseconds; libpq counts in whole seconds, two at least."""

READ_TIMEOUT_MS = int((OP_TIMEOUT_S - CONNECT_TIMEOUT_S) * 1000) - 5_000
"""The adapter ends a read before our own patience does: then the connection survives."""

REFUSED_PAUSE_S = 0.2
"""After a refused connection.  Without it a worker whose adapter is down would record thousands of failures a second;
with it, it finds the next adapter well within the second."""

LATE_LOOK_S = 0.25


class Late(psycopg.OperationalError):
    """Nobody answered in time."""


class Watchdog:
    """Shuts sockets whose time is over.  One thread for the whole process, asleep while nobody waits."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waiting: dict[object, tuple[float, int]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, connection: psycopg.Connection, timeout_s: float) -> Iterator[None]:
        """Within the block, ``connection``'s socket is shut once ``timeout_s`` are over; then it ends with ``Late``."""
        mark = object()
        with self._lock:
            self._waiting[mark] = (time.monotonic() + timeout_s, connection.fileno())
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="judge-watchdog", daemon=True)
                self._thread.start()
            self._lock.notify()
        try:
            yield
        except psycopg.OperationalError as error:
            with self._lock:
                late = mark not in self._waiting
            if late:
                raise Late(f"no answer within {timeout_s:g} s") from error
            raise
        finally:
            with self._lock:
                self._waiting.pop(mark, None)

    def _run(self) -> None:
        with self._lock:
            while True:
                self._lock.wait(LATE_LOOK_S if self._waiting else None)
                now = time.monotonic()
                for mark, (deadline, fd) in list(self._waiting.items()):
                    if deadline <= now:
                        del self._waiting[mark]
                        _shut(fd)


def _shut(fd: int) -> None:
    """End the stream on ``fd``, which its owner still holds open (it is in :meth:`Watchdog.limit`)."""
    try:
        with socket.socket(fileno=os.dup(fd)) as ours:
            ours.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # broken already


_WATCHDOG = Watchdog()


class Sql:
    """One connection at a time, to one adapter after another."""

    def __init__(self, world: World, name: str, first: int, *, only: bool = False) -> None:
        """``first``: the adapter to begin with (modulo their number), or the ``only`` one to ask ever."""
        self._world = world
        self._name = name
        self._only = only
        self._at = first % len(world.dsns)
        self._left = False
        """The last statement gave its connection up: the next one goes to the next adapter."""
        self._connection: psycopg.Connection | None = None
        self.sessions = 0
        """Connections that were made: of two statements with the same number one session asked both."""

    @property
    def node(self) -> str:
        """The adapter that was asked last."""
        return self._world.nodes[self._at]

    def move_on(self) -> None:
        """Make :attr:`node` the adapter that will be asked next."""
        if self._left and not self._only:
            self._left = False
            self._at = (self._at + 1) % len(self._world.dsns)

    def run(self, sql: str, parameters: Sequence[Any] | None = None, *, write: bool) -> list[tuple]:
        """The rows of one statement (none where it gives none)."""
        return self.all([(sql, parameters)], commits=0 if write else None)[0]

    def all(self, statements: Sequence[tuple[str, Sequence[Any] | None]], *, commits: int | None) -> list[list[tuple]]:
        """Statements in order, on one connection, in one patience.  Only the one with index ``commits`` can change
        anything: an error before it is certain whatever it says (a block that was not committed is undone).
        """
        found: list[list[tuple]] = []
        connection = self._connected()
        try:
            with _WATCHDOG.limit(connection, OP_TIMEOUT_S - CONNECT_TIMEOUT_S):
                for sql, parameters in statements:
                    cursor = connection.execute(sql, parameters)
                    found.append(cursor.fetchall() if cursor.description else [])
        except psycopg.Error as error:
            if len(statements) > 1 or _broken(error):
                self._leave()
            raise outcome(error, write=commits is not None and len(found) >= commits) from error
        except BaseException:
            self._leave()
            raise
        return found

    @contextmanager
    def block(self, *, writes: bool) -> Iterator[Callable[..., list[tuple]]]:
        """A transaction block: within it ``run(sql, parameters)`` gives rows, and at its end it is committed.

        What fails before COMMIT certainly did not happen, and of a block that ``writes`` nothing neither did any of it.
        What its user raises undoes it.  The connection is kept where the server only refused something.
        """
        connection, committing = self._connected(), False

        def run(sql: str, parameters: Sequence[Any] | None = None) -> list[tuple]:
            cursor = connection.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []

        try:
            with _WATCHDOG.limit(connection, OP_TIMEOUT_S - CONNECT_TIMEOUT_S):
                run("BEGIN")
                try:
                    yield run
                except (psycopg.Error, Failed) as error:
                    if isinstance(error, Failed) or not _broken(error):
                        run("ROLLBACK")
                    raise
                committing = True
                run("COMMIT")
        except psycopg.Error as error:
            if _broken(error):
                self._leave()
            raise outcome(error, write=writes and committing) from error
        except Failed:
            raise
        except BaseException:
            self._leave()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _leave(self) -> None:
        """Give the connection up; the next statement goes to the next adapter."""
        self.close()
        self._left = True

    def _connected(self) -> psycopg.Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self.move_on()
        try:
            self._connection = connect(self._world.dsns[self._at], self._name)
            self.sessions += 1
        except psycopg.Error as error:
            self._leave()
            threading.Event().wait(REFUSED_PAUSE_S)
            raise Failed(error.sqlstate or "NotConnected", str(error).split("\n")[0]) from error
        return self._connection


def connect(dsn: str, name: str) -> psycopg.Connection:
    """A session of its own.  Raises ``psycopg.Error``: nothing was attempted."""
    connection = psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, application_name=name)
    try:
        with _WATCHDOG.limit(connection, CONNECT_TIMEOUT_S):
            connection.execute(f"SET statement_timeout = {READ_TIMEOUT_MS}")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_world(world: World, statements: Sequence[str]) -> None:
    """Run a workload's setup through the first adapter.  An environment that was used before is refused by the first
    CREATE, as it should be: its names and values would come a second time.

    It should end with a read of each view, which then has its first contents: others' reads would wait for them.
    Raises what it meets: setup is on a healthy cluster.
    """
    with psycopg.connect(
        world.dsns[0], autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, application_name="judge-setup"
    ) as connection:
        for statement in statements:
            connection.execute(statement)


def _broken(error: psycopg.Error) -> bool:
    """Whether the connection is of no more use: it was lost, or the server ends the session."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


class SqlClient:
    """A client with one connection, which performs each ``f`` by its entry in ``handlers``."""

    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        self.world = world
        self.worker = worker
        self.sql = Sql(world, f"judge-{name}-{worker}", worker + life)
        self.handlers: dict[str, Callable[[Any], Any]] = {}

    @property
    def node(self) -> str:
        return self.sql.node

    def prepare(self, invocation: Invocation) -> Invocation:
        """As it is; but :attr:`node` names from now on who will be asked."""
        self.sql.move_on()
        return invocation

    def invoke(self, invocation: Invocation) -> Any:
        return self.handlers[invocation.f](invocation.value)

    def close(self) -> None:
        self.sql.close()
