"""A recorded run: a cluster, clients that work on it, somebody who hurts it, and a directory that tells all of it.

    cluster up ─► setup ─► observer, workers ─► faults … healed ─► settle ─► last reads ─► dumps ─► run directory

Promises: the directory is written whatever happens, as far as the run came, with the reason in ``run.json`` where it
did not come to its end; no process and no fault outlives :func:`run`.  Nothing is judged here (``judging.py`` does
that, from the directory alone).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from embedded.layout import ROOT
from journal.errors import InvalidUsage
from journal.names import TopicNames
from judge.history import Fault
from judge.live import observer, worker
from judge.live.cluster import (
    HEAL_TIMEOUT_S,
    Cluster,
    ClusterSettings,
    FaultKind,
    HealFailed,
    OpenCluster,
    targets_by_kind,
    times_max,
)
from judge.live.nemesis import Nemesis, Pace, evenly, plan
from judge.live.processes import ClientFailed, ClientProcess, python
from judge.live.recorder import merged
from judge.measures.gaps import takes_leader
from judge.workloads.api import OP_TIMEOUT_S, Workload

SETUP_TIMEOUT_S = HEAL_TIMEOUT_S
"""Twelve workloads create some fifty objects, which takes 20 s; on a busy machine one view may take many seconds."""

CLIENT_START_S = 180.0
"""A client process takes 1 to 3 s to start; with several starved minutes were seen for things of that size."""

FINISH_TIMEOUT_S = worker.STUCK_S + worker.FINAL_TRIES * (OP_TIMEOUT_S + worker.FINAL_PAUSE_S)
"""Ending what is being done, and every last read at its slowest."""

LONGER_MAX = 2.0
"""A run that has not done its operations may go on for this many times its duration, unless told otherwise."""

TICK_S = 0.25


@dataclass(frozen=True)
class RunConfig:
    """What to run.  The same seed gives the same invocations and the same plan of faults; what the machine makes of
    them is its own."""

    out: Path
    layer: int
    duration_s: float
    pace: Pace
    operations: int = 0
    """At least so many; the run goes on for at most ``longer_max`` times ``duration_s`` to get there."""
    seed: int = 0
    workloads: tuple[str, ...] = ()
    """None: all there are."""
    faults: tuple[str, ...] | None = None
    """Kinds; ``None``: all that the cluster knows, ``()``: none."""
    bug: str = ""
    adapters: int = 3
    processes: int = 2
    """Worker processes."""
    few_clients: bool = False
    """As many workers as a short run takes."""
    rate: float = 1.0
    """Times each workload's own."""
    settle_s: float = 10.0
    """Operations go on for so long after the last healing."""
    registry: str = worker.REGISTRY
    leader_losses: int = 0
    """At least so many faults that take a leader away, within the same time: of fewer no p95 is told."""
    hurt: tuple[str, ...] = ()
    """Kinds of processes: each is hurt at least once, and has healed, within the same time."""
    longer_max: float = LONGER_MAX
    """Times ``duration_s`` that the run may take to get to all of this."""
    partitions: int = 1
    """Of each collection's topic."""
    stand_by: bool = False
    """Whether a second compute controller stands by."""

    @property
    def longest_s(self) -> float:
        return self.duration_s * self.longer_max

    def described(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in ("out", "registry")}


def kind_of(target: str) -> str:
    """The kind of process that a fault's target is: ``adapter`` of ``adapter-2``."""
    return target.split("-")[0]


def enough(config: RunConfig, seconds: float, operations: int, faults: Sequence[Fault]) -> bool:
    """Whether a run that has gone on for so long, with so many completed and ``faults`` done, may stop."""
    if seconds >= config.longest_s:
        return True
    short = operations < config.operations or sum(map(takes_leader, faults)) < config.leader_losses
    unhurt = set(config.hurt) - {kind_of(fault.target) for fault in faults}
    return seconds >= config.duration_s - config.settle_s and not short and not unhurt


@dataclass
class Status:
    """How far a run is; what a display shows."""

    phase: str = "starting"
    note: str = ""
    left_s: float = 0.0
    fault: str = ""
    faults: int = 0
    counts: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    """By workload: begun, ok, failed, unknown."""
    per_s: float = 0.0

    @property
    def completed(self) -> int:
        return sum(sum(of[1:]) for of in self.counts.values())

    @property
    def total(self) -> tuple[int, int, int]:
        """ok, failed, unknown."""
        ok, failed, unknown = (sum(of[place] for of in self.counts.values()) for place in (1, 2, 3))
        return ok, failed, unknown


