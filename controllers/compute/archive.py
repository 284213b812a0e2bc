"""``python -m controllers.compute.archive FILE``: start Spark, run what it will run, and keep its classes in FILE."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from controllers.class_archive import RECORD_ENV
from controllers.compute.session import MASTER, scratch_directory, start_session, stop_session, warm_up

STOP_S = 240.0
"""Ending takes 10 s on two cores: all classes are written then."""


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m controllers.compute.archive", description=__doc__)
    made.add_argument("file", type=Path, metavar="FILE", help="the archive to write")
    os.environ[RECORD_ENV] = str(made.parse_args().file.absolute())
    with tempfile.TemporaryDirectory() as data:
        spark = start_session(MASTER, scratch_directory(Path(data)))
        warm_up(spark)
        stop_session(spark, STOP_S)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
