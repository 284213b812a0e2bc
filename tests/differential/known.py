"""The list of known and deliberate differences: ``known.txt``.

A paragraph is a reason (lines that begin with ``#``) and the statements that differ for it, each behind the engines
where it does: ``constants`` (answered in the adapter), ``tables`` (by Spark) or ``both``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "known.txt"
ENGINES = {"constants": {"constants"}, "tables": {"tables"}, "both": {"constants", "tables"}}


@dataclass(frozen=True)
class Known:
    statement: str
    engines: frozenset[str]
    reason: str


def read(text: str) -> list[Known]:
    """The list.  ``ValueError`` for a statement without a reason or an unknown engine."""
    found, reason, fresh = [], "", True
    for line in text.splitlines():
        if not line.strip():
            reason = ""
        elif line.startswith("#"):
            reason = line[1:].strip() if fresh else f"{reason} {line[1:].strip()}"
        else:
            word, _, statement = line.partition(" ")
            if not reason or word not in ENGINES or not statement:
                raise ValueError(f"neither a reason nor a statement with one: {line}")
            found.append(Known(statement.strip(), frozenset(ENGINES[word]), reason))
        fresh = not line.startswith("#")
    return found


def statements(engine: str) -> set[str]:
    """What is known to differ in ``engine``."""
    return {each.statement for each in read(FILE.read_text()) if engine in each.engines}
