"""``python -m adapter`` as a process: ready line, password, clean stop, and the ways in which it cannot start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from catalog_log.bootstrap import create_environment
from embedded.ports import free_ports
from journal.names import TopicNames
from journal.process import TRY_AGAIN

STOPS_IN_S = 30
"""A stop is bounded by the server's grace and by closing the logs; a busy machine is slower than both."""


@contextmanager
def adapter(*arguments: str, **environment: str) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-m", "adapter", "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen) -> str:
    """The address of the ready line."""
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)["address"]


def dsn(address: str, **more: str) -> str:
    host, port = address.split(":")
    given = {"host": host, "port": port, "user": "tester", "dbname": "tidemark", **more}
    return " ".join(f"{k}={v}" for k, v in given.items())


@pytest.fixture(scope="module")
def environment(broker: str) -> tuple[str, str, str, str]:
    """The arguments that name an environment of this module's own."""
    names = TopicNames(f"wire-{uuid.uuid4().hex[:8]}")
    create_environment(broker, names)
    return "--kafka", broker, "--env", names.env


@pytest.mark.integration
def test_it_serves_and_stops(environment):
    with adapter(*environment, TIDEMARK_PASSWORD="s3cret") as process:
        address = ready(process)
        with psycopg.connect(dsn(address, password="s3cret"), autocommit=True) as c:
            assert c.execute("select 1").fetchone() == (1,)
            c.execute("create table served (a int)")
            with pytest.raises(psycopg.errors.DuplicateTable):
                c.execute("create table served (a int)")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=STOPS_IN_S) == 0
            with pytest.raises(psycopg.OperationalError):
                c.execute("select 1")
    few = ("--no-ddl-topic", "--max-connections", "1")
    with adapter(*environment, *few) as another, psycopg.connect(dsn(ready(another))) as c:
        with pytest.raises(psycopg.errors.UndefinedTable):
            c.execute("select * from never")
        c.rollback()
        c.execute("explain select * from served")
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(c.info.dsn)


@pytest.mark.integration
def test_it_says_why_it_cannot_listen(environment):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with adapter(*environment, "--port", str(port)) as process:
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"cannot listen on 127.0.0.1:{port}" in errors


@pytest.mark.slow
def test_it_says_that_there_is_no_broker():
    (port,) = free_ports(1)
    with adapter("--kafka", f"127.0.0.1:{port}") as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == TRY_AGAIN
    assert errors.splitlines()[-1].startswith("adapter: ")
