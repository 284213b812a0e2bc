"""Three brokers and the whole stack on made hosts: layer 3's :class:`~judge.live.cluster.Cluster` and its faults.

    b1 b2 b3   a broker each, its data on a small filesystem of its own
    a1 a2 …    an adapter each
    cl         subscribers, controllers, and whoever uses all this: the calling thread is there inside the block

Promises as ``live/stack.py``: the product's own processes, kept by its own supervisor.  Every fault heals within
``HEAL_TIMEOUT_S`` and then waits for all replicas in sync and for what was hurt to serve again.

A fault of a broker that leads the catalog's or the oracle's topic says so in its detail (``leader of catalog``): those
are the ones whose write gaps are bounded.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from embedded.jars import ensure_jars
from embedded.layout import JARS, Step
from embedded.stack import BACK, COMPUTES, Settings, Stack, running
from fleet.member import PORT
from journal.errors import InvalidUsage, Unavailable
from journal.names import TopicNames
from judge.live import network, shim
from judge.live.brokers import KafkaCluster
from judge.live.calamities import Day, PoisonView
from judge.live.clock import Clocks, Skew, Strobe
from judge.live.cluster import (
    HEAL_TIMEOUT_S,
    Cluster,
    ClusterSettings,
    FaultKind,
    HealFailed,
    Injected,
    Progress,
    chained,
    planted,
    sealing_soon,
    trapped,
)
from judge.live.disk import FullDisk, SlowFsync, SlowSyncs, SmallDisk
from judge.live.network import BROKERS, CLIENT, Network, Rules
from judge.live.process_faults import LOOK_AGAIN_S, Lives, process_faults
from judge.live.proxy import Shape
from judge.live.slowness import slow_down
from judge.live.stack import adapter_answers, plant_at_broker
from judge.live.stores import FullStore, SlowStore, StoreAway, slow_for_who_seals
from judge.workloads.api import World

ADAPTER_PORT = 6875


class ThreeBrokers:
    """A started :class:`~judge.live.cluster.Cluster`."""

    layer = 3

    def __init__(
        self, made: Network, kafka: KafkaCluster, stack: Stack, settings: ClusterSettings, lives: Lives, clocks: Clocks,
        syncs: SlowSyncs, disks: dict[str, SmallDisk], store: SmallDisk,
    ) -> None:  # fmt: skip
        self.network = made
        self.kafka = kafka
        self.stack = stack
        self._bug = settings.bug
        self._adapters = {f"adapter-{number + 1}": f"a{number + 1}" for number in range(settings.adapters)}
        dsns = [
            f"postgresql://tidemark@{made.address(host)}:{ADAPTER_PORT + number}/tidemark"
            for number, host in enumerate(self._adapters.values())
        ]
        self._dsns = dict(zip(self._adapters, dsns, strict=True))
        self.world = World(
            kafka=kafka.bootstrap, env=settings.env, dsns=tuple(dsns), nodes=tuple(self._adapters), seed=settings.seed,
            register_env=f"{settings.env}-reg",
        )  # fmt: skip
        self._names = sorted(stack.supervisor.pids())
        everybody = [*BROKERS, *self._names]
        self.faults: Sequence[FaultKind] = [
            *process_faults(lives, self._names, self.wait_answer),
            KillBroker(self), PauseBroker(self), RestartBroker(self),
            IsolateBroker(self), CutOffLeader(self), CutBetween(self), OneWay(self), Loss(self), SlowNetwork(self),
            IsolateAdapter(self),
            SlowFsync(syncs, BROKERS, kafka.wait_in_sync),
            FullDisk(kafka, disks, self.led_by),
            Skew(clocks, everybody, self._after_clock),
            Strobe(clocks, everybody, self._after_clock),
            Day(self.world, lives, self._names, self.wait_answer),
            StoreAway(store.path / "store", self.wait_answer),
            FullStore(store, self.wait_answer),
            SlowStore(syncs, self.wait_answer),
            *([PoisonView(self.world, self.wait_answer)] if settings.trap else ()),
        ]  # fmt: skip

    def client_command(self, number: int, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        hook = planted(self._bug) if number >= 0 else None
        argv, env = chained(hook)(f"client-{number}", argv, env)
        return self.network.command(CLIENT, argv), env

    def wait_serving(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for name in (*BROKERS, *self._names):
            self.wait_answer(name, max(LOOK_AGAIN_S, deadline - time.monotonic()))

    def wait_answer(self, name: str, timeout_s: float) -> None:
        """Until ``name`` runs; an adapter answers; with a broker all replicas are in sync.  Raises ``HealFailed``."""
        if name in BROKERS:
            self.kafka.wait_in_sync(timeout_s)
            return
        deadline = time.monotonic() + timeout_s
        while name not in self.stack.supervisor.pids() or (
            name in self._dsns and not adapter_answers(self._dsns[name])
        ):
            if self.stack.supervisor.failed.done():
                raise HealFailed(f"given up: {self.stack.supervisor.failed.result()}")
            if time.monotonic() > deadline:
                raise HealFailed(f"{name} did not answer within {timeout_s:g} s")
            time.sleep(LOOK_AGAIN_S)

    def _after_clock(self, name: str, timeout_s: float) -> None:
        """As :meth:`wait_answer`.  A broker is started again first: its timers follow the wall clock and never go
        back, so one that was an hour ahead would stay out of the cluster for that hour (seen: 180 s and no end)."""
        if name in BROKERS:
            self.kafka.kill(name)
            self.kafka.start(name)
        self.wait_answer(name, timeout_s)

    def led_by(self, host: str) -> str:
        """``leader of catalog, oracle`` as far as ``host`` is."""
        names = TopicNames(self.world.env)
        led = self.kafka.led_by(host, (names.catalog, names.oracle))
        return f"leader of {', '.join(topic.rpartition('.')[2] for topic in led)}" if led else "follower"

    def adapter_hosts(self) -> dict[str, str]:
        """The host of each adapter."""
        return dict(self._adapters)

    def describe(self) -> dict[str, Any]:
        return {
            "brokers": len(BROKERS), "replication": 3, "adapters": len(self._adapters), "processes": self._names,
            "hosts": {name: host.address for name, host in self.network.hosts.items()}, "bug": self._bug,
        }  # fmt: skip


class _Fault:
    """What faults of the network and of brokers share."""

    name = ""
    hold_s = (3.0, 8.0)

    def __init__(self, cluster: ThreeBrokers) -> None:
        self.cluster = cluster
        self.network = cluster.network
        self.kafka = cluster.kafka

    def targets(self) -> Sequence[str]:
        return BROKERS

    def healed(self) -> None:
        """Wait until the brokers are as before, and everybody found back to them."""
        self.kafka.wait_in_sync(HEAL_TIMEOUT_S)
        for name in self.cluster.adapter_hosts():
            self.cluster.wait_answer(name, HEAL_TIMEOUT_S)

    def of_rules(self, rules: Rules, detail: str) -> Injected:
        def heal() -> None:
            rules.heal()
            self.healed()

        return Injected(heal, detail)


class KillBroker(_Fault):
    """SIGKILL; it stays away for a while and is started again on its data."""

    name = "kill-broker"

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        self.kafka.kill(target)

        def heal() -> None:
            self.kafka.start(target)
            self.healed()

        return Injected(heal, detail)


class RestartBroker(KillBroker):
    """SIGTERM: it hands its leaderships over, ends, and is started again."""

    name = "restart-broker"
    hold_s = (1.0, 3.0)

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        self.kafka.signal(target, signal.SIGTERM)

        def heal() -> None:
            if self.kafka.alive(target):
                self.kafka.kill(target)  # it had its time
            self.kafka.start(target)
            self.healed()

        return Injected(heal, detail)


class PauseBroker(_Fault):
    """SIGSTOP: its connections stay open, and it wakes up as a leader that was deposed."""

    name = "pause-broker"

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        self.kafka.signal(target, signal.SIGSTOP)

        def heal() -> None:
            self.kafka.signal(target, signal.SIGCONT)
            self.healed()

        return Injected(heal, detail)


class IsolateBroker(_Fault):
    name = "isolate-broker"

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        return self.of_rules(self.network.isolate(target), detail)


class CutOffLeader(_Fault):
    """A broker is cut from the other brokers and not from its clients, whom it goes on answering."""

    name = "cut-off-broker"

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        return self.of_rules(self.network.cut([target], [b for b in BROKERS if b != target]), detail)


class CutBetween(_Fault):
    """Two hosts do not hear each other, and everybody else hears both."""

    name = "cut-link"

    def targets(self) -> Sequence[str]:
        hosts = [*BROKERS, *self.cluster.adapter_hosts().values()]
        pairs = [(a, b) for i, a in enumerate(BROKERS) for b in hosts[i + 1 :]]
        return [f"{a}~{b}" for a, b in pairs]

    def start(self, target: str, rng: random.Random) -> Injected:
        a, b = target.split("~")
        details = "; ".join(f"{host} {self.cluster.led_by(host)}" for host in (a, b) if host in BROKERS)
        return self.of_rules(self.network.cut([a], [b]), details)


class OneWay(_Fault):
    """A broker hears nobody, or nobody hears it."""

    name = "one-way"

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        if rng.random() < 0.5:
            return self.of_rules(self.network.deaf(target), f"hears nobody, {detail}")
        return self.of_rules(self.network.mute(target), f"is not heard, {detail}")


class Loss(_Fault):
    """Some packets from and to a host are lost."""

    name = "loss"
    hold_s = (4.0, 10.0)

    def targets(self) -> Sequence[str]:
        return [*BROKERS, *self.cluster.adapter_hosts().values()]

    def start(self, target: str, rng: random.Random) -> Injected:
        share = rng.uniform(0.02, 0.25)
        return self.of_rules(self.network.loss([target], share), f"{share:.0%} of packets")


class IsolateAdapter(_Fault):
    """An adapter alone: neither brokers nor clients reach it."""

    name = "isolate-adapter"

    def targets(self) -> Sequence[str]:
        return list(self.cluster.adapter_hosts())

    def start(self, target: str, rng: random.Random) -> Injected:
        return self.of_rules(self.network.isolate(self.cluster.adapter_hosts()[target]), "")


class SlowNetwork(_Fault):
    """All that a broker hears from other hosts is late or narrow (:mod:`judge.live.slowness`)."""

    name = "slow-network"
    hold_s = (4.0, 10.0)

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self.cluster.led_by(target)
        shape = Shape(rng.uniform(0.01, 0.15), rng.uniform(0, 0.1), rng.choice((None, 200_000.0, 1_000_000.0)))
        quicken = slow_down(self.network, target, PORT, shape, rng.randrange(1 << 30))

        def heal() -> None:
            quicken()
            self.healed()

        rate = f"{shape.bytes_per_s / 1000:.0f} kB/s" if shape.bytes_per_s else "full rate"
        least, most = shape.delay_s * 1000, (shape.delay_s + shape.jitter_s) * 1000
        return Injected(heal, f"+{least:.0f} to {most:.0f} ms, {rate}, {detail}")


def refusal() -> str | None:
    """Why this machine cannot carry it, or ``None``."""
    return network.permitted() or shim.unavailable()


@contextmanager
def three_brokers(settings: ClusterSettings, progress: Progress) -> Iterator[Cluster]:
    """A started cluster; this thread is on the client's host until the block is left."""
    if reason := refusal():
        hint = "run it as root on Linux, with ip (iproute2) and iptables installed, or --layer 2"
        raise InvalidUsage(f"three brokers cannot be run here: {reason}", hint=hint)
    jars = ensure_jars(JARS, progress)
    hosts = (*BROKERS, *(f"a{number + 1}" for number in range(settings.adapters)), CLIENT)
    lives = Lives(lambda: stack.supervisor.pids())
    shown = _on_step(lives, progress)
    with ExitStack() as cleaning:
        made = cleaning.enter_context(Network(hosts))
        cleaning.enter_context(made.inside(CLIENT))
        disks = {host: SmallDisk(settings.scratch / "disks" / host) for host in BROKERS}
        # Of its own, so that it can be full; whoever reads has its files on another disk, as copies.
        store = SmallDisk(settings.scratch / "disks" / "store")
        for disk in (*disks.values(), store):
            cleaning.callback(disk.close)
        clocks, syncs = Clocks(settings.scratch / "clocks"), SlowSyncs(settings.scratch / "syncs")
        at_broker = plant_at_broker(settings.bug, cleaning)
        # A planted bug is planted at the process that the product calls "broker", whichever of the three it is.
        plant = None if at_broker is None else (lambda _name, argv, env: at_broker("broker", argv, env))
        kafka = KafkaCluster(
            made, settings.scratch / "brokers", jars, start_as=chained(plant, clocks.start_as, syncs.start_as),
            directories={host: disk.path / "kafka" for host, disk in disks.items()},
        )  # fmt: skip
        cleaning.callback(kafka.stop)
        kafka.start_all()
        progress(f"three brokers at {kafka.bootstrap}")
        chosen = Settings(
            data=settings.scratch / "stack", env=settings.env, adapters=settings.adapters, port=ADAPTER_PORT,
            kafka=kafka.bootstrap, store=(store.path / "store").as_uri(), partitions=settings.partitions,
            stand_by=settings.stand_by,
            start_as=chained(
                planted(settings.bug), trapped(settings.trap), sealing_soon, clocks.start_as, slow_for_who_seals(syncs),
                _placed(made),
            ),
        )  # fmt: skip
        stack = cleaning.enter_context(running(chosen, shown))
        stack.await_stand_by()
        yield ThreeBrokers(made, kafka, stack, settings, lives, clocks, syncs, disks, store)
        with contextlib.suppress(Unavailable):
            made.heal()  # so that everybody can say goodbye


