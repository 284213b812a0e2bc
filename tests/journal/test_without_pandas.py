"""A process that goes without pandas has everything else."""

import subprocess
import sys

import pytest

pytest.importorskip("pandas", reason="there is nothing to go without")

ASKED = """
import sys
import controllers.storage.__main__
import duckdb, pyarrow
numbers = pyarrow.table({"n": pyarrow.array([3, None, 1])})
assert duckdb.sql("select sum(n) from numbers").fetchall() == [(4,)]
assert duckdb.sql("select n from numbers order by n").fetch_arrow_table()["n"].to_pylist() == [1, 3, None]
try:
    numbers.to_pandas()
except ModuleNotFoundError as error:
    print(error.name, "pandas" in sys.modules)
"""


def test_a_storage_controller_goes_without_pandas():
    """Python lists become arrays and DuckDB answers as ever; who wants a data frame is told why there is none."""
    found = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout) == (0, "pandas False\n"), found.stderr
