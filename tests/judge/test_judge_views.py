"""The checker of views: histories that must pass and fail, and mutations of valid runs."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections import defaultdict
from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.views import MEANINGS, check
from judge.history import FAIL, INFO, OK, Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.workloads.views import ASKED

EVENTS = "views_events"


def history(text: str) -> list[Op]:
    """``insert(40.7)`` inserts events 40 (shown by the filter) and 7; ``filter=40/40.80`` compares: view/query."""
    words = []
    for word in text.split():
        head, _, times = word.rpartition("[")
        process, _, call = head.partition(":")
        if call.startswith("insert"):
            rows = ",".join(f"[{each},0,5]" for each in call[7:-1].split("."))
            words.append(f'{process}:insert({{"table":"{EVENTS}","rows":[{rows}]}})[{times}')
        else:
            view, query = (",".join(f"[{each},5]" for each in side.split(".") if each) for side in call[7:].split("/"))
            result = f'{{"view":[{view}],"query":[{query}]}}'
            words.append(f'{process}:compare({{"view":"views_filter"}})={result}[{times}')
    return parse(" ".join(words), "views")


PASS = {
    "serial": "0:insert(40.7)[0,1] 1:filter=40/40[2,3]",
    "in another order": "0:insert(40.80)[0,1] 1:filter=80.40/40.80[2,3]",
    "under way": "0:insert(40)[0,9] 1:filter=/[1,2] 1:filter=40/40[3,4]",
    "unknown": "0:insert(40)[0,] 1:insert(80)[0,1] 1:filter=80/80[2,3] 1:filter=40.80/40.80[4,5]",
    "failed": "0:insert(40)[0,1]! 1:insert(80)[0,1] 1:filter=80/80[2,3]",
    "of the same row twice": "0:insert(40.40)[0,1] 1:filter=40.40/40.40[2,3]",
}

MUST_FAIL = {
    "the view misses a row": ("0:insert(40)[0,1] 1:filter=/40[2,3]", "view-differs"),
    "the view has a row twice": ("0:insert(40)[0,1] 1:filter=40.40/40[2,3]", "view-differs"),
    "the view leads": ("0:insert(40)[0,9] 1:filter=40/[2,3]", "view-differs"),
    "both are stale": ("0:insert(40)[0,1] 1:insert(80)[2,3] 1:filter=40/40[4,5]", "lost-write"),
    "both have it twice": ("0:insert(40)[0,1] 1:filter=40.40/40.40[2,3]", "double-apply"),
    "half of an insert": ("0:insert(40.80)[0,9] 1:filter=40/40[2,3]", "torn-write"),
    "half of an acknowledged insert": ("0:insert(40.80)[0,1] 1:filter=40/40[2,3]", "torn-write"),
    "failed and there": ("0:insert(40)[0,1]! 1:filter=40/40[2,3]", "dirty-read"),
    "of nobody": ("0:insert(40)[0,1] 1:filter=40.80/40.80[2,3]", "wrong-answer"),
    "of the future": ("1:filter=40/40[2,3] 0:insert(40)[4,5]", "wrong-answer"),
    "seen and gone": ("0:insert(40)[0,] 1:filter=40/40[2,3] 1:filter=/[4,5]", "lost-write"),
}


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == INVALID and verdict.kinds == {kind}, verdict.anomalies


def test_the_rows_that_differ_are_shown() -> None:
    (found,) = check(history("0:insert(40.80)[0,9] 1:filter=40/80[2,3]"), meanings={}).anomalies
    assert "only in the view: [40, 5]; only in the query: [80, 5]" in found.text and found.key == "views_filter"


@pytest.mark.parametrize("text", ["", "0:insert(40)[0,1]", "0:insert(40)[0,] 1:filter=/[2,3]"])
def test_what_says_nothing_is_unknown(text: str) -> None:
    assert check(history(text)).valid == UNDECIDED


# -- a model ----------------------------------------------------------------------------------------------------------


def rows_of(view: str, events: Sequence[Sequence]) -> list[list]:
    """What the workload's queries say of ``events``."""

    def total(amounts: list) -> int | None:
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known else None

    groups: dict[int, list] = defaultdict(list)
    for _, customer, amount in events:
        groups[customer].append(amount)
    sums = [[customer, len(amounts), total(amounts)] for customer, amounts in sorted(groups.items())]
    if view == "views_filter":
        return [[number, amount] for number, _, amount in events if number % 40 == 0]
    if view == "views_sums":
        return sums
    return [[len(sums), total([n for _, n, _ in sums]), total([each for *_, each in sums])]]


VIEWS = ("views_filter", "views_sums", "views_over")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 2), st.none() | st.integers(0, 3)), max_size=12))
def test_the_meanings_are_what_the_workload_asks_in_sql(events: list[tuple]) -> None:
    """SQL itself is the judge: DuckDB answers the workload's own queries."""
    database = duckdb.connect(":memory:")
    database.execute(f"CREATE TABLE {EVENTS} (id bigint, customer int, amount int)")
    for event in events:
        database.execute(f"INSERT INTO {EVENTS} VALUES (?, ?, ?)", event)
    value = {"table": EVENTS, "rows": [list(event) for event in events]}
    for view in MEANINGS:
        rows = [list(row) for row in database.execute(ASKED[view]).fetchall()]
        assert sorted(rows, key=str) == sorted(rows_of(view, events), key=str)
        shown, added = MEANINGS[view].shown(rows), MEANINGS[view].added(value)
        assert {k: n for k, n in shown.items() if n} == {k: n for k, n in added.items() if n}
    database.close()


def _op(process, f, value, start, end, outcome=OK, result=None) -> Op:
    return Op(0, process, "views", f, value, start, end, outcome, result)


