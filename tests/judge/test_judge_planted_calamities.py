"""Planted bugs that only a calamity shows, each on a whole stack of one broker: with the bug the checker says invalid,
and the same schedule without it is valid.

Every test prints how soon the anomaly was there (``-rP`` shows it): the figures of ``docs/planted-bugs.md``.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from embedded.jars import ensure_jars
from embedded.layout import JARS
from judge.checkers import idle, poison, sources
from judge.history import Fault, Op
from judge.live.calamities import Day, PoisonView
from judge.live.cluster import ClusterSettings, FaultKind, HealFailed
from judge.live.stack import OneBroker, one_broker
from judge.planted.small import History, first_seen, perform
from judge.verdict import INVALID, VALID, Verdict
from judge.workloads.api import Invocation, Workload
from judge.workloads.idle import VIEWS, Idle
from judge.workloads.poison import ENDING, FAILING, SPARED, Poison, bad, renew
from judge.workloads.sources import Sources

pytestmark = [
    pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900),
]  # fmt: skip

HEAL_S = 120.0
"""Two starts of Spark on a machine that does other things too.  With its bug a stack never heals, and is judged all the
same."""

TRIES_MAX = 20
"""Of a read whose answer the rest hangs on: ten seconds, or as many refusals."""

AGAIN_S = 0.5


class Story:
    """One client of one workload on a stack, and what was done to the stack."""

    def __init__(self, cluster: OneBroker, workload: Workload) -> None:
        self.cluster, self.workload = cluster, workload
        self.history, self.faults = History(), []
        workload.setup(cluster.world)
        self._life = 0
        self._client = workload.open(cluster.world, 0, 0)

    def do(self, *invocations: Invocation) -> str:
        """Perform them in order; how the last one ended."""
        for invocation in invocations:
            said = perform(self.history, self.workload.name, self._life, self._client, invocation)
            if said == "info":
                self._next_life()
        return said

    def _next_life(self) -> None:
        self._client.close()
        self._life += 1
        self._client = self.workload.open(self.cluster.world, 0, self._life)

    def until_answered(self, invocation: Invocation) -> None:
        for _ in range(TRIES_MAX):
            if self.do(invocation) == "ok":
                return
            time.sleep(AGAIN_S)

    def befall(self, fault: FaultKind) -> None:
        """Let it happen, and wait until it is healed; with a bug it may never be."""
        target, start = fault.targets()[0], time.monotonic_ns()
        injected, end = fault.start(target, random.Random(1)), None
        try:
            injected.heal()
            end = time.monotonic_ns()
        except HealFailed as error:
            print(f"not healed: {error}")
        self.faults.append(Fault(start, end, fault.name, target, injected.detail))
        self._next_life()  # its connection may have ended with an adapter

    def ops(self) -> list[Op]:
        self._client.close()
        return self.history.ops()

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.cluster.world.dsns[0], autocommit=True) as session:
            for each in statements:
                session.execute(each)


@contextmanager
def story(bug: str, workload: Workload, scratch: Path) -> Iterator[Story]:
    ensure_jars(JARS, print)
    with one_broker(ClusterSettings(scratch, adapters=1, bug=bug, trap=True), print) as cluster:
        yield Story(cluster, workload)


def compares(*views: str) -> Sequence[Invocation]:
    return [Invocation("compare", {"view": view}) for view in views]


def judged(bug: str, ops: Sequence[Op], verdict: Verdict) -> None:
    """``invalid`` with the bug, ``valid`` without; and say how soon."""
    told = "; ".join(a.text for a in verdict.anomalies[:3])
    assert verdict.valid == (INVALID if bug else VALID), (verdict.counts, verdict.reason, told)
    if bug:
        kinds = ", ".join(sorted(verdict.kinds))
        print(f"found {bug} by {verdict.checker} ({kinds}): {first_seen(ops, verdict.anomalies)}; {told}")


@pytest.mark.parametrize("bug", ["", "history_for_ever"])
def test_a_view_that_lay_idle_for_a_day_cannot_be_brought_back(bug: str, tmp_path: Path) -> None:
    with story(bug, Idle(), tmp_path) as told:
        told.do(Invocation("insert", {"id": "0-0", "rows": [[1, 5]]}), *compares(*VIEWS))
        # Somebody else goes on, so that what is newest is not what the idle views are of.
        told.sql("CREATE TABLE busy (k int)", "INSERT INTO busy VALUES (1)")
        cluster = told.cluster
        names = [name for name in cluster.stack.supervisor.pids() if name != "broker"]
        told.befall(Day(cluster.world, cluster.lives, names, cluster.wait_answer, HEAL_S, [signal.SIGTERM]))
        told.do(Invocation("insert", {"id": "0-1", "rows": [[2, 7]]}))
        for _ in range(3):
            told.do(*compares(*VIEWS))
        ops = told.ops()
    judged(bug, ops, idle.check(ops))


@pytest.mark.parametrize("bug", ["", "restarted_into"])
def test_a_view_that_ends_its_controller_takes_all_others_with_it(bug: str, tmp_path: Path) -> None:
    with story(bug, Poison(), tmp_path) as told:
        told.do(Invocation("insert", {"id": "0-0", "rows": [[1, 5]]}), *compares(SPARED, FAILING, ENDING))
        told.befall(PoisonView(told.cluster.world, told.cluster.wait_answer, HEAL_S, [signal.SIGTERM]))
        told.do(Invocation("insert", {"id": "0-1", "rows": [[2, 7]]}), *compares(ENDING, SPARED))
        if not bug:
            told.do(Invocation("insert", {"id": "0-2", "rows": [[1, bad(0)]]}), *compares(FAILING, SPARED), renew(1))
            told.do(*compares(FAILING), *Poison().final(0, 1))
        ops = told.ops()
    judged(bug, ops, poison.check(ops, faults=told.faults))
    if not bug:
        assert [op.error[0] for op in ops if op.failed] == ["58000", "22012"]


@pytest.mark.parametrize("bug", ["", "topic_by_name"])
def test_a_source_that_knows_its_topic_by_name_goes_on_with_another_one(bug: str, tmp_path: Path) -> None:
    """The topic is made anew, and longer than it was, while the storage controller stands still; then that ends."""
    with story(bug, Sources(), tmp_path) as told:
        read = Invocation("read")
        told.do(Invocation("produce", {"ids": ["a", "b", "c"]}))
        for _ in range(TRIES_MAX):
            told.until_answered(read)
            if len(told.history.ops()[-1].result["query"]) == 3:
                break
            time.sleep(AGAIN_S)
        pids, lives = told.cluster.stack.supervisor.pids(), told.cluster.lives
        seen = lives.count("storage")
        os.kill(pids["storage"], signal.SIGSTOP)
        told.do(Invocation("remake"), Invocation("produce", {"ids": [f"new-{n}" for n in range(40)]}))
        os.kill(pids["storage"], signal.SIGKILL)
        lives.wait_another("storage", seen, HEAL_S)
        for _ in range(TRIES_MAX):
            told.do(read)
            time.sleep(AGAIN_S)
        if not bug:
            told.do(Invocation("reset"), Invocation("produce", {"ids": ["last"]}))
            told.until_answered(Invocation("read", {"last": True}))
        ops = told.ops()
    judged(bug, ops, sources.check(ops))
