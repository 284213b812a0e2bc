"""What is tied by the tether ends: politely, by force, and when the tether itself is killed."""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

import pytest

from embedded import tether
from embedded.child import Child, ChildSpec
from journal.errors import Unavailable

READY = 'import json, os; print(json.dumps({"event": "ready", "pid": os.getpid()}), flush=True);'


def start(tmp_path: Path, code: str, **options) -> Child:
    child = Child(ChildSpec("one", [sys.executable, "-c", code], tmp_path / "one.log", **options))
    return child


def wait_gone(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], 15)[0])


def test_a_child_that_listens_ends_well(tmp_path: Path) -> None:
    child = start(tmp_path, READY + "import sys; sys.stdin.read(); sys.exit(7)")
    assert child.wait_ready()["pid"] == child.pid
    os.kill(child.pid, 0)
    # It gets both end-of-file and SIGTERM; whichever it heeds first.
    assert child.stop() in (7, 128 + signal.SIGTERM)


def test_a_child_that_heeds_nothing_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embedded.child.GRACE_S", 0.5)
    deaf = READY + "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause(); signal.pause()"
    child = start(tmp_path, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + deaf)
    child.wait_ready()
    assert child.stop() == 128 + signal.SIGKILL


def test_what_a_child_leaves_behind_is_killed_too(tmp_path: Path) -> None:
    leaves = (
        "import json, os, subprocess, sys;"
        "left = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], start_new_session=True);"
        "print(json.dumps({'event': 'ready', 'left': left.pid}), flush=True); sys.stdin.read()"
    )
    child = start(tmp_path, leaves)
    left = os.pidfd_open(child.wait_ready()["left"])
    child.stop()
    assert wait_gone(left)
    os.close(left)


def test_it_ends_when_the_tether_is_killed(tmp_path: Path) -> None:
    child = start(tmp_path, READY + "import signal; signal.pause()")
    pidfd = os.pidfd_open(child.wait_ready()["pid"])
    child._tether.kill()
    assert wait_gone(pidfd)
    os.close(pidfd)
    assert child.exited.result(timeout=10) != 0


def test_a_child_that_never_serves_says_why(tmp_path: Path) -> None:
    child = start(tmp_path, "import sys; sys.exit('the reason')")
    with pytest.raises(Unavailable) as raised:
        child.wait_ready()
    assert "code 1" in raised.value.message
    assert "the reason" in raised.value.detail
    assert child.exited.result(timeout=10) == 1


def test_a_child_that_is_late_says_so(tmp_path: Path) -> None:
    child = start(tmp_path, "import signal; signal.pause()", ready_timeout_s=0.2)
    with pytest.raises(Unavailable, match="not ready within"):
        child.wait_ready()
    child.stop()


def test_logs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tether, "LOG_BYTES_MAX", 1000)
    log = tether._Log(str(tmp_path / "a.log"))
    for _ in range(100):
        log.write(b"x" * 100)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 2400
    assert {file.name for file in tmp_path.iterdir()} == {"a.log", "a.log.1"}
