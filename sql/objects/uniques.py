"""The constraints of a table, as whoever writes its rows must keep them.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from catalog_log.objects import Column, Index, Table
from catalog_log.records import RANGES_FROM
from collection.columns import sql_type
from collection.keys import row_keys
from collection.ordered_keys import ordered_keys
from sql.objects.names import ImageLike


class WrittenRows(Protocol):
    """``adapter.execute.rows.Rows``: by position, ``rows`` has ``columns``."""

    rows: pa.Table

    @property
    def columns(self) -> tuple[Column, ...]: ...


@dataclass(frozen=True)
class Unique:
    """PRIMARY KEY or UNIQUE: no two rows have the same values in ``columns`` unless one of them is NULL."""

    index: Index
    columns: tuple[Column, ...]
    ordered: bool = False
    """Whether commits name its keys in the order of their values (``catalog_log.records.RANGES_FROM``)."""

    def keys_of(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes | None]:
        """Of each row, of which ``columns`` are those of the key, its key as commits name it; ``None`` where a NULL is
        in it."""
        if not self.ordered:
            return row_keys(self.index.id, columns)
        return ordered_keys(self.index.id, [sql_type(each.type) for each in self.columns], columns)

    def values_of(self, rows: WrittenRows, row: int) -> tuple[object, ...]:
        """The key of one of ``rows``."""
        return tuple([cell.as_py() for cell in self.cells_of(rows, row)])

    def cells_of(self, rows: WrittenRows, row: int) -> list[pa.Scalar]:
        place = {column.stored_as: at for at, column in enumerate(rows.columns)}
        return [rows.rows.column(place[name])[row] for name in self.index.key]

    @property
    def stored_as(self) -> tuple[str, ...]:
        return self.index.key


def indexes_of(relation_id: str, cluster_id: str, image: ImageLike) -> list[Index]:
    """Those of a relation that a cluster keeps, of constraints or not."""
    found = (each for each in image.dependents(relation_id) if isinstance(each, Index))
    return [each for each in found if each.cluster_id == cluster_id]


def uniques_of(table: Table, image: ImageLike) -> tuple[Unique, ...]:
    """Those of ``table``: in the order in which Postgres looks at them, which is that in which they were made.  Without
    those of columns that the statement in hand has taken from it."""
    found = [each for each in image.dependents(table.id) if isinstance(each, Index) and each.constraint is not None]
    by_stored = {column.stored_as: column for column in table.columns}
    ordered = sorted(found, key=lambda each: (len(each.id), each.id))
    is_ordered = image.genesis is not None and image.genesis.format_version >= RANGES_FROM
    there = [each for each in ordered if by_stored.keys() >= {*each.key}]
    return tuple([Unique(each, tuple([by_stored[name] for name in each.key]), is_ordered) for each in there])
