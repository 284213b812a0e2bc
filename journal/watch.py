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
    """Calls ``look()`` on a thread of its own ``EVERY_S`` after :meth:`wake`, and again for as long as it says that
    something is still waited for.  ``look`` must be quick and not raise.

    While nothing is waited for it sleeps: a process has a dozen of them, and threads that wake for nothing take the
    interpreter from those that work.
    """

    def __init__(self, look: Callable[[], bool], name: str) -> None:
        self._look = look
        self._awake = threading.Event()
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def wake(self) -> None:
        """To be called *after* what is to be looked for can be seen by ``look``."""
        if not self._awake.is_set():
            self._awake.set()

    def stop(self) -> None:
        """Returns at once: it may still be looking, for the last time."""
        self._stopped.set()
        self._awake.set()

    def _run(self) -> None:
        # By Python's monotonic clock, as all waits of threads are.
        while self._awake.wait() and not self._stopped.wait(EVERY_S):
            self._awake.clear()  # before it looks: who wakes it from here on is looked for once more
            if self._look():
                self._awake.set()
