"""One broker of several: as the embedded one, at an address of its own, everything replicated.

A cluster is what its members were told, so all must be told the same: who they are, in which order, and its id.  With
three of them the loss of one is noticed within about 2 s (FACTS) and loses nothing that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from embedded.broker import FOLLOWING, Broker, render_properties

PORT = 9092
CONTROLLER_PORT = 9093
REPLICATION_MAX = 3
"""Copies of each of Kafka's own topics, where there are so many brokers."""


class Member(Broker):
    """Node ``node`` (from 1) of the cluster of ``hosts``, each of which is an address, or a name that brokers and
    clients resolve.

    ``advertised`` is what this broker tells the others and its clients, unless its own host and port.
    """

    heap = "448m"  # of the 768 MB that compose.yaml gives it: the rest is code, threads, and files that it maps
    # A container that was made anew has another address behind its name, and Java remembers names for 30 s.
    java_options = ("-Dsun.net.inetaddr.ttl=1", "-Dsun.net.inetaddr.negative.ttl=0")

    def __init__(
        self, directory: Path, jars: Path, hosts: Sequence[str], node: int, cluster_id: str, *,
        port: int = PORT, controller_port: int = CONTROLLER_PORT, name: str | None = None,
        advertised: str | None = None, log: Path | None = None,
    ) -> None:  # fmt: skip
        super().__init__(directory, jars, port, controller_port, log)
        self.hosts = tuple(hosts)
        self.node = node
        self.host = self.hosts[node - 1]
        self.name = name or self.host
        self._cluster_id = cluster_id
        self._advertised = advertised or self.bootstrap

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def properties(self, log_dir: Path) -> str:
        replicas = min(len(self.hosts), REPLICATION_MAX)
        voters = ",".join(f"{node}@{host}:{self.controller_port}" for node, host in enumerate(self.hosts, 1))
        common = render_properties(
            node=self.node, voters=voters, address=self.host, port=self.port, controller_port=self.controller_port,
            advertised=self._advertised, log_dir=log_dir, replicas=replicas, in_sync_min=replicas // 2 + 1,
        )  # fmt: skip
        return common + FOLLOWING

    def cluster_id(self) -> str:
        return self._cluster_id
