"""The checker of sinks: what honest sinks write passes, and each way of writing otherwise fails."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from judge.checkers.sinks import BEHIND, BROKER, FIRST, LOG, ROWS, SUMS, check, digest, group_of, said_by, sums_of
from judge.history import FAIL, INFO, OK, Fault, Op
from judge.live.nemesis import is_broker
from judge.live.network import BROKERS
from judge.verdict import INVALID, UNDECIDED, VALID

S = 1_000_000_000
PARTITIONS = 2


def message(topics: dict, sink: str, number: int, key: str | None, value: dict | None, ts: int) -> None:
    topics[sink].setdefault(str(number % PARTITIONS), []).append([key, value, ts])


def put(topics: dict, k: int, name: str | None, n: int | None, ts: int) -> None:
    value = None if name is None else {"k": k, "g": group_of(k), "id": name, "n": n}
    message(topics, ROWS, k, json.dumps({"k": k}), value, ts)


def regroup(topics: dict, before: dict, after: dict, ts: int) -> None:
    for g in sorted(set(before) | set(after)):
        one, other = ({"g": g, "n": sums[g][0], "total": sums[g][1]} if g in sums else None for sums in (before, after))
        if one != other:
            op = "u" if one and other else "c" if other else "d"
            value = {"before": one, "after": other, "op": op if ts > 10 else "r", "ts_ms": ts}
            message(topics, SUMS, g, json.dumps({"g": g}), value, ts)


def honest(seed: int = 1, count: int = 30) -> list[Op]:
    """Changes one after the other, every third unknown and every fifth failed, a tail of each sink in the middle, and
    what sinks make of it; the view leaves out every second timestamp."""
    rng = random.Random(seed)
    topics: dict = {LOG: {}, ROWS: {}, SUMS: {}}
    rows = {0: (f"{FIRST}-0", 5), 1: (f"{FIRST}-1", 6)}
    for k, (name, n) in rows.items():
        message(topics, LOG, k, None, {"id": name, "k": k, "n": n}, 9)
        put(topics, k, name, n, 10)
    told = sums_of({k: n for k, (_, n) in rows.items()})
    regroup(topics, {}, told, 8)
    ops: list[Op] = []

    def add(f: str, value: object, outcome: str = OK, result: object = None) -> None:
        start = 10 * len(ops) * S
        ops.append(Op(len(ops), len(ops), "sinks", f, value, start, None if outcome == INFO else start + S, outcome,
                      result if outcome == OK else None))  # fmt: skip

    names = [f"{FIRST}-0", f"{FIRST}-1"]
    for number in range(count):
        keys = rng.sample(range(6), rng.randint(1, 3))
        gone = [k for k in keys if rng.random() < 0.4]
        value = {"id": f"0-{number}", "puts": {str(k): rng.randrange(50) for k in keys if k not in gone}, "gone": gone}
        outcome = FAIL if number % 5 == 4 else INFO if number % 3 == 2 else OK
        add("change", value, outcome)
        if outcome == FAIL or outcome == INFO and rng.random() < 0.5:
            continue
        ts = 100 + 10 * number
        names.append(value["id"])
        for k, n in said_by(value).items():
            message(topics, LOG, number, None, {"id": value["id"], "k": k, "n": n}, ts)
            before = rows.pop(k, None)
            if n is not None:
                rows[k] = value["id"], n
                put(topics, k, value["id"], n, ts)
            elif before is not None:
                put(topics, k, None, None, ts)
        if number % 2 == 0 or number == count - 1:
            now = sums_of({k: n for k, (_, n) in rows.items()})
            regroup(topics, told, now, ts)
            told = now
        if number == count // 2:
            for sink, partitions in topics.items():
                seen = {p: [len(each), digest(each)] for p, each in partitions.items()}
                add("tail", {"sink": sink}, result={"note": ts, "partitions": seen})
    regroup(topics, told, sums_of({k: n for k, (_, n) in rows.items()}), 100 + 10 * count)
    notes = {sink: [10, 20, 20, 100 + 10 * count] for sink in topics}
    held = sorted([k, name, n] for k, (name, n) in rows.items())
    add("topics", None, result={"topics": topics, "notes": notes, "rows": held, "log": names})
    return ops


@pytest.mark.parametrize("seed", range(20))
def test_honest_sinks_pass(seed: int) -> None:
    verdict = check(honest(seed))
    assert verdict.valid == VALID and verdict.counts["messages"] > 50 and verdict.counts["tails"] == 3, verdict


Told = dict
"""What the last read of the topics gives."""


def without_a_line(told: Told) -> None:
    """All lines of a change that was acknowledged, and what is made of them."""
    for sink, name in ((LOG, "id"), (ROWS, "id")):
        for messages in told["topics"][sink].values():
            messages[:] = [each for each in messages if not each[1] or each[1].get(name) != "0-0"]


def all_of(told: Told, sink: str) -> list[list]:
    return next(messages for messages in told["topics"][sink].values() if len(messages) > 4)


def batch_twice(sink: str) -> Callable[[Told], None]:
    def change(told: Told) -> None:
        messages = all_of(told, sink)
        messages[-1:-1] = deepcopy(messages[-3:-1])

    return change


def one_gone(sink: str, place: int = -2) -> Callable[[Told], None]:
    return lambda told: all_of(told, sink).pop(place)


def moved(told: Told) -> None:
    one, other = told["topics"][ROWS].values()
    other.append(one.pop(0))


def other_stamp(told: Told) -> None:
    all_of(told, ROWS)[-1][2] += 1


def back_in_time(told: Told) -> None:
    """All lines of the last change that was acknowledged are older than what had ended before."""
    for messages in told["topics"][LOG].values():
        for each in messages:
            if each[1]["id"] == "0-28":
                each[2] = 101


def torn(told: Told) -> None:
    lines = [each for messages in told["topics"][LOG].values() for each in messages]
    several = next(each for each in lines if sum(other[1]["id"] == each[1]["id"] for other in lines) > 1)
    several[2] += 1


def strange(told: Told) -> None:
    all_of(told, LOG).append([None, {"id": "9-9", "k": 1, "n": 2}, 5000])


def failed_one(told: Told) -> None:
    all_of(told, LOG).append([None, {"id": "0-4", "k": 1, "n": 2}, 5000])


def other_number(told: Told) -> None:
    next(each for each in all_of(told, LOG) if each[1]["id"] != f"{FIRST}-0")[1]["n"] = 77


def row_without_a_line(told: Told) -> None:
    put(told["topics"], 0, None, None, 5000)


def other_row(told: Told) -> None:
    next(each for each in reversed(all_of(told, ROWS)) if each[1])[1]["n"] = 78


def other_milliseconds(told: Told) -> None:
    all_of(told, SUMS)[-1][1]["ts_ms"] += 1


def wrong_before(told: Told) -> None:
    pair = next(each for each in all_of(told, SUMS) if each[1]["before"])
    pair[1]["before"]["total"] += 1


def wrong_sum(told: Told) -> None:
    all_of(told, SUMS)[-1][1]["after"]["total"] += 1


def note_back(told: Told) -> None:
    told["notes"][ROWS][2] = 15


def not_held(told: Told) -> None:
    told["rows"].pop()


def not_logged(told: Told) -> None:
    told["log"].remove("0-0")


def held_unsaid(told: Told) -> None:
    told["log"].append("0-9999")


MUST_FAIL: dict[str, tuple[Callable[[Told], object], set[str]]] = {
    "a batch of lines twice": (batch_twice(LOG), {"doubled"}),
    "a batch of rows twice": (batch_twice(ROWS), {"doubled"}),
    "a batch of pairs twice": (batch_twice(SUMS), {"doubled"}),
    "a change that is lost": (without_a_line, {"lost"}),
    "a message of rows that is missing": (one_gone(ROWS), {"missed"}),
    "a pair that is missing": (one_gone(SUMS), {"wrong-before"}),
    "a key in another partition": (moved, {"out-of-order"}),
    "another timestamp": (other_stamp, {"phantom", "missed"}),
    "back in time": (back_in_time, {"went-back"}),
    "half a change": (torn, {"torn"}),
    "a line of nobody": (strange, {"phantom"}),
    "a line that failed": (failed_one, {"phantom"}),
    "a line that says something else": (other_number, {"wrong-row"}),
    "a row without a line": (row_without_a_line, {"phantom"}),
    "a row that says something else": (other_row, {"wrong-row"}),
    "other milliseconds": (other_milliseconds, {"wrong-row"}),
    "a group that was not so": (wrong_before, {"wrong-before"}),
    "a group that is not so": (wrong_sum, {"apart"}),
    "a note behind a later one": (note_back, {"note-went-back"}),
    "a row that the table has not": (not_held, {"contents-differ"}),
    "a line that the table has not": (not_logged, {"contents-differ"}),
    "a line that the sink has not": (held_unsaid, {"missed"}),
}


@pytest.mark.parametrize(("change", "kinds"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(change: Callable[[Told], object], kinds: set[str]) -> None:
    ops = [op for op in deepcopy(honest(3)) if op.f != "tail"]
    change(ops[-1].result)
    verdict = check(ops)
    assert verdict.valid == INVALID and kinds <= verdict.kinds, verdict


@pytest.mark.parametrize("gone, puts", [("9-1", "9-2"), ("9-2", "9-1")])
def test_two_changes_at_one_timestamp_did_not_see_each_other(gone, puts):
    """One found no row, whichever is called first; a row that was there is no one's to end beside it."""
    for there, valid in ((False, VALID), (True, INVALID)):
        told = {"topics": {LOG: {}, ROWS: {}, SUMS: {}}, "rows": [[7, puts, 3]], "log": ["0-0", gone, puts]}
        topics, last = told["topics"], {7: 1} if there else {}
        lines = [("0-0", {8: 2} | last, [], 100), (gone, {}, [7], 200), (puts, {7: 3}, [], 200)]
        ops = []
        for at, (name, put_rows, gone_keys, ts) in enumerate(lines):
            value = {"id": name, "puts": {str(k): n for k, n in put_rows.items()}, "gone": gone_keys}
            start = min(at, 1) * 10 * S
            ops.append(Op(at, at, "sinks", "change", value, start, start + S, OK, None))
            for k, n in said_by(value).items():
                message(topics, LOG, 0, None, {"id": name, "k": k, "n": n}, ts)
                if n is not None:
                    put(topics, k, name, n, ts)
        told["rows"].append([8, "0-0", 2])
        before = sums_of({8: 2} | last)
        regroup(topics, {}, before, 100)
        regroup(topics, before, sums_of({8: 2, 7: 3}), 200)
        told["notes"] = {sink: [200] for sink in topics}
        ops.append(Op(3, 3, "sinks", "topics", None, 50 * S, 51 * S, OK, told))
        verdict = check(ops)
        assert verdict.valid == valid and (not there or verdict.kinds == {"missed"}), verdict


