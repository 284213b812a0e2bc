"""What is to be sealed, merged and cut: the pure part of keeping segments.

Promises: only what was bound at or below ``since`` is sealed, since no reader tells timestamps apart there; nothing is
cut that anybody may still have to read from a topic, or may still bind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from collection.binding import INLINE, BoundRun, Run
from oracle.bindings import Bound, Partition
from segments.fold import Sealed
from segments.model import RUNS_MAX, Segment, place_of
from segments.unsealed import unsealed

SEAL_ROWS = 100_000
"""What may be left on a topic, in rows: whoever loads the collection decodes as many in a quarter of a second."""

RECORD_ROWS = 50
"""As so many rows a record on a topic of ours counts that holds fewer: it costs whoever reads it as much, and so a
topic of single-row inserts is sealed too."""

SEAL_FACTOR = 40
"""At most so many times :data:`SEAL_ROWS` go into one exchange (four million rows, some ten seconds), so that what was
done is kept when the process ends."""

FILE_ROWS = 1_000_000
FILE_BYTES = 32 << 20
"""Of a file, in rows and in Arrow's bytes of them, whichever comes first: what is in memory while it is written."""

MERGE_FACTOR = 4
"""Two neighbouring files merge while the older is less than this many times the newer, as a relation's chunks do."""

MERGED_BYTES = 16 << 20
"""Of a file that is merged no more: Parquet's bytes, which are a quarter of Arrow's and less."""

MERGED_LOADED = 4 * FILE_BYTES
"""Likewise, Arrow's bytes: what is in memory, some times over, while it is merged.  Text that repeats itself is a
thousandth in a file: twelve hundred rows of 1 MB became one of 120 kB, with 4.4 GB of memory."""


PART_LOADED = 256 << 10
"""Of a part of a shared file, Arrow's bytes: what is more has a file of its own.  Small collections are no larger, and
of a large one as much comes together while its rows are carried (:data:`controllers.storage.mover.COLLECTION_BYTES`).
"""


class Shape(NamedTuple):
    """How rows of a collection lie on its topic: as records of ours, or one JSON object each."""

    batches: bool
    """Records hold many rows."""


def old(bound: Bound, sealed: Sealed, horizon: int) -> list[BoundRun]:
    """The runs on topics that were bound at or before ``horizon`` and are in no file."""
    recent = takewhile(lambda each: each.ts <= horizon, bound.recent)
    on_topics = (each for each in (*bound.base, *recent) if each.run.topic != INLINE and each.ts <= horizon)
    return list(unsealed(on_topics, sealed))


def recent_rows(bound: Bound, horizon: int) -> int:
    """Rows that were bound behind ``horizon``, or are in no topic yet; at least so many, where a run does not say."""
    there = (each for each in (*bound.base, *bound.recent) if each.value or each.ts > horizon)
    return sum(each.run.rows if each.run.rows >= 0 else each.run.upper - each.run.lower for each in there)


def rows(run: Run, shape: Shape) -> int:
    """What ``run`` counts for, in rows."""
    records = run.upper - run.lower
    return max(run.rows, records * RECORD_ROWS) if shape.batches else records


def total(runs: Iterable[BoundRun], shape: Shape) -> int:
    """:func:`rows` of all of them."""
    return sum(rows(each.run, shape) for each in runs)


def taken(runs: Sequence[BoundRun], shape: Shape, rows_max: int) -> list[BoundRun]:
    """The first of ``runs`` that go into one exchange; of the last perhaps the first offsets only."""
    found: list[BoundRun] = []
    left = rows_max
    for each in runs[:RUNS_MAX]:
        size = rows(each.run, shape)
        if size > left:
            records = each.run.upper - each.run.lower
            some = max(records * left // size, 0 if found else 1)
            if some:
                found.append(each._replace(run=each.run._replace(upper=each.run.lower + some, rows=-1)))
            break
        found.append(each)
        left -= size
    return found


def to_merge(files: Sequence[Segment]) -> tuple[Segment, Segment] | None:
    """Two files that should be one, the newest such pair; ``None`` where all are as they should be."""
    for older, newer in reversed(list(zip(files, files[1:], strict=False))):
        small = (
            older.changes + newer.changes <= FILE_ROWS
            and older.size + newer.size <= MERGED_BYTES
            and older.loaded + newer.loaded <= MERGED_LOADED
        )
        if small and older.changes < MERGE_FACTOR * newer.changes and not _stay_parts(older, newer):
            return older, newer
    return None


def _stay_parts(older: Segment, newer: Segment) -> bool:
    """Whether they would be no more than a part of a file again: then they merge with what comes next."""
    parts = place_of(older.path).part is not None and place_of(newer.path).part is not None
    return parts and older.loaded + newer.loaded <= PART_LOADED


def to_rewrite(sealed: Sealed, slack: int) -> bool:
    """Whether so much of what is in the files cancels out that all of it should be written anew.

    Reads, and the room on disk, are then within twice what there is, and each row that goes costs the writing of two.
    """
    return not all(each.plain for each in sealed.files) and sealed.changes > 2 * max(sealed.net, 0) + slack


def is_loose(sealed: Sealed) -> bool:
    """Whether writing all of it anew takes rows away, or most of the files: each part of what is written anew has some
    room left, and so there may be a few more than would do."""
    cancels = sealed.changes > max(sealed.net, 0) and not all(each.plain for each in sealed.files)
    return cancels or len(sealed.files) > 2 * max(parts_of(sealed.files), 1)


def parts_of(files: Sequence[Segment]) -> int:
    """Into how many parts ``files`` go that are written anew: each is in memory at once."""
    rows_in = -(-sum(each.changes for each in files) // FILE_ROWS)
    return max(rows_in, -(-sum(each.loaded for each in files) // MERGED_LOADED))


def cuts(bound: Bound, sealed: Sealed, topic: str, gaps_are_garbage: bool) -> dict[int, int]:
    """:func:`cut_below` of each partition of ``topic`` of which something may be cut."""
    lowest = needed(bound, sealed, topic)
    found = {p: cut_below(bound, lowest, (topic, p), gaps_are_garbage) for name, p in bound.coverage if name == topic}
    return {partition: below for partition, below in found.items() if below}


def needed(bound: Bound, sealed: Sealed, topic: str) -> dict[int, int]:
    """For each partition of ``topic`` the lowest offset that is bound and in no file, where there is one.

    By the runs, since what was given up is covered and nobody needs it.  What is recent is in no file.
    """
    found: dict[int, int] = {}
    left = unsealed((each for each in bound.base if each.run.topic == topic), sealed)
    for each in (*left, *bound.recent):  # once for all partitions: a busy table has some hundred thousand of these
        run = each.run
        if run.topic == topic and run.lower < found.get(run.partition, run.upper):
            found[run.partition] = run.lower
    return found


def cut_below(bound: Bound, lowest: Mapping[int, int], partition: Partition, gaps_are_garbage: bool) -> int:
    """Below which offset of ``partition`` there is nothing that anybody needs; 0 where nothing may be cut.

    ``lowest``: what is :func:`needed`.  ``gaps_are_garbage``: what is not bound below something that is will never be.
    Of tables that is not so before it is given up (:mod:`oracle.unbound`): an adapter that was stopped between writing
    and committing commits when it goes on, and so does who writes a source's errors.  (A view is bound by the holder of
    an epoch, in order.)
    """
    intervals = bound.coverage.get(partition, ())
    if gaps_are_garbage:
        end = intervals[-1][1] if intervals else 0
    else:
        end = intervals[0][1] if intervals and intervals[0][0] == 0 else 0
    return min(end, lowest.get(partition[1], end))
