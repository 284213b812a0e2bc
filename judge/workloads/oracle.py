"""Timestamps of generic timelines, through the oracle's own interface: its laws (I3) are the specification."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from catalog_log.bootstrap import create_environment
from journal.names import TopicNames
from judge.workloads.api import Invocation, World
from judge.workloads.log_client import LogClient, Patience, replication_factor
from judge.workloads.outcome import outcome

TIMELINES = ("t0", "t1", "t2", "t3")
"""Few, so that many clients meet on each; more than one, since one barrier answers for all of them."""

WEIGHTS = {"read_ts": 5, "write_ts": 3, "apply_write": 2}


class OracleLaws:
    name = "oracle"
    clients = 8
    clients_quick = 6
    rate = 80.0
    rate_quick = 200.0

    def setup(self, world: World) -> None:
        create_environment(world.kafka, TopicNames(world.register_env), replication_factor(world.kafka))

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        names, weights = tuple(WEIGHTS), tuple(WEIGHTS.values())
        while True:
            (f,) = rng.choices(names, weights)
            yield Invocation(f, {"timeline": rng.choice(TIMELINES)})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("read_ts", {"timeline": timeline}) for timeline in TIMELINES]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        if unknown is not None and unknown.f == "read_ts":
            return []
        timeline = TIMELINES[0] if unknown is None else unknown.value["timeline"]
        return [Invocation("read_ts", {"timeline": timeline})]

    def open(self, world: World, worker: int, life: int) -> OracleClient:
        return OracleClient(world)


class OracleClient(LogClient):
    def __init__(self, world: World) -> None:
        super().__init__(world.kafka, world.register_env)
        self._written: dict[str, int] = {}
        """The newest timestamp written and not yet applied by this client, by timeline."""

    def prepare(self, invocation: Invocation) -> Invocation:
        """An ``apply_write`` with a timestamp that this client was given; a ``write_ts`` where it has none."""
        if invocation.f != "apply_write":
            return invocation
        timeline = invocation.value["timeline"]
        ts = self._written.pop(timeline, None)
        if ts is None:
            return Invocation("write_ts", {"timeline": timeline})
        return Invocation("apply_write", {"timeline": timeline, "ts": ts})

    def invoke(self, invocation: Invocation) -> int:
        oracle, patience = self.logs.oracle, Patience()
        timeline = invocation.value["timeline"]
        try:
            if invocation.f == "read_ts":
                return patience.result(oracle.read_ts(timeline))
            if invocation.f == "write_ts":
                self._written[timeline] = patience.result(oracle.write_ts(timeline))
                return self._written[timeline]
            patience.result(oracle.apply_write(timeline, invocation.value["ts"]))
            return invocation.value["ts"]
        except Exception as error:
            raise outcome(error, write=invocation.f != "read_ts") from error
