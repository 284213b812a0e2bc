"""Run a world and judge it.

    run = simulate(seed, steps)
    verdicts = judge(run)

A seed and the arguments replay a run, event for event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import catalog_log.log
import oracle.fold
from adapter.execute import lines, placing
from controllers import at_work
from controllers.storage import mover
from journal.api import Entry
from judge.history import Event, Fault
from judge.simulation import bugs as planted
from judge.simulation import kafka, planning
from judge.simulation.clients import EVERYDAY
from judge.simulation.clock import virtual
from judge.simulation.world import FaultPlan, Violation, World


@dataclass(frozen=True)
class SimulatedRun:
    """What a run left behind."""

    seed: int
    steps: int
    bugs: frozenset[str]
    workloads: tuple[str, ...]
    events: list[Event]
    faults: list[Fault]
    violations: list[Violation]
    logs: dict[str, list[Entry]]
    """The raw records of ``catalog``, ``oracle`` and ``register-catalog``, ``register-oracle``, all of them."""
    stats: dict[str, Any]


def simulate(
    seed: int,
    steps: int,
    *,
    faults: FaultPlan = FaultPlan(),  # noqa: B008 - immutable
    bugs: frozenset[str] = frozenset(),
    workloads: Sequence[str] = EVERYDAY,
    progress: Callable[[int], None] | None = None,
    partitions: int = 0,
) -> SimulatedRun:
    """Run the world of ``seed`` for ``steps`` events with faults, then heal it and let it come to rest.  Data topics
    have ``partitions``, or as many as the seed chooses."""
    bugs = frozenset(bugs)
    world = World(seed, faults, bugs, tuple(workloads), partitions=partitions)
    started = time.perf_counter()
    with inside(world):
        world.run(steps, progress)
    return collected(world, time.perf_counter() - started)


def inside(world: World) -> AbstractContextManager[None]:
    """Where the product's modules live in ``world``, with the bugs that it asks for."""
    readers = [mock.patch.object(module, "read_range", kafka.read_range) for module in (catalog_log.log, at_work)]
    # So little may be carried here that all ways of a small write are gone: carried, moved, refused, written.
    bounds = [
        mock.patch.object(module, name, value)
        for module, name, value in (
            (placing, "HELD_BYTES_GOAL", 6_000), (oracle.fold, "HELD_BYTES_MAX", 6_400),
            (mover, "COLLECTION_BYTES", 1_500), (mover, "HELD_BYTES_LOW", 3_000),
        )
    ]  # fmt: skip
    pauses = mock.patch.object(lines, "random", Pauses(world))
    patches = [*readers, *planning.patches(), *bounds, pauses]
    return virtual(world.schedule, *patches, *planted.patches(world.bugs, world))


class Pauses:
    """What stands for the module ``random`` where a statement waits before it is made anew, and counts that."""

    def __init__(self, world: World) -> None:
        self._world = world

    def uniform(self, low: float, high: float) -> float:
        task = asyncio.current_task()
        self._world.tries[task] = self._world.tries.get(task, 1) + 1
        return self._world.rng.uniform(low, high)


def collected(world: World, seconds: float = 0.0) -> SimulatedRun:
    """What ``world`` leaves behind."""
    logs = {
        "catalog": "env.catalog", "oracle": "env.oracle",
        "register-catalog": "register.catalog", "register-oracle": "register.oracle",
    }  # fmt: skip
    return SimulatedRun(
        world.seed, world.schedule.steps, world.bugs, world.workloads, world.events, world.faults, world.violations,
        {name: [Entry(n, v) for n, v in enumerate(world.topic(topic).values)] for name, topic in logs.items()},
        {
            "seconds": seconds,
            "virtual_s": world.schedule.now / 1e9,
            "kills": world.kills,
            "peeks": world.peeks,
            "elections": sum(topic.elections for topic in world.topics.values()),
            "stops": len(world.stops),
            "stopped": world.stops[:20],
            "admitted": len(world.truth),
            "partitions": world.partitions,
            "tries_max": max(world.tries.values(), default=1),
        },
    )  # fmt: skip
