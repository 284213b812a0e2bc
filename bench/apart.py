"""A measurement in a process of its own, which has memory and a Spark that no other has used."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any


def told_by(module: str, ends_s: float) -> Any:
    """What ``python -m module DIRECTORY``, of a directory that goes afterwards, says in its last line: JSON.

    Raises ``RuntimeError`` with the end of what it said otherwise, ``TimeoutExpired`` after ``ends_s``.
    """
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
        return last_line([sys.executable, "-m", module, directory], ends_s)


def last_line(command: Sequence[str], ends_s: float) -> Any:
    """What ``command`` says in its last line: JSON.  Raises as :func:`told_by`."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=ends_s)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return json.loads(ended.stdout.splitlines()[-1])
