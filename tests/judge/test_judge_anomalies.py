"""The checker of the four anomalies: histories that must pass and fail, brute force on small ones, mutations."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.anomalies import check
from judge.history import FAIL, INFO, OK, Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID

MISSING = ("42P01", 'relation "t" does not exist')


def history(text: str) -> list[Op]:
    """All of table t: ``create()``, ``insert(1)``, ``select()=1,2``, ``index()``, ``select_index()=1``, ``drop()``."""
    words = []
    for process, f, row, rows, times in re.findall(r"(\d+):(\w+)\((\d*)\)(?:=([\d,]*))?(\[\S*)", text):
        answered = f.startswith("select") and times.endswith("]") and ",]" not in times
        result = f'={{"rows":[{rows}]}}' if answered else ""
        words.append(f"{process}:{f}({row}){result}{times}")
    assert len(words) == len(text.split())
    ops = parse(" ".join(words), "anomalies")
    return [
        dataclasses.replace(op, value={"table": "t", "row": op.value} if op.f == "insert" else {"table": "t"})
        for op in ops
    ]


PASS = {
    "serial": "0:create()[0,1] 1:insert(1)[2,3] 0:select()=1[4,5] 1:index()[6,7] 0:select_index()=1[8,9] 1:drop()[9,9]",
    "before the answer": "0:create()[0,9] 1:insert(1)[2,3]!42P01 1:insert(2)[4,5] 0:select()=2[10,11]",
    "an unknown create": "0:create()[0,] 1:insert(1)[2,3]!42P01 1:insert(2)[4,5] 1:select()=2[6,7]",
    "an unknown drop lands late": "0:create()[0,1] 1:select()=[2,3] 0:drop()[4,] 1:insert(1)[5,6] 1:drop()[7,8]!42P01",
    "beside the drop": "0:create()[0,1] 2:insert(1)[2,3] 0:drop()[4,9] 1:select()[5,6]!42P01",
    "gone after the drop": "0:create()[0,1] 1:insert(1)[2,3] 0:drop()[4,5] 1:select()[6,7]!42P01",
    "a row under way": "0:create()[0,1] 0:insert(1)[2,9] 1:select()=[3,4] 1:select()=1[5,6]",
    "an unknown row": "0:create()[0,1] 0:insert(1)[2,] 1:select()=[3,4] 1:select()=1[5,6] 1:select()=1[7,8]",
    "a failed row": "0:create()[0,1] 0:insert(1)[2,3]!40001 1:select()=[4,5]",
    "a read that timed out": "0:create()[0,1] 0:index()[2,3] 1:select_index()[4,5]!57014",
    "an index under way": "0:create()[0,1] 0:index()[2,9] 1:select_index()[4,5]!42704",
}

MUST_FAIL = {
    "no table for INSERT": ("0:create()[0,1] 1:insert(1)[2,3]!42P01", "table-missing"),
    "no table for SELECT": ("0:create()[0,1] 1:select()[2,3]!42P01", "table-missing"),
    "no table for DROP": ("0:create()[0,1] 1:drop()[2,3]!42P01", "table-missing"),
    "an unknown create that was used": ("0:create()[0,] 1:insert(1)[2,3] 1:select()[4,5]!42P01", "table-missing"),
    "a create that met another": ("0:create()[0,] 1:create()[2,3]!42P07 1:select()[4,5]!42P01", "table-missing"),
    "dropped only later": ("0:create()[0,1] 1:select()[2,3]!42P01 0:drop()[4,5]", "table-missing"),
    "a failed drop": ("0:create()[0,1] 0:drop()[2,3]!40001 1:select()[4,5]!42P01", "table-missing"),
    "a row is missing": ("0:create()[0,1] 0:insert(1)[2,3] 1:select()=[4,5]", "missing-row"),
    "a row is missing in the index": (
        "0:create()[0,1] 0:insert(1)[2,3] 0:index()[4,5] 1:select_index()=[6,7]",
        "missing-row",
    ),
    "a row was seen and is gone": ("0:create()[0,1] 0:insert(1)[2,] 1:select()=1[3,4] 1:select()=[5,6]", "missing-row"),
    "an index unknown": ("0:create()[0,1] 0:index()[2,3] 1:select_index()[4,5]!42704", "index-missing"),
    "an index without its table": ("0:create()[0,1] 0:index()[2,3] 1:select_index()[4,5]!42P01", "table-missing"),
    "dropped and seen": ("0:create()[0,1] 0:drop()[2,3] 1:select()=[4,5]", "dropped-table-seen"),
    "a row of nobody": ("0:create()[0,1] 1:select()=7[2,3]", "phantom-row"),
    "a failed row seen": ("0:create()[0,1] 0:insert(1)[2,3]!40001 1:select()=1[4,5]", "phantom-row"),
    "a row of the future": ("0:create()[0,1] 1:select()=1[2,3] 0:insert(1)[4,5]", "phantom-row"),
    "a row twice": ("0:create()[0,1] 0:insert(1)[2,3] 1:select()=1,1[4,5]", "doubled-row"),
}


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == INVALID and verdict.kinds == {kind}, verdict.anomalies


def test_a_controller_that_does_not_know_an_index_is_found_by_what_it_says() -> None:
    ops = history("0:create()[0,1] 0:index()[2,3] 1:select_index()[4,5]!XX000")
    ops[-1] = dataclasses.replace(ops[-1], error=("XX000", "the controller does not know index u7"))
    assert check(ops).kinds == {"index-missing"}


@pytest.mark.parametrize("text", ["", "0:create()[0,1]", "0:create()[0,] 1:select()[2,3]!42P01"])
def test_where_nothing_could_be_wrong_it_is_unknown(text: str) -> None:
    assert check(history(text)).valid == UNDECIDED


def test_the_anomaly_names_the_adapters() -> None:
    ops = history("0:create()[0,1] 1:insert(1)[2,3]!42P01")
    ops = [dataclasses.replace(op, node=f"adapter-{op.process + 1}") for op in ops]
    (found,) = check(ops).anomalies
    assert found.ops == (0, 1) and found.key == "t"
    assert "insert through adapter-2" in found.text and "create through adapter-1" in found.text


# -- brute force ------------------------------------------------------------------------------------------------------


def explained(ops: Sequence[Op]) -> bool:
    """Whether some order of the operations, respecting real time, explains all answers; what was told 42P01 looked at
    the table too.  Any other failure did nothing."""
    sure = [op for op in ops if op.ok or (op.failed and op.error == MISSING)]
    maybe = [op for op in ops if op.unknown]
    return any(
        _order(frozenset(), None, [*sure, *chosen])
        for count in range(len(maybe) + 1)
        for chosen in itertools.combinations(maybe, count)
    )


def _order(done: frozenset[int], rows: Counter | None, ops: list[Op]) -> bool:
    """``rows``: of the table, ``None`` while it is not there."""
    if len(done) == len(ops):
        return True
    for op in ops:
        if op.index in done or any(o.before(op) and o.index not in done for o in ops):
            continue
        after = _step(op, rows)
        if after is not False and _order(done | {op.index}, after, ops):
            return True
    return False


def _step(op: Op, rows: Counter | None) -> Counter | None | bool:
    if op.failed:
        return rows if rows is None else False
    if (rows is None) != (op.f == "create"):
        return False
    if op.f == "insert":
        return (rows or Counter()) + Counter([op.value["row"]])
    if op.f == "select" and op.ok and Counter(op.result["rows"]) != rows:
        return False
    return Counter() if op.f == "create" else None if op.f == "drop" else rows


def _op(process, f, start, end, outcome=OK, row=None, result=None, error=None, table="t") -> Op:
    value = {"table": table} if row is None else {"table": table, "row": row}
    return Op(0, process, "anomalies", f, value, start, end, outcome, result, error)


def _indexed(ops: Sequence[Op]) -> list[Op]:
    return [dataclasses.replace(op, index=i) for i, op in enumerate(sorted(ops, key=lambda op: op.start))]


@st.composite
def small(draw: st.DrawFn) -> list[Op]:
    """One create, at most one drop, some inserts and selects, with answers that may be wrong."""
    fs = ["create", *draw(st.lists(st.sampled_from(("insert", "select", "select")), min_size=1, max_size=4))]
    if draw(st.booleans()):
        fs.insert(draw(st.integers(1, len(fs))), "drop")
    ops, rows, clock = [], [], 0
    for process, f in enumerate(fs):
        start = max(0, clock - draw(st.integers(0, 3)) + 1)
        end = start + draw(st.integers(0, 3))
        clock = max(clock, end)
        outcome = draw(st.sampled_from((OK, OK, OK, INFO, FAIL)))
        times = start, None if outcome == INFO else end
        if f == "select":
            shown = [row for row in rows if draw(st.integers(0, 5))]
            outcome = OK if outcome == INFO else outcome
            ops.append(_op(process, f, start, end, outcome, result={"rows": shown} if outcome == OK else None,
                           error=MISSING if outcome == FAIL else None))  # fmt: skip
        elif f == "insert":
            if outcome == OK or (outcome == INFO and draw(st.booleans())):
                rows.append(process)
            ops.append(_op(process, f, *times, outcome, row=process, error=MISSING if outcome == FAIL else None))
        else:
            ops.append(_op(process, f, *times, outcome, error=("57014", "no") if outcome == FAIL else None))
    return _indexed(ops)


@settings(max_examples=300, deadline=None)
@given(small())
def test_what_some_order_explains_is_never_invalid(ops: list[Op]) -> None:
    if explained(ops):
        verdict = check(ops)
        assert verdict.valid != INVALID, verdict.anomalies


# -- mutations and speed ----------------------------------------------------------------------------------------------


def valid_run(rng: random.Random, tables: int) -> list[Op]:
    """Each worker leads a table through its life, one step after another; others look at it meanwhile."""
    ops: list[Op] = []
    others = itertools.count(10**6)
    for number in range(tables):
        worker, table, now = number % 5, f"x{number}", (number // 5) * 1000 + number % 5
        rows: list[int] = []
        steps = ["create", *rng.choices(("insert", "select", "index", "select_index"), (4, 3, 1, 2), k=7), "drop"]
        for step in steps:
            start, end = now, now + rng.randint(2, 9)
            now = end + rng.randint(1, 5)
            row = len(rows) if step == "insert" else None
            rows += [row] if row is not None else []
            result = {"rows": list(rows)} if step.startswith("select") else None
            ops.append(_op(worker, step, start, end, OK, row, result, table=table))
            if step == "create" or (step == "drop" and rng.random() < 0.3):
                ops.append(_op(next(others), "select", start, end, FAIL, error=MISSING, table=table))
    return _indexed(ops)


def drop_a_row(rng: random.Random, ops: list[Op]) -> None:
    rows = rng.choice([op for op in ops if op.result and op.result["rows"]]).result["rows"]
    rows.pop(rng.randrange(len(rows)))


def double_a_row(rng: random.Random, ops: list[Op]) -> None:
    rows = rng.choice([op for op in ops if op.result and op.result["rows"]]).result["rows"]
    rows.append(rng.choice(rows))


def a_row_of_another(rng: random.Random, ops: list[Op]) -> None:
    rng.choice([op for op in ops if op.result]).result["rows"].append(99)


def not_found(rng: random.Random, ops: list[Op]) -> None:
    at = rng.choice([i for i, op in enumerate(ops) if op.f in ("insert", "select") and op.ok])
    ops[at] = dataclasses.replace(ops[at], outcome=FAIL, result=None, error=MISSING)


@pytest.mark.parametrize("mutate", [drop_a_row, double_a_row, a_row_of_another, not_found])
@pytest.mark.parametrize("seed", range(8))
def test_a_mutation_of_a_valid_run_is_found(mutate, seed: int) -> None:
    rng = random.Random(seed)
    ops = valid_run(rng, 40)
    assert check(ops).valid == VALID, check(ops).anomalies[:2]
    mutate(rng, ops)
    assert check(ops).valid == INVALID


def test_twenty_thousand_operations_take_about_a_second() -> None:
    ops = valid_run(random.Random(1), 2000)
    began = time.process_time()
    verdict = check(ops)
    took = time.process_time() - began
    print(f"{len(ops)} operations: {took:.2f} s")
    assert verdict.valid == VALID and took < 5
