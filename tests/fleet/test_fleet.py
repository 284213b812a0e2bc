"""The fleet of ``compose.yaml`` for real: DDL, a source and a view over it; a broker, an adapter and all of it stopped.

Needs a Docker engine with Compose 2; skips with the reason where none answers.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import yaml

from embedded.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).with_name("in_the_network.py").read_text()
BROKERS = "broker-1:9092,broker-2:9092,broker-3:9092"

ANSWER_S = 60.0
"""For what is awaited by asking: a busy machine of two cores has Spark and three brokers to run."""

GAP_MAX_S = 15.0
"""Without an acknowledged INSERT around the loss of a leader: 1 to 2 s where each process has a core, several times
that where fifteen containers share two."""

ENDED_WELL = {0, 143}
"""By itself, or by the SIGTERM that Java and HAProxy pass on; 137 is one that had to be killed."""


def no_engine() -> str | None:
    """Why there is nothing to run it on, or ``None``."""
    import docker
    from docker.errors import DockerException

    if shutil.which("docker") is None:
        return "there is no docker command"
    try:
        docker.from_env(timeout=10).ping()
    except DockerException as error:
        return f"no Docker engine answers: {str(error).splitlines()[0][:120]}"
    version = subprocess.run(["docker", "compose", "version", "--short"], capture_output=True, text=True, check=False)
    if version.returncode or not version.stdout.strip().lstrip("v").startswith(("2", "3", "4", "5")):
        return "docker has no Compose 2"
    return None


class Fleet:
    """The started fleet, by ``docker compose``'s own commands."""

    def __init__(self, composed, port: int) -> None:
        self._composed = composed
        self.dsn = f"postgresql://tidemark@127.0.0.1:{port}/tidemark?connect_timeout=10"

    def compose(self, *arguments: str) -> str:
        command = [*self._composed.docker_compose_command(), *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}"
        return done.stdout

    def inside(self, *arguments: str) -> str:
        out, _, _ = self._composed.exec_in_container(
            ["python", "-P", "-c", INSIDE, BROKERS, *arguments], service_name="storage"
        )
        return out.strip()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def ids(self, service: str) -> list[str]:
        return self.compose("ps", "-q", service).split()

    def exit_codes(self) -> dict[str, int]:
        return {each.Name: each.ExitCode for each in self._composed.get_containers(include_all=True)}


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    if reason := no_engine():
        pytest.skip(reason)
    from testcontainers.compose import DockerCompose

    [port] = free_ports(1)
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", f"tidemark-test-{uuid.uuid4().hex[:8]}")
    monkeypatch.setenv("TIDEMARK_PORT", str(port))
    composed = DockerCompose(ROOT, build=True)
    try:
        composed.start()
        yield Fleet(composed, port)
    except BaseException:
        out, _ = composed.get_logs()
        print(out[-20_000:])
        raise
    finally:
        composed.stop()


def until(ask: Callable[[], object], wanted: object) -> None:
    """Ask until the answer is what is wanted: rows of a source come when they come."""
    deadline = time.monotonic() + ANSWER_S
    while (found := ask()) != wanted:
        assert time.monotonic() < deadline, f"{found}, not {wanted}"
        time.sleep(0.1)


