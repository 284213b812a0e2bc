"""Tasks of Spark's that answer for pieces of something, each in the Python of an executor.

A piece is not one of Spark's own: to plan a data source that is written in Python starts a process first (a second),
for a plan that is known.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from controllers.compute.outlet import LACKING, lacks
from controllers.compute.running import cores
from controllers.spark_masters import in_this_process
from journal.errors import InvalidUsage


class Lacking(Exception):
    """Executors lack what it takes, for the reason ``why``."""

    def __init__(self, why: InvalidUsage) -> None:
        super().__init__(why.message)
        self.why = why


def answers(spark: SparkSession, module: str, order: tuple, pieces: Sequence[bytes]) -> list[bytes]:
    """What ``answer(order, piece, task)`` of ``module`` says of each of ``pieces``, in any order; ``task`` is a name
    that no other call is given.  Of each piece one answer counts, as Spark has it.

    Raises :class:`Lacking`, and what Spark throws."""
    frame = spark.range(0, len(pieces), 1, _tasks(spark, len(pieces)))
    try:
        said = frame.mapInArrow(_by(module, order, pieces), "said binary").toArrow()
    except PySparkException as error:
        if (lacking := lacks(error)) is None:
            raise
        raise Lacking(lacking) from error
    return said.column(0).to_pylist()


def _tasks(spark: SparkSession, pieces: int) -> int:
    """Where executors are in this process, as many as there are cores, one piece after another: each task has a Python
    of its own, which takes as long to begin as a piece takes.  Ten million rows of three columns on two cores: 8.7 s
    and 15 of a processor by two tasks, 18 s and 34 by sixteen."""
    return min(pieces, cores(spark)) if in_this_process(spark.sparkContext.master) else pieces


def _by(
    module: str, order: tuple, pieces: Sequence[bytes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For executors: nothing of ours in it, since theirs is what is missing where their Python lacks a package."""
    words = LACKING

    def handle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            answering = importlib.import_module(module)
        except ImportError as error:
            raise RuntimeError(f"{words}: {error}") from error
        context = TaskContext.get()
        assert context is not None, "it is no task"
        for batch in batches:
            for number in batch.column(0).to_pylist():
                said = answering.answer(order, pieces[number], f"{context.taskAttemptId()}_{number}")
                yield pa.RecordBatch.from_arrays([pa.array([said], pa.binary())], names=["said"])

    return handle
