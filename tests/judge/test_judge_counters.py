"""The checker of counters: histories that must pass and fail, and brute force on small ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.counters import STARVED, check
from judge.history import FAIL, INFO, OK, Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID


def history(text: str) -> list[Op]:
    """``inc(a)=1`` adds to a and was told 1, ``inc(a,b)=1,2`` to both; ``all()=3,4`` read a as 3 and b as 4."""
    words = []
    for word in text.split():
        head, _, rest = word.partition(":")
        f, _, rest = rest.partition("(")
        given_, _, rest = rest.partition(")")
        told, bracket, times = rest.partition("[")
        xs = told.removeprefix("=")
        if f == "inc":
            ks = ",".join(f'"{k}"' for k in given_.split(","))
            result = f'={{"xs":[{xs}]}}' if xs else ""
            words.append(f'{head}:increment({{"ks":[{ks}]}}){result}{bracket}{times}')
        else:
            a, b = xs.split(",")
            words.append(f'{head}:counters()={{"a":{a},"b":{b}}}{bracket}{times}')
    return parse(" ".join(words), "counters")


PASS = {
    "serial": "0:inc(a)=1[0,1] 1:inc(a)=2[2,3] 0:all()=2,0[4,5]",
    "two at once, in either order": "0:inc(a)=2[0,9] 1:inc(a)=1[0,9] 0:all()=2,0[10,11]",
    "under way, seen or not": "0:inc(a)=1[0,9] 1:all()=0,0[1,2] 2:all()=1,0[3,4] 1:all()=1,0[10,11]",
    "an unknown one that happened": "0:inc(a)[0,] 1:inc(a)=2[2,3] 1:all()=2,0[4,5]",
    "an unknown one that never did": "0:inc(a)[0,] 1:inc(a)=1[2,3] 1:all()=1,0[4,5]",
    "an unknown one that lands late": "0:inc(a)[0,] 1:all()=0,0[2,3] 1:inc(b)=1[4,5] 1:all()=1,1[6,7]",
    "a block of two": "0:inc(a,b)=1,1[0,9] 1:all()=0,0[1,2] 1:inc(b)=2[10,11] 1:all()=1,2[12,13]",
    "one that failed": "0:inc(a)[0,1]! 1:inc(a)=1[2,3] 1:all()=1,0[4,5]",
}

MUST_FAIL = {
    "lost": ("0:inc(a)=1[0,1] 1:all()=0,0[2,3]", "lost-write"),
    "lost for the next": ("0:inc(a)=1[0,1] 1:inc(a)=1[2,3] 1:all()=1,0[4,5]", "lost-update"),
    "both told the same": ("0:inc(a)=1[0,9] 1:inc(a)=1[0,9] 1:all()=2,0[10,11]", "lost-update"),
    "twice": ("0:inc(a)=1[0,1] 1:all()=2,0[2,3]", "double-apply"),
    "told too much": ("0:inc(a)=2[0,1] 1:all()=1,0[2,3]", "double-apply"),
    "one that failed": ("0:inc(a)[0,1]! 1:all()=1,0[2,3]", "dirty-read"),
    "half of a block": ("0:inc(a,b)=1,1[0,1] 1:all()=1,0[2,3]", "torn-write"),
    "half of a block under way": ("0:inc(a,b)=1,1[0,9] 1:all()=1,0[2,3]", "torn-write"),
    "an unknown one twice": ("0:inc(a)[0,] 1:inc(a)=3[2,3] 1:all()=3,0[4,5]", "double-apply"),
    "back": ("0:inc(a)=2[0,1] 1:inc(a)=1[2,3] 2:inc(a)[0,] 1:all()=2,0[4,5]", "went-back"),
    "a row that is gone": ("0:inc(a)=1[0,1] 1:inc(a)=0[2,3] 1:all()=1,0[4,5]", "lost-write"),
}


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == INVALID and kind in verdict.kinds, verdict


@pytest.mark.parametrize("text", ["0:inc(a)=1[0,1]", "0:all()=0,0[0,1]", "0:inc(a)[0,1]! 0:all()=0,0[2,3]"])
def test_what_says_nothing_is_unknown(text: str) -> None:
    assert check(history(text)).valid == UNDECIDED


def refused(times: int, ks: str = "a") -> list[Op]:
    others = [f"1:inc(a)={n + 1}[{20 * n},{20 * n + 1}]" for n in range(times + 1)]
    mine = [f"0:inc({ks})[{20 * n + 10},{20 * n + 11}]!40001" for n in range(times)]
    return history(" ".join([*others, *mine, f"2:all()={times + 1},0[10000,10001]"]))


def test_who_is_refused_again_and_again_starves() -> None:
    once_less = check(refused(STARVED - 1))
    assert once_less.valid == VALID and once_less.counts["refused_in_a_row"] == STARVED - 1
    verdict = check(refused(STARVED))
    assert verdict.valid == INVALID and set(verdict.kinds) == {"starved"}
    assert check(refused(STARVED, "a,b")).valid == VALID  # a block is refused for what it is
    assert check(refused(STARVED)).counts["least"] == 0


# -- brute force ------------------------------------------------------------------------------------------------------


def explained(ops: list[Op]) -> bool:
    """Whether some order of what happened, which respects real time, gives every answer."""
    sure = [op for op in ops if op.ok]
    unsure = [op for op in ops if op.unknown]
    for count in range(len(unsure) + 1):
        for chosen in itertools.combinations(unsure, count):
            if any(_fits(order) for order in _orders([*sure, *chosen])):
                return True
    return False


def _orders(ops: list[Op]) -> Iterator[list[Op]]:
    if not ops:
        yield []
    for op in ops:
        if not any(other.before(op) for other in ops):
            for rest in _orders([each for each in ops if each is not op]):
                yield [op, *rest]


def _fits(order: list[Op]) -> bool:
    counters = {"a": 0, "b": 0}
    for op in order:
        if op.f == "counters":
            if op.result != counters:
                return False
            continue
        for at, k in enumerate(op.value["ks"]):
            counters[k] += 1
            if op.ok and op.result["xs"][at] != counters[k]:
                return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    found = []
    for index in range(draw(st.integers(2, 5))):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(1, 6))
        if draw(st.booleans()):
            ks = draw(st.sampled_from([["a"], ["b"], ["a", "b"]]))
            outcome = draw(st.sampled_from([OK, OK, OK, FAIL, INFO]))
            result = {"xs": [draw(st.integers(1, 4)) for _ in ks]} if outcome == OK else None
            op = Op(index, index, "counters", "increment", {"ks": ks}, start, None if outcome == INFO else end,
                    outcome, result)  # fmt: skip
        else:
            result = {"a": draw(st.integers(0, 3)), "b": draw(st.integers(0, 2))}
            op = Op(index, index, "counters", "counters", None, start, end, OK, result)
        found.append(op)
    return found


@settings(max_examples=400, deadline=None)
@given(histories())
def test_what_some_order_explains_is_never_invalid(ops: list[Op]) -> None:
    if check(ops).valid == INVALID:
        assert not explained(ops)
