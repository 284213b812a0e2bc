"""The compare-and-append register, judged with the log as the witness.  Pure.

What is promised by the product, and so asked here (I1, I2, I4, I10):

* an acknowledged cas is in the log, admitted once, with its token, at the uppers that it named and answered;
* a cas that failed is not in the log, ever; one that nobody knows of is there at most once; nothing else is;
* the admitted order respects real time: what ended before another began stands before it;
* a read returns the state after some prefix of the log that holds everything that ended before the read began, and
  everything that a read returned which ended before it, and nothing that began after it ended.

Those are linearizability: uppers only grow and each cas names the one before it, so the order of the writes is the
log's and no other, and a history is linearizable with that order iff no two operations contradict it.  One sweep over
starts and ends finds out, in O(n log n).  What this cannot see is a log that lies; ``wgl.py`` decides from the history
alone.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from catalog_log import model
from judge.checkers.real_time import furthest_before
from judge.history import OK, Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided
from judge.witness import GARBAGE, CatalogRecord, admitted, gaps

NAME = "register"

_TOKEN_KEY = re.compile(r"w\d+")
"""Where a worker's cas puts its token, in the settings; everything else there is the environment's own."""


class State(NamedTuple):
    """What the register holds: the upper, and the token of the newest admitted cas."""

    upper: int
    token: str | None

    def __str__(self) -> str:
        return f"{self.token or 'nothing'} at {self.upper}"


class Log:
    """The admitted records of a register's catalog, by position; the state after each; where each token stands."""

    def __init__(self, records: Sequence[CatalogRecord]) -> None:
        self.records = admitted(records)
        self.tokens: list[str | None] = [token_of(record) for record in self.records]
        self.states: list[State] = []
        self.places: dict[str, int] = {}
        """Token -> position; of a doubled one the first."""
        self.doubled: list[tuple[str, int]] = []
        newest = None
        for place, (record, token) in enumerate(zip(self.records, self.tokens, strict=True)):
            if token is not None:
                newest = token
                if self.places.setdefault(token, place) != place:
                    self.doubled.append((token, place))
            self.states.append(State(record.new_upper, newest))
        self._by_upper = {state.upper: place for place, state in enumerate(self.states)}

    def place_of(self, state: State) -> int | None:
        """The position whose prefix makes ``state``, or ``None`` if none does."""
        place = self._by_upper.get(state.upper)
        return place if place is not None and self.states[place] == state else None

    def at(self, upper: int) -> State | None:
        place = self._by_upper.get(upper)
        return None if place is None else self.states[place]


def token_of(record: CatalogRecord) -> str | None:
    """The cas that ``record`` is, or ``None`` if it is of another making (the genesis, a node's address)."""
    found = [value for key, value in record.puts(model.SETTINGS) if _TOKEN_KEY.fullmatch(key)]
    return found[-1] if found else None


def state_of(op: Op) -> State:
    """What an ok read returned."""
    return State(op.result["upper"], op.result["token"])


def check(ops: Iterable[Op], records: Sequence[CatalogRecord]) -> Verdict:
    """Judge the ``register`` operations among ``ops``; ``records`` is the whole raw log of their catalog."""
    mine = of(ops, NAME)
    log = Log(records)
    counts = {
        "ops": len(mine),
        "acknowledged": sum(op.ok for op in mine),
        "failed": sum(op.failed for op in mine),
        "unknown": sum(op.unknown for op in mine),
        "unknown_admitted": sum(op.unknown and op.f == "cas" and op.value["token"] in log.places for op in mine),
        "records": len(records),
        "admitted": len(log.records),
        "garbage": sum(record.kind == GARBAGE for record in records),
    }
    if not mine:
        return judged(NAME, (), **counts)
    found = [Anomaly("broken-log", text) for text in gaps(records)]
    if not log.records:
        if found:
            # A log whose beginning is gone admits nothing: that alone is a breach, whatever became of the rest.
            return judged(NAME, found, **counts)
        return undecided(NAME, "the log has no admitted record: it was not read, or is another's", **counts)
    found += _writes(mine, log)
    places, phantoms = _placed(mine, log)
    found += phantoms
    found += _real_time(mine, places, log)
    return judged(NAME, found, **counts)


