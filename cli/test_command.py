"""``tidemark test``: style, import contracts, then every test; the last lines are pytest's own.

The whole of it runs in four lanes at once: tests with Spark wait for a part of their time, those that need a broker
alone for most of it, and the pure ones take what is left of the processors.  A lane that is free takes the next share
of the pure tests, so that all end together.  What looks at the clock while a whole stack runs comes last, with nothing
beside it: on a busy machine it takes several times as long, and cannot tell what hangs from what is not let run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TextIO

from cli.output import FAILED, OK, console, print_json
from embedded.archives import ensure_archives
from embedded.jars import ensure_jars
from embedded.layout import JARS, ROOT
from journal.errors import InvalidUsage

LINT = {
    "ruff": ["-m", "ruff", "check", "--quiet", "."],
    "import contracts": ["-c", "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"],
}

PYTEST = [sys.executable, "-m", "pytest"]
PURE = "not long and not alone and not integration and not spark"
BROKER = "not long and not alone and integration and not spark"
SPARK = "not long and not alone and spark"
ALONE = "not long and alone"
LESS_URGENT = 5
"""Added to the niceness of a share of the pure tests: nothing there looks at a clock."""

IDLE = 10
"""Added to that of a share beside which another one runs.  With two at ``LESS_URGENT`` tests that start a whole stack
wait longer for a processor than their own limits; with one, a fifth of two processors was not used at all.  (With 19 a
share got nothing for minutes beside programs of others.)"""

LANES = 4

SHARES = 10
"""Of the pure tests' files (``--share`` in ``tests/conftest.py``): to start one costs 10 s, and what is left of them
when all else is done should be enough for both processors to the end."""

ENDS_S = 60
"""For tests that are interrupted: a stack of their own ends in 10 to 20 s on a busy machine."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--unit", action="store_true", help="only what needs neither broker nor Spark")
    parser.usage = "tidemark test [-h] [--json] [--unit] [ARG …]"
    parser.epilog = "every other argument is handed to pytest"


def run(arguments: argparse.Namespace) -> int:
    if not (ROOT / "tests").is_dir():
        raise InvalidUsage("the tests are not part of an installation", hint="run them from a checkout")
    out = console(arguments.json)
    target = sys.stderr if arguments.json else None
    results = {}
    whole = not (arguments.unit or arguments.passed_on)
    pure = [(f"pytest, pure {share}", ["-m", PURE, "--share", share]) for share in shares()]
    # The pure tests need nothing of what comes before the others, which takes one core of two at most.
    with _Lanes(target) as lanes:
        for name, chosen in pure[:1] if whole else ():
            lanes.put(name, chosen, pure=True)
        for name, command in LINT.items():
            done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
            results[name] = done.returncode == 0
            out.print(f"{'ok    ' if results[name] else 'FAILED'} {name}")
            if not results[name]:
                out.print(done.stdout + done.stderr, markup=False)
        if not arguments.unit:
            # Spark is started some thirty times: what this costs is saved twice over.
            ensure_archives(ensure_jars(JARS, out.print), out.print)
        if whole:
            lanes.put("pytest, with Spark", ["-m", SPARK, "--marked", "spark"], shown=True)
            lanes.put("pytest, with a broker", ["-m", BROKER, "--marked", "integration"])
            for name, chosen in pure[1:]:
                lanes.put(name, chosen, pure=True)
            lanes.passed()
            lanes.put("pytest, alone", ["-m", ALONE, "--marked", "alone"], shown=True)
        else:
            lanes.put("pytest", ["-m", PURE] if arguments.unit else arguments.passed_on, shown=True)
        results |= lanes.passed()
    failed = [name for name, passed in results.items() if not passed]
    for name in failed:
        out.print(f"FAILED {name}")
        out.print(lanes.told(name), markup=False, end="")
    if arguments.json:
        print_json({"command": "test", "ok": not failed, **results})
    return FAILED if failed else OK


