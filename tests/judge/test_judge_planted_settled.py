"""Planted bugs of what is settled: the product's own sealer, store, logs and readers in one thread, on logs in memory,
with transactions of the workload ``settled``.  Sealers are killed at their steps, two are beside each other, readers
are new or have been there for long, and the checker of the workload says what they showed.

Every test prints how soon the anomaly was there (``-rP``): the figures of ``docs/planted-bugs.md``.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.storage import sealed_files, sealing
from controllers.storage import sealer as module
from controllers.storage.sealer import Sealer
from journal.errors import TidemarkError
from judge.checkers import settled
from judge.history import FAIL, OK, Op
from judge.planted.registry import BUGS
from judge.verdict import INVALID, VALID, Verdict
from judge.workloads.settled import Keys, parts_of
from segments.reader import SegmentReader
from tests.compute.test_idle_views import SPARK, contents
from tests.storage.sealer_world import WAITS, Killed, World, vacuumed
from tests.storage.test_sealer_killed import Dying, killed_at

TABLE = "u1"
LANES = 3
STEPS = 24
SEEDS_MAX = 12
STEP_NS = 1_000_000_000

KEYS, SIZES = 1_000_000, 1_000_000
"""A lane's key and a step's size are part of one number each: these tables have two columns."""


class Story:
    """A world, who changes it, and what its readers showed."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.ops: list[Op] = []
        self._keys = [Keys() for _ in range(LANES)]
        self._there: list[settled.Rows] = [{} for _ in range(LANES)]
        self._read: list[int] = []
        """Timestamps that were read at."""
        self._scratch = world.path / "stays"
        self._scratch.mkdir()
        self._stays = self._relation()
        self._lost = False
        """Whether the one who stays could not read what it holds."""
        self._feed = Feed("", world.oracle, world.views, SegmentReader(world.segments(), world.store))

    def _relation(self) -> Relation:
        return Relation(SPARK, TABLE, self.world.items[TABLE].columns, self._scratch)

    def restart(self) -> None:
        """Somebody takes the place of the one who stays; nobody does so of one who lost something."""
        if not self._lost:
            self._stays.close()
            self._stays = self._relation()

    def _note(self, process: int, f: str, value: dict, outcome: str, result: object, error=None) -> None:
        at = 2 * len(self.ops) * STEP_NS
        self.ops.append(Op(len(self.ops), process, "settled", f, value, at, at + STEP_NS, outcome, result, error))

    def change(self) -> None:
        lane = self.rng.randrange(LANES)
        keys, before = self._keys[lane], self._there[lane]
        parts = keys.placed(parts_of(self.rng))
        after = settled.applied(before, keys.step, parts)
        gone = [(k, row) for k, row in before.items() if after.get(k) != row]
        come = [(k, row) for k, row in after.items() if before.get(k) != row]
        changes = [(lane * KEYS + k, n * SIZES + size, diff) for of, diff in ((gone, -1), (come, 1))
                   for k, (n, size) in of]  # fmt: skip
        if changes:
            self.world.insert(TABLE, *changes, garbage=self.rng.random() < 0.1)
            self._follow()
        self._there[lane] = after
        self._note(lane, "change", {"table": TABLE, "lane": str(lane), "step": keys.step, "parts": parts}, OK, None)

    def _follow(self) -> None:
        """Who stays does so, as a cluster does, and holds the files that it began with.  What fails is told by its next
        look."""
        if not self._lost:
            with suppress(TidemarkError):
                self._feed.catch_up(self._stays, self.world.items[TABLE], self.world.oracle.state.last_ts)

    def look(self, ts: int | None = None, stays: bool = False) -> None:
        """Everything as of ``ts``, or as of now; by a reader that holds nothing, or by one that ``stays``."""
        value = {"table": TABLE, "at": "told" if ts is None else "past"}
        ts = self.world.oracle.state.last_ts if ts is None else ts
        try:
            found = self._of_who_stays(ts) if stays else self.world.read(TABLE, ts)
        except (TidemarkError, OSError) as error:
            self._lost = self._lost or stays
            code = error.sqlstate if isinstance(error, TidemarkError) else "XX000"
            self._note(9, "sums", value, FAIL, None, (code, str(error)))
            return
        lanes: dict[str, list[int]] = {}
        for (coded, wrote), count in found.items():
            (lane, k), (n, size) = divmod(coded, KEYS), divmod(wrote, SIZES)
            sums = lanes.setdefault(str(lane), [0] * 5)
            for place, each in enumerate((1, k, n, k * n, size)):
                sums[place] += count * each
        self._note(9, "sums" if value["at"] == "told" else "was", value, OK, {"ts": ts, "lanes": lanes})
        self._read.append(ts)

    def _of_who_stays(self, ts: int) -> Counter:
        self._feed.catch_up(self._stays, self.world.items[TABLE], ts)
        return contents(self._stays, ts)

    def look_again(self) -> None:
        """As of something that was read before, and is still told apart."""
        since = self.world.oracle.state.since_of(TABLE)
        if kept := [ts for ts in self._read if ts >= since]:
            self.look(self.rng.choice(kept))

    def files(self, sealer: Sealer) -> None:
        count = len(sealer._segments.state.sealed(TABLE).files)
        self._note(8, "files", {"table": TABLE}, OK, {"files": count})

    def close(self) -> None:
        self._stays.close()
        self._feed.close()


