"""Each planted bug is found, and what finds it says nothing where the bug is not."""

from __future__ import annotations

import pytest

from judge.simulation.__main__ import main
from judge.simulation.bugs import BUGS
from judge.simulation.found import STEPS, find
from judge.simulation.judging import wrong
from judge.simulation.run import simulate


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_found_and_its_seed_is_valid_without_it(bug: str) -> None:
    row = find(bug)
    assert row["seeds"] is not None, row
    print(row)
    assert not wrong(simulate(row["seed"], STEPS, workloads=BUGS[bug].workloads))


def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture) -> None:
    assert main(["--steps", "3000", "--world-steps", "3000", "--json", "--workload", "once"]) == 0
    assert '"verdict": "valid"' in capsys.readouterr().out
    assert main(["--bug", "wall_clock_oracle"]) == 0
    assert '"checker": "oracle"' in capsys.readouterr().out
