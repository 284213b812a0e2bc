"""Load generators run by storage controllers on a real broker: killed, two of them at once, at their pace."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from catalog_log.objects import Generator, Source
from catalog_log.objects.generator import FORMAT
from collection.columns import DIFF
from collection.generators.kinds import KINDS, OFFSET_COLUMNS, core_of, parts_of
from controllers.at_work import open_at_work
from controllers.commands import STORAGE
from oracle.checkpoints import CheckpointPolicy
from tests.storage.test_copied_sources import Copying, copying, sums
from tests.storage.test_storage_controller import eventually
from tests.storage.test_storage_process import end, start

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


def lives(
    world: Copying, first: Source, half: int, whole: Callable[[], bool], timeout_s: float, killed=lambda: None
) -> None:
    """A controller that is killed, one after it, and a third beside that one once ``half`` of ``first`` is taken;
    ``killed`` is called before the second."""
    children = [start(world.bootstrap, world.env)]
    try:
        eventually(lambda: world.taken(first) >= 1_000, 120)
        children[0].send_signal(signal.SIGKILL)
        killed()
        children.append(start(world.bootstrap, world.env))
        eventually(lambda: world.taken(first) >= half, 120)
        children.append(start(world.bootstrap, world.env))  # two of them, in each other's way
        eventually(whole, timeout_s)
    finally:
        for child in children:
            end(child)


def test_killed_and_with_a_second_beside_it_each_event_comes_once(world: Copying) -> None:
    """Three relations of one clock, and a counter that takes back; nobody stops at a good moment."""
    bids = generator("nexmark", "bid", events=3_000, micros=1_000_000, bound=9_000)
    people = replace(bids, table="person")
    counter = generator("counter", options={"max cardinality": 5}, bound=60_000)
    many = {source(n, each): each for n, each in ((1, bids), (2, people), (3, counter))}
    world.tell(*many)
    first = next(iter(many))
    lives(world, first, 4_000, lambda: all(world.taken(item) == made.bound for item, made in many.items()), 120)
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


def test_who_ends_while_what_all_events_are_made_of_is_made_blames_no_source(world: Copying, monkeypatch) -> None:
    """Of TPCH that takes ten seconds, in which two kills had put the source into quarantine."""
    begun, go_on = threading.Event(), threading.Event()

    def ready() -> None:
        begun.set()
        assert go_on.wait(120)

    monkeypatch.setitem(KINDS, "counter", replace(KINDS["counter"], ready=ready))
    made = generator("counter", options={"max cardinality": 5}, events=1_000, micros=1_000_000, bound=100)
    item = source(1, made)
    world.tell(item)
    world.start()
    try:
        assert begun.wait(60)
        next_life = open_at_work(world.bootstrap, world.names, STORAGE, "the next").begin()
        try:
            assert not next_life.notes.deaths
        finally:
            next_life.close()
    finally:
        go_on.set()
    eventually(lambda: world.taken(item) == 100)


# -- of one generator


def group(number: int, kind: str, *tables: str, options: dict[str, int] | None = None, **said: int) -> list[Source]:
    """The whole, and a source for each of ``tables``."""
    made = generator(kind, options=options, **said)
    members = tuple((table, f"u{n}") for n, table in enumerate(tables, number + 1))
    whole = replace(source(number, replace(made, table=tables[0])), columns=OFFSET_COLUMNS,
                    generator=replace(made, members=members))  # fmt: skip
    parts = [source(n, replace(made, table=table, group=whole.id)) for n, table in enumerate(tables, number + 1)]
    return [whole, *parts]


def by_timestamp(changes: list[tuple]) -> dict[int, list[tuple]]:
    found: dict[int, list[tuple]] = {}
    for ts, row, diff in changes:
        found.setdefault(ts, []).append((row, diff))
    return found


def agree(world: Copying, whole: Source, parts: list[Source]) -> int:
    """At each timestamp each part has what the events below the whole's number give, and nothing else.  How many
    timestamps there were."""
    steps = by_timestamp(world.changes(whole))
    changed = {part.id: by_timestamp(world.changes(part)) for part in parts}
    cores = {source_id: core for source_id, _, core in parts_of(whole.generator)}
    assert all(set(each) <= set(steps) for each in changed.values()), "nothing changes without the whole"
    lower = 0
    for ts in sorted(steps):
        upper = max(row[0] for row, diff in steps[ts] if diff > 0)
        assert sorted(steps[ts]) == sorted([((upper,), 1)] + ([((lower,), -1)] if lower else []))
        for part in parts:
            table = cores[part.id].changes(lower, upper)
            rows = zip(*(each.to_pylist() for each in table.columns[:-1]), strict=True)
            wanted = list(zip(rows, table.column(DIFF).to_pylist(), strict=True))
            assert sorted(changed[part.id].get(ts, [])) == sorted(wanted), f"{part.name} of {lower} to {upper}"
        lower = upper
    assert lower == whole.generator.bound
    return len(steps)


def test_parts_killed_and_beside_a_second_have_the_rows_of_the_same_events(world: Copying) -> None:
    """No timestamp shows a bid whose auction is not there, and an order has its lines, whoever dies when."""
    tables = ("organizations", "users", "accounts", "auctions", "bids")
    house = group(1, "auction", *tables, options={"event interval": 1_000_000}, events=400, micros=1_000_000,
                  bound=12_000)  # fmt: skip
    goods = group(11, "tpch", "orders", "lineitem", "part", options={"scale factor": 1}, events=20, micros=1_000_000,
                  first=1_890, together=1_890, bound=2_500)  # fmt: skip
    world.tell(*house)
    # Those of TPCH take all of a controller's life until it is killed before there is one, so they come behind that.
    lives(world, house[0], 6_000, lambda: (world.taken(house[0]), world.taken(goods[0])) == (12_000, 2_500), 240,
          lambda: world.tell(*goods))  # fmt: skip
    assert agree(world, house[0], house[1:]) > 5
    assert agree(world, goods[0], goods[1:]) >= 2
    auctions, bids = (by_timestamp(world.changes(each)) for each in house[4:6])
    known: set[int] = set()
    for ts in sorted({*auctions, *bids}):
        known |= {row[0] for row, _ in auctions.get(ts, [])}
        assert {row[2] for row, _ in bids.get(ts, [])} <= known
    first = min(by_timestamp(world.changes(goods[1])))
    assert len(by_timestamp(world.changes(goods[1]))[first]) >= 1_500, "all of the snapshot at once"


def test_parts_go_with_the_whole(world: Copying) -> None:
    whole, *parts = group(1, "auction", "auctions", "bids", options={"event interval": 1_000_000}, events=500,
                          micros=1_000_000)  # fmt: skip
    world.tell(whole, *parts)
    controller = world.start()
    eventually(lambda: world.taken(whole) > 100)
    (status,) = controller.status()["sources"]
    assert status["id"] == "u1" and status["state"] == "running"
    world.tell("u3", "u2", "u1")
    eventually(lambda: not controller.status()["sources"])

    def forgotten() -> bool:
        # Until then somebody may have read them before; and again, for what was bound last may be heard of behind it.
        world.oracle.checkpoint(CheckpointPolicy(retain_ms=0))
        return not {"u1", "u2", "u3", whole.progress_id} & set(world.oracle.barrier().result().bound)

    eventually(forgotten)
