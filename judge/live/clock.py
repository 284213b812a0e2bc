"""Clocks that are wrong: each process has a file that says by how much, and reads its time through ``shims/clock.c``.

Skew sets a clock an hour forward or back and leaves it there for a while; strobe throws it to and fro, which no
process gets used to.  Only the wall clock is touched.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.live import shim
from judge.live.cluster import HEAL_TIMEOUT_S, Injected

HOUR_MS = 3_600_000
STROBE_S = 0.2
"""Between two jumps of a strobe."""


class Clocks:
    """A file for each process.  ``start_as`` is the hook that makes a process read its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._library = shim.compiled("clock")
        directory.mkdir(parents=True, exist_ok=True)

    def start_as(self, name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        return argv, shim.preloaded(env, self._library) | {"TIDEMARK_CLOCK_SHIFT": str(self._file(name))}

    def shift(self, name: str, ms: int) -> None:
        """Set the clock of ``name``, in this life and the next ones, by ``ms`` from the true time."""
        replace_text(self._file(name), str(ms))

    def _file(self, name: str) -> Path:
        return self._directory / name


def replace_text(path: Path, text: str) -> None:
    """Write a file at once: whoever reads it meanwhile sees all of it or what was there before."""
    making = path.with_name(f".{path.name}.new")
    making.write_text(text)
    os.replace(making, path)


class _ClockFault:
    name = ""
    hold_s = (3.0, 10.0)

    def __init__(self, clocks: Clocks, names: Sequence[str], serving: Callable[[str, float], None]) -> None:
        self._clocks = clocks
        self._names = list(names)
        self._serving = serving

    def targets(self) -> Sequence[str]:
        return self._names


class Skew(_ClockFault):
    name = "skew"

    def start(self, target: str, rng: random.Random) -> Injected:
        ms = rng.choice((-1, 1)) * rng.randint(HOUR_MS // 2, HOUR_MS)
        self._clocks.shift(target, ms)

        def heal() -> None:
            self._clocks.shift(target, 0)
            self._serving(target, HEAL_TIMEOUT_S)

        return Injected(heal, f"{ms:+d} ms")


class Strobe(_ClockFault):
    name = "strobe"

    def start(self, target: str, rng: random.Random) -> Injected:
        jumps = [rng.randint(-HOUR_MS, HOUR_MS) for _ in range(256)]
        stopped = threading.Event()

        def run() -> None:
            number = 0
            while not stopped.wait(STROBE_S):
                self._clocks.shift(target, jumps[number % len(jumps)])
                number += 1

        thread = threading.Thread(target=run, name="strobe", daemon=True)
        thread.start()

        def heal() -> None:
            stopped.set()
            thread.join()
            self._clocks.shift(target, 0)
            self._serving(target, HEAL_TIMEOUT_S)

        return Injected(heal, f"every {STROBE_S:g} s within an hour")
