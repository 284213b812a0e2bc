"""``tidemark test``: style, import contracts, then every test; the last line is pytest's own."""

from __future__ import annotations

import argparse
import subprocess
import sys

from cli.output import FAILED, OK, console, print_json
from embedded.archives import ensure_archives
from embedded.jars import ensure_jars
from embedded.layout import JARS, ROOT
from journal.errors import InvalidUsage

LINT = {
    "ruff": ["-m", "ruff", "check", "--quiet", "."],
    "import contracts": ["-c", "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"],
}


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
    for name, command in LINT.items():
        done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        results[name] = done.returncode == 0
        out.print(f"{'ok    ' if results[name] else 'FAILED'} {name}")
        if not results[name]:
            out.print(done.stdout + done.stderr, markup=False)
    if not arguments.unit:
        # Spark is started some thirty times: what this costs is saved twice over.
        ensure_archives(ensure_jars(JARS, out.print), out.print)
    pytest = [sys.executable, "-m", "pytest", *(["-m", "not integration and not spark"] if arguments.unit else [])]
    results["pytest"] = subprocess.run([*pytest, *arguments.passed_on], cwd=ROOT, stdout=target).returncode == 0
    failed = [name for name, passed in results.items() if not passed]
    if arguments.json:
        print_json({"command": "test", "ok": not failed, **results})
    return FAILED if failed else OK
