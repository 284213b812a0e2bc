"""The faults that a simulated failure cannot do without: its seed is run again with ever fewer of them.

Promises: a replay that leaves nothing out is the run itself, event for event; one that leaves faults out has the others
at the same virtual times, of the same kinds and drawn from the same random numbers.  What hits whom may still differ
after the first one left out, since the world goes another way from there: so what is told are the faults as they
happened in the smallest replay that failed, and that replay can be made again from :attr:`FewerFaults.left_out`.

Only a simulation can be asked again.  A live run's seed gives the same plan of faults and not the same history: the
machine schedules as it likes, and a replay that passes would say nothing about the fault that it left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from judge.history import Fault
from judge.shrink import Needed, NothingToShrink, without_faults
from judge.simulation.judging import judge
from judge.simulation.run import SimulatedRun, collected, inside
from judge.simulation.world import World
from judge.verdict import INVALID, Anomaly, Verdict, judged

STEPS_FIRST = 5_000
"""The shortest run that is tried: most planted bugs show within a few times that, and every replay costs as much."""

STEPS_ALL_MAX = 300_000
"""Steps of all runs together: a person waits for them, for about a minute."""


class Occasion(NamedTuple):
    """When the simulation hurt somebody, and the state of its random numbers just then."""

    at: int
    state: Any


class Noted(World):
    """A world that writes down its occasions.  With those of another run it has faults just then, without some."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.occasions: list[Occasion] = []
        self.of_occasion: dict[Fault, int] = {}
        """Which occasion made a fault (one that only looks on, as a checkpoint does, makes none)."""
        self.script: Sequence[Occasion] | None = None
        self.left_out: Collection[int] = ()

    def _next_fault(self) -> None:
        if self.script is None:
            super()._next_fault()
            return
        self.rng.expovariate(1)  # as it was drawn when nothing was left out
        if len(self.occasions) < len(self.script):
            at = self.script[len(self.occasions)].at
            self.schedule.at(max(at, self.schedule.now), None, self._fault)

    def _fault(self) -> None:
        if self.healing:
            return
        number, before = len(self.occasions), len(self.faults)
        if self.script is not None:
            self.rng.setstate(self.script[number].state)
        self.occasions.append(Occasion(self.schedule.now, self.rng.getstate()))
        if number in self.left_out:
            self.check_folds()
            self._next_fault()
            return
        super()._fault()
        self.of_occasion |= dict.fromkeys(self.faults[before:], number)


@dataclass(frozen=True)
class FewerFaults:
    """The smallest replay that was found to fail."""

    seed: int
    steps: int
    """Of a replay: fewer than the run's, where the run failed as early."""
    before: int
    """Faults of as many steps with nothing left out."""
    needed: Needed
    """Its faults, as they happened in it."""
    left_out: tuple[int, ...]
    """The occasions for a fault that it left out."""

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed, "steps": self.steps, "before": self.before, "replays": self.needed.replays,
            "minimal": self.needed.minimal, "kinds": sorted(self.needed.verdict.kinds),
            "faults": [fault._asdict() for fault in self.needed.faults], "left_out": list(self.left_out),
        }  # fmt: skip


def replayed(
    about: Mapping[str, Any], steps: int, script: Sequence[Occasion] | None = None, left_out: Collection[int] = ()
) -> tuple[Noted, SimulatedRun]:
    """The run that ``about`` (``run.json``) tells of, for so many steps."""
    bugs = frozenset(filter(None, about["bug"].split(",")))
    partitions = about["configuration"].get("partitions", 0)
    world = Noted(about["seed"], bugs=bugs, workloads=tuple(about["workloads"]), partitions=partitions)
    world.script, world.left_out = script, left_out
    with inside(world):
        world.run(steps)
    return world, collected(world)


def said(run: SimulatedRun) -> Verdict:
    """All verdicts on a run as one: invalid where any is, with all that was found."""
    verdicts = judge(run)
    found: list[Anomaly] = [anomaly for each in verdicts for anomaly in each.anomalies]
    return judged("simulation", found, ops=run.steps)


def fewer_faults(about: Mapping[str, Any], kinds: Collection[str], *, steps_max: int = STEPS_ALL_MAX) -> FewerFaults:
    """Of the simulated run that ``about`` tells of, and that showed anomalies of ``kinds``, the faults it needs.

    Raises :class:`NothingToShrink` where the seed does not show any of ``kinds`` again within ``steps_max`` steps.
    """
    steps, left, whole = STEPS_FIRST, steps_max, about["configuration"]["steps"]
    while True:
        steps = min(steps, whole)
        if steps > left:
            raise NothingToShrink(f"seed {about['seed']} shows nothing in {steps_max - left} steps of replays")
        world, run = replayed(about, steps)
        left -= run.steps
        if (first := said(run)).valid == INVALID and first.kinds & set(kinds):
            break
        if steps == whole:
            raise NothingToShrink(f"seed {about['seed']} shows none of {', '.join(sorted(kinds))} again")
        steps *= 2
    script = tuple(world.occasions)
    removable = {number: fault for fault, number in world.of_occasion.items()}
    of = {fault: number for number, fault in removable.items()}
    smallest: tuple[tuple[Fault, ...], tuple[int, ...]] = tuple(world.faults), ()

    def replay(kept: Sequence[Fault]) -> Verdict:
        nonlocal smallest
        left_out = frozenset(removable) - {of[fault] for fault in kept}
        fewer, run = replayed(about, steps, script, left_out)
        verdict = said(run)
        if verdict.valid == INVALID and verdict.kinds & first.kinds:
            smallest = tuple(fewer.faults), tuple(sorted(left_out))
        return verdict

    found = without_faults(replay, [removable[n] for n in sorted(removable)], replays_max=max(1, left // run.steps))
    needed = Needed(smallest[0], found.verdict, found.replays, found.minimal)
    return FewerFaults(about["seed"], steps, len(world.faults), needed, smallest[1])
