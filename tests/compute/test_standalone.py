"""Spark elsewhere: a master, and workers that have nothing of ours and see none of our directories."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from controllers.compute.travelling import PLACE, PYTHON
from tests.compute.remote_cluster import ALL_IS_BOUND, MASTER_ANEW, MASTER_STAYS
from tests.compute.standalone_spark import ROOT, StandaloneSpark, no_mounts

HEAP = "520m"
"""Of the driver: what it may hold of rows is far less than there are.  Spark wants 450."""

CODE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from tests.compute.remote_cluster import main
main(*sys.argv[1:])
"""

WITHOUT = f"""#!/bin/sh
PYTHONPATH=$(echo "$PYTHONPATH" | sed s/{PLACE}//g) exec {PYTHON} "$@"
"""


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.timeout(480)
@pytest.mark.parametrize(("then", "bug"), [
    (MASTER_STAYS, ""), pytest.param(MASTER_ANEW, "", marks=pytest.mark.long),
    pytest.param(MASTER_STAYS, "task_counted_twice", marks=pytest.mark.long),
])  # fmt: skip
def test_workers_with_an_empty_python_read_write_and_lose_an_executor(broker, env_name, tmp_path, then, bug):
    if reason := no_mounts():
        pytest.skip(reason)
    driver, shared = tmp_path / "driver", tmp_path / "shared"
    driver.mkdir()
    shared.mkdir()
    spark = StandaloneSpark(tmp_path, [driver])
    spark.program("python-without", WITHOUT)
    try:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"TIDEMARK_SPARK_MEMORY": HEAP, "SPARK_LOCAL_IP": "127.0.0.1"}
        with subprocess.Popen(
            [sys.executable, "-c", CODE, str(ROOT), spark.url, str(driver), str(shared), broker, env_name,
             "python-without", then, bug],
            env=environment, cwd=driver, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        ) as program:
            said = []
            try:
                for line in program.stdout:
                    print(line, end="")
                    said.append(line)
                    if line == f"{MASTER_ANEW}\n":
                        spark.start_master_anew()
            except BaseException:
                program.kill()  # nobody waits for it any more
                raise
        if bug:
            assert program.returncode != 0 and f"AssertionError: {ALL_IS_BOUND}" in said[-1]
        else:
            assert program.returncode == 0 and said[-1] == "done\n"
    finally:
        spark.stop()
