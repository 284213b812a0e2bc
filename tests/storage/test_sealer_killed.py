"""Sealers that are killed at each step of the store and of the log, and planted bugs that these worlds find."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from collection.columns import DIFF
from controllers.compute import feed
from controllers.storage import clustering as apart
from controllers.storage import mover, retiring, rewriting, sealed_files, sealing
from controllers.storage import sealer as module
from controllers.storage.sealed_files import SealedFiles
from controllers.storage.sealer import Sealer
from controllers.storage.sharing import Sharing
from journal.errors import Conflict, TidemarkError
from oracle import fold
from segments.model import place_of
from segments.store import DirectoryStore
from tests.storage.sealer_world import WAITS, Killed, World, vacuumed


class Dying(DirectoryStore):
    """Ends the process before or after it did what it was asked for the ``n``-th time."""

    def __init__(self, root: Path, after: int, did: bool) -> None:
        super().__init__(root)
        self.after, self.did = after, did

    def _step(self, do) -> None:
        self.after -= 1
        if self.after == 0 and not self.did:
            raise Killed
        do()
        if self.after == 0:
            raise Killed

    def write(self, path: str, data: bytes, begun: bool = False) -> None:
        self._step(lambda: super(Dying, self).write(path, data, begun))

    def delete(self, path: str) -> None:
        self._step(lambda: super(Dying, self).delete(path))


def moved_before(world: World, retire):
    """A mover exchanges what it wrote just when the log of segments knows the rows, and the oracle's does not yet."""

    def retired(offsets):
        world.exchange_moved()
        return retire(offsets)

    return retired


CARRIED = 600
"""Two small batches."""


def killed_at(exchange, before: bool):
    """Ends the process before the log has the exchange, or before anybody was told."""

    def killed(each):
        if not before:
            exchange(each).result(10)
        raise Killed

    return killed


