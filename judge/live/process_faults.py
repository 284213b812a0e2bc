"""Kill, pause and restart processes that a supervisor keeps: on one broker and on three alike.

A process is known by its name; whoever keeps it (``embedded.supervisor``) starts it again by itself.  What counts as
healed is that it serves again, which is seen from its ready line and never guessed from a time.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from embedded.stack import COMPUTES
from judge.live.cluster import HEAL_TIMEOUT_S, HealFailed, Injected

LOOK_AGAIN_S = 0.1
"""Between two looks at something that tells nobody when it changes (another process, a port)."""

ANSWER_TIMEOUT_S = 2.0


class Lives:
    """Which processes there are now, and how often each has come to serve."""

    def __init__(self, pids: Callable[[], Mapping[str, int]]) -> None:
        self.pids = pids
        self._served: Counter[str] = Counter()
        self._changed = threading.Condition()

    def serves(self, name: str) -> None:
        """``name`` has printed its ready line (again)."""
        with self._changed:
            self._served[name] += 1
            self._changed.notify_all()

    def count(self, name: str) -> int:
        with self._changed:
            return self._served[name]

    def wait_another(self, name: str, seen: int, timeout_s: float = HEAL_TIMEOUT_S) -> None:
        """Until ``name`` has come to serve more than ``seen`` times.  Raises ``HealFailed``."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._served[name] > seen, timeout_s):
                raise HealFailed(f"{name} did not serve again within {timeout_s:g} s")

    def pid(self, name: str, timeout_s: float = HEAL_TIMEOUT_S) -> int:
        """The process's id, waiting while it is between two lives.  Raises ``HealFailed``."""
        deadline = time.monotonic() + timeout_s
        while True:
            if (pid := self.pids().get(name)) is not None:
                return pid
            if time.monotonic() > deadline:
                raise HealFailed(f"{name} was not started again within {timeout_s:g} s")
            time.sleep(LOOK_AGAIN_S)


def children(pid: int) -> list[int]:
    """The processes below ``pid``, parents first."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # After the name, which is in parentheses and may hold anything: state, parent, …
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
            below.setdefault(parent, []).append(int(entry.name))
    found, following = [], [pid]
    while following:
        mine = below.get(following.pop(0), [])
        found += mine
        following += mine
    return found


def jvm_below(pid: int) -> int | None:
    """The first Java process below ``pid``: Spark's."""
    for child in children(pid):
        try:
            if (Path("/proc") / str(child) / "comm").read_text().strip() == "java":
                return child
        except OSError:
            continue
    return None


JVM = "-jvm"
"""``compute-jvm`` is the JVM that the process ``compute`` has started."""


class _ProcessFault:
    """Something done to one process by its id."""

    name = ""
    hold_s = (0.0, 0.0)

    def __init__(self, lives: Lives, names: Sequence[str], serving: Callable[[str, float], None]) -> None:
        """``serving(name, timeout_s)`` waits until the process answers, or raises ``HealFailed``."""
        self.lives = lives
        self._names = list(names)
        self._serving = serving

    def targets(self) -> Sequence[str]:
        return self._names

    def _find(self, target: str) -> tuple[str, int]:
        """The supervised process and the id of the one meant."""
        name = target.removesuffix(JVM)
        pid = self.lives.pid(name)
        if target != name:
            pid = jvm_below(pid) or pid
        return name, pid


class Kill(_ProcessFault):
    """SIGKILL, and whoever keeps it starts it again."""

    name = "kill"
    signal = signal.SIGKILL

    def start(self, target: str, rng: random.Random) -> Injected:
        name, pid = self._find(target)
        seen = self.lives.count(name)
        os.kill(pid, self.signal)

        def heal() -> None:
            self.lives.wait_another(name, seen)
            self._serving(name, HEAL_TIMEOUT_S)

        return Injected(heal, f"pid {pid}")


class Restart(Kill):
    """SIGTERM: it ends well and is started again."""

    name = "restart"
    signal = signal.SIGTERM


class Pause(_ProcessFault):
    """SIGSTOP for a while: connections stay open, nothing moves, and its clock has jumped when it wakes."""

    name = "pause"
    hold_s = (2.0, 8.0)

    def start(self, target: str, rng: random.Random) -> Injected:
        name, pid = self._find(target)
        # All of compute stands still, its JVM too, unless the JVM alone is meant.
        stopped = [pid, *(children(pid) if target == name else ())]
        for each in stopped:
            _signal(each, signal.SIGSTOP)

        def heal() -> None:
            for each in stopped:
                _signal(each, signal.SIGCONT)
            self._serving(name, HEAL_TIMEOUT_S)

        return Injected(heal, f"pid {pid}")


def _signal(pid: int, signum: int) -> None:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile


def process_faults(lives: Lives, names: Sequence[str], serving: Callable[[str, float], None]) -> list[_ProcessFault]:
    """Kill, pause and restart for each of ``names``; a compute controller's JVM can be killed and paused by
    itself."""
    jvms = [f"{name}{JVM}" for name in names if name in COMPUTES]
    return [
        Kill(lives, [*names, *jvms], serving),
        Pause(lives, [*names, *jvms], serving),
        Restart(lives, names, serving),
    ]
