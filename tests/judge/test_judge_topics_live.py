"""A minute of sinks and of sources of upserts on a whole stack of one broker, every kind of process being killed, and
once all of them while a day of history goes: valid, and with both planted bugs that concern them, each found.

Every test prints how soon (``-rP`` shows it): the figures of ``docs/planted-bugs.md``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.jars import ensure_jars
from embedded.layout import JARS
from judge.checkers import envelopes, sinks
from judge.history import Fault, load
from judge.judging import judge_and_write
from judge.live.nemesis import QUICK
from judge.live.run import RunConfig, kind_of, run
from judge.live.stack import one_broker
from judge.planted.small import first_seen
from judge.verdict import INVALID, VALID

pytestmark = [
    pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1500),
]  # fmt: skip

SECONDS, LONGER_MAX = 60.0, 10.0
"""Each kind in ``HURT`` is ended, all of them by a day: some seven minutes with a
load of 16 on two cores, where the day is the ninth."""

HURT = ("adapter", "all", "broker", "compute", "storage")
BUGS = {"sinks": "sink_batch_twice", "envelopes": "upsert_forgets_key"}


@pytest.mark.parametrize("bug", ["", ",".join(BUGS.values())])
def test_whoever_is_killed_sinks_and_upserts_are_what_they_say(bug: str, tmp_path: Path) -> None:
    ensure_jars(JARS, print)
    out = tmp_path / "run"
    faults, hurt = (("kill",), ("storage",)) if bug else (("kill", "day"), HURT)
    config = RunConfig(out, 2, SECONDS, QUICK, seed=17, workloads=tuple(BUGS), faults=faults, bug=bug, adapters=2,
                       rate=2.0, settle_s=8.0, hurt=hurt, longer_max=LONGER_MAX)  # fmt: skip
    run(config, one_broker, lambda _status: None)
    said = judge_and_write(out)
    recorded = load(out)
    verdicts = {"sinks": sinks.check(recorded.ops, recorded.faults), "envelopes": envelopes.check(recorded.ops)}
    print(f"{said['operations']} operations, {said['unknown']} unknown, faults: {told(recorded.faults)}")
    for name, verdict in verdicts.items():
        print(f"{name}: {verdict.valid}, {verdict.counts}, {verdict.reason}")
        texts = "; ".join(each.text for each in verdict.anomalies[:3])
        if bug:
            kinds = ", ".join(sorted(verdict.kinds))
            print(f"found {BUGS[name]} ({kinds}): {first_seen(recorded.ops, verdict.anomalies)}; {texts}")
        assert verdict.valid == (INVALID if bug else VALID), (verdict.counts, verdict.reason, texts)
    if not bug:
        assert said["verdict"] == VALID, [each for each in said["checkers"] if each["valid"] != VALID]
        assert {kind_of(fault.target) for fault in recorded.faults} >= set(HURT)
        counts = verdicts["envelopes"].counts
        assert counts["timestamps"] >= 5 and counts["messages"] >= 50 and verdicts["sinks"].counts["acknowledged"] >= 30


def told(faults: list[Fault]) -> str:
    return ", ".join(f"{fault.kind} {fault.target}" for fault in faults)
