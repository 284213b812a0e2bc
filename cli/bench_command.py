"""``tidemark bench``: hands over to ``bench/``, which measures, prints the table and writes ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "tidemark bench [-h] [--json] [GROUP …] [--only TEXT] [--sample N]"
    groups = "journals, statements, sessions, views, starts"
    parser.epilog = f"groups: {groups} (default: all); --sample: rows of the view throughput run"


def run(arguments: argparse.Namespace) -> int:
    from bench.run import main

    return main([*arguments.passed_on, *(["--json"] if arguments.json else [])])
