"""DDL by request id, judged by the log.  Pure.

Promised by the product, and so asked here (DESIGN §7, I10): a statement is executed at most once per request id, in
whichever process it lands and however often it is sent, because the id stands in the same proposal; all answers to one
id that settle it are the same; what an answer says was done is in the log, what it says failed is not.

An operation may have sent its request several times; its ``others`` are answers that differed from its result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from catalog_log import model
from judge.checkers.catalog_set import item_name, puts_of
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided
from judge.witness import CatalogRecord, gaps

NAME = "requests"


def check(ops: Iterable[Op], records: Sequence[CatalogRecord]) -> Verdict:
    """Judge the ``requests`` operations among ``ops``; ``records`` is the whole raw log of their catalog."""
    mine = of(ops, NAME)
    by_id: dict[str, list[Op]] = {}
    for op in mine:
        by_id.setdefault(op.value["id"], []).append(op)
    log = puts_of(records)
    executed: dict[str, list[CatalogRecord]] = {}
    for record in log.records:
        for request_id in record.request_ids:
            executed.setdefault(request_id, []).append(record)
    counts = {
        "ops": len(mine),
        "acknowledged": sum(op.ok and op.result["status"] == "ok" for op in mine),
        "refused": sum(op.ok and op.result["status"] != "ok" for op in mine),
        "failed": sum(op.failed for op in mine),
        "unknown": sum(op.unknown for op in mine),
        "requests": len(by_id),
        "sent_again": sum(len(each) > 1 for each in by_id.values()),
        "executed": sum(request_id in executed for request_id in by_id),
        "records": len(records),
    }
    if not mine:
        return judged(NAME, (), **counts)
    if not log.records:
        return undecided(NAME, "the log has no admitted record: it was not read, or is another's", **counts)
    found = [Anomaly("broken-log", text) for text in gaps(records)]
    for request_id, same in by_id.items():
        found += _one(request_id, same, executed.get(request_id, []), log.put)
    return judged(NAME, found, **counts)


def _one(
    request_id: str, same: Sequence[Op], executed: Sequence[CatalogRecord], put: dict[str, list[int]]
) -> list[Anomaly]:
    """Everything that is wrong with one request."""
    found = []
    about = tuple(op.index for op in same)
    name = same[0].value["name"]
    offsets = " and ".join(str(record.offset) for record in executed)

    def wrong(kind: str, text: str) -> None:
        found.append(Anomaly(kind, f"request {request_id} {text}", about, name))

    if len(executed) > 1:
        wrong("executed-twice", f"is in the log at offsets {offsets}")
    elif len(put.get(name, ())) > 1:
        wrong("executed-twice", f"is in the log once, but {name} was made {len(put[name])} times")
    elif not executed and put.get(name):
        wrong("unrecorded", f"is not in the log, but {name} was made")
    answers = [(op, answer) for op in same if op.ok for answer in _answers(op)]
    if not answers:
        return found
    first_op, first = answers[0]
    for op, answer in answers[1:]:
        if _content(answer) != _content(first):
            wrong("answers-differ", f"was answered {_content(first)} in #{first_op.index} and {_content(answer)} in "
                  f"#{op.index}")  # fmt: skip
            break
    if any(answer["status"] == "ok" for _, answer in answers):
        if not executed:
            wrong("lost", f"was answered {_content(first)}, and is not in the log")
        elif not any(key == request_id and _agrees(value, first) for key, value in executed[0].puts(model.REQUESTS)):
            wrong("wrong-answer", f"was answered {_content(first)}, but the log says otherwise at offset {offsets}")
        elif all(item_name(value) != name for _, value in executed[0].puts(model.ITEMS)):
            wrong("lost", f"is in the log at offset {offsets} without {name}")
    elif executed:
        wrong("resurrected", f"was refused ({_content(first)}), yet the log executes it at offset {offsets}")
    return found


def _answers(op: Op) -> list[dict[str, Any]]:
    return [op.result, *op.result.get("others", ())]


def _content(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("status", "message", "sqlstate", "catalog_ts") if name in answer}


def _agrees(recorded: str, answer: dict[str, Any]) -> bool:
    """Whether a request's value in the log says what was answered."""
    fields = json.loads(recorded)
    return all(fields[name] == answer[name] for name in ("status", "message", "catalog_ts")
               if name in fields and name in answer)  # fmt: skip
