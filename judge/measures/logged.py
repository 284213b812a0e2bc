"""What a log says of when something was decided, as the one who only looked at it saw it.  Pure."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from judge.witness import CatalogRecord, admitted


class Moves:
    """How the upper moved, as the log has it (I1)."""

    def __init__(self, records: Sequence[CatalogRecord]) -> None:
        seen = _seen_by(records)
        moves = admitted(records)
        self._uppers = [record.new_upper for record in moves]
        self._times = [seen.get(record.offset) for record in moves]

    def past(self, expected: int) -> int | None:
        """When the upper was seen above ``expected``; ``None`` if it never was."""
        place = bisect.bisect_right(self._uppers, expected)
        return self._times[place] if place < len(self._times) else None


def _seen_by(records: Sequence[CatalogRecord]) -> dict[int, int]:
    """By offset a time at which a record certainly was in the log: when it, or else a later one, was seen."""
    times = {}
    after: int | None = None
    for record in reversed(records):
        after = record.seen if record.seen is not None else after
        if after is not None:
            times[record.offset] = after
    return times


class Seen:
    """The catalog's log as a read of it: when anything was seen, and when each request's admitted proposal."""

    def __init__(self, records: Sequence[CatalogRecord]) -> None:
        self._times = sorted(record.seen for record in records if record.seen is not None)
        seen = _seen_by(records)
        self._requests: dict[str, int] = {}
        for record in admitted(records):
            for request in record.request_ids:
                if record.offset in seen:
                    self._requests.setdefault(request, seen[record.offset])

    def decided(self, request: str, healed: int) -> tuple[int | None, str]:
        place = bisect.bisect_left(self._times, healed)
        first = self._times[place] if place < len(self._times) else None
        landed = self._requests.get(request)
        if landed is None:
            return (first, "log") if first is not None else (None, "nobody")
        if first is not None and landed > first:
            return landed, "late effect"
        return landed, "log"
