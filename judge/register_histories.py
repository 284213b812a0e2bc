"""Random histories of the register with the log that they left, made by a tiny register; and ways to spoil them."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from catalog_log import model
from judge.history import FAIL, INFO, OK, Op
from judge.witness import GENESIS, PROPOSAL, CatalogRecord, Change


def made(rng: random.Random, length: int, processes: int = 4, unknown: float = 0.1, foreign: float = 0.0,
         busy: float = 0.5) -> tuple[list[Op], list[CatalogRecord]]:  # fmt: skip
    """A lawful history of ``length`` operations.  Every operation has a moment of its own between start and end; an
    unknown one may land any time later or never.  ``busy`` is how eagerly a new operation begins."""
    records = [CatalogRecord(0, None, GENESIS, "g", "w", 0, 1)]
    upper, token = 1, None
    ops: list[dict] = []
    todo: list[tuple[dict, str]] = []
    late: list[dict] = []
    known = 1
    for clock in range(length * 40):
        if len(ops) == length and not todo:
            break
        if rng.random() < foreign:
            records.append(CatalogRecord(len(records), None, PROPOSAL, f"f{clock}", "node", upper, upper + 1, (
                Change(model.NODES, "n", "{}"),)))  # fmt: skip
            upper += 1
        if late and rng.random() < 0.1:
            upper, token, _ = _append(records, late.pop(rng.randrange(len(late))), upper, token)
        if len(ops) < length and len(todo) < processes and (not todo or rng.random() < busy):
            op = {"index": len(ops), "start": clock, "end": None, "result": None, "outcome": INFO, "f": "read"}
            if rng.random() < 0.6:
                expected = known if rng.random() < 0.7 else rng.randint(1, known)
                op |= {"f": "cas", "value": {"expected": expected, "new": expected + rng.randint(1, 3),
                                             "token": f"w{op['index'] % 7}-{op['index']}"}}  # fmt: skip
            ops.append(op)
            todo.append((op, "begun"))
            continue
        place = rng.randrange(len(todo)) if todo else 0
        if not todo:
            continue
        op, stage = todo.pop(place)
        if stage == "begun":
            if rng.random() < unknown:
                if op["f"] == "cas" and rng.random() < 0.5:
                    late.append(op)
                continue
            if op["f"] == "read":
                op["result"] = {"upper": upper, "token": token}
                op["then"] = OK
            else:
                upper, token, happened = _append(records, op, upper, token)
                op["result"] = {"upper": upper} if happened else None
                op["then"] = OK if happened else FAIL
            known = upper
            todo.append((op, "done"))
        elif rng.random() < unknown / 3:
            op["result"] = None
        else:
            op |= {"end": clock, "outcome": op["then"]}
    history = [
        Op(op["index"], op["index"], "register", op["f"], op.get("value"), op["start"],
           op["end"], op["outcome"], op["result"] if op["outcome"] == OK else None)
        for op in ops
    ]  # fmt: skip
    return history, records


def _append(records: list[CatalogRecord], op: dict, upper: int, token: str | None) -> tuple[int, str | None, bool]:
    value = op["value"]
    key = value["token"].partition("-")[0]
    update = Change(model.SETTINGS, key, value["token"])
    at = len(records)
    uppers = (value["expected"], value["new"])
    records.append(CatalogRecord(at, None, PROPOSAL, f"p{op['index']}", "w", *uppers, (update,)))
    if value["expected"] != upper:
        return upper, token, False
    return value["new"], value["token"], True


def spoiled(rng: random.Random, history: list[Op]) -> list[Op]:
    """``history`` with something else in it: a read's answer, an operation's times, an outcome, a cas's answer."""
    ops = list(history)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(ops))
        op = ops[at]
        way = rng.randrange(4)
        reads = [other for other in ops if other.f == "read" and other.ok]
        if way == 0 and op.f == "read" and op.ok and reads:
            ops[at] = replace(op, result=rng.choice(reads).result)
        elif way == 1 and op.end is not None:
            shift = rng.randint(-15, 15)
            ops[at] = replace(op, start=op.start + shift, end=op.end + shift)
        elif way == 2 and op.end is not None:
            ops[at] = replace(op, end=op.start + rng.randint(0, 3))
        elif way == 3 and op.f == "cas" and op.failed:
            ops[at] = replace(op, outcome=OK, result={"upper": op.value["new"]})
    ops.sort(key=lambda op: op.start)
    return [replace(op, index=index) for index, op in enumerate(ops)]


def dumped(records: list[CatalogRecord]) -> str:
    """For a failure's message."""
    return json.dumps([[r.expected_upper, r.new_upper, [u.value for u in r.updates]] for r in records])
