"""Where a view's rows go that are too many for this process: the tasks that find them write them, and say where.

Promises: what passes through this process and its JVM is at most ``STAYS_BYTES_MAX`` of rows, and for the others a
receipt of each task (``sending.py``): offsets of the view's topic, names of files and their statistics.  Of each part
of a result one task's receipt counts, as Spark has it: what another wrote that was tried again, was done twice, or
came too late for anybody, is bound by nobody, and its files go.  Of one view, by one thread at a time.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from collection.binding import Run, joined
from collection.columns import plain_columns
from controllers.compute.relation import Relation
from controllers.compute.sending import RECEIPT, Order, receipts
from controllers.spark_masters import in_this_process
from journal.errors import InvalidUsage
from segments.parquet import LocalFile
from segments.statistics import packed

log = logging.getLogger(__name__)

STAYS_BYTES_MAX = 32 << 20
"""Of a result as Arrow has it, that comes here as rows: half a million of 60 bytes, which this process writes in two
seconds and whose files would be small.  They are in the heap of Spark's driver twice for a moment."""

TASKS_A_CORE = 4
"""Of executors elsewhere, that write at once or one after the other; here it is one, since each has a Python of its own
that needs the whole core for the rows' encoding, and ticks need some of it too."""


TASK_MODULE = "controllers.compute.sending"
"""What tasks run."""

DETAIL_CHARS_MAX = 200

LACKING = "tidemark: executors lack a package"


class Sent(NamedTuple):
    """What is on the view's topic already, as ``runs`` that nobody has bound, and in ``files``, the same rows."""

    runs: tuple[Run, ...] = ()
    files: tuple[LocalFile, ...] = ()


NOTHING = Sent()


class Outlet:
    """``relation`` is the view's own, ``order`` has its topic made, ``attempts`` are names that no other writing
    has."""

    def __init__(
        self, relation: Relation, bootstrap: str, env: str, order: Callable[[str], None], attempts: Iterator[str]
    ) -> None:
        self._relation = relation
        self._bootstrap = bootstrap
        self._env = env
        self._order = order
        self._attempts = attempts
        self._sent = NOTHING
        self._tag = relation.own_name("tasks")
        self._cancelled = False

    def cancel(self) -> None:
        """The view was dropped: its tasks would wait for a topic that is not there.  Any thread; returns at once."""
        self._cancelled = True
        self._relation.handing.spark.sparkContext.cancelJobsWithTag(self._tag)

    def collected(self, frame: DataFrame, cores: int) -> pa.Table:
        """The rows of ``frame``, columns by position and then the diffs, that are few enough; the others are in
        :meth:`taken`, and nothing of an answer before this.  Raises what Spark throws and what tasks say."""
        self.discard()
        self._order(self._relation.id)
        tasks = cores if in_this_process(self._relation.handing.spark.sparkContext.master) else TASKS_A_CORE * cores
        handing, prefix = self._relation.handing, self._relation.own_name("sent")
        order = Order(
            self._bootstrap, self._env, self._relation.id, plain_columns(self._relation.columns), next(self._attempts),
            handing.place(prefix), STAYS_BYTES_MAX // tasks,
        )  # fmt: skip
        named = [f"c{place}" for place in range(len(frame.columns))]
        fields = [StructField(name, field.dataType) for name, field in zip(named, frame.schema.fields, strict=True)]
        schema = StructType([*fields, StructField(RECEIPT, BinaryType())])
        taken: set[str] = set()
        context = frame.sparkSession.sparkContext
        context.addJobTag(self._tag)
        try:
            if self._cancelled:
                raise InvalidUsage("it was dropped")
            asked = frame.toDF(*named).coalesce(tasks).mapInArrow(_by(order), schema)
            rows, said = receipts(_collected(asked))
            for each in said:
                each.check()
            files = [
                LocalFile(file.segment._replace(statistics=packed(file.statistics)), handing.directory / name)
                for each in said for file in each.files for name in [prefix + file.name]
            ]  # fmt: skip
            taken = {file.path.name for file in files}
        except Exception as error:
            if self._cancelled:
                raise InvalidUsage(f"relation {self._relation.id} was dropped", sqlstate="42P01") from error
            raise
        finally:
            context.removeJobTag(self._tag)
            for path in handing.directory.glob(f"{prefix}_*"):
                if path.name not in taken:
                    path.unlink(missing_ok=True)
        self._sent = Sent(tuple(joined(run for each in said for run in each.runs)), tuple(files))
        if said:
            counts = {"rows": sum(run.rows for run in self._sent.runs), "runs": len(self._sent.runs)}
            log.info("tasks wrote what they found", extra={"view": self._relation.id, "tasks": len(said), **counts})
        return rows

    def taken(self) -> Sent:
        """What was written of the last answer, which is the caller's from then on."""
        sent, self._sent = self._sent, NOTHING
        return sent

    def discard(self) -> None:
        """Nobody wants the last answer."""
        for file in self.taken().files:
            file.path.unlink(missing_ok=True)


def _collected(frame: DataFrame) -> pa.Table:
    try:
        return frame.toArrow()
    except PySparkException as error:
        if (lacking := lacks(error)) is not None:
            raise lacking from error
        raise


def _by(order: Order) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For executors: nothing of ours in it, since theirs is what is missing where their Python lacks a package."""
    module, words = TASK_MODULE, LACKING
    plain = order._replace(columns=tuple(map(tuple, order.columns)))[:]

    def handle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            sending = importlib.import_module(module)
        except ImportError as error:
            raise RuntimeError(f"{words}: {error}") from error
        context = TaskContext.get()
        assert context is not None, "it is no task"
        return sending.handled(sending.told(plain), context.taskAttemptId(), batches)

    return handle


def lacks(error: Exception) -> InvalidUsage | None:
    """What to say where executors cannot do it."""
    found = re.search(f"{LACKING}: (.*)", str(error))
    return found and InvalidUsage(
        "the executors cannot write what this view puts out", sqlstate="0A000", detail=found[1][:DETAIL_CHARS_MAX],
        hint="the packages that they are sent are this machine's: is theirs of another kind? docs/fleet.md says more",
    )  # fmt: skip
