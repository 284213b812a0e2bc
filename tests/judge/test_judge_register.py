"""The register's checkers are judged: histories that must pass, histories that must fail, and each other."""

import itertools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.register import State, check, windows
from judge.checkers.wgl import REGISTER, check_register_windows, linearizable
from judge.history import Op
from judge.notation import log, parse
from judge.register_histories import dumped, made, spoiled
from judge.verdict import INVALID, UNDECIDED, VALID

LOG = "0>1:genesis 1>5:w0-1 5>7:w1-1 1>9:w2-1"
"""w0-1 and w1-1 are admitted, w2-1 came too late."""

MUST_PASS = {
    "one after the other": "0:cas(1>5,w0-1)[0,1] 0:cas(5>7,w1-1)[2,3] 1:read()=7,w1-1[4,5] 2:cas(1>9,w2-1)[6,7]!",
    "a read beside a write sees either": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,9] 2:read()=5,w0-1[3,4] "
    "3:read()=7,w1-1[3,4] 4:read()=7,w1-1[5,6]",
    "the first state": "0:read()=1,[0,1] 0:cas(1>5,w0-1)[2,3] 1:cas(5>7,w1-1)[4,]",
    "unknown and admitted": "0:cas(1>5,w0-1)[0,] 1:read()=1,[1,2] 1:read()=5,w0-1[3,4] 2:cas(5>7,w1-1)[5,6]",
    "unknown and landed long after": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3]? 2:read()=5,w0-1[50,60]",
    "unknown and never": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 2:cas(1>9,w2-1)[0,]",
    "equal times overlap": "0:cas(1>5,w0-1)[0,4] 1:read()=1,[4,5] 2:cas(5>7,w1-1)[6,7]",
    "reads that failed say nothing": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 2:read()[4,5]! 3:read()[4,]",
}

MUST_FAIL = {
    "lost-write": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 2:cas(7>9,w2-9)[4,5]",
    "resurrected-write": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3]!",
    "phantom-write": "0:cas(1>5,w0-1)[0,1]",
    "wrong-answer": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)=8[2,3]",
    "stale-read": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 2:read()=5,w0-1[4,5]",
    "stale-read after a read": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,] 2:read()=7,w1-1[4,5] 3:read()=5,w0-1[6,7]",
    "stale-read of nothing": "0:cas(1>5,w0-1)[0,1] 1:read()=1,[2,3] 1:cas(5>7,w1-1)[4,5]",
    "future-read": "0:cas(1>5,w0-1)[0,1] 2:read()=7,w1-1[2,3] 1:cas(5>7,w1-1)[4,5]",
    "future-read of an unknown one": "0:cas(1>5,w0-1)[0,1] 2:read()=7,w1-1[2,3] 1:cas(5>7,w1-1)[4,]",
    "reordered-write": "1:cas(5>7,w1-1)[0,1] 0:cas(1>5,w0-1)[2,3]",
    "phantom-read of a token": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 2:read()=7,w0-1[4,5]",
    "phantom-read of an upper": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 2:read()=9,w2-1[0,5]",
    "reused-token": "0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3] 1:cas(5>7,w1-1)[4,5]",
}


@pytest.mark.parametrize("name", MUST_PASS)
def test_must_pass(name):
    ops = parse(MUST_PASS[name])
    verdict = check(ops, log(LOG))
    assert verdict.valid == VALID, verdict.anomalies
    assert linearizable(ops, REGISTER, State(1, None)).valid == VALID
    for ops_max in (1, 2, 100):
        verdict = check_register_windows(ops, log(LOG), ops_max)
        assert verdict.valid == VALID, (ops_max, verdict.anomalies)


@pytest.mark.parametrize("name", MUST_FAIL)
def test_must_fail(name):
    verdict = check(parse(MUST_FAIL[name]), log(LOG))
    assert verdict.valid == INVALID
    assert name.split()[0] in [anomaly.kind for anomaly in verdict.anomalies]


SEEN_ALONE = [
    name for name in MUST_FAIL if name.split()[0] in ("wrong-answer", "stale-read", "future-read", "reordered-write")
]


@pytest.mark.parametrize("name", SEEN_ALONE)
def test_must_fail_without_the_log(name):
    assert linearizable(parse(MUST_FAIL[name]), REGISTER, State(1, None)).valid == INVALID
    for ops_max in (1, 2, 100):
        assert check_register_windows(parse(MUST_FAIL[name]), log(LOG), ops_max).valid == INVALID


def test_a_doubled_write():
    records = log("0>1:genesis 1>5:w0-1 5>7:w0-1")
    (anomaly,) = check(parse("0:cas(1>5,w0-1)[0,1] 1:read()=7,w0-1[2,3]"), records).anomalies
    assert anomaly.kind == "doubled-write" and anomaly.ops == (0,)


def test_a_broken_log():
    records = log(LOG)
    history = parse("0:cas(1>5,w0-1)[0,1] 1:cas(5>7,w1-1)[2,3]")
    assert [a.kind for a in check(history, [*records[:3], *records[4:]]).anomalies] == []
    assert "broken-log" in [a.kind for a in check(history, [records[0], *records[2:]]).anomalies]


def test_nothing_to_look_at_is_no_verdict():
    assert check([], log(LOG)).valid == UNDECIDED
    assert check(parse("0:read()=1,[0,1]"), []).valid == UNDECIDED
    assert check_register_windows([], log(LOG)).valid == UNDECIDED


