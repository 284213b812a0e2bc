"""The checker of the catalog set is judged: what must pass, what must fail, and a search that must agree."""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log import model
from judge.checkers.catalog_set import check
from judge.checkers.wgl import linearizable
from judge.history import FAIL, INFO, OK, Op
from judge.notation import log, parse
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.witness import GENESIS, PROPOSAL, CatalogRecord, Change

LOG = "0>1:genesis 1>5:+t 5>7:+u 7>9:-t"

MUST_PASS = {
    "one after the other": "0:create(t)[0,1] 0:create(u)[2,3] 1:names()=t,u[4,5] 0:drop(t)[6,7] 1:names()=u[8,9] "
    "2:image()=9:u[8,9]",
    "beside a write either": "0:create(t)[0,9] 1:names()=[1,2] 1:names()=t[3,4] 0:create(u)[10,11] 0:drop(t)[12,20] "
    "1:names()=u,t[13,14] 1:names()=u[15,16]",
    "unknown and there": "0:create(t)[0,] 1:create(u)[2,3] 2:names()=t,u[4,5] 2:drop(t)[6,] "
    "3:names()=t,u[7,8] 3:names()=u[9,10]",
    "a failed drop": "0:create(t)[0,1] 0:create(u)[2,3] 0:drop(u)[4,5]! 1:names()=t,u[6,7] 0:drop(t)[8,9]",
    "equal images": "0:create(t)[0,9] 1:image()=5:t[1,9] 2:image()=5:t[1,9] 0:create(u)[10,11] 0:drop(t)[12,13]",
    "reads that failed say nothing": "0:create(t)[0,1] 0:create(u)[2,3] 0:drop(t)[4,5] 1:names()[6,7]! 1:image()[8,]",
}  # fmt: skip

MUST_FAIL = {
    "lost": "0:create(t)[0,1] 0:create(u)[2,3] 1:names()=t[4,5] 0:drop(t)[8,9]",
    "lost after it was seen": "0:create(t)[0,] 1:create(u)[0,1] 2:names()=t,u[2,3] 2:names()=u[4,5] 2:drop(t)[6,7]",
    "resurrected": "0:create(t)[0,1] 0:create(u)[2,3] 0:drop(t)[4,5] 1:names()=t,u[6,7]",
    "resurrected after it was seen gone": "0:create(t)[0,1] 0:create(u)[2,3] 0:drop(t)[4,] 1:names()=u[5,6] "
    "1:names()=t,u[7,8]",
    "phantom of nobody": "0:create(t)[0,1] 0:create(u)[2,3] 0:drop(t)[4,5] 1:names()=u,x[6,7]",
    "phantom that failed": "0:create(t)[0,1]! 0:create(u)[2,3] 1:names()=t,u[6,7]",
    "phantom from the future": "0:names()=t[0,1] 0:create(t)[2,3]",
    "divergent-images": "0:create(t)[0,1] 0:create(u)[2,9] 1:image()=7:t,u[4,5] 2:image()=7:t[4,5]",
    "stale-image": "0:create(t)[0,] 1:create(u)[0,] 2:image()=7:t,u[4,5] 2:image()=5:t[6,7]",
}  # fmt: skip

MUST_FAIL_BY_LOG = {
    "stale-image": "0:create(t)[0,1] 0:create(u)[2,3] 1:image()=5:t[4,5] 0:drop(t)[6,7]",
    "phantom-image": "0:create(t)[0,1] 0:create(u)[2,3] 1:image()=6:t,u[4,5] 0:drop(t)[6,7]",
    "wrong-image": "0:create(t)[0,1] 0:create(u)[1,3] 1:image()=7:t[2,3] 0:drop(t)[6,7]",
    "torn-read": "0:create(t)[0,] 1:create(u)[0,] 2:names()=x[0,1] 3:drop(t)[2,3] 4:create(x)[4,5]!",
    "stale-read": "0:create(t)[0,] 1:create(u)[0,] 2:names()=t,u[2,3] 2:names()=t[4,5] 2:drop(t)[6,7]",
    "future-read": "0:create(t)[0,1] 0:image()=7:t,u[2,3] 0:create(u)[4,5] 0:drop(t)[6,7]",
    "reordered": "1:create(u)[0,1] 0:create(t)[2,3] 0:drop(t)[4,5]",
    "lost": "0:create(t)[0,1] 0:create(u)[2,3] 0:create(v)[4,5] 0:drop(t)[6,7]",
    "lost drop": "0:create(t)[0,1] 0:create(u)[2,3] 0:drop(t)[4,5] 0:drop(u)[6,7]",
    "resurrected": "0:create(t)[0,1] 0:create(u)[2,3]! 0:drop(t)[4,5]",
    "phantom": "0:create(t)[0,1] 0:create(u)[2,3]",
}


