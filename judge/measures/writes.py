"""Which operations write, and when a client was through with one."""

from __future__ import annotations

from judge.history import Op

CATALOG_WRITES, ROW_WRITES = frozenset({"cas", "create", "drop"}), frozenset({"insert", "transfer", "txn", "increment"})


def is_write(op: Op) -> bool:
    """Whether its acknowledgement shows that somebody could write (see judge.measures.gaps)."""
    if op.f == "txn":
        return isinstance(op.value, list) and any(step and step[0] == "append" for step in op.value)
    return op.f in CATALOG_WRITES or op.f in ROW_WRITES


def over(op: Op) -> int:
    """When its client went on: the end, or the giving up, or the start if the client itself was lost."""
    return op.end if op.end is not None else op.gave_up if op.gave_up is not None else op.start
