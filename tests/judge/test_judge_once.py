"""The exactly-once checker: histories that must pass and fail, a model of small ones, mutations, and its speed."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.once import check
from judge.history import FAIL, INFO, OK, Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID

LAG = 10


def history(text: str) -> list[Op]:
    """``insert(a)``, ``produce(a,b)``, ``all(view)=a,b2`` (b twice), ``ids(view)=3/2,b`` (rows/distinct, doubled)."""
    words = []
    for word in text.split():
        head, _, rest = word.partition("(")
        argument, _, rest = rest.partition(")")
        result, _, times = rest.rpartition("[")
        f = head.split(":")[1]
        if f == "insert":
            words.append(f'{head}({{"id":"{argument}"}})[{times}')
        elif f == "produce":
            ids = ",".join(f'"{each}"' for each in argument.split(","))
            words.append(f'{head}({{"ids":[{ids}]}})[{times}')
        elif f == "all":
            ids = ",".join(f'["{each[0]}",{each[1:] or 1}]' for each in result[1:].split(",") if each)
            words.append(f'{head}({{"from":"{argument}"}})={{"ids":[{ids}]}}[{times}')
        else:
            numbers, *doubled = result[1:].split(",")
            rows, distinct = numbers.split("/")
            twice = ",".join(f'"{each}"' for each in doubled)
            value = f'{{"rows":{rows},"distinct":{distinct},"doubled":[{twice}]}}'
            words.append(f'{head}({{"from":"{argument}"}})={value}[{times}')
    return parse(" ".join(words), "once")


PASS = {
    "serial": "0:insert(a)[0,1] 1:all(table)=a[2,3]",
    "unknown, there or not": "0:insert(a)[0,] 1:insert(b)[0,1] 1:all(table)=b[2,3] 1:all(table)=a,b[4,5]",
    "under way": "0:insert(a)[0,9] 1:all(table)=a[1,2] 1:all(table)=a[10,11]",
    "failed": "0:insert(a)[0,1]! 0:insert(b)[2,3] 1:all(table)=b[4,5]",
    "a source lags": "0:produce(a,b)[0,1] 1:all(source)=[2,3] 1:all(source)=a[4,5] 1:all(source)=a,b[20,21]",
    "a view over both": "0:produce(a)[0,1] 1:insert(b)[0,1] 1:all(view)=b[2,3] 1:all(view)=a,b[20,21]",
    "numbers": "0:insert(a)[0,1] 1:ids(table)=1/1[2,3] 1:all(table)=a[4,5]",
    "tried twice, there twice": "0:insert(a)[0,] 1:insert(a)[2,3] 1:all(table)=a2[4,5]",
    "part of an unknown batch": "0:produce(a,b)[0,] 1:produce(c)[0,1] 1:all(source)=a,c[20,21]",
}

MUST_FAIL = {
    "lost": ("0:insert(a)[0,1] 1:all(table)=[2,3]", "lost vanished"),
    "lost of a view": ("0:insert(a)[0,1] 1:all(view)=[2,3]", "lost"),
    "lost for good from a source": ("0:produce(a,b)[0,1] 1:all(source)=a[20,21]", "lost"),
    "lost by number": ("0:insert(a)[0,1] 1:ids(table)=0/0[2,3] 1:all(table)=a[4,5]", "lost"),
    "doubled": ("0:insert(a)[0,1] 1:all(table)=a2[2,3]", "doubled"),
    "doubled, unknown": ("0:insert(a)[0,] 1:all(table)=a2[2,3]", "doubled"),
    "doubled by name": ("0:insert(a)[0,1] 1:ids(table)=2/1,a[2,3] 1:all(table)=a[4,5]", "doubled"),
    "doubled by number": ("0:insert(a)[0,1] 1:ids(table)=2/1[2,3] 1:all(table)=a[4,5]", "doubled"),
    "doubled in the view": ("0:produce(a)[0,1] 1:all(source)=a[20,21] 1:all(view)=a2[22,23]", "doubled"),
    "nobody wrote it": ("0:insert(a)[0,1] 1:all(table)=a,z[2,3]", "phantom"),
    "failed and there": ("0:insert(a)[0,1]! 1:all(table)=a[2,3]", "phantom"),
    "in the wrong place": ("0:insert(a)[0,1] 1:all(source)=a[2,3]", "phantom"),
    "of the future": ("1:all(table)=a[0,1] 0:insert(a)[2,3]", "phantom"),
    "more than were tried": ("1:ids(table)=1/1[0,1] 0:insert(a)[2,3] 1:all(table)=a[4,5]", "phantom"),
    "seen and gone": ("0:produce(a)[0,1] 1:all(source)=a[2,3] 1:all(source)=[4,5]", "vanished"),
    "unknown, seen and gone": ("0:insert(a)[0,] 1:all(table)=a[2,3] 1:all(table)=[4,5]", "vanished"),
    "fewer than before": (
        "0:produce(a,b)[0,1] 1:ids(source)=2/2[2,3] 1:ids(source)=1/1[4,5] 1:all(source)=a,b[20,21]",
        "vanished",
    ),
}


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text), lag_ns=LAG)
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text), lag_ns=LAG)
    assert verdict.valid == INVALID and verdict.kinds <= set(kind.split()), verdict.anomalies
    assert kind.split()[0] in verdict.kinds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0:insert(a)[0,1]",
        "0:insert(a)[0,] 1:all(table)=[2,3]",
        "0:insert(a)[0,1] 1:ids(table)=1/1[2,3]",  # a number says nothing about which
        "1:all(table)=[0,1] 0:insert(a)[2,3]",
        "0:produce(a)[0,1] 1:all(source)=[2,3]",  # too soon
    ],
)
def test_where_nobody_looked_it_is_unknown(text: str) -> None:
    verdict = check(history(text), lag_ns=LAG)
    assert verdict.valid == UNDECIDED and verdict.reason, verdict


# -- against a model --------------------------------------------------------------------------------------------------


def _op(process, f, value, start, end, outcome=OK, result=None) -> Op:
    return Op(0, process, "once", f, value, start, end, outcome, result)


def _indexed(ops: Sequence[Op]) -> list[Op]:
    return [dataclasses.replace(op, index=i) for i, op in enumerate(sorted(ops, key=lambda op: op.start))]


def explained(ops: Sequence[Op]) -> bool:
    """Whether some order of all known and some unknown inserts, and of the reads, respecting real time, gives every
    read: brute force, for SQL inserts alone."""
    sure, maybe = [op for op in ops if op.ok], [op for op in ops if op.unknown]
    return any(
        _order(frozenset(), Counter(), [*sure, *chosen])
        for count in range(len(maybe) + 1)
        for chosen in itertools.combinations(maybe, count)
    )


def _order(done: frozenset[int], rows: Counter, ops: list[Op]) -> bool:
    if len(done) == len(ops):
        return True
    for op in ops:
        if op.index in done or any(o.before(op) and o.index not in done for o in ops):
            continue
        if op.f == "all" and Counter(dict(op.result["ids"])) != rows:
            continue
        if op.f == "ids" and (op.result["rows"], op.result["distinct"]) != (rows.total(), len(rows)):
            continue
        after = rows + Counter([op.value["id"]]) if op.f == "insert" else rows
        if _order(done | {op.index}, after, ops):
            return True
    return False


@st.composite
def small(draw: st.DrawFn, unknown: bool = True) -> list[Op]:
    ops: list[Op] = []
    rows: list[str] = []
    for process in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(0, 4))
        what = draw(st.sampled_from(("insert", "insert", "all", "ids")))
        if what == "insert":
            outcome = draw(st.sampled_from((OK, OK, OK, FAIL, INFO) if unknown else (OK,)))
            each = f"i{process}"
            rows += [each] * draw(st.sampled_from((0, 1, 1, 1, 1, 1, 2)))
            ops.append(_op(process, "insert", {"id": each}, start, None if outcome == INFO else end, outcome))
            continue
        shown = Counter(rows[: draw(st.sampled_from((len(rows), len(rows), max(0, len(rows) - 1))))])
        if what == "all":
            result: dict = {"ids": [[each, n] for each, n in shown.items()]}
        else:
            doubled = [each for each, n in shown.items() if n > 1]
            result = {"rows": shown.total(), "distinct": len(shown), "doubled": doubled}
        ops.append(_op(process, what, {"from": "table"}, start, end, OK, result))
    return _indexed(ops)


@settings(max_examples=400, deadline=None)
@given(small())
def test_what_some_order_explains_is_never_invalid(ops: list[Op]) -> None:
    if explained(ops):
        verdict = check(ops)
        assert verdict.valid != INVALID, verdict.anomalies


@settings(max_examples=400, deadline=None)
@given(small(unknown=False))
def test_a_read_of_all_ids_after_everything_is_decided_exactly(ops: list[Op]) -> None:
    writes = [op for op in ops if op.f == "insert"]
    last = max((op.end for op in ops if op.end is not None), default=0)
    shown = Counter(each for op in ops if op.f == "all" for each, n in op.result["ids"] for _ in range(n))
    result = {"ids": [[each, n] for each, n in shown.items()]}
    ops = _indexed([*writes, _op(99, "all", {"from": "table"}, last + 1, last + 2, OK, result)])
    if writes:
        assert (check(ops).valid == VALID) == explained(ops)


# -- mutations and speed ----------------------------------------------------------------------------------------------


def valid_run(rng: random.Random, count: int, workers: int = 10) -> list[Op]:
    """Every operation acts at one moment of its own; the last reads are after everything, one at each place."""
    free, process, lives = [0.0] * workers, list(range(workers)), itertools.count(workers)
    plans = []
    for number in range(count):
        worker = min(range(workers), key=free.__getitem__)
        start = free[worker]
        acts = start + rng.expovariate(1)
        end = acts + rng.expovariate(1)
        free[worker] = end + rng.expovariate(5)
        f = rng.choices(("insert", "produce", "ids"), (80, 15, 5))[0]
        outcome = OK if f == "ids" else rng.choices((OK, INFO, FAIL), (95, 3, 2 * (f == "insert")))[0]
        plans.append((acts, number, start, end, process[worker], f, outcome))
        if outcome == INFO:
            process[worker] = next(lives)
    rows: dict[str, Counter] = {place: Counter() for place in ("table", "source", "view")}
    ops = []
    for _, number, start, end, who, f, outcome in sorted(plans):
        times = int(start * 1e9), None if outcome == INFO else int(end * 1e9)
        landed = outcome == OK or (outcome == INFO and rng.random() < 0.5)
        if f == "ids":
            place = rng.choice(list(rows))
            result = {"rows": rows[place].total(), "distinct": len(rows[place]), "doubled": []}
            ops.append(_op(who, "ids", {"from": place}, *times, OK, result))
            continue
        ids = [f"{number}-{i}" for i in range(1 if f == "insert" else 3)]
        for place in ("table" if f == "insert" else "source", "view"):
            rows[place].update(ids if landed else ())
        ops.append(_op(who, f, {"id": ids[0]} if f == "insert" else {"ids": ids}, *times, outcome))
    end = max(op.end or op.start for op in ops)
    for n, place in enumerate(rows):
        result = {"ids": [[each, count] for each, count in rows[place].items()]}
        start = end + (10 + n) * 10**9
        ops.append(_op(10**6, "all", {"from": place}, start, start + 10**6, OK, result))
    return _indexed(ops)


def drop_a_row(rng: random.Random, ops: list[Op]) -> None:
    acknowledged = {each for op in ops if op.ok for each in _written(op)}
    ids = rng.choice(_finals(ops)).result["ids"]
    ids.remove(rng.choice([pair for pair in ids if pair[0] in acknowledged]))


def double_a_row(rng: random.Random, ops: list[Op]) -> None:
    rng.choice(rng.choice(_finals(ops)).result["ids"])[1] += 1


def show_a_failed_row(rng: random.Random, ops: list[Op]) -> None:
    failed = [op.value["id"] for op in ops if op.failed]
    rng.choice([op for op in _finals(ops) if op.value["from"] != "source"]).result["ids"].append([failed[0], 1])


def an_older_number(rng: random.Random, ops: list[Op]) -> None:
    reads = [op for op in ops if op.f == "ids" and op.value["from"] != "source"]
    late = [op for op in reads if op.start > reads[len(reads) // 2].start]
    rng.choice(late).result.update(reads[0].result)


def _written(op: Op) -> list[str]:
    return [op.value["id"]] if op.f == "insert" else op.value["ids"] if op.f == "produce" else []


def _finals(ops: list[Op]) -> list[Op]:
    return [op for op in ops if op.f == "all"]


@pytest.mark.parametrize("mutate", [drop_a_row, double_a_row, show_a_failed_row, an_older_number])
@pytest.mark.parametrize("seed", range(8))
def test_a_mutation_of_a_valid_run_is_found(mutate, seed: int) -> None:
    rng = random.Random(seed)
    ops = valid_run(rng, 400)
    assert check(ops).valid == VALID, check(ops)
    mutate(rng, ops)
    assert check(ops).valid == INVALID


def test_twenty_thousand_operations_take_about_a_second() -> None:
    ops = valid_run(random.Random(1), 20_000)
    began = time.process_time()
    verdict = check(ops)
    took = time.process_time() - began
    print(f"{len(ops)} operations: {took:.2f} s")
    assert verdict.valid == VALID and took < 5
