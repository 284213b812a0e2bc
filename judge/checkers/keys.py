"""Unique keys: no two rows of one key at any timestamp, and a key is refused only where some row could have it.  Pure.

Promises, of operations ``insert`` (``{"k", "slot", "token"}``), ``delete`` (``{"k"}``, answered by ``{"took": [token,
…]}``), ``move`` (``{"from", "k", "slot", "token"}``, answered alike: the row's token before) and ``window`` (rows
``[k, slot, token, was]`` with ``lower <= k < upper``):

* No two rows have one ``k``, or one ``slot``: neither in an answer, nor at any moment that answers speak of together.
* What was acknowledged is there until somebody may have taken it away; nobody takes a row twice, and none comes back.
* 23505 was said only where a row with that key could have been there while the statement ran.
* Sound: what failed put and took nothing; what is unknown may have happened once, at any time after it began.

How: a *life* is a token on its places (a ``k``, and a ``slot`` where it has one); it is one stretch of time.  Each
answer that shows it says that it was there at some moment of that operation, so from the first such end to the last
such beginning it was there *for certain*, and beyond that until somebody may have taken it.  Two lives on one place
may not both be there for certain, none may be seen wholly within another's certain time, nor the place be seen empty
then.  That is how a register of unique values is judged (Gibbons and Korach, "Testing shared memories", 1997: zones).
O(n log n).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import NamedTuple

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "keys"

DUPLICATE = "23505"


class Seen(NamedTuple):
    """That a life was there at some moment of ``op``."""

    op: Op
    start: float
    end: float


@dataclass
class Life:
    """A token on its places.  Times are of the history's clock."""

    token: str
    put: Op
    seen: list[Seen] = field(default_factory=list)
    taken: list[Seen] = field(default_factory=list)
    """Who took it for certain, and when; at most one, or it is wrong."""
    until: float = inf
    """The last moment at which it is there for certain, where that is not before :attr:`since`."""

    @property
    def places(self) -> tuple[str, ...]:
        k, slot = self.put.value["k"], self.put.value["slot"]
        return (f"k={k}",) if slot is None else (f"k={k}", f"slot={slot}")

    @property
    def first(self) -> Seen | None:
        return min(self.seen, key=lambda each: each.end, default=None)

    @property
    def since(self) -> float:
        """From when on it is there for certain."""
        return inf if self.first is None else self.first.end

    @property
    def gone(self) -> float:
        """When it is gone at the latest."""
        return min((each.end for each in self.taken), default=inf)


def check(ops: Iterable[Op], workload: str = "keys") -> Verdict:
    """Judge the operations of ``workload``.  Unknown where no insert was acknowledged or no read answered."""
    history = History(sorted(of(ops, workload), key=lambda op: op.start))
    anomalies = [*history.found, *_taken_twice(history), *_together(history), *_refused(history)]
    counts = dict(
        ops=len(history.ops),
        acknowledged=sum(op.ok for op in history.ops if op.f == "insert"),
        refused=sum(op.failed and op.error is not None and op.error[0] == DUPLICATE for op in history.ops),
        unknown=sum(op.unknown for op in history.ops),
        lives=sum(bool(life.seen) for life in history.lives.values()),
        reads=sum(op.ok for op in history.ops if op.f == "window"),
    )
    if not anomalies and not counts["reads"]:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not counts["acknowledged"]:
        return undecided(CHECKER, "no insert was acknowledged", **counts)
    return judged(CHECKER, anomalies, **counts)


