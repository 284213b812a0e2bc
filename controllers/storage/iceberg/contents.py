"""What a sink into Iceberg reads: the changes of its collection as Arrow has them.

Promises: as :class:`controllers.storage.iceberg.sinking.Contents`.  Rows that are settled are read a file at a time, so
that only what is not is bounded by memory (:data:`controllers.storage.sink_contents.BYTES_MAX`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from collection.columns import DIFF, sql_type
from controllers.changes import TS, only_insertions
from controllers.storage.iceberg.columns import Columns
from controllers.storage.iceberg.sinking import Batch
from controllers.storage.sink_contents import CollectionContents
from controllers.storage.sinking import SinkRefused
from values.sql_type import SqlType

NEGATIVE_BYTES_MAX = 256 << 20
"""Of rows that were taken back from files and are in them still: some millions, and no more than a third of a table's
(``VACUUM FULL``)."""


class TableContents(CollectionContents):
    """What ``sink`` writes of ``relation``.  For one thread; close it."""

    def at(self, ts: int) -> Iterator[pa.Table]:
        """As :meth:`controllers.storage.iceberg.sinking.Contents.at`."""
        files, runs = self._held_at(ts)
        negative: list[pa.Table] = []
        for each in files:
            for table in self._sealed(each, ts):
                yield from self._first(table, negative)
        for table in self._written(self._read(runs, ())):
            yield from self._first(table, negative)
        yield from negative  # once all is there that they take away

    def between(self, after: int, through: int) -> Batch:
        """As :meth:`controllers.storage.iceberg.sinking.Contents.between`."""
        reached, runs = self._bound_between(after, through)
        found = list(self._written(self._read(runs, ()))) if runs else []
        return Batch(reached, found[0] if found else None)

    def columns(self) -> Columns:
        """What is written."""
        return Columns([(name, self._type_of(number)) for number, name in self._sink.columns])

    def key_of(self, table: pa.Table) -> Iterable[bytes]:
        """The key of each row of what :meth:`at` and :meth:`between` give."""
        return self._form.keys([table.column(name) for name in self._keys])

    def _type_of(self, number: int) -> SqlType:
        return next(sql_type(column.type) for column in self._relation.stored if column.id == number)

    def _first(self, table: pa.Table, negative: list[pa.Table]) -> Iterator[pa.Table]:
        table = table.select([*self._names, TS, DIFF])
        if only_insertions(table):
            yield table
            return
        goes = pc.less(table.column(DIFF), 0)
        negative.append(table.filter(goes))
        if sum(each.nbytes for each in negative) > NEGATIVE_BYTES_MAX:
            raise SinkRefused(f"more than {NEGATIVE_BYTES_MAX >> 20} MiB of rows that were taken back would have to be "
                              "read at once: VACUUM FULL first")  # fmt: skip
        yield table.filter(pc.invert(goes))

    def _written(self, pieces: list[pa.Table]) -> Iterator[pa.Table]:
        """All of them as one, where there are any."""
        if not pieces:
            return
        table = self._together(pieces)
        if table.num_rows:
            yield table
