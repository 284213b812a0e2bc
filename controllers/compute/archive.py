"""``python -m controllers.compute.archive FILE``: start Spark, run what it will run, and keep its classes in FILE."""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from controllers.class_archive import RECORD_ENV
from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session, warm_up
from controllers.compute.ticks import BEGIN_S, Ticker
from journal.errors import Unavailable

STOP_S = 240.0
"""Ending takes 10 s on two cores: all classes are written then."""


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m controllers.compute.archive", description=__doc__)
    made.add_argument("file", type=Path, metavar="FILE", help="the archive to write")
    os.environ[RECORD_ENV] = str(made.parse_args().file.absolute())
    with tempfile.TemporaryDirectory() as data:
        scratch = scratch_directory(Path(data))
        spark = start_session(MASTER, scratch)
        warm_up(spark)
        _tick(spark, scratch)
        _read_file(spark, scratch)
        stop_session(spark, STOP_S)
    return 0


def _tick(spark: SparkSession, scratch: Path) -> None:
    """What makes a cluster tick: 400 classes, of which the first tick would wait half a second of a processor.

    Raises ``Unavailable`` where none begins."""
    began = threading.Event()
    ticker = Ticker(spark, scratch / "ticks", lambda _target: began.set())
    ticker.move_to(1)
    if not began.wait(BEGIN_S):
        raise ticker.failure() or Unavailable("spark does not begin a tick")
    ticker.stop()


def _read_file(spark: SparkSession, scratch: Path) -> None:
    """As settled rows are read, by whoever reads first."""
    path = scratch / "settled.parquet"
    pq.write_table(pa.table({"k": [1, 2], "name": ["a", None]}), path)
    spark.read.parquet(f"file://{path}").createOrReplaceTempView("settled")
    spark.sql("SELECT name, COUNT(*) AS n, MAX(k) AS k FROM settled WHERE k > 1 GROUP BY name").toArrow()


if __name__ == "__main__":
    raise SystemExit(main())
