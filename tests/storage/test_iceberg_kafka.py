"""Sinks into Iceberg on a real broker: what the tables hold at each timestamp, whatever dies meanwhile."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog_log import model, records
from catalog_log.log import CatalogLog
from catalog_log.objects import Connection, Sink
from tests.rest_catalog import Catalog
from tests.storage.test_iceberg_table import through, versions
from tests.storage.test_sinks_kafka import TABLE, change, drawn_changes, process, status, written
from tests.storage.test_storage_controller import World, eventually

pytestmark = pytest.mark.integration

INTERVAL = 500


@pytest.fixture
def world(broker: str, env_name: str) -> Iterator[World]:
    found = World(broker, env_name)
    found.oracle.raise_format().result()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def catalog(world: World, tmp_path: Path) -> Iterator[Catalog]:
    with closing(Catalog(tmp_path)) as found:
        options = (("catalog type", "rest"), ("url", found.url))
        lake = Connection("u9", "s1", "lake", "", to="iceberg-catalog", options=options)
        with closing(CatalogLog.open(world.bootstrap, world.names, "test")) as log:
            log.compare_and_append(log.upper(), log.upper() + 1, [records.put(model.ITEMS, "u9", lake)]).result()
        yield found


def sink(name: str, key: tuple[int, ...] = (1,), envelope: str = "upsert") -> Sink:
    return Sink(name, "s1", name, "", relation_id="u1", connection_id="u9", into="iceberg", namespace="lake",
                table=name, interval_ms=INTERVAL, columns=((1, "id"), (2, "Name")), key=key, envelope=envelope,
                format="parquet")  # fmt: skip


def check(catalog: Catalog, name: str, history: list[tuple[int, Counter]]) -> None:
    """Each snapshot is what the changes at or below its timestamp make."""
    found = list(versions(catalog, name))
    assert all(ts % INTERVAL == 0 for ts, _ in found)
    for ts in range(found[0][0], through(catalog, name) + 1, INTERVAL):
        rows: Counter = Counter()
        for at, changes in history:
            if at <= ts:
                rows.update(changes)
        assert [held for at, held in found if at <= ts][-1] == +rows, ts


def test_it_says_how_far_it_is_and_one_that_cannot_go_on_says_why(world: World, catalog: Catalog) -> None:
    history = [(change(world, (1, "a", 1), (2, None, 1)), Counter({(1, "a"): 1, (2, None): 1}))]
    world.tell(TABLE, sink("u2"), sink("u3", (), "none"))
    controller = world.start()
    for number in range(10, 15):
        history.append((change(world, (number, "x", 1)), Counter({(number, "x"): 1})))
        last = history[-1][0]
        eventually(lambda at=last: all(written(controller, each, at) for each in ("u2", "u3")))
    told = status(controller, "u2")
    assert (told["topic"], told["state"], told["error"], told["errors"]) == ("lake.u2", "running", None, 0)
    assert told["messages"] >= 4 and told["bytes"] >= 0 and told["transactions"] > 0
    history.append((change(world, (1, "a", -1)), Counter({(1, "a"): -1})))
    failed = eventually(lambda: (found := status(controller, "u3"))["state"] == "failed" and found)
    assert failed["error"] == "a row went, which MODE APPEND has no way to say: (1, a)"
    eventually(lambda: written(controller, "u2", history[-1][0]))
    catalog.fault = lambda: "away"
    eventually(lambda: "ServiceUnavailable" in (status(controller, "u2")["error"] or ""))
    last = change(world, (20, "z", 1))
    catalog.fault = lambda: None
    eventually(lambda: written(controller, "u2", last))
    check(catalog, "u2", [*history, (last, Counter({(20, "z"): 1}))])
    world.tell("u2", "u3")
    eventually(lambda: controller.status()["sinks"] == [])


@pytest.mark.long
def test_killed_again_and_again_each_snapshot_is_right(world: World, catalog: Catalog) -> None:
    draw = random.Random(11)
    world.tell(TABLE, sink("u2"), sink("u3", ()))
    there: dict[int, str] = {}
    history: list[tuple[int, Counter]] = []

    def write(count: int) -> None:
        for _ in range(count):
            changes = drawn_changes(draw, there)
            if changes:
                diffs: Counter = Counter()
                for number, name, diff in changes:
                    diffs[number, name] += diff
                history.append((change(world, *changes), diffs))

    def far() -> list[int]:
        return [through(catalog, each) if ("lake", each) in catalog.tables else 0 for each in ("u2", "u3")]

    catalog.fault = lambda: draw.choice([None, None, None, "lost", "late"])
    write(5)
    for _ in range(5):
        child = process(world)
        # What ends its process twice before it came through is put in quarantine; two notes are of two steps.
        for at in (history[-1][0], None, None):
            than = max(far()) if at is None else at
            eventually(lambda ts=than: min(far()) > ts, 120)
        wanted = catalog.commits + draw.randint(0, 4)
        eventually(lambda at=wanted: catalog.commits >= at or write(2), 120)  # at any step of the next one
        child.send_signal(signal.SIGKILL)
        child.wait()
    catalog.fault = lambda: None
    child = process(world)
    last = history[-1][0]
    eventually(lambda: min(far()) >= last, 120)
    child.stdin.close()
    assert child.wait(30) == 0
    for name in ("u2", "u3"):
        check(catalog, name, history)
        assert len(list(versions(catalog, name))) > 5
