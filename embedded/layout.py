"""Where things are in a checkout, and the one shape in which a start reports its steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: what children get as PYTHONPATH."""
STATE = ROOT / ".tidemark"
"""Everything a checkout makes for itself: environment, jars, default data directories."""
JARS = STATE / "jars"
ARCHIVES = STATE / "archives"


@dataclass(frozen=True)
class Step:
    """A line for the display: ``state`` is started, done, note or failed."""

    name: str
    state: str
    detail: str = ""
