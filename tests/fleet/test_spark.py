"""Spark's own cluster as the fleet runs it: a master, a worker, what their checks say, and a master started anew."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from embedded.child import Child, ChildSpec
from embedded.ports import HOST, free_ports
from embedded.standalone import MASTER_READY, WORKER_READY
from fleet import health, spark
from journal.errors import Unavailable
from tests.compute.standalone_spark import LOGGING, READY_S

ROOT = Path(__file__).resolve().parents[2]
RECOVERED = "Recovery complete"


def child(name: str, directory: Path, ready: str, *arguments: str) -> Child:
    logging = directory / "log4j2.properties"
    logging.write_text(LOGGING)
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"],
                   "JAVA_TOOL_OPTIONS": f"-Dlog4j2.configurationFile={logging}"}  # fmt: skip
    environment |= {key: value for key, value in os.environ.items() if key == "JAVA_HOME"}
    argv = [sys.executable, "-m", "fleet.spark", *arguments, "--host", HOST, "--data", str(directory / arguments[0])]
    named = [f"{key}={value}" for key, value in environment.items()]
    return Child(ChildSpec(
        name, ["env", "-i", *named, *argv], directory / f"{name}.log", cwd=directory,
        ready=lambda line: {} if ready in line else None, ready_timeout_s=READY_S,
    ))  # fmt: skip


@pytest.mark.integration
@pytest.mark.long
def test_a_master_that_is_started_anew_remembers_its_worker(tmp_path: Path) -> None:
    port, master_web, worker_web = free_ports(3)
    master = ("master", "--port", str(port), "--web-port", str(master_web))
    children = []
    try:
        children.append(child("master", tmp_path, MASTER_READY, *master))
        children[0].wait_ready()
        assert health.spark(f"{HOST}:{master_web}") == "master of 0"
        url = f"spark://{HOST}:{port}"
        worker = ("worker", "--master", url, "--web-port", str(worker_web))
        children.append(child("worker", tmp_path, WORKER_READY, *worker))
        children[1].wait_ready()
        assert health.spark(f"{HOST}:{worker_web}") == f"worker of {url}"
        assert health.spark(f"{HOST}:{master_web}") == "master of 1"
        os.kill(children[0].pid, signal.SIGKILL)
        children[0].stop()
        with pytest.raises(Unavailable, match=str(master_web)):
            health.spark(f"{HOST}:{master_web}")
        children.append(child("again", tmp_path, RECOVERED, *master))
        children[2].wait_ready()
        assert health.spark(f"{HOST}:{master_web}") == "master of 1"
    finally:
        for each in children:
            each.order_stop()
        for each in children:
            each.stop()


def test_nobody_submits_or_ends_applications_by_http(tmp_path: Path) -> None:
    for kind, more in (("master", ()), ("worker", ("--master", "spark://m:7077"))):
        argv, _ = spark.command(spark.parser().parse_args([kind, *more, "--data", str(tmp_path)]))
        assert "-Dspark.ui.killEnabled=false" in argv
        assert ("-Dspark.master.rest.enabled=false" in argv) == (kind == "master")
