"""Ids that must be there exactly once: which are lost, doubled, or there though they must not be?  Pure.

Sources: Jepsen's ``set-full`` and Kafka's exactly-once tests ("no loss, no duplicates"); DESIGN I10.

Promises:

* **doubled**: an id is there more often than somebody tried to write it, attempts that failed not counted.
* **phantom**: an id that nobody tried to write, or only attempts that failed or began after the read had ended.
* **lost**: an id was acknowledged before a read of all ids began and is absent.  Rows of SQL inserts are owed to every
  read; what was produced to a topic is owed only to the last read of a place, and only ``LAG_NS`` after its delivery.
* **vanished**: an id (or, where only numbers were read, some id) that an earlier read had seen is absent from a later
  one: this holds for produced and unknown ids too, since nobody deletes.
* Unknown where no read of all ids could tell of some acknowledged id, for then nobody looked.

Which ids feed which place is in ``FEEDS``: a view is over the table and the source.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "once"

INSERT, PRODUCE = "insert", "produce"

FEEDS: Mapping[str, tuple[str, ...]] = {"table": (INSERT,), "source": (PRODUCE,), "view": (INSERT, PRODUCE)}

LAG_NS = 5_000_000_000
"""How long after its delivery a message may be missing from a source: a source binds what is there several times a
second, and nothing promises a strict read that it already did."""

SHOWN_MAX = 5


def check(
    ops: Iterable[Op], feeds: Mapping[str, Sequence[str]] = FEEDS, lag_ns: int = LAG_NS, workload: str = "once"
) -> Verdict:
    """Judge the ``insert``, ``produce``, ``ids`` and ``all`` operations of ``workload``."""
    ids = _Ids(sorted(of(ops, workload), key=lambda op: op.start), feeds, lag_ns)
    anomalies = list(ids.check())
    reads = [op for op in ids.ops if op.f in ("ids", "all") and op.ok]
    counts = dict(
        ops=len(reads),
        attempted=len(ids.attempts),
        acknowledged=sum(any(op.ok for op in tries) for tries in ids.attempts.values()),
        unknown=sum(all(op.unknown for op in tries) for tries in ids.attempts.values()),
        settled=sum(all(op.unknown for op in ids.attempts[each]) for each in ids.seen if each in ids.attempts),
        unlooked=len(ids.unlooked),
    )
    if not anomalies and not reads:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not counts["acknowledged"]:
        return undecided(CHECKER, "nothing was acknowledged", **counts)
    if not anomalies and ids.unlooked:
        reason = f"no read of all ids tells of {len(ids.unlooked)} acknowledged ones: {_shown(ids.unlooked)}"
        return undecided(CHECKER, reason, **counts)
    return judged(CHECKER, anomalies, **counts)


def _shown(ids: Iterable[str]) -> str:
    ordered = sorted(ids)
    more = f" and {len(ordered) - SHOWN_MAX} more" if len(ordered) > SHOWN_MAX else ""
    return ", ".join(ordered[:SHOWN_MAX]) + more


@dataclass
class _Numbers:
    """How many ids a place may and must have at a time."""

    begun: list[int] = field(default_factory=list)
    """When each id was first tried, sorted."""
    ended: list[int] = field(default_factory=list)
    """When each id that is owed to every read was first acknowledged, sorted."""
    surplus: int = 0
    """Rows that ids written several times on purpose may have more."""

    def tried(self, read: Op) -> int:
        return bisect_right(self.begun, read.end or 0)

    def acknowledged(self, read: Op) -> int:
        return bisect_left(self.ended, read.start)


@dataclass
class _Ids:
    ops: list[Op]
    feeds: Mapping[str, Sequence[str]]
    lag_ns: int
    attempts: dict[str, list[Op]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    unlooked: set[str] = field(default_factory=set)
    """Acknowledged, and no read of all ids of any place could say whether it is there."""

    def check(self) -> Iterator[Anomaly]:
        for op in self.ops:
            for each in [op.value["id"]] if op.f == INSERT else op.value["ids"] if op.f == PRODUCE else ():
                self.attempts.setdefault(each, []).append(op)
        self.unlooked = {each for each, tries in self.attempts.items() if any(op.ok for op in tries)}
        for place in self.feeds:
            reads = [op for op in self.ops if op.f in ("ids", "all") and op.ok and op.value["from"] == place]
            last = max((op.index for op in reads if op.f == "all"), default=None)
            numbers = self._number(place)
            told: set[tuple[str, str]] = set()  # An id's fate is told once for each place.
            for op in reads:
                if op.f == "all":
                    yield from self._all(place, op, reads, op.index == last, told)
                else:
                    yield from self._numbers(place, op, numbers, told)
            yield from self._shrunk(place, reads)

    def _number(self, place: str) -> _Numbers:
        numbers = _Numbers()
        for tries in self.attempts.values():
            alive = [op for op in tries if op.f in self.feeds[place] and not op.failed]
            if alive:
                numbers.begun.append(min(op.start for op in alive))
                numbers.surplus += len(alive) - 1
                owed = [op.end for op in alive if op.f == INSERT and op.end is not None]
                if owed:
                    numbers.ended.append(min(owed))
        numbers.begun.sort()
        numbers.ended.sort()
        return numbers

    def _fed(self, place: str, tries: Sequence[Op]) -> bool:
        return any(op.f in self.feeds[place] for op in tries)

    def _all(self, place: str, read: Op, reads: Sequence[Op], last: bool, told: set) -> Iterator[Anomaly]:
        counted: dict[str, int] = dict(read.result["ids"])
        self.seen.update(counted)
        earlier = {
            each: op.index
            for op in reads
            if op.f == "all" and op.before(read)
            for each, _ in reversed(op.result["ids"])
        }
        for each, count in counted.items():
            tries = [op for op in self.attempts.get(each, ()) if op.f in self.feeds[place]]
            alive = [op for op in tries if not op.failed and not read.before(op)]
            if not alive and ("phantom", each) not in told:
                told.add(("phantom", each))
                why = "all attempts failed or began later" if tries else "nobody tried to write it"
                ops = (*(op.index for op in tries), read.index)
                yield Anomaly("phantom", f"op {read.index} read {each} in the {place}: {why}", ops, each)
            elif alive and count > len(alive) and ("doubled", each) not in told:
                told.add(("doubled", each))
                ops = (*(op.index for op in alive), read.index)
                text = f"op {read.index} read {each} {count} times in the {place}; it was tried {len(alive)} times"
                yield Anomaly("doubled", text, ops, each)
        for each, tries in self.attempts.items():
            if not self._fed(place, tries):
                continue
            strict = any(op.ok and op.f == INSERT and op.before(read) for op in tries)
            late = any(op.ok and op.f == PRODUCE and op.end + self.lag_ns < read.start for op in tries)
            acknowledged = strict or (late and last)
            if each in counted or acknowledged or each in earlier:
                self.unlooked.discard(each)
            if each in counted:
                continue
            if acknowledged and ("lost", each) not in told:
                told.add(("lost", each))
                writer = next(op for op in tries if op.ok)
                text = (
                    f"op {read.index} read all ids of the {place} without {each}, which op {writer.index} had written"
                )
                yield Anomaly("lost", text, (writer.index, read.index), each)
            elif not acknowledged and each in earlier and ("vanished", each) not in told:
                told.add(("vanished", each))
                text = f"op {read.index} read all ids of the {place} without {each}, which op {earlier[each]} had read"
                yield Anomaly("vanished", text, (*(op.index for op in tries), earlier[each], read.index), each)

    def _numbers(self, place: str, read: Op, numbers: _Numbers, told: set) -> Iterator[Anomaly]:
        """What the number of rows, the number of ids and the doubled ids say."""
        rows, distinct = read.result["rows"], read.result["distinct"]
        least, most = numbers.acknowledged(read), numbers.tried(read)
        for each in read.result["doubled"]:
            alive = [op for op in self.attempts.get(each, ()) if not op.failed]
            if len(alive) < 2 and ("doubled", each) not in told:
                told.add(("doubled", each))
                ops = (*(op.index for op in alive), read.index)
                yield Anomaly("doubled", f"op {read.index} read {each} more than once in the {place}", ops, each)
        if rows - distinct > numbers.surplus and not read.result["doubled"]:
            text = f"op {read.index} read {rows} rows and {distinct} ids in the {place}"
            yield Anomaly("doubled", text, (read.index,), place)
        if distinct < least:
            text = f"op {read.index} read {distinct} ids in the {place}; {least} were acknowledged before it began"
            yield Anomaly("lost", text, (read.index,), place)
        if distinct > most:
            text = f"op {read.index} read {distinct} ids in the {place}; no more than {most} were tried before it ended"
            yield Anomaly("phantom", text, (read.index,), place)

    def _shrunk(self, place: str, reads: Sequence[Op]) -> Iterator[Anomaly]:
        """Nobody deletes: a read has at least as many ids as one that had ended before it began."""
        numbers = sorted(((op.end or 0, _distinct(op), op.index) for op in reads), key=lambda number: number[0])
        at, most = 0, (0, -1)
        for op in reads:  # By start.
            while at < len(numbers) and numbers[at][0] < op.start:
                most = max(most, numbers[at][1:])
                at += 1
            if _distinct(op) < most[0]:
                text = f"op {op.index} read {_distinct(op)} ids in the {place}; op {most[1]} had read {most[0]} before"
                yield Anomaly("vanished", text, (most[1], op.index), place)


def _distinct(op: Op) -> Any:
    return op.result["distinct"] if op.f == "ids" else len(op.result["ids"])
