"""Whole environments in one thread: valid under every fault there is, replayed by their seeds alone."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import pytest

from judge.history import INVOKE, OK, operations
from judge.partitions import partitions_of
from judge.simulation.clients import EVERYDAY, WORKLOADS
from judge.simulation.judging import judged_world, laws, wrong
from judge.simulation.run import SimulatedRun, simulate
from judge.simulation.world import NO_FAULTS
from judge.verdict import VALID
from oracle.records import decode_record

STEPS = int(os.environ.get("TIDEMARK_JUDGE_STEPS", "80000"))
"""Events of all worlds together: 6 s of two quiet cores in everyday's tests, ten million by option."""

WORLD_STEPS = 20_000
FIRST_SEED = int(os.environ.get("TIDEMARK_JUDGE_SEED", "1000"))


def digest(run: SimulatedRun) -> str:
    found = hashlib.sha256()
    for each in (*run.events, *run.faults):
        found.update(each.to_json().encode())
    for name in sorted(run.logs):
        for entry in run.logs[name]:
            found.update(entry.value)
    return found.hexdigest()


@pytest.mark.timeout(600 + STEPS // 1_000)  # 130 s of one quiet core for a million; a busy machine gave a third of one
def test_every_step_of_whole_environments_is_valid() -> None:
    """Worlds know nothing of one another: each core runs its own."""
    seeds = range(FIRST_SEED, FIRST_SEED + -(-STEPS // WORLD_STEPS))
    kinds: set[str] = set()
    said: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1), mp_context=multiprocessing.get_context("spawn")) as cores:
        for world in cores.map(judged_world, seeds, [min(WORLD_STEPS, STEPS)] * len(seeds)):
            if world.wrong:
                cores.shutdown(cancel_futures=True)
            assert not world.wrong
            said.update(world.said)
            kinds |= world.kinds
    # Unknown is not valid: a world may not have got round to a workload, but most must have.
    worlds = Counter(checker for checker, valid in said.elements())
    few = [checker for checker, count in worlds.items() if said[checker, VALID] < 0.8 * count]
    assert not few, said
    every = {"kill", "pause", "election", "isolate", "cut", "clock", "network", "replace", "day"}
    assert STEPS < 80_000 or every <= kinds


def test_on_a_healthy_world_everybody_is_answered() -> None:
    run = simulate(5, 12_000, faults=NO_FAULTS)
    assert not wrong(run)
    ops = operations(run.events)
    for workload in EVERYDAY:
        mine = [op for op in ops if op.workload == workload]
        assert sum(op.ok for op in mine) > 0.75 * len(mine) > 3, workload
    assert laws(run).valid == VALID


@cache
def seven() -> SimulatedRun:
    return simulate(7, 4_000)


@cache
def digest_of_seven() -> str:
    return digest(seven())


def test_the_seed_alone_replays_a_run() -> None:
    one, two, other = seven(), simulate(7, 4_000), simulate(8, 4_000)
    assert one.events == two.events
    assert one.faults == two.faults
    assert digest_of_seven() == digest(one) == digest(two) != digest(other)


def test_the_seed_replays_it_in_other_processes_too() -> None:
    """Neither the order of a set nor an address may decide anything."""
    text = (
        "from judge.simulation.run import simulate\n"
        "from tests.judge.test_judge_simulation import digest\n"
        "print(digest(simulate(7, 4_000)))"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", text], env=os.environ | {"PYTHONHASHSEED": hash_seed},
                         stdout=subprocess.PIPE, text=True)
        for hash_seed in ("1", "2")
    ]  # fmt: skip
    said = [each.communicate()[0].strip() for each in others]
    assert [each.returncode for each in others] == [0, 0]
    assert said == [digest_of_seven()] * 2


def test_nothing_of_the_product_stays_changed() -> None:
    import time
    import uuid

    from adapter.execute import plans, reads
    from journal import deadlines, folded
    from sql.statements import plan_cache
    from sql.syntax.parse import parse

    simulate(1, 500)
    assert folded.time is time
    assert folded.Deadlines is deadlines.Deadlines
    assert plan_cache.parse is parse
    assert reads.uuid is uuid and plans.parse is parse


def test_rows_are_on_as_many_partitions_as_the_world_has_or_its_seed_chooses() -> None:
    for partitions in (1, 3):
        run = simulate(2, 6_000, workloads=("once", "bank"), partitions=partitions)
        records = [decode_record(entry.value) for entry in run.logs["oracle"]]
        runs = [binding.run for record in records for part in record.parts for binding in part.bindings]
        runs += [move.run for record in records for move in record.moves]
        assert {each.partition for each in runs} == set(range(partitions))
        assert not wrong(run)
    assert {partitions_of(seed) for seed in range(20)} == {1, 2, 3}
    assert simulate(2, 500).stats["partitions"] == partitions_of(2)


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_a_workload_runs_by_itself(workload: str) -> None:
    run = simulate(3, 4_000, workloads=(workload,))
    assert not wrong(run)
    assert any(event.type == OK for event in run.events)
    assert {event.workload for event in run.events if event.type == INVOKE} == {workload}
