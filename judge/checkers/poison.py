"""What ends or fails one object leaves all others alone, and whoever asks for that one is told.  Pure.

Sources: the class of "one thing kills all": a poisoned object is quarantined, not restarted into.

A ``bad`` row is one on which a view's query fails; a ``poison`` row one on which evaluating a view ends its controller.
``PLACES`` says which row does what to which view; all others are spared.  A ``renew`` gives a view a new definition,
which fails on another row (or on none); the fault ``poison`` writes the row that ends the controller, and is healed
when whoever asks is told.

Promises, beside that a spared view equals its query and misses no insert (:mod:`judge.checkers.views`), and that
a poisoned one equals its query whenever it has an answer:

* **hidden**: a view was answered by a compare that began after its bad or poison row was acknowledged, under each
  definition that it may have had.
* **blamed**: a spared view was refused for a reason that is its own, or a view was told its row's error before anybody
  tried to write that row.
* **untold**: the row was acknowledged, compares of the view that began afterwards have ended, and none of them was ever
  told the row's error: they only waited in vain.  Of a definition that another one followed, only those count that met
  no fault nor the ``UNTOLD_NS`` behind one, and only where they were asked for as long: its time may all have been
  faults', and of who came back from them.
* **not-back**: a view has an acknowledged new definition, whose row nobody tried to write, and its last compare was
  refused for a reason that is the view's own.
* **stopped**: as in :mod:`judge.checkers.idle`, of spared views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from judge.checkers import views
from judge.checkers.idle import DROPPED, GONE, INTERNAL, MEANING, QUARANTINED, silences
from judge.checkers.views import Meaning
from judge.history import Fault, Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "poison"

DIVISION = "22012"

OWN = frozenset({QUARANTINED, GONE, DROPPED, INTERNAL, DIVISION})
"""SQLSTATEs of what would be wrong with a relation; a read that comes too late for its own snapshot is none of it."""


ENDED = frozenset({"kill", "pause", "replace", "restart", "restart-all", "day"})
"""Kinds of fault that end a life: a pause does when it is longer than a process lets its interpreter stand still."""


UNTOLD_NS = 60_000_000_000
"""Twice what a client waits for one answer."""

POISON = "poison"
"""The kind of fault whose target is the view that it poisons."""

FOR_EVER = 1 << 62


class Place(NamedTuple):
    """What happens to a view, and what whoever asks for it is told."""

    values: frozenset[int]
    """The ``v`` of the rows that do it, as the view is first defined: the simulation's, and that of real processes."""
    code: str


PLACES: Mapping[str, Place] = {
    "poison_failing": Place(frozenset({7, -1000}), DIVISION),
    "poison_ending": Place(frozenset({13}), QUARANTINED),
}
SPARED: Mapping[str, Meaning] = {"poison_spared": MEANING}


def excused(faults: Iterable[Fault], name: str = "compute") -> bool:
    """Whether others ended ``name`` so often that quarantine may have met somebody who was only at work just then."""
    return sum(fault.target in (name, f"{name}-jvm", "all") and fault.kind in ENDED for fault in faults) > 1


def check(
    ops: Iterable[Op], places: Mapping[str, Place] = PLACES, spared: Mapping[str, Meaning] = SPARED,
    workload: str = "poison", faults: Iterable[Fault] = (),
) -> Verdict:  # fmt: skip
    """Judge the ``insert``, ``renew`` and ``compare`` operations of ``workload``; where ``faults`` ended the controller
    as often as quarantine takes, the innocent may be in quarantine too (:func:`excused`)."""
    faults = list(faults)
    deaths_excused = excused(faults)
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    compares = [op for op in ops if op.f == "compare"]
    well = [op for op in ops if op.f != "compare" or op.value["view"] in spared]
    verdict = views.check(well, spared, workload)
    placed = [_Placed(name, place, ops, faults, deaths_excused) for name, place in places.items()]
    anomalies = [
        *verdict.anomalies,
        *_spared([op for op in compares if op.value["view"] in spared], deaths_excused),
        # The simulation asks for these views alone, and not for their queries, which fail too.
        *views.differences([op for op in compares if op.ok and op.value["view"] in places and op.result["query"]]),
        *(each for one in placed for each in one.check()),
    ]
    told = sum(op.failed and op.error[0] == place.code for name, place in places.items()
               for op in compares if op.value["view"] == name)  # fmt: skip
    counts = {name: count for name, count in verdict.counts.items() if name != "anomalies"} | {"told": told}
    if any(op.f == "renew" for op in ops):
        counts["renewed"] = sum(op.f == "renew" and op.ok for op in ops)
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


class _Definition(NamedTuple):
    """What a view is from ``lower`` at the earliest to ``upper`` at the latest."""

    lower: int
    upper: int
    begun: int | None
    """When somebody first tried to write its row; ``None``: nobody did."""
    known: int | None
    """When that was first acknowledged."""
    certain: int
    """From when on it is this one, and no other, until the next may begin; ``FOR_EVER`` where nobody knows."""


