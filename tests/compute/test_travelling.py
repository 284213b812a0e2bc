"""What executors elsewhere are sent is all that their Python needs, and is made once."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from controllers.compute import travelling
from controllers.compute.intake import TASK_MODULE as READING
from controllers.compute.judging_desk import TASK_MODULE as JUDGING
from controllers.compute.outlet import TASK_MODULE as WRITING
from journal.errors import InvalidUsage

ELSEWHERE = "spark://master:7077"

CODE = """
import importlib, os, sys
sys.path[:0] = sys.argv[1:-4]
for name in ("functions.registry", *sys.argv[-3:]):
    importlib.import_module(name)
strange = [m.__file__ for m in sys.modules.values() if "site-packages" in (getattr(m, "__file__", None) or "")]
assert not strange, strange
import pyarrow
assert pyarrow.__file__.startswith(sys.argv[-4]), pyarrow.__file__
print("found")
"""


def bare(unpacked: Path, modules: Path) -> subprocess.CompletedProcess:
    """A Python that sees nothing that is installed here, as a worker's: Spark's own modules, and what is sent."""
    spark = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    copies = [unpacked.parent / each.name for each in spark]
    for copy, each in zip(copies, spark, strict=True):
        copy.write_bytes(each.read_bytes())  # theirs is not among what is installed here
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", CODE, str(unpacked), str(modules), *map(str, copies), str(unpacked),
         READING, WRITING, JUDGING],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_bare_python_finds_all_that_tasks_import(tmp_path):
    unpacked, modules = tmp_path / "unpacked", travelling.our_modules(tmp_path / "tidemark.zip")
    unpacked.mkdir()
    without = bare(unpacked, modules)
    assert without.returncode != 0 and "No module named" in without.stderr
    with zipfile.ZipFile(travelling.packages(tmp_path)) as archive:
        archive.extractall(unpacked)
    done = bare(unpacked, modules)
    assert done.stdout == "found\n", done.stderr


def test_it_is_made_once_and_again_for_other_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(travelling, "DISTRIBUTIONS", ("fastavro",))
    made = travelling.packages(tmp_path)
    before = made.stat()
    assert travelling.packages(tmp_path) == made and made.stat() == before
    monkeypatch.setattr(travelling, "DISTRIBUTIONS", ("py4j",))
    other = travelling.packages(tmp_path)
    assert [*(tmp_path / "packages").iterdir()] == [other] and other != made
    monkeypatch.setattr(travelling, "DISTRIBUTIONS", ("py4j", "nobody-has-this"))
    with pytest.raises(InvalidUsage, match="nobody-has-this is not installed"):
        travelling.packages(tmp_path)
    assert [*(tmp_path / "packages").iterdir()] == [other]


def test_whose_python_it_is():
    assert travelling.python(ELSEWHERE, {}) == f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert travelling.python(ELSEWHERE, {"TIDEMARK_SPARK_PYTHON": "/opt/python"}) == "/opt/python"
    assert travelling.settings(ELSEWHERE) == {"spark.executorEnv.PYTHONPATH": travelling.PLACE}
    for master in ("local[16]", "local-cluster[2,1,1024]"):
        assert travelling.python(master, {"TIDEMARK_SPARK_PYTHON": "/opt/python"}) == sys.executable
        assert travelling.settings(master) == {}
