"""Where figures lie: percentiles are nearest-rank, so every one of them was seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SECOND = 1_000_000_000
"""In nanoseconds, as the history's clock has them."""


class Spread(NamedTuple):
    """Where values lie; all ``None`` without any."""

    count: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        ordered = sorted(values)
        if not ordered:
            return cls(0)
        return cls(len(ordered), *(round(_rank(ordered, share), 4) for share in (0.50, 0.95, 0.99, 1.0)))


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, -(-int(len(ordered) * share * 10_000) // 10_000) - 1)]
