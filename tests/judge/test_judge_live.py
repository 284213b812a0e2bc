"""A short real run: one broker, real processes, every workload; each kind of process is killed, paused or restarted.

What is judged here is the product.  That the judge would have noticed is shown by planted bugs and doctored runs.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from embedded.jars import ensure_jars
from embedded.layout import JARS
from tests.judge.judging import judge_and_write
from tests.judge.live.nemesis import QUICK
from tests.judge.live.run import RunConfig, Status, run
from tests.judge.live.stack import one_broker
from tests.judge.verdict import VALID
from tests.judge.workloads.registry import WORKLOADS

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

OPERATIONS = 20_000
SECONDS = 85.0
SEED = 81
"""Its plan hurts every kind of process within the first six faults (asserted below)."""

PROCESS_KINDS = {"broker", "adapter", "subscriber", "storage", "compute"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], list[str]]:
    """The directory, what was judged, and the phases it went through."""
    ensure_jars(JARS, print)
    out = tmp_path_factory.mktemp("judge") / "run"
    phases: list[str] = []

    def show(status: Status) -> None:
        if not phases or phases[-1] != status.phase:
            phases.append(status.phase)
            print(f"{time.strftime('%X')} {status.phase}: {status.completed} operations, {status.faults} faults")

    config = RunConfig(
        out, 2, SECONDS, QUICK, operations=OPERATIONS, seed=SEED, adapters=2, few_clients=True, rate=1.6, settle_s=6.0
    )
    run(config, one_broker, show)
    return out, judge_and_write(out), phases


@pytest.mark.timeout(600)
def test_nothing_is_lost_doubled_or_stale(recorded: tuple[Path, dict[str, Any], list[str]]) -> None:
    _, verdict, _ = recorded
    found = [(c["checker"], c["valid"], c["reason"], c["anomalies"][:3]) for c in verdict["checkers"]]
    assert verdict["verdict"] == VALID, [each for each in found if each[1] != VALID]


@pytest.mark.timeout(600)
def test_it_was_worth_judging(recorded: tuple[Path, dict[str, Any], list[str]]) -> None:
    out, verdict, phases = recorded
    about = json.loads((out / "run.json").read_text())
    assert "error" not in about
    assert set(about["workloads"]) == set(WORKLOADS)
    assert verdict["operations"] >= OPERATIONS
    assert verdict["faults"] >= 5
    assert {"kill", "pause", "restart"} <= set(verdict["fault_kinds"])
    hurt = {json.loads(line)["target"].split("-")[0] for line in (out / "faults.jsonl").read_text().splitlines()}
    assert hurt == PROCESS_KINDS
    assert phases[-1] == "stopping"
    assert (out / "report.html").stat().st_size > 10_000


@pytest.mark.timeout(600)
def test_nothing_is_left_behind(recorded: tuple[Path, dict[str, Any], list[str]]) -> None:
    out, _, _ = recorded
    mine = str(out)
    left = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if mine in words:
                left.append(words)
    assert not left
    assert not list(out.glob("events-*.jsonl")), "the parts are merged"
