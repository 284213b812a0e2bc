"""One query of ours, run by Spark: if it gathers no more than fits, and also where its optimizer stumbles.

Promises: :func:`answered` gives the query's rows, or raises what Spark threw; ``QueryFailed`` 54000, before it runs,
for one whose aggregates would hold more than ``GATHERED_BYTES_MAX`` (``gathering.py``), and for one that reads much, or
may give it, and whose rows are more than ``ANSWER_BYTES_MAX``, before they are in anybody's memory.  Where there is an
outlet for them (``outlet.py``) they may be as many as they are.

Spark infers constraints on what each part of a query gives, to filter earlier.  For UNION ALL it looks up every column
that a constraint names among the outputs of a branch, also those inside an EXISTS of that branch, which are the
subquery's: ``key not found: _v0#90``, and the query fails though it is sound.  What it infers only saves work, so such
a query runs once more without.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from controllers.compute.answer_bounds import Bound
from controllers.compute.failures import TOO_MUCH, QueryFailed, ResultTooLarge, of_spark, of_too_much
from controllers.compute.gathering import GATHERED_BYTES_MAX
from controllers.compute.outlet import Outlet
from controllers.compute.spark_text import text
from controllers.spark_masters import in_this_process

log = logging.getLogger(__name__)

MUCH_ROWS = 500_000
"""In all that a query reads: Spark takes a second or two for as many, and to read them from a topic takes two more."""

ANSWER_BYTES_MAX = 256 << 20
"""Of one query that reads much, as Arrow has them: each is in the heap of Spark's driver twice for a moment, which has
1 GB by itself, and three times in Python's.  That is 20 million rows of two numbers."""

ANSWER_BYTES_LEAST = 16 << 20
"""Of one task in any case, where there are many: rows are not always spread evenly, and not all tasks have so many."""

PARTS_A_CORE = 4
"""At most, of what is shuffled by a query that reads much.  Measured on two cores, over 100 M rows: eight parts take
24 s for three million groups (one part 28) and 47 s for a join with five million rows (66)."""

PART_ROWS = 1_000_000
"""That are read for each of them, beyond one a core: of a million rows into 10,000 groups, on two cores, two parts take
a tenth less than eight."""

INFERS = "spark.sql.constraintPropagation.enabled"
STEPS_TOGETHER = "spark.sql.codegen.wholeStage"
CAUSES_MAX = 20
"""Of a chain of causes; Spark's are three or four long."""


def answered(
    spark: SparkSession, query: exp.Expression, much: int = 0, outlet: Outlet | None = None,
    before: Iterable[Iterable[exp.Expression]] = (), at_most: int = 0, one_by_one: bool = False,
) -> pa.Table:  # fmt: skip
    """The rows of ``query``; ``much``: how many it reads or may give, about, where they are many; ``at_most``: how many
    it gives, where somebody knows.  With an ``outlet`` those that are many are elsewhere by then (``outlet.py``).
    ``before`` are the questions of what it gathers: of each what that is at most, and exactly.  ``one_by_one``: each
    step asks the one before for a row, where code of Spark's own for several of them would make too many at once
    (``plan.counts.piles_up``)."""
    if much:
        spark = for_much(spark, much)
    if one_by_one:
        spark = with_settings(spark, {STEPS_TOGETHER: "false"})
    for question in before:
        if all((held := _answered(spark, text(each)).column(0)[0].as_py()) > GATHERED_BYTES_MAX for each in question):
            raise QueryFailed(
                "the aggregates of this query would gather too much", sqlstate="54000",
                detail=f"{held} bytes of values at once, at most {GATHERED_BYTES_MAX}",
                hint="filter what goes into array_agg, string_agg, mode or a percentile, or group it more finely",
            )  # fmt: skip
    return _answered(spark, text(query), bool(much), outlet, at_most)


def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """``spark`` as it is now with ``settings`` besides, for one query (2 to 6 ms): its own are those of all others."""
    made = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in settings.items():
        made.conf.set(name, value)
    return made


