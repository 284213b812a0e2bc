"""What Spark's JVM is started with."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from controllers.class_archive import ARCHIVE_ENV, use_archive
from controllers.compute import heartbeat, session
from controllers.compute.heartbeat import SparkEnded
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


@pytest.mark.parametrize("code, error", [(-9, SparkEnded), (None, ConnectionError)])
def test_a_jvm_that_ends_while_spark_starts_is_told(monkeypatch, tmp_path, code, error):
    def start(*_):
        raise ConnectionError("reset by peer")

    monkeypatch.setattr(heartbeat, "LAST_WORD_S", 0.05)
    monkeypatch.setattr(session, "start_session", start)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=SimpleNamespace(poll=lambda: code)))
    with pytest.raises(error):
        session.StartingSession(MASTER, tmp_path).result()
