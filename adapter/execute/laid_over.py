"""Rows that an index finds by key, with a transaction block's own rows laid over them.  Pure.

Promises: :func:`laid_over` gives the rows of that key that the table would have, were the block's writes committed
where it reads; a residual over them (:func:`answered`) is what the index would answer then.  So it goes by what an
index goes by, its own tuples and its own evaluator: values are equal here where they are equal there (1 and 1.0,
every NaN, -0.0 and 0.0), and a read by key gives the same before the block's first write and after it.

A row that the block took away is a count less, one that it wrote a count more, whatever statement it was and in
whatever order: only sums are looked at, as of any change.  So a row that was updated twice, taken away and written
anew, or moved to this key by an UPDATE of it needs no rule of its own, and neither does TRUNCATE, whose rows are all
here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa

from adapter.execute.rows import Rows
from adapter.state.buffer import OfTable
from catalog_log.objects import Column, Index, Table
from collection.columns import sql_type
from controllers.arrangements.residual import Residual, compile_residual
from controllers.arrangements.tuples import Row, canonical, to_rows, to_table, to_values
from controllers.peeks.peek import OWN_BYTES_MAX
from values.types import SqlType, arrow_type, carried

ROWS_MAX = 1_000
"""Of one key, as the index finds them: they travel as wholes and become tuples, some 10 µs a row.  With more of them it
is the cluster that reads, with the block's rows beside."""

OVER_BYTES_MAX = 4 * OWN_BYTES_MAX
"""Of a block's own rows of one table, as Arrow has them, whose keys are looked at: as many as could be sent to a
cluster with a read, where numbers take a quarter of this.  Each becomes a tuple once, in some 5 µs."""


class OwnRows:
    """What a block has written to one table, in ``entries``, to which more may be appended: gathered as they come,
    since each statement asks for it.  A thread at a time."""

    def __init__(self, entries: Sequence[Rows]) -> None:
        self._entries = entries
        self._begin()

    @classmethod
    def of(cls, written: Sequence[Rows]) -> OwnRows:
        """Of what a block has ``written`` to one table, remembered with it where it holds all of that."""
        return written.memo(cls) if isinstance(written, OfTable) else cls(written)

    def _begin(self) -> None:
        self._looked = 0
        self._size, self._runs, self._heavy = 0, False, False
        self._columns: tuple[Column, ...] | None = None
        self._alike = True
        self._by_key: dict[tuple[int, ...], tuple[int, dict[Row, list[tuple[Row, int]]]]] = {}

    def dropped(self, _entry: Rows) -> None:
        """The last of them was cut off: what is known of each is known still (:attr:`Rows.by_key`)."""
        self._begin()

    def _look(self) -> None:
        while self._looked < len(self._entries):
            entry = self._entries[self._looked]
            self._size += entry.size
            self._runs = self._runs or bool(entry.runs)
            self._heavy = self._heavy or entry.heavy
            self._alike = self._alike and self._columns in (None, entry.columns)
            self._columns = entry.columns
            self._looked += 1

    @property
    def heavy(self) -> bool:
        """Whether some are to be looked at on a thread."""
        self._look()
        return self._heavy

    def fits(self, columns: Sequence[Column]) -> bool:
        """Whether all of them are here, are not too many, and have these columns."""
        self._look()
        same = self._alike and self._columns in (None, columns)
        return same and not self._runs and self._size <= OVER_BYTES_MAX

    def by_key(self, keyed: Keyed) -> Mapping[Row, Sequence[tuple[Row, int]]]:
        """By its key each row, and what it adds to its count."""
        begun, found = self._by_key.get(keyed.places) or (0, {})
        for at in range(begun, len(self._entries)):
            for key, changes in keyed.grouped(self._entries[at]).items():
                found.setdefault(key, []).extend(changes)
        self._by_key[keyed.places] = len(self._entries), found
        return found


