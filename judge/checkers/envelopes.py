"""A source of upserts is at every timestamp what its keys were told by a first part of each partition.  Pure.

Sources: DESIGN I5 (what was read of a topic is definite) and I10; "consistent prefix" and "monotonic reads" of
D. Terry, "Replicated data consistency explained through baseball" (2013).

What the topic really holds is the witness (``log``, read when all is over): ``[offset, key, name, what, n]`` of each
message.  A message that is ``bad`` leaves its key as it is, and stands in the source's errors.  A read of a source may
show a partition *through q* if it is what the messages at offsets below q make of its keys.  It is of all keys
(``read``, as of now or at a timestamp) or of one (``key``, as of now).

Promises, for every answered read:

* **phantom**, **wrong-row**: a row is of a message that is in the topic, and as that says.
* **two-rows**: a key has one row at most.
* **doubled**: a bad message is in the errors once.
* **no-prefix**: for each partition there is a q that explains all rows, those that are missing, and all errors.
* **two-answers**: reads at one timestamp are the same, whoever answered them.
* **went-back**: there are such q that never go back: from a read that had ended to one that began after it, both as of
  now; from one timestamp to a later one; from a timestamp to what is read as of now after that was answered.
* **future-read**: none shows what was only written when it had ended.
* **view-differs**: a view's sums beside the rows are theirs.
* **lost**: the last read shows everything that was acknowledged ``LAG_NS`` before it began.

and of the topic itself, so that it is a witness:

* **lost-message**, **stranger**: what was acknowledged is where the broker said, and each message is somebody's.

Unknown where the topic was not read at the end, or no read showed a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "envelopes"

PUT, GONE, BAD = "put", "gone", "bad"
"""What a message is: its key's row, the end of that, or none of both."""

GROUPS = 3

LAG_NS = 8_000_000_000
"""How long after its delivery a message may be missing: as of other sources (``judge/checkers/sources.py``)."""

FOR_EVER = 1 << 62

Range = tuple[int, int]
"""``[lower, upper]`` of what q may be: all offsets below it were taken."""


def group_of(key: str) -> int:
    """What the view groups by."""
    return int(key.partition("-")[2]) % GROUPS


def check(ops: Iterable[Op], lag_ns: int = LAG_NS, workload: str = "envelopes") -> Verdict:
    """Judge the ``produce``, ``read``, ``key`` and ``log`` operations of ``workload``."""
    mine = sorted(of(ops, workload), key=lambda op: op.start)
    by_source: dict[str, list[Op]] = defaultdict(list)
    for op in mine:
        by_source[op.value["source"]].append(op)
    reads = [op for op in mine if op.f in ("read", "key") and op.ok]
    counts = dict(
        ops=len(reads), refused=sum(op.failed for op in mine if op.f == "read"),
        rows=sum(len(op.result["rows"]) for op in reads),
        timestamps=len({(op.value["source"], op.value["at"]) for op in reads if op.value.get("at") is not None}),
        messages=0,
    )  # fmt: skip
    anomalies: list[Anomaly] = []
    unread = []
    for source, its in sorted(by_source.items()):
        log = next((op for op in reversed(its) if op.f == "log" and op.ok), None)
        if log is None:
            unread.append(source)
            continue
        history = _History(source, its, log, lag_ns)
        counts["messages"] += len(history.places)
        anomalies += history.check()
    if not anomalies and unread:
        return undecided(CHECKER, f"nobody read at the end what the topic of {', '.join(unread)} holds", **counts)
    if not anomalies and not counts["rows"]:
        return undecided(CHECKER, "no read was answered with a row", **counts)
    return judged(CHECKER, anomalies, **counts)


class Message(NamedTuple):
    offset: int
    key: str
    name: str
    what: str
    n: int


