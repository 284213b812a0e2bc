"""The checker of unique keys: histories that must pass and fail, a witness that reads well, and brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.keys import check
from judge.history import FAIL, INFO, OK, Op
from judge.notation import parse
from judge.shrink import shrink
from judge.verdict import INVALID, UNDECIDED, VALID


def history(text: str) -> list[Op]:
    """``put(1,a)`` inserts token a at key 1, ``put(1/7,a)`` with slot 7; ``take(1)=a`` deletes, ``take(1)=``
    nothing; ``move(1>2,b)=a`` makes a at 1 to b at 2; ``see()=1a,2b<a`` reads a at 1 and b at 2,
    which was a; ``!dup`` is 23505."""
    words = []
    for word in text.split():
        head, _, rest = word.partition(":")
        f, _, rest = rest.partition("(")
        about, _, rest = rest.partition(")")
        told, bracket, times = rest.partition("[")
        answered, told = told.startswith("="), told[1:]
        place, _, token = about.partition(",")
        if f == "put":
            k, _, slot = place.partition("/")
            call = f'insert({{"k":{k},"slot":{slot or "null"},"token":"{token}"}})'
        elif f == "take":
            call = f'delete({{"k":{place}}})' + (f"={_took(told)}" if answered else "")
        elif f == "move":
            old, _, k = place.partition(">")
            k, _, slot = k.partition("/")
            call = f'move({{"from":{old},"k":{k},"slot":{slot or "null"},"token":"{token}"}})'
            call += f"={_took(told)}" if answered else ""
        else:
            rows = ",".join(map(_row, filter(None, told.split(","))))
            call = f'window({{"lower":0,"upper":9}})={{"rows":[{rows}]}}'
        words.append(f"{head}:{call}{bracket}{times}".replace("!dup", "!23505"))
    return parse(" ".join(words), "keys")


def _took(text: str) -> str:
    tokens = ",".join(f'"{each}"' for each in filter(None, text.split(",")))
    return f'{{"took":[{tokens}]}}'


def _row(text: str) -> str:
    place, _, was = text.partition("<")
    place, token = place[:-1], place[-1]
    k, _, slot = place.partition("/")
    return f'[{k},{slot or "null"},"{token}",{f"{chr(34)}{was}{chr(34)}" if was else "null"}]'


PASS = {
    "put, seen, taken, put again": (
        "0:put(1,a)[0,1] 0:see()=1a[2,3] 0:take(1)=a[4,5] 0:see()=[6,7] 0:put(1,b)[8,9] 0:see()=1b[10,11]"
    ),
    "two at once, one refused": "0:put(1,a)[0,9] 1:put(1,b)[1,8]!dup 0:see()=1a[10,11]",
    "refused by one that is taken meanwhile": (
        "0:put(1,a)[0,1] 1:take(1)=a[2,9] 2:put(1,b)[3,4]!dup 0:see()=[10,11] 0:put(2,c)[12,13]"
    ),
    "put while the other is taken": "0:put(1,a)[0,1] 1:take(1)=a[2,9] 2:put(1,b)[3,8] 0:see()=1b[10,11]",
    "moved": "0:put(1,a)[0,1] 0:move(1>2,b)=a[2,3] 0:see()=2b<a[4,5] 1:put(1,c)[6,7]",
    "moved with its slot": "0:put(1/7,a)[0,1] 0:move(1>2/7,b)=a[2,9] 1:see()=1/7a[3,4] 1:see()=2/7b<a[5,6]",
    "moved nothing": "0:move(1>2,b)=[0,1] 0:put(2,c)[2,3] 0:see()=2c[4,5]",
    "an unknown put that happened": "0:put(1,a)[0,] 1:put(1,b)[2,3]!dup 1:see()=1a[4,5] 1:put(2,c)[6,7]",
    "an unknown put that did not": "0:put(1,a)[0,] 1:put(1,b)[2,3] 1:see()=1b[4,5]",
    "an unknown put that lands late": "0:put(1,a)[0,] 1:see()=[2,3] 1:see()=1a[4,5] 1:put(2,b)[6,7]",
    "an unknown taking, then another put": (
        "0:put(1,a)[0,1] 0:take(1)[2,] 1:see()=1a[3,4] 1:put(1,b)[5,6] 1:see()=1b[7,8]"
    ),
    "an unknown move that a row shows": "0:put(1,a)[0,1] 0:move(1>2,b)[2,] 1:put(1,c)[3,4] 1:see()=1c,2b<a[5,6]",
    "refused by an unknown one that nobody saw": "0:put(1,a)[0,] 1:put(1,b)[2,3]!dup 1:see()=[4,5] 1:put(2,c)[6,7]",
    "another slot": "0:put(1/7,a)[0,1] 0:put(2/8,b)[2,3] 0:put(3,c)[4,5] 0:see()=1/7a,2/8b,3c[6,7]",
}

MUST_FAIL = {
    "two rows in one answer": ("0:put(1,a)[0,9] 1:put(1,b)[0,9] 0:see()=1a,1b[10,11]", "two-rows"),
    "two of one slot": ("0:put(1/7,a)[0,1] 1:put(2/7,b)[2,3] 0:see()=1/7a,2/7b[10,11]", "two-rows"),
    "two acknowledged, nobody looked": ("0:put(1,a)[0,1] 1:put(1,b)[2,3] 0:see()=1b[4,5]", "two-rows"),
    "one within the other's time": (
        "0:put(1,a)[0,1] 1:put(1,b)[2,3] 2:take(1)=b[4,5] 0:take(1)=a[6,7] 0:see()=[8,9]", "two-rows",
    ),
    "two taken by one": ("0:put(1,a)[0,9] 1:put(1,b)[0,9] 0:take(1)=a,b[10,11] 0:see()=[12,13]", "two-rows"),
    "an unknown one beside another": ("0:put(1,a)[0,] 1:put(1,b)[2,3] 1:see()=1a[4,5] 1:see()=1b[6,7]", "two-rows"),
    "lost": ("0:put(1,a)[0,1] 1:see()=[2,3]", "lost-write"),
    "lost for who wants to take it": ("0:put(1,a)[0,1] 1:take(1)=[2,3] 1:see()=1a[4,5]", "lost-write"),
    "lost after a move": ("0:put(1,a)[0,1] 0:move(1>2,b)=a[2,3] 0:see()=[4,5]", "lost-write"),
    "came back": ("0:put(1,a)[0,1] 0:take(1)=a[2,3] 1:see()=1a[4,5]", "resurrected"),
    "taken twice": ("0:put(1,a)[0,1] 0:take(1)=a[2,9] 1:take(1)=a[2,9] 1:see()=[10,11]", "taken-twice"),
    "refused for nobody": ("0:put(1,a)[0,1]!dup 0:put(2,b)[2,3] 0:see()=2b[4,5]", "refused-for-nobody"),
    "refused after it was taken": (
        "0:put(1,a)[0,1] 0:take(1)=a[2,3] 1:put(1,b)[4,5]!dup 1:see()=[6,7]", "refused-for-nobody",
    ),
    "refused by one that comes later": ("0:put(1,a)[0,1]!dup 0:put(1,b)[2,3] 0:see()=1b[4,5]", "refused-for-nobody"),
    "refused and there all the same": ("1:put(1,b)[0,1] 0:put(2,a)[2,3]!dup 0:see()=1b,2a[4,5]", "dirty-read"),
    "half of a move": ("0:put(1,a)[0,1] 0:move(1>2,b)=a[2,9] 1:see()=1a,2b<a[3,4]", "torn-write"),
    "read before it was put": ("0:see()=1a[0,1] 0:put(1,a)[2,3]", "future-read"),
    "nobody put it": ("0:put(1,a)[0,1] 0:see()=1a,2z[2,3]", "phantom"),
    "moved from something else": (
        "0:put(1,a)[0,1] 0:put(3,c)[2,3] 0:move(1>2,b)=a[4,5] 0:see()=2b<c[6,7]", "two-answers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == INVALID and kind in verdict.kinds, verdict


@pytest.mark.parametrize("text", ["0:put(1,a)[0,1]", "0:see()=[0,1]", "0:put(1,a)[0,] 1:see()=[2,3]"])
def test_what_says_nothing_is_unknown(text: str) -> None:
    assert check(history(text)).valid == UNDECIDED


def test_a_refusal_is_for_the_constraint_that_it_names() -> None:
    text = "0:put(1/7,a)[0,1] 1:put(1/8,b)[2,3]!dup 0:see()=1/7a[4,5]"
    (refused,) = (op for op in history(text) if op.failed)
    for constraint, valid in (("keys_pkey", VALID), ("keys_slot_key", INVALID)):
        ops = [op for op in history(text) if not op.failed]
        said = ("23505", f'duplicate key value violates unique constraint "{constraint}"')
        ops.append(Op(refused.index, 1, "keys", "insert", refused.value, 2, 3, FAIL, None, said))
        assert check(ops).valid == valid, constraint


def test_what_is_wrong_is_cut_to_who_is_in_it_and_says_so() -> None:
    """Among fifty others: none is left out that would make the two look as if they met when they did not."""
    words, now = [], 0
    for turn in range(25):
        k = 2 + turn % 5
        words += [
            f"0:put({k},{chr(0x100 + turn)})[{now},{now + 1}]",
            f"0:take({k})={chr(0x100 + turn)}[{now + 2},{now + 3}]",
        ]
        now += 10
    words += [f"1:put(1,a)[{now},{now + 1}] 1:see()=1a[{now + 2},{now + 3}] 0:put(1,b)[{now + 4},{now + 5}]",
              f"1:take(1)=a[{now + 6},{now + 7}] 0:see()=1b[{now + 8},{now + 9}]"]  # fmt: skip
    ops = history(" ".join(words))
    found = shrink(ops, check)
    assert [(op.f, op.value.get("token")) for op in found.ops] == [("insert", "a"), ("insert", "b")]
    (anomaly,) = found.verdict.anomalies
    assert anomaly.text == (
        "two rows had k=1 at once: a of op 50 was there before and after b of op 52 was, as op 52 says"
    )


# -- brute force ------------------------------------------------------------------------------------------------------


def explained(ops: list[Op]) -> bool:
    """Whether some order of what happened, which respects real time, gives every answer."""
    sure = [op for op in ops if not op.unknown]
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
    rows: dict[int, str] = {}
    for op in order:
        k = op.value.get("k")
        if op.f == "window":
            if sorted((row[0], row[2]) for row in op.result["rows"]) != sorted(rows.items()):
                return False
        elif op.f == "insert":
            if (k in rows) is not op.failed and not op.unknown:
                return False
            if not op.failed:
                rows.setdefault(k, op.value["token"])
        else:
            took = [rows.pop(k)] if k in rows else []
            if op.ok and op.result["took"] != took:
                return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    found: list[Op] = []
    for index in range(draw(st.integers(2, 5))):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(1, 6))
        f = draw(st.sampled_from(["insert", "insert", "delete", "window"]))
        k = draw(st.integers(1, 2))
        outcome = draw(st.sampled_from([OK, OK, OK, INFO, FAIL] if f == "insert" else [OK, OK, INFO]))
        puts = [op for op in found if op.f == "insert"]
        result, error = None, None
        value: dict = {"k": k}
        if f == "insert":
            value |= {"slot": None, "token": f"t{index}"}
            error = ("23505", "") if outcome == FAIL else None
        elif f == "delete":
            there = [op.value["token"] for op in puts if op.value["k"] == k]
            result = {"took": [draw(st.sampled_from(there))] if there and draw(st.booleans()) else []}
        else:
            value, outcome = {"lower": 0, "upper": 9}, OK
            seen = {op.value["k"]: op for op in puts if draw(st.booleans())}
            result = {"rows": [[at, None, op.value["token"], None] for at, op in seen.items()]}
        found.append(Op(index, index, "keys", f, value, start, None if outcome == INFO else end, outcome,
                        result if outcome == OK else None, error))  # fmt: skip
    return found


@settings(max_examples=150, deadline=None)
@given(histories())
def test_what_some_order_explains_is_never_invalid(ops: list[Op]) -> None:
    verdict = check(ops)
    if verdict.valid == INVALID:
        assert not explained(ops), verdict.anomalies
