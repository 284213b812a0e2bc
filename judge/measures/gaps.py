"""How long nobody could write after a leader was lost.  Pure.

Write gap
    For each fault whose ``detail`` names the leader: the longest interval within ``[fault.start, fault.start + 15 s]``
    in which no acknowledged write of any writer completed.  A write is ``cas``, ``create``, ``drop``, ``insert``,
    ``transfer``, or a ``txn`` that appends; ``produce`` goes past Tidemark and does not count.  The interval ends
    early where the writers had stopped by themselves.  The same is told for catalog writes and row writes apart,
    because their leaders may be different brokers and one kind going on would hide that the other stands still.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.history import Fault, Op
from judge.measures.spread import SECOND
from judge.measures.writes import CATALOG_WRITES, ROW_WRITES, is_write, over

GAP_WINDOW_S = 15
"""How long after losing the leader a gap is looked for: thrice the longest one allowed."""


@dataclass(frozen=True)
class Gap:
    """One loss of the leader."""

    at_s: float
    kind: str
    target: str
    detail: str
    seconds: float
    catalog_s: float | None
    rows_s: float | None
    """The same for catalog writes and for row writes alone; ``None`` where the history has none."""
    window_s: float
    """How much of the 15 s there were writers for."""
    together_with: tuple[str, ...]
    """Kinds of the other faults that were on in that window."""


def takes_leader(fault: Fault) -> bool:
    return "leader" in fault.detail.lower()


def gaps(
    ops: Sequence[Op], faults: Sequence[Fault], origin: int, writing_until: int | None
) -> tuple[tuple[Gap, ...], float | None]:
    writes = [op for op in ops if is_write(op)]
    times = sorted(op.end for op in writes if op.ok and op.end is not None)
    catalog = sorted(op.end for op in writes if op.ok and op.end is not None and op.f in CATALOG_WRITES)
    rows = sorted(op.end for op in writes if op.ok and op.end is not None and op.f in ROW_WRITES)
    some_catalog, some_rows = any(op.f in CATALOG_WRITES for op in writes), any(op.f in ROW_WRITES for op in writes)
    if writing_until is None:
        # One whose client never said anything may have been waiting until it was lost: count the wait, not hide it.
        writing_until = max(
            (over(op) if op.end or op.gave_up else op.start + GAP_WINDOW_S * SECOND for op in writes), default=origin
        )
    found = []
    for fault in faults:
        until = min(fault.start + GAP_WINDOW_S * SECOND, writing_until)
        if not takes_leader(fault) or until <= fault.start:
            continue
        others = {
            other.kind
            for other in faults
            if other is not fault and other.start < until and (other.end is None or other.end > fault.start)
        }
        found.append(
            Gap(
                at_s=round((fault.start - origin) / SECOND, 3),
                kind=fault.kind,
                target=fault.target,
                detail=fault.detail,
                seconds=longest_without(times, fault.start, until),
                catalog_s=longest_without(catalog, fault.start, until) if some_catalog else None,
                rows_s=longest_without(rows, fault.start, until) if some_rows else None,
                window_s=round((until - fault.start) / SECOND, 3),
                together_with=tuple(sorted(others)),
            )
        )
    calm = [
        longest_without(times, start, end)
        for start, end in _calm(faults, min((op.start for op in writes), default=origin), writing_until)
    ]
    return tuple(found), max(calm, default=None)


def longest_without(times: Sequence[int], start: int, end: int) -> float:
    """The longest part of ``[start, end]``, in seconds, in which none of the ordered ``times`` lies."""
    inside = times[bisect.bisect_left(times, start) : bisect.bisect_right(times, end)]
    edges = [start, *inside, end]
    return round(max(later - earlier for earlier, later in zip(edges, edges[1:], strict=False)) / SECOND, 4)


def _calm(faults: Sequence[Fault], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where no fault is on, nor was within the window after its start or its healing."""
    after = GAP_WINDOW_S * SECOND
    for fault in sorted(faults):
        if fault.start > start:
            yield start, min(fault.start, end)
        start = max(start, (end if fault.end is None else fault.end) + after)
        if start >= end:
            return
    if start < end:
        yield start, end
