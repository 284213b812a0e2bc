"""Linearizability of a history by itself, for any sequential model: Wing and Gong's search with Lowe's memory.  Pure.

Promises: ``valid`` iff some order of the operations explains every answer, keeps real time, and leaves out unknown
operations or puts them anywhere after their start.  The search is bounded by steps of the model; where they run out
the answer is ``unknown``, never ``valid``.

The history is gone through once.  What is remembered at any time are the *configurations* that are possible then: a
state, and which of the operations under way have taken effect.  An operation that ends must have taken effect in each;
a configuration in which it has not is continued by operations under way until it has, in every way there is, and dies
if there is none.  An operation that only looks takes effect as soon as it may: that never harms another, and keeps
concurrent reads from multiplying.  (One that merely happens to change nothing may not: it may be needed later.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from judge.checkers.register import WINDOW_OPS, State, state_of, windows
from judge.history import Op
from judge.verdict import INVALID, UNDECIDED, VALID, Anomaly, Verdict, judged, undecided
from judge.witness import CatalogRecord

STEPS_MAX = 2_000_000
"""Steps of one search: some ten seconds.  A healthy register takes about two an operation."""

FOREVER = float("inf")


class Model(Protocol):
    """What operations do, one at a time.  States are hashable and compared by value."""

    def step(self, state: Any, op: Op) -> Hashable | None:
        """The state after ``op`` with the result it had (any result, if nobody knows), ``None`` if that cannot be."""

    def looks(self, op: Op) -> bool:
        """Whether ``op`` changes no state at all."""

    def hopeless(self, state: Any, op: Op) -> bool:
        """Whether ``op`` can take effect in no state that ever follows ``state``.  ``False`` is always right."""


class Answer(NamedTuple):
    valid: str
    steps: int
    stuck: Op | None = None
    """The first operation that could not have ended as it did."""
    states: tuple[Any, ...] = ()
    """The states that were possible when it had to take effect."""
    beside: tuple[int, ...] = ()
    """What was under way at that time."""


class _OutOfSteps(Exception):
    pass


class _Search:
    def __init__(self, model: Model, initial: Hashable, steps_max: int) -> None:
        self.model = model
        self.steps_max = steps_max
        self.steps = 0
        self.open: dict[int, Op] = {}
        """Operations under way, by place in the history (an index may be missing in windows)."""
        self.configurations: set[tuple[Hashable, frozenset[int]]] = {(initial, frozenset())}

    def step(self, state: Hashable, op: Op) -> Hashable | None:
        self.steps += 1
        if self.steps > self.steps_max:
            raise _OutOfSteps
        return self.model.step(state, op)

    def begin(self, number: int, op: Op) -> None:
        self.open[number] = op
        if self.model.looks(op):
            self.configurations = {
                (state, done | {number}) if self.step(state, op) is not None else (state, done)
                for state, done in self.configurations
            }

    def end(self, number: int) -> bool:
        """Whether the operation can have ended now."""
        found: set[tuple[Hashable, frozenset[int]]] = set()
        seen = set(self.configurations)
        todo = list(self.configurations)
        while todo:
            state, done = todo.pop()
            if number in done:
                found.add((state, done - {number}))
                continue
            for other, op in self.open.items():
                if other in done or self.model.looks(op):
                    continue  # what looks had its turn in `_settle`
                after = self.step(state, op)
                if after is None:
                    continue
                further = self._settle(after, done | {other})
                if further not in seen:
                    seen.add(further)
                    todo.append(further)
        if not found:
            return False
        del self.open[number]
        if found != self.configurations:
            self.configurations = found
            self._forget()
        return True

    def _settle(self, state: Hashable, done: frozenset[int]) -> tuple[Hashable, frozenset[int]]:
        """The configuration in which everything that only looks, and may look now, has done so."""
        looked = [n for n, op in self.open.items()
                  if n not in done and self.model.looks(op) and self.step(state, op) is not None]  # fmt: skip
        return state, done.union(looked) if looked else done

    def _forget(self) -> None:
        """What is unknown and, in each configuration, has taken effect or never can, is of no concern any more."""
        for number in [number for number, op in self.open.items() if op.unknown]:
            op = self.open[number]
            if all(number in done or self.model.hopeless(state, op) for state, done in self.configurations):
                del self.open[number]
                self.configurations = {(state, done - {number}) for state, done in self.configurations}


def linearizable(ops: Iterable[Op], model: Model, initial: Hashable, steps_max: int = STEPS_MAX) -> Answer:
    """Whether ``ops`` are linearizable from ``initial``.  Failed ones did not happen and are left out; an ok one
    without an end (``register.windows`` knows such) happened at some time after its start."""
    search = _Search(model, initial, steps_max)
    happened = [op for op in ops if not op.failed]
    # At equal times beginnings come first: such operations overlap.
    times = [(op.start, 0, n) for n, op in enumerate(happened)]
    times += [(FOREVER if op.end is None else op.end, 1, n) for n, op in enumerate(happened) if not op.unknown]
    try:
        for _, ends, number in sorted(times):
            if not ends:
                search.begin(number, happened[number])
            elif not search.end(number):
                return Answer(INVALID, search.steps, happened[number],
                              tuple({state: None for state, _ in search.configurations}),
                              tuple(op.index for op in search.open.values()))  # fmt: skip
    except _OutOfSteps:
        return Answer(UNDECIDED, search.steps)
    return Answer(VALID, search.steps)


class Register:
    """The model of the compare-and-append register; its state is a ``register.State``."""

    def step(self, state: State, op: Op) -> State | None:
        if op.f == "read":
            return state if not op.ok or state_of(op) == state else None
        if state.upper != op.value["expected"] or op.value["new"] <= state.upper:
            return None
        if op.ok and op.result["upper"] != op.value["new"]:
            return None
        return State(op.value["new"], state.token if op.value["token"] is None else op.value["token"])

    def looks(self, op: Op) -> bool:
        return op.f == "read"

    def hopeless(self, state: State, op: Op) -> bool:
        return op.f == "cas" and op.value["expected"] < state.upper


REGISTER = Register()


def check_register_windows(
    ops: Iterable[Op],
    records: Sequence[CatalogRecord],
    ops_max: int = WINDOW_OPS,
    steps_max: int = STEPS_MAX,
) -> Verdict:
    """Judge the ``register`` operations window by window (``register.windows``); ``steps_max`` is for all together."""
    name = "register-wgl"
    found, left, skipped = [], steps_max, 0
    cut = windows(ops, records, ops_max)
    for window in cut:
        answer = linearizable(window.ops, REGISTER, window.state, left)
        left -= answer.steps
        if answer.valid == INVALID:
            stuck = answer.stuck
            states = ", ".join(sorted(map(str, answer.states)))
            found.append(Anomaly("not-linearizable", f"no order of the operations explains #{stuck.index} "
                                 f"{stuck.f} {stuck.value or ''} = {stuck.result}; possible then: {states}",
                                 tuple(sorted({index for index in answer.beside if index >= 0}))))  # fmt: skip
        elif answer.valid == UNDECIDED:
            skipped += 1
    counts = {"ops": sum(len(window.ops) for window in cut), "windows": len(cut), "steps": steps_max - left}
    if skipped and not found:
        return undecided(name, f"{skipped} of {len(cut)} windows were not finished within {steps_max} steps", **counts)
    return judged(name, found, **counts)
