"""A health check says yes to what serves, and to what does not, no and why; the environment is made once."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapter.server.server import Server
from controllers.command_topic import replication_factor
from controllers.storage.status_server import StatusServer
from fleet import environment, health
from journal import clients
from journal.errors import FatalLog, InvalidUsage, Unavailable
from journal.names import TopicNames
from subscribers.worker import app_id
from tests.adapter.world import World
from tests.finishing import finished


@contextmanager
def nobody() -> Iterator[str]:
    """An address where connections are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "TIMEOUT_S", 2.0)


@pytest.mark.parametrize("check", [health.adapter, health.broker, health.controller], ids=lambda check: check.__name__)
def test_nobody_there(check) -> None:
    with nobody() as address, pytest.raises(Unavailable, match=address):
        check(address)


def test_a_check_that_hangs_ends_itself() -> None:
    hangs = (
        "import sys, time\nfrom fleet import health\nhealth.END_S = 1\nhealth.check = lambda _: time.sleep(600)\n"
        "sys.argv[1:] = ['broker', 'b:1']\nhealth.main()"
    )
    ended = subprocess.run([sys.executable, "-c", hangs], cwd=Path(__file__).resolve().parents[2], timeout=120)
    assert ended.returncode == -signal.SIGALRM


def test_an_adapter_is_asked_a_statement() -> None:
    async def story() -> None:
        world = World()
        async with world.adapter() as a:
            for password in (None, "secret"):
                server = Server(a.executor, password=password)
                host, port = await server.start("127.0.0.1", 0)
                assert await asyncio.to_thread(health.adapter, f"{host}:{port}", password) == "answers"
                await server.stop()

    finished(story())


def test_a_controller_must_have_heard_of_the_catalog() -> None:
    status = {"controller": "storage", "catalog_frontier": 0}
    server = StatusServer("127.0.0.1", lambda: status)
    address = f"127.0.0.1:{server.port}"
    try:
        with pytest.raises(Unavailable, match="heard nothing"):
            health.controller(address)
        status["catalog_frontier"] = 7
        assert health.controller(address) == "storage at catalog frontier 7"
        status |= {"catalog_frontier": 0, "standing_by": True}
        assert health.controller(address) == "storage stands by"
    finally:
        server.shutdown()


@pytest.mark.integration
def test_a_broker_must_be_a_member_and_a_subscriber_in_its_group(broker: str, env_name: str) -> None:
    assert health.broker(broker) == "one of 1"
    elsewhere = broker.replace("127.0.0.1", "localhost")
    with pytest.raises(Unavailable, match="no member"):
        health.broker(elsewhere)
    names = TopicNames(env_name)
    with pytest.raises(Unavailable, match="it is empty"):
        health.subscriber(broker, names, "storage", frozenset({"127.0.0.1"}))
    environment.make(broker, names, 1)
    worker = clients.make_consumer(broker, **{"group.id": app_id(names, "storage")})
    try:
        assigned: list[object] = []
        worker.subscribe([names.catalog], on_assign=lambda *found: assigned.append(found))
        while not assigned:
            worker.poll(0.1)
        assert health.subscriber(broker, names, "storage", frozenset({"127.0.0.1"})).startswith("one of 1")
        with pytest.raises(Unavailable, match="nobody from here: 127.0.0.1"):
            health.subscriber(broker, names, "storage", frozenset({"10.0.0.1"}))
    finally:
        worker.close()


@pytest.mark.integration
def test_an_environment_is_made_once_and_keeps_its_copies(broker: str, env_name: str) -> None:
    names = TopicNames(env_name)
    assert environment.make(broker, names, 1)
    assert not environment.make(broker, names, 1)
    with pytest.raises(FatalLog, match="keeps 1 copies of each record, not 3"):
        environment.make(broker, names, 3)
    assert replication_factor(broker, names) == 1
    with pytest.raises(FatalLog):
        environment.make(broker, TopicNames(f"t{uuid.uuid4().hex[:8]}"), 3)


def test_a_broker_is_one_of_those_it_is_told_of() -> None:
    from fleet import broker

    given = ["--hosts", "a,b", "--cluster-id", "TidemarkFleetCluster00", "--data", "/data"]
    assert broker.member(broker.parser().parse_args(["--node", "2", *given]), Path()).bootstrap == "b:9092"
    with pytest.raises(InvalidUsage, match="no node 3"):
        broker.member(broker.parser().parse_args(["--node", "3", *given]), Path())
