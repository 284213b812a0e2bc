"""What a checker says, and how many of them make one verdict.  Pure.

Promises: *unknown* is never folded into *valid*: a whole is invalid if any part is, else unknown if any part is, else
valid.  A checker that looked at nothing says unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

VALID, INVALID, UNDECIDED = "valid", "invalid", "unknown"


@dataclass(frozen=True)
class Anomaly:
    """One thing that must not happen: its name in the field, in words, and the operations (by index) it is made of."""

    kind: str
    """``lost-write``, ``stale-read``, ``G1c``, ``double-apply``…"""
    text: str
    ops: tuple[int, ...] = ()
    key: str = ""
    """The object, key or table it is about, for cutting the history down to it."""


@dataclass(frozen=True)
class Verdict:
    """One checker's answer."""

    checker: str
    valid: str
    anomalies: tuple[Anomaly, ...] = ()
    counts: dict[str, Any] = field(default_factory=dict)
    """What was looked at: operations, acknowledged, unknown, keys…"""
    reason: str = ""
    """Why it is unknown, where it is."""

    @property
    def kinds(self) -> set[str]:
        """The kinds of the anomalies that are listed."""
        return {anomaly.kind for anomaly in self.anomalies}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


ANOMALIES_MAX = 100
"""Anomalies that a verdict lists; ``counts["anomalies"]`` has them all.  A person reads the first few."""


def judged(checker: str, anomalies: Iterable[Anomaly], **counts: Any) -> Verdict:
    """Valid or invalid by whether there are anomalies; unknown where ``ops=0``: nothing was looked at."""
    found = tuple(anomalies)
    if found:
        return Verdict(checker, INVALID, found[:ANOMALIES_MAX], {**counts, "anomalies": len(found)})
    if counts.get("ops") == 0:
        return Verdict(checker, UNDECIDED, (), counts, "there was nothing to look at")
    return Verdict(checker, VALID, (), counts)


def undecided(checker: str, reason: str, **counts: Any) -> Verdict:
    return Verdict(checker, UNDECIDED, (), counts, reason)


def combined(verdicts: Iterable[Verdict]) -> str:
    """The whole's verdict."""
    said = {verdict.valid for verdict in verdicts}
    if INVALID in said:
        return INVALID
    return VALID if said == {VALID} else UNDECIDED
