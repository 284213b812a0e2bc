"""``python -m judge.live.worker CONFIG``: clients that do what workloads ask, and record what came of it.

The loop of ``workloads/api.py``: take an invocation, record it, perform it, record its completion.  An unknown outcome
ends a logical process: the worker opens a new client and goes on under a new number, unique over all worker processes.
A worker that cannot open a client tries again, the next time at another adapter, without having begun anything.

Beside the workers of each workload there is one who only looks: told by the parent ``hurt`` (a fault begins) and
``healed`` (none is in force), and by the workers what is unknown, it makes the reads that ``workloads/settling.py``
says are owed.  It does nothing else, so it is free when everybody else waits for an answer.

Told ``finish`` by its parent, every worker ends what it is doing and then does its workload's last reads.  A call that
outlasts all bounds is given up: its invocation stays open, its thread is left behind and another takes its place.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from judge.history import FAIL, INFO, INVOKE, OK
from judge.live.processes import Parent
from judge.live.recorder import Recorder
from judge.workloads.api import OP_TIMEOUT_S, Client, Failed, Invocation, Unknown, Workload, World
from judge.workloads.settling import AGAIN_S, Debts, Owed

REGISTRY = "judge.workloads.registry"
"""The module whose ``WORKLOADS`` maps names to workloads; perhaps also ``LONG`` and ``FAULTS``, as there."""

STUCK_S = 2 * OP_TIMEOUT_S
"""A client promises to answer within ``OP_TIMEOUT_S``; twice that means that it never will."""

REOPEN_FIRST_S, REOPEN_MAX_S = 0.05, 1.0
"""Between two tries to open a client: soon enough to see a process that serves again, too seldom to load it."""

FINAL_TRIES, FINAL_PAUSE_S = 20, 0.5
"""A last read that fails is asked again: it is what the whole history is held against."""

TICK_S = 0.25
"""How often events reach the disk and counts the parent."""

MESSAGE_CHARS_MAX = 500
"""Of an error's message in the history: enough for a person."""


def known_workloads(registry: str) -> dict[str, Workload]:
    return dict(import_module(registry).WORKLOADS)


@dataclass(frozen=True)
class Share:
    """What one worker process does of one workload."""

    workload: str
    workers: tuple[int, ...]
    """Which of the workload's workers."""
    of: int
    """How many workers the workload has over all processes."""
    processes: tuple[int, ...]
    """The first logical process of each of ``workers``."""
    rate: float | None = None
    """Operations a second that all ``of`` workers together begin at most."""
    settler: int | None = None
    """The first logical process of who looks at what is unknown; ``None``: nobody does."""


@dataclass(frozen=True)
class Config:
    """What a worker process is told, as JSON on its command line."""

    world: World
    shares: tuple[Share, ...]
    stride: int
    """From one logical process of a worker to its next: the number of all workers of all processes."""
    out: str
    seed: int
    registry: str = REGISTRY

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        fields = json.loads(text)
        world = fields.pop("world")
        world |= {name: tuple(world[name]) for name in ("dsns", "nodes")}
        shares = [
            Share(**{**share, "workers": tuple(share["workers"]), "processes": tuple(share["processes"])})
            for share in fields.pop("shares")
        ]
        return cls(World(**world), tuple(shares), **fields)


def shared_out(wanted: Mapping[str, tuple[int, float | None]], processes: int) -> tuple[list[list[Share]], int]:
    """Deal workers (workload to how many and their rate) to ``processes`` processes in turn, and give each share
    somebody who looks at what is unknown.  Pure.

    Returns each process's shares and the stride of logical processes.
    """
    dealt: list[dict[str, list[tuple[int, int]]]] = [{} for _ in range(processes)]
    number = 0
    for name, (workers, _rate) in wanted.items():
        for worker in range(workers):
            dealt[number % processes].setdefault(name, []).append((worker, number))
            number += 1
    settlers = count(number)
    shares = [
        [
            Share(
                name, tuple(w for w, _ in pairs), wanted[name][0], tuple(n for _, n in pairs), wanted[name][1],
                next(settlers),
            )
            for name, pairs in of.items()
        ]
        for of in dealt
    ]  # fmt: skip
    return shares, next(settlers)