def _placed(made: Network) -> Callable[[str, list[str], dict[str, str]], tuple[list[str], dict[str, str]]]:
    """Each adapter on a host of its own, the rest on the client's, all reachable from everywhere."""

    def start_as(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        if name.startswith("adapter-"):
            host = f"a{name.removeprefix('adapter-')}"
            argv = list(argv)
            argv[argv.index("--host") + 1] = made.address(host)
            argv.append("--insecure")
            return made.command(host, argv), env
        if name in COMPUTES:
            argv = [*argv, "--flight-host", made.address(CLIENT), "--insecure"]
        elif name == "storage":
            argv = [*argv, "--host", made.address(CLIENT), "--insecure"]
        return made.command(CLIENT, argv), env

    return start_as


def _on_step(lives: Lives, progress: Progress) -> Callable[[Step], None]:
    def on_step(step: Step) -> None:
        if step.state == "note" and step.detail in BACK:
            lives.serves(step.name)
        if step.state in ("done", "failed", "note"):
            progress(f"{step.name} {step.detail}".rstrip())

    return on_step


def main(argv: Sequence[str]) -> int:
    """``python -m judge.live.three_brokers [KIND…]``: start it, do each kind of fault once, and end it."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="three-") as scratch:
        with three_brokers(ClusterSettings(Path(scratch), adapters=2), print) as cluster:
            rng = random.Random(1)
            for fault in cluster.faults:
                if argv and fault.name not in argv:
                    continue
                targets = list(fault.targets())
                target = BROKERS[0] if BROKERS[0] in targets else rng.choice(targets)
                began = time.monotonic()
                injected = fault.start(target, rng)
                time.sleep(max(fault.hold_s[0], 1.0))
                healing = time.monotonic()
                injected.heal()
                print(f"{fault.name} {target}: {injected.detail}; begun in {healing - began:.1f} s with its hold, "
                      f"healed in {time.monotonic() - healing:.1f} s", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
