"""The demo's writing application: an airline's desk that corrects flights while they come in, by plain psycopg.

One session, one transaction after the other, as any client of Postgres would: a transaction that was refused is tried
again, one whose COMMIT was answered by nobody is looked up, and a connection that breaks is made anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import psycopg

from demo import corrections
from demo.watch import AWAY_MAX_S, Session
from journal.errors import Rejected, Unavailable

NEW_FLIGHTS_S = 0.05
"""How often it looks whether the flights that come next are there: they are seen by the watcher."""
RUN_MIN = 2 * corrections.KINDS
"""Transactions that a run waits for where its flights are enough for them: two of each kind."""


class Desk:
    """Corrects flights from a thread of its own, ``per_s`` times a second, once it is told that they are there.

    ``begun`` and ``done`` are how many transactions were begun and are known to be over, those of earlier runs too.
    """

    def __init__(self, dsn: str, per_s: float) -> None:
        self._every_s = 1 / per_s
        self.begun = self.done = self.first = 0
        self.failure: Exception | None = None
        self._stopping = threading.Event()
        self._session = Session(dsn, self._stopping)
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)

    @property
    def reconnects(self) -> int:
        """How often it was away, or what it wrote was refused."""
        return max(0, self._session.reconnects)

    def open(self) -> None:
        """Find out where earlier runs ended."""
        self._again(lambda connection: connection.execute(corrections.BEGIN_DESK))
        self.first = self.begun = self.done = self._again(_done)

    def start(self, visible: Callable[[], int]) -> None:
        """``visible``: how many flights there are, at least."""
        self._visible = visible
        self._thread.start()

    def finish(self, flights: int) -> None:
        """Wait for ``RUN_MIN`` transactions, or as many as ``flights`` are enough for, and have it end."""
        possible = max(0, flights // corrections.SPREAD - self.first)
        deadline = time.monotonic() + AWAY_MAX_S
        while self.done - self.first < min(RUN_MIN, possible) and self.failure is None:
            if time.monotonic() > deadline:
                self.failure = Unavailable(f"no flight was corrected for {AWAY_MAX_S:.0f} s (after {self.done})")
            self._stopping.wait(NEW_FLIGHTS_S)
        self.stop()
        if self.failure:
            raise self.failure

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=AWAY_MAX_S)
        self._session.close()

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._stopping.is_set():
                if self._visible() < corrections.needed(self.done):
                    self._stopping.wait(NEW_FLIGHTS_S)
                    continue
                due = max(due + self._every_s, time.monotonic())
                self.begun = self.done + 1
                self._again(self._correct)
                self.done = self.begun
                self._stopping.wait(due - time.monotonic())
        except Exception as error:  # handed to the demo, which ends with it
            if not self._stopping.is_set():
                self.failure = error

    def _correct(self, connection: psycopg.Connection) -> None:
        """The transaction that comes next, unless it is over: the answer to its COMMIT may have been lost."""
        number = self.begun - 1
        with connection.transaction():
            if connection.execute(corrections.COUNT, (number,)).rowcount == 0:
                done = _done(connection)
                if done == self.begun:
                    return
                told = f"{done} corrections are there, expected {number}"
                raise Rejected(told, hint="another demo corrects them, too")
            for statement in corrections.statements(number):
                savepoint = connection.transaction(force_rollback=True) if statement.undone else nullcontext()
                with savepoint:
                    connection.execute(statement.sql, statement.values)

    def _again(self, work: Callable[[psycopg.Connection], Any]) -> Any:
        return self._session.again("a correction", work, psycopg.errors.SerializationFailure)


def _done(connection: psycopg.Connection) -> int:
    return connection.execute(corrections.DONE).fetchone()[0]
