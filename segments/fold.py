"""Which files hold which rows: the fold of ``<env>.segments`` (DESIGN §5).  Pure.

Promises: no row is in two files, or in a file and on a topic at once: an exchange seals no offset twice, and takes the
rows of a file only while that file holds them; so of two that were made from the same rows one counts.  A file that
holds nothing any more is remembered until somebody says that it was removed, so none is lost in the store.

It is a journal of its own, and not part of the bindings: a commit is folded by everybody before the next read, while
these records may come late.  Whoever has not folded an exchange yet reads the same rows where they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import immutables

from collection.binding import INLINE
from journal.api import Entry
from journal.fences import Fences
from oracle.bindings import Interval, Partition, cover, refused
from oracle.errors import Reason
from oracle.model import Outcome, Verdict
from oracle.one_verdict import Stats, fold_one
from segments.model import Exchange, Segment, SegmentsKind, SegmentsRecord, number_of
from segments.records import RECORD_VERSIONS, decode_segments_record


class Sealed(NamedTuple):
    """What the files of one collection hold: the rows of exactly the offsets in ``coverage``.

    ``through`` is the newest timestamp at which any of those was bound: the files are for reads at or above it.
    """

    through: int = 0
    coverage: immutables.Map[Partition, tuple[Interval, ...]] = immutables.Map()
    files: tuple[Segment, ...] = ()

    @property
    def was_on_topics(self) -> bool:
        """Whether any of it was, and not only carried by the oracle's log."""
        return len(self.coverage) > ((INLINE, 0) in self.coverage)

    @property
    def changes(self) -> int:
        return sum(each.changes for each in self.files)

    @property
    def net(self) -> int:
        """Rows there are, of those that were sealed."""
        return sum(each.net for each in self.files)


NOTHING = Sealed()


class SegmentsState(NamedTuple):
    """A fold of the topic up to (not including) ``next_offset``."""

    next_offset: int = 0
    collections: immutables.Map[str, Sealed] = immutables.Map()
    gone: immutables.Map[str, int] = immutables.Map()
    """Files that hold nothing any more, and since when by the clock of who let them go: they may still be read."""
    swept: int = 0
    """Files with a number below it are added by nobody any more."""
    record_version: int = 1
    """The newest version that records may have."""
    fences: Fences = Fences()
    stats: Stats = Stats()

    @property
    def names_files(self) -> bool:
        """Whether there are files by it.  (Of a collection all of whose rows cancelled out there is none.)"""
        return bool(self.gone) or any(each.files for each in self.collections.values())

    def sealed(self, collection: str) -> Sealed:
        """What is sealed of ``collection``; nothing where it is unknown."""
        return self.collections.get(collection, NOTHING)


NO_SEGMENTS = SegmentsState()


def fold_segments(state: SegmentsState, entry: Entry) -> tuple[SegmentsState, Outcome]:
    """The state after ``entry`` and what became of it.  Never raises for anything that a record may hold."""
    version = state.record_version
    return fold_one(state, entry, lambda value: decode_segments_record(value, version), _APPLY)


def _exchange(state: SegmentsState, record: SegmentsRecord) -> tuple[SegmentsState, Verdict]:
    exchange = record.exchange
    assert exchange is not None, "a record of that kind has one"
    name, sealed = exchange.collection, state.sealed(exchange.collection)
    left = {each.path: each for each in sealed.files}
    for path in exchange.removed:
        if left.pop(path, None) is None:
            return state, Verdict(0, Reason.NOT_THERE, f"{name}: {path} holds nothing of it, or not any more")
    for each in exchange.added:
        if (number_of(each.path) or 0) < state.swept:
            return state, Verdict(0, Reason.NOT_THERE, f"{name}: {each.path} comes too late and may be gone")
        if each.path in left or each.path in state.gone or each.path in exchange.removed:
            return state, Verdict(0, Reason.OVERLAP, f"{name}: {each.path} is there already")
    coverage = _covered(sealed, exchange)
    if isinstance(coverage, Verdict):
        return state, coverage
    gone = state.gone.update({path: record.at_ms for path in exchange.removed})
    after = Sealed(max(sealed.through, exchange.through), coverage, (*left.values(), *exchange.added))
    return state._replace(collections=state.collections.set(name, after), gone=gone), Verdict()


def _covered(sealed: Sealed, exchange: Exchange) -> immutables.Map | Verdict:
    """The offsets that are sealed afterwards, or why these cannot be."""
    coverage = sealed.coverage
    for run in exchange.runs:
        if found := refused(coverage, run, contiguous=False):
            return Verdict(0, found[0], f"{exchange.collection}: {found[1]}")
        coverage = cover(coverage, run)
    return coverage


def _forget(state: SegmentsState, record: SegmentsRecord) -> tuple[SegmentsState, Verdict]:
    collections, gone = state.collections, state.gone
    for name in record.names:
        if name in collections:
            gone = gone.update({each.path: record.at_ms for each in collections[name].files})
            collections = collections.delete(name)
    return state._replace(collections=collections, gone=gone), Verdict()


def _collected(state: SegmentsState, record: SegmentsRecord) -> tuple[SegmentsState, Verdict]:
    gone = state.gone
    for path in record.paths:
        gone = gone.delete(path) if path in gone else gone
    return state._replace(gone=gone), Verdict()


def _sweep(state: SegmentsState, record: SegmentsRecord) -> tuple[SegmentsState, Verdict]:
    # Not beyond here: whoever begins after this record must be able to add what it writes.
    return state._replace(swept=max(state.swept, min(record.below, state.next_offset))), Verdict()


def _format(state: SegmentsState, record: SegmentsRecord) -> tuple[SegmentsState, Verdict]:
    version = max(state.record_version, min(record.below, RECORD_VERSIONS[-1]))
    return state._replace(record_version=version), Verdict()


def _nothing(state: SegmentsState, _record: SegmentsRecord) -> tuple[SegmentsState, Verdict]:
    return state, Verdict()


_APPLY: dict[SegmentsKind, Callable[[SegmentsState, SegmentsRecord], tuple[SegmentsState, Verdict]]] = {
    SegmentsKind.EXCHANGE: _exchange,
    SegmentsKind.FORGET: _forget,
    SegmentsKind.COLLECTED: _collected,
    SegmentsKind.SWEEP: _sweep,
    SegmentsKind.FENCE: _nothing,
    SegmentsKind.FORMAT: _format,
}
