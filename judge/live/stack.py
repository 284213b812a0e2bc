"""One broker and real processes: ``tidemark up``'s own stack, with several adapters, to be hurt and judged.

Promises: the processes are the product's own, started and kept by the product's own supervisor; only a planted bug
changes how they are started.  Nothing of it is left after the block.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from embedded.layout import Step
from embedded.ports import consecutive_ports, free_ports
from embedded.stack import BACK, Settings, Stack, running
from journal.errors import InvalidUsage
from judge.live.calamities import Day, PoisonView
from judge.live.cluster import (
    Cluster,
    ClusterSettings,
    FaultKind,
    HealFailed,
    Progress,
    StartAs,
    chained,
    planted,
    sealing_soon,
    trapped,
)
from judge.live.process_faults import ANSWER_TIMEOUT_S, LOOK_AGAIN_S, Lives, process_faults
from judge.live.stores import StoreAway
from judge.workloads.api import World


class OneBroker:
    """A :class:`~judge.live.cluster.Cluster` on a started stack."""

    layer = 2

    def __init__(self, stack: Stack, settings: ClusterSettings, lives: Lives) -> None:
        self.stack = stack
        self.lives = lives
        adapters = range(stack.settings.adapters)
        self.world = World(
            kafka=stack.kafka,
            env=stack.settings.env,
            dsns=tuple(stack.dsn(number) for number in adapters),
            nodes=tuple(f"adapter-{number + 1}" for number in adapters),
            seed=settings.seed,
            register_env=f"{stack.settings.env}-reg",
        )
        self._bug = settings.bug
        self._names = sorted(stack.supervisor.pids())
        self._dsns = dict(zip(self.world.nodes, self.world.dsns, strict=True))
        ours = [name for name in self._names if name != "broker"]
        self.faults: Sequence[FaultKind] = [
            *process_faults(lives, self._names, self.wait_answer),
            Day(self.world, lives, ours, self.wait_answer),
            StoreAway(stack.settings.data / "store", self.wait_answer),
            *([PoisonView(self.world, self.wait_answer)] if settings.trap else ()),
        ]  # fmt: skip

    def client_command(self, number: int, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        # The observer sees what is there, not what a bug makes of it.
        hook = planted(self._bug) if number >= 0 else None
        return chained(hook)(f"client-{number}", argv, env)

    def wait_serving(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for name in self._names:
            self.wait_answer(name, max(LOOK_AGAIN_S, deadline - time.monotonic()))

    def wait_answer(self, name: str, timeout_s: float) -> None:
        """Until ``name`` runs and, being an adapter, answers.  Raises ``HealFailed``."""
        deadline = time.monotonic() + timeout_s
        while not self._answers(name):
            if self.stack.supervisor.failed.done():
                raise HealFailed(f"given up: {self.stack.supervisor.failed.result()}")
            if time.monotonic() > deadline:
                raise HealFailed(f"{name} did not answer within {timeout_s:g} s")
            time.sleep(LOOK_AGAIN_S)

    def _answers(self, name: str) -> bool:
        if name not in self.stack.supervisor.pids():
            return False
        return name not in self._dsns or adapter_answers(self._dsns[name])

    def describe(self) -> dict[str, Any]:
        return {"brokers": 1, "adapters": self.stack.settings.adapters, "processes": self._names, "bug": self._bug}


def adapter_answers(dsn: str) -> bool:
    """Whether an adapter answers a statement that needs nobody else."""
    try:
        with psycopg.connect(dsn, autocommit=True, connect_timeout=int(ANSWER_TIMEOUT_S)) as connection:
            return connection.execute("SELECT 1").fetchall() == [(1,)]
    except psycopg.Error:
        return False


@contextmanager
def one_broker(settings: ClusterSettings, progress: Progress) -> Iterator[Cluster]:
    """A started stack on free ports of this machine's loopback."""
    lives = Lives(lambda: stack.supervisor.pids())

    def on_step(step: Step) -> None:
        if step.state == "note" and step.detail in BACK:
            lives.serves(step.name)
        if step.state in ("done", "failed", "note"):
            progress(f"{step.name} {step.detail}".rstrip())

    with ExitStack() as planting:
        chosen = Settings(
            data=settings.scratch / "stack", env=settings.env, adapters=settings.adapters,
            port=consecutive_ports(settings.adapters), broker_port=free_ports(1)[0], partitions=settings.partitions,
            stand_by=settings.stand_by,
            start_as=chained(
                planted(settings.bug), trapped(settings.trap), sealing_soon, plant_at_broker(settings.bug, planting)
            ),
        )  # fmt: skip
        with running(chosen, on_step) as stack:
            stack.await_stand_by()  # all are there to be hurt
            yield OneBroker(stack, settings, lives)


def plant_at_broker(bug: str, planting: ExitStack) -> StartAs | None:
    """Plant what concerns whoever makes topics and starts brokers: this process, until ``planting`` ends, and the
    broker's settings."""
    if not bug:
        return None
    from judge.planted.registry import BROKER, chosen

    try:
        bugs = chosen(bug)
    except ValueError as error:
        raise InvalidUsage(str(error)) from None
    overrides: list[str] = []
    for each in bugs:
        if each.brokers > 1:
            raise InvalidUsage(f"the bug {each.name} needs {each.brokers} brokers", hint="run it with --layer 3")
        if BROKER in each.processes:
            planting.enter_context(each.apply())
        for name, value in each.broker_settings.items():
            overrides += ["--override", f"{name}={value}"]

    def start_as(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        return ([*argv, *overrides], env) if name == "broker" else (argv, env)

    return start_as
