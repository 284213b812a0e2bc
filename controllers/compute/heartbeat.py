"""Whether Spark still does what it is asked: a job of one row now and then, and the JVM itself.

Promises: a JVM that ended, a Spark that stopped by itself (its master removed it, or let it in nowhere), one that has
no executor left (its master was started anew and knows nothing of it), and one that does not finish a job though
nothing keeps it from running (its scheduler's thread died and the process lives on: then every read and tick waits for
ever), are told to ``on_dead`` once, soon.  If the process is still there ``GRACE_S`` later, it is ended: whoever would
end it may be waiting for that very Spark.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from journal.errors import TidemarkError, Unavailable
from journal.process import leave

log = logging.getLogger(__name__)

BEAT_S = 10.0
"""Between two beats.  One takes some 10 ms of the machine."""

LOOK_S = 0.5
"""How soon the end of the JVM is noticed."""

IDLE_S_MAX = 60.0
"""A beat that waits for so long while Spark has a slot to run it, or does not say whether it has: its scheduler does
nothing any more.  Everything else here that waits for a machine that is merely busy waits half as long at most."""

BUSY_S_MAX = 900.0
"""A beat gets the next slot that is free, so it waits only while every slot has a task that was there before: hydrating
a large view takes minutes.  Of tasks that were lost with the scheduler Spark says for ever that they run."""

ALONE_S_MAX = 120.0
"""A beat that waits for so long while Spark has no executor at all, twice as long as a master waits for a worker
(``spark.worker.timeout``): a master that was started anew without its memory tells workers to end the executors of an
application that it does not know, and never gives it others.  A new session asks for some; where a cluster has none to
give, it waits as this one does."""

OUT_OF_MEMORY = (3, 52)
"""Exit codes of a JVM that found none: by the option ``ExitOnOutOfMemoryError``, and Spark's own
(``SparkExitCode.OOM``), where Java's libraries say so before the machine does."""

LAST_WORD_S = 2.0
"""How long a JVM that does not answer any more is given to be gone: its connections close first, its memory is handed
back after that (0.1 s for a gigabyte, more on a busy machine)."""

GRACE_S = 20.0
"""To end in an orderly way; ``controller.py`` takes nine."""


class Spark(NamedTuple):
    """What is asked.  ``beat`` runs a job and returns when it is done; ``idle`` says whether there is a slot for one,
    ``stopped`` whether Spark gave up by itself, ``alone`` whether it has no executor; all four may hang.  ``exit_code``
    gives the code of a JVM that ended."""

    beat: Callable[[], None]
    idle: Callable[[], bool]
    exit_code: Callable[[], int | None]
    stopped: Callable[[], bool] = lambda: False
    alone: Callable[[], bool] = lambda: False


class SparkEnded(Unavailable):
    """Spark's JVM is gone, or as good as gone: out of memory, most likely, for what it was at."""


def overdue(waited_s: float, idle_s: float) -> bool:
    """Whether a beat that was asked ``waited_s`` ago never comes; for ``idle_s`` of that there was a slot for it."""
    return idle_s >= IDLE_S_MAX or waited_s >= BUSY_S_MAX


def last_word(exit_code: Callable[[], int | None]) -> TidemarkError | None:
    """Why Spark answers no more, for who failed because of it and hears of it before anybody looked: that its JVM
    ended; ``None`` where it did not within ``LAST_WORD_S``."""
    deadline = time.monotonic() + LAST_WORD_S
    while (code := exit_code()) is None:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    return _ended(code)


class Heartbeat:
    """Two threads ask, and may hang; a third watches them."""

    def __init__(
        self, spark: Spark, on_dead: Callable[[TidemarkError], None], *, end: Callable[[int], object] = leave,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._on_dead = on_dead
        self._end = end
        self._clock = clock
        self._closed = threading.Event()
        self._asked_at: float | None = None
        self._idle_since: float | None = None
        self._alone_since: float | None = None
        self._looking_since: float | None = None
        self._gave_up = False
        self.beats = 0
        for target, name in ((self._ask, "heartbeat"), (self._look_for_slots, "slots"), (self._watch, "watch-spark")):
            threading.Thread(target=target, name=name, daemon=True).start()

    def last_word(self) -> TidemarkError | None:
        """:func:`last_word` of Spark's JVM."""
        return last_word(self._spark.exit_code)

    def close(self) -> None:
        """Watch no more: Spark is about to be stopped."""
        self._closed.set()

    def _ask(self) -> None:
        while not self._closed.wait(BEAT_S):
            self._idle_since, self._alone_since, self._asked_at = None, None, self._clock()
            try:
                self._spark.beat()
            except Exception as error:
                # It was answered, though not well: what is wrong then is told by whoever asks for something.
                log.warning("a beat of spark's failed", extra={"why": str(error)[:300]})
            self._asked_at = None
            self.beats += 1

    def _look_for_slots(self) -> None:
        while not self._closed.wait(LOOK_S):
            asked_at = self._asked_at
            self._looking_since = self._clock()
            try:
                self._gave_up = self._spark.stopped()
                if asked_at is None or self._gave_up:
                    continue
                idle, alone = self._spark.idle(), self._spark.alone()
            except Exception as error:
                log.warning("spark does not say what it runs", extra={"why": str(error)[:300]})
                continue
            finally:
                self._looking_since = None
            if self._asked_at == asked_at:
                self._idle_since = self._since(self._idle_since) if idle else None
                self._alone_since = self._since(self._alone_since) if alone else None

    def _since(self, known: float | None) -> float:
        return self._clock() if known is None else known

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_S):
            found = self._found()
            if found is None or self._closed.is_set():
                continue
            log.error(found.message, extra={"detail": found.detail})
            self._on_dead(found)
            if not self._closed.wait(GRACE_S):
                log.error("ended, since stopping did not end it")
                self._end(1)
            return

    def _found(self) -> TidemarkError | None:
        code = self._spark.exit_code()
        if code is not None:
            return _ended(code)
        if self._gave_up:
            why = "its master removed the application, or answers no more"
            return SparkEnded("spark stopped by itself", detail=why)
        asked_at, idle_since, looking_since, now = self._asked_at, self._idle_since, self._looking_since, self._clock()
        if asked_at is None:
            return None
        alone_since = self._alone_since
        if alone_since is not None and now - max(alone_since, asked_at) >= ALONE_S_MAX:
            waited = f"it has had no executor for {now - alone_since:.0f} s: its master may have been started anew"
            return SparkEnded("spark has nobody to work for it", detail=waited)
        # A JVM that does not even say what it runs (it collects garbage all the time) is as good as dead.
        since = [max(at, asked_at) for at in (idle_since, looking_since) if at is not None]
        if overdue(now - asked_at, max((now - at for at in since), default=0.0)):
            waited = f"a job of one row waits for {now - asked_at:.0f} s"
            return SparkEnded("spark does nothing any more", detail=waited)
        return None


def _ended(code: int) -> SparkEnded:
    how = ", out of memory" if code in OUT_OF_MEMORY else ""
    return SparkEnded("spark's JVM ended", detail=f"exit code {code}{how}")