@pytest.mark.parametrize("records", [(), log(LOG)], ids=["by time", "by log"])
@pytest.mark.parametrize("name", MUST_PASS)
def test_must_pass(name, records):
    verdict = check(parse(MUST_PASS[name], "set"), records)
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize("name", MUST_FAIL)
def test_must_fail_by_time(name):
    verdict = check(parse(MUST_FAIL[name], "set"))
    assert name.split()[0] in [anomaly.kind for anomaly in verdict.anomalies], verdict


@pytest.mark.parametrize("name", MUST_FAIL_BY_LOG)
def test_must_fail_by_log(name):
    verdict = check(parse(MUST_FAIL_BY_LOG[name], "set"), log(LOG))
    assert name.split()[0] in [anomaly.kind for anomaly in verdict.anomalies], verdict


def test_doubled():
    for text in ("0>1:genesis 1>2:+t 2>3:-t 3>4:+t@2", "0>1:genesis 1>2:+t 2>3:-t 3>4:+t"):
        found = check(parse("0:create(t)[0,1] 1:drop(t)[2,3]"), log(text)).anomalies
        assert "doubled" in [anomaly.kind for anomaly in found]


def test_a_name_tried_again_may_come_again():
    """A lost answer, a second try, a drop; then the first try lands.  No fault of anybody's."""
    history = parse("0:create(t)[0,]  1:create(t)[2,3] 1:drop(t)[4,5] 1:names()=[6,7] 1:names()=t[8,9]")
    assert check(history).valid == VALID
    assert check(history, log("0>1:genesis 1>2:+t 2>3:-t 3>4:+t@2")).valid == VALID


def test_others_in_the_log_are_none_of_its_business():
    history = parse("0:create(t)[0,1] 0:image()=9:t[2,3]")
    assert check(history, log("0>1:genesis 1>4:+other 4>5:+t 5>9:w0-1,-other x")).valid == VALID


def test_nothing_to_look_at_is_no_verdict():
    assert check([]).valid == UNDECIDED
    assert check([], log(LOG)).valid == UNDECIDED


# -- against a search


class Names:
    """The set as a model; an image is read as names are."""

    def step(self, state, op):
        if op.f == "create":
            return None if op.value["name"] in state else state | {op.value["name"]}
        if op.f == "drop":
            return state - {op.value["name"]} if op.value["name"] in state else None
        return state if not op.ok or set(op.result["names"]) == state else None

    def looks(self, op):
        return op.f in ("names", "image")

    def hopeless(self, state, op):
        return False


