"""What Spark's JVM is started with."""

from __future__ import annotations

import shlex
from pathlib import Path

from controllers.class_archive import ARCHIVE_ENV, use_archive
from controllers.compute.session import MASTER, settings


def options(scratch: str) -> list[str]:
    return shlex.split(settings(MASTER, Path(scratch))["spark.driver.extraJavaOptions"])


def test_a_path_with_spaces_and_quotes_is_one_option(monkeypatch):
    monkeypatch.delenv(ARCHIVE_ENV, raising=False)
    for scratch in ("/data/spark", "/my data/spark", '/my "own" data', "/back\\slash"):
        assert options(scratch)[-1] == f"-Djava.io.tmpdir={scratch}"
        pools = settings(MASTER, Path(scratch))["spark.scheduler.allocation.file"]
        assert pools == f"file://{scratch}/pools.xml", "Hadoop reads no escapes"


def test_an_archive_is_used_where_the_environment_names_one(monkeypatch):
    monkeypatch.setenv(ARCHIVE_ENV, "/my checkout/spark.jsa")
    assert options("/data")[-3:] == use_archive("/my checkout/spark.jsa")
