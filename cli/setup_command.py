"""``tidemark setup``: fetch what the first run would fetch, and do nothing else."""

from __future__ import annotations

import argparse

from cli.output import OK, StartProgress, console, print_json
from embedded.jars import ensure_jars
from embedded.java import find_java
from embedded.layout import JARS, Step


def configure(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:
    progress = StartProgress(console(arguments.json))
    try:
        java = find_java()
        progress(Step("java", "done", java))
        progress(Step("jars", "started"))
        jars = ensure_jars(JARS, lambda line: progress(Step("jars", "note", line)))
        progress(Step("jars", "done", str(jars)))
    finally:
        progress.finish()
    if arguments.json:
        print_json({"command": "setup", "java": java, "jars": str(jars)})
    return OK