def live(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> int:
    """Random rows, seals, merges, cuts and collections, with a kill at each step of the store and of the log, read by
    readers that know nothing; how often it was killed.  Every other seed has topics of three partitions."""
    rng, asking = random.Random(seed), random.Random(seed)
    world.topics.partitions = (1, 3)[seed % 2]
    monkeypatch.setattr(sealing, "FILE_ROWS", 12)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 12)
    monkeypatch.setattr(apart, "CROWD", 1 + seed % 3)
    monkeypatch.setattr(retiring, "RUNS_LEFT", 1)
    world.create("u2")
    if seed % 3:
        world.cluster("u2", *(("v",), ("k", "v"))[seed % 2])
    sealer = world.sealer(rows=rng.randint(2, 8), carried=CARRIED)
    kills = shared = 0
    for step in range(40):
        name = rng.choice(("u1", "u2"))
        there = sorted(world.model[name][-1][1].elements())
        changes = Counter()
        for _ in range(rng.randint(1, 9)):
            if there and rng.random() < 0.5:
                changes[rng.choice(there)] = -1
            else:
                changes[rng.randrange(4), rng.randrange(3)] = 1
        made = [(*row, n) for row, n in changes.items()]
        if asking.random() < 0.5:
            world.carry(name, *made)
        else:
            world.insert(name, *made, garbage=rng.random() < 0.1)
        if asking.random() < 0.15:
            world.write_moved(name, asking.randint(1, 3))
        if step % 10 == 5:
            world.keep("u2", rng.choice((0, 50, WAITS.grace_s + 10)))
        if step % 15 == 3:
            world.write_late(name, 9, step)
        elif step % 15 == 12:
            with suppress(Conflict):  # it comes too late
                world.commit_late()
        world.passes(rng.choice((0, 1, module.MOVE_EVERY_S, WAITS.grace_s, WAITS.orphaned_s)))
        if rng.random() < 0.4:
            sealer._files.store = Dying(world.path / "store", rng.randint(1, 6), rng.random() < 0.5)
        if rng.random() < 0.2:
            sealer._segments.exchange = killed_at(sealer._segments.exchange, rng.random() < 0.5)
        elif asking.random() < 0.2:
            world.oracle.retire = killed_at(world.oracle.retire, asking.random() < 0.5)
        elif asking.random() < 0.5:
            world.oracle.retire = moved_before(world, world.oracle.retire)
        try:
            if asking.random() < 0.3:
                vacuumed(sealer, *asking.sample(("u1", "u2"), asking.randint(0, 2)), full=asking.random() < 0.5)
            sealer.look()
        except Killed:
            kills += 1
        shared += sealer.status()["shared"]
        sealer = world.sealer(rows=rng.randint(2, 8), carried=CARRIED) if rng.random() < 0.5 else sealer
        sealer._files.store = world.store
        sealer._segments.__dict__.pop("exchange", None)
        world.oracle.__dict__.pop("retire", None)
        if asking.random() < 0.5:
            world.exchange_moved()
        if step % 4 == 0:
            world.check("u1")
            world.check("u2")
    world.check("u1")
    world.check("u2")
    assert sum(world.topics.starts.values()) and sealer._segments.state.stats.admitted > 10
    assert shared
    return kills


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_killed_nothing_is_lost_or_doubled(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert live(world, monkeypatch, seed) >= 3


PIECES = Sealer._until_stopped


def seals_what_is_new(self: Sealer, found) -> list:
    return sealing.old(found.bound, found.sealed, 1 << 60)


def keeps_insertions(changes: pa.Table) -> pa.Table:
    merged = CONSOLIDATE(changes)
    return merged.filter(pc.greater(merged.column(DIFF), 0))


def forgets_the_last_piece(self: Sealer, tables):
    found = list(PIECES(self, tables))
    yield from found[:-1] or found


def cuts_all(bound, _lowest, partition, _gaps) -> int:
    return bound.coverage[partition][-1][1]


def cuts_gaps(bound, lowest, partition, _gaps) -> int:
    return CUT_BELOW(bound, lowest, partition, True)


def cuts_as_the_first(bound, sealed, topic, gaps) -> dict[int, int]:
    """Of every partition."""
    lowest = sealing.needed(bound, sealed, topic)
    return dict.fromkeys(CUTS(bound, sealed, topic, gaps), CUT_BELOW(bound, lowest, (topic, 0), gaps))


def moves_what_is_old(bound, places, coverage, of_base):
    return MOVE(bound, places, coverage)


def never(_state) -> bool:
    return False


def removes_all(self: SealedFiles, path: str) -> bool:
    self.store.delete(place_of(path).file)
    return True


def says_that_it_is_done(self: Sharing, exchanges) -> list[bool]:
    return [True for _ in exchanges]


CUT_BELOW, CUTS, CONSOLIDATE = sealing.cut_below, sealing.cuts, sealed_files.consolidate
MOVE = fold.move

BUGS = {
    "what is new is sealed": [(Sealer, "_ready", seals_what_is_new)],
    "a seal forgets a run": [(Sealer, "_until_stopped", forgets_the_last_piece)],
    "a merge forgets what takes rows away": [
        (each, "consolidate", keeps_insertions) for each in (sealed_files, rewriting)
    ],
    "a topic is cut above what is in files": [(sealing, "cut_below", cuts_all)],
    "a gap is cut though its writer lives": [(sealing, "cut_below", cuts_gaps)],
    "all partitions are cut where the first may be": [(sealing, "cuts", cuts_as_the_first)],
    "what is sealed is read from its topic, too": [(feed, "unsealed", lambda runs, _sealed: runs)],
    "what is in files by its number gets another name": [(fold, "move", moves_what_is_old), (mover, "_stay", never)],
    "a shared file is removed with one of its parts": [(SealedFiles, "remove", removes_all)],
    "what is carried goes before it is in files": [(Sharing, "_exchanged", says_that_it_is_done)],
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bug: str) -> None:
    """By the worlds above, in one of the first of them."""
    for owner, name, wrong in BUGS[bug]:
        monkeypatch.setattr(owner, name, wrong)
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        world = World(monkeypatch, tmp_path / str(seed))
        world.create("u1")
        try:
            live(world, monkeypatch, seed)
        except (AssertionError, TidemarkError):
            return
        finally:
            world.close()
    pytest.fail("nobody noticed")