class _Placed:
    """One view that has a row which harms it."""

    def __init__(
        self, name: str, place: Place, ops: Sequence[Op], faults: Sequence[Fault], deaths_excused: bool
    ) -> None:
        self.name, self.code = name, place.code
        self.excused = deaths_excused and place.code == QUARANTINED
        self.compares = [op for op in ops if op.f == "compare" and op.value["view"] == name]
        self.hurt = [(fault.start, FOR_EVER if fault.end is None else fault.end + UNTOLD_NS) for fault in faults]
        self.faults = [fault for fault in faults if fault.kind == POISON and fault.target == name]
        inserts = [op for op in ops if op.f == "insert" and not op.failed]
        renews = [op for op in ops if op.f == "renew" and op.value["view"] == name and not op.failed]
        starts = [op.start for op in renews]
        self.definitions = [self._first(inserts, place.values, self._end_of(renews))] + [
            self._definition(inserts, frozenset({op.value["value"]}), op.start, self._end_of(renews[number + 1 :]),
                             op.end if op.ok else FOR_EVER)
            for number, op in enumerate(renews)
        ]  # fmt: skip
        self.next_start = [*starts, FOR_EVER]
        """Of each definition, when the next one may begin."""

    @staticmethod
    def _end_of(renews: Sequence[Op]) -> int:
        return next((op.end for op in renews if op.ok and op.end is not None), FOR_EVER)

    def _first(self, inserts: Sequence[Op], values: frozenset[int], upper: int) -> _Definition:
        found = self._definition(inserts, values, 0, upper, 0)
        begun = [fault.start for fault in self.faults] + ([] if found.begun is None else [found.begun])
        known = [fault.end for fault in self.faults if fault.end is not None]
        known += [] if found.known is None else [found.known]
        return found._replace(begun=min(begun, default=None), known=min(known, default=None))

    @staticmethod
    def _definition(
        inserts: Sequence[Op], values: frozenset[int | None], lower: int, upper: int, certain: int
    ) -> _Definition:
        tries = [op for op in inserts if any(row[1] in values for row in op.value["rows"])]
        return _Definition(
            lower, upper, min((op.start for op in tries), default=None),
            min((op.end for op in tries if op.ok), default=None), certain,
        )  # fmt: skip

    def _possible(self, op: Op) -> list[_Definition]:
        end = FOR_EVER if op.end is None else op.end
        return [each for each in self.definitions if each.lower <= end and op.start <= each.upper]

    def check(self) -> Iterator[Anomaly]:
        for op in self.compares:
            code = (op.error or ("", ""))[0]
            possible = self._possible(op)
            if op.ok and possible and all(each.known is not None and each.known < op.start for each in possible):
                yield Anomaly("hidden", f"op {op.index} was answered by {self.name}, which a row acknowledged before "
                              "keeps from having an answer", (op.index,), self.name)  # fmt: skip
            elif op.failed and code == self.code and not self.excused and all(
                each.begun is None or (op.end is not None and op.end < each.begun) for each in possible
            ):
                yield Anomaly("blamed", f"op {op.index} was told {code} of {self.name} before anybody wrote what does "
                              "that", (op.index,), self.name)  # fmt: skip
        for number, each in enumerate(self.definitions):
            yield from self._untold(each, number == len(self.definitions) - 1, self.next_start[number])
        yield from self._not_back()

    def _untold(self, definition: _Definition, last: bool, upper: int) -> Iterator[Anomaly]:
        if any(fault.end is None for fault in self.faults) and definition.lower == 0 and definition.known is None:
            yield Anomaly("untold", f"nobody was told {self.code} of {self.name} for as long as that was waited for",
                          (), self.name)  # fmt: skip
        if definition.known is None:
            return
        since = max(definition.known, definition.certain)
        asked = [op for op in self.compares if since < op.start < upper]
        told = any(op.failed and op.error[0] == self.code for op in asked)
        vain = [op for op in asked if not op.ok and (last or (op.end or FOR_EVER) < upper and not self._disturbed(op))]
        if not vain or told or (not last and vain[-1].end - vain[0].start < UNTOLD_NS):
            return
        codes = ", ".join(sorted({op.error[0] if op.error else "no answer" for op in vain}))
        yield Anomaly("untold", f"nobody was told {self.code} of {self.name}; {len(vain)} compares ended with {codes}",
                      tuple(op.index for op in vain[-3:]), self.name)  # fmt: skip

    def _disturbed(self, op: Op) -> bool:
        end = FOR_EVER if op.end is None else op.end
        return any(begun <= end and op.start <= over for begun, over in self.hurt)

    def _not_back(self) -> Iterator[Anomaly]:
        definition = self.definitions[-1]
        if len(self.definitions) == 1 or definition.begun is not None or not self.compares:
            return
        last = self.compares[-1]
        if last.failed and last.start > definition.certain and last.error[0] in OWN:
            yield Anomaly("not-back", f"op {last.index} was refused {self.name} with {last.error[0]}, whose new "
                          f"definition no row fails: {last.error[1]}", (last.index,), self.name)  # fmt: skip
