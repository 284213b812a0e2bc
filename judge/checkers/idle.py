"""A view that nobody writes to for longer than history is kept goes on as if nothing were.  Pure.

Sources: DESIGN I5 (``since``) and I9; a day of history in minutes, every process restarted in the midst of it.

Promises, beside those of :mod:`judge.checkers.views` (a view equals its query and misses no insert):

* **refused**: the last compare of a view that was tried is not answered for a reason that is the view's own (history
  that is too old, rows that are gone, quarantine, an internal error), or any compare because of quarantine or of a
  relation that is not there: nobody has done anything to it.  A compare in between may be too late for its snapshot.
* **stopped**: the last compares of a view were tried for ``STOPPED_NS`` and more, and none was answered: whoever keeps
  it ends again and again, which no error tells of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from judge.checkers import views
from judge.checkers.views import Meaning
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged

CHECKER = "idle"

TOO_OLD, QUARANTINED, GONE, DROPPED, INTERNAL = "72000", "58000", "58P01", "42P01", "XX000"
OWN = frozenset({TOO_OLD, QUARANTINED, GONE, DROPPED, INTERNAL})
"""SQLSTATEs of what is wrong with a relation, and not with the moment."""

AT_ANY_TIME = frozenset({QUARANTINED, DROPPED})

STOPPED_NS = 20_000_000_000
"""Longer than one restart of everything takes, shorter than a client waits for one answer."""


def sums(rows: Sequence[Sequence[int]]) -> Mapping[object, int]:
    """What ``(key, total, count)`` say, as sums."""
    found: Counter = Counter()
    for key, total, count in rows:
        found["total", key] += total
        found["n", key] += count
    return found


MEANING = Meaning(sums, lambda value: sums([[key, amount, 1] for key, amount in value["rows"]]))
"""Of a view that groups rows ``(k, v)`` by ``k`` into ``(k, sum(v), count(*))``."""

MEANINGS: Mapping[str, Meaning] = {"idle_sums": MEANING, "idle_again": MEANING}
"""The second one is kept by running its query again; the simulation has the first alone."""


def check(ops: Iterable[Op], meanings: Mapping[str, Meaning] = MEANINGS, workload: str = "idle") -> Verdict:
    """Judge the ``insert`` and ``compare`` operations of ``workload``."""
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    verdict = views.check(ops, meanings, workload)
    compares = [op for op in ops if op.f == "compare"]
    refused = list(refusals(compares))
    anomalies = [*verdict.anomalies, *refused, *silences(compares, {each.key for each in refused})]
    if not anomalies:
        return Verdict(CHECKER, verdict.valid, (), verdict.counts, verdict.reason)
    return judged(CHECKER, anomalies, **{name: of for name, of in verdict.counts.items() if name != "anomalies"})


def refusals(compares: Sequence[Op]) -> Iterator[Anomaly]:
    """Compares of views that nothing is wrong with, refused for good."""
    last = {op.value["view"]: op.index for op in compares}
    for op in compares:
        code, name = (op.error or ("", ""))[0], op.value["view"]
        if op.failed and (code in AT_ANY_TIME or (code in OWN and op.index == last[name])):
            yield Anomaly("refused", f"op {op.index} was refused {name} with {code}: {op.error[1]}", (op.index,), name)


def silences(compares: Sequence[Op], told: Collection[str] = ()) -> Iterator[Anomaly]:
    """Views that nobody is answered of any more, but for those of which that is ``told`` already."""
    for name in sorted({op.value["view"] for op in compares} - set(told)):
        mine = [op for op in compares if op.value["view"] == name]
        answered = max((op.end for op in mine if op.ok and op.end is not None), default=-1)
        vain = [op for op in mine if op.failed and op.end is not None and op.start > answered]
        if vain and max(op.end for op in vain) - vain[0].start >= STOPPED_NS:
            codes = ", ".join(sorted({op.error[0] for op in vain if op.error}))
            yield Anomaly("stopped", f"the last {len(vain)} compares of {name} were not answered: {codes}",
                          tuple(op.index for op in vain[-3:]), name)  # fmt: skip
