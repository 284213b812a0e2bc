"""Planted bugs of keys, upserts and sequences: two adapters in one process on logs in memory, asked over the wire by
the workloads' own clients.  With the bug the checker says invalid, without it valid, and nothing but contention (or a
restart, or a late answer) is needed.

Every test prints how soon the anomaly was there (``-rP``): the figures of ``docs/planted-bugs.md``.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext

import pytest

from adapter.server.server import Server
from judge.checkers import claims, counters, draws, keys
from judge.history import INFO, Op
from judge.planted.patches import ANSWER_S
from judge.planted.registry import BUGS
from judge.planted.small import PROCESSES_APART, History, first_seen, perform
from judge.verdict import INVALID, VALID, Verdict
from judge.workloads.api import Workload
from judge.workloads.api import World as Cluster
from judge.workloads.draws import Draws
from judge.workloads.keys import Keys
from judge.workloads.upserts import Upserts
from tests.adapter.test_uniques import Indexed

CLIENTS = 4
ROUNDS_MAX = 5
"""Rounds in which two clients may meet where that takes luck, each with the next seed."""

START_S = 30.0
"""For an adapter in memory to serve, or to be gone: some milliseconds on an idle machine."""


class Adapters:
    """On a loop of their own, so that clients that block are served."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._world = Indexed()
        self._stops: dict[int, tuple[asyncio.Event, Future[None]]] = {}
        self.ports: dict[int, int] = {}
        self.late: Callable[[], bool] = lambda: False
        """Whether the next commit is answered late."""

    def __enter__(self) -> Adapters:
        self._thread = threading.Thread(target=self._loop.run_forever, name="adapters")
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            for number in [*self._stops]:
                self.stop(number)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_S)
            self._loop.close()

    def start(self, number: int) -> None:
        serves: Future[int] = Future()
        stop = asyncio.Event()
        gone = asyncio.run_coroutine_threadsafe(self._serve(number, serves, stop), self._loop)
        gone.add_done_callback(lambda ended: serves.done() or serves.set_exception(ended.exception() or EOFError()))
        self._stops[number] = stop, gone
        self.ports[number] = serves.result(START_S)

    def stop(self, number: int) -> None:
        """As by SIGTERM: what it has in reserve is given back."""
        stop, gone = self._stops.pop(number)
        self._loop.call_soon_threadsafe(stop.set)
        gone.result(START_S)

    def cluster(self) -> Cluster:
        dsns = tuple(f"postgresql://tidemark@127.0.0.1:{port}/tidemark" for port in self.ports.values())
        return Cluster("", "env", dsns, tuple(f"adapter-{number}" for number in self.ports))

    async def _serve(self, number: int, serves: Future[int], stop: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            adapter = await stack.enter_async_context(self._world.adapter(f"adapter-{number}"))
            commit = adapter.oracle.commit_async

            async def commit_async(*asked: object) -> object:
                answer = await commit(*asked)
                if self.late():
                    await asyncio.sleep(ANSWER_S * 1.5)
                return answer

            adapter.oracle.commit_async = commit_async
            port = await stack.enter_async_context(_listening(adapter))
            serves.set_result(port)
            await stop.wait()


@asynccontextmanager
async def _listening(adapter) -> AsyncIterator[int]:
    server = Server(adapter.executor)
    _, port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.stop()


@contextmanager
def two_adapters(bug: str) -> Iterator[Adapters]:
    with BUGS[bug].apply() if bug else nullcontext(), Adapters() as adapters:
        adapters.start(1)
        adapters.start(2)
        yield adapters


def work(history: History, workload: Workload, cluster: Cluster, each: int, seed: int, turn: int = 0) -> None:
    """``each`` invocations of each client, then the last reads.  A client of another ``turn`` is another one."""

    def one(worker: int) -> None:
        number = turn * CLIENTS + worker
        life, client = 0, workload.open(cluster, number, 0)
        stream = workload.invocations(random.Random(f"{seed}-{number}"), number, CLIENTS)
        for invocation in [*(next(stream) for _ in range(each)), *workload.final(number, CLIENTS)]:
            if perform(history, workload.name, number + life * PROCESSES_APART, client, invocation) == INFO:
                client.close()
                life += 1
                client = workload.open(cluster, number, life)
        client.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(one, range(CLIENTS)))


