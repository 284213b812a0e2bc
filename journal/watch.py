"""Looking now and then, by a clock that nobody sets.

librdkafka waits by the wall clock.  Where that is set back by an hour while a thread waits in ``poll``, the thread
stays there for an hour unless an answer comes, and so do threads of librdkafka's own, which then ask for no metadata:
a write to a topic that its producer had not met was neither sent nor given up for nine minutes (measured).  So who must
notice that nothing happens does not do it between two polls, but here; and what is found hanging is not waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

EVERY_S = 0.1
"""A twentieth of the shortest silence that anybody looks for."""


class Watch:
    """Calls ``look()``, which must be quick and not raise, every ``EVERY_S`` on its own thread until :meth:`stop`."""

    def __init__(self, look: Callable[[], None], name: str) -> None:
        self._look = look
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Returns at once: it may still be looking, for the last time."""
        self._stopped.set()

    def _run(self) -> None:
        # By Python's monotonic clock, as all waits of threads are.
        while not self._stopped.wait(EVERY_S):
            self._look()
