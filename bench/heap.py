"""``python -m bench.heap``: Spark's heap under statements of which none is like another, written as a table and a plot.

Every statement is parsed, resolved and its types found, as it is for a read; one in ``--run-every`` is run too, which
takes some hundred milliseconds each.  The heap is what is in use after a full collection, by the JVM's own word.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.distinct import statement
from bench.plot import plot, svg
from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session, warm_up

TABLE = Path(__file__).with_name("heap.csv")
PLOT = Path(__file__).with_name("heap.svg")
POINTS = 50
DEPTH = 4


class Point(NamedTuple):
    statements: int
    heap_mib: float
    other_mib: float
    """Classes, compiled code: what is not heap."""
    classes: int
    parser_states: int
    ms_each: float


def measure(spark: SparkSession, statements: int, run_every: int) -> list[Point]:
    """A point after each fiftieth part of ``statements``."""
    tables(spark)
    jvm = spark.sparkContext._jvm
    beans = jvm.java.lang.management.ManagementFactory
    found = []
    part = max(1, statements // POINTS)
    started = time.monotonic()
    for n in range(1, statements + 1):
        frame = spark.sql(statement(n, DEPTH))
        if n % run_every == 0:
            frame.toArrow()
        if n % part == 0:
            each_ms = (time.monotonic() - started) * 1000 / part
            jvm.java.lang.System.gc()
            memory = beans.getMemoryMXBean()
            states = jvm.org.apache.spark.sql.catalyst.parser.AbstractParser.getDFACacheNumStates()
            point = Point(
                n, round(memory.getHeapMemoryUsage().getUsed() / 2**20, 1),
                round(memory.getNonHeapMemoryUsage().getUsed() / 2**20, 1),
                beans.getClassLoadingMXBean().getLoadedClassCount(), states, round(each_ms, 1),
            )  # fmt: skip
            found.append(point)
            print(*point, sep="\t", file=sys.stderr, flush=True)
            started = time.monotonic()
    return found


def tables(spark: SparkSession) -> None:
    """What :func:`bench.distinct.statement` reads."""
    a = "id AS k", "id % 7 AS x", "id % 5 AS y", "CAST(id AS STRING) AS s", "'aa' AS t"
    spark.range(100).selectExpr(*a).createOrReplaceTempView("a")
    spark.range(100).selectExpr("id AS k", "id % 3 AS y", "'bb' AS t").createOrReplaceTempView("b")


def drawn(points: list[Point]) -> str:
    """The heap in MiB over statements, as SVG."""
    count = [point.statements for point in points]
    says = f"heap in use after a collection, MiB, over {count[-1]:,} statements of which none is like another"
    return svg(plot(says, count, {"heap": [point.heap_mib for point in points]}))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.heap", description=__doc__)
    parser.add_argument("--statements", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--run-every", type=int, default=50, help="which of them are run too (default: %(default)s)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        spark = start_session(MASTER, scratch_directory(Path(data)))
        try:
            warm_up(spark)
            points = measure(spark, arguments.statements, arguments.run_every)
        finally:
            stop_session(spark)
    with TABLE.open("w", newline="") as file:
        csv.writer(file).writerows([Point._fields, *points])
    PLOT.write_text(drawn(points))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
