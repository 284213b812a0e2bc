"""All processes of one environment on this machine, started in the right order and as parallel as that order allows.

    compute: Spark (takes longest) ─► waits for the environment ┐
    broker ─► environment's topics ─┬─► storage                  ├─► ready
                                    ├─► subscribers, one each    │
                                    └─► adapters                 ┘

    ready ─► a second compute that stands by, where one is asked for

Nothing here is needed by the processes themselves: they meet only on Kafka, so each may be killed and started again,
here or on another machine.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from catalog_log.bootstrap import create_environment
from collection.topic_keeper import PARTITIONS
from controllers.class_archive import ARCHIVE_ENV
from controllers.commands import STORAGE, compute
from controllers.spark_masters import check_store, in_this_process
from embedded.archives import BROKER, SPARK, find_archive
from embedded.broker import Broker
from embedded.child import ChildSpec
from embedded.data_dir import DataDir
from embedded.jars import ensure_jars
from embedded.java import find_java
from embedded.layout import JARS, ROOT, Step
from embedded.ports import HOST, free_ports, is_free, require_free
from embedded.supervisor import Event, Supervisor
from journal.clients import make_admin, reach
from journal.doors import PASSWORD_FILE, SQL_HINT, check_address, password_from
from journal.errors import InvalidUsage, TidemarkError, Unavailable
from journal.names import TopicNames
from segments.store import open_store

BROKER_PORT = 9092
CLUSTER = "default"
COMPUTES = COMPUTE, STAND_BY = "compute", "compute-2"
"""What the processes are called of which one serves the cluster."""
BACK = ("serves again", "stands by")
"""What is told of one that came back."""
StartAs = Callable[[str, list[str], dict[str, str]], tuple[list[str], dict[str, str]]]
START_TIMEOUT_S = 180.0
"""Spark needs 6 to 12 s on an idle machine (FACTS); a loaded one of two cores has been seen to take a minute."""


@dataclass(frozen=True)
class Settings:
    """What to run and where.  ``kafka`` names a cluster of the user's own; then no broker is started."""

    data: Path
    env: str = "tidemark"
    adapters: int = 1
    host: str = HOST
    port: int = 6875
    broker_port: int | None = None
    """``None``: 9092, or any free one where that is taken."""
    kafka: str | None = None
    spark_master: str | None = None
    webhook_port: int | None = None
    """Of the first adapter, the others' follow; ``None``: no rows over HTTP."""
    store: str | None = None
    """Where settled rows go; ``None``: into the data directory, or nowhere on a cluster of the user's own, where others
    may belong to the environment who do not see this machine's files."""
    partitions: int = PARTITIONS
    """Of a collection's topic that is made."""
    stand_by: bool = False
    """Run a second compute controller, which takes over where the first one is gone."""
    fresh: bool = False
    password_file: Path | None = None
    """What adapters ask for; ``None``: what the environment's variables say, or nothing."""
    insecure: bool = False
    """Listen also where other machines reach it, without a password."""
    jars: Path = JARS
    start_as: StartAs | None = None
    """What a process is really started as: from its name, its command and what is added to our environment, to the
    command and the added environment to use.  Called for every life of every process, the broker's too.  For those who
    run a stack under conditions of their own: in another network namespace, listening on another address, under a
    preloaded library.  The command must become the process (exec), or it cannot be told from its wrapper."""

    def check(self) -> None:
        """Raises ``InvalidUsage`` for what cannot work, before anything is touched."""
        TopicNames(self.env)
        if self.store is not None:
            open_store(self.store, self.env)
        check_store(self.spark_master, self.store, self.data)
        if self.stand_by and self.spark_master is not None and not in_this_process(self.spark_master):
            raise InvalidUsage(
                "nobody can stand by where executors are elsewhere: a master gives them all to who serves",
                hint="leave out --stand-by or --spark-master",
            )
        if not 1 <= self.adapters <= 64:
            raise InvalidUsage(f"{self.adapters} adapters cannot be run", hint="--adapters takes a number from 1 to 64")
        check_address(self.host, password_from(self.password_file), self.insecure, SQL_HINT)
        for port in range(self.port, self.port + self.adapters):
            require_free(port, "--port", self.host)
        if self.webhook_port is not None:
            for port in range(self.webhook_port, self.webhook_port + self.adapters):
                require_free(port, "--webhook-port", self.host)
        if self.kafka is None and self.broker_port is not None:
            require_free(self.broker_port, "--broker-port")
        find_java()