class Worker:
    """One worker of one workload, in a thread of its own, through all its lives."""

    def __init__(
        self, workload: Workload, world: World, recorder: Recorder, finish: threading.Event,
        *, worker: int, workers: int, process: int, stride: int, invocations: Iterator[Invocation],
        interval_s: float = 0.0, life: int = 0, on_broken: Callable[[str], None] = lambda _text: None,
        on_unknown: Callable[[Invocation], None] = lambda _invocation: None,
    ) -> None:  # fmt: skip
        self.workload = workload
        self.busy_since: float | None = None
        """Since when (monotonic) it has waited for the client's code."""
        self.abandoned = False
        self._world = world
        self._recorder = recorder
        self._finish = finish
        self._numbers = (worker, workers)
        self._process = process
        self._stride = stride
        self._invocations = invocations
        self._interval_s = interval_s
        self._life = life
        self._client: Client | None = None
        self._on_broken = on_broken
        self._on_unknown = on_unknown
        self._doing: Invocation | None = None
        """What it waits for, or did last."""
        self.unread: list[str] = []
        """Last reads that nobody answered."""
        self.thread = threading.Thread(target=self._run, name=f"{workload.name}-{worker}", daemon=True)

    def succeed(self) -> Worker:
        """Give this one up, stuck as it is, and make the one that takes its place."""
        self.abandoned = True
        if self._doing is not None:
            self._on_unknown(self._doing)
        worker, workers = self._numbers
        return Worker(
            self.workload, self._world, self._recorder, self._finish, worker=worker, workers=workers,
            process=self._process, stride=self._stride, invocations=self._invocations, interval_s=self._interval_s,
            life=self._life + 1, on_broken=self._on_broken, on_unknown=self._on_unknown,
        )  # fmt: skip

    def _run(self) -> None:
        try:
            self._work()
            if not self.abandoned:
                self._last_reads()
        except Exception:  # a bug of the workload or of ours; the run must not go on as if nothing were missing
            self._on_broken(traceback.format_exc())
        finally:
            self._close()

    def _work(self) -> None:
        worker, workers = self._numbers
        # Workers of one workload begin evenly spread over one interval.
        due = time.monotonic() + self._interval_s * worker / workers
        while not self._finish.wait(max(0.0, due - time.monotonic())) and not self.abandoned:
            if self._client is None and not self._open(self._finish.wait):
                return
            # Without a rate it is always due; one that fell behind does not catch up in a burst.
            due = max(due + self._interval_s, time.monotonic() - self._interval_s) if self._interval_s else 0.0
            self._perform(next(self._invocations))

    def _last_reads(self) -> None:
        for invocation in self.workload.final(*self._numbers):
            if not self._last_read(invocation) and not self.abandoned:
                self.unread.append(f"{self.workload.name} {self._numbers[0]}: {invocation.f}")

    def _last_read(self, invocation: Invocation) -> bool:
        for _ in range(FINAL_TRIES):
            if self._client is None and not self._open(_sleep, tries=FINAL_TRIES):
                return False
            if self.abandoned or self._perform(invocation) == OK:
                return True
            time.sleep(FINAL_PAUSE_S)
        return False

    def _open(self, wait: Callable[[float], bool], tries: int | None = None) -> bool:
        """Open a client.  False if it is time to stop (``wait`` says so) or after ``tries``."""
        pause_s = REOPEN_FIRST_S
        while not self.abandoned and (tries is None or tries > 0):
            self.busy_since = time.monotonic()
            try:
                client = self.workload.open(self._world, self._numbers[0], self._life)
            except Exception:  # not there now; nothing was begun, so nothing is recorded
                self._life += 1
                tries = None if tries is None else tries - 1
                self.busy_since = None
                if wait(pause_s):
                    return False
                pause_s = min(REOPEN_MAX_S, 2 * pause_s)
                continue
            self.busy_since = None
            self._client = client
            return True
        return False

    def _perform(self, invocation: Invocation) -> str:
        """Record, call, record.  How it ended."""
        client, name = self._client, self.workload.name
        process = self._process + self._life * self._stride
        self.busy_since = time.monotonic()
        prepare = getattr(client, "prepare", None)
        if prepare is not None:
            invocation = prepare(invocation)
        self._doing = invocation
        f, gone = invocation.f, lambda: self.abandoned
        self._recorder.record(INVOKE, process, name, f, invocation.value, client.node, unless=gone)
        try:
            result = client.invoke(invocation)
        except Failed as failed:
            outcome = FAIL
            self._recorder.record(FAIL, process, name, f, None, client.node, (failed.code, _short(failed)), unless=gone)
        except Exception as error:
            outcome = INFO
            code = error.code if isinstance(error, Unknown) else getattr(error, "sqlstate", None)
            said = (code or type(error).__name__, _short(error))
            self._recorder.record(INFO, process, name, f, None, client.node, said, unless=gone)
        else:
            outcome = OK
            self._recorder.record(OK, process, name, f, result, client.node, unless=gone)
        if outcome == INFO and not self.abandoned:
            self._close()
            self._life += 1
            self._on_unknown(invocation)
        self.busy_since = None
        return outcome

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                client.close()
            except Exception:  # noqa: S110 (a connection in an unknown state may fail to say goodbye)
                pass