def _writes(mine: Sequence[Op], log: Log) -> list[Anomaly]:
    """What became of each cas, and whose each token in the log is."""
    found = []
    known: dict[str, Op] = {}
    for op in mine:
        if op.f != "cas":
            continue
        token = op.value["token"]
        if token in known:
            found.append(Anomaly("reused-token", f"{token} was proposed twice: the generator errs",
                                 (known[token].index, op.index)))  # fmt: skip
            continue
        known[token] = op
        place = log.places.get(token)
        if place is None:
            if op.ok:
                found.append(Anomaly("lost-write", f"{_told(op)} was acknowledged and is not in the log", (op.index,)))
            continue
        record = log.records[place]
        if op.failed:
            code = op.error[0] if op.error else "no code"
            found.append(Anomaly("resurrected-write", f"{_told(op)} was said to have failed ({code}), yet the log "
                                 f"admits it at offset {record.offset}", (op.index,)))  # fmt: skip
        uppers = (record.expected_upper, record.new_upper)
        if uppers != (op.value["expected"], op.value["new"]):
            found.append(Anomaly("phantom-write", f"{_told(op)} is in the log at offset {record.offset} as "
                                 f"{uppers[0]}>{uppers[1]}", (op.index,)))  # fmt: skip
        elif op.ok and op.result["upper"] != record.new_upper:
            found.append(Anomaly("wrong-answer", f"{_told(op)} was acknowledged at upper {op.result['upper']}",
                                 (op.index,)))  # fmt: skip
    for token, place in log.doubled:
        first, again = log.records[log.places[token]].offset, log.records[place].offset
        about = (known[token].index,) if token in known else ()
        found.append(Anomaly("doubled-write", f"{token} was admitted at offset {first} and again at {again}", about))
    for token, place in log.places.items():
        if token not in known:
            found.append(Anomaly("phantom-write", f"nobody proposed {token}, which the log admits at offset "
                                 f"{log.records[place].offset}"))  # fmt: skip
    return found


def _placed(mine: Sequence[Op], log: Log) -> tuple[dict[int, int], list[Anomaly]]:
    """The places, by index, of the operations that have one in the log's order: a cas its own, a read the last one
    that it returned; and the reads that returned what never was."""
    places: dict[int, int] = {}
    found = []
    for op in mine:
        if op.f == "cas":
            place = log.places.get(op.value["token"])
            if place is not None:
                places[op.index] = place
        elif op.ok:
            state = state_of(op)
            place = log.place_of(state)
            if place is not None:
                places[op.index] = place
            else:
                there = log.at(state.upper)
                why = f"the log holds {there}" if there else "the log never has that upper"
                found.append(Anomaly("phantom-read", f"{_told(op)}: {why}", (op.index,)))
    return places, found


def _real_time(mine: Sequence[Op], places: dict[int, int], log: Log) -> list[Anomaly]:
    """Every operation that stands before one that had ended when it began.  One anomaly each, with the furthest one."""
    found = []
    for (op, place), furthest in furthest_before(mine, lambda op, _least: places.get(op.index)):
        other = furthest.op
        if op.f != "cas" and place < furthest.place:
            kind = "stale-read"
            text = f"{_told(op)} though {_told(other)} ({log.states[furthest.place]}) had ended before it began"
        elif op.f == "cas" and place <= furthest.place and other.f == "cas":
            kind = "reordered-write"
            text = f"{_told(op)} is admitted before {_told(other)}, which had ended before it began"
        elif op.f == "cas" and place <= furthest.place:
            kind, text = "future-read", f"{_told(other)} ended before {_told(op)} began, whose effect it returned"
        else:
            continue
        found.append(Anomaly(kind, text, (other.index, op.index)))
    return found


def _told(op: Op) -> str:
    if op.f == "cas":
        return f"#{op.index} cas {op.value['expected']}>{op.value['new']} {op.value['token']}"
    return f"#{op.index} read {state_of(op)}" if op.ok else f"#{op.index} read"


# -- windows


class Window(NamedTuple):
    """A part of a history that can be judged alone: the state it begins with, and operations without unknown ones."""

    state: State
    ops: list[Op]


