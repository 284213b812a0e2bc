"""The list-append checker: histories that must pass and fail, brute force on small ones, mutations, and its speed."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.checkers.list_append import check
from judge.history import FAIL, INFO, OK, MalformedHistory, Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID


def history(text: str) -> list[Op]:
    return parse(text, "append")


def indexed(ops: Sequence[Op]) -> list[Op]:
    ordered = sorted(ops, key=lambda op: op.start)
    return [
        Op(i, o.process, o.workload, o.f, o.value, o.start, o.end, o.outcome, o.result) for i, o in enumerate(ordered)
    ]


PASS = {
    "serial": "0:txn(ax1)[0,1] 1:txn(rx1)[2,3] 0:txn(ax2)[4,5] 1:txn(rx12)[6,7]",
    "a read beside a write may see it or not": "0:txn(ax1)[0,9] 1:txn(rx-)[1,2] 2:txn(rx1)[3,4]",
    "an unknown append that is seen late": "0:txn(ax1)[0,] 1:txn(rx-)[1,2] 1:txn(rx-)[3,4] 1:txn(rx1)[5,6]",
    "an unknown append that is never seen": "0:txn(ax1)[0,] 1:txn(rx-)[1,2] 1:txn(ax2)[3,4] 1:txn(rx2)[5,6]",
    "a failed append that nobody sees": "0:txn(ax1)[0,1]! 1:txn(ax2)[2,3] 1:txn(rx2)[4,5]",
    "one that reads and appends to a list": "0:txn(rx-,ax1)[0,1] 1:txn(rx1,ax2)[2,3] 1:txn(rx12)[4,5]",
    "one that reads its own appends": "0:txn(ax1,rx1,ax2,rx12)[0,5] 1:txn(rx12)[6,7]",
    "two appends of one transaction": "0:txn(ax1,ax2)[0,1] 1:txn(rx12)[2,3]",
    "unread appends at the end, in any order": "0:txn(ax1)[0,1] 1:txn(rx1)[2,3] 0:txn(ax2)[4,5] 1:txn(ax3)[4,5]",
    "equal times are not before": "0:txn(ax1)[0,2] 1:txn(rx-)[2,3] 1:txn(rx1)[4,5]",
    "two lists written together": "0:txn(ax1,ay1)[0,1] 1:txn(rx1,ry1)[2,3]",
    "positions": '0:txn(ax1)[0,1] 1:txn(ax2)[2,3] 0:positions("x")=[[0,1],[1,2]][4,5]',
    "a reader that appended unread things": "0:txn(ax1,rx1,ax2,ay5)[0,1] 1:txn(ry-)[0,2]",
}

MUST_FAIL = {
    "G0": ("0:txn(ax1,ay1)[0,9] 1:txn(ax2,ay2)[0,9] 2:txn(rx12,ry21)[10,11]", "G0"),
    "G1a": ("0:txn(ax1)[0,1]! 1:txn(rx1)[2,3]", "G1a"),
    "G1b": ("0:txn(ax1,ax2)[0,9] 1:txn(rx1)[1,2] 1:txn(rx12)[10,11]", "G1b G-single"),
    "G1c": ("0:txn(ax1,ry1)[0,9] 1:txn(ay1,rx1)[0,9]", "G1c"),
    "G-single": ("0:txn(ax1,ay1)[0,9] 1:txn(rx1,ry-)[0,9] 1:txn(rx1,ry1)[10,11]", "G-single"),
    "a torn write, its half unread": ("0:txn(ax1,ay1)[0,9] 1:txn(rx1,ry-)[0,9]", "G-single"),
    "a torn unknown write": ("0:txn(ax1,ay1)[0,] 1:txn(rx1,ry-)[0,9]", "G-single"),
    "G2-item": ("0:txn(rx-,ay1)[0,9] 1:txn(ry-,ax1)[0,9] 2:txn(rx1,ry1)[10,11]", "G2-item"),
    "G2-item, unread": ("0:txn(rx-,ay1)[0,9] 1:txn(ry-,ax1)[0,9]", "G2-item"),
    "stale read": ("0:txn(ax1)[0,1] 1:txn(rx-)[2,3] 1:txn(rx1)[4,5]", "G-single-realtime"),
    "a read goes back": ("0:txn(ax1)[0,9] 1:txn(rx1)[1,2] 2:txn(rx-)[3,4]", "G-single-realtime"),
    "a process reads back": ("0:txn(ax1)[0,9] 1:txn(rx1)[1,2] 1:txn(rx-)[2,4]", "G-single-process"),
    "order against real time": ("0:txn(ax1)[0,1] 1:txn(ax2)[2,3] 0:txn(rx21)[4,5]", "G0-realtime"),
    "a read of the future": ("0:txn(rx1)[0,1] 1:txn(ax1)[2,3]", "G1c-realtime"),
    "lost": ("0:txn(ax1)[0,1] 1:txn(rx-)[2,3]", "lost-append"),
    "lost among others": ("0:txn(ax1)[0,1] 1:txn(ax2)[2,3] 0:txn(rx2)[4,5] 1:txn(rx2)[6,7]", "lost-append"),
    "duplicate": ("0:txn(ax1)[0,1] 1:txn(rx11)[2,3]", "duplicate"),
    "phantom": ("0:txn(ax1)[0,1] 1:txn(rx17)[2,3]", "phantom"),
    "incompatible orders": ("0:txn(ax1)[0,9] 1:txn(ax2)[0,9] 2:txn(rx1)[1,2] 2:txn(rx21)[3,10]", "incompatible-order"),
    "lost update by what was read": (
        "0:txn(rx-,ax1)[0,9] 1:txn(rx-,ax2)[0,9] 2:txn(rx12)[10,11]",
        "incompatible-order",
    ),
    "own append unread": ("0:txn(ax1,rx-)[0,1]", "internal"),
    "not repeatable": ("0:txn(rx-,rx1)[0,9] 1:txn(ax1)[1,2]", "internal"),
    "lost update by position": ('0:txn(ax1)[0,9] 1:txn(ax2)[0,9] 2:positions("x")=[[0,1],[0,2]][10,11]', "lost-update"),
    "a position that is gone": (
        '0:txn(ax1)[0,1] 1:txn(ax2)[0,1]! 1:txn(ax3)[2,3] 2:positions("x")=[[0,1],[2,3]][4,5]',
        "position-hole",
    ),
    "long fork": (
        "0:txn(ax1)[0,9] 1:txn(ay1)[0,9] 2:txn(rx1,ry-)[0,9] 3:txn(rx-,ry1)[0,9] 2:txn(rx1,ry1)[10,11]",
        "G2-item",
    ),
}


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == INVALID and verdict.kinds == set(kind.split()), verdict.anomalies


def test_a_cycle_is_told_in_words_with_its_operations() -> None:
    (found,) = check(history("0:txn(ax1)[0,1] 1:txn(rx-)[2,3] 1:txn(rx1)[4,5]")).anomalies
    assert found.ops in ((0, 1), (1, 0)) and found.key == "x"
    assert "op 0 had ended" in found.text and "op 1 read list x without 1, which op 0 appended" in found.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0:txn(ax1)[0,1] 1:txn(ax2)[2,3]",
        "0:txn(rx-)[0,1]",
        "0:txn(rx-)[0,1] 1:txn(ax1)[2,3]",
        "0:txn(ax1)[0,] 1:txn(rx-)[1,2]",
    ],
)
def test_what_says_nothing_is_unknown(text: str) -> None:
    assert check(history(text)).valid == UNDECIDED


def test_what_was_taken_back_to_a_savepoint_is_seen_by_nobody() -> None:
    def txn(process: int, start: int, *steps: list) -> Op:
        return Op(start, process, "transactions", "txn", list(steps), start, start + 1, OK, list(steps))

    block = txn(0, 0, ["append", "x", 1], ["undo", "x", 2], ["r", "x", [1]], ["append", "x", 3])
    assert check([block, txn(1, 2, ["r", "x", [1, 3]])], "transactions").valid == VALID
    seen = check([block, txn(1, 2, ["r", "x", [1, 2, 3]])], "transactions")
    assert seen.valid == INVALID and "G1a" in seen.kinds
    assert any("had taken back" in each.text for each in seen.anomalies)
    own = txn(0, 0, ["append", "x", 1], ["undo", "x", 2], ["r", "x", [1, 2]])
    assert "internal" in check([own, txn(1, 2, ["r", "x", [1]])], "transactions").kinds


def test_other_workloads_are_not_looked_at() -> None:
    assert check(history(MUST_FAIL["lost"][0]), workload="other").valid == UNDECIDED


def test_a_value_appended_twice_is_the_harness_fault() -> None:
    with pytest.raises(MalformedHistory):
        check(history("0:txn(ax1)[0,1] 1:txn(ax1)[2,3]"))


# -- brute force ------------------------------------------------------------------------------------------------------


EXAMPLES = 300
"""Of each property in the everyday tests; 20,000 of each were run when the checker was written."""


def explained(ops: Sequence[Op]) -> bool:
    """Whether some order of all known and some unknown transactions, respecting real time, gives every read."""
    sure = [op for op in ops if op.ok]
    maybe = [op for op in ops if op.unknown]
    return any(
        _order(frozenset(), {}, [*sure, *chosen], set())
        for count in range(len(maybe) + 1)
        for chosen in itertools.combinations(maybe, count)
    )


def _order(done: frozenset[int], lists: dict[str, tuple[int, ...]], ops: list[Op], dead: set) -> bool:
    if len(done) == len(ops):
        return True
    state = (done, tuple(sorted(lists.items())))
    if state in dead:
        return False
    for op in ops:
        earlier = (o for o in ops if o.before(op) or (o.process == op.process and o.index < op.index))
        if op.index in done or any(o.index not in done for o in earlier):
            continue
        after = _apply(op, lists)
        if after is not None and _order(done | {op.index}, after, ops, dead):
            return True
    dead.add(state)
    return False


def _apply(op: Op, lists: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]] | None:
    lists = dict(lists)
    for what, key, value in op.result if op.ok else op.value:
        if what == "append":
            lists[key] = (*lists.get(key, ()), value)
        elif op.ok and list(lists.get(key, ())) != value:
            return None
    return lists


@st.composite
def small(draw: st.DrawFn, outcomes: Sequence[str] = (OK, OK, OK, OK, FAIL, INFO)) -> list[Op]:
    """Up to six transactions whose reads come from the states of a run that makes mistakes now and then."""
    count = draw(st.integers(2, 6))
    free: dict[int, int] = {}
    lives = itertools.count(10)
    now = dict.fromkeys("xy", ())
    past = {key: [()] for key in "xy"}
    ops, value, clock = [], 0, 0
    processes = [0, 1, 2]
    for _ in range(count):
        slot = draw(st.integers(0, 2))
        process = processes[slot]
        start = max(free.get(process, 0), draw(st.integers(max(0, clock - 3), clock + 1)))
        end = start + draw(st.integers(0, 4))
        clock = max(clock, end)
        free[process] = end + draw(st.integers(0, 1))
        outcome = draw(st.sampled_from(outcomes))
        steps, result, state = [], [], dict(now)
        for _ in range(draw(st.integers(1, 3))):
            key = draw(st.sampled_from("xy"))
            if draw(st.booleans()):
                value += 1
                state[key] = (*state[key], value)
                steps.append(["append", key, value])
                result.append(["append", key, value])
            else:
                steps.append(["r", key, None])
                if draw(st.integers(0, 5)) == 0:
                    state = {**state, key: draw(st.sampled_from(past[key]))}
                result.append(["r", key, list(state[key])])
        if outcome == OK or (outcome == INFO and draw(st.booleans())):
            appended = [(key, v) for what, key, v in steps if what == "append"]
            for key, v in appended:
                if draw(st.integers(0, 11)):
                    now[key] = (*now[key], v)
                    past[key].append(now[key])
        ended = end if outcome != INFO else None
        ops.append(Op(0, process, "append", "txn", steps, start, ended, outcome, result if outcome == OK else None))
        if outcome == INFO:
            processes[slot] = next(lives)
    ops = indexed(ops)
    return ops


@settings(max_examples=EXAMPLES, deadline=None)
@given(small())
def test_what_some_order_explains_is_never_invalid(ops: list[Op]) -> None:
    verdict = check(ops)
    if explained(ops):
        assert verdict.valid != INVALID, verdict.anomalies


@settings(max_examples=EXAMPLES, deadline=None)
@given(small(outcomes=(OK,)))
def test_where_the_versions_are_known_what_no_order_explains_is_found(ops: list[Op]) -> None:
    unread: dict[str, int] = dict.fromkeys("xy", 0)
    seen = {(key, v) for op in ops for what, key, values in op.result if what == "r" for v in values}
    for op in ops:
        for what, key, v in op.value:
            unread[key] += what == "append" and (key, v) not in seen
    verdict = check(ops)
    assert explained(ops) <= (verdict.valid != INVALID), verdict.anomalies
    if max(unread.values()) <= 1 and not explained(ops):
        assert verdict.valid == INVALID


# -- mutations and speed ----------------------------------------------------------------------------------------------


def valid_run(rng: random.Random, count: int, workers: int = 10, keys: int = 8, length_max: int = 40) -> list[Op]:
    """A strictly serializable run with failures and unknown outcomes: each transaction acts at one moment."""
    lists: dict[int, list[int]] = {key: [] for key in range(keys)}
    active = list(range(keys))
    free = [(rng.random(), worker) for worker in range(workers)]
    process = list(range(workers))
    lives = itertools.count(workers)
    plans: list[tuple[float, float, float, int, str]] = []
    values = itertools.count(1)
    for _ in range(count):
        free.sort()
        start, worker = free[0]
        acts = start + rng.expovariate(1)
        end = acts + rng.expovariate(1)
        outcome = rng.choices((OK, FAIL, INFO), (96, 2, 2))[0]
        plans.append((acts, start, end, process[worker], outcome))
        if outcome == INFO:
            process[worker] = next(lives)
        free[0] = (end + rng.expovariate(5), worker)
    ops = []
    for _, start, end, who, outcome in sorted(plans, key=lambda plan: plan[0]):
        chosen = rng.sample(active, rng.randint(1, 3))
        if rng.random() < 0.5:
            value = [["append", key, next(values)] for key in chosen]
            if outcome == OK or (outcome == INFO and rng.random() < 0.5):
                for _, key, v in value:
                    lists[key].append(v)
            result = value
        else:
            value = [["r", key, None] for key in chosen]
            result = [["r", key, list(lists[key])] for key in chosen]
        for at, key in enumerate(active):
            if len(lists[key]) >= length_max:
                active[at] = len(lists)
                lists[len(lists)] = []
        times = int(start * 1e6), int(end * 1e6) if outcome != INFO else None
        ops.append(Op(0, who, "append", "txn", value, *times, outcome, result if outcome == OK else None))
    return indexed(ops)


def _reads(ops: list[Op], at_least: int) -> Iterator[tuple[Op, int]]:
    for op in ops:
        if op.ok:
            for i, (what, _, values) in enumerate(op.result):
                if what == "r" and len(values) >= at_least:
                    yield op, i


def _writers(ops: list[Op]) -> dict[tuple[Any, int], Op]:
    return {(key, v): op for op in ops for what, key, v in op.value if what == "append"}


def drop_a_row(rng: random.Random, ops: list[Op]) -> None:
    op, i = rng.choice(list(_reads(ops, 2)))
    values = op.result[i][2]
    del values[rng.randrange(len(values) - 1)]


def double_a_row(rng: random.Random, ops: list[Op]) -> None:
    op, i = rng.choice(list(_reads(ops, 1)))
    op.result[i][2].append(rng.choice(op.result[i][2]))


def swap_two_rows(rng: random.Random, ops: list[Op]) -> None:
    read_by = {}
    for op, i in _reads(ops, 2):
        read_by.setdefault(op.result[i][1], []).append((op, i))
    op, i = rng.choice([read for reads in read_by.values() for read in reads[1:]])
    values = op.result[i][2]
    values[0], values[1] = values[1], values[0]


def stale_read(rng: random.Random, ops: list[Op]) -> None:
    """Somebody misses an element that was acknowledged before it began."""
    writers = _writers(ops)
    reads = [
        (op, i) for op, i in _reads(ops, 1)
        if (w := writers[op.result[i][1], op.result[i][2][-1]]).ok and w.before(op)
    ]  # fmt: skip
    op, i = rng.choice(reads)
    op.result[i][2].pop()


def lost_everywhere(rng: random.Random, ops: list[Op]) -> None:
    """An acknowledged append vanishes from all reads, as if it had never been."""
    writers = _writers(ops)
    seen = [
        (op.result[i][1], v) for op, i in _reads(ops, 1) for v in op.result[i][2]
        if (w := writers[op.result[i][1], v]).ok and w.before(op)
    ]  # fmt: skip
    key, value = rng.choice(seen)
    for op, i in _reads(ops, 1):
        if op.result[i][1] == key and value in op.result[i][2]:
            op.result[i][2].remove(value)


def shown_though_failed(rng: random.Random, ops: list[Op]) -> None:
    failed = [(key, v) for op in ops if op.failed for what, key, v in op.value if what == "append"]
    reads = list(_reads(ops, 0))
    key, value = rng.choice([f for f in failed if any(op.result[i][1] == f[0] for op, i in reads)])
    op, i = rng.choice([read for read in reads if read[0].result[read[1]][1] == key])
    op.result[i][2].append(value)


@pytest.mark.parametrize(
    "mutate", [drop_a_row, double_a_row, swap_two_rows, stale_read, lost_everywhere, shown_though_failed]
)
@pytest.mark.parametrize("seed", range(12))
def test_a_mutation_of_a_valid_run_is_found(mutate, seed: int) -> None:
    rng = random.Random(seed)
    ops = valid_run(rng, 400)
    assert check(ops).valid == VALID, (seed, check(ops).anomalies[:3])
    mutate(rng, ops)
    assert check(ops).valid == INVALID, seed


def test_twenty_thousand_transactions_take_about_a_second() -> None:
    ops = valid_run(random.Random(1), 20_000)
    began = time.process_time()
    verdict = check(ops)
    took = time.process_time() - began
    print(f"{len(ops)} transactions, {verdict.counts['edges']} edges: {took:.2f} s")
    assert verdict.valid == VALID
    assert took < 5  # Generous: the machine may be busy; measured below one second.


def test_a_history_wrong_throughout_is_still_judged_soon() -> None:
    """Every tenth read is stale: most of the history is one component."""
    rng = random.Random(2)
    ops = valid_run(rng, 5_000)
    for op, i in _reads(ops, 3):
        if rng.random() < 0.1:
            del op.result[i][2][-2:]
    began = time.process_time()
    verdict = check(ops)
    assert verdict.valid == INVALID and "G-single-realtime" in verdict.kinds
    assert time.process_time() - began < 30