def commit() -> str:
    """The checkout's commit, with ``+`` where files differ from it; empty where it is no checkout."""
    said = [
        subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=30).stdout.strip()
        for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
    ]
    return said[0] + ("+" if said[1] else "")


def chosen_workloads(config: RunConfig) -> dict[str, Workload]:
    """Raises ``InvalidUsage`` for a name that there is not."""
    known = worker.known_workloads(config.registry)
    unknown = [name for name in config.workloads if name not in known]
    if unknown:
        raise InvalidUsage(f"no workload is called {', '.join(unknown)}", hint=f"there are {', '.join(known)}")
    long = getattr(import_module(config.registry), "LONG", ()) if config.few_clients else ()
    return {name: known[name] for name in config.workloads or [name for name in known if name not in long]}


def chosen_faults(config: RunConfig, cluster: Cluster) -> list[FaultKind]:
    """Raises ``InvalidUsage`` for a kind that the cluster does not know."""
    if config.faults is None:
        workloads = chosen_workloads(config)
        reserved = getattr(import_module(config.registry), "FAULTS", {})
        absent = {kind for name, kinds in reserved.items() if name not in workloads for kind in kinds}
        return [kind for kind in cluster.faults if kind.name not in absent]
    known = {kind.name: kind for kind in cluster.faults}
    unknown = [name for name in config.faults if name not in known]
    if unknown:
        raise InvalidUsage(f"no fault is called {', '.join(unknown)} here", hint=f"there are {', '.join(known)}")
    return [known[name] for name in config.faults]


