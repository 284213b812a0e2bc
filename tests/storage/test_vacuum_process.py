"""VACUUM asked of a storage controller that is killed at it: what it did stays, and the next one does the rest."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from catalog_log import model, records
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.model import NODES
from catalog_log.objects import numbered
from catalog_log.objects.item import Column
from collection.binding import Binding
from collection.columns import DIFF
from collection.writer import CollectionWriter
from controllers.node_status import STORAGE_NODE, NodeStatus, act
from controllers.nodes import location
from controllers.vacuum import Asked, decode_won, encode_asked
from journal.errors import TidemarkError
from journal.names import TopicNames
from oracle.client import Oracle
from oracle.model import CommitPart
from segments.log import SegmentsLog
from tests.objects import made
from tests.storage.test_sealing_kafka import held
from tests.storage.test_storage_controller import eventually

pytestmark = pytest.mark.integration

COLUMNS = numbered((Column("id", "int4"), Column("t", "text")))
TABLE = made("table", "u1", "t", columns=COLUMNS)
ROWS = 300


class Environment:
    """A table and what is in it, and one storage controller after another that seals what is older than a second."""

    def __init__(self, bootstrap: str, env: str, path: Path) -> None:
        self.bootstrap, self.env, self.names, self.path = bootstrap, env, TopicNames(env), path
        create_environment(bootstrap, self.names)
        self.catalog = CatalogLog.open(bootstrap, self.names, "test")
        upper = self.catalog.upper()
        self.catalog.compare_and_append(upper, upper + 1, [records.put(model.ITEMS, TABLE.id, TABLE)]).result()
        self.oracle = Oracle.open(bootstrap, self.names, "test", self.catalog.upper)
        self.writer = CollectionWriter(bootstrap, self.names)
        self.rows: Counter = Counter()

    def change(self, rng: random.Random) -> None:
        """Some rows go, and others come."""
        gone = rng.sample(sorted(self.rows), min(len(self.rows), ROWS // 3))
        come = [(rng.randrange(1 << 30), "x") for _ in range(ROWS)]
        changes = Counter({**dict.fromkeys(gone, -1), **dict.fromkeys(come, 1)})
        table = pa.table(
            [pa.array([k for k, _ in changes], pa.int32()), pa.array([t for _, t in changes]),
             pa.array([*changes.values()], pa.int64())], names=["id", "t", DIFF],
        )  # fmt: skip
        attempt = str(rng.random())
        runs = self.writer.write(TABLE.id, COLUMNS, table, attempt).result(30)
        self.oracle.commit(CommitPart(attempt, tuple(Binding(TABLE.id, run) for run in runs))).result(30)
        self.rows.update(changes)
        self.rows = +self.rows

    def start(self) -> tuple[subprocess.Popen, str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "controllers.storage", "--kafka", self.bootstrap, "--env", self.env, "--retain", "1",
             "--grace", "1", "--store", self.path.as_uri(), "--seal-rows", "1000000000"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | {"TIDEMARK_PARENT_PIPE": "1", "TIDEMARK_LOG": "warning"},
        )  # fmt: skip
        readable, _, _ = select.select([child.stdout], [], [], 60)
        assert readable
        return child, json.loads(child.stdout.readline())["address"]

    def settle(self) -> None:
        """Once all that was written is old enough: time goes on in the controller alone."""
        settled = self.oracle.state.last_ts + 1500
        self.oracle.when(lambda state: state.last_ts >= settled, 30).result(30)

    def loose(self) -> int:
        """Changes in files that cancel out."""
        with closing(SegmentsLog.open(self.bootstrap, self.names, "reader")) as log:
            sealed = log.state.sealed(TABLE.id)
            return sealed.changes - sealed.net

    def files(self) -> int:
        return len([*self.path.rglob("*.parquet")])

    def close(self) -> None:
        self.writer.close()
        self.oracle.close()
        self.catalog.close()


def test_killed_while_it_vacuums_it_loses_and_doubles_nothing(broker: str, env_name: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    store = tmp_path / "store"
    store.mkdir()
    asked = encode_asked(Asked((TABLE.id,), full=True, timeout_s=60))
    with closing(Environment(broker, env_name, store)) as world, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            world.change(rng)
        child, address = world.start()
        world.settle()
        with closing(flight.FlightClient(location(address))) as client:
            vacuum = pool.submit(act, client, "vacuum", 90.0, asked)
            eventually(lambda: world.files())
            child.send_signal(signal.SIGKILL)
            child.wait(30)
            with suppress(flight.FlightError):  # it may have been faster than the kill
                vacuum.result(90)
        assert held(world, TABLE, store) == world.rows
        world.change(rng)
        child, address = world.start()
        try:
            world.settle()
            with closing(flight.FlightClient(location(address))) as client:
                won = decode_won(act(client, "vacuum", 90.0, asked))
                assert not won.failing and not won.late and won.store and won.files[1] >= 1
                assert held(world, TABLE, store) == world.rows
                assert world.loose() == 0, "what went is written nowhere any more"
                with pytest.raises(flight.FlightError, match="08P01"):
                    act(client, "vacuum", 30.0, b"nonsense")
            # As an adapter asks, by the catalog.
            image = world.catalog.when_upper(world.oracle.barrier().result().catalog_upper, 30).result()
            assert image.get(NODES, STORAGE_NODE) is not None
            with closing(NodeStatus()) as nodes:
                assert nodes.vacuum(image, Asked(("u9",))).files == (0, 0)
                child.send_signal(signal.SIGKILL)
                child.wait(30)
                with pytest.raises(TidemarkError, match="does not answer"):
                    nodes.vacuum(image, Asked())
        finally:
            child.kill()
