"""How fast it answered, how long nobody could write, when unknown outcomes came to rest.  Pure but for ``read_log``.

Promises: figures only, never a verdict about what the system answered; and where a figure could not be had (nobody
read after a fault was healed), it says so and its limit is *unknown*, never met.

Percentiles are nearest-rank: every figure was seen.  Times in are nanoseconds of the history's clock; times out are
seconds since its first operation, or milliseconds where the name says so.

Write gap
    For each fault whose ``detail`` names the leader: the longest interval within ``[fault.start, fault.start + 15 s]``
    in which no acknowledged write of any writer completed.  A write is ``cas``, ``create``, ``drop``, ``insert``,
    ``transfer``, or a ``txn`` that appends; ``produce`` goes past Tidemark and does not count.  The interval ends
    early where the writers had stopped by themselves.  The same is told for catalog writes and row writes apart,
    because their leaders may be different brokers and one kind going on would hide that the other stands still.

Settle time
    For each unknown write: from the healing of the faults that overlap it (the latest ``end`` among faults that were
    on between its start and its client's giving up; its own start if there are none) to the moment from which on
    everybody could know what became of it, and never less than zero.  While another fault is on, the cluster is not
    healed, so that time does not count.  That moment is

    * for a ``cas``: when the log moved the upper past the expected one.  Whether its own proposal did that or another,
      it can neither be admitted nor be refused any more (I2).  A read that answered with a later upper says the same;
    * for a ``request`` with an id: the first record of the catalog's log that was seen after the healing; if an
      admitted proposal with that id was seen later, that one;
    * for anything else: the end of the first strict read of the same workload, by anybody, that began after the
      healing and was answered.  Where reads show single effects (a name, a list's element, a row, an id) and a later
      one shows an effect that an earlier such read lacked, the end of that later one: until then it was not settled.

    An unknown write after which nobody read is *undecided*; one under a fault that was never healed counts from that
    fault's start.
"""

from __future__ import annotations

import bisect
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from judge.history import FAIL, INFO, OK, Fault, Op
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.witness import CatalogRecord, admitted, read_catalog
from judge.workloads.api import OP_TIMEOUT_S

SECOND = 1_000_000_000
GAP_WINDOW_S = 15
"""How long after losing the leader a gap is looked for: thrice the longest one allowed."""
GAP_P95_S, GAP_MAX_S = 3.0, 5.0
P95_COUNT_MIN = 20
"""Below it the nearest rank of 95 % is the largest value itself: a second name for the maximum, and no percentile."""
SETTLE_MAX_S = 10.0
BUCKETS_MAX = 240
"""Points in a line over time: more than a screen can tell apart are only noise."""

Log = Mapping[str, Sequence[CatalogRecord]]
"""The records of the catalogs' logs by the names of their files: ``catalog`` and ``register-catalog``."""


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