def for_much(spark: SparkSession, rows: int) -> SparkSession:
    """A session for one query that reads so many: what is shuffled is in parts for every core of its executors.  Small
    queries have one part, since each costs more than what it would save."""
    there = cores(spark)
    parts = min(PARTS_A_CORE * there, max(there, rows // PART_ROWS))
    settings = {"spark.sql.shuffle.partitions": str(parts)}
    if not in_this_process(spark.sparkContext.master):
        settings["spark.sql.adaptive.enabled"] = "true"  # uneven parts matter there; here it took a tenth longer
    return with_settings(spark, settings)


def cores(spark: SparkSession) -> int:
    """Of this machine, or of the executors elsewhere that are there now."""
    if in_this_process(spark.sparkContext.master):
        return os.cpu_count() or 1
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    return max(1, sum(executors.apply(i).totalCores() for i in range(executors.size())))


def _answered(
    spark: SparkSession, sql: str, much: bool = False, outlet: Outlet | None = None, at_most: int = 0
) -> pa.Table:
    try:
        return _collected(spark, sql, much, outlet, at_most)
    except (Py4JJavaError, PySparkException) as error:
        if not _stumbled(error):
            raise
        log.info("a query runs again without what Spark infers", extra={"why": str(error)[:500]})
    return _collected(with_settings(spark, {INFERS: "false"}), sql, much, outlet, at_most)


def _collected(spark: SparkSession, sql: str, much: bool, outlet: Outlet | None, at_most: int) -> pa.Table:
    frame = spark.sql(sql)
    if much and outlet is not None:
        return outlet.collected(frame, cores(spark))
    if not much:
        try:
            return frame.toArrow()
        except (Py4JJavaError, PySparkException) as error:
            if outlet is None or not isinstance(of_spark(error), ResultTooLarge):
                raise
        return outlet.collected(frame, cores(spark))  # of little there may come much
    if at_most and (all_of_it := Bound.of(frame.schema, ANSWER_BYTES_MAX)) is not None and all_of_it.exact:
        if at_most <= all_of_it.rows:
            return frame.toArrow()  # they fit, wherever they are: to count them takes a tenth of a read of a million
    # Most often what is shuffled last, or fewer, which may have more each.  To count them on a plan of its own took
    # 50 ms here, and elsewhere, where Spark decides as it goes, the whole query once more.
    guessed = int(spark.conf.get("spark.sql.shuffle.partitions"))
    bound, asked = _bounded(frame, guessed)
    planned = _tasks(asked)
    tasks = planned or guessed
    if tasks > guessed:
        bound, asked = _bounded(frame, tasks)
    found = None if bound is None or planned is None else _gathered(asked)
    if found is None and (bound is None or not bound.exact):
        found = _gathered(frame.mapInArrow(_within(_share(tasks)), frame.schema))
    elif found is None and tasks < guessed:
        found = _gathered(_bounded(frame, tasks)[1])
    if found is None:
        raise ResultTooLarge(
            "the result is too large",
            detail=f"more than {_share(tasks)} bytes of one of {tasks} tasks, all together at most {ANSWER_BYTES_MAX}",
            hint="filter it, or aggregate it",
        )
    return found


def _share(tasks: int) -> int:
    """The bytes that each of ``tasks`` may have."""
    return max(ANSWER_BYTES_MAX // tasks, ANSWER_BYTES_LEAST)


def _bounded(frame: DataFrame, tasks: int) -> tuple[Bound | None, DataFrame]:
    """``frame`` within a bound for each of ``tasks``, where there is one."""
    bound = Bound.of(frame.schema, _share(tasks))
    return bound, frame if bound is None else bound.on(frame)


def _tasks(frame: DataFrame) -> int | None:
    """How many give the rows of ``frame``; ``None`` where one of those that are asked for samples, to sort by them,
    found that it has too many: where all have the same long text Spark does not count first, and asks it anywhere."""
    try:
        return max(1, frame._jdf.queryExecution().toRdd().getNumPartitions())
    except (Py4JJavaError, PySparkException) as error:
        if not of_too_much(error):
            raise
        return None


def _gathered(frame: DataFrame) -> pa.Table | None:
    """The rows of ``frame``; ``None`` where one of its tasks found that it has too many."""
    try:
        return frame.toArrow()
    except (Py4JJavaError, PySparkException) as error:
        if not of_too_much(error):
            raise
        return None


def _within(most: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For executors: what they are given, as long as one task has no more than so many bytes of it.  It is counted in
    Python, which takes an eighth of a second of a processor in every task (measured)."""
    words = TOO_MUCH

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = 0
        for batch in batches:
            found += batch.nbytes
            if found > most:
                raise ValueError(words)
            yield batch

    return counted


def _stumbled(error: Exception) -> bool:
    """Whether the optimizer looked for a column where there is none."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(CAUSES_MAX):
        if thrown is None:
            return False
        if str(thrown.toString()).startswith("java.util.NoSuchElementException: key not found"):
            return True
        thrown = thrown.getCause()
    return False
