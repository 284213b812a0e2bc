"""A store of settled rows that is away, full or slow, while rows are sealed to it and read from it.

What is in a store is the rows' only place once topics are cut, so none of this may lose any; what is sealed waits, and
who needs a file is refused or waits.  Nobody ends by it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from judge.live.cluster import HEAL_TIMEOUT_S, Injected, StartAs
from judge.live.disk import SlowSyncs, SmallDisk

TARGET = "store"

Serving = Callable[[str, float], None]
"""``serving(name, timeout_s)`` waits until a process answers, or raises ``HealFailed``."""

USERS = ("storage", "compute")
"""Who has a store."""


class _OfStore:
    hold_s = (5.0, 20.0)
    """A collection that could not be sealed is tried again after half a minute."""
    times_max = 3

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    def targets(self) -> Sequence[str]:
        return [TARGET]

    def served(self) -> None:
        for name in USERS:
            self._serving(name, HEAL_TIMEOUT_S)


class StoreAway(_OfStore):
    """As a disk that is not mounted: the directory is not there, and what is written in its place meanwhile is under it
    afterwards, where nobody looks."""

    name = "store-away"

    def __init__(self, root: Path, serving: Serving) -> None:
        super().__init__(serving)
        self._root = root
        self._under = count()

    def start(self, target: str, rng: random.Random) -> Injected:
        aside = self._root.with_name(f"{self._root.name}-aside")
        # Where nothing was sealed yet there is none, and nobody misses it.
        there = self._root.exists()
        if there:
            self._root.rename(aside)

        def heal() -> None:
            if aside.exists():
                if self._root.exists():
                    self._root.rename(self._root.with_name(f"{self._root.name}-under-{next(self._under)}"))
                aside.rename(self._root)
            self.served()

        return Injected(heal, "" if there else "it was not there yet")


class FullStore(_OfStore):
    """There is no room for another byte."""

    name = "store-full"

    def __init__(self, disk: SmallDisk, serving: Serving) -> None:
        super().__init__(serving)
        self._disk = disk

    def start(self, target: str, rng: random.Random) -> Injected:
        taken = self._disk.fill()

        def heal() -> None:
            self._disk.relieve()
            self.served()

        return Injected(heal, f"{taken >> 20} MB taken")


class SlowStore(_OfStore):
    """Each file takes seconds to be durable, for who seals."""

    name = "store-slow"

    def __init__(self, syncs: SlowSyncs, serving: Serving) -> None:
        super().__init__(serving)
        self._syncs = syncs

    def start(self, target: str, rng: random.Random) -> Injected:
        ms = rng.randint(500, 5_000)
        self._syncs.delay(TARGET, ms)

        def heal() -> None:
            self._syncs.delay(TARGET, 0)
            self.served()

        return Injected(heal, f"{ms} ms a sync")


def slow_for_who_seals(syncs: SlowSyncs) -> StartAs:
    """The hook that has the storage controller's syncs be as slow as :class:`SlowStore` says."""

    def start_as(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        return syncs.start_as(TARGET, argv, env) if name == "storage" else (argv, env)

    return start_as
