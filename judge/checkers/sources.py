"""A topic that is deleted and made anew under a source is another one, and nobody is given a mixture of the two.  Pure.

Sources: DESIGN I5 (what was read of a topic is definite) and I10.

A generation is a life of the topic: the first one is 0, and each ``remake`` (delete, make anew) begins the next.  A
message belongs to a generation in which it may have landed, by the times of its ``produce`` and of the remakes.
``reset`` is ALTER SOURCE … RESET CASCADE.  A ``read`` asks in one statement for the source's rows and a view's over it.

Promises, for every answered read:

* **two-answers**: the source's rows and the view's are the same multiset.
* **doubled**, **phantom**: an id is there once, and only if somebody tried to write it before the read ended.
* **mixed**: all its ids may be of one generation.
* **went-on**: an earlier read showed ids of a generation that was over by then, and this one shows later ones though no
  reset came in between: the source took another topic for its own.
* **came-back**: it began after a reset that began after a remake had ended, and shows ids that are older than that.
* **vanished**: what an earlier read showed is shown again, unless a reset came in between; else the read is refused.
* **lost**: an id of the newest generation that was acknowledged ``LAG_NS`` before the last read began, after a reset or
  where nothing was ever made anew, is shown by it.

and of reads that are refused:

* **not-back**: after an acknowledged reset that nobody's remake followed, the last read is not refused because rows are
  gone or the relation is in error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from judge.checkers.idle import DROPPED, GONE, INTERNAL, QUARANTINED
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "sources"

LAG_NS = 8_000_000_000
"""How long after its delivery, or the source's reset, a message may be missing: a source that was just made looks at
once, and one that has to wait for brokers pauses for no more than some seconds at first."""

REFUSALS = frozenset({GONE, DROPPED, INTERNAL, QUARANTINED})

FOR_EVER = 1 << 62


class Life(NamedTuple):
    """When a generation's topic was there: from its remake's beginning to the end of the next one's."""

    lower: int
    upper: int


def check(ops: Iterable[Op], lag_ns: int = LAG_NS, workload: str = "sources") -> Verdict:
    """Judge the ``produce``, ``remake``, ``reset`` and ``read`` operations of ``workload``."""
    history = _History(sorted(of(ops, workload), key=lambda op: op.start), lag_ns)
    anomalies = list(history.check())
    reads = [op for op in history.reads if op.ok]
    counts = dict(
        ops=len(reads), refused=sum(op.failed for op in history.reads), remakes=len(history.lives) - 1,
        resets=sum(op.ok for op in history.resets), ids=len(history.tries),
        rows=sum(len(op.result["query"]) for op in reads),
    )  # fmt: skip
    if not anomalies and not counts["rows"]:
        return undecided(CHECKER, "no read was answered with a row", **counts)
    return judged(CHECKER, anomalies, **counts)


