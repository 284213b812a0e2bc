"""``tidemark setup``: fetch what the first run would fetch, and do nothing else."""

from __future__ import annotations

import argparse

from cli.output import OK, StartProgress, console, print_json
from embedded.jars import ensure_jars
from embedded.java import find_java
from embedded.layout import ARCHIVES, JARS, Step


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jars-only", action="store_true", help="leave out what only makes later starts faster")


def run(arguments: argparse.Namespace) -> int:
    progress = StartProgress(console(arguments.json))
    try:
        java = find_java()
        progress(Step("java", "done", java))
        progress(Step("jars", "started"))
        jars = ensure_jars(JARS, lambda line: progress(Step("jars", "note", line)))
        progress(Step("jars", "done", str(jars)))
        failed = []
        if not arguments.jars_only:
            # An image fetches its jars before it has anything else of ours.
            from embedded.archives import ensure_archives

            progress(Step("archives", "started"))
            failed = ensure_archives(jars, lambda line: progress(Step("archives", "note", line)))
            progress(Step("archives", "done", f"without {', '.join(failed)}" if failed else str(ARCHIVES)))
    finally:
        progress.finish()
    if arguments.json:
        print_json({"command": "setup", "java": java, "jars": str(jars), "without": failed})
    return OK
