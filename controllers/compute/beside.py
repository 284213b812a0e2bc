"""One view's way into memory on a thread of its own, while ticks go on.

A view over much data takes Spark seconds or minutes to evaluate, or to find again after a start.  In a tick all other
views of the cluster would wait for that.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from controllers.compute.session import BESIDE_POOL, cancel_group
from controllers.compute.view import View
from journal.errors import TidemarkError

_numbers = itertools.count(1)


class Made(NamedTuple):
    """The ``view``, in memory at the timestamp for which it was asked; without it its ``error``, or none where it was
    given up and is to be tried again if anybody still wants it."""

    view: View | None = None
    error: TidemarkError | None = None
    holds: Sequence[Callable[[], None]] = ()

    def let_go(self) -> None:
        """It has gone on from there, or never will: until then all that it reads can be read at that timestamp."""
        for each in self.holds:
            each()


class Job:
    """Begins at once; ``make`` is called on its thread, and then ``ended``."""

    def __init__(
        self, view_id: str, rows: int, spark: SparkSession, make: Callable[[], Made], ended: Callable[[], None]
    ) -> None:
        """``rows``: about how many it has to read."""
        self.view_id = view_id
        self._rows = rows
        self.done = False
        self.made = Made()
        self.failure: BaseException | None = None
        """What is not the view's own fault, and nobody asked for."""
        self._spark = spark
        self._make = make
        self._ended = ended
        self._cancelled = False
        self._group = f"beside-{next(_numbers)}"
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"beside-{view_id}", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Nobody wants it any more; returns at once."""
        self._cancelled = True
        cancel_group(self._spark, self._group)

    def join(self) -> None:
        """Until it is done."""
        self._thread.join()

    def status(self) -> dict[str, float | int]:
        """Seconds so far, and how many rows were read by those of Spark's tasks that are done, of about how many there
        are.  A query that reads some of them more than once has read as many before it is done."""
        seconds = round(time.monotonic() - self._begun, 1)
        try:
            return {"seconds": seconds, "rows_read": self._rows_read(), "rows": self._rows}
        except (Py4JError, OSError):  # Spark is ending, which others tell
            return {"seconds": seconds}

    def _rows_read(self) -> int:
        tracker, store = self._spark.sparkContext.statusTracker(), self._spark.sparkContext._jsc.sc().statusStore()
        jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._group)) if job is not None]
        return sum(_rows_read(store, stage) for job in jobs for stage in job.stageIds)

    def _run(self) -> None:
        try:
            context = self._spark.sparkContext
            context.setLocalProperty("spark.scheduler.pool", BESIDE_POOL)
            context.setJobGroup(self._group, f"view {self.view_id}")
            self.made = self._make()
        except BaseException as error:  # raised by whoever takes what was made
            if not self._cancelled:
                self.failure = error
        self.done = True
        self._ended()


def _rows_read(store, stage: int) -> int:
    """Of a stage that Spark knows: it may not have begun, or be forgotten for newer ones while we ask."""
    try:
        return store.lastStageAttempt(stage).inputRecords()
    except Py4JJavaError:
        return 0
