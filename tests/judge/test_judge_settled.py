"""The checker of settled rows: histories that must pass, that must fail, and that say nothing; and its workload, whose
statements do what its model does."""

from __future__ import annotations

import json
import random
import re
from itertools import islice

import duckdb
import pytest

from judge.checkers import settled
from judge.history import Op
from judge.notation import parse
from judge.shrink import shrink
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.workloads.settled import CARRIED_BYTES, LANE_ROWS, Keys, Settled, letter, parts_of, statements


def history(text: str) -> list[Op]:
    """``+0-2`` inserts the keys 0 and 1, ``!0-2`` writes them anew, ``-0-1`` takes 0 away, each of process ``p``'s own
    lane; ``see@9=0.1,1.1`` reads as of now, which is 9, two keys of lane 0 written by its first step, ``see=`` without
    being told when, ``was@9=`` as of 9; ``files=2``."""
    words, steps = [], {}
    for word in text.split():
        process, _, rest = word.partition(":")
        call, bracket, times = rest.partition("[")
        if call[0] in "+!-":
            step = steps[process] = steps.get(process, 0) + 1
            parts = []
            for each in re.findall(r"[+!-]\d+-\d+", call):
                low, high = map(int, each[1:].split("-"))
                what = {"+": "insert", "!": "update", "-": "delete"}[each[0]]
                parts.append([what, low, high] if what == "delete" else [what, low, high, 7])
            value = json.dumps({"table": "t", "lane": process, "step": step, "parts": parts}, separators=(",", ":"))
            words.append(f"{process}:change({value}){bracket}{times}")
        elif call.startswith("files"):
            files = int(call[6:])
            words.append(f'{process}:files({{"table":"t"}})={{"files":{files}}}{bracket}{times}')
        else:
            head, given, shown = call.partition("=")
            f, _, ts = head.partition("@")
            lane, _, shown = shown.rpartition("/")
            rows = [[int(n) for n in each.split(".")] + [7] for each in shown.split(",") if each]
            value = json.dumps({"table": "t", "at": "past" if f == "was" else "told" if ts else "now"})
            answer = json.dumps({"ts": int(ts) if ts else None, "lane": lane or "0", "rows": rows})
            answer = f"={answer}" if given else ""
            f = "was" if f == "was" else "rows"
            words.append(f"{process}:{f}({value}){answer}{bracket}{times}".replace(" ", ""))
    return parse(" ".join(words), "settled")


EVIDENCE = " 8:was@1=[1,2] 9:files=1[1,2]"
"""Without which nobody knows anything: it was before everything, and there was a file."""

PASS = {
    "read again": "0:+0-2[3,4] 1:see@9=0.1,1.1[5,6] 0:-0-1[7,8] 1:was@9=0.1,1.1[9,10] 1:see@20=1.1[11,12]",
    "written anew": "0:+0-2[3,4] 0:!0-1[5,6] 1:see@9=0.2,1.1[7,8]",
    "of several parts": "0:+0-4-1-3[3,4] 1:see@9=0.1,3.1[7,8]",
    "one that failed": "0:+0-2[3,4]! 0:+2-3[5,6] 1:see@9=2.2[7,8]",
    "under way": "0:+0-2[3,20] 1:see@9=[5,6] 2:see@9=[5,7] 1:see@12=0.1,1.1[8,9] 2:was@9=[21,22]",
    "unknown, and was": "0:+0-2[3,] 1:see@9=[5,6] 1:see@12=0.1,1.1[8,9]",
    "unknown, and was not": "0:+0-2[3,]  1:see@12=[8,9] 1:was@12=[50,60]",
    "not told": "0:+0-2[3,4] 1:see=0.1,1.1[5,6] 0:-0-2[7,9] 1:see=[8,9] 1:see=[10,11]",
    "a past that is refused": "0:+0-2[3,4] 1:see@9=0.1,1.1[5,6] 1:was@9[70,71]!22023",
    "what changes nothing": "1:see@9=[1,2] 0:-0-1[3,4] 1:see@9=[5,6] 0:+0-1[7,8] 0:!5-9[9,10] 1:see@12=0.2[11,12]",
    "refused for a while": "0:+0-2[3,4] 1:see@9[5,6]!58P01 1:see@9=0.1,1.1[7,8] 1:see@12[9,10]!57014",
    "of somebody else": "0:+0-2[3,4] 1:see@9=5/[5,6]",
    "as it was before": "0:+0-1[3,4] 0:-0-1[5,6] 1:see@9=[7,8] 1:was@5=[9,10] 1:was@4=0.1[11,12] 1:was@2=[13,14]",
}

