"""A whole environment in one thread: processes, clients, a virtual Kafka, faults, and the laws looked at on the way.

Promises: everything that happens follows from the seed and the arguments; the same seed gives the same events, byte for
byte, in any process.  Nothing here judges what clients saw: that is recorded, and the checkers judge it later.  What no
client can see is checked at once (:attr:`World.violations`): that folds at one offset are equal, that a controller
knows exactly what the catalog says at its frontier, that no peek runs early, that a view equals its query, that what is
bound is there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from catalog_log import snapshot
from catalog_log.bootstrap import initial_updates
from catalog_log.fold import VerdictKind, admit
from catalog_log.image import EMPTY, Image
from catalog_log.log import CatalogLog
from catalog_log.model import Genesis
from catalog_log.records import FORMAT_VERSION, Proposal, encode_proposal
from controllers.commands import STORAGE, compute
from controllers.compute.frontiers import Frontiers
from controllers.peeks.peek import Peek
from controllers.protocol import ControllerState
from journal.api import Entry
from journal.errors import TidemarkError
from judge.history import Event, Fault
from judge.partitions import partitions_of
from judge.simulation import changing, queries
from judge.simulation import clients as work
from judge.simulation.adapters import Adapter, LogClient
from judge.simulation.clock import MS, S, Schedule
from judge.simulation.controllers import CLUSTER, Compute, Storage, Subscriber, new_stepper
from judge.simulation.kafka import CALM, Fates, Topic
from judge.simulation.process import Process
from judge.simulation.sources import TOPIC, UserTopics
from judge.simulation.worker import Worker
from oracle.checkpoints import CheckpointPolicy
from oracle.image import dump
from oracle.image import load as load_oracle
from oracle.lanes import Compaction
from oracle.model import Kind
from oracle.views_image import dump_views, load_views
from oracle.views_records import ViewsKind
from subscribers.translate import concerns

START_MS = 1_700_000_000_000
QUIET_NS = 60 * S
"""How long, after everything was healed, the last reads may take in virtual time."""


class FaultPlan(NamedTuple):
    """How badly the world behaves.  Intervals are means."""

    every_ms: int = 400
    """Between two faults; 0: none at all."""
    fates: Fates = Fates(0.0005, 0.0005, 0.001, 0.003)
    """What the network does to appends all the time."""
    burst: Fates = Fates(0.03, 0.03, 0.04, 0.06)
    """And while it is bad."""
    skew_ms_max: int = 3_600_000
    kinds: tuple[str, ...] = ("kill", "kill", "pause", "election", "isolate", "cut", "clock", "network", "replace",
                              "checkpoint")  # fmt: skip


NO_FAULTS = FaultPlan(0, CALM, CALM, 0)


@dataclass
class Store:
    """Where the images of a journal are kept (``oracle.checkpoints.Store``)."""

    newest: tuple[int, bytes] | None = None

    def save(self, offset: int, image: bytes) -> None:
        self.newest = offset, image

    def load(self) -> tuple[int, bytes] | None:
        return self.newest


@dataclass(frozen=True)
class Violation:
    """A law that was broken where no client could see it."""

    law: str
    text: str
    time: int


@dataclass
class World:
    """See the module.  ``bugs`` are names from :mod:`judge.simulation.bugs`."""

    seed: int
    plan: FaultPlan = FaultPlan()  # noqa: RUF009 - immutable
    bugs: frozenset[str] = frozenset()
    workloads: tuple[str, ...] = work.EVERYDAY
    adapters: int = 3
    think_ms: int = 0
    """Mean pause of a client between two operations; 0: drawn from the seed."""
    partitions: int = 0
    """Of each data topic; 0: as the seed chooses."""
    manual: bool = False
    """Clients begin an operation only when they are told to (:meth:`Worker.act`)."""

    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    stops: list[tuple[int, str, str]] = field(default_factory=list)
    """(time, process, error) of processes that stopped by themselves."""

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.schedule = Schedule()
        self.partitions = self.partitions or partitions_of(self.seed)
        self.topics: dict[str, Topic] = {}
        self.images: dict[str, tuple[int, bytes]] = {}
        self.stores: dict[str, Store] = {}
        self.notes = Topic(self, "env.work.compute-default")
        """What the compute controllers note of their work; never elected nor cut off (it is no journal of others)."""
        self.user_topics = UserTopics()
        self.storage_lives = 0
        self.compute_lives = 0
        self.fates = CALM
        self.kinds = (*self.plan.kinds, *(work.FAULTS[each] for each in self.workloads if each in work.FAULTS))
        self.genesis = Genesis(FORMAT_VERSION, "env", "topic")
        self.catalog_class: type[CatalogLog] = CatalogLog
        self.stepper: Callable = new_stepper
        self.view_rows: Callable = lambda _compute, _view_id, rows: rows
        self.peek_inputs_checked = True
        self.live: dict[str, Process] = {}
        self.zombies: list[Process] = []
        self.wanted: dict[str, Callable[[], Process]] = {}
        self.clients: list[Worker] = []
        self.healing = False
        self.process_ids = 0
        self.ddl_log: list[bytes] = []
        self.ddl_committed = 0
        self.ddl_owner: Adapter | None = None
        self.ddl_waiting: dict[str, list[Callable[[dict], None]]] = {}
        self.truth: dict[int, Image] = {}
        self._truth_image = EMPTY
        self._told: dict[tuple[str, int], dict] = {}
        self.think = (self.think_ms or self.rng.choice([4, 20, 60])) * MS
        self.peeks = 0
        self.kills = 0
        self.tries: dict[Any, int] = {}
        """Task -> how often a statement of it was made anew."""

    # -- what processes ask of it

    def wall_ms(self) -> int:
        return START_MS + self.schedule.now // MS

    def delay(self, mean_ns: int) -> int:
        """A network's or a scheduler's delay: uniform, now and then ten times as long."""
        drawn = self.rng.random()
        return int(drawn * 2 * mean_ns) if drawn < 0.98 else int(drawn * 20 * mean_ns)

    def reads_much(self, view_id: str) -> bool:
        """Whether a view is made beside the ticks: a third of them, others in each environment."""
        return random.Random(f"{self.seed}/{view_id}").random() < 1 / 3

    def some_partition(self) -> int:
        """Where a record goes."""
        return self.rng.randrange(self.partitions) if self.partitions > 1 else 0

    def topic(self, name: str) -> Topic:
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = Topic(self, name)
        return found

    def store(self, topic: str) -> Store:
        return self.stores.setdefault(topic, Store())

    def compute_for(self, _peek: Peek) -> Compute | None:
        found = [p for p in (self.live.get("compute"), *self.zombies) if isinstance(p, Compute) and p.alive]
        if not found:
            return None
        return found[0] if len(found) == 1 or self.rng.random() < 0.8 else self.rng.choice(found)

    def on_ready(self, process: Process) -> None:
        if isinstance(process, Adapter) and (self.ddl_owner is None or not self.ddl_owner.alive):
            self.ddl_owner = process
            process.serve_ddl()

    def note_stop(self, process: Process, error: Exception) -> None:
        self.stops.append((self.schedule.now, process.name, f"{type(error).__name__}: {error}"))

    def broken(self, text: str) -> None:
        self.violated("unhandled", text)

    def violated(self, law: str, text: str) -> None:
        if len(self.violations) < 1000:
            self.violations.append(Violation(law, text, self.schedule.now))

    def ddl_reply(self, reply: dict) -> None:
        if self.rng.random() < 0.05 and not self.healing:
            return
        for tell in self.ddl_waiting.pop(reply["request_id"], ()):
            self.schedule.after(self.delay(300_000), None, tell, reply)

    # -- laws looked at on the way

    def _watch_catalog(self, topic: Topic, lower: int) -> None:
        for offset in range(lower, topic.end):
            self._truth_image, verdict = admit(self._truth_image, Entry(offset, topic.values[offset]))
            if verdict.kind is VerdictKind.ACCEPTED:
                self.truth[self._truth_image.upper] = self._truth_image

    def check_controller(self, controller: str, state: ControllerState) -> None:
        """What a controller knows is what the catalog says at its frontier (I6)."""
        image = self.truth.get(state.frontier)
        if image is None:
            self.violated("I6", f"{controller} is at frontier {state.frontier}, which the catalog never was")
            return
        key = controller, state.frontier
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = {item.id: item for item in image.objects() if concerns(item, controller)}
        if dict(state.objects) != told:
            ids = sorted(set(state.objects) ^ set(told)) or ["(changed ones)"]
            self.violated("I6", f"{controller} at frontier {state.frontier} differs from the catalog in {ids}")

    def check_peek(self, asked: Compute, peek: Peek, as_of: int) -> None:
        """A peek runs only on what its plan knew, at a complete timestamp, where every view is exact (I7, I9)."""
        self.peeks += 1
        state, oracle = asked.fold.state, asked.oracle.state
        if state.frontier <= peek.catalog_ts:
            self.violated("I7", f"a peek of catalog_ts {peek.catalog_ts} ran at frontier {state.frontier}")
        if as_of > oracle.last_ts or (peek.as_of is not None and as_of < peek.as_of):
            self.violated("I7", f"a peek of as_of {peek.as_of} ran at {as_of}, complete is {oracle.last_ts}")
        frontiers = Frontiers(state.objects, oracle, asked.views.state)
        for object_id in peek.inputs:
            if frontiers.inputs_of(object_id) is not None:
                self._check_view(asked, frontiers, object_id, as_of)

    def _check_view(self, asked: Compute, frontiers: Frontiers, view_id: str, as_of: int) -> None:
        try:
            found = asked.contents.at(view_id, frontiers, as_of)
            if Counter(found) != Counter(self._expected(asked, frontiers, view_id, as_of)):
                name = asked.fold.state.objects[view_id].name
                self.violated("view-exactness", f"{name} ({view_id}) is not its query at {as_of}")
        except TidemarkError:
            return  # too old, or rows that are gone: said elsewhere

    def _expected(self, asked: Compute, frontiers: Frontiers, object_id: str, ts: int) -> list[tuple]:
        inputs = frontiers.inputs_of(object_id)
        if inputs is None:
            return asked.contents.at(object_id, frontiers, ts)
        objects = asked.fold.state.objects
        found = {objects[i].name: self._expected(asked, frontiers, i, ts) for i in inputs}
        return queries.VIEWS[objects[object_id].name][1](found)

    def check_folds(self) -> None:
        """Whoever folded as much of a log holds the same state (I1, I5)."""
        seen: dict[tuple[str, int], tuple[str, Any]] = {}
        for process in self.everybody():
            for topic, journal in process.logs:
                state, offset = journal.position
                name, other = seen.setdefault((topic, offset), (process.name, state))
                if other is not state and other != state:
                    self.violated("fold", f"{name} and {process.name} differ at offset {offset} of {topic}")

    def everybody(self) -> Iterable[Process]:
        return [p for p in (*self.live.values(), *self.zombies) if p.alive]

    # -- making it

    def build(self) -> None:
        """The topics' first records, and one of each process."""
        for env in ("env", "register"):
            genesis = Proposal("genesis", "bootstrap", 0, self.wall_ms() - 1000, tuple(initial_updates()), self.genesis)
            self.topic(f"{env}.catalog").values.append(encode_proposal(genesis))
        catalog = self.topic("env.catalog")
        catalog.watchers.append(self._watch_catalog)
        self._watch_catalog(catalog, 0)
        skew = self._skew
        self._want("subscriber-storage", lambda n: Subscriber(self, n, skew(), STORAGE))
        self._want("subscriber-compute", lambda n: Subscriber(self, n, skew(), compute(CLUSTER)))
        self._want("storage", lambda n: Storage(self, n, skew()))
        self._want("compute", lambda n: Compute(self, n, skew()))
        for n in range(self.adapters):
            self._want(f"adapter-{n + 1}", lambda n: Adapter(self, n, skew()))
        if "set" in self.workloads:
            self._want("image-1", lambda n: LogClient(self, n, skew(), "env"))
        if {"register", "oracle"} & set(self.workloads):
            for n in range(3):
                self._want(f"register-{n + 1}", lambda n: LogClient(self, n, skew(), "register"))

    def _skew(self) -> int:
        """Most clocks are nearly right; some are not."""
        most = self.plan.skew_ms_max
        return self.rng.randint(-most, most) if self.rng.random() < 0.15 else self.rng.randint(-most, most) // 1000

    def _want(self, name: str, make: Callable[[str], Process]) -> None:
        def start() -> Process:
            process = self.live[name] = make(name)
            return process.start()

        self.wanted[name] = start
        start()

    def restart_later(self, name: str) -> None:
        """Whoever supervises it starts it again."""
        self.schedule.after(self.rng.randrange(50, 1500) * MS, None, self._restart, name)

    def _restart(self, name: str) -> None:
        if not self.live[name].alive:
            self.wanted[name]()

    def kill(self, name: str) -> None:
        self.kills += 1
        process = self.live[name]
        process.kill()
        for lost in list(getattr(process, "open_calls", {}).values()):
            self.schedule.after(self.delay(1_000_000), None, lost, ("ConnectionLost", f"{name} was killed"))

    async def setup(self) -> None:
        """What the clients need, made on a healthy world."""
        adapter = self.live["adapter-1"]
        sql = adapter.session()
        for name in queries.needed(queries.TABLES, self.workloads):
            await sql(f"CREATE TABLE {name} {queries.TABLES[name]}")
        if "sources" in self.workloads:
            self.user_topics.make(TOPIC)
            await sql(work.SOURCE)
        for name in queries.needed(queries.VIEWS, self.workloads):
            await sql(f"CREATE MATERIALIZED VIEW {name} AS {queries.VIEWS[name][0]}")
        await sql("INSERT INTO ledger_a VALUES ($1, $2)", 0, work.TOTAL)
        for workload in self.workloads:
            for statement in changing.SETUP.get(workload, ()):
                await sql(statement)

    # -- running it

    def prepare(self) -> None:
        """Everybody is up, and there is what the clients need; nobody does anything yet."""
        self.build()
        done = self._wait_for(lambda: all(p.ready for p in self.live.values()), 60 * S)
        assert done, "the world never began"
        task = self.live["adapter-1"].spawn(self.setup())
        self.live["adapter-1"].loop.run_ready()
        assert self._wait_for(task.done, 60 * S), "the setup never ended"
        task.result()
        self.fates = self.plan.fates
        for workload in self.workloads:
            make, workers = work.WORKLOADS[workload]
            for worker in range(workers):
                rng = random.Random(f"{self.seed}/{workload}/{worker}")
                self.clients.append(Worker(self, workload, make(rng, worker), len(self.clients)))
        self.schedule.after(S, None, self._every_second)

    def run(self, steps: int, progress: Callable[[int], None] | None = None) -> None:
        """Set up, run ``steps`` events with faults, heal, and let everybody look a last time."""
        self.prepare()
        for client in self.clients:
            client.begin()
        if self.plan.every_ms:
            self._next_fault()
        step, end = self.schedule.step, self.schedule.steps + steps
        schedule = self.schedule
        while schedule.steps < end:
            for _ in range(min(10_000, end - schedule.steps)):
                if not step():
                    raise AssertionError("nothing is left to do")
            if progress is not None:
                progress(schedule.steps)
            if len(self.violations) >= 1000:
                break
        self.heal()

    def advance(self, ns: int) -> None:
        """Let virtual time pass."""
        end = self.schedule.now + ns
        self.schedule.at(end, None, lambda: None)
        while self.schedule.now < end:
            self.schedule.step()

    def _wait_for(self, done: Callable[[], bool], within_ns: int) -> bool:
        end = self.schedule.now + within_ns
        while not done():
            if self.schedule.now > end or not self.schedule.step():
                return False
        return True

    def heal(self) -> None:
        """Everything works again; open operations end, last reads are made, all folds end equal."""
        self.healing = True
        self.fates = CALM
        for topic in self.topics.values():
            topic.deposed_until = min(topic.deposed_until, self.schedule.now)
            topic.attached = {}
            for reader in topic.readers:
                reader.wake()
        for process in self.everybody():
            process.cut_until = 0
            self._resume(process)
        for zombie in self.zombies:
            zombie.kill()
        for name, process in list(self.live.items()):
            if not process.alive:
                self._restart(name)
        self._wait_for(lambda: all(client.idle for client in self.clients), QUIET_NS)
        if not self._wait_for(lambda: all(p.ready and p.alive for p in self.live.values()), QUIET_NS):
            late = [name for name, p in self.live.items() if not (p.ready and p.alive)]
            self.violated("liveness", f"not ready {QUIET_NS // S} s after healing: {late}")
        last = {
            "once": [work.all_ids("table"), work.all_ids("view")],
            "set": [work.names_of(), work.image_of()],
            "sources": [work.rows_of_source()],
            "idle": [work.compare_of("idle", "idle_sums")],
            "poison": [work.compare_of("poison", f"poison_{each}") for each in ("spared", "failing", "ending")],
        }
        for client in self.clients:
            if client.idle:
                client.last = list(last.get(client.workload, ()))
                if client.workload in ("append", "bank", *work.CHANGES):
                    client.last = [next(c for c in client.calls if c.read) for _ in range(2)]
                client.begin()
        self._wait_for(lambda: all(client.idle for client in self.clients), QUIET_NS)
        self._wait_for(self._controllers_know, QUIET_NS)
        if not self._wait_for(self._views_rest, QUIET_NS):
            compute, ends = self.live["compute"], sum(name == "compute" for _, name, _ in self.stops)
            why = "does not serve" if not (compute.alive and compute.ready) else "still has views to bring up"
            last = next((error for _, name, error in reversed(self.stops) if name == "compute"), "")
            self.violated("liveness", f"compute {why} {QUIET_NS // S} s after healing; it ended {ends} times: {last}")
        for client in self.clients:
            if not client.idle:
                self.violated("liveness", f"a client of {client.workload} still waits for {client.open_call}")
        self.check_folds()
        for name in ("compute", "storage"):
            frontier = self.live[name].fold.state.frontier
            if frontier != self._truth_image.upper:
                upper = self._truth_image.upper
                self.violated("I6", f"{name} stays at frontier {frontier}, the catalog's upper is {upper}")

    def _controllers_know(self) -> bool:
        upper = self._truth_image.upper
        return all(self.live[name].fold.state.frontier == upper for name in ("compute", "storage"))

    def _views_rest(self) -> bool:
        """Whether there is a compute controller that has nothing more to do."""
        return self.live["compute"].idle()

    def _every_second(self) -> None:
        for client in self.clients:
            client.look_at_the_clock()
        self.schedule.after(S, None, self._every_second)

    # -- faults

    def _next_fault(self) -> None:
        self.schedule.after(int(self.rng.expovariate(1) * self.plan.every_ms * MS), None, self._fault)

    def _fault(self) -> None:
        if self.healing:
            return
        self.check_folds()
        self.hurt(self.rng.choice(self.kinds))
        self._next_fault()

    def hurt(self, kind: str, *target: str) -> None:
        """One fault of ``kind``, of a process or topic chosen by the seed unless it is given."""
        getattr(self, f"_do_{kind}")(*target)

    def _somebody(self) -> str | None:
        names = [name for name, process in self.live.items() if process.alive and not process.paused]
        return self.rng.choice(names) if names else None

    def _note(self, kind: str, target: str, ns: int, detail: str = "") -> None:
        now = self.schedule.now
        self.faults.append(Fault(now, now + ns, kind, target, detail))

    def _do_kill(self, name: str | None = None) -> None:
        name = name or self._somebody()
        if name is None or not self.live[name].alive:
            return
        down = self.rng.randrange(20, 2000) * MS
        self._note("kill", name, down)
        self.kill(name)
        self.schedule.after(down, None, self._restart, name)

    def _do_pause(self, name: str | None = None) -> None:
        name = name or self._somebody()
        if name is None or not self.live[name].alive:
            return
        process = self.live[name]
        ns = self.rng.randrange(20, 6000) * MS
        self._note("pause", name, ns)
        process.paused = True
        self.schedule.after(ns, None, self._resume, process)

    def _resume(self, process: Process) -> None:
        if not process.paused:
            return
        process.paused = False
        backlog, process.backlog = process.backlog, []
        for call, args in backlog:
            self.schedule.at(self.schedule.now, process, call, *args)

    def _do_replace(self) -> None:
        """A controller, subscriber or adapter is taken for dead and replaced, and comes back."""
        name = self.rng.choice(["compute", "compute", "subscriber-compute", "subscriber-storage"])
        process = self.live[name]
        if not process.alive or process.paused:
            return
        ns = self.rng.randrange(20, 4000) * MS
        self._note("replace", name, ns)
        process.paused = self.rng.random() < 0.7
        self.zombies = [p for p in self.zombies if p.alive][-2:] + [process]
        for old in self.zombies[:-2]:
            old.kill()
        self.wanted[name]()
        self.schedule.after(ns, None, self._resume, process)
        # A subscriber that is not fenced by anything lives on beside the new one for a while.
        self.schedule.after(ns + self.rng.randrange(3000) * MS, None, process.kill)

    def _do_election(self, name: str | None = None) -> None:
        name = name or self.rng.choice(sorted(self.topics))
        gap = self.rng.randrange(20, 900) * MS
        self._note("election", name, gap, "the leader died")
        self.topics[name].elect(gap, 0)

    def _do_isolate(self) -> None:
        """The leader of some topics is cut off from its followers; clients still reach it."""
        # A broker leads many partitions; data topics have too many readers' worth of noise to add anything.
        led = [n for n in sorted(self.topics) if not n.startswith("env.data") and self.rng.random() < 0.5]
        gap = self.rng.randrange(20, 900) * MS
        ns = gap + self.rng.randrange(100, 8000) * MS
        self._note("isolate", ",".join(led), ns, "the leader is deposed and still answers")
        for name in led:
            self.topics[name].elect(gap, ns)

    def _do_cut(self, name: str | None = None) -> None:
        name = name or self._somebody()
        if name is None:
            return
        ns = self.rng.randrange(50, 4000) * MS
        self._note("cut", name, ns)
        self.live[name].cut_until = self.schedule.now + ns

    def _do_clock(self) -> None:
        name = self._somebody()
        if name is None or not self.plan.skew_ms_max:
            return
        self._note("clock", name, 0)
        self.live[name].skew_ms = self._skew()

    def _do_network(self) -> None:
        ns = self.rng.randrange(20, 800) * MS
        self._note("network", "all", ns)
        self.fates = self.plan.burst
        self.schedule.after(ns, None, self._calm)

    def _calm(self) -> None:
        if not self.healing:
            self.fates = self.plan.fates

    def _do_checkpoint(self) -> None:
        """Somebody checkpoints a journal, moves ``since`` and cuts the log; not a fault, but it happens among them."""
        adapters = [p for p in self.live.values() if isinstance(p, Adapter) and p.ready and p.alive]
        if not adapters:
            return
        adapter = self.rng.choice(adapters)
        which = self.rng.choice(["catalog", "oracle", "views"])
        if which == "catalog":
            image, offset = adapter.catalog.journal.position
            self.images["env.catalog"] = offset, snapshot.to_bytes(image)
        elif which == "oracle":
            oracle = adapter.oracle
            since = oracle.state.last_ts - self.rng.choice([300_000, 3_000])
            asked = oracle._link.call(Kind.COMPACT, Compaction(max(since, 0)))
            asked.add_done_callback(lambda done: self._save_oracle(adapter) if done.exception() is None else None)
        else:
            controller = self.live["compute"]
            if controller.alive and controller.ready:
                since = max(controller.oracle.state.since, 0)
                asked = controller.views._link.call(ViewsKind.COMPACT, since)
                asked.add_done_callback(lambda done: self._save_views(controller) if done.exception() is None else None)

    def _do_day(self) -> None:
        """What a day does, at once: history goes but for a moment, journals are cut, and everybody is restarted."""
        adapters = [p for p in self.live.values() if isinstance(p, Adapter) and p.ready and p.alive]
        controller = self.live["compute"]
        if not adapters or not (controller.alive and controller.ready):
            return
        adapter = self.rng.choice(adapters)
        self._note("day", "all", 2 * S, "history goes, everybody is restarted")
        since = max(adapter.oracle.state.last_ts - self.rng.choice([100, 1000]), 0)

        def forgotten(done: Any) -> None:
            if done.exception() is None:
                self._save_oracle(adapter)
                asked = controller.views._link.call(ViewsKind.COMPACT, since)
                asked.add_done_callback(lambda done: self._save_views(controller) if done.exception() is None else None)

        adapter.oracle._link.call(Kind.COMPACT, Compaction(since)).add_done_callback(forgotten)
        self.schedule.after(self.rng.randrange(20, 1000) * MS, None, self._restart_all)

    def _restart_all(self) -> None:
        if self.healing:
            return
        for name, process in list(self.live.items()):
            if process.alive:
                self._resume(process)
                self.kill(name)
                self.schedule.after(self.rng.randrange(20, 1000) * MS, None, self._restart, name)

    def _save_oracle(self, adapter: Adapter) -> None:
        state, topic = adapter.oracle.state, "env.oracle"
        policy = CheckpointPolicy(0, self.rng.choice([100, 1000]))
        adapter.oracle._checkpoints.save_and_cut(
            state.next_offset, dump(state, topic), lambda image: load_oracle(image, topic) == state,
            adapter.oracle._journal.transport, policy,
        )  # fmt: skip

    def _save_views(self, controller: Compute) -> None:
        state, topic = controller.views.state, "env.views"
        controller.views._checkpoints.save_and_cut(
            state.next_offset, dump_views(state, topic), lambda image: load_views(image, topic) == state,
            controller.views._journal.transport, CheckpointPolicy(0, 100),
        )  # fmt: skip
