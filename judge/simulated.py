"""Record a simulated run as a real one is: the same directory, the same checkers, the same report."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from journal.errors import InvalidUsage
from judge.live.observer import CATALOG, ORACLE, Seen, write_log
from judge.live.run import RunConfig, commit
from judge.simulation.bugs import BUGS
from judge.simulation.clients import WORKLOADS
from judge.simulation.run import SimulatedRun, simulate


def record_simulation(config: RunConfig, progress: Callable[[int], None] | None = None) -> Path:
    """Simulate ``config.operations`` steps of ``config.seed`` and write the run's directory.

    Raises ``InvalidUsage`` for a workload or a bug that the simulation does not know.
    """
    workloads = config.workloads or tuple(WORKLOADS)
    bugs = frozenset(config.bug.split(",")) if config.bug else frozenset()
    for what, asked, known in (("workload", workloads, WORKLOADS), ("bug", bugs, BUGS)):
        if unknown := sorted(set(asked) - set(known)):
            raise InvalidUsage(f"the simulation has no {what} {', '.join(unknown)}",
                               hint=f"there are {', '.join(known)}")  # fmt: skip
    if config.faults:
        raise InvalidUsage("the simulation chooses its faults itself", hint="leave --fault out with --layer 1")
    out = config.out
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise InvalidUsage(f"{out} is not empty", hint="choose another directory with --out")
    started = datetime.now(UTC).isoformat(timespec="seconds")
    run = simulate(
        config.seed, config.operations, bugs=bugs, workloads=workloads, progress=progress, partitions=config.partitions
    )
    write(run, out)
    about = {
        "layer": 1, "seed": config.seed, "commit": commit(), "started": started, "workloads": list(run.workloads),
        "configuration": {"steps": run.steps, "bug": config.bug, "partitions": config.partitions},
        "bug": config.bug, "statistics": run.stats,
        "violations": [{"law": each.law, "text": each.text, "time": each.time} for each in run.violations],
    }  # fmt: skip
    (out / "run.json").write_text(json.dumps(about, indent=1, default=str) + "\n")
    return out


def write(run: SimulatedRun, out: Path) -> None:
    """Events, faults and logs."""
    events = sorted(run.events, key=lambda event: event.time)
    (out / "history.jsonl").write_text("".join(event.to_json() + "\n" for event in events))
    (out / "faults.jsonl").write_text("".join(fault.to_json() + "\n" for fault in run.faults))
    for name, entries in run.logs.items():
        kind = CATALOG if name.endswith("catalog") else ORACLE
        write_log(out / f"log-{name}.jsonl", kind, [Seen(entry.offset, entry.value, 0, 0) for entry in entries])
