"""What makes a cluster tick: a Structured Streaming query whose source's offset is the data timestamp (DESIGN §6).

Promises: after :meth:`Ticker.move_to` the query calls ``on_tick`` with the newest target, soon, from one thread, one
call at a time, never twice for one target; targets published meanwhile are joined into one.  Between targets nothing
runs but a poll that sleeps in the kernel.  A tick that raises stops the query, and :meth:`Ticker.failure` tells; so it
does of a query that stands still: its reader is another process of Spark's, and Spark waits for that without a bound.

The source's reader runs in a process of Spark's own, so a target goes to it through a small file, replaced atomically;
a FIFO beside it says that there is something to read.  The reader has no partitions and so costs no Spark job: what a
tick reads and writes is its own business.  A target is ``{"ts": T, "round": n}``: ``round`` lets a tick happen again
at the same timestamp, for a view that was created since.

A batch costs Spark some 20 ms in two logs of its own, half of what a tick of eight views takes.  So one batch goes on:
it takes target after target for as long as they come, and ends only where none did for a while, or after a few seconds,
by which time Spark is told how far it is.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import StreamingQuery

from journal.errors import Unavailable

log = logging.getLogger(__name__)

POLL_S = 0.25
"""How long the reader sleeps without a wake-up: the time by which a stop may be late, and what a lost byte costs."""

STAY_S = 0.5
"""How long a batch waits for the next target: whoever writes a few times a second has a tick begun at once, and what it
keeps waiting meanwhile is a thread that sleeps."""

BATCH_S = 5.0
"""After which a batch ends though there are targets: Spark's own view of the query is that old at most, and what a
batch costs is paid once for a hundred ticks."""

BEGIN_S = 120.0
"""How long a tick may be asked for before it begins.  Milliseconds; the first one waits for three processes of Python's
to start, 5 s on an idle machine, 35 s were seen at a load of 27."""

LATE = "Python worker failed to connect back"
"""What Spark says where the reader's process has not begun to talk within 10 s, which is Spark's own number and no
setting.  At a load of 25 it takes longer; the controller then ended and began anew, with a JVM that took a minute of
the same processors, for ten minutes on end.  So its query begins again instead, within ``BEGIN_S`` of the first."""

_START = {"ts": 0, "round": 0}


class Target(NamedTuple):
    ts: int
    round: int


class TickSource(DataSource):
    """``option("directory")`` is where :class:`Ticker` publishes."""

    @classmethod
    def name(cls) -> str:
        return "tidemark_ticks"

    def schema(self) -> str:
        return "ts BIGINT"

    def streamReader(self, schema) -> DataSourceStreamReader:  # noqa: N802 - Spark's name, called by keyword
        return TickReader(self.options["directory"])


class TickReader(DataSourceStreamReader):
    def __init__(self, directory: str) -> None:
        self._file = os.path.join(directory, "target.json")
        # Read and write, so that the pipe never reports an end when the other side is late or gone.
        self._fifo = os.open(os.path.join(directory, "wake"), os.O_RDWR | os.O_NONBLOCK)
        self._last: dict | None = None

    def initialOffset(self) -> dict:  # noqa: N802 - Spark's name
        return dict(_START)

    def latestOffset(self) -> dict:  # noqa: N802 - Spark's name
        target = self._read()
        if target == self._last:
            select.select([self._fifo], [], [], POLL_S)
            try:
                os.read(self._fifo, 4096)
            except BlockingIOError:
                pass
            target = self._read()
        self._last = target
        return target

    def _read(self) -> dict:
        with open(self._file) as file:
            return json.load(file)

    def partitions(self, start: dict, end: dict) -> list[InputPartition]:
        return []

    def read(self, partition: InputPartition):
        return iter(())

    def commit(self, end: dict) -> None:
        pass


class Ticker:
    """Runs the query.  ``directory`` is fresh: nothing of a query outlives its process (the journals decide)."""

    def __init__(self, spark: SparkSession, directory: Path, on_tick: Callable[[Target], None]) -> None:
        self._directory = directory
        self._on_tick = on_tick
        self._moved = threading.Condition()
        self._target = self._published = Target(0, 0)
        self._done: Target | None = None
        self._inside = False
        """Whether a batch is under way, which looks at the target itself."""
        self._stopped = False
        self._running = False
        self._waits_since: float | None = None
        """Since when a tick is asked for and none is under way."""
        self._failure: BaseException | None = None
        directory.mkdir(parents=True, exist_ok=True)
        os.mkfifo(directory / "wake")
        self._wake = os.open(directory / "wake", os.O_RDWR | os.O_NONBLOCK)
        self._publish()
        # The reader's process does not have this package on its path: send the class itself.
        import controllers.compute.ticks as this_module

        cloudpickle.register_pickle_by_value(this_module)
        self._spark = spark
        self._begun = False
        """Whether there was a batch."""
        self._since = time.monotonic()
        context = spark.sparkContext
        executors, context.pythonExec = context.pythonExec, sys.executable  # its reader is on this machine
        try:
            spark.dataSource.register(TickSource)
        finally:
            context.pythonExec = executors
        self._query = self._start()

    def _start(self) -> StreamingQuery:
        return (
            self._spark.readStream.format(TickSource.name())
            .option("directory", str(self._directory))
            .load()
            .writeStream.foreachBatch(self._on_batch)
            .option("checkpointLocation", str(self._directory / "query"))
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
            if self._inside:
                self._moved.notify_all()
            else:
                self._publish()

    def failure(self) -> BaseException | None:
        """Why the query stopped by itself, or counts as stopped; ``None`` while it runs, or begins again
        (:data:`LATE`).  The control loop's thread."""
        if self._failure is not None:
            return self._failure
        since = self._waits_since
        if since is not None and time.monotonic() - since > BEGIN_S:
            return Unavailable("spark does not begin a tick", detail=f"it was asked for {BEGIN_S:.0f} s ago")
        if self._query.isActive:
            return None
        found = self._query.exception() or RuntimeError("the streaming query stopped")
        if self._begun or LATE not in str(found) or time.monotonic() - self._since > BEGIN_S:
            return found
        log.warning("spark's reader of ticks was late, the query begins again")
        self._query = self._start()
        return None

    def stop(self) -> None:
        """Stop the query; a tick under way is interrupted."""
        with self._moved:
            if self._stopped:
                return
            self._stopped = True
            self._moved.notify_all()
        self._query.stop()
        os.close(self._wake)

    def _publish(self) -> None:
        temporary = self._directory / "target.json.new"
        temporary.write_text(json.dumps(self._target._asdict()))
        os.replace(temporary, self._directory / "target.json")
        self._published = self._target
        try:
            os.write(self._wake, b"x")
        except BlockingIOError:
            pass  # The pipe is full of wake-ups already.

    def _on_batch(self, _frame: object, _batch_id: int) -> None:
        until = time.monotonic() + BATCH_S
        with self._moved:
            self._inside = self._begun = True
        try:
            while (target := self._next(until)) is not None:
                self._on_tick(target)
                with self._moved:
                    self._done, self._running = target, False
                    self._waits_since = None if self._target == target else time.monotonic()
        except BaseException as error:
            self._failure = error
            raise
        finally:
            with self._moved:
                self._inside = False
                if self._published != self._target:
                    self._publish()

    def _next(self, until: float) -> Target | None:
        """What to go on with in this batch; ``None`` where it is to end.

        Not the batch's own offset: while Spark logged and planned it the target has often moved on, and what is bound
        by now can be shown now.
        """
        with self._moved:
            stay_s = max(0.0, min(STAY_S, until - time.monotonic()))
            due = self._moved.wait_for(lambda: self._stopped or self._target != self._done, stay_s)
            if not due or self._stopped or time.monotonic() >= until:
                return None
            self._waits_since, self._running = None, True
            return self._target
