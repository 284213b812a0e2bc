"""Load generators run by storage controllers on a real broker: killed, two of them at once, at their pace."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from catalog_log.objects import Generator, Source
from catalog_log.objects.generator import FORMAT
from collection.columns import DIFF
from collection.generators.kinds import KINDS, core_of
from tests.storage.test_copied_sources import Copying, copying, sums
from tests.storage.test_storage_controller import eventually
from tests.storage.test_storage_process import start

pytestmark = pytest.mark.integration


@pytest.fixture
def world(broker: str, env_name: str) -> Iterator[Copying]:
    with copying(broker, env_name) as made:
        yield made


def generator(kind: str, table: str = "", options: dict[str, int] | None = None, **said: int) -> Generator:
    taken = {name: each.default or 0 for name, each in KINDS[kind].options.items()} | (options or {})
    return replace(Generator(kind, table, tuple(taken.items())), start_ms=int(time.time() * 1000), **said)


def source(number: int, made: Generator) -> Source:
    columns = tuple(replace(each, id=n) for n, each in enumerate(KINDS[made.kind].tables[made.table], 1))
    return Source(f"u{number}", "s1", f"s{number}", "", columns, topic="", format=FORMAT, envelope="none", errors_id="",
                  generator=made)  # fmt: skip


def pure(made: Generator, upper: int) -> list[tuple]:
    """``(row, diff)`` of the events below ``upper``."""
    table = core_of(made).changes(0, upper)
    names = [each for each in table.column_names if each != DIFF]
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return list(zip(rows, table.column(DIFF).to_pylist(), strict=True))


def prefixes(world: Copying, item: Source, made: Generator) -> None:
    """At each timestamp it has what the events below some number give, and now what all of them do."""
    wanted = pure(made, made.bound)
    changes = world.changes(item)
    assert len(changes) == len(wanted)
    stamps = sorted({ts for ts, _, _ in changes})
    there = 0
    for ts in stamps:
        now = [(row, diff) for at, row, diff in changes if at == ts]
        assert sorted(now) == sorted(wanted[there : there + len(now)]), f"of the events from {there} on"
        there += len(now)


def test_killed_and_with_a_second_beside_it_each_event_comes_once(world: Copying) -> None:
    """Three relations of one clock, and a counter that takes back; nobody stops at a good moment."""
    bids = generator("nexmark", "bid", events=3_000, micros=1_000_000, bound=9_000)
    people = replace(bids, table="person")
    counter = generator("counter", options={"max cardinality": 5}, bound=60_000)
    many = {source(n, each): each for n, each in ((1, bids), (2, people), (3, counter))}
    world.tell(*many)
    children = [start(world.bootstrap, world.env)]
    try:
        first = next(iter(many))
        eventually(lambda: world.taken(first) >= 1_000, 120)
        children[0].send_signal(signal.SIGKILL)
        children.append(start(world.bootstrap, world.env))
        eventually(lambda: world.taken(first) >= 4_000, 120)
        children.append(start(world.bootstrap, world.env))  # two of them, in each other's way
        eventually(lambda: all(world.taken(item) == made.bound for item, made in many.items()), 120)
    finally:
        for child in children:
            child.send_signal(signal.SIGKILL)
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                pipe.close()
    for item, made in many.items():
        prefixes(world, item, made)
    assert sums(world.changes(next(item for item in many if item.id == "u3"))) == {
        (n,): 1 for n in range(59_996, 60_001)
    }


def test_a_snapshot_is_visible_at_once_and_what_comes_after_is_due_by_time(world: Copying, monkeypatch) -> None:
    monkeypatch.setattr("collection.generators.core.BATCH_EVENTS_MAX", 100)
    options = {"keys": 500, "value size": 8, "upsert": 0, "include offset": 0}
    made = generator("key value", options=options, events=1_000, micros=1_000_000, first=1_000, together=1_000,
                     bound=1_400)  # fmt: skip
    item = source(1, made)
    world.tell(item)
    begun_ms = made.start_ms
    controller = world.start()
    (status,) = eventually(lambda: [s for s in controller.status()["sources"] if s["state"] == "finished"])
    assert (status["good_rows"], status["positions"], status["ends"], status["behind"]) == (
        1_400, {0: 1_400}, {0: 1_400}, 0,
    )  # fmt: skip
    assert int(time.time() * 1000) >= begun_ms + 399, "nobody was early"
    prefixes(world, item, made)
    changes = world.changes(item)
    first = min(ts for ts, _, _ in changes)
    assert sum(ts == first for ts, _, _ in changes) >= 1_000
    world.tell("u1")
    eventually(lambda: not controller.status()["sources"])
