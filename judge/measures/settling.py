"""When unknown outcomes came to rest, once what disturbed them was healed.  Pure.

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

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.history import Fault, Op
from judge.measures.effects import Reads, Watched, watched
from judge.measures.logged import Moves, Seen
from judge.measures.spread import SECOND
from judge.measures.writes import is_write
from judge.witness import CatalogRecord
from judge.workloads.api import OP_TIMEOUT_S

SETTLE_MAX_S = 10.0

Log = Mapping[str, Sequence[CatalogRecord]]
"""The records of the catalogs' logs by the names of their files: ``catalog`` and ``register-catalog``."""


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
    "transactions": frozenset({"txn"}),
    "ranges": frozenset({"txn"}),
    "accounts": frozenset({"sums", "accounts", "held"}),
    "counters": frozenset({"counters"}),
    "keys": frozenset({"window"}),
    "upserts": frozenset({"counters", "claims"}),
    "draws": frozenset({"drawn"}),
    "envelopes": frozenset({"key"}),
    "sinks": frozenset({"line"}),
    "sources": frozenset({"read", "ground"}),
    "idle": frozenset({"compare", "row"}),
    "poison": frozenset({"compare", "row"}),
    "settled": frozenset({"sums", "rows"}),
}
"""The strict reads of each workload."""

_ONLY_READ = frozenset({"read", "names", "image", "read_ts", "positions", "sums", "accounts", "compare", "ids", "all",
                        "select", "select_index", "moved", "row", "seen", "ground", "held", "counters",
                        "everything", "window", "claims", "drawn", "nextval", "key", "log", "line", "tail",
                        "topics", "rows", "was", "files", "vacuum", "cluster"})  # fmt: skip


def _is_read(op: Op) -> bool:
    if op.f == "txn":
        return not is_write(op)
    return op.f in READS.get(op.workload, _ONLY_READ)


UNSETTLED = frozenset({("sources", "produce"), ("sources", "remake"), ("sources", "reset"), ("poison", "renew")})
"""What was written to a topic that somebody deleted is nowhere, so nothing ever shows what became of it; and no row
says which definition a view has."""


def may_have_written(op: Op) -> bool:
    return not (_is_read(op) or op.f in _ONLY_READ)


def settlings(ops: Sequence[Op], faults: Sequence[Fault], log: Log, origin: int) -> tuple[Settling, ...]:
    unknown = [op for op in ops if op.unknown and may_have_written(op) and (op.workload, op.f) not in UNSETTLED]
    if not unknown:
        return ()
    reads: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        if op.ok and op.end is not None and _is_read(op):
            reads[op.workload].append(op)
    register, catalog = Moves(log.get("register-catalog", ())), Seen(log.get("catalog", ()))
    over = {op.index: _overlapping(op, faults) for op in unknown}
    healed = {op.index: _healed(op, over[op.index]) for op in unknown}
    shown: dict[str, list[Watched]] = defaultdict(list)
    for op in unknown:
        shown[op.workload] += watched(op, healed[op.index])
    readings = {workload: Reads(reads[workload], shown[workload]) for workload in {op.workload for op in unknown}}
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


def _decided(op: Op, healed: int, reads: Reads, register: Moves, catalog: Seen) -> tuple[int | None, str]:
    if op.f == "cas" and isinstance(op.value, dict) and isinstance(op.value.get("expected"), int):
        return _cas_decided(op.value["expected"], reads, register)
    if op.f == "request" and isinstance(op.value, dict):
        return catalog.decided(str(op.value.get("id")), healed)
    return reads.decided(op, healed)


def _cas_decided(expected: int, reads: Reads, register: Moves) -> tuple[int | None, str]:
    found = [(time, by) for time, by in ((register.past(expected), "log"), (reads.past(expected), "read"))
             if time is not None]  # fmt: skip
    return min(found, default=(None, "nobody"))
