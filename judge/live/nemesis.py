"""What is done to the cluster, and when: a plan from a seed, and the thread that carries it out.

Promises: :func:`plan` is pure, the same seed gives the same plan; every kind occurs before any occurs twice, and so do
the targets of a kind; after each fault there is quiet, so that what was hurt is seen to recover.  The :class:`Nemesis`
heals what it began, whatever happens in between, before its thread ends.

Now and then two faults are in force at once: a process of the product ends while the network or the store is bad, and
has to come back in the midst of that.  Never two of what brokers or the network suffer: two copies of three must be in
sync for anybody to write, so with two brokers away there would be nothing to judge but the wait for one of them.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from journal.errors import TidemarkError
from judge.history import Fault
from judge.live.cluster import HEAL_LATE_S, FaultKind, Injected
from judge.live.network import BROKERS

BAD_NETWORK = frozenset({"isolate-broker", "cut-off-broker", "cut-link", "one-way", "loss", "slow-network"})
"""Kinds under which a process may end as well.  Not an adapter's isolation: its process could not come back in it."""

ENDS = ("kill", "restart")
"""Kinds that may come second: they heal by themselves, so nobody waits for one fault to heal the other."""

BAD_STORE = frozenset({"store-away", "store-full"})
"""Likewise: whoever seals or reads may end while its files are out of reach, and has to come back."""

RARE_S = 300.0
"""What is rare is done once in so long at the most: some twenty others come in between."""

PLANNED_SHARE = 0.5
"""Of the time that passes, what a plan counts: it knows how long faults are held, and not how long they take to heal,
which is about as long again."""

TOGETHER_EVERY = 3
"""Of the faults of the network and of the store: every so manieth comes with a second one."""


class Also(NamedTuple):
    """A second fault, begun ``after_s`` after the one it comes with, and healed after that one."""

    after_s: float
    kind: str
    target: str


class Step(NamedTuple):
    """One planned fault: begun ``at_s`` after the start (or later, where the one before took longer to heal)."""

    at_s: float
    kind: str
    target: str
    hold_s: float
    also: Also | None = None


@dataclass(frozen=True)
class Pace:
    """How densely faults follow each other."""

    first_s: float = 5.0
    """Before the first one: operations of a healthy cluster, to compare with."""
    quiet_s: tuple[float, float] = (4.0, 8.0)
    """Between two faults."""
    last_s: float = 10.0
    """Of the end, without a fault: unknown outcomes must settle within this after healing."""
    hold_share: float = 1.0
    """Of a kind's own bounds for holding, for short runs."""


QUICK = Pace(first_s=3.0, quiet_s=(1.0, 2.0), last_s=8.0, hold_share=0.6)


def plan(
    rng: random.Random,
    targets: Mapping[str, Sequence[str]],
    holds: Mapping[str, tuple[float, float]],
    duration_s: float,
    pace: Pace,
    rare: Mapping[str, Sequence[float]] | None = None,
) -> list[Step]:
    """Faults for ``duration_s``.  Where that is too short for one of each kind, there is still one of each: the run
    has to last longer then.  Kinds in ``rare`` come when they are due (:func:`evenly`), and no more often; where there
    are no others, they come as often as any."""
    kinds = {kind: list(names) for kind, names in targets.items() if names}
    if not kinds:
        return []
    rare = {kind: due for kind, due in (rare or {}).items() if kind in kinds}
    rare = {} if len(rare) == len(kinds) else rare
    usual = sorted(set(kinds) - set(rare))
    steps: list[Step] = []
    used: Counter[str] = Counter()
    hurt: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    ends = [(kind, name) for kind in ENDS for name in kinds.get(kind, ()) if not is_broker(name)]
    ended: Counter[tuple[str, str]] = Counter()
    at_s, bad = pace.first_s, 0
    while len(used) < len(kinds) or at_s < duration_s - pace.last_s:
        over = at_s >= duration_s - pace.last_s
        fewest = min(used[kind] for kind in usual)
        due = sorted(
            kind for kind, times in rare.items() if used[kind] < len(times) and (over or times[used[kind]] <= at_s)
        )
        kind = rng.choice(due or [kind for kind in usual if used[kind] == fewest])
        # Among a kind's least hurt targets, those that no other kind has hurt much either: all get their turn soon.
        load = {name: (hurt[kind][name], sum(of[name] for of in hurt.values())) for name in kinds[kind]}
        target = rng.choice(sorted(name for name in kinds[kind] if load[name] == min(load.values())))
        hold_s = rng.uniform(*holds[kind]) * pace.hold_share
        also = None
        bad += kind in BAD_NETWORK | BAD_STORE
        if ends and kind in BAD_NETWORK | BAD_STORE and bad % TOGETHER_EVERY == 0:
            second = rng.choice([each for each in ends if ended[each] == min(ended[each] for each in ends)])
            ended[second] += 1
            also = Also(round(hold_s * rng.uniform(0.2, 0.6), 3), *second)
        steps.append(Step(round(at_s, 3), kind, target, round(hold_s, 3), also))
        used[kind] += 1
        hurt[kind][target] += 1
        at_s += hold_s + rng.uniform(*pace.quiet_s)
    return steps


