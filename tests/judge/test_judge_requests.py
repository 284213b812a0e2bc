"""The checkers of requests and of timestamps are judged: what must pass and what must fail."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers import oracle_laws, requests
from judge.notation import log, parse
from judge.verdict import INVALID, UNDECIDED, VALID

LOG = "0>1:genesis 1>5:#r1+t 5>7:#r2+u x"


@pytest.mark.parametrize(
    "history",
    [
        "0:request(r1,t)=ok[0,1] 0:request(r2,u)=ok[2,3]",
        "0:request(r1,t)=ok[0,1] 1:request(r1,t)=ok[0,5] 1:request(r1,t)=ok[6,7] 0:request(r2,u)[2,]",
        "0:request(r1,t)[0,1]! 1:request(r1,t)=ok[2,3] 2:request(r3,v)=error,no[2,3] 0:request(r2,u)=ok[2,3]",
        "0:request(r1,t)[0,] 1:request(r2,u)[0,] 2:request(r3,v)[0,]",
    ],
)
def test_requests_must_pass(history):
    verdict = requests.check(parse(history), log(LOG))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(
    "kind, history, text",
    [
        ("executed-twice", "0:request(r1,t)=ok[0,1]", "0>1:genesis 1>5:#r1+t 5>7:#r1"),
        ("executed-twice", "0:request(r1,t)=ok[0,1]", "0>1:genesis 1>5:#r1+t 5>7:-t 7>9:+t@2"),
        ("unrecorded", "0:request(r1,t)[0,]", "0>1:genesis 1>5:+t"),
        ("lost", "0:request(r1,t)=ok[0,1] 0:request(r3,v)=ok[2,3]", LOG),
        ("lost", "0:request(r1,t)=ok[0,1]", "0>1:genesis 1>5:#r1"),
        ("resurrected", "0:request(r1,t)=error,no[0,1]", LOG),
        ("answers-differ", "0:request(r1,t)=ok[0,1] 1:request(r1,t)=error,there[0,1]", LOG),
        ("answers-differ", "0:request(r1,t)=ok[0,1] 1:request(r1,t)=ok,OTHER[0,1]", LOG),
        ("wrong-answer", "0:request(r1,t)=ok,OTHER[0,1]", LOG),
    ],
)
def test_requests_must_fail(kind, history, text):
    verdict = requests.check(parse(history), log(text))
    assert kind in [anomaly.kind for anomaly in verdict.anomalies], verdict


def test_others_answers_to_one_operation_count():
    (op,) = parse("0:request(r1,t)=ok[0,1]")
    op.result["others"] = [{"status": "error", "message": "there", "sqlstate": "42P07"}]
    assert [a.kind for a in requests.check([op], log(LOG)).anomalies] == ["answers-differ"]


def test_the_log_knows_when():
    (op,) = parse("0:request(r1,t)=ok[0,1]")
    records = log("0>1:genesis 1>5:#r1+t")
    op.result["catalog_ts"] = 4
    assert requests.check([op], records).valid == VALID, "a log line without a timestamp contradicts none"


def test_requests_without_anything_to_look_at():
    assert requests.check([], log(LOG)).valid == UNDECIDED
    assert requests.check(parse("0:request(r1,t)=ok[0,1]"), []).valid == UNDECIDED


# -- timestamps


@pytest.mark.parametrize(
    "history",
    [
        "0:write_ts(g)=1[0,1] 0:apply_write(g,1)[2,3] 1:read_ts(g)=1[4,5] 1:write_ts(g)=2[6,7]",
        "0:write_ts(g)=1[0,1] 0:read_ts(h)=5[2,3] 0:read_ts(g)=0[4,5]",
        "0:apply_write(g,9)[0,] 1:read_ts(g)=1[2,3] 2:apply_write(g,8)[0,1]! 1:read_ts(g)=1[4,5]",
        "0:write_ts(g)=2[0,9] 1:write_ts(g)=1[1,8]",
    ],
)
def test_timestamps_must_pass(history):
    verdict = oracle_laws.check(parse(history))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(
    "kind, history",
    [
        ("doubled-timestamp", "0:write_ts(g)=1[0,9] 1:write_ts(g)=1[1,8]"),
        ("write-too-low", "0:write_ts(g)=2[0,1] 1:write_ts(g)=1[2,3]"),
        ("write-too-low", "0:read_ts(g)=2[0,1] 1:write_ts(g)=2[2,3]"),
        ("stale-timestamp", "0:apply_write(g,5)[0,1] 1:read_ts(g)=4[2,3]"),
        ("stale-timestamp", "0:read_ts(g)=5[0,1] 1:read_ts(g)=4[2,3]"),
    ],
)
def test_timestamps_must_fail(kind, history):
    verdict = oracle_laws.check(parse(history))
    assert verdict.valid == INVALID
    (anomaly,) = verdict.anomalies
    assert (anomaly.kind, anomaly.ops, anomaly.key) == (kind, (0, 1), "g")


def test_timestamps_without_anything_to_look_at():
    assert oracle_laws.check([]).valid == UNDECIDED


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_the_sweep_agrees_with_comparing_all_pairs(seed):
    rng = random.Random(seed)
    given_out = []
    for index in range(rng.randint(1, 7)):
        start = rng.randrange(15)
        end = None if rng.random() < 0.15 else start + rng.randrange(5)
        kind = rng.choice([oracle_laws.READ, oracle_laws.WRITE, oracle_laws.APPLY, oracle_laws.COMMIT])
        given_out.append(oracle_laws.Given(start, end, rng.choice("gh"), kind, start // 2 + rng.randrange(4), index))
    assert bool(oracle_laws.breaches(given_out)) == _any_pair(given_out), given_out


def _any_pair(given_out):
    read, write, apply, commit = oracle_laws.READ, oracle_laws.WRITE, oracle_laws.APPLY, oracle_laws.COMMIT
    answered = [each for each in given_out if each.end is not None]
    for a in answered:
        for b in answered:
            if a is b or a.timeline != b.timeline:
                continue
            if a.kind == b.kind == write and a.ts == b.ts:
                return True
            if a.end >= b.start:
                continue
            if b.kind in (write, commit) and a.kind in (read, write, commit) and a.ts >= b.ts:
                return True
            if b.kind == read and a.kind in (read, apply, commit) and a.ts > b.ts:
                return True
    return False