class Stack:
    """One environment's processes.  Use as ``with running(settings, …) as stack``."""

    def __init__(self, settings: Settings, progress: Callable[[Step], None] = lambda _step: None) -> None:
        settings.check()
        self.settings = settings
        self.names = TopicNames(settings.env)
        self._progress = progress
        self._data = DataDir(settings.data, fresh=settings.fresh and settings.kafka is None)
        self.supervisor = Supervisor(self._on_event)
        self._run_lock = threading.Lock()
        self._serving = False
        self.standing_by: Future[dict] | None = None
        """Where somebody is asked to stand by, once all serves: what the first to do so says (no earlier than
        ``controllers.compute.controller.STANDS_BY_S``)."""
        self.kafka = settings.kafka or ""

    @property
    def ports(self) -> list[int]:
        return list(range(self.settings.port, self.settings.port + self.settings.adapters))

    def dsn(self, adapter: int = 0) -> str:
        """A libpq connection string for an adapter, with its password."""
        password = password_from(self.settings.password_file)
        who = "tidemark" if password is None else f"tidemark:{quote(password, safe='')}"
        return f"postgresql://{who}@{self.settings.host}:{self.ports[adapter]}/tidemark"

    def start(self) -> None:
        """Start everything and return when all of it serves.  Raises what the first failing process said."""
        specs = self._specs()
        waiting = {}
        if not self.settings.kafka:
            broker = self._plan_broker()
            # Spark takes longest and needs no broker at first: it does not wait for one.
            name, make = next(specs)
            waiting[name] = self.supervisor.start(name, make)
            self._start_broker(broker)
        self._step("environment", self._create_environment)
        waiting |= {name: self.supervisor.start(name, make) for name, make in specs}
        for name in waiting:
            self._progress(Step(name, "started"))
        for name, ready in waiting.items():
            ready.add_done_callback(lambda done, name=name: self._progress(_outcome(name, done)))
        done, late = wait(waiting.values(), timeout=START_TIMEOUT_S, return_when=FIRST_EXCEPTION)
        for ready in done:
            ready.result()
        if late:
            names = ", ".join(name for name, ready in waiting.items() if ready in late)
            raise Unavailable(f"{names} not ready within {START_TIMEOUT_S:.0f} s", hint=f"see {self._data.logs}")
        self._serving = True
        self._write_run()
        if self.settings.stand_by:
            # Two Sparks that start at once keep each other from it, and nobody waits for this one.
            self.standing_by = self.supervisor.start(*self._compute(STAND_BY), instead_of=COMPUTE)
            self.standing_by.add_done_callback(lambda done: self._progress(_outcome(STAND_BY, done)))

    def await_stand_by(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until somebody stands by, where that is asked for.  Raises what that one said, ``TimeoutError``."""
        if self.standing_by is not None:
            self.standing_by.result(timeout_s)

    def _step(self, name: str, action: Callable[[], str]) -> None:
        self._progress(Step(name, "started"))
        try:
            self._progress(Step(name, "done", action()))
        except TidemarkError as error:
            self._progress(Step(name, "failed", str(error)))
            raise

    def _plan_broker(self) -> Broker:
        """Where it will be, its jars fetched."""
        settings = self.settings
        self._progress(Step("broker", "started"))
        jars = ensure_jars(settings.jars, lambda line: self._progress(Step("broker", "note", line)))
        port, controller_port = settings.broker_port or BROKER_PORT, *free_ports(1)
        if settings.broker_port is None and not is_free(port):
            port = free_ports(1)[0]
            self._progress(Step("broker", "note", f"port {BROKER_PORT} is taken: using {port}"))
        broker = Broker(self._data.path / "broker", jars, port, controller_port, self._data.logs / "broker.log")
        broker.archive = find_archive(BROKER)
        self.kafka = broker.bootstrap
        return broker

    def _start_broker(self, broker: Broker) -> None:
        ready = self.supervisor.start("broker", lambda: self._started_as(broker.prepare()))
        try:
            ready.result()
        except TidemarkError as error:
            self._progress(Step("broker", "failed", str(error)))
            raise
        self._progress(Step("broker", "done", f"Kafka on {broker.bootstrap}"))

    def _create_environment(self) -> str:
        if self.settings.fresh and self.settings.kafka:
            _drop_topics(self.kafka, self.settings.env)
        create_environment(self.kafka, self.names, 1 if not self.settings.kafka else _replication(self.kafka))
        return f"topics {self.settings.env}.*"

    def _specs(self) -> Iterator[tuple[str, Callable[[], ChildSpec]]]:
        """Every process after the broker, slowest to start first; that one may be started before the environment."""
        settings = self.settings
        common, store, spread = self._common(), self._store(), self._spread()
        secret = settings.password_file or os.environ.get(PASSWORD_FILE)
        doors = ["--password-file", str(Path(secret).resolve())] if secret else []
        doors += ["--insecure"] if settings.insecure else []
        yield self._compute(COMPUTE)
        yield self._python("storage", "controllers.storage", *common, *store, *spread)
        for controller in (STORAGE, compute(CLUSTER)):
            yield self._python(f"subscriber-{controller}", "subscribers", *common, "--controller", controller)
        for number, port in enumerate(self.ports):
            yield self._python(
                f"adapter-{number + 1}", "adapter", *common, "--host", settings.host, "--port", str(port), *doors,
                *spread, *([] if settings.webhook_port is None else
                           ["--webhook-port", str(settings.webhook_port + number)]),
            )  # fmt: skip

    def _compute(self, name: str) -> tuple[str, Callable[[], ChildSpec]]:
        settings = self.settings
        master = ["--spark-master", settings.spark_master] if settings.spark_master else []
        scratch = self._data.path / "compute"
        scratch.mkdir(exist_ok=True)
        archive = find_archive(SPARK)
        return self._python(
            name, "controllers.compute", *self._common(), "--cluster", CLUSTER, "--data", str(scratch), *master,
            *self._store(), *self._spread(), "--await-environment", str(START_TIMEOUT_S),
            timeout_s=START_TIMEOUT_S, env={ARCHIVE_ENV: str(archive)} if archive else None,
        )  # fmt: skip

    def _common(self) -> list[str]:
        return ["--kafka", self.kafka, "--env", self.settings.env]

    def _store(self) -> list[str]:
        ours = None if self.settings.kafka else (self._data.path / "store").resolve().as_uri()
        url = self.settings.store or ours
        return [] if url is None else ["--store", url]

    def _spread(self) -> list[str]:
        return ["--partitions", str(self.settings.partitions)]

    def _python(
        self, name: str, module: str, *arguments: str, timeout_s: float = 60.0, env: Mapping[str, str] | None = None
    ) -> tuple[str, Callable[[], ChildSpec]]:
        spec = ChildSpec(
            name=name,
            argv=[sys.executable, "-P", "-m", module, *arguments],
            log=self._data.logs / f"{name}.log",
            env={
                "PYTHONPATH": os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p),
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONUNBUFFERED": "1",
                **(env or {}),
            },
            ready_timeout_s=timeout_s,
            # A process of its own directory leaves no stray file (Spark's, Derby's) where the user stands.
            cwd=self._data.path,
        )
        return name, lambda: self._started_as(spec)

    def _started_as(self, spec: ChildSpec) -> ChildSpec:
        if self.settings.start_as is None:
            return spec
        argv, env = self.settings.start_as(spec.name, list(spec.argv), dict(spec.env))
        return replace(spec, argv=argv, env=env)

    def _on_event(self, event: Event) -> None:
        if event.kind == "ready" and self._serving and self.supervisor.starts(event.child) > 1:
            self._progress(Step(event.child, "note", event.detail or "serves again"))
        elif event.kind in ("died", "gave_up") and self._serving:
            self._progress(Step(event.child, "note" if event.kind == "died" else "failed", event.detail))
        if self._serving:
            self._write_run()

    def _write_run(self) -> None:
        with self._run_lock:
            self._data.write_run({
                "pid": os.getpid(), "kafka": self.kafka, "env": self.settings.env, "host": self.settings.host,
                "ports": self.ports, "processes": self.supervisor.pids(),
            })  # fmt: skip

    def stop(self) -> None:
        """End all processes; the broker last, since the others say goodbye to it."""
        self._serving = False
        self.supervisor.stop(keep=("broker",))
        with self._run_lock:
            self._data.close()


def _outcome(name: str, done: Future[dict]) -> Step:
    error = done.exception()
    if error is not None:
        return Step(name, "failed", str(error))
    fields = {k: v for k, v in done.result().items() if k not in ("event", "pid")}
    return Step(name, "done", " ".join(f"{k}={v}" for k, v in fields.items()))


def _replication(kafka: str) -> int:
    """3 where the cluster has three brokers, else 1.  Raises ``Unavailable`` where it cannot be reached."""
    admin = make_admin(kafka)
    return 3 if len(reach(kafka, lambda timeout_s: admin.list_topics(timeout=timeout_s)).brokers) >= 3 else 1


def _drop_topics(kafka: str, env: str) -> None:
    """Start over on a cluster that is not ours: remove this environment's topics and no other."""
    admin = make_admin(kafka)
    listed = reach(kafka, lambda timeout_s: admin.list_topics(timeout=timeout_s))
    topics = [name for name in listed.topics if name.startswith(f"{env}.")]
    if topics:
        for gone in admin.delete_topics(topics, operation_timeout=30, request_timeout=60).values():
            gone.result(timeout=60)


@contextmanager
def running(settings: Settings, progress: Callable[[Step], None] = lambda _step: None) -> Iterator[Stack]:
    """A started stack; all of it is gone when the block is left, by whichever way."""
    stack = Stack(settings, progress)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
