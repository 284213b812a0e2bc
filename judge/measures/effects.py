"""When reads showed what became of writes whose outcome nobody knew.  Pure."""

from __future__ import annotations

import bisect
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from judge.history import Op


class Reads:
    """Answered strict reads of one workload, and the unknown writes whose effects they might show."""

    def __init__(self, reads: Sequence[Op], watched: Sequence[Watched]) -> None:
        by_start = sorted(reads, key=_start)
        by_end = sorted(reads, key=_end)
        self._starts = [read.start for read in by_start]
        self._first_end = list(accumulate(map(_end, reversed(by_start)), min))[::-1]
        """For each read, the earliest end among it and those that began later."""
        self._ends = [_end(read) for read in by_end]
        self._uppers = list(accumulate(map(_upper, by_end), max))
        self._late = _late(by_end, watched)

    def past(self, expected: int) -> int | None:
        """When a read first answered with an upper above ``expected``."""
        place = bisect.bisect_right(self._uppers, expected)
        return self._ends[place] if place < len(self._ends) else None

    def decided(self, op: Op, healed: int) -> tuple[int | None, str]:
        place = bisect.bisect_left(self._starts, healed)
        if place == len(self._starts):
            return None, "nobody"
        first, late = self._first_end[place], self._late.get(op.index)
        return (late, "late effect") if late is not None and late > first else (first, "read")


def _start(op: Op) -> int:
    return op.start


def _end(op: Op) -> int:
    return op.end or 0


def _upper(read: Op) -> int:
    upper = read.result.get("upper") if isinstance(read.result, dict) else None
    return upper if isinstance(upper, int) else 0


@dataclass
class Watched:
    """An unknown write as reads might show it."""

    op: int
    healed: int
    scope: str
    """Where to look: a key, a table."""
    tokens: frozenset[str]
    """What to look for there: all of them appear together or none does."""
    present: bool = True
    """Whether it makes them appear, or go."""
    lacked: int | None = None
    late: int | None = None

    def looked(self, read: Op, found: Set[str]) -> None:
        """Reads come by their ends.  Keep when one first showed the effect after the last that lacked it."""
        if read.start < self.healed:
            return
        if self.tokens.isdisjoint(found) is self.present:
            if self.lacked is None or self.late is not None:
                self.lacked, self.late = _end(read), None
        elif self.lacked is not None and self.late is None and read.start >= self.lacked:
            self.late = _end(read)


def _late(reads: Iterable[Op], watched: Iterable[Watched]) -> dict[int, int]:
    """By operation, when a read first showed an effect that an earlier one had lacked.  One pass over the reads."""
    scopes: dict[str, list[Watched]] = defaultdict(list)
    for one in watched:
        scopes[one.scope].append(one)
    if not scopes:
        return {}
    wanted = {scope: frozenset().union(*(one.tokens for one in ones)) for scope, ones in scopes.items()}
    for read in reads:
        for scope, values, about in _looked_at(read):
            if scope in wanted:
                found = wanted[scope].intersection(map(_token, values))
                for one in scopes[scope]:
                    if about is None or about in one.tokens:
                        one.looked(read, found)
    return {one.op: one.late for ones in scopes.values() for one in ones if one.late is not None}


def _token(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def watched(op: Op, healed: int) -> list[Watched]:
    """What to watch for in later reads; nothing where reads do not tell single effects apart (sums, views)."""
    value = op.value

    def watch(scope: str, values: Iterable[Any], present: bool = True) -> Watched:
        return Watched(op.index, healed, scope, frozenset(map(_token, values)), present)

    if op.workload in ("append", "transactions", "ranges") and op.f == "txn":
        return [watch(str(step[1]), [step[2]]) for step in value if step[0] == "append"][:1]  # one commit
    if not isinstance(value, dict):
        return []
    if op.workload == "set" and op.f in ("create", "drop"):
        return [watch("", [value["name"]], op.f == "create")]
    if op.workload == "anomalies" and op.f == "insert" and "row" in value:
        return [watch(str(value.get("table")), [value["row"]])]
    if op.workload == "once" and op.f == "insert":
        return [watch("table", [value["id"]])]
    if op.workload == "once" and op.f == "produce":
        return [watch("source", [one]) for one in value["ids"]][:1]
    if op.workload == "bank" and op.f == "transfer" and "id" in value:
        return [watch("ledger_a", [value["id"]])]
    if op.workload in ("idle", "poison") and op.f == "insert" and "id" in value:
        return [watch("idle_seen" if op.workload == "idle" else "poison_rows", [value["id"]])]
    if op.workload == "views" and op.f == "insert" and "table" in value:
        # What no two rows of a table share: an event's first column, a customer's second.
        place = 1 if value["table"] == "views_customers" else 0
        return [watch(str(value["table"]), [value["rows"][0][place]])]
    return []


def _looked_at(read: Op) -> Iterator[tuple[str, Iterable[Any], str | None]]:
    """Where a read looked, what it saw there, and after what alone it looked (``None``: after everything)."""
    value, result = read.value, read.result
    if read.f == "txn":
        yield from ((str(step[1]), step[2] or (), None) for step in result or () if step[0] == "r")
    elif isinstance(result, dict):
        if read.f in ("names", "image"):
            yield "", result.get("names") or (), None
        elif isinstance(value, dict):
            if read.f in ("select", "select_index"):
                yield str(value.get("table")), result.get("rows") or (), None
            elif read.f == "all":
                yield str(value.get("from")), (one for one, _ in result.get("ids") or ()), None
            elif read.f in _SINGLE:
                where, what, seen = _SINGLE[read.f]
                yield str(value.get(where, "ledger_a")), [value[what]] if result[seen] else [], _token(value[what])


_SINGLE = {"seen": ("from", "id", "n"), "row": ("table", "is", "n"), "moved": ("from", "id", "rows")}
"""Reads that look after one thing: the names of where, of what, and of what says whether it is there."""