class Writer:
    """Inserts one number after the other through the one port until told to stop; a new session where one is lost."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._enough = threading.Event()
        self.acknowledged: list[tuple[float, int]] = []
        self.unknown: set[int] = set()
        self.refused: set[int] = set()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        session: psycopg.Connection | None = None
        number = 0
        while not self._enough.is_set():
            number += 1
            try:
                session = session or self._fleet.connect()
            except psycopg.OperationalError:
                time.sleep(0.1)
                continue
            try:
                session.execute("INSERT INTO numbers VALUES (%s)", (number,))
                self.acknowledged.append((time.monotonic(), number))
            except psycopg.OperationalError as error:
                # Class 08 and a connection that is gone: nobody knows.  Everything else is a refusal.
                known = error.sqlstate is not None and not error.sqlstate.startswith("08")
                (self.refused if known else self.unknown).add(number)
                session.close()
                session = None
        if session is not None:
            session.close()

    def wait_for(self, more: int) -> None:
        before, deadline = len(self.acknowledged), time.monotonic() + ANSWER_S
        while len(self.acknowledged) < before + more:
            assert time.monotonic() < deadline, f"{len(self.acknowledged) - before} of {more} were acknowledged"
            assert self._thread.is_alive()
            time.sleep(0.02)

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()

    def gap_s(self) -> float:
        times = [at for at, _ in self.acknowledged]
        return max(b - a for a, b in zip(times, times[1:], strict=False))

    def judge(self, found: list[int]) -> None:
        """Each acknowledged number once, no refused one, and of the others at most one each."""
        assert len(found) == len(set(found))
        assert {number for _, number in self.acknowledged} <= set(found)
        assert not self.refused & set(found)
        assert set(found) <= {number for _, number in self.acknowledged} | self.unknown


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_fleet_serves_loses_a_broker_and_an_adapter_stops_and_begins_again(fleet: Fleet) -> None:
    fleet.inside("make", "orders")
    fleet.inside("put", "orders", "0", "300")
    with fleet.connect() as session:
        session.execute("CREATE TABLE customers (name text NOT NULL, country text)")
        session.execute("INSERT INTO customers VALUES ('ada', 'UK'), ('grace', 'US')")
        session.execute("CREATE TABLE numbers (n int8 NOT NULL)")
        session.execute(
            "CREATE SOURCE orders (id int8 NOT NULL, customer text, n int8) FROM KAFKA TOPIC 'orders' FORMAT JSON"
        )
        session.execute("""CREATE MATERIALIZED VIEW by_country AS SELECT c.country, count(*) AS orders, sum(o.n) AS n
                           FROM orders o JOIN customers c ON c.name = o.customer GROUP BY c.country""")
        session.execute("CREATE INDEX ON by_country (country)")

    def by_country() -> list[tuple]:
        with fleet.connect() as session:
            return session.execute("SELECT country, orders, n::int8 FROM by_country ORDER BY country").fetchall()

    def expected(total: int) -> list[tuple]:
        us = range(0, total, 3)
        uk = [number for number in range(total) if number % 3]
        return [("UK", len(uk), sum(uk)), ("US", len(us), sum(us))]

    until(by_country, expected(300))

    # The broker that everybody needs most is lost, and comes back.
    lost = fleet.inside("leader", "tidemark.oracle")
    writer = Writer(fleet)
    try:
        writer.wait_for(20)
        fleet.compose("stop", lost)
        writer.wait_for(50)
        fleet.inside("put", "orders", "300", "600")
        until(by_country, expected(600))
        with fleet.connect() as session:
            session.execute("CREATE TABLE made_with_two (a int4)")
        fleet.compose("up", "--detach", "--wait")
        # One of the two behind the port goes: whoever had a session there opens another.
        fleet_adapter = fleet.ids("adapter")[0]
        subprocess.run(["docker", "stop", fleet_adapter], check=True, capture_output=True)
        writer.wait_for(50)
    finally:
        writer.stop()
    print(f"longest gap {writer.gap_s():.1f} s, {len(writer.acknowledged)} acknowledged, {len(writer.unknown)} unknown")
    assert writer.gap_s() < GAP_MAX_S

    def numbers() -> list[int]:
        with fleet.connect() as session:
            return [n for (n,) in session.execute("SELECT n FROM numbers").fetchall()]

    writer.judge(numbers())

    # All of it ends by itself, and what was there is there again.
    began = time.monotonic()
    fleet.compose("stop")
    print(f"stopped in {time.monotonic() - began:.1f} s")
    codes = fleet.exit_codes()
    assert len(codes) == sum(
        service.get("deploy", {}).get("replicas", 1)
        for service in yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
    )
    assert {name: code for name, code in codes.items() if code not in ENDED_WELL} == {}
    began = time.monotonic()
    fleet.compose("up", "--detach", "--wait")
    print(f"serves again after {time.monotonic() - began:.1f} s")
    until(by_country, expected(600))
    writer.judge(numbers())
    fleet.inside("put", "orders", "600", "700")
    until(by_country, expected(700))
