"""Rows of small collections, which the oracle's log carries, become parts of files that they share.

What is small costs no topic and no file of its own: its rows are in records of the oracle's log, in everybody's memory,
and that is bounded.  So what may be told apart no more is put into a file where it is much, of all collections
together, each with a part of its own; then the log of segments says so (an exchange), and after that the oracle's lets
go of it (:meth:`oracle.client.Oracle.retire`).

Promises: no reader can tell, at any timestamp (I5): a row is either carried or in files to whoever knows both logs, and
who knows of the second record and not of the first waits for it.  Killed at any moment it leaves a file that nobody
named, which is swept, or rows that are carried for a while longer.  Two of them beside each other share each row once:
the log of segments knows a row by its number, which no other row ever has, and from version 5 of its records on the
oracle's log keeps it by that number (:data:`oracle.records.CARRIED_SEALED`), since a mover would give it another name.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from catalog_log.image import Image
from catalog_log.records import SHARED_FILES_FROM
from collection.binding import INLINE, BoundRun, Run
from collection.columns import Columns
from collection.reader import carried_chunks
from controllers.storage.failing import AFTER_FAILURE_S, Failing
from controllers.storage.sealed_files import Made, SealedFiles, made
from controllers.storage.sealing import MERGE_FACTOR, PART_LOADED
from journal.errors import Indeterminate, TidemarkError, Unavailable
from oracle.bindings import Bound, carried_for_good
from oracle.client import Oracle
from oracle.model import Offsets
from oracle.records import CARRIED_SEALED
from oracle.state import HELD_BYTES_MAX, OracleState, held_for_good
from segments.fold import Sealed, SegmentsState
from segments.log import SegmentsLog
from segments.model import Exchange, Segment, place_of
from segments.parquet import Damaged
from segments.records import SHARED_VERSION
from segments.store import Gone, Unreadable
from segments.unsealed import unsealed

log = logging.getLogger(__name__)

CARRIED_BYTES = HELD_BYTES_MAX // 8
"""Of what is carried and told apart no more: from so much on there is something to do.  As much as a mover leaves of
what is told apart (:data:`controllers.storage.mover.HELD_BYTES_LOW`), so that both together are half of where adapters
stop."""

LEFT_BYTES = CARRIED_BYTES // 4
"""So much of it may stay, of the smallest collections: a part costs everybody who folds the log of segments as much as
two small rows do who fold the oracle's."""

FILE_BYTES = 8 << 20
PARTS_MAX = 1_000
"""Of a shared file, in bytes that were carried and in parts, whichever comes first.  A thousand are made in some two
seconds, in which nothing else is sealed."""

SPARSE_LOOK_S = 60.0
"""Between two looks at how much of shared files still is in use: it goes through all files there are."""


class Shared(NamedTuple):
    """What is to become of a collection's rows: those up to number ``upper`` are in ``made``, or in files of its
    own."""

    exchange: Exchange
    upper: int
    made: Made | None
    """``None`` where nothing is left of them, or where they are in the files that the exchange adds already."""


def due(oracle: OracleState, bytes_from: int = CARRIED_BYTES) -> list[str]:
    """The collections of which what is carried for good goes into files, the largest first.  Pure."""
    total = oracle.held_for_good
    if total < bytes_from:
        return []
    sizes = {name: size for name in oracle.held if (size := held_for_good(oracle.bound[name]))}
    found = []
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if total <= LEFT_BYTES * bytes_from // CARRIED_BYTES:
            break
        found.append(name)
        total -= sizes[name]
    return found


def upper_sealed(sealed: Sealed) -> int:
    """The rows with numbers below it are in files.  Pure."""
    intervals = sealed.coverage.get((INLINE, 0), ())
    return intervals[0][1] if intervals and intervals[0][0] == 0 else 0


def newest(files: Sequence[Segment], changes: int, loaded: int) -> tuple[Segment, ...]:
    """The newest parts among ``files`` that become one with so many changes, which take so many bytes: each is less
    than :data:`MERGE_FACTOR` times what is newer, as of files that merge.  Pure."""
    found: list[Segment] = []
    for each in reversed(files):
        if place_of(each.path).part is None or each.changes >= MERGE_FACTOR * changes:
            break
        if loaded + each.loaded > PART_LOADED:
            break
        found.append(each)
        changes, loaded = changes + each.changes, loaded + each.loaded
    return tuple(reversed(found))


