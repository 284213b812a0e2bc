"""``tidemark test``: style, import contracts, then every test; the last lines are pytest's own.

The whole of it runs in three lanes at once: tests with Spark wait for a part of their time, those that need a broker
alone for most of it, and the pure ones take what is left of the processors.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
PURE = "not long and not integration and not spark"
BROKER = "not long and integration and not spark"
SPARK = "not long and spark"
LESS_URGENT = 5
"""Added to the niceness of the pure tests: nothing there looks at a clock."""

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
    with ExitStack() as lanes:
        beside = {"pytest, pure": lanes.enter_context(_lane(PURE, target, LESS_URGENT))} if whole else {}
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
            beside["pytest, with a broker"] = lanes.enter_context(_lane(BROKER, target))
            results["pytest, with Spark"] = _passes([*PYTEST, "-m", SPARK], target)
            results |= {name: passed() for name, passed in beside.items()}
        else:
            chosen = ["-m", PURE] if arguments.unit else []
            results["pytest"] = _passes([*PYTEST, *chosen, *arguments.passed_on], target)
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


def _end(lane: subprocess.Popen) -> None:
    """It ends what its tests started, as at a terminal, before it is killed."""
    if lane.poll() is None:
        lane.send_signal(signal.SIGINT)
        try:
            lane.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            lane.kill()
            lane.wait()


@contextmanager
def _lane(marks: str, target: TextIO | None, less_urgent: int = 0) -> Iterator[Callable[[], bool]]:
    """The tests with ``marks``, beside whatever is done in the block; what is given waits for them and says whether
    they passed.  What they said comes behind all else."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        command = [*PYTEST, "-p", "no:cacheprovider", "-q", "-m", marks]
        lane = subprocess.Popen(
            command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT, preexec_fn=lambda: os.nice(less_urgent)
        )
        try:
            yield lambda: lane.wait() == 0
        finally:
            _end(lane)
            said.seek(0)
            shutil.copyfileobj(said, target or sys.stdout)
            said.seek(0)
            print(*last_words(said, lane.returncode), sep="", end="", file=target or sys.stdout, flush=True)
