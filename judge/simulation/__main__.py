"""``python -m judge.simulation --steps N --seed S [--bug NAME | --found] [--json]``: worlds until N steps."""

from __future__ import annotations

import argparse
import json
import sys
import time

from judge.simulation.bugs import BUGS
from judge.simulation.clients import WORKLOADS, of_world
from judge.simulation.found import find, found
from judge.simulation.judging import judge
from judge.simulation.run import simulate
from judge.verdict import INVALID, combined

WORLD_STEPS = 40_000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m judge.simulation", description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="events of all worlds together")
    parser.add_argument("--world-steps", type=int, default=WORLD_STEPS, help="events of one world")
    parser.add_argument("--seed", type=int, default=1, help="of the first world; the next ones count on")
    parser.add_argument("--workload", action="append", choices=sorted(WORKLOADS), help="only these")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant this and say how soon it is found")
    parser.add_argument("--found", action="store_true", help="how soon each planted bug is found")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.found or asked.bug:
        rows = found() if asked.found else [find(asked.bug, asked.seed)]
        for row in rows:
            print(json.dumps(row))
        return 0 if all(row["seeds"] is not None for row in rows) else 1
    return run(asked)


def run(asked: argparse.Namespace) -> int:
    done, seed, started = 0, asked.seed, time.perf_counter()
    totals = {"worlds": 0, "steps": 0, "events": 0, "faults": 0, "peeks": 0, "kills": 0, "elections": 0, "virtual_s": 0}
    wrong, verdicts = [], []
    while done < asked.steps:
        world = simulate(seed, min(asked.world_steps, asked.steps - done), workloads=asked.workload or of_world(seed))
        verdicts = judge(world)
        done += world.steps
        totals["worlds"] += 1
        totals["steps"] += world.steps
        totals["events"] += len(world.events)
        totals["faults"] += len(world.faults)
        for name in ("peeks", "kills", "elections", "virtual_s"):
            totals[name] += world.stats[name]
        for verdict in verdicts:
            if verdict.valid == INVALID:
                wrong.append({"seed": seed, "steps": asked.world_steps, **verdict.to_json()})
        if not asked.json:
            rate = done / (time.perf_counter() - started)
            said = combined(v for v in verdicts if v.counts.get("ops"))
            print(f"seed {seed}: {said}; {done:,} of {asked.steps:,} steps, {rate:,.0f} a second", file=sys.stderr)
        seed += 1
    said = "invalid" if wrong else "valid"
    if asked.json:
        print(json.dumps({"verdict": said, **totals, "invalid": wrong}))
    else:
        print(f"{said}: {totals}")
        for each in wrong:
            print(f"seed {each['seed']} ({each['steps']} steps), {each['checker']}: {each['anomalies'][0]['text']}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
