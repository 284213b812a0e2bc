"""A store that is away, full or slow while rows are sealed, merged and collected: what was settled is there afterwards,
at every timestamp that may be read, and who reads meanwhile is refused and never told anything wrong."""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controllers.storage import failing, sealed_files, sealing
from controllers.storage import sealer as module
from journal.errors import Unavailable
from segments import store as stores
from tests.storage.sealer_world import WAITS, World, sealed, vacuumed


@contextmanager
def away(world: World) -> Iterator[None]:
    """As a disk that is not mounted: what is written in its place meanwhile is under it afterwards, where nobody
    looks."""
    root, aside = world.path / "store", world.path / "aside"
    root.rename(aside)
    try:
        yield
    finally:
        if root.exists():
            root.rename(world.path / f"under-{random.random()}")
        aside.rename(root)


@contextmanager
def full(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[None]:
    """Of its disk there is room for ``after`` more files and a piece of the next one."""
    fsync, left = os.fsync, [after]

    def no_room(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(stores.os, "fsync", no_room)
        yield


def test_what_is_sealed_while_its_disk_is_not_mounted_is_not_lost_when_it_is_again(world: World) -> None:
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealer = world.sealer()
    assert sealed(world, sealer).net == 4
    for n in range(4, 8):
        world.insert("u1", (n, n, 1))
    with away(world):
        assert sealed(world, sealer).net == 4 and "could not be written" in sealer.status()["failing"]["u1"]
        with pytest.raises(Unavailable) as refused:
            world.read("u1", world.oracle.state.last_ts)
        assert refused.value.sqlstate == "58030"
        world.passes(WAITS.grace_s + 1)
        sealer.look()
    world.check("u1")
    world.passes(failing.AFTER_FAILURE_S)
    assert sealed(world, sealer).net == 8
    world.check("u1")


def test_the_first_file_of_all_makes_its_place(world: World) -> None:
    world.insert("u1", *((n, n, 1) for n in range(4)))
    assert not (world.path / "store").exists()
    assert sealed(world, world.sealer()).net == 4
    world.check("u1")


def test_a_disk_that_is_full_is_left_as_it_was_and_sealed_to_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        world.insert("u1", (n, n, 1))
    sealer = world.sealer()
    with full(monkeypatch, 0):
        assert not sealed(world, sealer).files
        assert "No space left" in sealer.status()["failing"]["u1"]
        world.check("u1")
    assert not [each.path for each in world.store.files()], "nor is a piece of a file left"
    world.passes(failing.AFTER_FAILURE_S)
    assert sealed(world, sealer).net == 4
    world.check("u1")


def live(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> Counter:
    """Random rows, seals, merges, cuts and collections; every other time the store is in trouble meanwhile.  How often
    something was not done, by what ailed it."""
    rng = random.Random(seed)
    monkeypatch.setattr(sealing, "FILE_ROWS", 12)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 12)
    sealer, refused = world.sealer(rows=3), Counter()

    def work() -> None:
        if rng.random() < 0.3:
            sealer.vacuum(module.Asked(("u1",), rng.random() < 0.5))
            sealer._answer(sealer._asked.get_nowait())
        sealer.look()

    for step in range(30):
        there = sorted(world.model["u1"][-1][1].elements())
        changes = Counter({(rng.randrange(5), rng.randrange(4)): 1 for _ in range(rng.randint(1, 6))})
        changes.update({row: -1 for row in rng.sample(there, min(len(there), 3)) if row not in changes})
        world.insert("u1", *((*row, n) for row, n in changes.items()))
        world.passes(rng.choice((0, 1, module.MOVE_EVERY_S, failing.AFTER_FAILURE_S, WAITS.grace_s, WAITS.orphaned_s)))
        before = sealer._segments.state
        match rng.choice(("well", "away", "full", "slow")) if (world.path / "store").exists() else "well":
            case "away":
                with away(world):
                    work()
                    if before.collections:
                        with pytest.raises(Unavailable):
                            world.read("u1", world.oracle.state.last_ts)
                    assert not (world.path / "store").exists(), "nobody makes a store in its place"
                refused["away"] += bool(sealer.status()["failing"])
            case "full":
                with full(monkeypatch, rng.randrange(5)):
                    work()
                    world.check("u1")
                refused["full"] += bool(sealer.status()["failing"])
            case "slow":  # for longer than files stay, and than anybody who added none may add them
                write = type(world.store).write

                def late(self, *given, write=write, **more) -> None:
                    world.passes(WAITS.orphaned_s + 1)
                    write(self, *given, **more)

                with monkeypatch.context() as patched:
                    patched.setattr(type(world.store), "write", late)
                    work()
            case _:
                work()
        if rng.random() < 0.3:
            sealer = world.sealer(rows=3)
        if step % 4 == 0:
            world.check("u1")
    world.check("u1")
    vacuumed(sealer, "u1", full=True)
    world.check("u1")
    return refused


@pytest.mark.parametrize("seed", range(2))
def test_whatever_ails_the_store_nothing_is_lost_or_doubled(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    refused = live(world, monkeypatch, seed)
    assert refused["away"] and refused["full"], refused