class _Totals:
    """Counts of all worker processes, the rate of the last seconds."""

    RATE_OVER_S = 5.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, Mapping[str, list[int]]] = {}
        self.stuck: dict[str, int] = {}
        self._history: list[tuple[float, int]] = []

    def hear(self, name: str, message: Mapping[str, Any]) -> None:
        if "counts" in message:
            with self._lock:
                self._of[name] = message["counts"]
                self.stuck[name] = message.get("stuck", 0)

    def put_into(self, status: Status) -> None:
        with self._lock:
            counts: dict[str, list[int]] = {}
            for of in self._of.values():
                for workload, numbers in of.items():
                    sums = counts.setdefault(workload, [0, 0, 0, 0])
                    for place, number in enumerate(numbers):
                        sums[place] += number
            status.counts = {workload: tuple(sums) for workload, sums in sorted(counts.items())}
            now = time.monotonic()
            self._history = [at for at in self._history if now - at[0] < self.RATE_OVER_S] + [(now, status.completed)]
            first, last = self._history[0], self._history[-1]
            status.per_s = (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0


class _Run:
    def __init__(self, config: RunConfig, show: Callable[[Status], None]) -> None:
        self.config = config
        self.status = Status()
        self.clients: list[ClientProcess] = []
        self.workers: list[ClientProcess] = []
        """Those of ``clients`` that work."""
        self.totals = _Totals()
        self.about: dict[str, Any] = {}
        self.nemesis: Nemesis | None = None
        self.unhealed = False
        """A fault did not heal; that is recorded, and ends the run no more."""
        self.parts: list[Path] = []
        self._show = show

    def phase(self, name: str) -> None:
        self.status.phase = name
        self._shown()

    def note(self, text: str) -> None:
        self.status.note = text
        self._show(self.status)

    def _shown(self) -> None:
        self.totals.put_into(self.status)
        self._show(self.status)

    # -- the parts

    def client(self, cluster: Cluster, name: str, number: int, module: str, *arguments: str) -> ClientProcess:
        argv, env = cluster.client_command(number, *python(module, *arguments))
        started = ClientProcess(
            name, argv, env, self.config.out / "logs" / f"{name}.err", lambda said: self.totals.hear(name, said)
        )
        self.clients.append(started)
        return started

    def set_up(self, cluster: Cluster, shares: list[worker.Share]) -> None:
        self.phase("setting up")
        told = worker.Config(cluster.world, tuple(shares), 0, "", self.config.seed, self.config.registry)
        client = self.client(cluster, "setup", 0, "judge.live.worker", "setup", told.to_json())
        client.wait_for("done", SETUP_TIMEOUT_S)
        client.end()

    def watch(self, cluster: Cluster) -> ClientProcess:
        names = TopicNames(cluster.world.env)
        watches = [
            observer.Watch("catalog", names.catalog, observer.CATALOG),
            observer.Watch("oracle", names.oracle, observer.ORACLE, may_be_cut=True),
        ]
        if {"register", "oracle"} & set(self.about["workloads"]):
            registers = TopicNames(cluster.world.register_env)
            watches += [
                observer.Watch("register-catalog", registers.catalog, observer.CATALOG),
                observer.Watch("register-oracle", registers.oracle, observer.ORACLE, may_be_cut=True),
            ]
        told = observer.Config(cluster.world.kafka, tuple(watches), str(self.config.out.resolve()))
        watching = self.client(cluster, "observer", -1, "judge.live.observer", told.to_json())
        watching.wait_for("started", CLIENT_START_S)
        return watching

    def work(self, cluster: Cluster, dealt: list[list[worker.Share]], stride: int) -> list[ClientProcess]:
        workers = []
        for number, shares in enumerate(dealt):
            part = self.config.out.resolve() / f"events-{number}.jsonl"
            told = worker.Config(
                cluster.world, tuple(shares), stride, str(part), self.config.seed, self.config.registry
            )
            workers.append(
                self.client(cluster, f"worker-{number}", number, "judge.live.worker", "run", told.to_json())
            )
            self.parts.append(part)
        for each in workers:
            each.wait_for("started", CLIENT_START_S)
        self.workers = workers
        return workers

    def hurt(self, cluster: Cluster) -> Nemesis:
        config = self.config
        kinds = chosen_faults(config, cluster)
        rng = random.Random(f"{config.seed}/nemesis")
        # Enough steps for the longest the run may go on.
        goes_on = config.operations or config.leader_losses or config.hurt
        longest_s = config.longest_s if goes_on else config.duration_s
        steps = plan(rng, targets_by_kind(kinds), {kind.name: kind.hold_s for kind in kinds}, longest_s, config.pace,
                     evenly(times_max(kinds), config.duration_s))  # fmt: skip
        self.about["planned"] = [step._asdict() for step in steps]
        self.nemesis = Nemesis(kinds, steps, rng, longest_s, config.pace, self._fault)
        self.nemesis.start()
        return self.nemesis

    def _fault(self, text: str) -> None:
        """Heard from the nemesis: what is in force now, or nothing.  Workers are told too, who look at what is unknown
        once it is healed."""
        self.status.fault = text
        for each in self.workers:
            try:
                each.send("hurt" if text else "healed")
            except ClientFailed:
                pass  # ``attend`` sees that it is gone, and ends the run with its last words

    def attend(self, workers: list[ClientProcess], until: Callable[[float], bool], timeout_s: float) -> None:
        """Show how it goes until ``until(seconds since now)``.  Raises what ends the run early."""
        began = time.monotonic()
        while not until(time.monotonic() - began):
            if time.monotonic() - began > timeout_s:
                raise ClientFailed(f"{self.status.phase} did not end within {timeout_s:g} s")
            for each in workers:
                if each.exited.done():
                    each.wait_for("done", 0)
            # Everything there is to notice comes as a count that is looked at now and then.
            time.sleep(TICK_S)
            if self.nemesis is not None:
                self.status.faults = len(self.nemesis.faults)
                if self.nemesis.error is not None and not self.unhealed:
                    raise self.nemesis.error
            self._shown()

    def record(self, cluster: Cluster) -> None:
        """From a started cluster to the last record read."""
        config = self.config
        workloads = chosen_workloads(config)
        chosen_faults(config, cluster)
        self.about |= {"workloads": list(workloads), "cluster": cluster.describe()}
        wanted = {
            name: (
                each.clients_quick if config.few_clients else each.clients,
                None if each.rate is None else each.rate * config.rate,
            )
            for name, each in workloads.items()
        }
        dealt, stride = worker.shared_out(wanted, config.processes)
        self.set_up(cluster, [worker.Share(name, (), 0, ()) for name in workloads])
        watching = self.watch(cluster)
        workers = self.work(cluster, dealt, stride)
        self.about["began_ns"] = time.monotonic_ns()
        nemesis = self.hurt(cluster)

        self.phase("running")

        def over(seconds: float) -> bool:
            self.status.left_s = max(0.0, config.duration_s - seconds)
            return enough(config, seconds, self.status.completed, list(nemesis.faults))

        try:
            self.attend(workers, over, config.longest_s + 60)
            nemesis.stop()
            self.phase("healing")
            self.attend(workers, lambda _s: not nemesis.busy, 2 * HEAL_TIMEOUT_S)
            cluster.wait_serving(HEAL_TIMEOUT_S)
        except HealFailed as error:
            # That is a breach, and no reason to leave unread what half an hour of faults has done to the logs.
            self.about["error"] = {"kind": type(error).__name__, "text": str(error)}
            self.unhealed = True
        self.phase("settling")
        self.attend(workers, lambda seconds: seconds >= config.settle_s, config.settle_s + 60)
        self.phase("last reads")
        for each in workers:
            each.send("finish")
        self.attend(workers, lambda _s: all(each.exited.done() for each in workers), FINISH_TIMEOUT_S)
        for each in workers:
            done = each.wait_for("done", 0)
            self.about.setdefault("unread", []).extend(done.get("unread", []))
        self.phase("reading the logs")
        watching.send("finish")
        self.about["logs"] = watching.wait_for("done", 300)["logs"]
        watching.end()

    def abandon(self) -> None:
        """End what still runs, faults first: a stopped process does not end."""
        if self.nemesis is not None:
            self.nemesis.stop()
            self.nemesis.join(2 * HEAL_TIMEOUT_S)
        for each in reversed(self.clients):
            each.end()

    def write(self) -> None:
        """The run's directory, as far as the run came."""
        out = self.config.out
        merged([part for part in self.parts if part.exists()], out / "history.jsonl")
        for part in self.parts:
            part.unlink(missing_ok=True)
        faults = sorted(self.nemesis.faults) if self.nemesis is not None else []
        if self.nemesis is not None:
            self.about |= {"late": self.nemesis.late, "not_begun": self.nemesis.not_begun}
        (out / "faults.jsonl").write_text("".join(fault.to_json() + "\n" for fault in faults))
        self.about["stuck"] = sum(self.totals.stuck.values())
        (out / "run.json").write_text(json.dumps(self.about, indent=1, default=str) + "\n")


def run(config: RunConfig, open_cluster: OpenCluster, show: Callable[[Status], None] = lambda _status: None) -> Path:
    """Run and record; the directory.  A run that broke off (a process that did not serve again, a client that ended)
    is recorded with ``error`` in ``run.json``; only what keeps it from beginning is raised."""
    chosen_workloads(config)
    config.out.mkdir(parents=True, exist_ok=True)
    if any(config.out.iterdir()):
        raise InvalidUsage(f"{config.out} is not empty", hint="choose another directory with --out")
    going = _Run(config, show)
    going.about = {
        "layer": config.layer, "seed": config.seed, "commit": commit(), "configuration": config.described(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"), "workloads": [], "bug": config.bug,
    }  # fmt: skip
    scratch = Path(tempfile.mkdtemp(prefix="judge-"))
    trap = "poison" in chosen_workloads(config)
    settings = ClusterSettings(
        scratch, adapters=config.adapters, seed=config.seed, bug=config.bug, trap=trap, partitions=config.partitions,
        stand_by=config.stand_by,
    )  # fmt: skip
    try:
        with ExitStack() as stack:
            cluster = stack.enter_context(open_cluster(settings, going.note))
            try:
                going.record(cluster)
            except InvalidUsage:
                raise
            except BaseException as error:
                going.about["error"] = {"kind": type(error).__name__, "text": str(error)}
                if not isinstance(error, Exception):
                    raise  # Ctrl-C
            finally:
                going.abandon()
                going.phase("stopping")
    except InvalidUsage:
        # Asked for wrongly: nothing was run, so there is nothing to look at.
        shutil.rmtree(config.out)
        raise
    finally:
        if config.out.exists():
            going.write()
            keep_logs(scratch, config.out / "logs")
        shutil.rmtree(scratch, ignore_errors=True)
    return config.out


def keep_logs(scratch: Path, to: Path) -> None:
    """What processes wrote about themselves, which is what one wants to read after a bad run."""
    to.mkdir(parents=True, exist_ok=True)
    for path in scratch.rglob("*"):
        # A broker's topics are in its directory ``log``, and their segments are called that too.
        topic = "log" in path.relative_to(scratch).parts
        if path.suffix in (".log", ".err") and not topic and path.is_file() and path.stat().st_size:
            target = to / path.name
            if target.exists():
                target = to / f"{path.parent.name}-{path.name}"
            shutil.copyfile(path, target)
