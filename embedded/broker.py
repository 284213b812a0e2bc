"""One Kafka broker on this machine: KRaft, broker and controller in one JVM, data in one directory.

Promises: formatted once, started on the same data again and again; what it acknowledged on a topic with
``flush.messages=1`` survives a power cut; it creates no topic that nobody asked for; after ``kill -9`` it serves again
3 to 4 s after its restart (FACTS: the session and quorum timeouts below; 13 s with the defaults).
It listens on the loopback address alone and promises nothing to other machines.
"""

from __future__ import annotations

import base64
import os
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from controllers.class_archive import use_archive
from embedded.child import ChildSpec
from embedded.java import find_java
from embedded.ports import HOST
from journal.errors import InvalidUsage, Unavailable

HEAP = "512m"
"""All of it from the beginning: a heap that grows does so by full collections, a second each on a busy machine, and a
controller that stands still for one lets everybody's sessions run out (seen: leaders lost for 7 s instead of 2).  What
is not used costs no memory."""

STARTED = "Kafka Server started"

_PROPERTIES = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{address}:{port},CONTROLLER://{address}:{controller_port}
advertised.listeners=PLAINTEXT://{advertised}
controller.listener.names=CONTROLLER
log.dirs={log_dir}
auto.create.topics.enable=false
unclean.leader.election.enable=false
default.replication.factor={replicas}
min.insync.replicas={in_sync_min}
offsets.topic.replication.factor={replicas}
offsets.topic.num.partitions=4
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr={in_sync_min}
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr={in_sync_min}
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# A consumer group's member that was killed is noticed after 2 s at the earliest (the default floor is 6 s).
group.min.session.timeout.ms=2000
num.network.threads=2
num.io.threads=4
background.threads=2
# The cleaner allocates its buffer at start: 128 MB by default, a quarter of this heap, for topics of kilobytes.
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.io.buffer.size=131072
"""

FAST_FAILOVER = """\
controller.quorum.election.timeout.ms=300
controller.quorum.fetch.timeout.ms=600
controller.quorum.election.backoff.max.ms=200
controller.quorum.request.timeout.ms=500
controller.quorum.retry.backoff.ms=20
metadata.log.max.record.bytes.between.snapshots=1048576
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=1000
"""
"""What makes a broker that is lost be noticed within about 2 s (FACTS), a single one's restart included.

A controller that was just started replays the metadata since its last snapshot before it does anything else, also where
it is elected meanwhile: 4 to 7 s for half an hour of DDL on two busy cores, which is how long nobody named leaders.  By
default a snapshot comes after 20 MB, here after about 700 topics.
"""

FOLLOWING = """\
num.replica.fetchers=1
replica.lag.time.max.ms=1000
replica.fetch.wait.max.ms=100
replica.socket.timeout.ms=800
replica.fetch.backoff.ms=50
request.timeout.ms=2000
"""
"""What only a broker among others has: how it follows those that lead, and when it counts as behind.

``request.timeout.ms`` is what a follower waits for an answer to a fetch (``replica.socket.timeout.ms`` is for
connecting only): by default, a dead connection to a leader leaves its partitions without followers for 30 s.
"""

_LOGGING = """\
Configuration:
  status: warn
  Appenders:
    Console:
      - name: OUT
        target: SYSTEM_OUT
        PatternLayout: {{pattern: "%m%n"}}
      - name: ERR
        target: SYSTEM_ERR
        PatternLayout: {{pattern: "%d{{ISO8601}} %p %m (%c)%n"}}
    RollingFile:
      - name: FILE
        fileName: "{log}"
        filePattern: "{log}.%i"
        PatternLayout: {{pattern: "%d{{ISO8601}} %p %m (%c)%n"}}
        Policies: {{SizeBasedTriggeringPolicy: {{size: 16 MB}}}}
        DefaultRolloverStrategy: {{max: "2"}}
  Loggers:
    Root:
      level: info
      AppenderRef:
        - ref: FILE
        - {{ref: ERR, level: error}}
    Logger:
      # Its one line "Kafka Server started" is the ready line.
      - name: kafka.server.KafkaRaftServer
        level: info
        AppenderRef: {{ref: OUT}}
      - {{name: org.apache.kafka.clients, level: warn}}
      - {{name: kafka.coordinator, level: warn}}
      # These say a dozen lines of each topic that is made or dropped, and of each partition that gets another leader.
      - {{name: org.apache.kafka.controller.ConfigurationControlManager, level: warn}}
      - {{name: org.apache.kafka.controller.ReplicationControlManager, level: warn}}
      - {{name: kafka.server.metadata.DynamicConfigPublisher, level: warn}}
      - {{name: state.change.logger, level: warn}}
      - {{name: org.apache.kafka.storage.internals.log, level: warn}}
      - {{name: kafka.log, level: warn}}
      - {{name: kafka.cluster.Partition, level: warn}}
