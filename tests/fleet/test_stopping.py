"""Controllers and subscribers stop within a supervisor's grace though what they wait for never comes.

As the adapter's (``tests/adapter/test_stopping.py``): librdkafka waits by the wall clock, so after the clock was set
back by an hour a poll of a tenth of a second takes an hour, and whoever joins the thread that polls does too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catalog_log.bootstrap import create_environment
from embedded.child import GRACE_S
from journal.names import TopicNames
from judge.live import shim
from judge.live.clock import HOUR_MS, Clocks

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable())),
]

POLLS_BEGIN_S = 1.0
"""Until every poll in the process began under the present clock, which tells nobody: four of the longest (0.25 s)."""


@pytest.mark.parametrize("command", [
    ("controllers.storage",),
    ("subscribers", "--controller", "storage"),
    # Spark takes its time to start.
    pytest.param(("controllers.compute", "--data", "."), marks=[pytest.mark.long, pytest.mark.timeout(600)]),
], ids=lambda command: command[0])  # fmt: skip
def test_it_stops_though_its_clock_was_set_back(
    broker: str, env_name: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    create_environment(broker, TopicNames(env_name))
    clocks = Clocks(tmp_path)
    clocks.shift("it", 0)
    _, environment = clocks.start_as("it", [], {})
    root = Path(__file__).resolve().parents[2]
    argv = [sys.executable, "-P", "-m", command[0], "--kafka", broker, "--env", env_name, *command[1:]]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, **environment, "PYTHONPATH": str(root)},
    ) as started:  # fmt: skip
        try:
            line = started.stdout.readline()
            assert line, started.stderr.read()
            assert json.loads(line)["event"] == "ready"
            clocks.shift("it", HOUR_MS)
            time.sleep(POLLS_BEGIN_S)
            clocks.shift("it", 0)
            started.send_signal(signal.SIGTERM)
            assert started.wait(timeout=GRACE_S) == 0
            assert "was left behind" in started.stderr.read(), "the clock hurt nothing, so this shows nothing"
        finally:
            started.kill()
