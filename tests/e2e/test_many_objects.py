"""A hundred thousand objects and a thousand materialized views, half of them idle for longer than history is kept: all
processes are killed, and everything is as before.

Small by default, so that a change to this file can be tried; the sizes that it exists for:

    TIDEMARK_OBJECTS=100000 TIDEMARK_VIEWS=1000 ./tidemark test -m long tests/e2e/test_many_objects.py
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench.objects import add_items
from catalog_log import model
from catalog_log.log import CatalogLog
from embedded.ports import free_ports
from embedded.stack import Settings, Stack, running
from journal.names import TopicNames
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle
from tests.e2e.conftest import Steps

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200)]

OBJECTS = int(os.environ.get("TIDEMARK_OBJECTS", "2000"))
VIEWS = int(os.environ.get("TIDEMARK_VIEWS", "40"))
BACK_S_MAX = 1800.0
"""Until everything serves again: the views' rows are read anew, and a busy machine has two cores for them."""

NO_HISTORY = CheckpointPolicy(retain_ms=0)
ROWS = 1_000
TOLD_EVERY_S = 1.0

STATES = "SELECT status, count(*) FROM tm_internal.view_status GROUP BY status"
BEHIND = "SELECT count(*) FROM tm_internal.frontiers WHERE object_kind = 'materialized_view' AND lag_ms > 0"
HYDRATED = "SELECT count(*) FROM tm_internal.hydration WHERE hydrated AND object_kind = 'materialized_view'"


@pytest.fixture(scope="module")
def steps() -> Steps:
    return Steps()


@pytest.fixture(scope="module")
def stack(steps: Steps, jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    port, broker_port = free_ports(2)
    settings = Settings(data=tmp_path_factory.mktemp("many"), env="many", port=port, broker_port=broker_port)
    with running(settings, steps) as started:
        yield started


def query(number: int) -> str:
    """Even ones stand over what changes, odd ones over what is idle; each has groups of its own."""
    return f"SELECT k % {number + 2} AS g, count(*) AS n FROM {('busy', 'idle')[number % 2]} GROUP BY k % {number + 2}"


def answer(number: int, rows: range) -> dict[int, int]:
    found: dict[int, int] = {}
    for k in rows:
        found[k % (number + 2)] = found.get(k % (number + 2), 0) + 1
    return found


def fill(stack: Stack, names: TopicNames, objects: int) -> None:
    """Copy the plain view ``p0`` until the catalog holds ``objects``."""
    catalog = CatalogLog.open(stack.kafka, names, "fill")
    try:
        like = next(item for _, item in catalog.image.all(model.ITEMS) if item.name == "p0")
        missing = objects - sum(1 for _ in catalog.image.all(model.ITEMS))
        add_items(catalog, missing, lambda n: replace(like, id=f"u{n}", name=f"p_{n}"))
    finally:
        catalog.close()


def forget_history(stack: Stack, names: TopicNames) -> None:
    """``since`` moves to the newest timestamp: what was idle before has been so for longer than history is kept."""
    catalog = CatalogLog.open(stack.kafka, names, "cut")
    oracle = Oracle.open(stack.kafka, names, "cut", catalog.upper)
    try:
        oracle.checkpoint(NO_HISTORY)
    finally:
        oracle.close()
        catalog.close()


def settled(stack: Stack, deadline: float) -> None:
    """Until every view is told to run, hydrated, and as far as its inputs."""
    while True:
        try:
            with psycopg.connect(stack.dsn(), autocommit=True) as client:
                states = dict(client.execute(STATES).fetchall())
                held = client.execute(HYDRATED).fetchone()[0]
                behind = client.execute(BEHIND).fetchone()[0]
        except psycopg.OperationalError as error:
            states, held, behind = {str(error): 0}, 0, VIEWS
        print(f"{deadline - time.monotonic():.0f} s are left: {states}, {held} hydrated, {behind} behind", flush=True)
        if states.get("running", 0) == held == VIEWS and not behind:
            return
        assert time.monotonic() < deadline, (states, held, behind)
        time.sleep(TOLD_EVERY_S)


def read_all(stack: Stack, busy: range, idle: range) -> None:
    with psycopg.connect(stack.dsn(), autocommit=True) as client:
        for number in range(VIEWS):
            found = dict(client.execute(f"SELECT g, n FROM v{number}").fetchall())
            assert found == answer(number, (busy, idle)[number % 2]), number


def test_everything_comes_back_when_all_are_killed_among_many_objects(stack: Stack, steps: Steps) -> None:
    names = TopicNames("many")
    with psycopg.connect(stack.dsn(), autocommit=True) as client:
        for table in ("busy", "idle"):
            client.execute(f"CREATE TABLE {table} (k int)")
            client.execute(f"INSERT INTO {table} SELECT i FROM generate_series(0, {ROWS - 1}) AS g(i)")
        client.execute("CREATE VIEW p0 AS SELECT k FROM idle")
        began = time.monotonic()
        for number in range(VIEWS):
            client.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query(number)}")
            client.execute(f"CREATE INDEX ON v{number} (g)")
        print(f"{VIEWS} views: {time.monotonic() - began:.0f} s", flush=True)
        fill(stack, names, OBJECTS)
        settled(stack, time.monotonic() + BACK_S_MAX)
        print(f"made and hydrated: {time.monotonic() - began:.0f} s", flush=True)
        client.execute(f"INSERT INTO busy SELECT i FROM generate_series({ROWS}, {2 * ROWS - 1}) AS g(i)")
        assert len(client.execute("SELECT k FROM busy").fetchall()) == 2 * ROWS
    forget_history(stack, names)

    pids = stack.supervisor.pids()
    seen = {name: steps.count(name, "serves again") for name in pids}
    began = time.monotonic()
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    for name in pids:
        assert steps.wait_for_another(name, "serves again", seen[name], BACK_S_MAX), f"{name} did not come back"
        print(f"{name} serves again after {time.monotonic() - began:.0f} s", flush=True)
    settled(stack, began + BACK_S_MAX)
    print(f"all is as before after {time.monotonic() - began:.0f} s", flush=True)
    read_all(stack, range(2 * ROWS), range(ROWS))

    # What was idle for longer than history is kept goes on with its inputs.
    with psycopg.connect(stack.dsn(), autocommit=True) as client:
        client.execute(f"INSERT INTO idle SELECT i FROM generate_series({ROWS}, {ROWS + 9}) AS g(i)")
        client.execute("INSERT INTO busy VALUES (%s)", (2 * ROWS,))
    began = time.monotonic()
    settled(stack, began + BACK_S_MAX)  # half of them are taken into memory only now
    print(f"what was idle is as far as its inputs after {time.monotonic() - began:.0f} s", flush=True)
    read_all(stack, range(2 * ROWS + 1), range(ROWS + 10))