def shares() -> list[str]:
    return [f"{number}/{SHARES}" for number in range(1, SHARES + 1)]


def last_words(said: Iterable[str], ended: int) -> list[str]:
    """Where a lane was that a signal ended (``ended`` below 0), of what Python's fault handler ``said``: it says so
    before the names of a hundred modules, and who reads only the end would never know.  Nothing of other lanes."""
    if ended >= 0:
        return []
    found = [f"ended by {signal.Signals(-ended).name}\n"]
    here = False
    for line in said:
        here = here and bool(line.strip()) or line.startswith(("Fatal Python error", "Current thread"))
        if here and (line.startswith("Fatal") or f"{os.sep}tests{os.sep}" in line):
            found.append(line)
    return found


class _Lanes:
    """Runs of pytest, ``LANES`` at once in the order in which they are put.  Leaving the block ends what still runs,
    begins nothing more, and then tells what was said by those that were not shown as they went: last by those that
    failed, since it may be the end alone that is kept."""

    def __init__(self, target: TextIO | None) -> None:
        self._target = target
        self._threads = ThreadPoolExecutor(LANES)
        self._lock = threading.Lock()
        self._closed = False
        self._running: set[subprocess.Popen] = set()
        self._less_urgent: subprocess.Popen | None = None
        self._ended: dict[str, Future[int | None]] = {}
        self._said: dict[str, TextIO] = {}
        self._told: dict[str, str] = {}
        self._directory = tempfile.TemporaryDirectory()

    def __enter__(self) -> _Lanes:
        return self

    def put(self, name: str, arguments: list[str], *, pure: bool = False, shown: bool = False) -> None:
        """``pure``: the others go first.  ``shown`` as it goes: for one of them at a time."""
        command = [*PYTEST, "--told", str(self._told_to(name)), *arguments]
        if not shown:
            self._said[name] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
            command += ["-p", "no:cacheprovider", "-q"]
        self._ended[name] = self._threads.submit(self._run, command, self._said.get(name, self._target), pure)

    def passed(self) -> dict[str, bool]:
        """Waits for all: which of them passed."""
        return {name: ended.result() == 0 for name, ended in self._ended.items()}

    def told(self, name: str) -> str:
        """After the block: what failed there, and why.  Nothing where it passed, or ended before its first test."""
        return self._told.get(name, "")

    def _told_to(self, name: str) -> Path:
        return Path(self._directory.name, name.replace("/", " of "))

    def _run(self, command: list[str], to: TextIO | None, pure: bool) -> int | None:
        """How it ended; None where it was not begun any more."""
        with self._lock:
            if self._closed:
                return None
            errors = None if to is self._target else subprocess.STDOUT
            process = subprocess.Popen(command, cwd=ROOT, stdout=to, stderr=errors)
            self._running.add(process)
            less_urgent = self._less_urgency(process) if pure else 0
        # Not between fork and exec: other threads may hold what Python needs there.
        os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + less_urgent)
        return process.wait()

    def _less_urgency(self, process: subprocess.Popen) -> int:
        """Of a share: one at a time is ``LESS_URGENT``, those beside it take what nobody wants."""
        if self._less_urgent is not None and self._less_urgent.returncode is None:
            return IDLE
        self._less_urgent = process
        return LESS_URGENT

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._running:
            _end(process)
        self._threads.shutdown()
        with self._directory:
            for name in self._ended:
                if (told := self._told_to(name)).exists():
                    self._told[name] = told.read_text(encoding="utf-8")
        to = self._target or sys.stdout
        how = {name: None if ended.cancelled() else ended.result() for name, ended in self._ended.items()}
        for name in sorted(self._said, key=lambda name: how[name] not in (0, None)):
            with self._said[name] as said:
                said.seek(0)
                shutil.copyfileobj(said, to)
                said.seek(0)
                print(*last_words(said, how[name] or 0), sep="", end="", file=to, flush=True)


def _end(process: subprocess.Popen) -> None:
    """It ends what its tests started, as at a terminal, before it is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