def sparse(collections: Mapping[str, Sealed]) -> list[tuple[str, Segment]]:
    """The parts of files of which less than half is in use: they go elsewhere, so that the file can be removed.  Pure.
    """
    of: dict[str, list[tuple[str, Segment]]] = {}
    whole: dict[str, int] = {}
    for name, sealed in collections.items():
        for each in sealed.files:
            place = place_of(each.path)
            if place.part is not None:
                of.setdefault(place.file, []).append((name, each))
                whole[place.file] = place.whole
    few = (file for file, parts in of.items() if 2 * sum(each.size for _, each in parts) < whole[file])
    return [each for file in sorted(few) for each in of[file]]


class Sharing:
    """For the sealer's thread."""

    def __init__(
        self, oracle: Oracle, segments: SegmentsLog, files: SealedFiles,
        columns_in: Callable[[str, Sealed], tuple[Columns, tuple[int, ...]]],
        write: Callable[[str, Columns, Iterable[pa.Table], Sequence[int]], list[Segment]],
        stopped: Callable[[], bool], bytes_from: int = CARRIED_BYTES, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``columns_in`` gives all columns that rows of a collection may have, and where its key is among them;
        ``write`` writes files of its own."""
        self._oracle = oracle
        self._segments = segments
        self._files = files
        self._columns_in = columns_in
        self._write = write
        self._stopped = stopped
        self._from = bytes_from
        self._clock = clock
        self._sparse_at = clock()
        self._not_before = 0.0
        """Until then nothing is done: the store or a log was away."""
        self.failing = Failing(clock)
        """Collections whose rows stay in the log."""
        self.count = 0
        """Parts that were made by this process."""

    def comes_due(self, image: Image, oracle: OracleState) -> bool:
        """Whether there may be something to do if ``since`` were where it may be."""
        return _allowed(image) and oracle.held_bytes >= self._from

    def look(self, image: Image, oracle: OracleState) -> None:
        """Do what is due.  Raises ``Unavailable`` or ``Indeterminate``: then the rest is done at the next look."""
        if not _allowed(image) or self._clock() < self._not_before or not self._may_share(oracle):
            return
        self._not_before = self._clock() + AFTER_FAILURE_S
        self._retire(oracle, self._segments.state)
        self.failing.keep(oracle.held)
        there = (name for name in due(oracle, self._from) if image.item(name) is not None)
        names = iter([name for name in there if not self.failing.is_left(name)])
        while not self._stopped() and self._share(oracle, names):
            pass
        if self._clock() >= self._sparse_at:
            self._sparse_at = self._clock() + SPARSE_LOOK_S
            self._carry_over()
        self._not_before = 0.0

    def _may_share(self, oracle: OracleState) -> bool:
        """Whether both logs may say so; has them begin to, where something is carried: from then on the mover leaves to
        us what is small."""
        by_segments = self._segments.state.record_version >= SHARED_VERSION
        by_oracle = oracle.record_version >= CARRIED_SEALED
        if by_segments and by_oracle:
            return True
        if oracle.held:
            if not by_segments:
                self._segments.raise_format(SHARED_VERSION).result()
            if not by_oracle:
                self._oracle.raise_format(CARRIED_SEALED).result()
        return False  # what this state has at or below `since` may have been moved since

    def _retire(self, oracle: OracleState, segments: SegmentsState) -> None:
        """Let go of what is in files: of who was killed before it could."""
        asked = []
        for name in oracle.held:
            sealed = segments.collections.get(name)
            upper = 0 if sealed is None else upper_sealed(sealed)
            if upper and any(each.run.lower < upper for each in islice(carried_for_good(oracle.bound[name]), 1)):
                asked.append(self._oracle.retire(_numbers(name, upper)))
        _await(asked, "rows stay in the log for a while")

    def _share(self, oracle: OracleState, names: Iterator[str]) -> bool:
        """A file of what is carried of the next of ``names``; whether there may be more to do."""
        shared: list[Shared] = []
        size = 0
        for name in names:
            bound = oracle.bound[name]
            try:
                found = self._of(name, bound)
            except TidemarkError as error:
                reason = self.failing.leave(name, error)
                log.warning("rows of a collection stay in the log", extra={"collection": name, "reason": reason})
                if isinstance(error, Unavailable):  # the store is away, or it was dropped just now
                    break
                continue
            except Exception as error:  # what cannot be decoded, a mistake of ours
                self.failing.leave(name, error)
                log.exception("rows of a collection stay in the log", extra={"collection": name})
                continue
            self.failing.succeeded(name)
            if found is not None:
                shared.append(found)
                size += held_for_good(bound)
            if size >= FILE_BYTES or len(shared) >= PARTS_MAX or self._stopped():
                break
        if not shared:
            return False
        try:
            parts = iter(self._written([each.made for each in shared if each.made is not None]))
        except TidemarkError:
            for each in shared:
                self._files.delete(each.exchange.added)
            raise
        done = self._exchanged(
            each.exchange if each.made is None else each.exchange._replace(added=(next(parts),)) for each in shared
        )
        _await(
            (self._oracle.retire(_numbers(each.exchange.collection, each.upper))
             for each, happened in zip(shared, done, strict=True) if happened),
            "rows stay in the log for a while",
        )  # fmt: skip
        self.count += sum(done)
        log.info("small collections share a file", extra={"parts": sum(done), "bytes": size})
        return True

    def _of(self, name: str, bound: Bound) -> Shared | None:
        """What is to be said of ``name``; ``None`` where another one said it."""
        sealed = self._segments.state.sealed(name)
        runs = list(unsealed(carried_for_good(bound), sealed))
        if not runs:
            return None
        columns, key = self._columns_in(name, sealed)
        rows = _table(runs, columns)
        older = newest(sealed.files, rows.num_rows, rows.nbytes)
        try:
            pieces = [*self._files.read(older, columns), rows]
        except (Gone, Unreadable, Damaged):  # whoever reads the collection is told; what is new stays no longer for it
            older, pieces = (), [rows]
        # All numbers below: those that are missing were moved to a topic while they could be.
        numbers = Run(INLINE, 0, upper_sealed(sealed), runs[-1].run.lower + 1)
        exchange = Exchange(
            name, max(each.ts for each in runs), (numbers,), removed=tuple(each.path for each in older)
        )
        if sum(each.nbytes for each in pieces) > PART_LOADED:
            return Shared(exchange._replace(added=tuple(self._write(name, columns, pieces, key))), numbers.upper, None)
        return Shared(exchange, numbers.upper, made(columns, pieces, key, measures=False))

    def _carry_over(self) -> None:
        """Of files that are hardly in use any more to new ones, as they are."""
        found: list[tuple[str, Segment, Made]] = []
        size = 0
        for name, each in sparse(self._segments.state.collections):
            try:
                data = self._files.store.read(each.path)
            except (Gone, Unreadable):
                continue  # whoever reads the collection is told
            if zlib.crc32(data) != each.crc32:
                continue
            found.append((name, each, Made(data, each)))
            size += len(data)
            if size >= FILE_BYTES or len(found) >= PARTS_MAX:
                break
        if not found or self._stopped():
            return
        parts = self._written([part for *_, part in found])
        done = self._exchanged(
            Exchange(name, removed=(old.path,), added=(new,)) for (name, old, _), new in zip(found, parts, strict=True)
        )
        log.info("parts of files were put together", extra={"parts": sum(done), "bytes": size})

    def _written(self, parts: Sequence[Made]) -> list[Segment]:
        state = self._segments.state
        return self._files.write_shared(state.next_offset, parts, state.names_files)

    def _exchanged(self, exchanges: Iterable[Exchange]) -> list[bool]:
        """Which of them happened.  Others did not, since another one was first, or their collection was dropped: what
        was written for them is nobody's."""
        exchanges = list(exchanges)
        done = _await((self._segments.exchange(each) for each in exchanges), "a collection was not sealed")
        for each, happened in zip(exchanges, done, strict=True):
            if not happened:
                self._files.delete(each.added)
        return done


def _allowed(image: Image) -> bool:
    return image.genesis is not None and image.genesis.format_version >= SHARED_FILES_FROM


def _table(runs: Sequence[BoundRun], columns: Columns) -> pa.Table:
    return pa.concat_tables(table for table, _ in carried_chunks(runs, columns))


def _numbers(name: str, upper: int) -> Offsets:
    return Offsets(name, Run(INLINE, 0, 0, upper))


UNDER_WAY_MAX = 100
"""Records that are sent at once: a log's queue is bounded, and others write to it, too."""


def _await(asked: Iterable[Future], told: str) -> list[bool]:
    """Which of them happened; raises where it is not known of one, or nobody answers, once all are answered."""
    done: list[bool] = []
    failed: TidemarkError | None = None
    asked = iter(asked)
    while batch := list(islice(asked, UNDER_WAY_MAX)):
        for each in batch:
            try:
                each.result()
            except (Unavailable, Indeterminate) as error:
                failed = error
                done.append(False)
            except TidemarkError as error:
                log.info(told, extra={"reason": error.message, "detail": error.detail})
                done.append(False)
            else:
                done.append(True)
        if failed is not None:
            raise failed
    return done
