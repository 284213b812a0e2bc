"""The storage controller as a process: killed at any moment, tethered to its supervisor, clear when it cannot start."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from catalog_log.bootstrap import create_environment
from catalog_log.objects import ERRORS_COLUMNS, Column, Errors, Source
from collection.reader import JSON
from controllers.command_topic import open_command_topic
from controllers.commands import STORAGE, Command, Kind
from controllers.commands_log import encode
from journal import clients
from journal.names import TopicNames
from oracle.client import Oracle
from tests.runs import read_runs

pytestmark = pytest.mark.integration

COLUMNS = (Column("id", "int4", False),)


def start(bootstrap: str, env: str) -> subprocess.Popen:
    child = subprocess.Popen(
        [sys.executable, "-m", "controllers.storage", "--kafka", bootstrap, "--env", env],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TIDEMARK_PARENT_PIPE": "1", "TIDEMARK_LOG": "warning"},
    )  # fmt: skip
    readable, _, _ = select.select([child.stdout], [], [], 60)
    line = child.stdout.readline() if readable else ""
    assert line, child.stderr.read()
    assert json.loads(line)["event"] == "ready"
    return child


def end(child: subprocess.Popen) -> None:
    """Kill one that was started, and wait until it is gone."""
    child.send_signal(signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        pipe.close()


@pytest.mark.slow
def test_killed_again_and_again_it_loses_and_doubles_nothing(broker: str, env_name: str) -> None:
    names, topic = TopicNames(env_name), f"{env_name}-user"
    create_environment(broker, names)
    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        done.result(30)
    errors = Errors("u2", "s1", "s_errors", "", ERRORS_COLUMNS, source_id="u1")
    source = Source("u1", "s1", "s", "", COLUMNS, topic=topic, format="json", envelope="none", errors_id="u2")
    commands = open_command_topic(broker, names, STORAGE)
    for command in (Command(9, 0, Kind.CREATE, "u1", source), Command(9, 1, Kind.CREATE, "u2", errors),
                    Command(9, 2, Kind.ADVANCE_CATALOG_FRONTIER, frontier=10)):  # fmt: skip
        commands.append(encode(command)).result()
    commands.close()

    enough, counts = threading.Event(), [0, 0]

    def produce() -> None:
        producer = clients.make_producer(broker)
        while not enough.is_set():
            for number in range(50):
                bad = number % 10 == 9
                value = b"bad" if bad else b'{"id":%d}' % counts[0]
                producer.produce(topic, value, partition=number % 2)
                counts[bad] += 1
            producer.flush()
            enough.wait(0.005)

    producing = threading.Thread(target=produce)
    producing.start()
    oracle = Oracle.open(broker, names, "test", lambda: 0)
    try:
        for round_number in range(4):
            child = start(broker, env_name)
            before = sum(oracle.barrier().result().bindings("u1").ends().values())
            while sum(oracle.barrier().result().bindings("u1").ends().values()) < before + 100:
                time.sleep(0.01)
            time.sleep(0.05 * round_number)  # not to wait for anything: to die at different moments
            child.send_signal(signal.SIGKILL)
            child.wait()
        enough.set()
        producing.join()
        child = start(broker, env_name)
        deadline = time.monotonic() + 60
        while sum(oracle.barrier().result().bindings("u1").ends().values()) < sum(counts):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.stdin.close()
        assert child.wait(30) == 0
        assert child.stderr.read() == ""
        state = oracle.barrier().result()
        table = read_runs(broker, [b.run for b in state.bindings("u1").at(state.last_ts)], COLUMNS, JSON)
        assert sorted(table.column("id").to_pylist()) == list(range(counts[0]))
        told = read_runs(broker, [b.run for b in state.bindings("u2").at(state.last_ts)], ERRORS_COLUMNS)
        places = list(zip(told.column("partition").to_pylist(), told.column("offset").to_pylist(), strict=True))
        assert len(places) == len(set(places)) == counts[1]
    finally:
        enough.set()
        producing.join()
        oracle.close()


def test_without_an_environment_it_says_so_and_stops(broker: str, env_name: str) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "controllers.storage", "--kafka", broker, "--env", env_name],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert child.returncode == 1
    assert "does not exist" in json.loads(child.stderr.splitlines()[-1])["event"]