def with_tail(**fields: object) -> list[Op]:
    return [replace(op, result={**op.result, **fields}) if op.f == "tail" and op.value["sink"] == ROWS else op
            for op in honest(3)]  # fmt: skip


def test_a_note_that_is_ahead_is_told_unless_a_leader_may_have_changed() -> None:
    ops = with_tail(note=5000)
    (tail,) = [op for op in ops if op.f == "tail" and op.value["sink"] == ROWS]
    assert check(ops).kinds == {"note-ahead"}
    assert all(BROKER.fullmatch(name) and is_broker(name) for name in (*BROKERS, "broker"))
    for kind, target, end, valid in (
        ("cut-off-broker", "b2", tail.start - 2 * S, VALID), ("kill", "storage", tail.start, INVALID),
        ("cut-link", "adapter-1", None, VALID), ("kill", "broker", tail.start - 60 * S, INVALID),
    ):  # fmt: skip
        assert check(ops, [Fault(tail.start - 70 * S, end, kind, target)]).valid == valid, (kind, end)


def test_what_was_read_and_is_not_there_any_more_is_told() -> None:
    assert check(with_tail(partitions={"0": [3, 17]})).kinds == {"vanished"}
    assert check(with_tail(partitions={"0": [1000, 17]})).kinds == {"vanished"}


def test_where_nobody_read_the_topics_it_is_unknown_unless_a_sink_stands_still() -> None:
    ops = honest(3)[:-1]
    assert check(ops).valid == UNDECIDED and check([]).valid == UNDECIDED
    behind = [replace(ops[0], index=100 + n, f="topics", value=None, start=(1000 + 20 * n) * S, end=(1010 + 20 * n) * S,
                      outcome=FAIL, error=(BEHIND, "rows is at 7"), result=None) for n in range(5)]  # fmt: skip
    assert check([*ops, *behind]).kinds == {"stopped"}
    assert check([*ops, *behind[:2]]).valid == UNDECIDED


def test_where_nothing_was_acknowledged_it_is_unknown() -> None:
    last = replace(honest(3, 0)[-1], index=0)
    assert check([last]).valid == UNDECIDED