@dataclass
class _Partition:
    """What a partition's messages make of its keys."""

    events: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    """By key, those that change it."""
    bad: list[int] = field(default_factory=list)
    """Offsets of those that are none."""

    def shown(self, key: str, name: str) -> Range | None:
        """What q may be where ``key`` has the row of ``name``."""
        events = self.events[key]
        for place, event in enumerate(events):
            if event.what == PUT and event.name == name:
                return event.offset + 1, events[place + 1].offset if place + 1 < len(events) else FOR_EVER
        return None

    def absent(self, key: str, within: Range) -> list[Range]:
        """What q in ``within`` may be where ``key`` has no row."""
        found, lower = [], 0
        for event in self.events.get(key, ()):
            if event.what == PUT and lower is not None:
                found.append((lower, event.offset))
                lower = None
            elif event.what == GONE and lower is None:
                lower = event.offset + 1
        if lower is not None:
            found.append((lower, FOR_EVER))
        return both(found, [within])


def both(one: Sequence[Range], other: Sequence[Range]) -> list[Range]:
    """What is in ranges of ``one`` and of ``other``, each in order."""
    return [(max(a, c), min(b, d)) for a, b in one for c, d in other if max(a, c) <= min(b, d)]


def first_from(ranges: Sequence[Range], floor: int) -> int | None:
    """The least that is in ``ranges`` and not below ``floor``."""
    return next((max(lower, floor) for lower, upper in ranges if upper >= floor), None)