@dataclass(frozen=True)
class Settling:
    """One unknown write and when it came to rest."""

    op: int
    workload: str
    f: str
    at_s: float
    healed_s: float
    seconds: float | None
    """After the healing; ``None``: undecided."""
    by: str
    """``log``, ``read``, ``late effect`` or ``nobody``."""
    faults: tuple[str, ...]

    @property
    def late(self) -> bool:
        """Over the limit, or never."""
        return self.seconds is None or self.seconds > SETTLE_MAX_S


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
        availability = asdict(self.availability)
        del availability["shares"]
        return {
            "duration_s": self.duration_s,
            "rates": [
                {name: value for name, value in (vars(rate) | {"latency_ms": spread(rate.latency_ms)}).items()
                 if name != "line"}
                for rate in self.rates
            ],
            "bucket_s": self.bucket_s,
            "buckets": [vars(bucket) | {"latency_ms": spread(bucket.latency_ms)} for bucket in self.buckets],
            "availability": availability,
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
    last = max((_over(op) for op in ops), default=origin)
    duration = max(last - origin, 1)
    bucket = max(SECOND, -(-duration // BUCKETS_MAX // SECOND) * SECOND) if duration > BUCKETS_MAX * SECOND else SECOND
    gaps, calm = _gaps(ops, faults, origin, writing_until)
    settlings = _settlings(ops, faults, log or {}, origin)
    settled = [one.seconds for one in settlings if one.seconds is not None]
    by_kind: dict[str, list[float]] = defaultdict(list)
    for gap in gaps:
        by_kind[gap.kind].append(gap.seconds)
    gap_s, settle_s = _few(Spread.of(gap.seconds for gap in gaps)), Spread.of(settled)
    undecided = len(settlings) - len(settled)
    return Measures(
        origin=origin,
        duration_s=max(round(duration / SECOND, 3), 0.001),  # so that one can divide by it
        bucket_s=bucket / SECOND,
        rates=_rates(ops, origin, duration, bucket),
        buckets=_buckets(ops, origin, duration, bucket),
        availability=_availability(ops, origin, duration),
        gaps=gaps,
        gap_s=gap_s,
        gap_by_kind={kind: _few(Spread.of(values)) for kind, values in sorted(by_kind.items())},
        calm_gap_s=calm,
        settlings=settlings,
        settle_s=settle_s,
        undecided=undecided,
        limits=(
            _limit("write gap after losing the leader, p95", gap_s.p95, GAP_P95_S, _no_p95(gap_s.count)),
            _limit("write gap after losing the leader, longest", gap_s.max, GAP_MAX_S, _NEVER_TAKEN),
            _settle_limit(settlings, settle_s, undecided),
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


def _over(op: Op) -> int:
    """When its client went on: the end, or the giving up, or the start if the client itself was lost."""
    return op.end if op.end is not None else op.gave_up if op.gave_up is not None else op.start


# -- rates ------------------------------------------------------------------------------------------------------------


def _rates(ops: Sequence[Op], origin: int, duration: int, bucket: int) -> tuple[Rate, ...]:
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


def _buckets(ops: Sequence[Op], origin: int, duration: int, width: int) -> tuple[Bucket, ...]:
    size = -(-duration // width)
    counts: list[Counter[str]] = [Counter() for _ in range(size)]
    latencies: list[list[float]] = [[] for _ in range(size)]
    for op in ops:
        place = min((_over(op) - origin) // width, size - 1)
        counts[place][op.outcome] += 1
        if op.outcome == OK and op.end is not None:
            latencies[place].append((op.end - op.start) / 1e6)
    return tuple(
        Bucket(place * width / SECOND, count[OK], count[FAIL], count[INFO], Spread.of(latencies[place]))
        for place, count in enumerate(counts)
    )


def _availability(ops: Sequence[Op], origin: int, duration: int) -> Availability:
    seconds = max(1, duration // SECOND)  # the last, broken one says nothing of its own
    ended, acknowledged, written = [0] * seconds, [0] * seconds, [0] * seconds
    for op in ops:
        place = (_over(op) - origin) // SECOND
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


# -- write gaps -------------------------------------------------------------------------------------------------------

CATALOG_WRITES, ROW_WRITES = frozenset({"cas", "create", "drop"}), frozenset({"insert", "transfer", "txn"})


def is_write(op: Op) -> bool:
    """Whether its acknowledgement shows that somebody could write (see the module)."""
    if op.f == "txn":
        return isinstance(op.value, list) and any(step and step[0] == "append" for step in op.value)
    return op.f in CATALOG_WRITES or op.f in ROW_WRITES


def takes_leader(fault: Fault) -> bool:
    return "leader" in fault.detail.lower()


def _gaps(
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
            (_over(op) if op.end or op.gave_up else op.start + GAP_WINDOW_S * SECOND for op in writes), default=origin
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


# -- settling ---------------------------------------------------------------------------------------------------------

READS: dict[str, frozenset[str]] = {
    "register": frozenset({"read"}),
    "set": frozenset({"names", "image"}),
    "oracle": frozenset({"read_ts"}),
    "append": frozenset({"txn"}),
    "bank": frozenset({"sums", "accounts", "moved"}),
    "views": frozenset({"compare", "row"}),
    "once": frozenset({"ids", "all", "seen"}),
    "requests": frozenset(),
    "anomalies": frozenset({"select", "select_index"}),
    "sources": frozenset({"read", "ground"}),
    "idle": frozenset({"compare", "row"}),
    "poison": frozenset({"compare", "row"}),
}
"""The strict reads of each workload."""

_ONLY_READ = frozenset({"read", "names", "image", "read_ts", "positions", "sums", "accounts", "compare", "ids", "all",
                        "select", "select_index", "moved", "row", "seen", "ground"})  # fmt: skip


def _is_read(op: Op) -> bool:
    if op.f == "txn":
        return not is_write(op)
    return op.f in READS.get(op.workload, _ONLY_READ)


UNSETTLED = frozenset({("sources", "produce"), ("sources", "remake"), ("sources", "reset"), ("poison", "renew")})
"""What was written to a topic that somebody deleted is nowhere, so nothing ever shows what became of it; and no row
says which definition a view has."""


def _may_have_written(op: Op) -> bool:
    return not (_is_read(op) or op.f in _ONLY_READ)


def _settlings(ops: Sequence[Op], faults: Sequence[Fault], log: Log, origin: int) -> tuple[Settling, ...]:
    unknown = [op for op in ops if op.unknown and _may_have_written(op) and (op.workload, op.f) not in UNSETTLED]
    if not unknown:
        return ()
    reads: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        if op.ok and op.end is not None and _is_read(op):
            reads[op.workload].append(op)
    register, catalog = _Moves(log.get("register-catalog", ())), _Seen(log.get("catalog", ()))
    over = {op.index: _overlapping(op, faults) for op in unknown}
    healed = {op.index: _healed(op, over[op.index]) for op in unknown}
    watched: dict[str, list[_Watched]] = defaultdict(list)
    for op in unknown:
        watched[op.workload] += _watched(op, healed[op.index])
    readings = {workload: _Reads(reads[workload], watched[workload]) for workload in {op.workload for op in unknown}}
    found = []
    for op in unknown:
        heal = healed[op.index]
        decided, by = _decided(op, heal, readings[op.workload], register, catalog)
        found.append(
            Settling(
                op.index, op.workload, op.f, round((op.start - origin) / SECOND, 3), round((heal - origin) / SECOND, 3),
                None if decided is None else round(_healthy(heal, decided, faults) / SECOND, 4), by,
                tuple(sorted({fault.kind for fault in over[op.index]})),
            )
        )  # fmt: skip
    return tuple(found)


def _overlapping(op: Op, faults: Sequence[Fault]) -> list[Fault]:
    gave_up = op.gave_up if op.gave_up is not None else op.start + int(OP_TIMEOUT_S * SECOND)
    return [fault for fault in faults if fault.start <= gave_up and (fault.end is None or fault.end >= op.start)]


def _healed(op: Op, faults: Sequence[Fault]) -> int:
    return max((fault.start if fault.end is None else fault.end for fault in faults), default=op.start)


def _healthy(start: int, end: int, faults: Sequence[Fault]) -> int:
    """How much of ``[start, end]`` no fault was on for; 0 where it is empty."""
    free, at = 0, start
    for fault in sorted(faults):
        if fault.start >= end:
            break
        free += max(0, fault.start - at)
        at = max(at, end if fault.end is None else fault.end)
    return free + max(0, end - at)


def _decided(op: Op, healed: int, reads: _Reads, register: _Moves, catalog: _Seen) -> tuple[int | None, str]:
    if op.f == "cas" and isinstance(op.value, dict) and isinstance(op.value.get("expected"), int):
        return _cas_decided(op.value["expected"], reads, register)
    if op.f == "request" and isinstance(op.value, dict):
        return catalog.decided(str(op.value.get("id")), healed)
    return reads.decided(op, healed)


def _cas_decided(expected: int, reads: _Reads, register: _Moves) -> tuple[int | None, str]:
    found = [(time, by) for time, by in ((register.past(expected), "log"), (reads.past(expected), "read"))
             if time is not None]  # fmt: skip
    return min(found, default=(None, "nobody"))


class _Moves:
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


class _Seen:
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


class _Reads:
    """Answered strict reads of one workload, and the unknown writes whose effects they might show."""

    def __init__(self, reads: Sequence[Op], watched: Sequence[_Watched]) -> None:
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
class _Watched:
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


def _late(reads: Iterable[Op], watched: Iterable[_Watched]) -> dict[int, int]:
    """By operation, when a read first showed an effect that an earlier one had lacked.  One pass over the reads."""
    scopes: dict[str, list[_Watched]] = defaultdict(list)
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


def _watched(op: Op, healed: int) -> list[_Watched]:
    """What to watch for in later reads; nothing where reads do not tell single effects apart (sums, views)."""
    value = op.value

    def watch(scope: str, values: Iterable[Any], present: bool = True) -> _Watched:
        return _Watched(op.index, healed, scope, frozenset(map(_token, values)), present)

    if op.workload == "append" and op.f == "txn":
        return [watch(str(step[1]), [step[2]]) for step in value if step[0] == "append"][:1]  # one statement
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