def test_steps_that_run_out_are_no_verdict():
    ops = parse(MUST_PASS["one after the other"])
    assert linearizable(ops, REGISTER, State(1, None), steps_max=2).valid == UNDECIDED
    verdict = check_register_windows(ops, log(LOG), steps_max=2)
    assert verdict.valid == UNDECIDED and verdict.reason


def test_what_is_stuck_is_told():
    verdict = check_register_windows(parse(MUST_FAIL["stale-read"]), log(LOG))
    assert verdict.anomalies[0].ops == (2,) and "w1-1 at 7" in verdict.anomalies[0].text


class Cell:
    """A plain read/write register: a write of what is there already must not be taken as done too soon."""

    def step(self, state, op):
        if op.f == "write":
            return op.value
        return state if not op.ok or op.result == state else None

    def looks(self, op):
        return op.f == "look"

    def hopeless(self, state, op):
        return False


@pytest.mark.parametrize(
    "history, valid",
    [
        # The first write of 1 changes nothing at once; only later does it explain the last read.
        ("0:write(1)[0,] 1:look()=1[1,2] 1:write(2)[3,4] 1:look()=2[5,6] 1:look()=1[7,8]", VALID),
        ("1:look()=1[1,2] 1:write(2)[3,4] 1:look()=2[5,6] 1:look()=1[7,8]", INVALID),
        ("0:write(3)[0,] 1:look()=1[1,2] 1:look()=3[3,4] 1:look()=1[5,6]", INVALID),
        ("0:write(3)[0,9] 1:write(1)[0,9] 2:look()=3[0,1] 2:look()=1[2,3]", VALID),
        ("0:write(3)[0,9] 1:write(2)[0,9] 2:look()=3[0,1] 2:look()=2[2,3] 2:look()=3[4,5]", INVALID),
    ],
)
def test_another_model(history, valid):
    ops = parse(history, "cell")
    assert linearizable(ops, Cell(), 1).valid == valid
    assert brute(ops, Cell(), 1) == (valid == VALID)


# -- against brute force


def brute(ops: list[Op], model, initial) -> bool:
    """Whether any order of any choice of the unknown operations, with all the others, explains everything."""
    certain = [op for op in ops if op.ok]
    unknown = [op for op in ops if op.unknown]
    for count in range(len(unknown) + 1):
        for chosen in itertools.combinations(unknown, count):
            for order in itertools.permutations([*certain, *chosen]):
                if _explains(order, model, initial):
                    return True
    return False


def _explains(order, model, state) -> bool:
    for at, op in enumerate(order):
        if any(later.before(op) for later in order[at + 1 :]):
            return False
        state = model.step(state, op)
        if state is None:
            return False
    return True


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_the_search_agrees_with_brute_force(seed, spoil):
    rng = random.Random(seed)
    ops, _ = made(rng, rng.randint(1, 6), processes=3, unknown=0.2)
    if spoil:
        ops = spoiled(rng, ops)
    answer = linearizable(ops, REGISTER, State(1, None))
    assert (answer.valid == VALID) == brute(ops, REGISTER, State(1, None)), ops
    if not spoil:
        assert answer.valid == VALID


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_the_search_agrees_with_brute_force_on_cells(seed):
    rng = random.Random(seed)
    ops = []
    for index in range(rng.randint(1, 6)):
        start = rng.randrange(12)
        end = None if rng.random() < 0.2 else start + rng.randrange(6)
        outcome = "info" if end is None else "ok"
        if rng.random() < 0.5:
            ops.append(Op(index, index, "cell", "write", rng.randrange(3), start, end, outcome))
        else:
            ops.append(Op(index, index, "cell", "look", None, start, end, outcome, rng.randrange(3)))
    assert (linearizable(ops, Cell(), 0).valid == VALID) == brute(ops, Cell(), 0), ops


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([0.0, 0.15]), st.sampled_from([0.0, 0.05]))
def test_the_witness_agrees_with_the_search(seed, spoil, unknown, foreign):
    rng = random.Random(seed)
    ops, records = made(rng, rng.randint(2, 60), rng.randint(1, 6), unknown, foreign)
    if spoil:
        ops = spoiled(rng, ops)
    witnessed = check(ops, records)
    cuts = {check_register_windows(ops, records, ops_max).valid for ops_max in (1, 3, 10, 1000)}
    said = (witnessed, dumped(records), ops)
    if not spoil:
        assert witnessed.valid == VALID, said
    if "lost-write" not in {anomaly.kind for anomaly in witnessed.anomalies}:
        # A lost write has no place, so it cannot be put to the right side of a cut.
        assert len(cuts) == 1, (cuts, *said)
    if witnessed.valid == VALID:
        assert cuts <= {VALID, UNDECIDED}, (cuts, *said)
    if foreign:
        return  # a history does not tell of others' records: alone it cannot be judged
    alone = linearizable(ops, REGISTER, State(1, None)).valid
    if witnessed.valid == VALID:
        assert alone == VALID, said
    if alone == INVALID:
        assert witnessed.valid == INVALID, said
    if not unknown:
        # The log knows more than the history only where something is said to have failed or was never answered.
        assert alone == witnessed.valid or {a.kind for a in witnessed.anomalies} <= {"lost-write"}, (alone, *said)


def test_many_operations_take_seconds():
    ops, records = made(random.Random(7), 20_000, processes=12, unknown=0.005, foreign=0.001)
    began = time.perf_counter()
    verdict = check(ops, records)
    took = time.perf_counter() - began
    assert verdict.valid == VALID and verdict.counts["unknown_admitted"] > 10
    assert took < 20, "200,000 take a second on an idle machine; ten times fewer must not take this long on any"
    assert check_register_windows(ops, records).valid == VALID
    assert len(windows(ops, records)) > 10
