"""The smallest live system that shows a bug: a real broker and the two or three real processes that it takes.

Promises: a process started here is the product's own (``python -m …``), with a bug planted or without; what clients saw
is recorded as events before anybody judges; all processes are gone after the ``with`` block.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from catalog_log.bootstrap import create_environment
from embedded.child import Child, ChildSpec
from journal.api import Entry
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.reading import read_range
from judge import witness
from judge.history import FAIL, INFO, INVOKE, OK, Event, Op, operations
from judge.verdict import Anomaly
from judge.workloads.api import Client, Failed, Invocation, Unknown, Workload, World
from judge.workloads.log_client import LOGS

ROOT = Path(__file__).resolve().parents[2]

PROCESSES_APART = 1000
"""From one logical process of a worker to its next."""


class History:
    """Events in memory, of any number of threads."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = threading.Lock()

    def record(self, type: str, process: int, workload: str, f: str, value: Any, node: str = "",
               error: tuple[str, str] | None = None) -> None:  # fmt: skip
        with self._lock:
            self._events.append(Event(time.monotonic_ns(), process, type, workload, f, value, node, error))

    def do(self, process: int, workload: str, f: str, value: Any, call: Callable[[], Any], node: str = "") -> str:
        """Record the invocation, make the call, record what came of it; how it ended."""
        self.record(INVOKE, process, workload, f, value, node)
        try:
            result = call()
        except Failed as failed:
            self.record(FAIL, process, workload, f, None, node, (failed.code, str(failed)))
            return FAIL
        except Exception as unknown:
            code = unknown.code if isinstance(unknown, Unknown) else type(unknown).__name__
            self.record(INFO, process, workload, f, None, node, (code, str(unknown)))
            return INFO
        self.record(OK, process, workload, f, result, node)
        return OK

    def ops(self) -> list[Op]:
        with self._lock:
            return operations(self._events)


class Small(AbstractContextManager):
    """An environment of its own on a broker, and processes on it."""

    def __init__(self, kafka: str, env: str, scratch: Path, bug: str = "") -> None:
        self.kafka, self.names, self.bug = kafka, TopicNames(env), bug
        self.scratch = scratch
        self._children: dict[str, Child] = {}
        self.history = History()
        create_environment(kafka, self.names)

    def __exit__(self, *exc: object) -> None:
        LOGS.close()
        for child in self._children.values():
            if not child.exited.done():
                os.kill(child.pid, signal.SIGCONT)
        for child in self._children.values():
            child.stop()

    def start(self, name: str, module: str, *arguments: str) -> dict[str, Any]:
        """Start ``python -m module`` here, with the bug where it concerns it; what its ready line says."""
        return self.begin(name, module, *arguments).wait_ready()

    def begin(self, name: str, module: str, *arguments: str) -> Child:
        """As :meth:`start`, without waiting: controllers are ready only when their subscribers are."""
        planted = ["judge.planted", self.bug, "--"] if self.bug else []
        argv = [sys.executable, "-P", "-m", *planted, module, "--kafka", self.kafka, "--env", self.names.env,
                *arguments]  # fmt: skip
        child = self._children[name] = Child(ChildSpec(
            name=name, argv=argv, log=self.scratch / f"{name}.log", ready_timeout_s=120,
            env={"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}, cwd=self.scratch,
        ))  # fmt: skip
        return child

    def signal(self, name: str, signum: int) -> None:
        os.kill(self._children[name].pid, signum)

    def kill(self, name: str) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(name, signal.SIGKILL)
        self._children.pop(name).exited.result(timeout=20)

    def adapters(self, count: int) -> World:
        """Start that many; where they are."""
        nodes = [f"adapter-{n + 1}" for n in range(count)]
        starting: list[str] = []
        for node in nodes:
            address = self.start(node, "adapter", "--port", "0", "--no-ddl-topic")["address"]
            starting.append(f"postgresql://tidemark@{address}/tidemark")
        return World(self.kafka, self.names.env, tuple(starting), tuple(nodes), 0, self.names.env)

    def drive(self, workload: Workload, world: World, *, seed: int, workers: int, each: int,
              enough: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        """``each`` invocations by each of ``workers`` threads, or until ``enough()``; then the last reads."""
        with ThreadPoolExecutor(workers) as pool:
            working = [
                pool.submit(self._work, workload, world, random.Random(f"{seed}-{w}"), w, workers, each, enough)
                for w in range(workers)
            ]
        for each_worker in working:
            each_worker.result()

    def _work(self, workload: Workload, world: World, rng: random.Random, worker: int, workers: int, each: int,
              enough: Callable[[], bool]) -> None:  # fmt: skip
        life, client = 0, workload.open(world, worker, 0)
        stream = workload.invocations(rng, worker, workers)
        todo: Iterable[Invocation] = (next(stream) for _ in range(each))
        for part in (todo, workload.final(worker, workers)):
            for invocation in part:
                if part is todo and enough():
                    break
                if perform(self.history, workload.name, worker + life * PROCESSES_APART, client, invocation) == INFO:
                    client.close()
                    life += 1
                    client = workload.open(world, worker, life)
        client.close()

    def catalog_records(self) -> list[witness.CatalogRecord]:
        """The catalog's topic as it is now."""
        lines = witness.catalog_lines(entries_of(self.kafka, self.names.catalog))
        return [witness.catalog_record(line) for line in lines]


def entries_of(kafka: str, topic: str) -> list[Entry]:
    """What a topic holds now."""
    transport = KafkaTransport(kafka, topic)
    try:
        return [entry for batch in read_range(transport, *transport.bounds()) for entry in batch]
    finally:
        transport.close()


def perform(history: History, workload: str, process: int, client: Client, invocation: Invocation) -> str:
    prepare = getattr(client, "prepare", None)
    if prepare is not None:
        invocation = prepare(invocation)
    return history.do(process, workload, invocation.f, invocation.value, lambda: client.invoke(invocation), client.node)


def soon(look: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Until ``look()``, for what gives no event of its own."""
    deadline = time.monotonic() + timeout_s
    while not look():
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s"
        time.sleep(0.02)


def first_seen(ops: Sequence[Op], anomalies: Iterable[Anomaly]) -> str:
    """How soon the history held an anomaly: up to the end of the last operation of the earliest one."""
    by_index = {op.index: op for op in ops}
    begun = min(op.start for op in ops)
    ends = [max(by_index[i].end or by_index[i].start for i in a.ops) for a in anomalies if a.ops]
    if not ends:
        return "no operation of its own"
    at = min(ends)
    return f"{(at - begun) / 1e9:.1f} s, {sum(op.start <= at for op in ops)} operations"
