"""What the runner asks of a system under test, however many machines it pretends to be.  Pure: only words.

Two things keep these promises: ``live/stack.py`` (one broker, ``tidemark up``'s own processes) and
``live/three_brokers.py`` (network namespaces).  The runner knows no more of either than this, so what is recorded,
which faults are planned and how they are judged is the same for both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from embedded.stack import COMPUTES
from judge.workloads.api import World

HEAL_LATE_S = 180.0
"""A heal that took longer is told, and makes the run unknown: what a supervisor gives Spark for its start.  All here is
back within 10 to 30 s on an idle machine of two cores; with a load of 22, Spark needed 139 s, and on a starved one a
broker whose disk had been full more than the 60 s that it was given."""

HEAL_TIMEOUT_S = 600.0
"""How long a heal may wait until what was hurt serves again: several times what the most starved machine took, so that
a slow one is told as such and does not break the run off.  Beyond it, it does not come back, and that is a finding."""


class HealFailed(Exception):
    """Something did not serve again in time.  That is a finding, not an excuse: the run ends and says so."""


class Injected(NamedTuple):
    """A fault that is in force."""

    heal: Callable[[], None]
    """Undo it and wait (at most ``HEAL_TIMEOUT_S``) until what was hurt serves again; raises ``HealFailed``.  Must be
    safe to call while the cluster is being stopped, and to call twice."""
    detail: str = ""
    """For people: pid, percentages, which link."""


class FaultKind(Protocol):
    """One way to hurt the cluster.  Used from one thread."""

    name: str
    """``kill``, ``pause``, ``restart``, ``isolate``…: what ``--fault`` names."""
    hold_s: tuple[float, float]
    """Between which bounds a fault of this kind is held before it is healed; (0, 0) where it heals by itself."""

    # Perhaps also ``times_max``: how often it is done in a run at the most (:func:`times_max`); ``starts``: how many
    # starts of Spark's its heal has to wait for, of which each may take ``HEAL_LATE_S``; 1 otherwise.

    def targets(self) -> Sequence[str]:
        """What it can be done to: the same for the whole run."""

    def start(self, target: str, rng: random.Random) -> Injected:
        """Begin it.  Where this raises, nothing is (left) in force."""


class Cluster(Protocol):
    """A started system under test."""

    layer: int
    world: World
    """Where it is, as workers see it from where :meth:`client_command` puts them."""
    faults: Sequence[FaultKind]

    def client_command(self, number: int, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        """How to start client process ``number`` (workers: 0, 1, …; the observer: -1) where clients belong, in another
        network namespace for instance.  The command must replace itself (exec): its pid is the client's."""

    def wait_serving(self, timeout_s: float) -> None:
        """Until every process serves.  Raises ``HealFailed`` naming one that does not."""

    def describe(self) -> dict[str, Any]:
        """What it is made of, for ``run.json``; JSON values."""


@dataclass(frozen=True)
class ClusterSettings:
    """What both kinds of cluster are made from."""

    scratch: Path
    """An empty directory for data and logs."""
    env: str = "judge"
    adapters: int = 3
    seed: int = 0
    bug: str = ""
    """A planted bug to start the product's Python processes with; see ``judge/planted``."""
    trap: bool = False
    """Whether the compute controller has the trap that the fault ``poison`` needs (``judge/live/trap.py``)."""
    partitions: int = 1
    """Of each collection's topic."""
    stand_by: bool = False
    """Whether a second compute controller stands by."""


Progress = Callable[[str], None]
"""Told a line for people now and then; may be called from any thread."""

OpenCluster = Callable[[ClusterSettings, Progress], AbstractContextManager[Cluster]]
"""``stack.one_broker`` and ``three_brokers.three_brokers``: a started cluster; all of it is gone after the block.
Raises ``journal.errors.InvalidUsage`` with one clear line where this machine cannot carry it (no right to make
namespaces)."""

StartAs = Callable[[str, list[str], dict[str, str]], tuple[list[str], dict[str, str]]]
"""``embedded.stack.Settings.start_as``: a process's name, command and added environment, to what is really started."""


def chained(*hooks: StartAs | None) -> StartAs:
    """Apply hooks in order: first the planted bug, then the shifted clock, then the namespace around both."""

    def start_as(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        for hook in hooks:
            if hook is not None:
                argv, env = hook(name, argv, env)
        return argv, env

    return start_as


def planted(bug: str) -> StartAs | None:
    """The hook that starts Python processes with a planted bug: ``-m module …`` becomes ``-m judge.planted BUG --
    module …``.  Anything else (the broker's JVM) is left as it is."""
    if not bug:
        return None

    def start_as(_name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        if "-m" not in argv:
            return argv, env
        at = argv.index("-m")
        return [*argv[: at + 1], "judge.planted", bug, "--", *argv[at + 1 :]], env

    return start_as


def trapped(trap: bool) -> StartAs | None:
    """The hook that starts the compute controller with its trap; as :func:`planted`, which comes before it."""
    if not trap:
        return None

    def start_as(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        if name not in COMPUTES:
            return argv, env
        at = argv.index("-m")
        return [*argv[: at + 1], "judge.live.trap", *argv[at + 1 :]], env

    return start_as


SEALING = ("--seal-rows", "500", "--carried", "20000", "--retain", "60", "--grace", "20")
"""The storage controller's: rows of a minute ago go to files, small collections share some, topics are cut and files
merged within a run of some minutes, where it would be hours otherwise.  A minute is longer than any fault but one
lasts, so hardly a statement meets a snapshot that is too old; twenty seconds are shorter than many, so some readers
find gone what they began to read."""


def sealing_soon(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The hook that has settled rows leave their topics while somebody looks."""
    return ([*argv, *SEALING] if name == "storage" else argv), env


def times_max(faults: Sequence[FaultKind]) -> Mapping[str, int]:
    """By kind, how often it is done in a run at the most; nothing of those that are done as often as all others."""
    return {fault.name: fault.times_max for fault in faults if getattr(fault, "times_max", None)}


def targets_by_kind(faults: Sequence[FaultKind]) -> Mapping[str, Sequence[str]]:
    return {fault.name: list(fault.targets()) for fault in faults}
