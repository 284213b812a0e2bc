"""A whole run on a real broker, with a workload of paper: what is recorded, also where a fault never heals."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catalog_log.bootstrap import create_environment
from journal.names import TopicNames
from judge.history import load
from judge.judging import judge_and_write
from judge.live.cluster import Cluster, ClusterSettings, HealFailed, Injected, Progress
from judge.live.nemesis import Pace
from judge.live.run import RunConfig, run
from judge.workloads.api import World
from tests.judge.test_judge_runner import REGISTRY

pytestmark = pytest.mark.integration


class Scratch:
    """A fault of nothing, that heals or does not."""

    hold_s = (0.05, 0.1)

    def __init__(self, name: str, heals: bool) -> None:
        self.name = name
        self._heals = heals

    def targets(self) -> Sequence[str]:
        return ["nobody"]

    def start(self, target: str, rng: random.Random) -> Injected:
        def heal() -> None:
            if not self._heals:
                raise HealFailed("nobody did not serve again within 180 s")

        return Injected(heal, "not really")


class Paper:
    """A cluster of one broker and two catalogs that nobody serves."""

    layer = 2

    def __init__(self, world: World, faults: Sequence[Scratch]) -> None:
        self.world = world
        self.faults = faults

    def client_command(self, number: int, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        return argv, env

    def wait_serving(self, timeout_s: float) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {"made of": "paper"}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "tiny_registry.py").write_text(REGISTRY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    return "tiny_registry"


@pytest.mark.parametrize("heals", [True, False])
def test_a_run_is_recorded_to_its_end_also_where_a_fault_does_not_heal(
    broker: str, env_name: str, tmp_path: Path, registry: str, heals: bool
) -> None:
    world = World(broker, env_name, ("dsn-1", "dsn-2"), ("adapter-1", "adapter-2"), seed=3, register_env="")

    @contextmanager
    def opened(_settings: ClusterSettings, _progress: Progress) -> Iterator[Cluster]:
        create_environment(broker, TopicNames(env_name), 1)
        yield Paper(world, [Scratch("scratch", heals)])

    pace = Pace(first_s=0.2, quiet_s=(0.1, 0.2), last_s=0.2)
    config = RunConfig(tmp_path / "run", 2, 2.0, pace, seed=3, registry=registry, settle_s=0.3, processes=1)
    path = run(config, opened)
    recorded = load(path)
    assert recorded.faults and (recorded.faults[0].end is not None) is heals
    assert [op.f for op in recorded.ops].count("sum") == 2, "the last reads were not made"
    assert json.loads((path / "run.json").read_text()).get("logs"), "the logs were not read"
    assert (path / "log-catalog.jsonl").read_text().count("\n") >= 1
    verdicts = {each["checker"]: each for each in judge_and_write(path)["checkers"]}
    assert verdicts["run"]["valid"] == ("valid" if heals else "invalid")
    assert verdicts["log-kept"]["valid"] == "valid"