def _indexed(ops: Sequence[Op]) -> list[Op]:
    return [dataclasses.replace(op, index=i) for i, op in enumerate(sorted(ops, key=lambda op: op.start))]


def explained(ops: Sequence[Op]) -> bool:
    """Whether some order of all known and some unknown operations, respecting real time, gives every answer."""
    sure, maybe = [op for op in ops if op.ok], [op for op in ops if op.unknown]
    return any(
        _order(frozenset(), [], [*sure, *chosen])
        for count in range(len(maybe) + 1)
        for chosen in itertools.combinations(maybe, count)
    )


def _order(done: frozenset[int], events: list[list], ops: list[Op]) -> bool:
    if len(done) == len(ops):
        return True
    for op in ops:
        if op.index in done or any(o.before(op) and o.index not in done for o in ops):
            continue
        if op.f == "compare":
            now = sorted(rows_of(op.value["view"], events), key=str)
            if any(sorted(op.result[side], key=str) != now for side in ("view", "query")):
                continue
        after = events + op.value["rows"] if op.f == "insert" else events
        if _order(done | {op.index}, after, ops):
            return True
    return False


@st.composite
def small(draw: st.DrawFn) -> list[Op]:
    ops: list[Op] = []
    events: list[list] = []
    for process in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(0, 4))
        if draw(st.booleans()):
            rows = [[40 * process + i, draw(st.integers(0, 1)), draw(st.sampled_from((None, 1, 2)))] for i in range(2)]
            outcome = draw(st.sampled_from((OK, OK, OK, FAIL, INFO)))
            if outcome == OK or (outcome == INFO and draw(st.booleans())):
                events += rows
            value = {"table": EVENTS, "rows": rows}
            ops.append(_op(process, "insert", value, start, None if outcome == INFO else end, outcome))
        else:
            view = draw(st.sampled_from(VIEWS))
            shown = events[: len(events) - draw(st.sampled_from((0, 0, 0, 1, 2)))]
            result = {"view": rows_of(view, shown), "query": rows_of(view, shown)}
            ops.append(_op(process, "compare", {"view": view}, start, end, OK, result))
    return _indexed(ops)


@settings(max_examples=400, deadline=None)
@given(small())
def test_what_some_order_explains_is_never_invalid(ops: list[Op]) -> None:
    if explained(ops):
        verdict = check(ops)
        assert verdict.valid != INVALID, verdict.anomalies


def valid_run(rng: random.Random, count: int, workers: int = 4) -> list[Op]:
    """Every operation acts at one moment of its own."""
    free, process, lives = [0.0] * workers, list(range(workers)), itertools.count(workers)
    plans = []
    for number in range(count):
        worker = min(range(workers), key=free.__getitem__)
        start = free[worker]
        acts = start + rng.expovariate(1)
        end = acts + rng.expovariate(1)
        free[worker] = end + rng.expovariate(5)
        inserts = rng.random() < 0.4
        outcome = rng.choices((OK, FAIL, INFO), (94, 3, 3))[0] if inserts else OK
        plans.append((acts, number, start, end, process[worker], inserts, outcome))
        if outcome == INFO:
            process[worker] = next(lives)
    ops, events = [], []
    for _, number, start, end, who, inserts, outcome in sorted(plans):
        times = int(start * 1e6), None if outcome == INFO else int(end * 1e6)
        if inserts:
            rows = [
                [number * 4 + i, rng.randrange(10), rng.choice((None, *range(30)))] for i in range(rng.randint(1, 4))
            ]
            if outcome == OK or (outcome == INFO and rng.random() < 0.5):
                events += rows
            ops.append(_op(who, "insert", {"table": EVENTS, "rows": rows}, *times, outcome))
        else:
            view = rng.choice(VIEWS)
            result = {"view": rows_of(view, events), "query": rows_of(view, events)}
            ops.append(_op(who, "compare", {"view": view}, *times, OK, result))
    return _indexed(ops)


def drop_a_row(rng: random.Random, sides: Sequence[list]) -> None:
    at = rng.randrange(len(sides[0]))
    for rows in sides:
        del rows[at]


def double_a_row(rng: random.Random, sides: Sequence[list]) -> None:
    at = rng.randrange(len(sides[0]))
    for rows in sides:
        rows.append(rows[at])


@pytest.mark.parametrize("sides", [("view",), ("query",), ("view", "query")], ids=str)
@pytest.mark.parametrize("mutate", [drop_a_row, double_a_row])
@pytest.mark.parametrize("seed", range(6))
def test_a_mutation_of_a_valid_run_is_found(mutate, sides: tuple[str, ...], seed: int) -> None:
    rng = random.Random(seed)
    ops = valid_run(rng, 300)
    assert check(ops).valid == VALID, check(ops).anomalies[:2]
    op = rng.choice([op for op in ops if op.f == "compare" and op.value["view"] == "views_sums" and op.index > 30])
    mutate(rng, [op.result[side] for side in sides])
    assert check(ops).valid == INVALID


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("seed", range(4))
def test_an_old_answer_is_found(view: str, seed: int) -> None:
    rng = random.Random(seed)
    ops = valid_run(rng, 300)
    compares = [op for op in ops if op.f == "compare" and op.value["view"] == view]
    compares[-1].result.update(compares[len(compares) // 2].result)
    assert check(ops).valid == INVALID


def test_five_thousand_operations_are_judged_in_seconds() -> None:
    ops = valid_run(random.Random(1), 5_000)
    began = time.process_time()
    verdict = check(ops)
    took = time.process_time() - began
    print(f"{len(ops)} operations: {took:.2f} s, {verdict.counts}")
    assert verdict.valid == VALID and took < 30
