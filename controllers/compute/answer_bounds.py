"""How many rows one of Spark's tasks may give back, counted by Spark itself while it makes them.

A task's rows are in its executor's heap as a whole before anybody looks at how many they are, so it has to stop where
they are too many.  Promises: what :meth:`Bound.on` gives back are the rows of the frame, in their order, or it fails
with :data:`TOO_MUCH` in its words before a task holds more than its share.  Where a bound is ``exact`` it fails for
nothing else; otherwise a row's texts may just be longer than what is set aside for them, and it takes somebody who
counts bytes.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.classic.column import Column as JvmColumn

from controllers.compute.failures import TOO_MUCH

_WIDTHS: dict[type[t.DataType], int] = {
    t.BooleanType: 1, t.ByteType: 1, t.ShortType: 2, t.IntegerType: 4, t.LongType: 8, t.FloatType: 4, t.DoubleType: 8,
    t.DecimalType: 16, t.DateType: 4, t.TimestampType: 8, t.TimestampNTZType: 8, t.DayTimeIntervalType: 8,
    t.YearMonthIntervalType: 4, t.NullType: 0,
}  # fmt: skip
"""Bytes of a value, as Arrow has it."""

_MEASURED = (t.StringType, t.BinaryType)
"""Of those Spark says how long each is."""

MEASURED_BYTES = 256
"""Set aside for each such value of a row, which share it: of 16 MiB, the least that a task may have
(``running.ANSWER_BYTES_LEAST``), 60,000 rows of a text are told by it."""

_OFFSET_BITS, _VALID_BITS = 32, 1
"""Of each value beside it: where the next one begins, of those that are measured, and whether there is one."""

_IN_TASK = (1 << 33) - 1
"""The bits of ``monotonically_increasing_id`` that count the rows of a task."""


class Bound(NamedTuple):
    """At most ``rows`` of a task, of which each has ``measured`` bytes in the columns called so."""

    rows: int
    measured: int
    columns: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return not self.columns

    @classmethod
    def of(cls, schema: t.StructType, share: int) -> Bound | None:
        """Of what takes ``share`` bytes of a task; ``None`` where there is a column of which nobody says how long its
        values are, or two of one name."""
        columns = tuple(field.name for field in schema.fields if isinstance(field.dataType, _MEASURED))
        fixed = [_WIDTHS.get(type(field.dataType)) for field in schema.fields if field.name not in columns]
        if None in fixed or len({name.lower() for name in schema.names}) < len(schema.names):
            return None
        measured = MEASURED_BYTES * len(columns)
        bits = 8 * (measured + sum(width or 0 for width in fixed))
        bits += _OFFSET_BITS * len(columns) + _VALID_BITS * len(schema.fields)
        return cls(8 * share // max(bits, 1), measured, columns)

    def on(self, frame: DataFrame) -> DataFrame:
        """``frame`` within it.  Spark moves no condition that counts rows before what makes them; beside the count in a
        column it moves none before the making of texts either, which it would do once for the condition and again."""
        names, count = frame.columns, "_".join(["rows", *frame.columns])
        fits = _column(count) < f.lit(self.rows)
        if self.columns:
            fits = fits & (reduce(add, map(_length, self.columns)) <= f.lit(self.measured))
        counted = frame.withColumn(count, _counted(frame.sparkSession).bitwiseAND(f.lit(_IN_TASK)))
        fitting = counted.where(f.when(fits, f.lit(True)).otherwise(f.raise_error(f.lit(TOO_MUCH)).cast("boolean")))
        return fitting.select(*map(_column, names))


def _counted(spark: SparkSession) -> Column:
    """``monotonically_increasing_id()``, which our sessions do not know by its name (``session.close_functions``)."""
    jvm = spark.sparkContext._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    return JvmColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expressions.MonotonicallyIncreasingID()))


def _column(name: str) -> Column:
    quoted = name.replace("`", "``")
    return f.col(f"`{quoted}`")


def _length(name: str) -> Column:
    return f.coalesce(f.octet_length(_column(name)).cast("bigint"), f.lit(0))
