"""Disks that are slow or full: each broker's data on a small filesystem of its own, its syncs through a shim.

A broker with a full disk ends by itself ("a stopped process beats a wrong one"); healing is making room and starting
it again.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from journal.errors import Unavailable
from judge.live import shim
from judge.live.brokers import KafkaCluster
from judge.live.clock import replace_text
from judge.live.cluster import HEAL_TIMEOUT_S, Injected

SIZE = 1 << 30
"""Bytes of a broker's filesystem.  It is kept in memory, of which only what is written counts: half an hour of the
judge's load is some hundreds of MB."""

FILLS_MAX, FILL_SLACK = 20, 64 << 10
"""A filesystem cannot be made smaller than what is in it, which grows while one looks: each further try leaves so many
bytes more.  A broker under the judge's load writes less than that while one looks, and soon all of them."""


class SmallDisk:
    """A filesystem in memory at ``path``."""

    def __init__(self, path: Path, size: int = SIZE) -> None:
        self.path, self.size = path, size
        path.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "judge-disk", str(path))

    def fill(self) -> int:
        """Take all the room there is, at once; how many bytes that was.

        By making the filesystem as small as what is in it.  To write its rest full took two seconds of a core from
        everybody else, in which nobody could write because the disk was *being filled*.
        """
        for number in range(FILLS_MAX):
            found = os.statvfs(self.path)
            left = (found.f_blocks - found.f_bfree) * found.f_frsize + number * FILL_SLACK
            try:
                self._resize(left)
            except Unavailable:
                if number == FILLS_MAX - 1:
                    raise
            else:
                return self.size - left
        raise AssertionError("unreachable: the last try returns or raises")

    def relieve(self) -> None:
        self._resize(self.size)

    def _resize(self, size: int) -> None:
        # A size of 0 would be none at all.
        _run("mount", "-o", f"remount,size={max(size, 1)}", str(self.path))

    def close(self) -> None:
        # Lazily: a process that is still ending may hold files open.
        with contextlib.suppress(Unavailable):
            _run("umount", "-l", str(self.path))


class SlowSyncs:
    """A file for each broker that says how long its syncs take.  ``start_as`` makes the broker read it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._library = shim.compiled("fsync")
        directory.mkdir(parents=True, exist_ok=True)

    def start_as(self, name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        return argv, shim.preloaded(env, self._library) | {"TIDEMARK_FSYNC_DELAY": str(self._directory / name)}

    def delay(self, name: str, ms: int) -> None:
        replace_text(self._directory / name, str(ms))


class SlowFsync:
    """Every sync of a broker takes long.  Its log is replicated and not synced, but what it knows of the cluster is."""

    name = "slow-fsync"
    hold_s = (3.0, 10.0)

    def __init__(self, syncs: SlowSyncs, hosts: Sequence[str], healed: Callable[[float], None]) -> None:
        self._syncs = syncs
        self._hosts = list(hosts)
        self._healed = healed

    def targets(self) -> Sequence[str]:
        return self._hosts

    def start(self, target: str, rng: random.Random) -> Injected:
        ms = rng.randint(50, 800)
        self._syncs.delay(target, ms)

        def heal() -> None:
            self._syncs.delay(target, 0)
            self._healed(HEAL_TIMEOUT_S)

        return Injected(heal, f"{ms} ms")


class FullDisk:
    """A broker's disk is full; it fails to write, and usually ends."""

    name = "full-disk"
    hold_s = (3.0, 8.0)

    def __init__(self, cluster: KafkaCluster, disks: dict[str, SmallDisk], detail: Callable[[str], str]) -> None:
        self._cluster = cluster
        self._disks = disks
        self._detail = detail

    def targets(self) -> Sequence[str]:
        return list(self._disks)

    def start(self, target: str, rng: random.Random) -> Injected:
        detail = self._detail(target)
        taken = self._disks[target].fill()

        def heal() -> None:
            self._disks[target].relieve()
            # One that lives has taken its log directory for failed and never tries again: it must start anew.
            if self._cluster.alive(target):
                self._cluster.kill(target)
            self._cluster.start(target)
            self._cluster.wait_in_sync(HEAL_TIMEOUT_S)

        return Injected(heal, f"{taken >> 20} MB taken {detail}".strip())


def _run(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise Unavailable(f"{' '.join(argv)}: {done.stderr.strip()}")