class History:
    """All lives, and what answers say of them; ``found`` is what is wrong in single answers."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.found: list[Anomaly] = []
        puts = {op.value["token"]: op for op in ops if op.f in ("insert", "move")}
        self._puts: Mapping[str, Op] = puts
        self.lives = {token: Life(token, op) for token, op in puts.items() if _may_have_put(op)}
        shown: set[int] = set()
        """Unknown moves that a row has shown to have happened."""
        for op in ops:
            if op.ok and op.f in ("delete", "move"):
                self._take(op)
            if op.ok and op.f in ("insert", "move") and op.value["token"] in self.lives:
                self.lives[op.value["token"]].seen.append(Seen(op, op.start, op.end or 0))
        for op in ops:
            if op.ok and op.f == "window":
                self._read(op, shown)
        self._end(shown)

    def _wrong(self, kind: str, text: str, ops: Sequence[int], key: str) -> None:
        self.found.append(Anomaly(kind, text, tuple(dict.fromkeys(ops)), key))

    def _take(self, op: Op) -> None:
        """An answer of DELETE or UPDATE."""
        took, k = op.result["took"], op.value["from" if op.f == "move" else "k"]
        if len(took) > 1:
            named = [self.lives[each].put.index for each in took if each in self.lives]
            text = f"op {op.index} ({op.f}) met {len(took)} rows of k={k}: {', '.join(took)}"
            self._wrong("two-rows", text, [*named, op.index], f"k={k} op {op.index}")
        for token in took:
            life = self._shown(token, op, k)
            if life is not None:
                life.taken.append(Seen(op, op.start, op.end or 0))

    def _read(self, op: Op, moves: set[int]) -> None:
        rows = op.result["rows"]
        at: dict[str, str] = {}
        tokens = {token for _, _, token, _ in rows}
        for k, slot, token, was in rows:
            for place in (f"k={k}", *([] if slot is None else [f"slot={slot}"])):
                if place in at:
                    puts = [self._puts[each].index for each in (at[place], token) if each in self._puts]
                    text = f"op {op.index} read two rows of {place}: {at[place]} and {token}"
                    self._wrong("two-rows", text, [*puts, op.index], f"{place} op {op.index}")
                at[place] = token
            life = self._shown(token, op, k, slot)
            if life is None or was is None:
                continue
            put = life.put
            before = self.lives.get(was)
            if put.f != "move" or before is None or (put.ok and was not in put.result["took"]):
                text = f"op {op.index} read {token} as moved from {was}, which op {put.index} ({put.f}) was not told"
                self._wrong("two-answers", text, (put.index, op.index), f"{token} op {op.index}")
            elif was in tokens:
                text = f"op {op.index} read {was} and {token}, though op {put.index} made the one of the other"
                self._wrong("torn-write", text, (put.index, op.index), f"{token} op {op.index}")
            elif put.unknown and put.index not in moves:
                moves.add(put.index)
                before.taken.append(Seen(put, put.start, op.end or 0))

    def _shown(self, token: str, op: Op, k: int, slot: int | None | str = "any") -> Life | None:
        """The life that ``op`` shows at ``k``; ``None``, and what is wrong, where there can be none."""
        put, key = self._puts.get(token), f"{token} op {op.index}"
        if put is None:
            self._wrong("phantom", f"op {op.index} met {token}, which nobody put", (op.index,), key)
            return None
        life = self.lives.get(token)
        if life is None:
            text = f"op {op.index} met {token}, though op {put.index} ({put.f}) certainly did not put it"
            self._wrong("dirty-read", text, (put.index, op.index), key)
            return None
        if put.value["k"] != k or slot not in ("any", put.value["slot"]):
            text = f"op {op.index} met {token} at k={k}, slot={slot}, where op {put.index} did not put it"
            self._wrong("torn-write", text, (put.index, op.index), key)
            return None
        if op.before(put):
            text = f"op {op.index} met {token} and had ended before op {put.index} began to put it"
            self._wrong("future-read", text, (op.index, put.index), key)
            return None
        life.seen.append(Seen(op, op.start, op.end or 0))
        return life

    def _end(self, shown: set[int]) -> None:
        """Until when each life is there for certain."""
        takers: dict[int, float] = {}
        for op in self.ops:
            if op.unknown and op.f in ("delete", "move") and op.index not in shown:
                k = op.value["from" if op.f == "move" else "k"]
                takers[k] = min(takers.get(k, inf), op.start)
        for life in self.lives.values():
            last = max((each.start for each in life.seen), default=-inf)
            if life.taken:
                taken = min(life.taken, key=lambda each: each.end)
                life.until = max(taken.start, max((s.start for s in life.seen if s.start <= taken.end), default=-inf))
                for each in life.seen:
                    if taken.end < each.start and each.op is not taken.op:
                        text = f"op {each.op.index} met {life.token}, which op {taken.op.index} had taken before"
                        self._wrong("resurrected", text, (life.put.index, taken.op.index, each.op.index),
                                    f"{life.token} op {each.op.index}")  # fmt: skip
            else:
                life.until = max(last, takers.get(life.put.value["k"], inf))


def _may_have_put(op: Op) -> bool:
    return op.unknown or (op.ok and (op.f == "insert" or bool(op.result["took"])))


def _taken_twice(history: History) -> Iterator[Anomaly]:
    for life in history.lives.values():
        if len(life.taken) > 1:
            first, second, *_ = (each.op.index for each in life.taken)
            text = f"{life.token} was taken by op {first} and by op {second}"
            yield Anomaly("taken-twice", text, (life.put.index, first, second), life.token)


def _together(history: History) -> Iterator[Anomaly]:
    """What answers say of one place that cannot all be so."""
    places: dict[str, list[Life]] = defaultdict(list)
    for life in history.lives.values():
        if life.seen:
            for place in life.places:
                places[place].append(life)
    nobody = _empty(history)
    for place, lives in sorted(places.items()):
        certain = sorted((life for life in lives if life.since < life.until), key=lambda life: life.since)
        longest: Life | None = None
        for life in certain:
            if longest is not None and life.since < longest.until:
                yield _two(place, longest, life, life.first)
            if longest is None or life.until > longest.until:
                longest = life
        starts = [life.since for life in certain]
        # Of those there for certain at a moment the last to begin is enough to ask, where no two are together; and
        # where two are, that is told above.
        for life in lives:
            if life.since >= life.until:
                for seen in life.seen:
                    other = _at(certain, starts, seen.start, seen.end)
                    if other is not None:
                        yield _two(place, other, life, seen)
                        break
        for op in nobody.get(place, ()):
            life = _at(certain, starts, op.start, op.end or 0)
            if life is not None:
                text = (
                    f"op {op.index} ({op.f}) found no row of {place}, though op {life.put.index} had put {life.token} "
                    "there, and nobody can have taken it before"
                )
                named = [life.put.index, *_evidence(life), op.index]
                yield Anomaly("lost-write", text, tuple(dict.fromkeys(named)), f"{life.token} op {op.index}")


def _at(certain: Sequence[Life], starts: Sequence[float], start: float, end: float) -> Life | None:
    """Who is there for certain from before ``start`` until after ``end``."""
    place = bisect_left(starts, start) - 1
    return certain[place] if place >= 0 and certain[place].until > end else None


def _evidence(life: Life) -> list[int]:
    """Operations that say together that it was there from the first's end to the last's beginning."""
    first, last = life.first, max(life.seen, key=lambda each: each.start)
    return [each.op.index for each in (first, last) if each is not None]


def _two(place: str, one: Life, two: Life, seen: Seen | None) -> Anomaly:
    at = "" if seen is None else f", as op {seen.op.index} says"
    text = (
        f"two rows had {place} at once: {one.token} of op {one.put.index} was there before and after {two.token} of op "
        f"{two.put.index} was{at}"
    )
    named = [one.put.index, *_evidence(one), two.put.index, *_evidence(two)]
    return Anomaly("two-rows", text, tuple(dict.fromkeys(named)), f"{place} {one.token} {two.token}")


def _empty(history: History) -> dict[str, list[Op]]:
    """By place of which rows are known, the operations that found none there."""
    ks = sorted({life.put.value["k"] for life in history.lives.values() if life.seen})
    found: dict[str, list[Op]] = defaultdict(list)
    for op in history.ops:
        if op.ok and op.f in ("delete", "move") and not op.result["took"]:
            found[f"k={op.value['from' if op.f == 'move' else 'k']}"].append(op)
        elif op.ok and op.f == "window":
            there = {row[0] for row in op.result["rows"]}
            for k in ks[bisect_left(ks, op.value["lower"]) : bisect_left(ks, op.value["upper"])]:
                if k not in there:
                    found[f"k={k}"].append(op)
    return found


def _refused(history: History) -> Iterator[Anomaly]:
    """23505 where nobody can have had the key."""
    places: dict[str, list[Life]] = defaultdict(list)
    for life in sorted(history.lives.values(), key=lambda life: life.put.start):
        for place in life.places:
            places[place].append(life)
    begun = {place: [life.put.start for life in lives] for place, lives in places.items()}
    gone = {place: list(accumulate((life.gone for life in lives), max)) for place, lives in places.items()}
    for op in history.ops:
        if not op.failed or op.error is None or op.error[0] != DUPLICATE:
            continue
        refused = _refused_for(op)
        for place in refused:
            before = bisect_right(begun.get(place, ()), op.end or 0)
            if before and gone[place][before - 1] >= op.start:
                break
        else:
            text = f"op {op.index} ({op.f}) was refused for {' or '.join(refused)}, though no row can have had it then"
            yield Anomaly("refused-for-nobody", text, (op.index,), f"op {op.index}")


def _refused_for(op: Op) -> list[str]:
    """The places that it may have been refused for: that of the constraint which the message names, if it does."""
    said = op.error[1] if op.error else ""
    k, slot = f"k={op.value['k']}", f"slot={op.value['slot']}"
    if "_slot_" in said:
        return [slot]
    return [k] if "_pkey" in said or op.value["slot"] is None else [k, slot]
