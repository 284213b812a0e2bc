"""``tidemark demo`` as a user runs it: exact, exact when run again on top, gone after Ctrl-C at any moment."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from embedded.data_dir import read_run
from embedded.layout import ROOT
from embedded.ports import free_ports

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

SAMPLE = 2000


class Run:
    """The command as a process of its own, its lines for people collected as they come."""

    def __init__(self, data: Path, *options: str) -> None:
        port, broker_port = free_ports(2)
        command = [sys.executable, "-P", "-m", "cli", "demo", "--json", "--data", str(data), "--port", str(port),
                   "--broker-port", str(broker_port), "--sample", str(SAMPLE), *options]  # fmt: skip
        self.process = subprocess.Popen(
            command, cwd=data.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_line(self, text: str, timeout_s: float = 240) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or any(text in line for line in self.lines), timeout_s)
            assert any(text in line for line in self.lines), "".join(self.lines)

    def finish(self) -> tuple[int, dict]:
        """Exit code and the one JSON object."""
        out = self.process.stdout.read()
        return self.process.wait(timeout=60), json.loads(out)


def test_it_is_exact_and_a_second_run_goes_on_where_the_first_ended(tmp_path: Path, jars: Path) -> None:
    data = tmp_path / "data"
    corrected = 0
    for number in (1, 2):
        code, found = Run(data, "--speed", "1000" if number == 1 else "0").finish()
        assert (code, found["exact"], found["wrong"]) == (0, True, []), found
        assert found["rows"] == SAMPLE and found["total_rows"] == number * SAMPLE
        assert all(view["exact"] for view in found["views"].values())
        assert found["freshness_ms"]["p50"] > 0 and found["rows_per_s"] > 0
        assert found["answers"] > 0
        assert found["corrections"] >= 12 and found["total_corrections"] == corrected + found["corrections"]
        corrected = found["total_corrections"]


@pytest.mark.parametrize("moment", ["broker", pytest.param("adapter-1", marks=pytest.mark.long), "sent "])
def test_an_interrupt_at_any_moment_leaves_nothing(moment: str, tmp_path: Path, jars: Path) -> None:
    run = Run(tmp_path / "data", "--speed", "100")
    run.wait_line(moment)
    running = (read_run(tmp_path / "data") or {}).get("processes", {})
    watched = [os.pidfd_open(pid) for pid in running.values()]
    children = _descendants(run.process.pid)
    assert children
    run.process.send_signal(signal.SIGINT)
    code, found = run.finish()
    assert code != 0 and found["exact"] is False
    for pidfd in watched:
        assert select.select([pidfd], [], [], 1)[0]
        os.close(pidfd)
    assert not [pid for pid in children if _alive(pid)]


def _descendants(pid: int) -> set[int]:
    """Every process below ``pid``."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            try:
                below = {int(child) for child in task.read_text().split()}
            except OSError:
                continue
            todo += below - found
            found |= below
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
