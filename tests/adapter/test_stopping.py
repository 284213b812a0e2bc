"""A stop is bounded, whatever stands still: the clock, a broker, a commit; and nobody is told more than is known."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from adapter.ddl_topic.topic import DdlTopic
from adapter.execute.build import open_executor
from adapter.server.server import Limits, Server
from catalog_log.bootstrap import create_environment
from embedded.child import GRACE_S
from journal import process
from journal.memory import MemoryTransport
from journal.names import TopicNames
from judge.live import shim
from judge.live.clock import HOUR_MS, Clocks
from tests.adapter.world import World
from tests.finishing import finished

POLLS_BEGIN_S = 1.0
"""Until every poll in the process began under the present clock, which tells nobody: four of the longest (0.25 s)."""

QUICK = Limits(stop_grace_s=0.2, stop_settle_s=0.2)


@contextmanager
def adapter(*arguments: str, **environment: str) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "adapter", "--port", "0", *arguments]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.mark.integration
@pytest.mark.skipif(shim.unavailable() is not None, reason=str(shim.unavailable()))
def test_it_stops_though_its_clock_was_set_back(broker: str, env_name: str, tmp_path: Path) -> None:
    """librdkafka waits by the wall clock: set back by an hour, a poll of a tenth of a second takes an hour."""
    create_environment(broker, TopicNames(env_name))
    clocks = Clocks(tmp_path)
    clocks.shift("it", 0)
    _, environment = clocks.start_as("it", [], {})
    with adapter("--kafka", broker, "--env", env_name, **environment) as started:
        address = json.loads(started.stdout.readline())["address"]
        with psycopg.connect(f"postgresql://tester@{address}/tidemark", autocommit=True) as client:
            client.execute("create table t (a int)")
            clocks.shift("it", HOUR_MS)
            time.sleep(POLLS_BEGIN_S)
            clocks.shift("it", 0)
            started.send_signal(signal.SIGTERM)
            assert started.wait(timeout=GRACE_S) == 0
            with pytest.raises(psycopg.errors.AdminShutdown):
                client.execute("select 1")
        assert "was left behind" in started.stderr.read(), "the clock hurt nothing, so this shows nothing"


def test_it_stops_while_it_waits_for_a_broker_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        with adapter("--kafka", f"127.0.0.1:{mute.getsockname()[1]}") as started:
            mute.settimeout(60)
            with mute.accept()[0]:
                started.send_signal(signal.SIGTERM)
                assert started.wait(timeout=5) == 0


@pytest.mark.integration
def test_closing_needs_none_of_the_threads_that_may_hang(broker: str, env_name: str) -> None:
    names, never = TopicNames(env_name), threading.Event()
    create_environment(broker, names)

    async def story() -> None:
        hanging = []
        try:
            async with open_executor(broker, names, "a") as executor:
                ddl = DdlTopic(broker, names, executor)
                ddl.start()
                hanging += [asyncio.ensure_future(asyncio.to_thread(never.wait)) for _ in range(100)]
                await asyncio.sleep(0)
                await ddl.close()
        finally:
            never.set()
        await asyncio.gather(*hanging)

    finished(story())


class Silent(MemoryTransport):
    """Takes records and says nothing: they may be in the log or not."""

    def append(self, value: bytes) -> Future[int]:
        return Future()


def test_a_statement_whose_end_nobody_knows_is_told_so() -> None:
    async def story() -> None:
        world = World()
        async with world.adapter(catalog_transport=Silent(world.catalog_topic)) as a:
            server = Server(a.executor, limits=QUICK)
            host, port = await server.start("127.0.0.1", 0)
            client = await psycopg.AsyncConnection.connect(f"postgresql://tester@{host}:{port}/tidemark")
            await client.set_autocommit(True)
            sent = asyncio.Event()
            monitored = a.catalog.compare_and_append

            def compare_and_append(*given):
                sent.set()
                return monitored(*given)

            a.catalog.compare_and_append = compare_and_append
            asked = asyncio.ensure_future(client.execute("create table t (a int)"))
            await sent.wait()
            begun = time.monotonic()
            await server.stop()
            assert time.monotonic() - begun < 3
            with pytest.raises(psycopg.errors.TransactionResolutionUnknown, match="shutting down"):
                await asked
            with pytest.raises(psycopg.OperationalError):
                await client.execute("select 1")
            assert server.sessions == 0
            await client.close()

    finished(story())


def test_what_cannot_be_closed_is_left_behind_and_named(caplog: pytest.LogCaptureFixture) -> None:
    never, closed = threading.Event(), threading.Event()

    def refuses() -> None:
        raise OSError("it is broken")

    try:
        left = process.close_all({"stuck": never.wait, "fine": closed.set, "broken": refuses}, 0.2)
    finally:
        never.set()
    assert left == ["stuck"]
    assert closed.is_set()
    assert [(r.getMessage(), r.what) for r in caplog.records if r.name == "journal.process"] == [
        ("could not be closed", "broken"),
        ("was left behind", "stuck"),
    ]
    assert process.close_all({"fine": closed.set}, 60.0) == [], "nobody waits for longer than it takes"


INSIDE_THE_EVENT = """
import os, signal, sys
from journal import process
stopped = process.stop_event()
with stopped._cond:  # where wait() and set() are for some microseconds
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
sys.exit(0 if stopped.wait(10) else 1)
"""


def test_a_signal_may_come_while_the_main_thread_is_inside_the_event() -> None:
    done = subprocess.run([sys.executable, "-c", INSIDE_THE_EVENT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


WAITS_AT_ITS_EXIT = """
import threading
from concurrent.futures import ThreadPoolExecutor
from journal import process
ThreadPoolExecutor(1).submit(threading.Event().wait)
print("said", end="")
process.leave(3)
"""


def test_leaving_joins_no_thread_and_loses_no_output() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS_AT_ITS_EXIT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "said")
