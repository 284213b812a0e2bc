"""Tables of ours for Spark to read: small ones go to it as rows, larger ones as files that it reads a piece at a time.

Promises: whatever the size of a table, no more than ``ROWS_BYTES_MAX`` of it is in the driver's heap for having been
handed over.  A file is read by the executors, from this machine's disk where they run in this process and from
:mod:`controllers.compute.file_server` where they are elsewhere.  :meth:`Handing.take_back` is what ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, FloatType

from values.types import SqlType, spark_type

ROWS_BYTES_MAX = 4 << 20
"""As Arrow has them.  As rows they are some ten times as much in Spark's heap, and again in its tasks: eight at once
(four reads and a tick of two relations each) are below a third of 1 GB.  A file of as much is read sooner, too."""

GROUP_ROWS = 128 * 1024
"""In one group of a file's rows, the least that a task reads at once."""


def schema_sql(columns: Iterable[tuple[str, SqlType]]) -> str:
    """Of columns by their names."""
    return ", ".join(f"{name} {spark_type(sql_type)}" for name, sql_type in columns)


def written(table: pa.Table, where: Path | BinaryIO) -> None:
    """Write ``table`` as a file that Spark reads."""
    # Not LZ4: Spark (4.1) cannot read every dictionary in it that it looks into to skip what a filter rules out.
    pq.write_table(table, where, compression="snappy", row_group_size=GROUP_ROWS)


def _to_be_filtered(frame: DataFrame) -> DataFrame:
    """``frame`` for queries of any condition.

    A file's statistics leave NaN out, and so do those of Spark's cache, while for Spark as for Postgres it is more than
    every number: a condition that looks at them passes over rows that meet it (Spark 4.1; ``x > 1`` of a file with 0
    and NaN gives none).  So each float is behind a function that changes nothing and that no reader looks through.
    """
    fields = frame.schema.fields
    floats = {field.name for field in fields if isinstance(field.dataType, FloatType | DoubleType)}
    if not floats:
        return frame
    quoted = {field.name: f"`{field.name}`" for field in fields}
    # As text: an expression of PySpark's is some calls into the JVM for each of 1,600 columns.
    return frame.selectExpr(*(f"greatest({q}, {q}) AS {q}" if name in floats else q for name, q in quoted.items()))


class Handing:
    """Over the files of ``directory``; ``uri`` tells by which name Spark reads one.  Any thread may call it."""

    def __init__(self, spark: SparkSession, directory: Path, uri: Callable[[Path], str] = str) -> None:
        self.spark = spark
        self.directory = directory
        self._uri = uri

    def place(self, name: str) -> str:
        """Where tasks of Spark's write a file called ``name``, that it reads later."""
        return self._uri(self.directory / name)

    def write(self, table: pa.Table, name: str) -> Path:
        """``table`` as a file called ``name``."""
        path = self.directory / f"{name}.parquet"
        written(table, path)
        return path

    def frame(self, paths: Iterable[Path], schema: str) -> DataFrame:
        """What Spark reads the files by, which are in the directory; ``schema`` as in SQL.  For queries it is
        :meth:`call`."""
        return self.spark.read.schema(schema).parquet(*map(self._uri, paths))

    def show(self, table: pa.Table, view: str, schema: str) -> None:
        """Have Spark know ``table``, which is of ``schema``, as ``view``."""
        if table.nbytes > ROWS_BYTES_MAX:
            self.call(self.frame([self.write(table, view)], schema), view)
            return
        # Of a table with an empty chunk in it Spark takes the rows before that (4.1).
        self.spark.createDataFrame(table.combine_chunks()).createOrReplaceTempView(view)

    def call(self, frame: DataFrame, view: str) -> None:
        """Have Spark know ``frame``, of files or of its cache, as ``view``, for queries of any condition."""
        _to_be_filtered(frame).createOrReplaceTempView(view)

    def take_back(self, view: str) -> None:
        """Nobody reads ``view`` any more."""
        self.spark.catalog.dropTempView(view)
        (self.directory / f"{view}.parquet").unlink(missing_ok=True)
