"""Spark's own cluster: the commands that its master and a worker are started by, as pip's ``pyspark`` brings them.

Promises: both listen at the address that they are given, and a master takes applications from drivers alone: nobody
submits or ends any by HTTP.  Each is one JVM of at most ``HEAP``, and a worker starts executors beside itself, within
the cores and the memory that it is given.  A master that is given a directory remembers there who works for whom, and
one that is started anew goes on with that.  Pure but for finding where Spark is.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from embedded.java import find_java
from journal.errors import InvalidUsage

MASTER_PORT = 7077
"""Spark's own choice."""

HEAP = "256m"
"""Of a master and of a worker: they start others and keep what these say."""

MASTER_READY = "I have been elected leader! New state: ALIVE"
WORKER_READY = "Successfully registered with master"
"""What they log once they serve."""


def spark_home() -> Path:
    """Where Spark is.  Raises ``InvalidUsage`` where it is not installed."""
    found = importlib.util.find_spec("pyspark")  # its import takes half a second, and is nobody's here
    if found is None or found.origin is None:
        raise InvalidUsage("Spark is not installed", hint="install what requirements.lock names")
    return Path(found.origin).parent


def master_command(
    host: str, port: int = MASTER_PORT, *, web_port: int = 0, memory: Path | None = None, home: Path | None = None,
) -> list[str]:  # fmt: skip
    """A master at ``host``, whose URL is ``spark://host:port``; it says how it is at ``web_port`` (any, if 0)."""
    remembers = () if memory is None else (
        "-Dspark.deploy.recoveryMode=FILESYSTEM", f"-Dspark.deploy.recoveryDirectory={memory}",
    )  # fmt: skip
    java = _java(home, "master.Master", "-Dspark.master.rest.enabled=false", *remembers)
    return [*java, "--host", host, "--port", str(port), "--webui-port", str(web_port)]


def worker_command(
    master: str, host: str, *, cores: int, memory_mb: int, work: Path, port: int = 0, web_port: int = 0,
    home: Path | None = None,
) -> list[str]:  # fmt: skip
    """A worker at ``host`` of the master with that URL, which keeps its executors' files in ``work``.

    It needs :func:`worker_environment`.
    """
    return [
        *_java(home, "worker.Worker"), "--host", host, "--port", str(port), "--webui-port", str(web_port),
        "--cores", str(cores), "--memory", f"{memory_mb}m", "--work-dir", str(work), master,
    ]  # fmt: skip


def worker_environment(home: Path | None = None) -> dict[str, str]:
    """By what a worker finds the program of its executors, which Spark's own scripts would tell it."""
    return {"SPARK_HOME": str(home or spark_home()), "SPARK_SCALA_VERSION": "2.13"}


def _java(home: Path | None, name: str, *told: str) -> Sequence[str]:
    jars = (home or spark_home()) / "jars" / "*"
    return [
        find_java(), f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError",
        # Of an executor that ended its files go with it: a task's may be gigabytes.
        "-Dspark.worker.cleanup.enabled=true", "-Dspark.worker.ui.retainedExecutors=50",
        "-Dspark.ui.killEnabled=false", *told,
        "-cp", str(jars), f"org.apache.spark.deploy.{name}",
    ]  # fmt: skip
