"""The data files of an Iceberg table, and what changes of rows make of them.  Pure, but for who reads and writes files.

Promises: the files that are left hold the rows that there were with the changes put to them, each as often as it is
there.  A file in which a row went is written anew without it.  Of what is read no more is in memory at a time than a
slice of a file; of what is staged :data:`STAGED_BYTES_MAX`, and what writing a file takes.

Which files may hold a row is known from their bounds of each column, so where a key comes in order only the files of
the keys that changed are read.  Files that are small are merged once there are too many of one size: each row is
written some times over while its files grow, and never again after that.  So a table has :data:`ALIKE_MAX` files of
each of three smaller sizes, at most, and full ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import DIFF
from controllers.changes import consolidate, present
from controllers.storage.iceberg.columns import comparable
from controllers.storage.sinking import SHOWN_CHARS_MAX, SinkRefused
from values.limits import TIMES_MAX

STAGED_BYTES_MAX = 64 << 20
"""Of changes, before they are put to files: some half a million rows, which are 10 to 20 MB in a file."""

FULL_BYTES = 16 << 20
"""A file of so much is not merged any more: small enough to be written anew for one row in a second, and large enough
for engines that read tables of a terabyte."""

ALIKE_MAX = 8
"""Files of one size, after which they are merged: each size is eight times the one before."""

SIZES = (FULL_BYTES // 64, FULL_BYTES // 8, FULL_BYTES)
"""Where one ends."""


@dataclass(frozen=True)
class File:
    """One data file.  ``bounds``: by a column's place its least and greatest value as :func:`~controllers.storage.
    iceberg.columns.comparable` has them; ``no_odd``: places of columns in which it has neither NULL nor NaN."""

    path: str
    bytes: int
    rows: int
    bounds: Mapping[int, tuple[object, object]]
    no_odd: frozenset[int]
    its: object = None
    """What the store knows it by."""


class Writer(Protocol):
    def add(self, rows: pa.Table) -> None: ...

    def close(self) -> list[File]:
        """The files that hold what was added: none where nothing was."""


class Store(Protocol):
    def read(self, file: File) -> Iterator[pa.Table]: ...

    def writer(self) -> Writer: ...

    def remove(self, file: File) -> None:
        """It was never part of a table, nor of an attempt to make it so."""


class Changing:
    """What becomes of ``files``, which are the table's."""

    def __init__(self, files: Iterable[File], store: Store, only_added: bool, key: Sequence[int]) -> None:
        """``only_added``: whether rows may go that are in the table already; ``key``: places of columns by which rows
        are told apart, all where it is empty."""
        self.committed = {file.path: file for file in files}
        self.files = dict(self.committed)
        self.rows = 0
        """That came, and that went."""
        self._store = store
        self._only_added = only_added
        self._key = key
        self._staged: list[pa.Table] = []

    @property
    def added(self) -> list[File]:
        return [file for path, file in self.files.items() if path not in self.committed]

    @property
    def removed(self) -> list[File]:
        return [file for path, file in self.committed.items() if path not in self.files]

    def stage(self, changes: pa.Table) -> None:
        """Columns, then ``__diff``.  Raises :class:`SinkRefused` for a row that goes and is not there."""
        self._staged.append(changes)
        if sum(each.nbytes for each in self._staged) >= STAGED_BYTES_MAX:
            self.settle()

    def settle(self) -> None:
        """Have all that is staged in files.  Raises as :meth:`stage` does."""
        if not self._staged:
            return
        changes = consolidate(pa.concat_tables(self._staged))
        self._staged = []
        positive = pc.greater(changes.column(DIFF), 0)
        went, came = changes.filter(pc.invert(positive)), changes.filter(positive)
        if went.num_rows:
            self._take(went)
        if came.num_rows:
            rows = _told(came)
            by = [(name, "ascending") for place, name in enumerate(rows.column_names)
                  if place in (self._key or (0,)) and not pa.types.is_nested(rows.column(place).type)]  # fmt: skip
            self._write([rows.sort_by(by) if by else rows])
            self.rows += rows.num_rows

    def merge(self) -> bool:
        """Make one of files that are too many of one size; whether there were any."""
        some = False
        for size in range(len(SIZES)):
            alike = [file for file in self.files.values() if _size(file) == size]
            if len(alike) > ALIKE_MAX:
                self._write(rows for file in alike for rows in self._store.read(file))
                for file in alike:
                    self._drop(file)
                some = True
        return some

    def _take(self, went: pa.Table) -> None:
        """``went``: columns, then ``__diff``, which is negative."""
        self.rows -= pc.sum(went.column(DIFF)).as_py()
        for file in self._candidates(went):
            went = self._take_from(file, went)
            if not went.num_rows:
                return
        shown = _shown(went)
        if self._only_added:
            raise SinkRefused(f"a row went, which MODE APPEND has no way to say: {shown}")
        raise SinkRefused(f"a row that goes is not in the table: {shown}; somebody else has changed it")

    def _candidates(self, went: pa.Table) -> list[File]:
        """Files that may hold any of ``went``, newest first: what came last goes first more often."""
        found = [file for path, file in self.files.items() if not self._only_added or path not in self.committed]
        for place in self._key or range(went.num_columns - 1):
            column = went.column(place)
            values = comparable(column)
            if values is None:
                continue
            odd = column.null_count > 0
            if pa.types.is_floating(column.type):
                odd = odd or bool(pc.any(pc.is_nan(column)).as_py())
            found = [file for file in found if _may_hold(file, place, values, odd)]
        return found[::-1]

    def _take_from(self, file: File, went: pa.Table) -> pa.Table:
        """What of ``went`` is not in it."""
        may_be = _may_be_of(went, self._key)
        if not any(_any(may_be(rows)) for rows in self._store.read(file)):
            return went
        left = [went]  # by the generator, once the last slice was read

        def kept() -> Iterator[pa.Table]:
            for rows in self._store.read(file):
                touched = may_be(rows)
                yield rows.filter(pc.invert(touched))
                there = rows.filter(touched)
                if not there.num_rows:
                    continue
                there = there.append_column(DIFF, pa.repeat(pa.scalar(1, pa.int64()), there.num_rows))
                both = consolidate(pa.concat_tables([there, left[0]]))
                positive = pc.greater(both.column(DIFF), 0)
                left[0] = both.filter(pc.invert(positive))
                yield _told(both.filter(positive))

        self._write(kept())
        self._drop(file)
        return left[0]

    def _write(self, tables: Iterable[pa.Table]) -> None:
        writer = self._store.writer()
        for rows in tables:
            if rows.num_rows:
                writer.add(rows)
        self.files |= {file.path: file for file in writer.close()}

    def _drop(self, file: File) -> None:
        del self.files[file.path]
        if file.path not in self.committed:
            self._store.remove(file)


def _shown(rows: pa.Table) -> str:
    """The first of them, for a person."""
    values = []
    for column in rows.slice(0, 1).columns[:-1]:
        moment = pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type)  # wider than Python's
        values.append(str((pc.cast(column, pa.string()) if moment else column).to_pylist()[0]))
    return f"({', '.join(values)})"[:SHOWN_CHARS_MAX]


def _size(file: File) -> int:
    return sum(file.bytes >= each for each in SIZES)


def _may_hold(file: File, place: int, values: Sequence[object], odd: bool) -> bool:
    if odd and place not in file.no_odd or place not in file.bounds:
        return True
    least, greatest = file.bounds[place]
    at = bisect_left(values, least)
    return at < len(values) and values[at] <= greatest


def _may_be_of(went: pa.Table, key: Sequence[int]) -> Callable[[pa.Table], pa.Array]:
    """Which rows of a table may be among ``went``: by one column of the key, which is quick."""
    for place in key or range(went.num_columns - 1):
        kind = went.column(place).type
        if not (pa.types.is_nested(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)):
            wanted = pc.unique(went.column(place))
            return lambda rows: pc.is_in(rows.column(place), wanted)
    return lambda rows: pa.chunked_array([pa.repeat(pa.scalar(True), rows.num_rows)])


def _told(changes: pa.Table) -> pa.Table:
    """Each row as often as it is there.  Raises :class:`SinkRefused` where that is too often."""
    rows = present(changes, changes.column_names[:-1], TIMES_MAX)
    if rows is None:
        raise SinkRefused(f"more than {TIMES_MAX} rows would have to be written at once, as often as some of them came")
    return rows


def _any(found: pa.ChunkedArray) -> bool:
    return bool(pc.any(found).as_py())
