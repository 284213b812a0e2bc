"""``tidemark bench``: hands over to ``bench/``, which measures, prints the table and writes ``bench/RESULTS.md``."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figures", nargs="*", metavar="ARG", help="handed to the bench; write -- before options")


def run(arguments: argparse.Namespace) -> int:
    from bench.run import main

    return main([*arguments.figures, *(["--json"] if arguments.json else [])])
