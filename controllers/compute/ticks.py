"""What makes a cluster tick: a Structured Streaming query, one batch of which is many ticks (DESIGN §6).

Promises: after :meth:`Ticker.move_to` the query calls ``on_tick`` with the newest target, at once where none is under
way, from one thread, one call at a time, never twice for one target; targets asked for meanwhile are joined into one.
Between targets its thread sleeps.  A tick that raises stops the query, and :meth:`Ticker.failure` tells; so it does of
a query that does not begin what it is asked for.

A target is ``(ts, round)``: ``round`` lets a tick happen again at the same timestamp, for a view that was created
since.

**Why the offsets of the query's source are no data timestamps**, as DESIGN §6 has them.  They were: the source was one
of our own, in Python.  Nobody ever read them (what was ticked is in the journals, and a query begins from nothing in
each life), and each cost what a source in Python costs: a process of its own, which Spark waits for no longer than
10 s, its own number and no setting.  On a machine so slow that it takes longer, compute never began.  And a target's
way to it was a file, and two logs of Spark's before a tick.  So Spark's own source gives a row at any time, of which
nothing is read, and what to bring its views along to is said to a batch while it goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from journal.errors import Unavailable

BATCH_S = 30.0
"""After which a batch ends, and the next begins: what Spark says of the query (its progress, its logs) is that old at
most.  A batch costs it 0.1 s of a processor and keeps a tick waiting for some 50 ms, so an idle cluster pays 3 ms a
second, and a busy one once in hundreds of ticks."""

BEGIN_S = 120.0
"""How long a tick may be asked for before it begins.  Milliseconds; the query's first batch takes 2 s on an idle
machine, and one was seen on which what began so took 35 s."""


class Target(NamedTuple):
    ts: int
    round: int


class Ticker:
    """Runs the query.  ``directory`` is fresh: nothing of a query outlives its process (the journals decide)."""

    def __init__(self, spark: SparkSession, directory: Path, on_tick: Callable[[Target], None]) -> None:
        self._on_tick = on_tick
        self._moved = threading.Condition()
        self._target = self._done = Target(0, 0)
        self._stopped = False
        self._running = False
        self._waits_since: float | None = None
        """Since when a tick is asked for and none is under way."""
        self._failure: BaseException | None = None
        self._query = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 1)  # the fewest that it takes
            .option("numPartitions", 1)
            .load()
            .writeStream.foreachBatch(self._on_batch)
            .option("checkpointLocation", str(directory / "query"))
            .start()
        )

    def move_to(self, ts: int, *, again: bool = False) -> None:
        """Ask for a tick at ``ts`` (never back in time); ``again``: also if there was one at ``ts`` already."""
        with self._moved:
            ts = max(ts, self._target.ts)
            if ts == self._target.ts and not again:
                return
            self._target = Target(ts, self._target.round + (1 if again else 0))
            if self._waits_since is None and not self._running:
                self._waits_since = time.monotonic()
            self._moved.notify_all()

    def failure(self) -> BaseException | None:
        """Why the query stopped by itself, or counts as stopped; ``None`` while it runs.  Any thread."""
        if self._failure is not None:
            return self._failure
        since = self._waits_since
        if since is not None and time.monotonic() - since > BEGIN_S:
            return Unavailable("spark does not begin a tick", detail=f"it was asked for {BEGIN_S:.0f} s ago")
        if self._query.isActive:
            return None
        return self._query.exception() or RuntimeError("the streaming query stopped")

    def stop(self) -> None:
        """Stop the query; a tick under way is interrupted."""
        with self._moved:
            self._stopped = True
            self._moved.notify_all()
        self._query.stop()

    def _on_batch(self, _frame: object, _batch_id: int) -> None:
        until = time.monotonic() + BATCH_S
        try:
            while (target := self._next(until)) is not None:
                self._on_tick(target)
                with self._moved:
                    self._done, self._running = target, False
                    self._waits_since = None if self._target == target else time.monotonic()
        except BaseException as error:
            self._failure = error
            raise

    def _next(self, until: float) -> Target | None:
        """What to go on with in this batch; ``None`` where it is to end."""
        with self._moved:
            due_s = max(0.0, until - time.monotonic())
            due = self._moved.wait_for(lambda: self._stopped or self._target != self._done, due_s)
            if not due or self._stopped or time.monotonic() >= until:
                return None
            self._waits_since, self._running = None, True
            return self._target