def _sleep(pause_s: float) -> bool:
    time.sleep(pause_s)
    return False


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:MESSAGE_CHARS_MAX]


def _nobody_looks(_unknown: Invocation) -> None:
    """Where a share has nobody for it."""


class Settling:
    """What one workload owes in this process, for those who do and the one who looks.  Any thread."""

    def __init__(self, workload: Workload) -> None:
        self._debts = Debts(workload.settling)
        self._changed = threading.Condition()
        self._over = False

    def unknown(self, invocation: Invocation) -> None:
        with self._changed:
            self._debts.unknown(invocation)
            self._changed.notify_all()

    def hurt(self) -> None:
        with self._changed:
            self._debts.hurt()

    def healed(self) -> None:
        with self._changed:
            self._debts.healed()
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody looks any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def due(self) -> Owed | None:
        """What is owed now."""
        with self._changed:
            return self._debts.due(time.monotonic())

    def wait(self) -> Owed | None:
        """What is owed, as soon as anything is; ``None`` once it has ended."""
        with self._changed:
            while not self._over:
                now = time.monotonic()
                owed = self._debts.due(now)
                if owed is not None:
                    return owed
                # No bound where nothing is owed: it is a thread of its own, and whoever ends the crew says so.
                soonest = self._debts.next_s()
                self._changed.wait(None if soonest is None else soonest - now)
            return None

    def told(self, owed: Owed, answered: bool) -> None:
        with self._changed:
            self._debts.told(owed, answered, time.monotonic())


class Settler(Worker):
    """Looks at what is owed, each time through a client of its own making: one that outlived a fault may be broken."""

    def __init__(
        self, workload: Workload, world: World, recorder: Recorder, finish: threading.Event, settling: Settling,
        *, process: int, stride: int, life: int = 0, on_broken: Callable[[str], None] = lambda _text: None,
    ) -> None:  # fmt: skip
        super().__init__(
            workload, world, recorder, finish, worker=process, workers=stride, process=process, stride=stride,
            invocations=iter(()), life=life, on_broken=on_broken, on_unknown=settling.unknown,
        )  # fmt: skip
        self._settling = settling

    @property
    def hangs(self) -> bool:
        """Whether it waits for the answer to a read (a request that is sent again is none, and may yet be executed)."""
        doing = self._doing
        return self.busy_since is not None and doing is not None and not self.workload.settling(doing)

    def succeed(self) -> Settler:
        self.abandoned = True
        return Settler(
            self.workload, self._world, self._recorder, self._finish, self._settling, process=self._process,
            stride=self._stride, life=self._life + 1, on_broken=self._on_broken,
        )  # fmt: skip

    def _work(self) -> None:
        while not self.abandoned and (owed := self._settling.wait()) is not None:
            if self._client is None and not self._open(self._finish.wait):
                return
            answered = self._perform(owed.read) == OK
            self._settling.told(owed, answered)
            if not answered or self._settling.due() is None:
                self._close()
                self._life += 1
            if not answered:
                self._finish.wait(AGAIN_S)

    def _last_reads(self) -> None:
        """The others do them."""