def made(rng: random.Random, length: int, names: int) -> tuple[list[Op], list[CatalogRecord]]:
    """A lawful history and its log; several statements may share a record."""
    records = [CatalogRecord(0, None, GENESIS, "g", "w", 0, 1)]
    state, upper, clock = frozenset(), 1, 0
    fresh, live, ops, todo, late = list(range(names)), [], [], [], []

    def append(group: list[dict]) -> None:
        nonlocal state, upper
        changes = []
        for op in group:
            name, come = op["value"]["name"], op["f"] == "create"
            assert come != (name in state)
            state = state | {name} if come else state - {name}
            changes.append(Change(model.ITEMS, name, json.dumps({"name": name}) if come else None))
        at = len(records)
        records.append(CatalogRecord(at, None, PROPOSAL, f"p{at}", "w", upper, upper + 2, tuple(changes)))
        upper += 2

    while len(ops) < length or todo:
        clock += 1
        if len(ops) < length and (not todo or rng.random() < 0.5):
            op = {"index": len(ops), "start": clock, "end": None, "result": None, "outcome": INFO, "value": None}
            way = rng.random()
            if fresh and way < 0.3:
                op |= {"f": "create", "value": {"name": f"n{fresh.pop()}"}}
            elif live and way < 0.5:
                op |= {"f": "drop", "value": {"name": live.pop(rng.randrange(len(live)))}}
            else:
                op["f"] = rng.choice(["names", "image"])
            ops.append(op)
            todo.append((op, False))
            continue
        if late and rng.random() < 0.2:
            append([late.pop()])
        op, happened = todo.pop(rng.randrange(len(todo)))
        if happened:
            if rng.random() < 0.1:
                continue
            op |= {"end": clock, "outcome": OK}
            if op["f"] == "create":
                live.append(op["value"]["name"])
        elif rng.random() < 0.15:
            if op["f"] in ("create", "drop"):
                way = rng.randrange(3)
                if way == 0:
                    op |= {"end": clock, "outcome": FAIL}
                elif way == 1:
                    late.append(op)
        elif op["f"] in ("names", "image"):
            op["result"] = {"names": sorted(state), **({"upper": upper} if op["f"] == "image" else {})}
            todo.append((op, True))
        else:
            group = [op]
            beside = [i for i, (o, done) in enumerate(todo) if not done and o["f"] in ("create", "drop")]
            if beside and rng.random() < 0.5:
                other, _ = todo.pop(beside[0])
                group.append(other)
                todo.append((other, True))
            append(group)
            todo.append((op, True))
    return [
        Op(op["index"], op["index"], "set", op["f"], op["value"], op["start"], op["end"], op["outcome"],
           op["result"] if op["outcome"] == OK else None)
        for op in ops
    ], records  # fmt: skip


def spoiled(rng: random.Random, history: list[Op]) -> list[Op]:
    ops = list(history)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(ops))
        op = ops[at]
        if op.end is None:
            continue
        if op.ok and op.f in ("names", "image") and rng.random() < 0.5:
            names = set(op.result["names"])
            names ^= {rng.choice([o.value["name"] for o in ops if o.value] or ["n0"])}
            ops[at] = replace(op, result={**op.result, "names": sorted(names)})
        else:
            shift = rng.randint(-12, 12)
            ops[at] = replace(op, start=op.start + shift, end=op.end + shift)
    ops.sort(key=lambda op: op.start)
    return [replace(op, index=index) for index, op in enumerate(ops)]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 3, 8]))
def test_the_checker_agrees_with_a_search(seed, spoil, names):
    rng = random.Random(seed)
    ops, records = made(rng, rng.randint(2, 25), names)
    if spoil:
        ops = spoiled(rng, ops)
    by_time, by_log = check(ops), check(ops, records)
    searched = linearizable(ops, Names(), frozenset()).valid
    said = (searched, by_time, by_log, ops)
    if not spoil:
        assert by_time.valid == by_log.valid == searched == VALID, said
    if by_log.valid == VALID:
        assert by_time.valid == VALID and searched == VALID, said
    if by_time.valid == INVALID and not {a.kind for a in by_time.anomalies} & {"divergent-images", "stale-image"}:
        assert searched == INVALID, said
    if names == 1 and by_time.valid == VALID:
        assert searched == VALID or _odd_drop(ops), said


def _odd_drop(ops: list[Op]) -> bool:
    """Whether a statement ends before the one that it needs has begun: the log tells, reads of a name do not."""
    return any(
        drop.ok and not any(c.f == "create" and not c.failed and c.start <= drop.end for c in ops) for drop in ops
        if drop.f == "drop"
    )  # fmt: skip
