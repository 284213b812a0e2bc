"""``tidemark test``: style, import contracts, then every test; the last lines are pytest's own.

The whole of it runs in two lanes: tests with Spark wait for a part of their time, and the pure ones take what is left
of the processor.  Whichever is free first goes on to the tests that need a broker alone.
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
from contextlib import nullcontext
from typing import Self, TextIO

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
PURE = "not long and not integration and not spark"
BROKER = "not long and integration and not spark"
SPARK = "not long and spark"
LESS_URGENT = 5
"""Added to the niceness of the pure tests: nothing there looks at a clock.  With 10 two thirds of them were left when
those with Spark were over."""

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
    # The pure tests need nothing of what comes before the others, which takes one core of two at most.
    with _Lane(target) if whole else nullcontext() as beside:
        for name, command in LINT.items():
            done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
            results[name] = done.returncode == 0
            out.print(f"{'ok    ' if results[name] else 'FAILED'} {name}")
            if not results[name]:
                out.print(done.stdout + done.stderr, markup=False)
        if not arguments.unit:
            # Spark is started some thirty times: what this costs is saved twice over.
            ensure_archives(ensure_jars(JARS, out.print), out.print)
        if beside is None:
            chosen = ["-m", PURE] if arguments.unit else []
            results["pytest"] = _passes([*PYTEST, *chosen, *arguments.passed_on], target)
        else:
            beside.go_on()
            results["pytest, with Spark"] = _passes([*PYTEST, "-m", SPARK], target)
            if beside.leaves_broker():
                results["pytest, with a broker"] = _passes([*PYTEST, "-m", BROKER], target)
            results |= beside.passed()
    failed = [name for name, passed in results.items() if not passed]
    for name in failed:
        out.print(f"FAILED {name}")
    if arguments.json:
        print_json({"command": "test", "ok": not failed, **results})
    return FAILED if failed else OK


def _passes(command: list[str], target: TextIO | None) -> bool:
    return subprocess.run(command, cwd=ROOT, stdout=target).returncode == 0


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


class _Lane:
    """The pure tests and, behind them, those with a broker unless somebody else has begun them, beside whatever is done
    in the block; what they said comes behind all else."""

    def __init__(self, target: TextIO | None) -> None:
        self._target = target
        self._ready, self._interrupted = threading.Event(), False
        self._running: subprocess.Popen | None = None
        self._passed: dict[str, bool] = {}
        self._said: list[tuple[TextIO, int]] = []
        self._lock = threading.Lock()
        """Held while a run is begun: none is once they are interrupted."""
        self._broker_begun = threading.Lock()
        """Taken by who runs the tests with a broker, and held from then on."""
        self._thread = threading.Thread(target=self._run, name="lane")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def go_on(self) -> None:
        """There is what tests with a broker need."""
        self._ready.set()

    def leaves_broker(self) -> bool:
        """Whether it leaves the tests with a broker to who asks, since the pure ones are not over yet."""
        return self._broker_begun.acquire(blocking=False)

    def passed(self) -> dict[str, bool]:
        """Whether each of its runs passed, once they ended."""
        self._thread.join()
        return self._passed

    def _run(self) -> None:
        self._passed["pytest, pure"] = self._one(PURE, LESS_URGENT)
        self._ready.wait()
        if self._broker_begun.acquire(blocking=False):
            self._passed["pytest, with a broker"] = self._one(BROKER)

    def _one(self, marks: str, less_urgent: int = 0) -> bool:
        said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        with self._lock:
            if self._interrupted:
                said.close()
                return False
            self._running = subprocess.Popen(
                [*PYTEST, "-p", "no:cacheprovider", "-q", "-m", marks], cwd=ROOT, stdout=said, stderr=subprocess.STDOUT,
                preexec_fn=lambda: os.nice(less_urgent),
            )  # fmt: skip
        ended = self._running.wait()
        self._said.append((said, ended))
        return ended == 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with self._lock:
                self._interrupted = True
            self._ready.set()
            if self._running is not None:
                _end(self._running)
        self._thread.join()
        target = self._target or sys.stdout
        words: list[str] = []
        for said, ended in self._said:
            with said:
                said.seek(0)
                shutil.copyfileobj(said, target)
                said.seek(0)
                words += last_words(said, ended)
        print(*words, sep="", end="", file=target, flush=True)


def _end(lane: subprocess.Popen) -> None:
    """It ends what its tests started, as at a terminal, before it is killed."""
    if lane.poll() is None:
        lane.send_signal(signal.SIGINT)
        try:
            lane.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            lane.kill()