def evenly(times_max: Mapping[str, int], duration_s: float) -> dict[str, list[float]]:
    """When each of the rare kinds is due in a plan for ``duration_s``: no more often than once in ``RARE_S``."""
    times = {kind: max(1, min(most, int(duration_s / RARE_S))) for kind, most in times_max.items()}
    return {kind: [(n + 0.5) * PLANNED_SHARE * duration_s / count for n in range(count)]
            for kind, count in times.items()}  # fmt: skip


def is_broker(target: str) -> bool:
    """Whether ``target`` is a broker: the only one of layer 2, or one of the three of layer 3."""
    return target == "broker" or target in BROKERS


class _Begun(NamedTuple):
    """A fault that is in force."""

    start_ns: int
    kind: str
    target: str
    injected: Injected


class _NotBegun(Exception):
    """The product did not do what a fault begins with."""


class Nemesis:
    """Carries out a plan in a thread of its own.  ``faults`` is what was done; read it after :meth:`join`."""

    def __init__(
        self,
        kinds: Sequence[FaultKind],
        steps: Sequence[Step],
        rng: random.Random,
        duration_s: float,
        pace: Pace,
        on_change: Callable[[str], None] = lambda _text: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.faults: list[Fault] = []
        self.left: list[Step] = []
        """Planned, and not done because time was over."""
        self.error: Exception | None = None
        """Why it ended early: a fault that could not be begun, or that did not heal."""
        self.late: list[str] = []
        """What healed, and took longer for it than ``HEAL_LATE_S`` for each start of Spark's in it."""
        self.not_begun: list[str] = []
        """What was planned, and left out since somebody who is needed for it did not answer."""
        self._kinds = {kind.name: kind for kind in kinds}
        self._steps = list(steps)
        self._rng = rng
        self._duration_s = duration_s
        self._pace = pace
        self._on_change = on_change
        self._clock_ns = clock_ns
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nemesis", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more; what is in force is healed at once."""
        self._stopping.set()

    def join(self, timeout_s: float | None = None) -> bool:
        """Until nothing is in force any more; whether that is so."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def busy(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        began = time.monotonic()
        seen_kinds: set[str] = set()
        not_before = 0.0
        for step in self._steps:
            wait_s = max(began + step.at_s, not_before) - time.monotonic()
            if self._stopping.wait(max(0.0, wait_s)):
                return
            # A kind that has not been seen yet is worth more time; another of a kind that has been is not.
            over = time.monotonic() - began > self._duration_s - self._pace.last_s
            if over and step.kind in seen_kinds:
                self.left.append(step)
                continue
            try:
                self._do(step)
            except _NotBegun as error:
                # Nothing is in force, and the next one may do; that it was left out is told.
                self.not_begun.append(str(error))
                continue
            except Exception as error:
                self.error = error
                return
            seen_kinds.add(step.kind)
            not_before = time.monotonic() + self._pace.quiet_s[0]

    def _do(self, step: Step) -> None:
        words = f"{step.kind} {step.target}"
        self._on_change(words)
        # What is begun is healed in the order in which it began, each whatever became of the other: a process that was
        # ended under a bad network may come back only when that is healed.
        with ExitStack() as over:
            over.callback(self._on_change, "")
            begun: list[_Begun] = []
            over.callback(self._heal, begun)
            begun.append(self._begin(step.kind, step.target))
            if step.also is None:
                self._stopping.wait(step.hold_s)
            elif not self._stopping.wait(step.also.after_s):
                self._on_change(f"{words} and {step.also.kind} {step.also.target}")
                begun.append(self._begin(step.also.kind, step.also.target))
                self._stopping.wait(max(0.0, step.hold_s - step.also.after_s))

    def _begin(self, kind: str, target: str) -> _Begun:
        start_ns = self._clock_ns()
        try:
            return _Begun(start_ns, kind, target, self._kinds[kind].start(target, self._rng))
        except TidemarkError as error:
            raise _NotBegun(f"{kind} {target}: {error}") from error

    def _heal(self, begun: Sequence[_Begun]) -> None:
        with ExitStack() as healing:  # which does all of them, the last first, also where one raises
            for each in reversed(begun):
                healing.callback(self._heal_one, each)

    def _heal_one(self, fault: _Begun) -> None:
        healed, began = False, time.monotonic()
        try:
            fault.injected.heal()
            healed = True
        finally:
            # One that was not healed stands in the record as such: without an end.
            end_ns = self._clock_ns() if healed else None
            starts = getattr(self._kinds[fault.kind], "starts", 1)
            if healed and (took_s := time.monotonic() - began) > starts * HEAL_LATE_S:
                self.late.append(f"{fault.kind} {fault.target} healed after {took_s:.0f} s")
            self.faults.append(Fault(fault.start_ns, end_ns, fault.kind, fault.target, fault.injected.detail))