"""


def render_properties(
    *,
    node: int,
    voters: str,
    address: str,
    port: int,
    controller_port: int,
    advertised: str,
    log_dir: Path,
    replicas: int,
    in_sync_min: int,
) -> str:
    """The text of ``server.properties`` of broker and controller ``node``, one of ``voters``, listening at ``address``.

    ``advertised`` is what it tells its clients.  Each of Kafka's own topics has ``replicas``, of which ``in_sync_min``
    must have a record before it is acknowledged; so has a topic that is made without saying.
    """
    settings = _PROPERTIES.format(
        node=node, voters=voters, address=address, port=port, controller_port=controller_port, advertised=advertised,
        log_dir=log_dir, replicas=replicas, in_sync_min=in_sync_min,
    )  # fmt: skip
    return settings + FAST_FAILOVER


class Broker:
    """A broker's files and command line.  ``port`` and ``controller_port`` are loopback ports, free until it starts."""

    name = "broker"
    heap = HEAP
    java_options: Sequence[str] = ()
    archive: Path | None = None
    """A class archive to start with (``embedded/archives.py``); one that does not fit is left aside without a word."""

    advertised: str | None = None
    """What clients hear of it, where they must go to it another way than to where it listens."""

    def __init__(self, directory: Path, jars: Path, port: int, controller_port: int, log: Path | None = None) -> None:
        self.directory = directory
        self.port = port
        self.controller_port = controller_port
        self.log = log or directory / "broker.log"
        self._classpath = str(jars / "*")

    @property
    def bootstrap(self) -> str:
        return self.advertised or f"{HOST}:{self.port}"

    def properties(self, log_dir: Path) -> str:
        """The text of ``server.properties``."""
        return render_properties(
            node=1, voters=f"1@{HOST}:{self.controller_port}", address=HOST, port=self.port,
            controller_port=self.controller_port, advertised=self.bootstrap, log_dir=log_dir, replicas=1, in_sync_min=1,
        )  # fmt: skip

    def cluster_id(self) -> str:
        """What a data directory is formatted with, once."""
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # A base64 id that begins with "-" would be read as an option.
        return "T" + made[1:]

    def _java(self, *arguments: str) -> list[str]:
        archive = use_archive(self.archive) if self.archive else []
        return [
            find_java(), f"-Xmx{self.heap}", f"-Xms{self.heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Xshare:auto", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true", *self.java_options, *archive,
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.yaml'}", "-cp", self._classpath, *arguments,
        ]  # fmt: skip

    def prepare(self) -> ChildSpec:
        """Write the settings, format the data directory where that has not been done, and say how to start it.

        Raises ``InvalidUsage`` where the directory cannot be written, ``Unavailable`` where formatting failed.
        """
        log_dir = self.directory / "log"
        settings = self.directory / "server.properties"
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
            self.log.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text(self.properties(log_dir))
            (self.directory / "log4j2.yaml").write_text(_LOGGING.format(log=self.log))
            if not os.access(log_dir, os.W_OK):
                raise PermissionError(f"{log_dir} cannot be written")
        except OSError as error:
            raise InvalidUsage(
                f"cannot write the broker's data: {error}", hint="choose another directory with --data"
            ) from error
        if not (log_dir / "meta.properties").exists():
            self._format(settings)
        return ChildSpec(
            name=self.name,
            argv=self._java("kafka.Kafka", str(settings)),
            log=self.log.with_suffix(".err"),
            ready=lambda line: {"bootstrap": self.bootstrap} if STARTED in line else None,
        )

    def _format(self, settings: Path) -> None:
        command = self._java("kafka.tools.StorageTool", "format", "-t", self.cluster_id(), "-c", str(settings))
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise Unavailable("could not format the broker's data directory", detail="\n".join(lines[-6:]))