class Crew:
    """All workers of one process."""

    def __init__(self, config: Config, workloads: Mapping[str, Workload], finish: threading.Event) -> None:
        self.recorder = Recorder(Path(config.out))
        self.broken: list[str] = []
        self.stuck = 0
        self._finish = finish
        self._settling: list[Settling] = []
        self._workers: list[Worker] = []
        for share in config.shares:
            workload = workloads[share.workload]
            on_unknown: Callable[[Invocation], None] = _nobody_looks
            if share.settler is not None:
                settling = Settling(workload)
                on_unknown = settling.unknown
                self._settling.append(settling)
                self._workers.append(Settler(
                    workload, config.world, self.recorder, finish, settling, process=share.settler,
                    stride=config.stride, on_broken=self.broken.append,
                ))  # fmt: skip
            for worker, process in zip(share.workers, share.processes, strict=True):
                rng = random.Random(f"{config.seed}/{share.workload}/{worker}")
                self._workers.append(Worker(
                    workload, config.world, self.recorder, finish, worker=worker, workers=share.of, process=process,
                    stride=config.stride, invocations=workload.invocations(rng, worker, share.of),
                    interval_s=share.of / share.rate if share.rate else 0.0, on_broken=self.broken.append,
                    on_unknown=on_unknown,
                ))  # fmt: skip

    def start(self) -> None:
        for worker in self._workers:
            worker.thread.start()

    def tend(self) -> None:
        """Flush, and replace who is stuck; called now and then."""
        self.recorder.flush()
        if self._finish.is_set():
            for settling in self._settling:
                settling.end()
        now = time.monotonic()
        for place, worker in enumerate(self._workers):
            since = worker.busy_since
            if since is not None and now - since > STUCK_S:
                self.stuck += 1
                self._workers[place] = worker.succeed()
                self._workers[place].thread.start()

    def hurt(self) -> None:
        """A fault begins."""
        for settling in self._settling:
            settling.hurt()

    def healed(self) -> None:
        """No fault is in force any more.  Whoever still waits for the answer to a look from before is given up: it may
        hang for as long as an outcome may stay unsettled, and it would say nothing about what is owed now."""
        for settling in self._settling:
            settling.healed()
        for place, worker in enumerate(self._workers):
            if isinstance(worker, Settler) and worker.hangs:
                self._workers[place] = worker.succeed()
                self._workers[place].thread.start()

    def unread(self) -> list[str]:
        return [text for worker in self._workers for text in worker.unread]

    def alive(self) -> bool:
        return any(worker.thread.is_alive() for worker in self._workers)

    def wait(self, timeout_s: float) -> bool:
        """Wait until all workers are done, at most so long; whether they are."""
        deadline = time.monotonic() + timeout_s
        for worker in self._workers:
            worker.thread.join(max(0.0, deadline - time.monotonic()))
        return not self.alive()


def set_up(config: Config, workloads: Mapping[str, Workload]) -> None:
    """Create what the workloads need, on a healthy cluster, before anybody starts."""
    for share in config.shares:
        workloads[share.workload].setup(config.world)


def main(argv: Sequence[str]) -> int:
    mode, text = argv
    config = Config.from_json(text)
    workloads: Mapping[str, Any] = known_workloads(config.registry)
    if mode == "setup":
        Parent(lambda: None).say(event="started")
        set_up(config, workloads)
        print(json.dumps({"event": "done"}), flush=True)
        os._exit(0)
    crew: list[Crew] = []
    parent = Parent(lambda: [made.recorder.flush() for made in crew])
    finish = parent.word("finish")
    crew.append(Crew(config, workloads, finish))
    crew[0].start()
    parent.say(event="started")
    hurt, healed = parent.word("hurt"), parent.word("healed")
    done = False
    while not done:
        # Said both within one tick, they are taken in this order: then it is looked in vain, and again after the next.
        for word, act in ((hurt, crew[0].hurt), (healed, crew[0].healed)):
            if word.is_set():
                word.clear()
                act()
        # Before it is told to finish, the word itself is what to wait for; after that, the workers' ends.
        done = crew[0].wait(TICK_S) if finish.is_set() else finish.wait(TICK_S) and False
        crew[0].tend()
        parent.say(counts=crew[0].recorder.counts(), stuck=crew[0].stuck)
        if crew[0].broken:
            parent.say(event="broken", error=crew[0].broken[0])
            print(crew[0].broken[0], file=sys.stderr)
            return 1
    crew[0].recorder.close()
    parent.say(event="done", counts=crew[0].recorder.counts(), stuck=crew[0].stuck,
               unread=crew[0].unread())  # fmt: skip
    # What clients share in this process is not theirs to close; with nothing left to record it may just end.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
