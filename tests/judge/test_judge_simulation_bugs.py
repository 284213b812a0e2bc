"""Each planted bug is found, and what finds it says nothing where the bug is not."""

from __future__ import annotations

from functools import cache

import pytest

from judge.simulation.__main__ import main
from judge.simulation.bugs import BUGS
from judge.simulation.found import STEPS, find
from judge.simulation.judging import wrong
from judge.simulation.run import simulate


@cache
def without(seed: int, workloads: tuple[str, ...]) -> list[str]:
    """What is wrong in a world without a bug; several bugs are found in the same one."""
    return wrong(simulate(seed, STEPS, workloads=workloads))


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_found_and_its_seed_is_valid_without_it(bug: str) -> None:
    row = find(bug)
    assert row["seeds"] is not None, row
    print(row)
    assert not without(row["seed"], BUGS[bug].workloads)


def test_where_history_goes_all_the_time_only_what_is_guessed_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world of ``window_as_free`` without its patch: who read too long ago is refused, and nothing else happens."""
    bug = BUGS["window_as_free"]
    monkeypatch.setattr(bug, "plant", lambda world, plant=bug.plant: plant(world)[:0])
    run = simulate(1, STEPS, bugs=frozenset({"window_as_free"}), workloads=bug.workloads)
    assert not wrong(run)
    told = {event.error[0] for event in run.events if event.error is not None}
    assert "72000" in told or "22023" in told, told


def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture) -> None:
    assert main(["--steps", "3000", "--world-steps", "3000", "--json", "--workload", "once"]) == 0
    assert '"verdict": "valid"' in capsys.readouterr().out
    assert main(["--bug", "wall_clock_oracle"]) == 0
    assert '"checker": "oracle"' in capsys.readouterr().out