class _History:
    def __init__(self, ops: Sequence[Op], lag_ns: int) -> None:
        self.lag_ns = lag_ns
        self.reads = [op for op in ops if op.f == "read"]
        self.resets = [op for op in ops if op.f == "reset" and not op.failed]
        # One that failed says so of the whole of it: the topic may be gone all the same, and is made by the next one.
        self.remakes = [op for op in ops if op.f == "remake"]
        begins = [0, *(op.start for op in self.remakes)]
        ends = [*(op.end if op.end is not None and op.ok else FOR_EVER for op in self.remakes), FOR_EVER]
        # A remake that nobody knows the end of may last: the lives before and after it overlap until the next is made.
        self.lives = [Life(lower, upper) for lower, upper in zip(begins, ends, strict=True)]
        self.tries: dict[str, Op] = {each: op for op in ops if op.f == "produce" for each in op.value["ids"]}
        self.may_be = {each: self._generations(op) for each, op in self.tries.items()}

    def _generations(self, op: Op) -> frozenset[int]:
        end = FOR_EVER if op.end is None else op.end
        return frozenset(g for g, life in enumerate(self.lives) if op.start <= life.upper and end >= life.lower)

    def _reset_between(self, start: int, end: int | None) -> bool:
        """Whether a reset may have taken effect in between."""
        return any(r.start <= (FOR_EVER if end is None else end) and (r.end is None or r.end >= start)
                   for r in self.resets)  # fmt: skip

    def check(self) -> Iterator[Anomaly]:
        answered = [op for op in self.reads if op.ok]
        for read in answered:
            yield from self._alone(read)
        yield from self._in_time(answered)
        yield from self._at_last(answered)

    def _alone(self, read: Op) -> Iterator[Anomaly]:
        shown = {side: Counter(read.result[side]) for side in ("view", "query")}
        if shown["view"] != shown["query"]:
            only = {side: sorted((shown[side] - shown[other]).elements())[:3]
                    for side, other in (("view", "query"), ("query", "view"))}  # fmt: skip
            yield Anomaly("two-answers", f"op {read.index} read in one statement {shown['view'].total()} rows of the "
                          f"view and {shown['query'].total()} of its source, {only}", (read.index,))  # fmt: skip
        rows = shown["view"] | shown["query"]
        for each, count in sorted(rows.items()):
            tried = self.tries.get(each)
            if tried is None or tried.failed or read.before(tried):
                yield Anomaly("phantom", f"op {read.index} read {each}, which nobody had written", (read.index,), each)
            elif count > 1:
                yield Anomaly("doubled", f"op {read.index} read {each} {count} times", (tried.index, read.index), each)
        known = [each for each in sorted(rows) if each in self.may_be]
        if known and not frozenset.intersection(*(self.may_be[each] for each in known)):
            oldest = min(known, key=lambda each: max(self.may_be[each]))
            newest = max(known, key=lambda each: min(self.may_be[each]))
            yield Anomaly("mixed", f"op {read.index} read {oldest} of the topic as it was and {newest} of the one that "
                          "was made anew", (read.index,), newest)  # fmt: skip

    def _in_time(self, answered: Sequence[Op]) -> Iterator[Anomaly]:
        newest = self._newest_resets()
        told: set[str] = set()
        for read in answered:
            rows = set(read.result["view"]) | set(read.result["query"])
            floor = max((g for reset, g in newest if reset.before(read)), default=0)
            for each in sorted(rows):
                if each in self.may_be and max(self.may_be[each]) < floor and "came-back" not in told:
                    told.add("came-back")
                    yield Anomaly("came-back", f"op {read.index} read {each} of a topic that is gone, after the source "
                                  "had been reset to the next", (read.index,), each)  # fmt: skip
            earlier = [op for op in answered if op.before(read) and not self._reset_between(op.start, read.end)]
            if not earlier:
                continue
            # Nothing is ever taken away but by a reset, so the last of them shows all that those before it did.
            last = max(earlier, key=lambda op: (len(op.result["query"]), op.start))
            before = set(last.result["query"])
            gone = sorted(before - set(read.result["query"])) or sorted(before - set(read.result["view"]))
            if gone and "vanished" not in told:
                told.add("vanished")
                text = f"op {read.index} read {len(rows)} rows without {gone[0]}, which op {last.index} had read"
                yield Anomaly("vanished", f"{text}, and nobody had reset the source", (last.index, read.index), gone[0])
            oldest = min((max(self.may_be[each]) for each in before if each in self.may_be), default=FOR_EVER)
            later = [each for each in sorted(rows) if min(self.may_be.get(each, {0})) > oldest]
            if later and "went-on" not in told:
                told.add("went-on")
                yield Anomaly("went-on", f"op {read.index} read {later[0]} of a topic that was made anew, and op "
                              f"{last.index} had read what was there before; nobody had reset the source",
                              (last.index, read.index), later[0])  # fmt: skip

    def _newest_resets(self) -> list[tuple[Op, int]]:
        """Resets that were acknowledged, each with the oldest generation that it can have begun with."""
        found = []
        for reset in self.resets:
            if reset.ok:
                over = [g for g, op in enumerate(self.remakes, 1) if op.ok and op.before(reset)]
                found.append((reset, max(over, default=0)))
        return found

    def _at_last(self, answered: Sequence[Op]) -> Iterator[Anomaly]:
        if not self.reads:
            return
        last, generation = self.reads[-1], len(self.lives) - 1
        if not all(op.ok for op in self.remakes):
            return  # nobody knows which topic it is
        changes = [op for op in (*self.remakes, *self.resets)]
        well = not self.remakes or any(reset.before(last) and g == generation for reset, g in self._newest_resets())
        if not well or any(op.end is None or not op.before(last) for op in changes):
            return
        if last.failed and last.error[0] in REFUSALS:
            yield Anomaly("not-back", f"op {last.index}, the last read, was refused with {last.error[0]} though the "
                          f"source is well: {last.error[1]}", (last.index,))  # fmt: skip
        elif last.ok:
            rows = set(last.result["query"])
            since = max((op.end for op in changes), default=0)
            for each, tried in self.tries.items():
                if not tried.ok or self.may_be[each] != {generation} or each in rows:
                    continue
                if max(tried.end, since) + self.lag_ns < last.start:
                    yield Anomaly("lost", f"op {last.index}, lacks {each}, which op {tried.index} had "
                                  "written to the topic that is there", (tried.index, last.index), each)  # fmt: skip
