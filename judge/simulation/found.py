"""How soon the simulation finds each planted bug, and that the same seeds without it are valid."""

from __future__ import annotations

from typing import Any

from judge.simulation.bugs import BUGS
from judge.simulation.judging import judge
from judge.simulation.run import simulate
from judge.verdict import INVALID

SEEDS_MAX = 20
STEPS = 25_000
"""Of one world: some ten virtual seconds, twenty faults and a thousand operations."""


def find(bug: str, first_seed: int = 1, seeds_max: int = SEEDS_MAX, steps: int = STEPS) -> dict[str, Any]:
    """Run worlds with ``bug`` until a checker says invalid: which, after how many seeds, steps and virtual seconds.

    ``seeds`` is ``None`` where none of ``seeds_max`` did.
    """
    spent, virtual_s = 0, 0.0
    for count, seed in enumerate(range(first_seed, first_seed + seeds_max), 1):
        run = simulate(seed, steps, bugs=frozenset({bug}), workloads=BUGS[bug].workloads)
        spent += run.steps
        virtual_s += run.stats["virtual_s"]
        invalid = [verdict for verdict in judge(run) if verdict.valid == INVALID]
        if invalid:
            return {
                "bug": bug,
                "what": BUGS[bug].text,
                "workload": ", ".join(BUGS[bug].workloads),
                "checker": ", ".join(verdict.checker for verdict in invalid),
                "kinds": sorted({anomaly.kind for verdict in invalid for anomaly in verdict.anomalies}),
                "seed": seed,
                "seeds": count,
                "steps": spent,
                "virtual_s": round(virtual_s, 1),
            }
    return {"bug": bug, "workload": ", ".join(BUGS[bug].workloads), "seeds": None, "steps": spent}


def found() -> list[dict[str, Any]]:
    """A row for each planted bug, for the table in the documentation."""
    return [find(bug) for bug in BUGS]
