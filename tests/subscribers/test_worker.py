"""The Faust worker on a real broker: commands arrive, a standby takes over, it ends cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from aiokafka.consumer.fetcher import Fetcher

from catalog_log import model
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.objects import Item, Table
from catalog_log.records import put
from controllers.command_topic import open_command_topic
from controllers.commands import STORAGE, Kind
from controllers.commands_log import CommandFold, decode
from journal.api import Entry
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from subscribers import worker

pytestmark = pytest.mark.integration


class Process:
    """A worker as its supervisor runs it: stdin is the tether, stdout has the ready line."""

    def __init__(self, bootstrap: str, env: str, controller: str = STORAGE) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", "subscribers", "--kafka", bootstrap, "--env", env, "--controller", controller],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"TIDEMARK_PARENT_PIPE": "1"},
        )  # fmt: skip
        readable, _, _ = select.select([self.child.stdout], [], [], 60)
        line = self.child.stdout.readline() if readable else ""
        assert line, self.child.stderr.read()
        assert json.loads(line)["event"] == "ready"

    def end(self, how: str) -> tuple[int, str]:
        if how == "stdin":
            self.child.stdin.close()
        else:
            self.child.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        self.child.wait(timeout=30)
        return self.child.returncode, self.child.stderr.read()


@pytest.fixture
def environment(broker: str, env_name: str):
    names = TopicNames(env_name)
    create_environment(broker, names)
    catalog = CatalogLog.open(broker, names, "test")
    started: list[Process] = []

    def start() -> Process:
        started.append(Process(broker, env_name))
        return started[-1]

    try:
        yield names, catalog, start
    finally:
        for process in started:
            if process.child.poll() is None:
                process.child.kill()
                process.child.wait()
        catalog.close()


def table(number: int) -> Item:
    return Table(f"u{number}", "s1", f"t{number}", "CREATE TABLE …")


def add(catalog: CatalogLog, number: int) -> int:
    """A table in the catalog; the new upper."""
    upper = catalog.upper()
    return catalog.compare_and_append(upper, upper + 1, [put(model.ITEMS, f"u{number}", table(number))]).result().upper


def commands_through(broker: str, names: TopicNames, upper: int, timeout_s: float = 60):
    """The commands on the topic once they are closed at ``upper``, and the fold of them."""
    transport = KafkaTransport(broker, names.commands(STORAGE))
    fold, seen, closed = CommandFold(), [], threading.Event()
    errors: list[Exception] = []

    def take(entries: Sequence[Entry]) -> None:
        for entry in entries:
            fold.take(entry)
            seen.extend(decode(entry.value))
        if fold.state.frontier >= upper:
            closed.set()

    reading = transport.subscribe(0, take, errors.append)
    try:
        assert closed.wait(timeout_s), f"at {fold.state.frontier}, want {upper}; {errors}"
    finally:
        reading.close()
        transport.close()
    return seen, fold.state


def test_a_worker_feeds_its_controller_and_ends_when_told(broker: str, environment) -> None:
    names, catalog, start = environment
    add(catalog, 1)
    process = start()
    upper = add(catalog, 2)
    seen, state = commands_through(broker, names, upper)
    assert set(state.objects) == {"u1", "u2"}
    assert state.ignored == 0
    assert [c.kind for c in seen].count(Kind.CREATE) == 2
    code, log = process.end("term")
    assert code == 0
    assert [json.loads(line)["event"] for line in log.splitlines()] == ["acting"]


def test_a_worker_whose_consumer_crashed_ends_instead_of_standing_still(
    broker: str, environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As aiokafka's does that was assigned its partition anew just when something had been fetched."""
    names, catalog, _ = environment
    upper = add(catalog, 1)
    crash, stopped, ready = threading.Event(), threading.Event(), threading.Event()
    fetched = Fetcher.fetched_records

    async def crashing(self: Fetcher, *arguments, **more):
        if crash.is_set():
            raise AssertionError("it has no position")
        return await fetched(self, *arguments, **more)

    monkeypatch.setattr(Fetcher, "fetched_records", crashing)
    commands = open_command_topic(broker, names, STORAGE)
    serving = worker.run(broker, names, STORAGE, commands, 1, stopped, ready.set)
    with ThreadPoolExecutor(1) as pool, closing(commands):
        running = pool.submit(asyncio.run, serving)
        try:
            commands_through(broker, names, upper)
            crash.set()
            assert str(running.result(60)) == "it has no position" and ready.is_set()
        finally:
            stopped.set()


def test_a_standby_takes_over_and_the_commands_go_on_without_a_gap(broker: str, environment) -> None:
    names, catalog, start = environment
    first, second = start(), start()
    commands_through(broker, names, add(catalog, 1))
    first.end("kill")
    second_upper = add(catalog, 2)
    _, state = commands_through(broker, names, second_upper)
    assert set(state.objects) == {"u1", "u2"}
    assert second.end("stdin")[0] == 0
    upper = add(catalog, 3)
    third = start()
    seen, state = commands_through(broker, names, upper)
    assert set(state.objects) == {"u1", "u2", "u3"}
    assert state.ignored == 0
    assert len({(c.catalog_ts, c.ordinal) for c in seen}) == len(seen)
    assert third.end("term")[0] == 0


def test_without_an_environment_it_says_so_and_stops(broker: str, env_name: str) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "subscribers", "--kafka", broker, "--env", env_name, "--controller", STORAGE],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert child.returncode == 1
    assert "does not exist" in json.loads(child.stderr.splitlines()[-1])["event"]
