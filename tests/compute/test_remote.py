"""A Spark whose executors are other processes reads what its driver could not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = 1_200_000
"""What was inserted when a driver of a gigabyte ended."""

HEAP = "520m"
"""Of the driver: half of what was not enough.  Spark wants 450."""

CODE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from tests.compute.{module} import main
main(*sys.argv[1:])
"""


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
def test_executors_elsewhere_read_more_rows_than_the_driver_could_hold(tmp_path):
    run(tmp_path, "remote_reads", ROWS)


def run(directory: Path, module: str, *arguments: object) -> None:
    # Its executors write into a directory of its home: one of the test's own.
    home = directory / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"TIDEMARK_SPARK_MEMORY": HEAP, "SPARK_HOME": str(home)}
    code = CODE.format(module=module)
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), str(directory / "data"), *map(str, arguments)],
        env=environment, cwd=directory, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr[-5000:]
