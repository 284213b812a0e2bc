"""Porcupine, which others wrote, agrees with our checkers on the register: where it can be run."""

import json
import random
import subprocess

import pytest

from judge.checkers.register import State
from judge.checkers.wgl import REGISTER, check_register_windows, linearizable
from judge.notation import log, parse
from judge.porcupine import run
from judge.porcupine.export import whole, windows
from judge.register_histories import made, spoiled
from judge.verdict import INVALID, UNDECIDED, VALID
from tests.judge.test_judge_register import LOG, MUST_FAIL, MUST_PASS, SEEN_ALONE


@pytest.fixture(scope="module")
def built():
    try:
        return run.program()
    except run.NotAvailable as error:
        pytest.skip(str(error))


def test_must_pass(built):
    said = run.verdicts([whole(parse(text), State(1, None)) for text in MUST_PASS.values()], 30, built)
    assert said == [VALID] * len(MUST_PASS)
    for text in MUST_PASS.values():
        assert run.check(parse(text), log(LOG), 2).valid == VALID


def test_must_fail(built):
    said = run.verdicts([whole(parse(MUST_FAIL[name]), State(1, None)) for name in SEEN_ALONE], 30, built)
    assert said == [INVALID] * len(SEEN_ALONE)
    for name in SEEN_ALONE:
        verdict = run.check(parse(MUST_FAIL[name]), log(LOG), 2)
        assert verdict.valid == INVALID and verdict.anomalies[0].kind == "not-linearizable"


def test_random_histories(built):
    """Lawful and spoiled ones, whole with open outcomes and cut by the log: the same verdicts as ours."""
    lines, ours = [], []
    for seed in range(400):
        rng = random.Random(seed)
        ops, records = made(rng, rng.randint(2, 14), 4, rng.choice([0.0, 0.15]), rng.choice([0.0, 0.05]))
        if seed % 4:
            ops = spoiled(rng, ops)
        lines.append(whole(ops, State(1, None)))
        ours.append(linearizable(ops, REGISTER, State(1, None)).valid)
        cut = list(windows(ops, records, 4))
        if cut:
            said = run.verdicts(cut, 30, built)
            assert (INVALID in said) == (check_register_windows(ops, records, 4).valid == INVALID), (seed, ops)
    assert run.verdicts(lines, 60, built) == ours
    assert ours.count(INVALID) > 50 and ours.count(VALID) > 50


def test_a_long_history(built):
    ops, records = made(random.Random(3), 5_000, 8, 0.01, 0.001)
    verdict = run.check(ops, records)
    assert verdict.valid == VALID and verdict.counts["windows"] > 3


def test_a_timeout_is_no_verdict(built):
    ops, records = made(random.Random(3), 2_000, 8)
    verdict = run.check(ops, records, timeout_s=0)
    assert verdict.valid == UNDECIDED and "too long" in verdict.reason


def test_other_input_is_an_error(built):
    with pytest.raises(RuntimeError):
        run.verdicts(["{"], 5, built)


def test_without_go_there_is_no_verdict(monkeypatch, tmp_path):
    monkeypatch.setattr(run.shutil, "which", lambda _: None)
    verdict = run.check(parse(MUST_PASS["the first state"]), log(LOG), kept=tmp_path)
    assert verdict.valid == UNDECIDED and "Go" in verdict.reason


def test_without_its_module_there_is_no_verdict(monkeypatch, tmp_path):
    def fails(arguments, **_):
        assert arguments[1:3] == ["mod", "download"]
        raise subprocess.CalledProcessError(1, arguments, stderr=b"go: no route\n")

    monkeypatch.setattr(run.shutil, "which", lambda _: "go")
    monkeypatch.setattr(run.subprocess, "run", fails)
    verdict = run.check(parse(MUST_PASS["the first state"]), log(LOG), kept=tmp_path)
    assert verdict.valid == UNDECIDED and "no route" in verdict.reason
    assert run.check([], [], kept=tmp_path).valid == UNDECIDED


def test_what_is_exported():
    (line,) = windows(
        parse("0:cas(1>5,w0-1)[0,4] 1:read()=5,w0-1[1,6] 2:cas(1>9,w2-1)[2,3]!"), log("0>1:genesis 1>5:w0-1")
    )
    assert json.loads(line) == {
        "window": 0,
        "state": {"upper": 1, "token": None},
        "ops": [
            {"client": 1, "start": 0, "end": 4, "f": "cas", "known": True, "expected": 1, "new": 5, "token": "w0-1"},
            {"client": 2, "start": 1, "end": 6, "f": "read", "known": True, "upper": 5, "token": "w0-1"},
        ],
    }
