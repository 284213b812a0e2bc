"""What every record goes through that is folded: of the oracle, of the views, of the segments.  Pure.

Promises: a record that cannot be read, breaks its rules or was fenced off changes nothing but a count; it never stops
the fold.  The views' and the segments' records are admitted or refused as a whole (:func:`fold_one`); the oracle's have
a verdict for each of their parts (:mod:`oracle.fold`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from journal.api import Entry
from oracle.errors import Reason
from oracle.model import Outcome, Verdict
from oracle.records import Malformed

S = TypeVar("S", bound=Any)
"""A state with ``next_offset``, ``fences`` and ``stats``."""

R = TypeVar("R", bound=Any)
"""A record with ``token`` and ``kind``."""


class Stats(NamedTuple):
    """Counts since the log began, equal in every reader."""

    records: int = 0
    malformed: int = 0
    fenced: int = 0
    admitted: int = 0
    refused: int = 0


def opened(state: S, entry: Entry, decode: Callable[[bytes], R]) -> tuple[S, R | None, Outcome | None]:
    """The state with ``entry`` counted, and the record in it; or what became of one that counts for nothing.

    ``decode`` raises :class:`~oracle.records.Malformed` and nothing else.
    """
    stats = state.stats._replace(records=state.stats.records + 1)
    offset = entry.offset
    try:
        record = decode(entry.value)
    except Malformed as bad:
        stats = stats._replace(malformed=stats.malformed + 1)
        gone = Outcome(bad.token, offset, "", Reason.MALFORMED)
        return state._replace(next_offset=offset + 1, stats=stats), None, gone
    token = record.token
    if state.fences.shuts_out(token.writer, token.seq):
        stats = stats._replace(fenced=stats.fenced + 1)
        gone = Outcome(token, offset, record.kind, Reason.FENCED)
        return state._replace(next_offset=offset + 1, stats=stats), None, gone
    fences = state.fences.passed(token.writer, token.seq, offset)
    return state._replace(next_offset=offset + 1, fences=fences, stats=stats), record, None


def fold_one(
    state: S, entry: Entry, decode: Callable[[bytes], Any], apply: Mapping[str, Callable[[S, Any], tuple[S, Verdict]]]
) -> tuple[S, Outcome]:
    """The state after ``entry`` and what became of it, by what ``apply`` has for the record's kind; ``decode`` as in
    :func:`opened`."""
    state, record, gone = opened(state, entry, decode)
    if gone is not None:
        return state, gone
    state, verdict = apply[record.kind](state, record)
    stats = state.stats
    if verdict.reason is None:
        stats = stats._replace(admitted=stats.admitted + 1)
    else:
        stats = stats._replace(refused=stats.refused + 1)
    return state._replace(stats=stats), Outcome(record.token, entry.offset, record.kind, None, (verdict,))