FAIL = {
    "a row is lost when it is sealed": (
        "0:+0-2[3,4] 1:see@9=0.1,1.1[5,6] 1:was@9=0.1[9,10]", "wrong-rows",
    ),
    "a row is there twice": ("0:+0-2[3,4] 1:see@9=0.1,0.1,1.1[5,6]", "wrong-rows"),
    "a row that was taken back comes again": (
        "0:+0-2[3,4] 0:-0-1[5,6] 1:see@9=1.1[7,8] 1:see@12=0.1,1.1[9,10]", "lost-write",
    ),
    "one snapshot, two answers": ("0:+0-2[3,4] 0:-0-1[5,20] 1:see@9=1.1[7,8] 1:was@9=0.1,1.1[9,10]", "changed"),
    "it went back": ("0:+0-2[3,4] 0:-0-1[5,20] 1:see@9=1.1[7,8] 1:see@12=0.1,1.1[9,10]", "went-back"),
    "of a later time": ("0:+0-2[3,4] 1:see@9=0.1,1.1[5,6] 0:-0-1[7,8] 1:was@9=1.1[9,10]", "changed"),
    "the past knows what came later": ("0:+0-2[3,4] 1:was@2=[4,5] 0:-0-1[8,9] 1:was@3=1.1[6,7]", "future-read"),
    "one that failed": ("0:+0-2[3,4]! 1:see@9=0.1,1.1[5,6]", "wrong-rows"),
    "not told, and lost": ("0:+0-2[3,4] 1:see=[5,6]", "lost-write"),
    "half of a transaction": ("0:+0-2-0-1[3,4] 1:see@9=0.1,1.1[5,6]", "wrong-rows"),
    "no file of it is there any more": ("0:+0-2[3,4] 1:see@9=0.1,1.1[5,6] 1:see@10[7,8]!58P01", "refused"),
    "a file of it is damaged": ("0:+0-2[3,4] 1:see@9[5,6]!XX001 1:see@10=0.1,1.1[7,8]", "refused"),
    "nobody's": ("0:+0-2[3,4] 1:see@9=5/0.1[5,6]", "wrong-rows"),
}  # fmt: skip


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_what_must_pass(text: str) -> None:
    verdict = settled.check(history(text + EVIDENCE))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(("text", "kind"), FAIL.values(), ids=FAIL)
def test_what_must_fail(text: str, kind: str) -> None:
    verdict = settled.check(history(text + EVIDENCE))
    assert verdict.valid == INVALID and kind in verdict.kinds, verdict
    assert all(each.ops for each in verdict.anomalies)


@pytest.mark.parametrize("text", ["9:files=1[1,2]", "9:was@1=[1,2]", "8:was@1=[1,2] 9:files=0[3,4]", ""])
def test_what_says_nothing_is_unknown(text: str) -> None:
    verdict = settled.check(history("0:+0-2[3,4] 1:see@9=0.1,1.1[5,6] " + text))
    assert verdict.valid == UNDECIDED, verdict


def test_a_failing_history_is_cut_to_what_shows_it() -> None:
    more = " ".join(f"7:+{n}-{n + 1}[{3 + 2 * n},{4 + 2 * n}]" for n in range(20))
    ops = history(FAIL["one snapshot, two answers"][0] + EVIDENCE + " " + more)
    smaller = shrink(ops, settled.check)
    assert len(smaller.ops) <= 5 < len(ops)


