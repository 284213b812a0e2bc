"""Plans of faults are pure and fair; whoever carries one out heals what it began, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.errors import Unavailable
from judge.live.cluster import HealFailed, Injected
from judge.live.nemesis import (
    BAD_NETWORK,
    BAD_STORE,
    QUICK,
    TOGETHER_EVERY,
    Also,
    Nemesis,
    Pace,
    Step,
    evenly,
    is_broker,
    plan,
)
from judge.live.network import BROKERS
from judge.live.process_faults import Kill, Lives, Pause, Restart, children, process_faults

NAMES = ["broker", "adapter-1", "adapter-2", "storage", "compute"]
TARGETS = {"kill": NAMES, "pause": NAMES, "restart": NAMES}
HOLDS = {"kill": (0.0, 0.0), "pause": (2.0, 8.0), "restart": (0.0, 0.0)}


def test_a_seed_alone_makes_the_plan() -> None:
    one, again, other = (plan(random.Random(seed), TARGETS, HOLDS, 600, Pace()) for seed in (1, 1, 2))
    assert one == again != other


@given(
    seed=st.integers(0, 2**32), duration=st.floats(1, 900),
    kinds=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.lists(st.sampled_from(NAMES), unique=True)),
)  # fmt: skip
def test_every_plan_is_fair_and_leaves_quiet(seed: int, duration: float, kinds: dict[str, list[str]]) -> None:
    pace = Pace()
    steps = plan(random.Random(seed), kinds, dict.fromkeys(kinds, (1.0, 3.0)), duration, pace)
    usable = {kind for kind, targets in kinds.items() if targets}
    counts = Counter(step.kind for step in steps)
    assert set(counts) == usable
    if usable:
        assert max(counts.values()) - min(counts.values()) <= 1
        assert {step.kind for step in steps[: len(usable)]} == usable, "each kind before any comes twice"
        assert steps[0].at_s == pace.first_s
    for kind in usable:
        hurt = Counter(step.target for step in steps if step.kind == kind)
        assert sum(hurt.values()) < len(kinds[kind]) or max(hurt.values()) - min(hurt[t] for t in kinds[kind]) <= 1
    for before, after in zip(steps, steps[1:], strict=False):
        assert after.at_s >= before.at_s + before.hold_s + pace.quiet_s[0] - 0.01
    assert all(step.at_s < duration - pace.last_s for step in steps[len(usable) :])


LAYER_3 = {
    **dict.fromkeys(("kill", "pause"), ["adapter-1", "storage", "compute", "compute-jvm"]),
    "restart": ["adapter-1", "storage", "compute"],
    **dict.fromkeys(("kill-broker", "isolate-broker", "cut-off-broker", "one-way", "slow-network"), list(BROKERS)),
    "cut-link": ["b1~b2", "b1~a1"], "loss": [*BROKERS, "a1"], "isolate-adapter": ["adapter-1"],
    "store-away": ["store"], "store-full": ["store"],
}  # fmt: skip


@given(seed=st.integers(0, 2**32), duration=st.floats(60, 1800))
def test_a_second_fault_ends_a_process_while_another_is_on_and_never_a_broker(seed: int, duration: float) -> None:
    steps = plan(random.Random(seed), LAYER_3, dict.fromkeys(LAYER_3, (3.0, 8.0)), duration, Pace())
    bad = [step for step in steps if step.kind in BAD_NETWORK | BAD_STORE]
    both = [step for step in steps if step.also]
    assert len(both) == len(bad) // TOGETHER_EVERY and set(both) <= set(bad)
    for step in both:
        assert step.also.kind in ("kill", "restart") and step.also.target in LAYER_3[step.also.kind]
        assert not is_broker(step.also.target)
        assert 0 < step.also.after_s < step.hold_s, "it begins while the other is on"
    ended = Counter(step.also[1:] for step in both)
    assert not ended or max(ended.values()) <= 1 + len(both) // 7, "everybody's turn comes before anybody's second"


def test_a_broker_is_never_the_second_to_go() -> None:
    targets = {"kill": ["broker", *BROKERS], "restart": ["broker"], "isolate-broker": list(BROKERS)}
    steps = plan(random.Random(1), targets, dict.fromkeys(targets, (1.0, 2.0)), 600, Pace())
    assert sum(step.kind in BAD_NETWORK for step in steps) > TOGETHER_EVERY and not any(step.also for step in steps)


def test_where_the_network_is_never_bad_faults_come_one_by_one() -> None:
    assert not any(step.also for step in plan(random.Random(1), TARGETS, HOLDS, 1800, Pace()))


def test_what_is_rare_comes_when_it_is_due_and_no_more_often() -> None:
    targets = {**TARGETS, "day": ["all"], "poison": ["a view"]}
    holds = {**HOLDS, "day": (0.0, 0.0), "poison": (0.0, 0.0)}
    rare = evenly({"day": 4, "poison": 1}, 1800)
    assert [len(rare["day"]), len(rare["poison"])] == [4, 1] and len(evenly({"day": 4}, 120)["day"]) == 1
    steps = plan(random.Random(1), targets, holds, 1800, Pace(), rare)
    counts = Counter(step.kind for step in steps)
    assert (counts["day"], counts["poison"]) == (4, 1) and min(counts[kind] for kind in TARGETS) > 20
    days = [step.at_s for step in steps if step.kind == "day"]
    assert all(due <= at < due + 30 for due, at in zip(rare["day"], days, strict=True))
    # A plan that is too short for it has it all the same; and alone they are as any.
    assert {step.kind for step in plan(random.Random(1), targets, holds, 10, Pace(), rare)} == set(targets)
    alone = plan(random.Random(1), {"day": ["all"]}, {"day": (0.0, 0.0)}, 600, Pace(), rare)
    assert len(alone) > 10


class Recording:
    """A kind of fault that only writes down what is done."""

    hold_s = (0.0, 0.0)

    def __init__(self, name: str, log: list[str], begin=None, heal=None) -> None:
        self.name = name
        self._log = log
        self._begin, self._heal = begin, heal

    def targets(self) -> list[str]:
        return ["it"]

    def start(self, target: str, rng: random.Random) -> Injected:
        if self._begin:
            raise self._begin
        self._log.append(f"begin {self.name}")

        def heal() -> None:
            self._log.append(f"heal {self.name}")
            if self._heal:
                raise self._heal

        return Injected(heal, "of paper")


SWIFT = Pace(first_s=0.0, quiet_s=(0.0, 0.0), last_s=0.0)


def carried_out(kinds: list[Recording], steps: list[Step], duration_s: float = 60.0) -> Nemesis:
    ticks = iter(range(1000))
    nemesis = Nemesis(kinds, steps, random.Random(0), duration_s, SWIFT, clock_ns=lambda: next(ticks))
    nemesis.start()
    assert nemesis.join(20)
    return nemesis


def test_faults_are_recorded_with_when_they_began_and_were_healed() -> None:
    log: list[str] = []
    nemesis = carried_out([Recording("cut", log)], [Step(0, "cut", "a-b", 0.0), Step(0, "cut", "b-c", 0.0)])
    assert log == ["begin cut", "heal cut"] * 2
    assert [tuple(fault) for fault in nemesis.faults] == [
        (0, 1, "cut", "a-b", "of paper"), (2, 3, "cut", "b-c", "of paper"),
    ]  # fmt: skip
    assert nemesis.error is None and not nemesis.left


def test_one_that_does_not_heal_ends_it_and_stands_without_an_end() -> None:
    log: list[str] = []
    failed = HealFailed("the adapter did not serve again")
    nemesis = carried_out([Recording("kill", log, heal=failed)], [Step(0, "kill", "it", 0.0)] * 3)
    assert log == ["begin kill", "heal kill"]
    assert nemesis.error is failed
    assert [(fault.end, fault.kind) for fault in nemesis.faults] == [(None, "kill")]


def test_one_that_heals_late_is_told_and_ends_nothing(monkeypatch) -> None:
    monkeypatch.setattr("judge.live.nemesis.HEAL_LATE_S", -1.0)
    log: list[str] = []
    nemesis = carried_out([Recording("kill", log)], [Step(0, "kill", "it", 0.0)] * 2)
    assert log == ["begin kill", "heal kill"] * 2 and nemesis.error is None
    assert nemesis.late == ["kill it healed after 0 s"] * 2


def test_one_that_starts_spark_several_times_is_given_as_many_times_as_long(monkeypatch) -> None:
    monkeypatch.setattr("judge.live.nemesis.HEAL_LATE_S", 1e-9)
    fault = Recording("poison", [])
    fault.starts = 10**12
    assert carried_out([fault], [Step(0, "poison", "it", 0.0)]).late == []
    fault.starts = 1
    assert carried_out([fault], [Step(0, "poison", "it", 0.0)]).late == ["poison it healed after 0 s"]


def test_one_that_cannot_be_begun_ends_it_and_leaves_no_record() -> None:
    nemesis = carried_out([Recording("kill", [], begin=HealFailed("no such process"))], [Step(0, "kill", "it", 0.0)])
    assert isinstance(nemesis.error, HealFailed) and not nemesis.faults


def test_what_somebody_did_not_answer_is_left_out_and_told() -> None:
    log: list[str] = []
    away = Recording("day", log, begin=Unavailable("the oracle did not answer"))
    nemesis = carried_out([away, Recording("kill", log)], [Step(0, "day", "it", 0.0), Step(0, "kill", "it", 0.0)])
    assert log == ["begin kill", "heal kill"] and nemesis.error is None
    assert nemesis.not_begun == ["day it: the oracle did not answer"] and len(nemesis.faults) == 1


BOTH = Step(0, "cut", "a-b", 0.02, Also(0.01, "kill", "it"))


def test_a_second_fault_begins_under_the_first_and_is_healed_after_it() -> None:
    log: list[str] = []
    shown: list[str] = []
    ticks = iter(range(1000))
    nemesis = Nemesis([Recording("cut", log), Recording("kill", log)], [BOTH], random.Random(0), 60.0, SWIFT,
                      shown.append, lambda: next(ticks))  # fmt: skip
    nemesis.start()
    assert nemesis.join(20) and nemesis.error is None
    assert log == ["begin cut", "begin kill", "heal cut", "heal kill"]
    assert [tuple(fault)[:4] for fault in sorted(nemesis.faults)] == [(0, 2, "cut", "a-b"), (1, 3, "kill", "it")]
    assert shown == ["cut a-b", "cut a-b and kill it", ""], "it is healthy again once, when both are healed"


def test_where_the_first_does_not_heal_the_second_is_healed_all_the_same() -> None:
    log: list[str] = []
    failed = HealFailed("the link stays down")
    nemesis = carried_out([Recording("cut", log, heal=failed), Recording("kill", log)], [BOTH])
    assert log[2:] == ["heal cut", "heal kill"] and nemesis.error is failed
    assert {(fault.kind, fault.end is None) for fault in nemesis.faults} == {("cut", True), ("kill", False)}


def test_where_the_second_cannot_be_begun_the_first_is_healed() -> None:
    log: list[str] = []
    nemesis = carried_out([Recording("cut", log), Recording("kill", log, begin=HealFailed("it is gone"))], [BOTH])
    assert log == ["begin cut", "heal cut"] and isinstance(nemesis.error, HealFailed)
    assert [fault.kind for fault in nemesis.faults] == ["cut"]


def test_told_to_stop_nothing_second_begins() -> None:
    log: list[str] = []
    began = threading.Event()
    step = Step(0, "cut", "it", 1200.0, Also(600.0, "kill", "it"))
    nemesis = Nemesis([Recording("cut", log), Recording("kill", log)], [step], random.Random(0), 3600, SWIFT,
                      on_change=lambda text: began.set() if text else None)  # fmt: skip
    nemesis.start()
    assert began.wait(10)
    nemesis.stop()
    assert nemesis.join(10) and log == ["begin cut", "heal cut"]


def test_told_to_stop_it_heals_at_once() -> None:
    log: list[str] = []
    began = threading.Event()
    nemesis = Nemesis([Recording("cut", log)], [Step(0, "cut", "it", 600.0)] * 2, random.Random(0), 3600, SWIFT,
                      on_change=lambda text: began.set() if text else None)  # fmt: skip
    nemesis.start()
    assert began.wait(10)
    nemesis.stop()
    assert nemesis.join(10)
    assert log == ["begin cut", "heal cut"]


def test_when_time_is_over_only_kinds_that_have_not_been_seen_are_still_done() -> None:
    log: list[str] = []
    kinds = [Recording("kill", log), Recording("cut", log)]
    nemesis = carried_out(kinds, [Step(0, "kill", "it", 0.05), Step(0, "kill", "it", 0), Step(0, "cut", "it", 0)], 0.01)
    assert log == ["begin kill", "heal kill", "begin cut", "heal cut"]
    assert [step.kind for step in nemesis.left] == ["kill"]


# -- processes


SLEEPS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def victim():
    process = subprocess.Popen([sys.executable, "-S", "-c", SLEEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()


def nobody_asks(_name: str, _timeout_s: float) -> None:
    return None


def test_a_paused_process_stands_still_until_it_is_healed(victim) -> None:
    lives = Lives(lambda: {"storage": victim.pid})
    injected = Pause(lives, ["storage"], nobody_asks).start("storage", random.Random(0))
    assert os.WIFSTOPPED(os.waitpid(victim.pid, os.WUNTRACED)[1])
    injected.heal()
    injected.heal()
    assert os.WIFCONTINUED(os.waitpid(victim.pid, os.WCONTINUED)[1])


@pytest.mark.parametrize("kind,signum", [(Kill, signal.SIGKILL), (Restart, signal.SIGTERM)])
def test_a_killed_process_is_healed_when_it_serves_again(victim, kind, signum) -> None:
    lives = Lives(lambda: {"storage": victim.pid})
    lives.serves("storage")
    asked: list[str] = []
    injected = kind(lives, ["storage"], lambda name, _timeout_s: asked.append(name)).start("storage", random.Random(0))
    assert victim.wait(10) == -signum
    healing = threading.Thread(target=injected.heal)
    healing.start()
    assert not asked
    lives.serves("storage")
    healing.join(10)
    assert asked == ["storage"]


def test_what_does_not_come_back_is_told() -> None:
    lives = Lives(dict)
    with pytest.raises(HealFailed, match="storage"):
        lives.wait_another("storage", 0, 0.01)
    with pytest.raises(HealFailed, match="storage"):
        lives.pid("storage", 0.01)


def test_children_are_found_below_a_process() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {SLEEPS!r}])"
    parent = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        parent.stdout.readline()
        [child] = children(parent.pid)
        assert child != parent.pid
    finally:
        parent.stdin.close()
        parent.wait(10)
    assert children(parent.pid) == []


def test_every_process_gets_every_kind_and_sparks_jvm_two_of_them() -> None:
    kinds = process_faults(Lives(dict), ["broker", "compute"], nobody_asks)
    assert {kind.name: list(kind.targets()) for kind in kinds} == {
        "kill": ["broker", "compute", "compute-jvm"],
        "pause": ["broker", "compute", "compute-jvm"],
        "restart": ["broker", "compute"],
    }


def test_a_short_run_has_room_for_all_kinds() -> None:
    steps = plan(random.Random(3), TARGETS, HOLDS, 90, QUICK)
    assert len(steps) >= 10 and {step.kind for step in steps} == set(TARGETS)
