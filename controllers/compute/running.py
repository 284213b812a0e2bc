"""One query of ours, run by Spark: also where its optimizer stumbles over what it infers.

Promises: :func:`answered` gives the query's rows, or raises what Spark threw.

Spark infers constraints on what each part of a query gives, to filter earlier.  For UNION ALL it looks up every column
that a constraint names among the outputs of a branch, also those inside an EXISTS of that branch, which are the
subquery's: ``key not found: _v0#90``, and the query fails though it is sound.  What it infers only saves work, so such
a query runs once more without.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

INFERS = "spark.sql.constraintPropagation.enabled"
CAUSES_MAX = 20
"""Of a chain of causes; Spark's are three or four long."""

_lock = threading.Lock()
_without = 0
"""How many queries run without inference at this moment; the setting is the session's, which all of them share."""


def answered(spark: SparkSession, text: str) -> pa.Table:
    """The rows of the query ``text``."""
    try:
        return spark.sql(text).toArrow()
    except (Py4JJavaError, PySparkException) as error:
        if not _stumbled(error):
            raise
        log.info("a query runs again without what Spark infers", extra={"why": str(error)[:500]})
    with _nothing_inferred(spark):
        return spark.sql(text).toArrow()


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


@contextmanager
def _nothing_inferred(spark: SparkSession) -> Iterator[None]:
    global _without
    with _lock:
        _without += 1
        spark.conf.set(INFERS, "false")
    try:
        yield
    finally:
        with _lock:
            _without -= 1
            if not _without:
                spark.conf.set(INFERS, "true")
