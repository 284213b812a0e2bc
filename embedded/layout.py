"""Where things are, in a checkout or as installed, and the one shape in which a start reports its steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Where our packages are, a checkout or site-packages: what children get as PYTHONPATH."""


def state_directory(root: Path, environment: Mapping[str, str]) -> Path:
    """Where everything is kept that is made rather than installed: jars, class archives, default data directories.

    ``TIDEMARK_HOME`` where that is set; in a checkout its own ``.tidemark``; as installed ``~/.tidemark``, since where
    packages are may belong to somebody else and goes with them."""
    if home := environment.get("TIDEMARK_HOME"):
        return Path(home).expanduser().absolute()
    if (root / "requirements.lock").is_file() and (root / "tidemark").is_file():
        return root / ".tidemark"
    return Path("~/.tidemark").expanduser()


STATE = state_directory(ROOT, os.environ)
JARS = STATE / "jars"
ARCHIVES = STATE / "archives"


@dataclass(frozen=True)
class Step:
    """A line for the display: ``state`` is started, done, note or failed."""

    name: str
    state: str
    detail: str = ""
