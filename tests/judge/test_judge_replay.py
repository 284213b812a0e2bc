"""A simulated failure is cut down to the faults it needs; each replay is the run itself, but for what was left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main
from judge.command import needed_words
from judge.judging import judge
from judge.live.nemesis import Pace
from judge.live.run import RunConfig
from judge.replay import fewer_faults, replayed, said
from judge.shrink import NothingToShrink
from judge.simulated import record_simulation
from judge.simulation.bugs import BUGS
from judge.simulation.run import simulate
from judge.verdict import INVALID

SEED = 1
STEPS = 10_000
"""Some seven faults."""

SOON = 9
"""Which seed shows it with few faults, of today's schedules; where it does not any more all are tried."""


def about(bug: str = "", steps: int = STEPS, workloads: tuple[str, ...] = ("once", "set")) -> dict[str, Any]:
    return {"seed": SEED, "bug": bug, "workloads": list(workloads), "configuration": {"steps": steps}}


def test_with_all_its_faults_a_replay_is_the_run_event_for_event() -> None:
    asked = about()
    world, first = replayed(asked, STEPS)
    assert first.faults and len(world.of_occasion) == len(first.faults)
    _, again = replayed(asked, STEPS, world.occasions)
    plain = simulate(SEED, STEPS, workloads=asked["workloads"])
    for run in (first, again):
        assert (run.events, run.faults, run.logs, run.violations) == (
            plain.events, plain.faults, plain.logs, plain.violations,
        )  # fmt: skip


def test_what_is_left_out_does_not_happen_and_the_others_do_when_they_did() -> None:
    asked = about()
    world, whole = replayed(asked, STEPS)
    left_out = sorted(world.of_occasion.values())[1]
    _, fewer = replayed(asked, STEPS, world.occasions, {left_out})
    gone = next(fault for fault, number in world.of_occasion.items() if number == left_out)
    assert gone not in fewer.faults
    before = [fault for fault in whole.faults if fault.start < gone.start]
    assert before and fewer.faults[: len(before)] == before
    assert {(fault.start, fault.kind) for fault in fewer.faults} <= {(f.start, f.kind) for f in whole.faults}
    _, none = replayed(asked, STEPS, world.occasions, set(world.of_occasion.values()))
    assert none.faults == []


def shows_it_by_one_kill(asked: dict[str, Any]) -> bool:
    world, _ = replayed(asked, STEPS)
    every, kill_of_it = set(world.of_occasion.values()), ("kill", "subscriber-compute")
    kills = [number for fault, number in world.of_occasion.items() if (fault.kind, fault.target) == kill_of_it]
    return any("I6" in said(replayed(asked, STEPS, world.occasions, every - {kill})[1]).kinds for kill in kills)


def test_a_bug_that_shows_after_a_kill_needs_that_kill_alone() -> None:
    # Some seeds show it by a kill alone; others need a subscriber that was replaced, or cut off, or do not show it in
    # so few steps.  Which do is the system's schedule, so the first is looked for: one that shows it with a single
    # kill, all other faults left out.  Only those are cut down, which takes a dozen replays.
    asked = about("lost_commands", workloads=BUGS["lost_commands"].workloads)
    for asked["seed"] in (SOON, *range(1, 25)):
        if not shows_it_by_one_kill(asked):
            continue
        try:
            found = fewer_faults(asked, {"I6"})
        except NothingToShrink:
            continue
        needed = [(fault.kind, fault.target) for fault in found.needed.faults]
        if needed == [("kill", "subscriber-compute")] and found.before > 1:
            break
    else:
        pytest.fail("no seed was cut down to that kill")
    assert found.needed.minimal and len(found.left_out) >= found.before - 1
    world, _ = replayed(asked, found.steps)
    _, smallest = replayed(asked, found.steps, world.occasions, found.left_out)
    assert tuple(smallest.faults) == found.needed.faults and said(smallest).valid == INVALID


def test_a_seed_that_shows_nothing_is_refused() -> None:
    with pytest.raises(NothingToShrink, match="shows none of lost again"):
        fewer_faults(about(steps=3_000), {"lost"})
    with pytest.raises(NothingToShrink, match="shows nothing"):
        fewer_faults(about(steps=10**9), {"lost"}, steps_max=6_000)


def test_the_command_tells_which_faults_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, seed = tmp_path / "run", 7  # a fault befalls it before it fails, and it does not need it
    argv = ["judge", "--layer", "1", "--operations", "6000", "--seed", str(seed), "--bug", "acks_one",
            "--workload", ",".join(BUGS["acks_one"].workloads), "--out", str(out), "--json"]  # fmt: skip
    assert main(argv) == 1
    needed = json.loads(capsys.readouterr().out)["runs"][0]["needed_faults"]
    assert needed["faults"] == [] and needed["before"] > 0 and needed["seed"] == seed
    assert json.loads((out / "verdict.json").read_text())["needed_faults"] == needed
    assert "it fails with no fault at all" in (out / "report.html").read_text()


def test_a_valid_run_is_not_run_again(tmp_path: Path) -> None:
    path = record_simulation(RunConfig(tmp_path / "run", 1, 0.0, Pace(), operations=2_000, workloads=("oracle",)))
    assert judge(path).fewer is None and "needed_faults" not in judge(path).to_json()


def test_in_words() -> None:
    kill = {"kind": "kill", "target": "compute"}
    told = {"seed": 7, "steps": 5000, "before": 9, "faults": [kill]}
    assert needed_words(told) == "seed 7 still fails after 5,000 steps with 1 of 9 faults: kill compute"
    assert needed_words({**told, "faults": [kill] * 7}).endswith("kill compute and 2 more")
    assert needed_words({**told, "faults": []}).endswith("with no fault at all")
