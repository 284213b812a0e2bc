"""Clients of librdkafka end on threads of their own, whoever held them last.

Such a client ends where its last reference goes: it joins its threads then, and that has no bound.  They wait by the
wall clock, and for as long as a clock that is set back says: an hour is an hour.  Where the client is part of a cycle
(its callbacks know who holds it), it is Python's collector that drops it, amid anything that whatever thread may be
doing.  Measured: a subscriber's event loop stood still in the encoding of a command, which had made the collector run,
until its process was ended; nobody's commands arrived any more.

So nobody holds the client itself but its :class:`Owned`, which has nothing to join.  That one is in the cycle, and when
it goes, it hands the client over.
"""

from __future__ import annotations

import queue
import threading
from typing import Any

_left: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
"""Clients that nobody holds any more, each alone in a list.  Of Python's queues it is the one that may be put to
wherever a finalizer may run."""


class Owned:
    """``made``, and the only one that holds it: attributes are the client's.

    Whoever keeps one of its methods keeps the client, and may be who ends it.
    """

    def __init__(self, made: Any) -> None:
        self._made = made
        _ending.begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def __del__(self) -> None:
        # Out of here first: of a cycle that is collected everything is reachable from the queue, the cycle too.
        _left.put([self.__dict__.pop("_made", None)])


class _Ending:
    """The thread that starts a thread for each: one that takes an hour must not keep the next one waiting, and a
    finalizer is no place to start one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = False

    def begin(self) -> None:
        if self._begun:
            return
        with self._lock:
            if not self._begun:
                threading.Thread(target=self._run, name="kafka-ending", daemon=True).start()
                self._begun = True

    def _run(self) -> None:
        while True:
            holder = _left.get()
            threading.Thread(target=holder.clear, name="kafka-ends", daemon=True).start()
            del holder


_ending = _Ending()
