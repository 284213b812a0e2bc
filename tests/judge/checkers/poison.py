"""What ends or fails one object leaves all others alone, and whoever asks for that one is told.  Pure.

Sources: the class of "one thing kills all": a poisoned object is quarantined, not restarted into.

A ``bad`` row is one on which a view's query fails; a ``poison`` row one on which evaluating a view ends its controller.
``PLACES`` says which row does what to which view; all others are spared.

Promises, beside that a spared view equals its query and misses no insert (:mod:`tests.judge.checkers.views`):

* **hidden**: a view was answered by a compare that began after its bad or poison row was acknowledged.
* **blamed**: a spared view was refused for a reason that is its own, or a view was told its row's error before anybody
  tried to write that row.
* **untold**: the row was acknowledged, compares of the view that began afterwards have ended, and none of them was ever
  told the row's error: they only waited in vain.
* **stopped**: as in :mod:`tests.judge.checkers.idle`, of spared views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.judge.checkers import views
from tests.judge.checkers.idle import DROPPED, GONE, INTERNAL, MEANING, QUARANTINED, silences
from tests.judge.checkers.views import Meaning
from tests.judge.history import Fault, Op, of
from tests.judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "poison"

DIVISION = "22012"

OWN = frozenset({QUARANTINED, GONE, DROPPED, INTERNAL, DIVISION})
"""SQLSTATEs of what would be wrong with a relation; a read that comes too late for its own snapshot is none of it."""


ENDED = frozenset({"kill", "pause", "replace", "restart", "restart-all", "day"})
"""Kinds of fault that end a life: a pause does when it is longer than a process lets its interpreter stand still."""


class Place(NamedTuple):
    """What happens to a view, and what whoever asks for it is told."""

    value: int
    """The ``v`` of the row that does it."""
    code: str


PLACES: Mapping[str, Place] = {"poison_failing": Place(7, DIVISION), "poison_ending": Place(13, QUARANTINED)}
SPARED: Mapping[str, Meaning] = {"poison_spared": MEANING}


def excused(faults: Iterable[Fault], name: str = "compute") -> bool:
    """Whether others ended ``name`` so often that quarantine may have met somebody who was only at work just then."""
    return sum(fault.target in (name, f"{name}-jvm", "all") and fault.kind in ENDED for fault in faults) > 1


def check(
    ops: Iterable[Op], places: Mapping[str, Place] = PLACES, spared: Mapping[str, Meaning] = SPARED,
    workload: str = "poison", faults: Iterable[Fault] = (),
) -> Verdict:  # fmt: skip
    """Judge the ``insert`` and ``compare`` operations of ``workload``; where ``faults`` ended the controller as often
    as quarantine takes, the innocent may be in quarantine too (:func:`excused`)."""
    deaths_excused = excused(faults)
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    inserts = [op for op in ops if op.f == "insert"]
    compares = [op for op in ops if op.f == "compare"]
    well = [op for op in ops if op.f != "compare" or op.value["view"] in spared]
    verdict = views.check(well, spared, workload)
    anomalies = [
        *verdict.anomalies,
        *_spared([op for op in compares if op.value["view"] in spared], deaths_excused),
        *(each for name, place in places.items() for each in _placed(name, place, inserts, compares, deaths_excused)),
    ]
    told = sum(op.failed and op.error[0] == place.code for name, place in places.items()
               for op in compares if op.value["view"] == name)  # fmt: skip
    counts = {name: count for name, count in verdict.counts.items() if name != "anomalies"} | {"told": told}
    if anomalies:
        return judged(CHECKER, anomalies, **counts)
    if verdict.reason:
        return undecided(CHECKER, verdict.reason, **counts)
    if not told:
        return undecided(CHECKER, "nobody was told of anything: no row took effect before a compare", **counts)
    return judged(CHECKER, (), **counts)


def _spared(compares: Sequence[Op], deaths_excused: bool) -> Iterator[Anomaly]:
    refused: set[str] = set()
    for op in compares:
        name, code = op.value["view"], (op.error or ("", ""))[0]
        if op.failed and code in OWN and not (deaths_excused and code == QUARANTINED):
            refused.add(name)
            yield Anomaly("blamed", f"op {op.index} was refused {name} with {code}, and nothing was done to it: "
                          f"{op.error[1]}", (op.index,), name)  # fmt: skip
    yield from silences(compares, refused)


def _placed(
    name: str, place: Place, inserts: Sequence[Op], compares: Sequence[Op], deaths_excused: bool
) -> Iterator[Anomaly]:
    compares = [op for op in compares if op.value["view"] == name]
    tries = [op for op in inserts if not op.failed and any(row[1] == place.value for row in op.value["rows"])]
    begun = min((op.start for op in tries), default=None)
    known = min((op.end for op in tries if op.ok), default=None)
    after = [op for op in compares if known is not None and op.start > known]
    for op in compares:
        code = (op.error or ("", ""))[0]
        early = begun is None or (op.end is not None and op.end < begun)
        if op.ok and op in after:
            yield Anomaly("hidden", f"op {op.index} was answered by {name}, which a row acknowledged before keeps from "
                          "having an answer", (op.index,), name)  # fmt: skip
        elif op.failed and code == place.code and early and not (deaths_excused and code == QUARANTINED):
            yield Anomaly("blamed", f"op {op.index} was told {code} of {name} before anybody wrote what does that",
                          (op.index,), name)  # fmt: skip
    ended = [op for op in after if not op.ok]
    if ended and not any(op.failed and op.error[0] == place.code for op in after):
        codes = ", ".join(sorted({op.error[0] if op.error else "no answer" for op in ended}))
        yield Anomaly("untold", f"nobody was told {place.code} of {name}; {len(ended)} compares ended with {codes}",
                      tuple(op.index for op in ended[-3:]), name)  # fmt: skip
