"""Three Kafka brokers on made hosts: KRaft, each broker and controller in one JVM, everything replicated three times.

Promises: a broker's process id, ``kill``, ``pause`` and a new start on the same data; who leads a partition as the
cluster itself says; and :meth:`KafkaCluster.wait_in_sync`, after which every replica of every partition is in sync.

Their settings are the fleet's (``fleet/member.py``); what a user's own cluster needs is the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from embedded.child import Child, ChildSpec
from fleet.member import Member
from journal import clients
from journal.errors import TidemarkError
from judge.live.cluster import HEAL_TIMEOUT_S, HealFailed, StartAs
from judge.live.network import BROKERS, Network

REPLICATION = len(BROKERS)
LOOK_AGAIN_S = 0.1
MORE_URGENT = 5
"""Taken from the niceness of a broker, which has three times the weight of others by it.  In life it has a machine of
its own; beside seven processes that are started anew all the time, on two cores, the brokers' own controllers lost
their leader, for which they have 0.6 s, where nothing but the machine was slow."""

CLUSTER_ID = "TidemarkJudgeCluster00"


class KafkaCluster:
    """The three.  Use from one thread that is on a host of ``network`` (``network.inside``)."""

    def __init__(
        self,
        network: Network,
        scratch: Path,
        jars: Path,
        *,
        start_as: StartAs | None = None,
        directories: Mapping[str, Path] | None = None,
        advertised: Mapping[str, str] | None = None,
    ) -> None:
        """``directories``: where a broker's data is, unless in ``scratch/<host>``.  ``advertised``: the address that a
        broker tells its clients and the other brokers, unless its own."""
        self.network = network
        self._start_as = start_as
        self._children: dict[str, Child] = {}
        self._admins: dict[str, AdminClient] = {}
        self.brokers = {
            host: Member((directories or {}).get(host, scratch / host), jars, [network.address(b) for b in BROKERS],
                         node_id(host), CLUSTER_ID, name=host, advertised=(advertised or {}).get(host),
                         # Not beside the data: that disk may be full, and is gone when the run is over.
                         log=scratch / f"{host}.log")
            for host in BROKERS
        }  # fmt: skip

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start_all(self) -> None:
        """Start all three and return when they serve and know each other.  Raises ``Unavailable``, ``HealFailed``."""
        for host in self.brokers:
            self.begin(host)
        for host in self.brokers:
            self._children[host].wait_ready()
        self.wait_in_sync(HEAL_TIMEOUT_S)

    def begin(self, host: str) -> None:
        """Start the broker on ``host`` (which must not be running), without waiting."""
        self._children[host] = Child(self._spec(host))

    def pid(self, host: str) -> int:
        return self._children[host].pid

    def alive(self, host: str) -> bool:
        return host in self._children and not self._children[host].exited.done()

    def signal(self, host: str, signum: int) -> None:
        """Send ``signum`` to the broker's own process, if it lives."""
        if self.alive(host):
            with contextlib.suppress(ProcessLookupError, TidemarkError):
                os.kill(self.pid(host), signum)

    def kill(self, host: str) -> None:
        """End it by SIGKILL, stopped or not, and return when it is gone."""
        self.signal(host, signal.SIGKILL)
        self._children[host].exited.result(timeout=20)

    def start(self, host: str) -> None:
        """Start it if it does not run; returns when it serves.  Raises ``HealFailed``."""
        if not self.alive(host):
            self.begin(host)
        try:
            self._children[host].wait_ready()
        except TidemarkError as error:
            raise HealFailed(f"broker {host} does not start: {error} {error.detail or ''}") from None

    def leader(self, topic: str, partition: int = 0) -> str | None:
        """The host that leads, by the cluster's own word; ``None`` where nobody does now."""
        with contextlib.suppress(KafkaException, KeyError):
            found = self._metadata(2.0).topics[topic].partitions[partition].leader
            return next((host for node, host in _nodes() if node == found), None)
        return None

    def led_by(self, host: str, topics: Iterable[str]) -> list[str]:
        """Which of ``topics`` have a partition that ``host`` leads."""
        try:
            known = self._metadata(2.0).topics
        except KafkaException:
            return []
        node = node_id(host)
        return [t for t in topics if t in known and any(p.leader == node for p in known[t].partitions.values())]

    def wait_in_sync(self, timeout_s: float) -> None:
        """Until all three are members and every partition has all its replicas in sync.  Raises ``HealFailed``."""
        _until(self._out_of_sync, timeout_s)

    def stop(self) -> None:
        """End all three.  None of their data is wanted any more, so nobody waits for tidy goodbyes."""
        self._admins.clear()
        for host in self._children:
            self.signal(host, signal.SIGKILL)
        for child in self._children.values():
            child.stop()

    def _out_of_sync(self) -> str | None:
        """What is wrong by the word of any of the brokers: one that was cut off may not know yet."""
        for host, broker in self.brokers.items():
            if (wrong := self._out_of_sync_says(broker.bootstrap)) is not None:
                return f"{host}: {wrong}"
        return None

    def _out_of_sync_says(self, address: str) -> str | None:
        try:
            found = self._admin_at(address).list_topics(timeout=2.0)
        except KafkaException as error:
            return f"does not answer: {error.args[0].str()}"
        if len(found.brokers) < len(self.brokers):
            return f"only brokers {sorted(found.brokers)} are members"
        for name, topic in found.topics.items():
            for number, partition in topic.partitions.items():
                if partition.leader < 0 or len(partition.isrs) < len(partition.replicas):
                    return f"{name}-{number}: leader {partition.leader}, in sync {sorted(partition.isrs)}"
        return None

    def _metadata(self, timeout_s: float):  # noqa: ANN202 - confluent_kafka's ClusterMetadata
        return self._admin_at(self.bootstrap).list_topics(timeout=timeout_s)

    def _admin_at(self, address: str) -> AdminClient:
        if address not in self._admins:
            self._admins[address] = clients.make_admin(address)
        return self._admins[address]

    def _spec(self, host: str) -> ChildSpec:
        spec = self.brokers[host].prepare()
        argv, env = list(spec.argv), dict(spec.env)
        if self._start_as is not None:
            argv, env = self._start_as(host, argv, env)
        argv = ["nice", "-n", str(-MORE_URGENT), *argv]  # which goes on, with a warning, where that is not permitted
        # Nobody else keeps these: one that is not ready yet is waited for as for everything that is healed.
        return replace(spec, argv=self.network.command(host, argv), env=env, ready_timeout_s=HEAL_TIMEOUT_S)


def node_id(host: str) -> int:
    return BROKERS.index(host) + 1


def _nodes() -> Iterable[tuple[int, str]]:
    return enumerate(BROKERS, start=1)


def _until(wrong: Callable[[], str | None], timeout_s: float) -> None:
    """Ask ``wrong`` until it has nothing to say.  Kafka has no event for any of this."""
    deadline = time.monotonic() + timeout_s
    while (said := wrong()) is not None:
        if time.monotonic() > deadline:
            raise HealFailed(f"not healed within {timeout_s:g} s: {said}")
        time.sleep(LOOK_AGAIN_S)
