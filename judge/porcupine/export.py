"""Histories of the register as JSON lines that ``main.go`` reads.  Pure.

Promises: a line is one history that can be judged by itself, with the state that it begins with.  ``windows`` cuts a
long one by the log (``register.windows``), which also settles unknown outcomes: a search over hundreds of operations
that may take effect any time later, or never, does not end.  ``whole`` leaves them open, for short histories.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from judge.checkers import register
from judge.checkers.register import State, state_of
from judge.history import Op, of
from judge.witness import CatalogRecord


def windows(
    ops: Iterable[Op], records: Sequence[CatalogRecord], ops_max: int = register.WINDOW_OPS
) -> Iterator[str]:  # fmt: skip
    """One line for each window of the history."""
    for number, window in enumerate(register.windows(ops, records, ops_max)):
        yield _line(number, window.state, window.ops)


def whole(ops: Iterable[Op], initial: State) -> str:
    """One line for the whole history, without its failed operations: they did not happen."""
    return _line(0, initial, [op for op in of(ops, register.NAME) if not op.failed])


def _line(number: int, state: State, ops: Sequence[Op]) -> str:
    fields = {"window": number, "state": state._asdict(), "ops": [_fields(op) for op in ops]}
    return json.dumps(fields, separators=(",", ":"))


def _fields(op: Op) -> dict[str, Any]:
    # A client's number only has to tell clients apart; foreign records' operations have the process -1.
    fields = {"client": op.process + 1, "start": op.start, "end": op.end, "f": op.f, "known": op.ok}
    if op.f == "read":
        return fields | (state_of(op)._asdict() if op.ok else {})
    answered = op.result["upper"] if op.ok else op.value["new"]
    if answered != op.value["new"]:
        # The model knows no answers of a cas: one that says another upper than it moved to can be no step at all.
        return fields | {"expected": -1, "new": -1, "token": op.value["token"]}
    return fields | {name: op.value[name] for name in ("expected", "new", "token")}
