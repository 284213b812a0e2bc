"""Smaller histories fail as the larger did, and nothing more can be left out of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.history import Fault, Op
from judge.shrink import NothingToShrink, mentions, shrink, without_faults
from judge.synthetic import history
from judge.verdict import INVALID, Anomaly, judged, undecided


def lost_elements(ops):
    """Every read of a list must show what was appended before it began, and nothing that nobody appended."""
    found = []
    appended = {}
    for op in ops:
        for step in op.value if op.f == "txn" else ():
            if step[0] == "append":
                appended.setdefault(step[1], {})[step[2]] = op
    for op in ops:
        for _, key, values in (step for step in op.result or () if step[0] == "r") if op.f == "txn" else ():
            for value, writer in appended.get(key, {}).items():
                if writer.ok and writer.before(op) and value not in values:
                    found.append(Anomaly("lost-write", f"{value} is gone", (writer.index, op.index), str(key)))
            for value in set(values) - set(appended.get(key, {})):
                found.append(Anomaly("invented", f"nobody wrote {value}", (op.index,), str(key)))
    return judged("lists", found, ops=len(ops))


def lists(seed, count, lose):
    """A serial history of many lists, in which the reads from ``lose`` on miss one element."""
    rng = random.Random(seed)
    state, ops, missing = {}, [], None
    for number in range(count):
        key = rng.randrange(10)
        if number == lose:
            key, missing = next((k, values[0]) for k, values in state.items() if values)
        if rng.random() < 0.5 and number != lose:
            state.setdefault(key, []).append(number)
            steps = result = [["append", key, number]]
        else:
            steps = [["r", key, None]]
            result = [["r", key, [value for value in state.get(key, []) if value != missing]]]
        ops.append(Op(number, number % 5, "append", "txn", steps, number * 10, number * 10 + 5, "ok", result))
    return ops


def test_a_lost_write_shrinks_to_the_write_and_the_read():
    ops = lists(seed=1, count=3000, lose=2000)
    found = shrink(ops, lost_elements)
    assert found.verdict.valid == INVALID and lost_elements(found.ops).valid == INVALID
    assert found.minimal
    # The read saw other elements too; leaving their appends out would make it a read of something nobody wrote.
    read = max(found.ops, key=lambda op: op.index)
    assert len(found.ops) == 2 + len(read.result[0][2])
    assert {anomaly.kind for anomaly in found.verdict.anomalies} == {"lost-write"}
    assert found.anomaly.kind == "lost-write" and set(found.anomaly.ops) <= {op.index for op in found.ops}
    assert found.checks < 500 and found.steps


def test_nothing_more_can_be_left_out():
    ops = lists(seed=3, count=120, lose=90)
    found = shrink(ops, lost_elements)
    for place in range(len(found.ops)):
        fewer = found.ops[:place] + found.ops[place + 1 :]
        verdict = lost_elements(fewer)
        assert verdict.valid != INVALID or {anomaly.kind for anomaly in verdict.anomalies} != {"lost-write"} or not any(
            anomaly.key == found.anomaly.key for anomaly in verdict.anomalies
        )  # fmt: skip


def test_it_is_deterministic():
    ops = lists(seed=4, count=400, lose=300)
    assert shrink(ops, lost_elements) == shrink(ops, lost_elements)


def test_a_valid_history_is_refused():
    with pytest.raises(NothingToShrink, match="valid"):
        shrink(lists(seed=1, count=50, lose=-1), lost_elements)
    with pytest.raises(NothingToShrink):
        shrink([], lost_elements)
    with pytest.raises(NothingToShrink):
        shrink(lists(seed=1, count=50, lose=-1), lambda ops: undecided("lists", "too many"))


def test_an_anomaly_that_is_not_there_is_refused():
    with pytest.raises(NothingToShrink, match="G2"):
        shrink(lists(seed=1, count=200, lose=100), lost_elements, Anomaly("G2", "", (), "1"))


def test_operations_keep_their_indexes_and_are_not_changed():
    ops = lists(seed=5, count=200, lose=150)
    assert all(op is ops[op.index] for op in shrink(ops, lost_elements).ops)


def test_the_bound_on_checks_is_kept_and_what_is_left_still_fails():
    ops = lists(seed=6, count=1000, lose=800)
    calls = 0

    def check(fewer):
        nonlocal calls
        calls += 1
        return lost_elements(fewer)

    found = shrink(ops, check, checks_max=8)
    assert calls == found.checks <= 8
    assert not found.minimal and lost_elements(found.ops).valid == INVALID
    small = shrink(ops, lost_elements, checked_max=2500)
    assert not small.minimal and lost_elements(small.ops).valid == INVALID


def test_a_checker_that_needs_what_was_left_out_keeps_it():
    ops = lists(seed=1, count=60, lose=-1)

    def check(fewer):
        by_index = {op.index: op for op in fewer}
        return judged("pair", [Anomaly("pair", "", (by_index[7].index,))] if by_index[41] else [], ops=len(fewer))

    found = shrink(ops, check)
    assert [op.index for op in found.ops] == [7, 41] and found.minimal


@given(st.sets(st.integers(0, 59), min_size=1, max_size=6), st.integers(60, 200))
def test_any_set_of_operations_that_fails_together_is_found(needed, size):
    ops = lists(seed=2, count=size, lose=-1)

    def check(fewer):
        there = needed <= {op.index for op in fewer}
        return judged("together", [Anomaly("together", "", ())] if there else [], ops=len(fewer))

    found = shrink(ops, check)
    assert {op.index for op in found.ops} == needed and found.minimal


def test_keys_are_found_in_arguments_and_results():
    op = Op(0, 0, "bank", "transfer", {"id": "3-1", "to": 7}, 0, 1, "ok", [["r", 12, [5]]])
    assert mentions(op, "7") and mentions(op, "12") and mentions(op, "key=12") and mentions(op, "to")
    assert not mentions(op, "3") and not mentions(op, "key=13")


def test_a_large_history_in_time():
    ops = history(seed=1, ops_len=50_000, seconds=600, faults_len=20).ops
    bad = [op.index for op in ops if op.workload == "bank" and op.ok][1000:1002]

    def check(fewer):
        there = {op.index for op in fewer}
        return judged("bank", [Anomaly("sum", "", tuple(bad))] if there.issuperset(bad) else [], ops=len(fewer))

    assert [op.index for op in shrink(ops, check).ops] == bad


# -- faults


FAULTS = [Fault(n, n + 1, kind, f"broker-{n % 3}") for n, kind in enumerate(["kill", "pause", "cut", "isolate"] * 10)]


def replaying(needed):
    def replay(faults):
        failed = needed <= set(faults)
        return judged("sim", [Anomaly("lost", "")] if failed else [], ops=1)

    return replay


@pytest.mark.parametrize("places", [(), (0,), (39,), (3, 17), (1, 2, 30)])
def test_only_the_needed_faults_stay(places):
    needed = {FAULTS[place] for place in places}
    found = without_faults(replaying(needed), FAULTS)
    assert set(found.faults) == needed and found.minimal and found.verdict.valid == INVALID
    assert found.replays <= 120


def test_a_replay_that_does_not_fail_is_refused():
    with pytest.raises(NothingToShrink):
        without_faults(lambda faults: judged("sim", [], ops=1), FAULTS)


def test_replays_are_bounded():
    calls = []
    found = without_faults(lambda faults: calls.append(1) or replaying(set(FAULTS[::2]))(faults), FAULTS, replays_max=9)
    assert len(calls) == found.replays == 9 and not found.minimal
    assert set(FAULTS[::2]) <= set(found.faults)


def test_another_anomaly_is_not_the_same_failure():
    def replay(faults):
        kind = "lost" if FAULTS[5] in faults else "doubled"
        return judged("sim", [Anomaly(kind, "")], ops=1)

    assert without_faults(replay, FAULTS).faults == (FAULTS[5],)
