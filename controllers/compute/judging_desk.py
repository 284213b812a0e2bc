"""Where the storage controller has ranges of a source's topic judged: this cluster's executors do, beside its ticks.

Promises: :meth:`JudgingDesk.judge` says of each range what the tasks said of it, or raises; what takes longer than the
order allows is cancelled, and no more than ``AT_ONCE_MAX`` orders are under way.  Only executors elsewhere judge
(0A000): those in this process have this machine's processor, which the storage controller may as well use itself, and
ticks need.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from controllers.compute.failures import of_spark
from controllers.compute.judged_ranges import packed
from controllers.compute.session import BESIDE_POOL, cancel_group
from controllers.compute.tasks import Lacking, answers
from controllers.judging import Order, Verdict, encode_order
from controllers.spark_masters import in_this_process
from journal.errors import InvalidUsage, Rejected, Unavailable

log = logging.getLogger(__name__)

AT_ONCE_MAX = 2
"""Orders: who comes with another waits for the end of a wave, and is next then."""

PLACE_S = 30.0
"""To wait for that: thrice what a wave takes one executor."""

TASK_MODULE = "controllers.compute.judged_ranges"
"""What tasks run."""

_numbers = itertools.count(1)

_LOCAL = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.scheduler.pool")
"""What a thread says of its jobs."""


class JudgingDesk:
    """Any number of threads.  ``here``: executors in this process may judge, too (for tests)."""

    def __init__(self, spark: SparkSession, bootstrap: str, *, here: bool = False) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._able = here or not in_this_process(spark.sparkContext.master)
        self._places = threading.BoundedSemaphore(AT_ONCE_MAX)
        self._lock = threading.Lock()
        self._groups: set[str] = set()
        self._closed = False
        self._records = 0

    def status(self) -> dict[str, int]:
        """Orders under way, and records that were judged by this process's executors."""
        return {"under_way": len(self._groups), "records": self._records}

    def judge(self, order: Order) -> list[Verdict]:
        """Of each of its ranges, in their order.

        Raises ``InvalidUsage`` 0A000 where the executors never can, ``Rejected`` 53300 where too many are under way for
        ``PLACE_S``, ``Unavailable`` where they did not, and what reading a topic raises.
        """
        until = time.monotonic() + order.timeout_s
        if not self._able:
            raise InvalidUsage("the executors of this cluster are in its own process", sqlstate="0A000")
        if not self._places.acquire(timeout=min(PLACE_S, order.timeout_s)):
            raise Rejected("too many ranges are being judged", sqlstate="53300", hint="try again later")
        try:
            return self._judged(order, until)
        finally:
            self._places.release()

    def _judged(self, order: Order, until: float) -> list[Verdict]:
        group = f"judging-{next(_numbers)}"
        cancel = partial(cancel_group, self._spark, group)
        timer = threading.Timer(max(0.0, until - time.monotonic()), cancel)
        timer.daemon = True
        plain = (self._bootstrap, encode_order(order))
        with self._lock:
            if self._closed:
                raise Unavailable("the cluster's controller is stopping")
            self._groups.add(group)
        try:
            timer.start()
            said = self._in_group(group, lambda: answers(self._spark, TASK_MODULE, plain, [*map(packed, order.ranges)]))
        except Lacking as lacking:
            self._able = False
            raise lacking.why from lacking
        except Exception as error:
            raise of_spark(error) or Unavailable("ranges were not judged", detail=str(error)[:500]) from error
        finally:
            timer.cancel()
            with self._lock:
                self._groups.discard(group)
        found = {asked: told.checked() for asked, told in map(pickle.loads, said)}  # noqa: S301 - our own tasks' words
        self._records += sum(each.good + len(each.bad) for each in found.values())
        log.info("tasks judged ranges of a source", extra={"topic": order.topic, "ranges": len(found)})
        return [found[asked] for asked in order.ranges]

    def _in_group(self, group: str, ask: Callable[[], list[bytes]]) -> list[bytes]:
        context = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", BESIDE_POOL)
        context.setJobGroup(group, "ranges of a source", interruptOnCancel=True)
        try:
            return ask()
        finally:  # the thread is one of the server's, which answers others after this
            with suppress(Py4JError, OSError):  # of a JVM that is gone: what it was asked says so
                for name in _LOCAL:
                    context.setLocalProperty(name, None)

    def close(self) -> None:
        """Cancel what is under way; nothing is begun any more."""
        with self._lock:
            self._closed = True
            groups = list(self._groups)
        with suppress(Py4JError, OSError):  # a JVM that is gone has nothing under way
            for each in groups:
                cancel_group(self._spark, each)
