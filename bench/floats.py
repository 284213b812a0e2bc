"""What it costs to look whether floats became infinite: in Spark, over ten million rows, on two threads.

    python -m bench.floats

Each pair of statements is asked in turns; told are the least and the median, in milliseconds.  ``sum`` looks
(sql/typing/float_ranges.py); chains of operators over columns do not, for what this says of them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

ROWS, TIMES = 10_000_000, 12

INFINITY, REFUSED = "CAST('Infinity' AS DOUBLE)", "RAISE_ERROR('overflow')"

SUM = f"CASE WHEN NOT (ABS(SUM(a)) < {INFINITY}) AND MAX(ABS(a)) < {INFINITY} THEN {REFUSED} ELSE SUM(a) END"


def looked(reckoned: str) -> str:
    finite = f"NOT (ABS({reckoned}) < {INFINITY}) AND GREATEST(ABS(a), ABS(b)) < {INFINITY}"
    nothing = f"WHEN {reckoned} = 0 AND LEAST(ABS(a), ABS(b)) > 0 THEN {REFUSED} " if "*" in reckoned else ""
    return f"SUM(CASE WHEN {finite} THEN {REFUSED} {nothing}ELSE {reckoned} END)"


PAIRS = {
    "sum(a)": ("SUM(a)", SUM),
    "sum(a + b)": ("SUM(a + b)", looked("a + b")),
    "sum(a * b)": ("SUM(a * b)", looked("a * b")),
}


def main() -> None:
    draw = numpy.random.default_rng(1)
    table = pa.table({"a": draw.random(ROWS), "b": draw.random(ROWS) + 0.1})
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as place:
        pq.write_table(table, Path(place) / "rows.parquet")
        spark.read.parquet(place).createOrReplaceTempView("t")
        for name, pair in PAIRS.items():
            took: dict[str, list[float]] = {each: [] for each in pair}
            for _ in range(TIMES):
                for each in pair:
                    began = time.perf_counter()
                    spark.sql(f"SELECT {each} FROM t").collect()
                    took[each].append(1000 * (time.perf_counter() - began))
            told = [f"{min(found[2:]):.0f} / {median(found[2:]):.0f} ms" for found in took.values()]
            print(f"{name:12} plain {told[0]}, looked {told[1]}")
    spark.stop()


if __name__ == "__main__":
    main()
