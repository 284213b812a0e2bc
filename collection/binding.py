"""Bindings: which offsets of which topic became visible at which data timestamp (DESIGN §5).

Rows are written first and are invisible; a commit record then binds ranges of their offsets to a timestamp.  Small
writes travel in the commit record itself (:class:`Inline`).  At data timestamp ``T`` a collection's contents are the
rows of all runs bound at or before ``T``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Run(NamedTuple):
    """A half-open range ``[lower, upper)`` of offsets of one partition of ``topic``.

    ``attempt`` names the write that produced the records (they carry the same id).  For a user's own topic it is a
    :func:`pin`: the id of the topic that the offsets are of; it is empty in bindings that are older than pins.
    ``rows`` is the number of rows in the run, for progress and planning; -1 where unknown.
    """

    topic: str
    partition: int
    lower: int
    upper: int
    attempt: str = ""
    rows: int = -1


def joined(runs: Iterable[Run]) -> list[Run]:
    """``runs``, each with its rows, in the order of their offsets; those of one attempt that touch are one."""
    found: list[Run] = []
    for run in sorted(runs, key=lambda run: run[:3]):
        last = found[-1] if found else None
        if last and last[:2] == run[:2] and last.upper == run.lower and last.attempt == run.attempt:
            found[-1] = last._replace(upper=run.upper, rows=last.rows + run.rows)
        else:
            found.append(run)
    return found


PIN = "topic:"


def pin(topic_id: str) -> str:
    """What the runs of a user's topic carry as their attempt: which topic of that name it was."""
    return PIN + topic_id


def pinned(run: Run) -> str | None:
    """The id of the topic that ``run`` is of, where it says so."""
    return run.attempt[len(PIN) :] if run.attempt.startswith(PIN) else None


RETIRED = "retired:"
"""What a run carries as its attempt whose rows are in files alone: its topic was cut behind it (I5)."""


class Binding(NamedTuple):
    """``run`` belongs to ``collection``.

    ``contiguous`` asks the fold to admit the commit only if ``run.lower`` is exactly where this collection's bindings
    of that partition end (0 at first, or any offset for the very first run): that is a source's remap, and it makes
    a second committer harmless.  Without it (tables) the fold only refuses a run that overlaps what is bound.
    """

    collection: str
    run: Run
    contiguous: bool = False


class Inline(NamedTuple):
    """A batch of rows of ``collection`` that a commit record carries: ``value`` is what its topic would have as a
    record (:mod:`collection.rows`), ``attempt`` the id in it, ``rows`` how many it holds."""

    collection: str
    value: bytes
    attempt: str
    rows: int


INLINE = ""
"""The topic of runs whose rows the log carries.  Their offsets are running numbers of a collection's inline batches."""


class BoundRun(NamedTuple):
    """A run together with the data timestamp at which it became visible.

    ``value`` are the rows themselves where the run is of :data:`INLINE`: a batch as its topic would have it.
    """

    ts: int
    run: Run
    value: bytes = b""


class Move(NamedTuple):
    """Inline batches of ``collection``, from running number ``number`` on, are the records of ``run`` now."""

    collection: str
    number: int
    run: Run