def made(seed: int, reads_of: str, count: int = 60) -> tuple[list[Op], random.Random]:
    """A history of two lanes on one real table, each transaction a timestamp, and what was read at random ones."""
    rng = random.Random(seed)
    db, ops, then = duckdb.connect(), [], []
    db.execute("CREATE TABLE settled_plain (lane text, k int, n int, pad text)")
    lanes = {name: Keys() for name in ("a", "b")}
    for turn in range(count):
        lane = rng.choice("ab")
        parts = lanes[lane].placed(parts_of(rng))
        for each in statements("settled_plain", lane, lanes[lane].step, parts):
            db.execute(each)
        value = {"table": "settled_plain", "lane": lane, "step": lanes[lane].step, "parts": parts}
        ops.append(Op(0, ord(lane), "settled", "change", value, 10 * turn, 10 * turn + 1, "ok"))
        rows = db.execute("SELECT lane, k, n, length(pad), left(pad, 1) FROM settled_plain").fetchall()
        assert all(pad == letter(n) for _, _, n, _, pad in rows)
        then.append({name: sorted([k, n, size] for lane, k, n, size, _ in rows if lane == name) for name in "ab"})
        ts = rng.randrange(turn + 1)
        if reads_of == "rows":
            result = {"ts": ts, "lane": lane, "rows": then[ts][lane]}
        else:
            sums = {name: list(settled.summed({k: (n, size) for k, n, size in of})) for name, of in then[ts].items()}
            result = {"ts": ts, "lanes": {name: of for name, of in sums.items() if of[0]}}
        value = {"table": "settled_plain", "at": "told" if ts == turn else "past"}
        ops.append(Op(0, 1, "settled", reads_of, value, 10 * turn + 2, 10 * turn + 3, "ok", result))
    ops.append(Op(0, 1, "settled", "files", {"table": "settled_plain"}, 1, 2, "ok", {"files": 1}))
    return [Op(n, *[getattr(op, name) for name in Op.__slots__[1:10]]) for n, op in enumerate(ops)], rng


@pytest.mark.parametrize("reads_of", ["rows", "sums"])
@pytest.mark.parametrize("seed", range(4))
def test_what_an_engine_made_of_its_statements_is_what_the_model_says_and_anything_else_is_wrong(
    seed: int, reads_of: str
) -> None:
    ops, rng = made(seed, reads_of)
    verdict = settled.check(ops)
    assert verdict.valid == VALID and verdict.counts["again"], verdict
    # One read, of which one row or one sum is another.
    wrong = rng.choice([op for op in ops if op.f == reads_of and (op.result.get("rows") or op.result.get("lanes"))])
    if reads_of == "rows":
        wrong.result["rows"] = wrong.result["rows"][1:]
    else:
        lane = rng.choice(sorted(wrong.result["lanes"]))
        wrong.result["lanes"][lane][rng.randrange(5)] += 1
    verdict = settled.check(ops)
    assert verdict.valid == INVALID and wrong.index in {n for each in verdict.anomalies for n in each.ops}


def test_transactions_are_on_both_sides_of_what_a_commit_carries_and_lanes_stay_short() -> None:
    rng, keys, sizes, longest = random.Random(5), Keys(), [], 0
    there: settled.Rows = {}
    for each in islice(Settled().invocations(rng, 0, 1), 3000):
        if each.f != "change":
            continue
        parts = keys.placed(each.value["parts"])
        text = "".join(statements("settled_plain", "0-0", keys.step, parts))
        sizes += [len(text)] if parts[0][0] == "insert" else []
        there = settled.applied(there, keys.step, parts)
        longest = max(longest, len(there))
    assert longest <= LANE_ROWS + 30
    near = [size for size in sizes if abs(size - CARRIED_BYTES) < 1500]
    assert sum(size > CARRIED_BYTES for size in sizes) > 200 and sum(size < CARRIED_BYTES for size in sizes) > 200
    assert len(near) > 50