WINDOW_OPS = 500
"""Operations that begin in one window.  Small enough for any checker of linearizability, whatever it costs."""


def windows(ops: Iterable[Op], records: Sequence[CatalogRecord], ops_max: int = WINDOW_OPS) -> list[Window]:
    """The register's history cut in time, so that it is linearizable iff every window is.

    A cut need not be quiet.  At time t let P be the furthest place that anything returned or took which ended before
    t: everything up to P took effect before t, and everything that is further on has not ended by t, so it may take
    effect after.  So the state at t may be taken to be the one after P, and an operation that spans t is cut to one
    side by its place.

    The log also settles unknown outcomes: one that is not in it never happened, one that is in it took effect before
    the first end of whoever stands behind it.  Admitted records of nobody in the history are operations too (-1).
    """
    mine = of(ops, NAME)
    log = Log(records)
    if not mine or not log.records:
        return []
    settled = _settled(mine, log)
    strange = _strange(mine, log)
    by_end = sorted((each for each in settled if each[0].end is not None), key=lambda each: each[0].end)
    found: list[Window] = []
    waiting: list[tuple[Op, int | None]] = []
    begins = settled[0][0].start if settled else 0
    state_place = furthest = ended = taken = 0
    for lower in range(0, len(settled), ops_max):
        chunk = waiting + settled[lower : lower + ops_max]
        waiting = []
        if lower + ops_max >= len(settled):
            others = [_of_nobody(log, place, begins, None) for place in strange[taken:]]
            found.append(Window(log.states[state_place], others + [op for op, _ in chunk]))
            break
        cut = settled[lower + ops_max][0].start
        while ended < len(by_end) and by_end[ended][0].end < cut:
            place = by_end[ended][1]
            furthest = furthest if place is None else max(furthest, place)
            ended += 1
        inside = []
        while taken < len(strange) and strange[taken] <= furthest:
            inside.append(_of_nobody(log, strange[taken], begins, cut))
            taken += 1
        for op, place in chunk:
            if place is None or (op.end is not None and op.end < cut):
                inside.append(op)
            elif place <= furthest:
                inside.append(replace(op, end=cut))
            else:
                waiting.append((replace(op, start=cut), place))
        found.append(Window(log.states[state_place], inside))
        state_place, begins = furthest, cut
    return [window for window in found if window.ops]


def _strange(mine: Sequence[Op], log: Log) -> list[int]:
    """The places in the log, but for the first, of what nobody in the history proposed."""
    known = {op.value["token"] for op in mine if op.f == "cas"}
    return [place for place, token in enumerate(log.tokens)
            if place and (token not in known or log.places[token] != place)]  # fmt: skip


def _of_nobody(log: Log, place: int, start: int, end: int | None) -> Op:
    record = log.records[place]
    value = {"expected": record.expected_upper, "new": record.new_upper, "token": log.tokens[place]}
    return Op(-1, -1, NAME, "cas", value, start, end, OK, {"upper": record.new_upper})


def _settled(mine: Sequence[Op], log: Log) -> list[tuple[Op, int | None]]:
    """The operations that happened, with their places, by start; ``None`` is the place of what the log contradicts."""
    certain: list[tuple[Op, int | None]] = []
    late: list[tuple[Op, int]] = []
    for op in mine:
        if op.f == "cas":
            place = log.places.get(op.value["token"])
            if op.ok:
                certain.append((op, place))
            elif place is not None:
                late.append((op, place))
        elif op.ok:
            certain.append((op, log.place_of(state_of(op))))
    ends = sorted((place, op.end) for op, place in certain if place is not None)
    soonest: list[int] = []  # the soonest end of anybody at that place or behind it
    for _, end in reversed(ends):
        soonest.append(min(end, soonest[-1]) if soonest else end)
    soonest.reverse()
    for op, place in late:
        behind = bisect.bisect_left(ends, (place, -1))
        end = soonest[behind] if behind < len(soonest) else None
        if end is not None and end < op.start:
            end = None  # somebody saw it before it began: whoever did stands convicted without it
        certain.append((replace(op, outcome=OK, result={"upper": op.value["new"]}, end=end), place))
    return sorted(certain, key=lambda each: (each[0].start, each[0].index))
