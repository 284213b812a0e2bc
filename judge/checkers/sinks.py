"""What sinks wrote is what their collections became: each change once, at its own timestamp.  Pure.

Sources: Kafka's exactly-once tests; the exam (``judge/exam``), which holds views' sinks against each other.

Each ``change`` writes, in one commit, rows of a table by their keys and, for each key, a line into a second table
that nobody takes anything from.  Three sinks are read as a consumer of committed messages does: ``log`` (ENVELOPE
NONE, of the lines), ``rows`` (UPSERT, of the rows by key) and ``sums`` (DEBEZIUM, of a view over the rows by group).
The lines say what happened when; the others are held against that.  The last ``topics`` has all messages (``[key,
value, timestamp]`` of each partition, in order), the notes of the progress topics, and what the tables held when it
began; a ``tail`` in between has a note and, read after it, how many messages there were and a digest of them.

Promises:

* **phantom**, **doubled**, **lost**: a line is there once if its change was acknowledged before the last read of the
  table, once or never if nobody knows, never if it failed; of keys that it was made for, with what it said
  (**wrong-row**), all lines of a change at one timestamp or none (**torn**).
* **went-back**: of two changes of which one had ended before the other began, that one has the lower timestamp.
* **doubled**, **missed**, **phantom** of ``rows``: at each timestamp exactly the messages that its lines make.
* **out-of-order**: the messages of one key are in one partition, their timestamps rise.
* **doubled**, **wrong-before**, **apart** of ``sums``: each message takes away what the group was before, and after the
  messages of a timestamp all groups are the sums of the rows at it; ``ts_ms`` is that timestamp, too (**wrong-row**).
* **note-ahead**: whatever is at or below a note was in the topic when the note was read; notes never go back
  (**note-went-back**).
* **vanished**: what a ``tail`` had read is what the topic begins with.
* **contents-differ**: the rows that come of ``rows`` through the newest line that was read are what the table held.
* **stopped**: the last read found a sink behind for ``STOPPED_NS`` and more, asked again and again.

A leader that was deposed and does not know it gives a consumer less than there is, and so does one that has just become
it, which is no fault of the note's: of a ``tail`` while a broker or the network was hurt (``faults``), or just after,
only what it had read is looked at.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judge.history import Fault, Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "sinks"

LOG, ROWS, SUMS = "log", "rows", "sums"
SINKS = (LOG, ROWS, SUMS)

FIRST = "first"
"""What the names of the rows begin with that were there before the sinks."""

BEHIND = "Behind"
"""How a read of the topics fails while a note is not yet where it is to be."""

GROUPS = 3

STOPPED_NS = 60_000_000_000
"""Longer than a sink waits before it begins anew (10 s), twice, with what its brokers take to end a transaction."""

STALE_NS = 10_000_000_000
"""For so long after a fault is healed a consumer may be given less than there is: until it asks for leaders anew."""

STALE_KINDS = frozenset({"cut-link", "one-way", "loss", "slow-network"})
"""Faults under which leaders change, beside those whose target is a broker."""

BROKER = re.compile("broker|b[0-9]+")
"""What brokers are called: the only one of layer 2, those of layer 3."""

Messages = Sequence[Sequence[Any]]
"""Of a partition: ``[key, value, timestamp]``, the key as text or nothing, the value as what it says in JSON."""


def digest(messages: Messages) -> int:
    """Of messages as they are in a history."""
    found = 0
    for each in messages:
        found = zlib.crc32(json.dumps(list(each), sort_keys=True).encode(), found)
    return found


def group_of(k: int) -> int:
    """What the view groups by."""
    return k % GROUPS


def check(ops: Iterable[Op], faults: Iterable[Fault] = (), workload: str = "sinks") -> Verdict:
    """Judge the ``change``, ``tail`` and ``topics`` operations of ``workload``."""
    mine = sorted(of(ops, workload), key=lambda op: op.start)
    changes = [op for op in mine if op.f == "change"]
    tails = [op for op in mine if op.f == "tail" and op.ok]
    last = next((op for op in reversed(mine) if op.f == "topics" and op.ok), None)
    counts = dict(
        ops=len(changes), acknowledged=sum(op.ok for op in changes), unknown=sum(op.unknown for op in changes),
        tails=len(tails), messages=0 if last is None else sum(map(len, _each_partition(last))),
    )  # fmt: skip
    if last is None:
        behind = [op for op in mine if op.f == "topics" and op.failed and op.error and op.error[0] == BEHIND]
        if behind and (behind[-1].end or 0) - behind[0].start > STOPPED_NS:
            text = f"asked {len(behind)} times at the end, a sink was behind: {behind[-1].error[1]}"
            return judged(CHECKER, [Anomaly("stopped", text, (behind[0].index, behind[-1].index))], **counts)
        return undecided(CHECKER, "nobody read the topics at the end", **counts)
    anomalies = list(_History(changes, tails, last, list(faults)).check())
    if not anomalies and not counts["acknowledged"]:
        return undecided(CHECKER, "nothing was acknowledged", **counts)
    return judged(CHECKER, anomalies, **counts)


def _each_partition(last: Op) -> Iterator[Messages]:
    for partitions in last.result["topics"].values():
        yield from partitions.values()


class Line(NamedTuple):
    """What a message of ``log`` says: at ``ts`` the key ``k`` got the row ``id`` with ``n``, or lost its row
    (``None``)."""

    ts: int
    id: str
    k: int
    n: int | None


def in_order(line: Line) -> tuple[int, bool, str, int]:
    """What is committed together has one timestamp, and nobody who wrote at it saw what others did.  So of lines of one
    key only one can say what became of a row, and a row that ended is one that was there before."""
    return line.ts, line.n is not None, line.id, line.k


class _History:
    def __init__(self, changes: Sequence[Op], tails: Sequence[Op], last: Op, faults: Sequence[Fault]) -> None:
        self.changes, self.tails, self.last, self.faults = changes, tails, last, faults
        self.by_id = {op.value["id"]: op for op in changes}
        self.topics: Mapping[str, Mapping[str, Messages]] = last.result["topics"]
        lines = [Line(ts, value["id"], value["k"], value["n"]) for _, value, ts in self._all(LOG)]
        self.counted = Counter((line.id, line.k) for line in lines)
        self.lines = sorted({(line.id, line.k): line for line in lines}.values(), key=in_order)
        self.by_line: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines:
            self.by_line[line.id].append(line)

    def check(self) -> Iterator[Anomaly]:
        yield from self._lines()
        yield from self._stamps()
        yield from self._order()
        yield from self._rows()
        yield from self._sums()
        yield from self._notes()
        yield from self._tails()
        yield from self._contents()

    def _all(self, sink: str) -> Iterator[Sequence[Any]]:
        for messages in self.topics[sink].values():
            yield from messages

    # -- the lines, by those who wrote them

    def _lines(self) -> Iterator[Anomaly]:
        for (name, k), count in self.counted.items():
            if count > 1:
                op = self.by_id.get(name)
                ops = (self.last.index,) if op is None else (op.index, self.last.index)
                yield Anomaly("doubled", f"the line of {name} for key {k} is {count} times in its topic", ops, name)
        for name, lines in self.by_line.items():
            op = self.by_id.get(name)
            if name.startswith(FIRST):
                continue
            if op is None or op.failed:
                why = "which nobody had written" if op is None else f"which failed: op {op.index}"
                yield Anomaly("phantom", f"the topic has a line of {name}, {why}",
                              (self.last.index,) if op is None else (op.index, self.last.index), name)  # fmt: skip
                continue
            said = said_by(op.value)
            wrong = [line for line in lines if line.k not in said or said[line.k] != line.n]
            if wrong:
                text = f"the line of {name} says {wrong[0].n} of key {wrong[0].k}, and op {op.index} did not"
                yield Anomaly("wrong-row", text, (op.index, self.last.index), name)
            if len(lines) != len(said) or len({line.ts for line in lines}) > 1:
                stamps = sorted({line.ts for line in lines})
                text = f"of the {len(said)} lines of op {op.index} the topic has {len(lines)}, at {stamps}"
                yield Anomaly("torn", text, (op.index, self.last.index), name)
        for op in self.changes:
            if op.ok and op.before(self.last) and op.value["id"] not in self.by_line:
                yield Anomaly("lost", f"op {op.index} was acknowledged, and its lines are not in their topic",
                              (op.index, self.last.index), op.value["id"])  # fmt: skip

    def _stamps(self) -> Iterator[Anomaly]:
        stamped = [(op, self.by_line[op.value["id"]][0].ts) for op in self.changes if op.value["id"] in self.by_line]
        ended = sorted(((op.end, ts, op.index) for op, ts in stamped if op.end is not None), key=lambda each: each[0])
        place, most = 0, (-1, -1)
        for op, ts in stamped:  # by their starts
            while place < len(ended) and ended[place][0] < op.start:
                most = max(most, ended[place][1:])
                place += 1
            if ts <= most[0]:
                yield Anomaly("went-back", f"op {op.index} is at {ts} in its topic, and op {most[1]}, which had ended "
                              f"before it began, at {most[0]}", (most[1], op.index))  # fmt: skip

    # -- the sinks that have keys

    def _order(self) -> Iterator[Anomaly]:
        for sink in (ROWS, SUMS):
            newest: dict[str, tuple[str, int]] = {}
            for partition, messages in self.topics[sink].items():
                for key, _, ts in messages:
                    before = newest.get(key)
                    if before is not None and (before[0] != partition or ts < before[1]):
                        yield Anomaly("out-of-order", f"{sink}: of {key} there is a message of {ts} in partition "
                                      f"{partition} behind one of {before[1]} in {before[0]}",
                                      (self.last.index,), key)  # fmt: skip
                    newest[key] = partition, ts

    def _wanted(self, begin: int = 0) -> list[Line]:
        """The lines in order; those that were there before the sinks are of ``begin``."""
        moved = (line._replace(ts=begin) if line.id.startswith(FIRST) else line for line in self.lines)
        return sorted(moved, key=in_order)

    def _rows(self) -> Iterator[Anomaly]:
        wanted: Counter[tuple[int, int, str | None]] = Counter()
        there: set[int] = set()
        for line in self._wanted(min((ts for _, _, ts in self._all(ROWS)), default=0)):
            if line.n is not None:
                wanted[line.ts, line.k, line.id] += 1
                there.add(line.k)
            elif line.k in there:
                wanted[line.ts, line.k, None] += 1
                there.remove(line.k)
        found: Counter[tuple[int, int, str | None]] = Counter()
        for key, value, ts in self._all(ROWS):
            k = json.loads(key)["k"]
            found[ts, k, None if value is None else value["id"]] += 1
            if value is not None and not self._says(value, k):
                yield Anomaly("wrong-row", f"rows: at {ts} key {k} is {value}", (self.last.index,), str(k))
        for (ts, k, name), count in sorted(found.items(), key=lambda each: each[0][:2]):
            if count > max(1, wanted[ts, k, name]):
                yield self._of_rows("doubled", ts, k, name, f"{count} times")
            elif not wanted[ts, k, name]:
                yield self._of_rows("phantom", ts, k, name, "though no line says so")
        for ts, k, name in sorted(wanted - found, key=lambda each: each[:2]):
            if found[ts, k, name] < 1:
                yield self._of_rows("missed", ts, k, name, "in no message")

    def _says(self, value: Mapping[str, Any], k: int) -> bool:
        line = next((each for each in self.by_line.get(value["id"], ()) if each.k == k), None)
        return line is not None and value == {"k": k, "g": group_of(k), "id": line.id, "n": line.n}

    def _of_rows(self, kind: str, ts: int, k: int, name: str | None, how: str) -> Anomaly:
        ops = [self.by_id[line.id].index for line in self.lines
               if line.ts == ts and line.k == k and line.id in self.by_id]  # fmt: skip
        told = "the end of its row" if name is None else name
        return Anomaly(kind, f"rows: at {ts} key {k} has {told} {how}", (*ops, self.last.index), str(k))

    def _sums(self) -> Iterator[Anomaly]:
        messages = sorted(self._all(SUMS), key=lambda each: each[2])
        lines, at = self._wanted(), 0
        rows: dict[int, int] = {}
        there: dict[int, list[int]] = {}
        seen: Counter[str] = Counter()
        for place, (key, value, ts) in enumerate(messages):
            g = json.loads(key)["g"]
            told = json.dumps([key, value])
            seen[told] += 1
            if value["ts_ms"] != ts or (value["op"] == "u") != (None not in (value["before"], value["after"])):
                yield Anomaly("wrong-row", f"sums: the message of {ts} says {value}", (self.last.index,), key)
            if _of_group(value["before"]) != there.get(g):
                kind = "doubled" if seen[told] > 1 else "wrong-before"
                yield Anomaly(kind, f"sums: at {ts} group {g} goes from {value['before']}, and it is {there.get(g)}",
                              (self.last.index,), key)  # fmt: skip
            after = _of_group(value["after"])
            there = {each: sums for each, sums in there.items() if each != g} | ({} if after is None else {g: after})
            if place + 1 < len(messages) and messages[place + 1][2] == ts:
                continue
            while at < len(lines) and lines[at].ts <= ts:
                rows.pop(lines[at].k, None)
                if lines[at].n is not None:
                    rows[lines[at].k] = lines[at].n
                at += 1
            if there != sums_of(rows):
                text = f"sums: at {ts} the groups are {dict(sorted(there.items()))}, and the rows come to"
                yield Anomaly("apart", f"{text} {dict(sorted(sums_of(rows).items()))}", (self.last.index,))

    # -- notes, and what was read in between

    def _notes(self) -> Iterator[Anomaly]:
        for sink, notes in self.last.result["notes"].items():
            for one, other in zip(notes, notes[1:], strict=False):
                if other < one:
                    yield Anomaly("note-went-back", f"{sink}: a note of {other} is behind one of {one}",
                                  (self.last.index,), sink)  # fmt: skip

    def _tails(self) -> Iterator[Anomaly]:
        for tail in self.tails:
            sink, note = tail.value["sink"], tail.result["note"]
            for partition, (count, seen) in tail.result["partitions"].items():
                messages = self.topics[sink].get(partition, [])
                if digest(messages[:count]) != seen or len(messages) < count:
                    text = f"op {tail.index} read {count} messages of {sink} in partition {partition}"
                    yield Anomaly("vanished", f"{text}, which are not what that begins with",
                                  (tail.index, self.last.index), sink)  # fmt: skip
                elif note is not None and not self._stale(tail):
                    ahead = [each for each in messages[count:] if each[2] <= note]
                    if ahead:
                        text = f"op {tail.index} read the note {note} of {sink}, and {len(ahead)} messages of then or"
                        yield Anomaly("note-ahead", f"{text} before came later, one of {ahead[0][2]}",
                                      (tail.index, self.last.index), sink)  # fmt: skip

    def _stale(self, tail: Op) -> bool:
        return any((fault.kind in STALE_KINDS or BROKER.fullmatch(fault.target)) and fault.start <= (tail.end or 0)
                   and (fault.end is None or tail.start <= fault.end + STALE_NS) for fault in self.faults)  # fmt: skip

    def _contents(self) -> Iterator[Anomaly]:
        names = set(self.last.result["log"])
        read = [line for line in self._wanted() if line.id in names]
        through = max((line.ts for line in read), default=-1)
        rows: dict[int, list] = {}
        for line in self._wanted():
            if line.ts <= through:
                rows.pop(line.k, None)
                if line.n is not None:
                    rows[line.k] = [line.k, line.id, line.n]
                if line.id not in names:
                    yield Anomaly("contents-differ", f"the table had no line of {line.id}, which is of {line.ts}, and "
                                  f"had others of {through}", (self.last.index,), line.id)  # fmt: skip
        held = sorted(map(list, self.last.result["rows"]))
        if held != sorted(rows.values()):
            differ = [each for each in held if each not in rows.values()] or sorted(rows.values())
            yield Anomaly("contents-differ", f"at {through} the table held {len(held)} rows and its sink comes to "
                          f"{len(rows)}; one of them is {differ[0]}", (self.last.index,))  # fmt: skip
        missing = sorted(names - set(self.by_line))
        if missing:
            yield Anomaly("missed", f"the table had lines of {missing[0]}, and the sink has none",
                          (self.last.index,), missing[0])  # fmt: skip


def said_by(value: Mapping[str, Any]) -> dict[int, int | None]:
    """What a change says of each of its keys."""
    return {int(k): n for k, n in value["puts"].items()} | dict.fromkeys(value["gone"])


def sums_of(rows: Mapping[int, int]) -> dict[int, list[int]]:
    """Of each group how many rows it has, and their sum."""
    found: dict[int, list[int]] = {}
    for k, n in rows.items():
        of_group = found.setdefault(group_of(k), [0, 0])
        of_group[0] += 1
        of_group[1] += n
    return found


def _of_group(row: Mapping[str, Any] | None) -> list[int] | None:
    return None if row is None else [row["n"], row["total"]]