@dataclass(frozen=True)
class Keyed:
    """Rows of ``table``, which has lost no columns, by values for the leading columns of ``index``."""

    table: Table
    index: Index
    values: tuple[object, ...]

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Where the columns of the key are in a row."""
        at = {column.name: place for place, column in enumerate(self.table.stored)}
        return tuple([at[name] for name in self.index.key[: len(self.values)]])

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        """Those of a row, as an index has them."""
        return tuple([carried(sql_type(column.type)) for column in self.table.stored])

    @cached_property
    def key(self) -> Row:
        """The values as an index has them."""
        types = self.types
        return tuple([canonical(value, types[at]) for value, at in zip(self.values, self.places, strict=True)])

    @property
    def whole(self) -> str:
        """The residual that gives the rows as wholes: one more than ``ROWS_MAX`` where there are so many."""
        return _whole(len(self.types))

    def takes(self, written: Sequence[Rows]) -> bool:
        """Whether rows that a block has ``written`` to the table are all here, are not too many, and have the columns
        that the table has."""
        return OwnRows.of(written).fits(self.table.columns)

    def rows_of(self, batch: pa.RecordBatch) -> list[Row]:
        """What was found, in the order of the columns as they are stored, without rows of other keys."""
        kinds = [arrow_type(kind) for kind in self.types]
        arrays = [array.cast(kind) for array, kind in zip(batch.columns, kinds, strict=True)]
        rows = to_rows(pa.Table.from_arrays(arrays, names=[f"c{at}" for at in range(len(arrays))]))
        return [row for row in rows if self._key_of(row) == self.key]

    def as_table(self, rows: Iterable[tuple[Row, int]]) -> pa.Table:
        """Rows as an engine reads them in the place of the table."""
        schema = pa.schema([(each.name, arrow_type(sql_type(each.type))) for each in self.table.stored])
        return to_table([row for row, count in rows for _ in range(count)], schema)

    def _key_of(self, row: Row) -> Row:
        return tuple([row[at] for at in self.places])

    def changes(self, written: Sequence[Rows]) -> Sequence[tuple[Row, int]]:
        """Of what the block has ``written`` the rows of this key, each with what it adds to their count."""
        if None in self.key:
            return []
        return OwnRows.of(written).by_key(self).get(self.key, [])

    def grouped(self, entry: Rows) -> dict[Row, list[tuple[Row, int]]]:
        """All rows of ``entry``, as :meth:`changes` gives those of a key, by theirs."""
        known = entry.by_key.get(self.places)
        if known is None:
            known = entry.by_key[self.places] = self._grouped(entry)
        return known

    def _grouped(self, entry: Rows) -> dict[Row, list[tuple[Row, int]]]:
        diff = 1 if entry.removed is None else -1
        found: dict[Row, list[tuple[Row, int]]] = {}
        for key, row in self.rows({c.stored_as: entry.rows.column(at) for at, c in enumerate(entry.columns)}):
            found.setdefault(key, []).append((row, diff))
        return found

    def rows(self, columns: Mapping[str, pa.ChunkedArray]) -> Iterator[tuple[Row, Row]]:
        """The key and the whole of each row, as an index has them, of ``columns`` by what they are stored as."""
        values = [
            to_values(columns[column.name].cast(arrow_type(kind)))
            for column, kind in zip(self.table.stored, self.types, strict=True)
        ]
        for row in zip(*values, strict=True):
            yield self._key_of(row), row


@lru_cache
def _whole(width: int) -> str:
    project = [["col", at] for at in range(width)]
    return json.dumps({"filter": None, "project": project, "aggregate": None, "order_by": [], "limit": ROWS_MAX + 1,
                       "offset": 0})  # fmt: skip


def laid_over(found: Sequence[Row], changes: Iterable[tuple[Row, int]]) -> list[tuple[Row, int]]:
    """The rows that were ``found`` with ``changes`` to them, each with what it adds to their count: each once, with how
    often it is there."""
    counts: dict[Row, int] = {}
    for row in found:
        counts[row] = counts.get(row, 0) + 1
    for row, diff in changes:
        counts[row] = counts.get(row, 0) + diff
    return [(row, count) for row, count in counts.items() if count > 0]


def answered(residual: str, keyed: Keyed, rows: Sequence[tuple[Row, int]]) -> pa.Table:
    """What an index with these ``rows`` answers.  Raises what the residual's expressions raise."""
    return _compiled(residual, keyed.types).run(rows)


@lru_cache(maxsize=1000)  # as an index remembers them: a statement's text repeats, with its values in the key
def _compiled(residual: str, types: tuple[SqlType, ...]) -> Residual:
    return compile_residual(residual, types)
