"""Rows that are moved, sealed, merged and collected: what is read at a timestamp is what a model had then.  Pure.

Sources: DESIGN I5.  A *lane* is the rows of one logical process, which changes nothing else and nobody changes them; an
unknown outcome ends it.  So its contents were one state after the other (:func:`states`), of which a reader shows one.

Promises, of operations ``change`` (``{"table", "lane", "step", "parts"}``), ``sums`` and ``rows`` (``{"table", "at"}``,
answered by ``{"ts", "lanes"}`` or ``{"ts", "lane", "rows"}``; ``ts`` is null where the reader was not told it), ``was``
(either of them, as of a timestamp that somebody was told) and ``files``:

* **wrong-rows**: every read shows of each lane what one of its states is: no row less, none more, none of another time.
  ``sums`` are held to five sums over a lane's rows (:func:`summed`), ``rows`` to the rows themselves.
* **changed**: two reads of one timestamp show one state, whatever was sealed, merged or cut in between (I5).
* **went-back**: a later timestamp shows no earlier state.
* **lost-write**: what was acknowledged before a strict read began is in it, and in all reads of its timestamp and of
  later ones.  **future-read**: nothing is in a read, or in any other of its timestamp, that began after its end.
* **refused**: no read is refused because a file is damaged, and the last one as of now for no reason that is the rows'
  own (a file that is gone, history that is too old, an internal error): whatever ailed a store is over by then.
* Sound: a transaction that failed has done nothing, an unknown one all or nothing at any time after it began.

Unknown where no past was read, or where no file of these rows was ever seen: then nothing was settled meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from judge.checkers.idle import OWN
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "settled"

READS = ("sums", "rows", "was")

DAMAGED = "XX001"
"""What a file is that is not what was sealed, or that cannot be read though its disk is there."""

Rows = Mapping[int, tuple[int, int]]
"""By key, the step that wrote it last, and its length."""

Shown = tuple[tuple[int, ...], ...] | tuple[int, ...]
"""Of a lane, as a read has it: its rows, or sums over them."""


def applied(rows: Rows, step: int, parts: Sequence[Sequence[Any]]) -> Rows:
    """``rows`` after a transaction: ``["insert", lo, hi, size]`` adds the keys of ``[lo, hi)``, ``["update", lo, hi,
    size]`` writes those that are there anew, ``["delete", lo, hi]`` takes them away."""
    found = dict(rows)
    for what, low, high, *size in parts:
        keys = range(low, high) if what == "insert" else [k for k in found if low <= k < high]
        for k in keys:
            if what == "delete":
                del found[k]
            else:
                found[k] = step, size[0]
    return found


def summed(rows: Rows) -> tuple[int, ...]:
    """How many, and the sums of keys, of steps, of their products and of lengths."""
    each = [(k, n, size) for k, (n, size) in rows.items()]
    return (len(each), sum(k for k, _, _ in each), sum(n for _, n, _ in each), sum(k * n for k, n, _ in each),
            sum(size for _, _, size in each))  # fmt: skip


def told(rows: Rows) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted((k, n, size) for k, (n, size) in rows.items()))


EMPTY_SUMS = summed({})


@dataclass
class Lane:
    """The states of one lane, the first of which is without rows."""

    table: str
    name: str
    ops: list[Op] = field(default_factory=list)
    """Each made a state of the one before."""

    def __post_init__(self) -> None:
        self._there: Rows = {}
        self._by_shown: dict[Shown, list[int]] = {EMPTY_SUMS: [0], (): [0]}

    @property
    def key(self) -> str:
        return f"{self.table} {self.name}"

    def do(self, op: Op) -> None:
        """One that changes nothing makes no state, and needs no timestamp of its own."""
        after = applied(self._there, op.value["step"], op.value["parts"])
        if after == self._there:
            return
        self._there = after
        self.ops.append(op)
        for shown in (summed(self._there), told(self._there)):
            self._by_shown.setdefault(shown, []).append(len(self.ops))

    def places(self, shown: Shown) -> Sequence[int]:
        """Which of the states look like that, in their order."""
        return self._by_shown.get(shown, ())

    def least(self, time: int) -> int:
        """The state that must be there to who begins to look at ``time``."""
        count = 0
        for number, op in enumerate(self.ops, 1):
            if op.ok and op.end is not None and op.end < time:
                count = number
        return count

    def most(self, time: int) -> int:
        """The last state that may be there to who has looked by ``time``."""
        return sum(op.start < time for op in self.ops)


def lanes_of(ops: Iterable[Op]) -> dict[tuple[str, str], Lane]:
    """By table and name, of the transactions that did not fail, which are in the order of their beginning."""
    found: dict[tuple[str, str], Lane] = {}
    for op in ops:
        if op.f == "change" and not op.failed:
            at = op.value["table"], op.value["lane"]
            found.setdefault(at, Lane(*at)).do(op)
    return found


class Look(NamedTuple):
    """What one read showed of one lane."""

    op: Op
    ts: int | None
    shown: Shown
    strict: bool
    """Whether its timestamp is of when it began."""


def looks_of(read: Op, lanes: Mapping[tuple[str, str], Lane]) -> Iterator[tuple[tuple[str, str], Look]]:
    """By lane.  One that is not told of is without rows."""
    table, ts, strict = read.value["table"], read.result["ts"], read.value["at"] != "past"
    if "rows" in read.result:
        lane = read.result["lane"]
        yield (table, lane), Look(read, ts, tuple(map(tuple, read.result["rows"])), strict)
        return
    shown = read.result["lanes"]
    for name in {*shown, *(lane for of_, lane in lanes if of_ == table)}:
        yield (table, name), Look(read, ts, tuple(shown.get(name, EMPTY_SUMS)), strict)


def check(ops: Iterable[Op], workload: str = "settled") -> Verdict:
    """Judge the operations of ``workload``."""
    mine = sorted(of(ops, workload), key=lambda op: op.start)
    lanes = lanes_of(mine)
    reads = [op for op in mine if op.f in READS and op.ok]
    looks: dict[tuple[str, str], list[Look]] = defaultdict(list)
    for read in reads:
        for at, look in looks_of(read, lanes):
            looks[at].append(look)
    anomalies: list[Anomaly] = []
    for at, seen in sorted(looks.items()):
        anomalies += _lane(lanes.get(at, Lane(*at)), seen)
    anomalies += refusals(mine)
    past = [op for op in reads if op.value["at"] == "past"]
    files = [op for op in mine if op.f == "files" and op.ok]
    sealed_at = min((op.end or 0 for op in files if op.result["files"]), default=None)
    asked: dict[tuple[str, int], list[Op]] = defaultdict(list)
    for op in reads:
        if op.result["ts"] is not None:
            asked[op.value["table"], op.result["ts"]].append(op)
    counts = dict(
        ops=len(mine),
        transactions=sum(op.f == "change" and op.ok for op in mine),
        unknown=sum(op.f == "change" and op.unknown for op in mine),
        lanes=len(lanes),
        reads=len(reads),
        past=len(past),
        past_refused=sum(op.f in READS and op.failed and op.value["at"] == "past" for op in mine),
        again=sum(len(each) > 1 for each in asked.values()),
        files=max((op.result["files"] for op in files), default=0),
        across=0 if sealed_at is None else sum(
            each[0].start < sealed_at < max(op.end or 0 for op in each) for each in asked.values()
        ),
    )  # fmt: skip
    if not anomalies and not past:
        return undecided(CHECKER, "nobody was answered of the past", **counts)
    if not anomalies and not counts["files"]:
        return undecided(CHECKER, "nothing was sealed as far as anybody saw", **counts)
    return judged(CHECKER, anomalies, **counts)


def refusals(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Reads of what is damaged, and tables of which the last read as of now was refused for good."""
    reads = [op for op in ops if op.f in READS]
    last = {op.value["table"]: op.index for op in reads if op.value["at"] != "past"}
    for op in reads:
        code, table = (op.error or ("", ""))[0], op.value["table"]
        if op.failed and (code == DAMAGED or (code in OWN and op.index == last.get(table))):
            text = f"op {op.index} was refused {table} with {code}: {op.error[1]}"
            yield Anomaly("refused", text, (op.index,), table)


