"""How much was answered, how fast, and in which seconds anything was.  Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from judge.history import FAIL, INFO, OK, Op
from judge.measures.spread import SECOND, Spread
from judge.measures.writes import is_write, over


@dataclass(frozen=True)
class Rate:
    """One kind of operation over the whole run."""

    workload: str
    f: str
    ok: int
    failed: int
    unknown: int
    per_s: float
    """Acknowledged ones."""
    latency_ms: Spread
    """Of acknowledged ones."""
    line: tuple[int, ...]
    """Acknowledged ones in each bucket."""


@dataclass(frozen=True)
class Bucket:
    """What ended in one stretch of time; an unknown outcome counts where its client gave up, or else began."""

    start_s: float
    ok: int
    failed: int
    unknown: int
    latency_ms: Spread


@dataclass(frozen=True)
class Availability:
    """By whole seconds: in which of them was anything acknowledged, and in which any write."""

    seconds: int
    any_share: float
    write_share: float
    ok_share: float
    """Acknowledged among all operations that ended."""
    worst: tuple[tuple[int, float], ...]
    """The ten seconds with the smallest share of acknowledged operations among those that ended in them."""
    shares: tuple[float | None, ...]
    """For each second that share; ``None`` where nothing ended."""


def rates(ops: Sequence[Op], origin: int, duration: int, bucket: int) -> tuple[Rate, ...]:
    groups: dict[tuple[str, str], list[Op]] = defaultdict(list)
    for op in ops:
        groups[op.workload, op.f].append(op)
    buckets = -(-duration // bucket)
    found = []
    for (workload, f), group in sorted(groups.items()):
        counts = Counter(op.outcome for op in group)
        line = [0] * buckets
        latencies = []
        for op in group:
            if op.outcome == OK and op.end is not None:
                line[min((op.end - origin) // bucket, buckets - 1)] += 1
                latencies.append((op.end - op.start) / 1e6)
        found.append(
            Rate(workload, f, counts[OK], counts[FAIL], counts[INFO], round(counts[OK] / duration * SECOND, 3),
                 Spread.of(latencies), tuple(line))
        )  # fmt: skip
    return tuple(found)


def buckets(ops: Sequence[Op], origin: int, duration: int, width: int) -> tuple[Bucket, ...]:
    size = -(-duration // width)
    counts: list[Counter[str]] = [Counter() for _ in range(size)]
    latencies: list[list[float]] = [[] for _ in range(size)]
    for op in ops:
        place = min((over(op) - origin) // width, size - 1)
        counts[place][op.outcome] += 1
        if op.outcome == OK and op.end is not None:
            latencies[place].append((op.end - op.start) / 1e6)
    return tuple(
        Bucket(place * width / SECOND, count[OK], count[FAIL], count[INFO], Spread.of(latencies[place]))
        for place, count in enumerate(counts)
    )


def availability(ops: Sequence[Op], origin: int, duration: int) -> Availability:
    seconds = max(1, duration // SECOND)  # the last, broken one says nothing of its own
    ended, acknowledged, written = [0] * seconds, [0] * seconds, [0] * seconds
    for op in ops:
        place = (over(op) - origin) // SECOND
        if place < seconds:
            ended[place] += 1
            if op.ok:
                acknowledged[place] += 1
                written[place] += is_write(op)
    shares = tuple(round(ok / all_, 4) if all_ else None for ok, all_ in zip(acknowledged, ended, strict=True))
    known = sorted(((share, place) for place, share in enumerate(shares) if share is not None))
    return Availability(
        seconds=seconds,
        any_share=round(sum(count > 0 for count in acknowledged) / seconds, 4),
        write_share=round(sum(count > 0 for count in written) / seconds, 4),
        ok_share=round(sum(acknowledged) / max(1, sum(ended)), 4),
        worst=tuple((place, share) for share, place in known[:10] if share < 1),
        shares=shares,
    )
