"""Cancelling the statement that a session runs, without a task per statement.

A session is one task, and a statement is awaited in it directly: a task per statement would cost more than ``SELECT 1``
does.  So a cancel request, a timeout and a vanished client all cancel *the session's* task, but only while a statement
is being awaited, and the reason is written down first.  The ``CancelledError`` comes out of the executor, is recognised
by that reason, and becomes :class:`Interrupted`.  A ``CancelledError`` without a reason is somebody ending the task:
it goes through.

A statement that finishes although it was cancelled (its commit was under way) has finished: the interrupt is forgotten.
"""

from __future__ import annotations

import asyncio
from enum import Enum


class Interrupt(Enum):
    """Why a running statement was cancelled."""

    REQUESTED = "canceling statement due to user request"
    TIMED_OUT = "canceling statement due to statement timeout"
    GONE = "the client is gone"
    SHUTDOWN = "terminating connection due to administrator command"


class Interrupted(Exception):
    def __init__(self, reason: Interrupt) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Interruption:
    """One session's.  Everything here happens on the event loop."""

    def __init__(self) -> None:
        self.running = False
        self._reason: Interrupt | None = None
        self._task: asyncio.Task | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timeout_s = 0.0

    def interrupt(self, reason: Interrupt) -> None:
        """Cancel the running statement, if there is one; called from outside of the session's task."""
        if self.running and self._reason is None:
            self._reason = reason
            self._task.cancel()

    def check(self) -> None:
        """Between the statements of one string: an interrupt that the one before outlived stops those behind it."""
        if self._reason is not None:
            raise Interrupted(self._reason)

    def within(self, timeout_s: float) -> Interruption:
        """``with interruption.within(timeout_s): await …`` in the session's task; 0: no timeout.

        Raises :class:`Interrupted` where that was interrupted.
        """
        self._timeout_s = timeout_s
        return self

    def __enter__(self) -> None:
        if self._task is None:  # always the session's; asking costs a system call
            self._task = asyncio.current_task()
        if self._timeout_s:
            call_later = asyncio.get_running_loop().call_later
            self._timer = call_later(self._timeout_s, self.interrupt, Interrupt.TIMED_OUT)
        self.running = True

    def __exit__(self, kind: type[BaseException] | None, _error: object, _traceback: object) -> None:
        self.running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        reason = self._reason
        if reason is not None:
            self._reason = None
            while self._task.cancelling():
                self._task.uncancel()
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                raise Interrupted(reason) from None
