"""Write events as they happen, and make one history of many files.

Promises: an invocation's line is timed before its call and a completion's after it; the lines of one file are in
order of time, so merging needs no sorting.  Lines reach the disk in batches (:meth:`Recorder.flush`): a process that is
killed loses the completions of its last fraction of a second, which then count as unknown outcomes, and may leave half
a line, which :func:`merged` leaves out.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from judge.history import FAIL, INFO, INVOKE, OK, Event


class Recorder:
    """One process's file of events.  Called from many threads."""

    def __init__(self, path: Path, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}

    def record(
        self, type: str, process: int, workload: str, f: str, value: Any = None, node: str = "",
        error: tuple[str, str] | None = None, unless: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """Write one event, now; nothing where ``unless()`` says, under the lock, that nobody must hear of it."""
        with self._lock:
            if unless():
                return
            self._file.write(Event(self._clock_ns(), process, type, workload, f, value, node, error).to_json() + "\n")
            self._counts.setdefault(workload, Counter())[type] += 1

    def flush(self) -> None:
        with self._lock:
            if not self._file.closed:
                self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def counts(self) -> dict[str, list[int]]:
        """By workload: begun, ok, fail, unknown."""
        with self._lock:
            return {name: [c[INVOKE], c[OK], c[FAIL], c[INFO]] for name, c in self._counts.items()}


def _whole_lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield Event.from_json(line).time, line


def merged(paths: Iterable[Path], out: Path) -> int:
    """Merge files of events by time into ``out``; how many events there are."""
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for _time, line in heapq.merge(*(_whole_lines(path) for path in paths), key=lambda timed: timed[0]):
            file.write(line)
            count += 1
    return count