class _History:
    def __init__(self, source: str, ops: Sequence[Op], log: Op, lag_ns: int) -> None:
        self.source, self.lag_ns = source, lag_ns
        self.partitions: dict[int, _Partition] = {int(p): _Partition() for p in log.result["partitions"]}
        self.places: dict[str, tuple[int, Message]] = {}
        """Where each message is, by its name."""
        # What comes after the topic was read is not of it.
        self.reads = [op for op in ops if op.f in ("read", "key") and op.ok and op.before(log)]
        self.produces = [op for op in ops if op.f == "produce"]
        self.names = {said["name"]: op for op in self.produces for said in op.value["messages"]}
        self.log = log
        for number, messages in log.result["partitions"].items():
            part = self.partitions[int(number)]
            for message in map(Message._make, messages):
                self.places[message.name] = int(number), message
                if message.what == BAD:
                    part.bad.append(message.offset)
                else:
                    part.events[message.key].append(message)
        self.owed = self._owed()

    def _owed(self) -> dict[int, list[tuple[int, int]]]:
        """By partition, when each message was acknowledged and where it is."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for op in self.produces:
            for name, partition, offset in _acknowledged(op):
                if offset is None and name in self.places:
                    offset = self.places[name][1].offset
                if offset is not None:
                    found[partition].append((op.end or 0, offset))
        return found

    def check(self) -> Iterator[Anomaly]:
        yield from self._witness()
        allowed: dict[int, dict[int, list[Range]]] = {}
        for read in self.reads:
            told = list(self._alone(read))
            yield from told
            if not told:
                allowed[read.index] = {}
                for number in self._concerned(read):
                    ranges = self._ranges(read, number)
                    if ranges:
                        allowed[read.index][number] = ranges
                    else:
                        yield self._no_prefix(read, number)
        yield from self._together()
        for number in self.partitions:
            yield from self._in_order(number, allowed)

    # -- the topic

    def _witness(self) -> Iterator[Anomaly]:
        for op in self.produces:
            for name, partition, offset in _acknowledged(op):
                at = self.places.get(name)
                there = at is not None and at[0] == partition and offset in (None, at[1].offset)
                if op.before(self.log) and not there:
                    where = "nowhere" if at is None else "elsewhere"
                    text = f"op {op.index} was told that {name} is at {partition}/{offset}, and it is {where}"
                    yield Anomaly("lost-message", text, (op.index, self.log.index), name)
        for name, (_, message) in self.places.items():
            if name not in self.names:
                yield Anomaly("stranger", f"the topic has {name} of {message.key} at {message.offset}, which nobody "
                              "here had written", (self.log.index,), name)  # fmt: skip

    # -- one read

    def _concerned(self, read: Op) -> Iterable[int]:
        if read.f == "key":
            return [int(read.value["key"].partition("-")[0])]
        return self.partitions

    def _alone(self, read: Op) -> Iterator[Anomaly]:
        keys = Counter(key for key, _, _ in read.result["rows"])
        for key, count in keys.items():
            if count > 1:
                names = [name for k, name, _ in read.result["rows"] if k == key]
                ops = [self.names[name].index for name in names if name in self.names]
                yield Anomaly("two-rows", f"op {read.index} read {count} rows of {key}: {', '.join(names[:3])}",
                              (*ops, read.index), key)  # fmt: skip
        for key, name, n in read.result["rows"]:
            at = self.places.get(name)
            if at is None or at[1].what != PUT or at[1].key != key:
                yield Anomaly("phantom", f"op {read.index} read {name} at {key}, which the topic does not have",
                              (read.index,), key)  # fmt: skip
            elif at[1].n != n:
                text = f"op {read.index} read {n} of {name}, which says {at[1].n}"
                yield Anomaly("wrong-row", text, (read.index,), key)
        for (partition, offset), count in Counter(map(tuple, read.result.get("bad", ()))).items():
            known = partition in self.partitions and offset in self.partitions[partition].bad
            if count > 1 or not known:
                kind, what = ("doubled", f"{count} times") if known else ("phantom", "which is a row, or not there")
                yield Anomaly(kind, f"op {read.index} read the error of {partition}/{offset} {what}", (read.index,))
        if "sums" in read.result:
            sums: dict[int, list[int]] = {}
            for key, _, n in read.result["rows"]:
                of_group = sums.setdefault(group_of(key), [0, 0])
                of_group[0] += 1
                of_group[1] += n
            wanted = sorted([g, *of_group] for g, of_group in sums.items())
            if sorted(map(list, read.result["sums"])) != wanted:
                yield Anomaly("view-differs", f"op {read.index} read in one statement the sums {read.result['sums']} "
                              f"and rows that come to {wanted}", (read.index,))  # fmt: skip

    def _ranges(self, read: Op, number: int) -> list[Range]:
        """What q may be of a partition, in order; none: nothing explains it."""
        part, rows = self.partitions[number], {key: name for key, name, _ in read.result["rows"]}
        within: Range = (0, FOR_EVER)
        mine = [read.value["key"]] if read.f == "key" else list(part.events)
        for key in mine:
            if key in rows:
                found = part.shown(key, rows[key])
                if found is None:
                    return []
                within = max(within[0], found[0]), min(within[1], found[1])
        if "bad" in read.result:
            shown = sorted(offset for partition, offset in read.result["bad"] if partition == number)
            if shown != part.bad[: len(shown)]:
                return []
            lower = shown[-1] + 1 if shown else 0
            upper = part.bad[len(shown)] if len(shown) < len(part.bad) else FOR_EVER
            within = max(within[0], lower), min(within[1], upper)
        ranges = [within] if within[0] <= within[1] else []
        for key in mine:
            if key not in rows and ranges:
                ranges = both(ranges, part.absent(key, within))
        return ranges

    def _no_prefix(self, read: Op, number: int) -> Anomaly:
        part, rows = self.partitions[number], {key: name for key, name, _ in read.result["rows"]}
        spans = {key: span for key, name in rows.items() if (span := part.shown(key, name))}
        newest = max(spans, key=lambda key: spans[key][0], default="")
        oldest = min(spans, key=lambda key: spans[key][1], default="")
        if newest and spans[newest][0] > spans[oldest][1]:
            over = next(e for e in part.events[oldest] if e.offset == spans[oldest][1])
            told = (f"{rows[newest]} of {newest} and still {rows[oldest]} of {oldest}, which had been told {over.name} "
                    "before that")  # fmt: skip
            names, key = (rows[oldest], over.name, rows[newest]), oldest
        else:
            told = f"{len(spans)} rows, and others are not there, or errors are too many or too few"
            names, key = (), newest
        ops = [self.names[name].index for name in names if name in self.names]
        return Anomaly("no-prefix", f"op {read.index} read of partition {number} {told}", (*ops, read.index), key)

    # -- several reads

    def _together(self) -> Iterator[Anomaly]:
        """Those at one timestamp."""
        first: dict[int, Op] = {}
        for read in self.reads:
            at = read.value.get("at")
            if at is None:
                continue
            other = first.setdefault(at, read)
            if [sorted(other.result[side]) for side in ("rows", "bad")] != [
                    sorted(read.result[side]) for side in ("rows", "bad")]:  # fmt: skip
                yield Anomaly("two-answers", f"as of {at} op {other.index} read {len(other.result['rows'])} rows and "
                              f"op {read.index} {len(read.result['rows'])}, which are not the same",
                              (other.index, read.index))  # fmt: skip

    def _in_order(self, number: int, allowed: Mapping[int, Mapping[int, list[Range]]]) -> Iterator[Anomaly]:
        mine = [read for read in self.reads if number in allowed.get(read.index, ())]
        begun = [(self.names[name].start, message.offset) for name, (at, message) in self.places.items()
                 if at == number and name in self.names]  # fmt: skip
        future = _least_behind(sorted(begun))
        answered: list[tuple[int, int, Op]] = []
        """When each was answered, the least q that explains it, and which it is."""
        floor, newest = 0, None
        for read in sorted((r for r in mine if r.value.get("at") is not None), key=lambda r: r.value["at"]):
            found = first_from(allowed[read.index][number], floor)
            if found is None:
                yield self._back(read, newest, number)
                continue
            yield from self._future(read, found, future)
            floor, newest = found, read
            answered.append((read.end or 0, found, read))
        now = [read for read in mine if read.value.get("at") is None]
        answered.sort(key=lambda each: each[0])
        ended: list[tuple[int, int, Op]] = []
        floor, newest, at, place = 0, None, 0, 0
        for read in now:  # by their starts
            while at < len(answered) and answered[at][0] < read.start:
                floor, newest = max((floor, newest), answered[at][1:], key=lambda each: each[0])
                at += 1
            ended.sort(key=lambda each: each[0])
            while place < len(ended) and ended[place][0] < read.start:
                floor, newest = max((floor, newest), ended[place][1:], key=lambda each: each[0])
                place += 1
            found = first_from(allowed[read.index][number], floor)
            if found is None:
                yield self._back(read, newest, number)
                continue
            yield from self._future(read, found, future)
            if read.value.get("last"):
                yield from self._owed_to(read, number, allowed[read.index][number][-1][1])
            ended.append((read.end or 0, found, read))

    def _back(self, read: Op, before: Op | None, number: int) -> Anomaly:
        at = read.value.get("at")
        told = f"op {read.index} read{'' if at is None else f' as of {at}'} less of partition {number}"
        ops = (read.index,) if before is None else (before.index, read.index)
        seen = "" if before is None else f" than op {before.index} had shown"
        return Anomaly("went-back", told + seen, ops)

    def _future(self, read: Op, q: int, future: tuple[list[int], list[int]]) -> Iterator[Anomaly]:
        starts, least = future
        place = bisect_right(starts, read.end or 0)
        if place < len(starts) and q > least[place]:
            text = f"op {read.index} read what was only written when it had ended"
            yield Anomaly("future-read", text, (read.index,))

    def _owed_to(self, read: Op, number: int, most: int) -> Iterator[Anomaly]:
        late = max((offset for end, offset in self.owed[number] if end + self.lag_ns < read.start), default=-1)
        # A message beyond what it may be taken for was not taken.
        if late >= most:
            text = f"op {read.index}, the last read, is of partition {number} through {most} at the most"
            yield Anomaly("lost", f"{text}; offset {late} had been acknowledged long before", (read.index,))


def _acknowledged(op: Op) -> Iterator[tuple[str, int, int | None]]:
    """The messages of ``op``, with where they are said to be.  At which offset is not known of one that was sent again,
    and that the broker had already: it says no more than that."""
    for said, (partition, offset) in zip(op.value["messages"], op.result["offsets"] if op.ok else (), strict=False):
        yield said["name"], partition, offset


def _least_behind(begun: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """By when writes began: the least offset of those that began then or later."""
    least, so_far = [], FOR_EVER
    for _, offset in reversed(begun):
        so_far = min(so_far, offset)
        least.append(so_far)
    return [start for start, _ in begun], least[::-1]
