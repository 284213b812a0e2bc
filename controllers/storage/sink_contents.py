"""What a sink reads: the changes of its collection, wherever they are, as the rows that it writes.

Promises: exactly the changes that the journals bound in the stretch that is asked for, equal ones of one timestamp as
one.  What is read at once is bounded: the changes of as many timestamps as :data:`BATCH_ROWS` allows (those of one
timestamp are never apart), and :data:`BYTES_MAX` of memory in all; beyond that the sink is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from catalog_log.objects import Relation, Sink, Source
from collection.binding import BoundRun
from collection.columns import DIFF, sql_type
from collection.messages.avro_written import Null
from collection.reader import JSON, ROWS, RunReader
from controllers.changes import TS, consolidate, only_insertions, stamp
from controllers.storage.journals import Journals
from controllers.storage.sink_forms import Form
from controllers.storage.sinking import ChangeColumns, Changes, SinkRefused
from journal.errors import Unavailable
from oracle.errors import SnapshotTooOld
from segments.fold import NOTHING
from segments.model import Segment
from segments.parquet import chunks
from segments.unsealed import unsealed

BATCH_ROWS = 50_000
"""Rows of one transaction, but for those of one timestamp: written in half a second, so that what is written twice
after a crash is little, and a consumer waits for little."""

BYTES_MAX = 1 << 30
"""Of Arrow, that the changes of one timestamp, or all rows where a sink begins, may have: what is in memory for it is
some three times as much."""

SLICE_ROWS = 10_000
"""Rows that are written out at once, so that their bytes are not all in memory with the rows."""


class CollectionContents:
    """What ``sink`` writes of ``relation``.  For one thread; close it."""

    def __init__(self, bootstrap: str, sink: Sink, relation: Relation, journals: Journals,
                 stopping: Callable[[], bool], form: Form) -> None:  # fmt: skip
        self._sink = sink
        self._relation = relation
        self._journals = journals
        self._stopping = stopping
        self._bootstrap = bootstrap
        self._reader: RunReader | None = None
        self._types = [sql_type(column.type) for column in relation.stored]
        places = {column.id: place for place, column in enumerate(relation.stored)}
        self._names = [f"c{places[number]}" for number, _ in sink.columns]
        self._keys = [f"c{places[number]}" for number in sink.key]
        self._form = form

    def at(self, ts: int) -> Iterator[ChangeColumns]:
        """As :meth:`controllers.storage.sinking.Contents.at`."""
        files, runs = self._held_at(ts)
        pieces = [each for file in files for each in self._sealed(file, ts)]
        pieces += self._read(runs, pieces)
        yield from self._parts(pieces)

    def between(self, after: int, through: int) -> Changes:
        """As :meth:`controllers.storage.sinking.Contents.between`."""
        reached, runs = self._bound_between(after, through)
        return Changes(reached, list(self._parts(self._read(runs, ()))) if runs else ())

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _held_at(self, ts: int) -> tuple[Sequence[Segment], list[BoundRun]]:
        """Where its rows are: in files, and bound beside them, as of ``ts``.  Raises as :meth:`at` does."""
        runs = self._journals.bound(self._relation)
        since = runs.since
        at = max(ts, since)
        first = runs.first_change(ts + 1)
        if first is not None and first <= at:
            raise too_old(ts, since)
        sealed = NOTHING if self._journals.segments is None else self._journals.segments.state.sealed(self._relation.id)
        return sealed.files, [each._replace(ts=ts) for each in unsealed(runs.at(at), sealed)]

    def _sealed(self, file: Segment, ts: int) -> Iterator[pa.Table]:
        for table in chunks(file, self._journals.store.read(file.path), self._relation.stored):
            yield stamp(table, ts, self._types)

    def _bound_between(self, after: int, through: int) -> tuple[int, list[BoundRun]]:
        """Through when :meth:`between` goes, and in what runs its changes are."""
        runs = self._journals.bound(self._relation)
        if runs.last_change is None or runs.last_change <= after:  # as mostly, and that costs nothing to know
            return through, []
        try:
            found = runs.between(after + 1, through + 1)
        except SnapshotTooOld:
            raise too_old(after, runs.since) from None
        taken, reached = _first_of(found, through)
        return reached, taken

    def _read(self, bound: Sequence[BoundRun], before: Iterable[pa.Table]) -> list[pa.Table]:
        if not bound:
            return []
        if self._reader is None:
            self._reader = RunReader(self._bootstrap)
        # A source's rows are the records of its topic, where they are bound as they came.
        form = JSON if isinstance(self._relation, Source) and self._relation.in_place else ROWS
        found, size = [], sum(table.nbytes for table in before)
        with closing(self._reader.bound_chunks(bound, self._relation.stored, form)) as tables:
            for table, stamps in tables:
                if self._stopping():
                    raise Unavailable("the controller is stopping")
                found.append(stamp(table, stamps, self._types))
                size += found[-1].nbytes
                if size > BYTES_MAX:
                    raise SinkRefused(f"more than {BYTES_MAX >> 20} MiB would have to be read at once")
        return found

    def _parts(self, pieces: Sequence[pa.Table]) -> Iterator[ChangeColumns]:
        """None of them empty."""
        if not pieces:
            return
        table = self._together(pieces)
        for start in range(0, table.num_rows, SLICE_ROWS):
            part = table.slice(start, SLICE_ROWS)
            rows = self._form.rows([part.column(name) for name in self._names])
            keys: Sequence[bytes | None] = [None] * len(rows)
            if self._keys:
                keys = self._key_bytes([part.column(name) for name in self._keys])
            yield ChangeColumns(part.column(TS).to_pylist(), keys, rows, part.column(DIFF).to_pylist())

    def _together(self, pieces: Sequence[pa.Table]) -> pa.Table:
        """All changes of ``pieces``, one at least, in what is written; equal ones of one timestamp as one."""
        table = pa.concat_tables(pieces).select([*dict.fromkeys(self._names), TS, DIFF])
        return table if only_insertions(table) else consolidate(table, with_ts=True)

    def _key_bytes(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        try:
            return self._form.keys(columns)
        except Null as null:
            told = f"column {null} of its key has become NULL, which its key's schema has not: make the sink anew"
            raise SinkRefused(told) from None


def _first_of(runs: Sequence[BoundRun], through: int) -> tuple[list[BoundRun], int]:
    """Those of the first timestamps, in the order of them, and through when that is all."""
    taken: list[BoundRun] = []
    rows = 0
    for each in sorted(runs, key=lambda bound: bound.ts):
        if rows >= BATCH_ROWS and each.ts > taken[-1].ts:
            return taken, each.ts - 1
        taken.append(each)
        rows += each.run.rows if each.run.rows >= 0 else each.run.upper - each.run.lower
    return taken, through


def too_old(ts: int, since: int) -> SinkRefused:
    return SinkRefused(
        f"what came after {ts} is not told apart any more (history is kept from {since} on): the target was away for "
        "longer than history is kept; drop the sink and create it anew"
    )
