"""All figures of a run, and whether they are within their limits.  Pure but for ``read_log``.

Promises: figures only, never a verdict about what the system answered; and where a figure could not be had (nobody
read after a fault was healed), it says so and its limit is *unknown*, never met.

Times in are nanoseconds of the history's clock; times out are seconds since its first operation, or milliseconds where
the name says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judge.history import Fault, Op
from judge.measures.gaps import Gap, gaps
from judge.measures.rates import Availability, Bucket, Rate, availability, buckets, rates
from judge.measures.settling import SETTLE_MAX_S, Log, Settling, settlings
from judge.measures.spread import SECOND, Spread
from judge.measures.writes import over
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.witness import CatalogRecord, read_catalog

GAP_P95_S, GAP_MAX_S = 3.0, 5.0
P95_COUNT_MIN = 20
"""Below it the nearest rank of 95 % is the largest value itself: a second name for the maximum, and no percentile."""
BUCKETS_MAX = 240
"""Points in a line over time: more than a screen can tell apart are only noise."""


@dataclass(frozen=True)
class Limit:
    """A figure, what it may be at most, and whether it is: *unknown* where there was nothing to measure."""

    name: str
    value: float | None
    limit: float
    met: str
    note: str = ""


@dataclass(frozen=True)
class Measures:
    origin: int
    """The clock's value at 0 s."""
    duration_s: float
    bucket_s: float
    rates: tuple[Rate, ...]
    buckets: tuple[Bucket, ...]
    availability: Availability
    gaps: tuple[Gap, ...]
    gap_s: Spread
    gap_by_kind: dict[str, Spread]
    calm_gap_s: float | None
    """The longest interval without an acknowledged write while no fault was on: what a gap is to be compared with."""
    settlings: tuple[Settling, ...]
    settle_s: Spread
    undecided: int
    limits: tuple[Limit, ...]

    def to_json(self) -> dict[str, Any]:
        """For ``verdict.json``: without the settlings that were within the limit, of which there may be many."""
        spread = Spread._asdict
        available = asdict(self.availability)
        del available["shares"]
        return {
            "duration_s": self.duration_s,
            "rates": [
                {name: value for name, value in (vars(rate) | {"latency_ms": spread(rate.latency_ms)}).items()
                 if name != "line"}
                for rate in self.rates
            ],
            "bucket_s": self.bucket_s,
            "buckets": [vars(bucket) | {"latency_ms": spread(bucket.latency_ms)} for bucket in self.buckets],
            "availability": available,
            "write_gap": {
                **spread(self.gap_s),
                "by_kind": {kind: spread(value) for kind, value in self.gap_by_kind.items()},
                "calm_max": self.calm_gap_s,
                "gaps": [asdict(gap) for gap in self.gaps],
            },
            "settle": {
                **spread(self.settle_s),
                "undecided": self.undecided,
                "over_limit": [asdict(one) for one in self.settlings if one.late],
            },
            "limits": [asdict(limit) for limit in self.limits],
        }  # fmt: skip


def read_log(directory: Path) -> dict[str, list[CatalogRecord]]:
    """The catalogs' logs in a run's directory; one that was not recorded is left out."""
    paths = {name: directory / f"log-{name}.jsonl" for name in ("catalog", "register-catalog")}
    return {name: read_catalog(path) for name, path in paths.items() if path.exists()}


def measured(
    ops: Sequence[Op], faults: Sequence[Fault], log: Log | None = None, *, writing_until: int | None = None
) -> Measures:
    """All figures.  ``writing_until`` is when the writers were told to stop; else when their last write ended."""
    origin = min((op.start for op in ops), default=min((fault.start for fault in faults), default=0))
    last = max((over(op) for op in ops), default=origin)
    duration = max(last - origin, 1)
    bucket = max(SECOND, -(-duration // BUCKETS_MAX // SECOND) * SECOND) if duration > BUCKETS_MAX * SECOND else SECOND
    lost, calm = gaps(ops, faults, origin, writing_until)
    unknown = settlings(ops, faults, log or {}, origin)
    settled = [one.seconds for one in unknown if one.seconds is not None]
    by_kind: dict[str, list[float]] = defaultdict(list)
    for gap in lost:
        by_kind[gap.kind].append(gap.seconds)
    gap_s, settle_s = _few(Spread.of(gap.seconds for gap in lost)), Spread.of(settled)
    undecided = len(unknown) - len(settled)
    return Measures(
        origin=origin,
        duration_s=max(round(duration / SECOND, 3), 0.001),  # so that one can divide by it
        bucket_s=bucket / SECOND,
        rates=rates(ops, origin, duration, bucket),
        buckets=buckets(ops, origin, duration, bucket),
        availability=availability(ops, origin, duration),
        gaps=lost,
        gap_s=gap_s,
        gap_by_kind={kind: _few(Spread.of(values)) for kind, values in sorted(by_kind.items())},
        calm_gap_s=calm,
        settlings=unknown,
        settle_s=settle_s,
        undecided=undecided,
        limits=(
            _limit("write gap after losing the leader, p95", gap_s.p95, GAP_P95_S, _no_p95(gap_s.count)),
            _limit("write gap after losing the leader, longest", gap_s.max, GAP_MAX_S, _NEVER_TAKEN),
            _settle_limit(unknown, settle_s, undecided),
        ),
    )


_NEVER_TAKEN = "the leader was never taken"


def _few(spread: Spread) -> Spread:
    """Without the percentiles that so few values do not have."""
    return spread if spread.count >= P95_COUNT_MIN else spread._replace(p95=None, p99=None)


def _no_p95(count: int) -> str:
    return f"{count} losses of the leader are too few for it: {P95_COUNT_MIN} are needed" if count else _NEVER_TAKEN


def _limit(name: str, value: float | None, limit: float, without: str) -> Limit:
    if value is None:
        return Limit(name, None, limit, UNDECIDED, without)
    return Limit(name, value, limit, VALID if value <= limit else INVALID)


def _settle_limit(settlings: Sequence[Settling], spread: Spread, undecided: int) -> Limit:
    name = "unknown outcomes settled after healing, longest"
    if not settlings:
        return Limit(name, None, SETTLE_MAX_S, VALID, "no write's outcome was unknown")
    over = spread.max is not None and spread.max > SETTLE_MAX_S
    note = f"after {undecided} of them nobody looked" if undecided else ""
    met = INVALID if over else UNDECIDED if undecided else VALID
    return Limit(name, spread.max, SETTLE_MAX_S, met, note)