def found_in_rounds(
    bug: str, one_round: Callable[[Adapters, int], list[Op]], *checks: Callable[[Sequence[Op]], Verdict]
) -> None:
    """With the bug up to ``ROUNDS_MAX`` rounds until all of ``checks`` say invalid; without it one, which is valid."""
    for seed in range(1, ROUNDS_MAX + 1):
        with two_adapters(bug) as adapters:
            ops = one_round(adapters, seed)
        verdicts = [check(ops) for check in checks]
        if not bug or all(verdict.valid == INVALID for verdict in verdicts):
            break
        print(f"{bug} was missed in round {seed}: {[verdict.counts for verdict in verdicts]}")
    for verdict in verdicts:
        told = "; ".join(each.text for each in verdict.anomalies[:3])
        assert verdict.valid == (INVALID if bug else VALID), (verdict.counts, verdict.reason, told)
        if bug:
            print(f"found {bug} by {verdict.checker}: {first_seen(ops, verdict.anomalies)}; {told[:300]}")
    strange = [op for op in ops if op.failed and op.error[0] not in ("23505", "40001")]
    assert bug or not strange, strange[0]


def counted(ops: Sequence[Op]) -> Verdict:
    return counters.check(ops, "upserts")


def contending(workload: Workload, each: int) -> Callable[[Adapters, int], list[Op]]:
    def one_round(adapters: Adapters, seed: int) -> list[Op]:
        history = History()
        workload.setup(adapters.cluster())
        work(history, workload, adapters.cluster(), each, seed)
        return history.ops()

    return one_round


@pytest.mark.parametrize("bug", ["", "keys_looked_up"])
def test_a_key_that_is_only_looked_up_has_two_rows(bug: str) -> None:
    found_in_rounds(bug, contending(Keys(), 40), keys.check)


@pytest.mark.parametrize("bug", ["", "upsert_unhinged"])
def test_an_upsert_that_hangs_on_nothing_loses_counts_and_has_two_winners(bug: str) -> None:
    found_in_rounds(bug, contending(Upserts(), 40), counted, claims.check)


@pytest.mark.parametrize("bug", ["", "unanswered_again"])
def test_an_upsert_that_is_made_again_when_nobody_answers_counts_twice(bug: str) -> None:
    """Each tenth commit is answered late.  It has happened all the same."""

    def late_at_times(adapters: Adapters, seed: int) -> list[Op]:
        rng, history, upserts = random.Random(seed), History(), Upserts()
        upserts.setup(adapters.cluster())
        adapters.late = lambda: rng.random() < 0.1
        work(history, upserts, adapters.cluster(), 20, seed)
        return history.ops()

    found_in_rounds(bug, late_at_times, counted)


@pytest.mark.parametrize("bug", ["", "reserve_given_back"])
def test_a_reserve_that_is_given_back_behind_anothers_is_given_twice(bug: str) -> None:
    """Both adapters draw; the one that is behind is stopped, another one starts, and all draw on."""

    def restarted(adapters: Adapters, seed: int) -> list[Op]:
        history, drawing = History(), Draws()
        drawing.setup(adapters.cluster())
        work(history, drawing, adapters.cluster(), 25, seed)
        newest = {op.node: op.result["xs"][0] for op in history.ops() if op.ok and op.f == "nextval"}
        behind = int(min(newest, key=newest.__getitem__).removeprefix("adapter-"))
        adapters.stop(behind)
        del adapters.ports[behind]
        adapters.start(3)
        work(history, drawing, adapters.cluster(), 25, seed, turn=1)
        return history.ops()

    found_in_rounds(bug, restarted, draws.check)