def _lane(lane: Lane, looks: Sequence[Look]) -> Iterator[Anomaly]:
    by_ts: dict[int, list[Look]] = defaultdict(list)
    for look in looks:
        if not lane.places(look.shown):
            text = f"{_showed(lane, look)} what it never was: {_few(look.shown)}"
            yield Anomaly("wrong-rows", text, (look.op.index,), lane.key)
        elif look.ts is None:
            least, most = lane.least(look.op.start), lane.most(look.op.end or 0)
            yield from _placed(lane, look, lane.places(look.shown), least, most)
        else:
            by_ts[look.ts].append(look)
    reached, reached_by = 0, None
    for _, together in sorted(by_ts.items()):
        first, places = together[0], set(lane.places(together[0].shown))
        for look in together[1:]:
            if both := places & set(lane.places(look.shown)):
                places = both
            else:
                text = f"{_showed(lane, first)} {_few(first.shown)}, and op {look.op.index} {_few(look.shown)}"
                yield Anomaly("changed", text, (first.op.index, look.op.index), lane.key)
        least = max([lane.least(look.op.start) for look in together if look.strict], default=0)
        most = min(lane.most(look.op.end or 0) for look in together)
        ordered = sorted(places)
        wrong = list(_placed(lane, first, ordered, least, most))
        yield from wrong
        if wrong:
            continue
        # The first state that will do leaves most to later timestamps.
        at = bisect_left(ordered, max(reached, least))
        if at == len(ordered) or ordered[at] > most:
            before = first.op.index if reached_by is None else reached_by.op.index
            text = f"{_showed(lane, first)} what was before what op {before} showed of an earlier timestamp"
            yield Anomaly("went-back", text, (before, first.op.index), lane.key)
            continue
        reached, reached_by = ordered[at], first


def _placed(lane: Lane, look: Look, places: Sequence[int], least: int, most: int) -> Iterator[Anomaly]:
    """What is wrong where none of the states that it may have shown is from ``least`` to ``most``."""
    if any(least <= place <= most for place in places):
        return
    if places[-1] < least:
        op = lane.ops[least - 1]
        text = f"{_showed(lane, look)} what was before op {op.index}, which had been acknowledged before"
        yield Anomaly("lost-write", text, (op.index, look.op.index), lane.key)
    else:
        op = lane.ops[next(place for place in places if place > most) - 1]
        text = f"{_showed(lane, look)} what op {op.index} began to do only later"
        yield Anomaly("future-read", text, (look.op.index, op.index), lane.key)


def _showed(lane: Lane, look: Look) -> str:
    as_of = "" if look.ts is None else f" as of {look.ts}"
    return f"op {look.op.index} showed of lane {lane.name} in {lane.table}{as_of}"


def _few(shown: Shown) -> str:
    said = ", ".join(map(str, shown[:5])) or "nothing"
    return said if len(shown) <= 5 else f"{said} and {len(shown) - 5} more"
