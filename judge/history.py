"""What clients did and saw: events as they were recorded, operations as they are judged.  Pure but for :func:`load`.

Promises: an event is what Jepsen calls one (``invoke``, ``ok``, ``fail``, ``info``); an operation is an invocation with
its completion, or without one.  ``fail`` means that it certainly did not happen, ``info`` that nobody knows: such an
operation stays open to the end of the history, and its logical process never acts again.

Times are nanoseconds of one monotonic clock, which all processes of a machine share; a shifted wall clock does not
touch them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

INVOKE, OK, FAIL, INFO = "invoke", "ok", "fail", "info"
UNKNOWN = INFO
"""The outcome of an operation whose completion says so, or that has none."""


class Event(NamedTuple):
    """One line of ``history.jsonl``."""

    time: int
    process: int
    """A logical process: it does one thing at a time and ends with its first unknown outcome."""
    type: str
    workload: str
    f: str
    value: Any
    """Of an invocation its arguments, of an ``ok`` its result, else ``None``; JSON values only."""
    node: str = ""
    """Which adapter (or log client) was asked."""
    error: tuple[str, str] | None = None
    """SQLSTATE (or an exception's name) and message."""

    def to_json(self) -> str:
        fields = self._asdict()
        return json.dumps({name: value for name, value in fields.items() if value not in (None, "")})

    @classmethod
    def from_json(cls, line: str) -> Event:
        fields = json.loads(line)
        error = fields.pop("error", None)
        fields.setdefault("value", None)
        return cls(**fields, error=None if error is None else tuple(error))


@dataclass(frozen=True, slots=True)
class Op:
    """An operation: ``[start, end]``, where ``end`` is ``None`` while the outcome is unknown."""

    index: int
    """Its place among the operations by start; anomalies name operations by it."""
    process: int
    workload: str
    f: str
    value: Any
    start: int
    end: int | None
    outcome: str
    """``ok``, ``fail`` or ``info``."""
    result: Any = None
    error: tuple[str, str] | None = None
    node: str = ""
    gave_up: int | None = field(default=None, compare=False)
    """When its client said that nobody knows.  For measuring and drawing only: it bounds nothing about the effect."""

    @property
    def ok(self) -> bool:
        return self.outcome == OK

    @property
    def failed(self) -> bool:
        return self.outcome == FAIL

    @property
    def unknown(self) -> bool:
        return self.outcome == INFO

    def before(self, other: Op) -> bool:
        """Whether this one had certainly ended when ``other`` began."""
        return self.end is not None and self.end < other.start


class MalformedHistory(ValueError):
    """Events that no client could have recorded: a harness bug, never a verdict."""


def operations(events: Iterable[Event]) -> list[Op]:
    """Pair invocations with completions, by start.  An ``info`` has no end: its effect may come at any later time.

    Raises ``MalformedHistory`` for a completion without an invocation and for a process that does two things at once
    or goes on after an unknown outcome.
    """
    begun: dict[int, tuple[int, Event]] = {}
    ended: set[int] = set()
    found: list[tuple[Event, Event | None]] = []
    for event in sorted(events, key=lambda event: event.time):
        if event.type == INVOKE:
            if event.process in begun or event.process in ended:
                raise MalformedHistory(f"process {event.process} begins {event.f} while or after it must not")
            begun[event.process] = (len(found), event)
            found.append((event, None))
        else:
            if event.process not in begun:
                raise MalformedHistory(f"process {event.process} ends {event.f}, which it never began")
            place, invocation = begun.pop(event.process)
            found[place] = (invocation, event)
            if event.type == INFO:
                ended.add(event.process)
    return [_operation(index, *pair) for index, pair in enumerate(found)]


def _operation(index: int, invocation: Event, completion: Event | None) -> Op:
    outcome = completion.type if completion else INFO
    return Op(
        index, invocation.process, invocation.workload, invocation.f, invocation.value, invocation.time,
        completion.time if completion and outcome != INFO else None, outcome,
        completion.value if completion else None, completion.error if completion else None, invocation.node,
        completion.time if completion and outcome == INFO else None,
    )  # fmt: skip


def of(ops: Iterable[Op], workload: str) -> list[Op]:
    """The operations of one workload, with the indexes they have in the whole history."""
    return [op for op in ops if op.workload == workload]


class Fault(NamedTuple):
    """Something that was done to the cluster: one line of ``faults.jsonl``."""

    start: int
    end: int | None
    """When it was healed (for a kill: when the process served again)."""
    kind: str
    """``kill``, ``pause``, ``isolate``…"""
    target: str
    detail: str = ""

    def to_json(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, line: str) -> Fault:
        return cls(**json.loads(line))


@dataclass(frozen=True)
class Run:
    """A recorded run's directory: ``run.json``, ``history.jsonl``, ``faults.jsonl``, ``log-*.jsonl``."""

    path: Path
    about: dict[str, Any]
    """Seed, commit, configuration, layer, start (wall clock, ISO)."""
    events: list[Event]
    faults: list[Fault]

    @property
    def ops(self) -> list[Op]:
        return operations(self.events)


def load(path: Path) -> Run:
    """Read a run's directory.  Raises ``FileNotFoundError`` and ``ValueError`` for what is not one."""
    return Run(
        path,
        json.loads((path / "run.json").read_text()),
        [Event.from_json(line) for line in _lines(path / "history.jsonl")],
        [Fault.from_json(line) for line in _lines(path / "faults.jsonl")],
    )


def _lines(path: Path) -> Iterator[str]:
    with path.open() as file:
        yield from file
