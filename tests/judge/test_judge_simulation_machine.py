"""The simulated environment as a state machine of hypothesis: a few dozen decisions, so that what fails is shrunk.

Chance is the seed's, as everywhere in the simulation; hypothesis decides who acts, what breaks and how time passes.
"""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from judge.simulation.bugs import BUGS
from judge.simulation.clock import MS
from judge.simulation.judging import wrong
from judge.simulation.run import collected, inside
from judge.simulation.world import NO_FAULTS, World

PROCESSES = ("adapter-1", "adapter-2", "compute", "subscriber-compute", "storage", "image-1", "register-1")
TOPICS = ("env.catalog", "env.oracle", "env.views", "env.commands.compute-default", "register.oracle")


class Environment(RuleBasedStateMachine):
    """Two adapters; every workload has its workers."""

    bugs: frozenset[str] = frozenset()

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.stack = ExitStack()
        workloads = ("append", "bank", "once", "set", "anomalies", "register", "oracle")
        self.world = World(seed, NO_FAULTS, self.bugs, workloads, adapters=2, manual=True)
        self.stack.enter_context(inside(self.world))
        self.world.prepare()

    @rule(client=st.integers(0, 20))
    def act(self, client: int) -> None:
        self.world.clients[client % len(self.world.clients)].act()

    @rule()
    def everybody_acts(self) -> None:
        for client in self.world.clients:
            client.act()

    @rule(ms=st.sampled_from([1, 3, 10, 40, 300, 3000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms * MS)

    @rule(kind=st.sampled_from(["kill", "pause", "cut"]), name=st.sampled_from(PROCESSES))
    def hurt_a_process(self, kind: str, name: str) -> None:
        self.world.hurt(kind, name)

    @rule(name=st.sampled_from(TOPICS))
    def elect(self, name: str) -> None:
        self.world.hurt("election", name)

    @rule(kind=st.sampled_from(["isolate", "network", "clock", "replace", "checkpoint"]))
    def hurt(self, kind: str) -> None:
        self.world.hurt(kind)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.world.heal()
        finally:
            self.stack.close()
        assert not wrong(collected(self.world))


EVERYDAY = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)

Environment.TestCase.settings = EVERYDAY
TestEnvironment = Environment.TestCase


class WithABug(Environment):
    bugs = frozenset({"early_catalog"})


def test_the_machine_finds_a_planted_bug() -> None:
    assert "early_catalog" in BUGS
    machine = WithABug.TestCase
    # That it is found is to be shown, not its smallest form: on a busy machine that took eight minutes.
    machine.settings = settings(EVERYDAY, max_examples=40, report_multiple_bugs=False, phases=[Phase.generate])
    try:
        machine().runTest()
    except AssertionError as found:
        assert "anomalies" in str(found) or "I7" in str(found)
    else:
        raise AssertionError("forty worlds without a trace of the bug")