@contextmanager
def beside(story: Story, sealer: Sealer) -> Iterator[None]:
    """Now and then another one seals and merges just before this one says what it has done."""
    exchange = sealer._segments.exchange

    def late(asked):
        if story.rng.random() < 0.6:
            story.change()
            story.world.passes(1)
            vacuumed(story.world.sealer(rows=1), TABLE)
        return exchange(asked)

    sealer._segments.exchange = late
    try:
        yield
    finally:
        sealer._segments.__dict__.pop("exchange", None)


def live(world: World, seed: int) -> list[Op]:
    rng = random.Random(seed)
    world.create(TABLE)
    story = Story(world, rng)
    sealer = world.sealer(rows=rng.randint(2, 6))
    try:
        for step in range(STEPS):
            for _ in range(rng.randint(1, 3)):
                story.change()
            story.look(stays=rng.random() < 0.5)
            if rng.random() < 0.2:
                story.restart()
            world.passes(rng.choice((0, 1, module.MOVE_EVERY_S, WAITS.grace_s, WAITS.orphaned_s)))
            killed = rng.random() < 0.4
            if killed:
                sealer._files.store = Dying(world.path / "store", rng.randint(1, 5), rng.random() < 0.5)
            if not killed and rng.random() < 0.2:
                sealer._segments.exchange = killed_at(sealer._segments.exchange, rng.random() < 0.5)
            try:
                with beside(story, sealer) if not killed and rng.random() < 0.6 else nullcontext():
                    if rng.random() < 0.3:
                        vacuumed(sealer, TABLE, full=rng.random() < 0.5)
                    sealer.look()
            except Killed:
                sealer = world.sealer(rows=rng.randint(2, 6))
            sealer._files.store = world.store
            sealer._segments.__dict__.pop("exchange", None)
            story.files(sealer)
            story.look(stays=step % 2 == 0)
            story.look_again()
        # It is the last look that must be answered, whoever looks.
        story.look()
        if story.ops[-1].ok:
            story.look(stays=True)
    finally:
        story.close()
    return story.ops


def judged(bug: str, seed: int, monkeypatch: pytest.MonkeyPatch, path: Path) -> Verdict:
    path.mkdir()
    with BUGS[bug].apply() if bug else nullcontext():
        world = World(monkeypatch, path)
        try:
            return settled.check(live(world, seed))
        finally:
            world.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some hundred rows, which merge whenever there are two that may."""
    monkeypatch.setattr(sealing, "FILE_ROWS", 300)
    monkeypatch.setattr(sealed_files, "FILE_ROWS", 300)
    monkeypatch.setattr(sealing, "MERGE_FACTOR", 1_000)


@pytest.mark.parametrize("seed", range(1, 3))
def test_without_a_bug_every_reader_shows_what_was_there(
    small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    verdict = judged("", seed, monkeypatch, tmp_path / "world")
    assert verdict.valid == VALID, verdict.anomalies[:3]
    assert verdict.counts["past"] > 10 and verdict.counts["again"] > 5 and verdict.counts["files"], verdict.counts


@pytest.mark.parametrize("bug", [name for name, bug in BUGS.items() if bug.workload == "settled"])
def test_a_planted_bug_is_found(small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bug: str) -> None:
    begun = time.perf_counter()
    for seed in range(1, SEEDS_MAX + 1):
        verdict = judged(bug, seed, monkeypatch, tmp_path / str(seed))
        if verdict.valid == INVALID:
            kinds = ", ".join(sorted(verdict.kinds))
            first = min(min(each.ops) for each in verdict.anomalies if each.ops)
            print(f"found {bug} by settled ({kinds}): seed {seed}, op {first} of {verdict.counts['ops']}, "
                  f"{time.perf_counter() - begun:.1f} s; {verdict.anomalies[0].text[:300]}")  # fmt: skip
            return
    pytest.fail(f"nobody noticed in {SEEDS_MAX} worlds: {verdict.counts}")
