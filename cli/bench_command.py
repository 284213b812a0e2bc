"""``tidemark bench``: hands over to ``bench/``, which measures, prints the table and writes ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse
from importlib import util

from journal.errors import InvalidUsage


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "tidemark bench [-h] [--json] [GROUP …] [--only TEXT] [--sample N]"
    groups = "journals, statements, sessions, views, starts"
    parser.epilog = f"groups: {groups} (default: all); --sample: rows of the view throughput run"


def run(arguments: argparse.Namespace) -> int:
    if util.find_spec("bench") is None:
        raise InvalidUsage("what measures is not part of an installation", hint="run it from a checkout")
    from bench.run import main

    return main([*arguments.passed_on, *(["--json"] if arguments.json else [])])
