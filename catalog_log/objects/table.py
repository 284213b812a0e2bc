"""A table: rows that statements write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog_log.objects.item import Column, Record, Relation, as_stored


@dataclass(frozen=True)
class Table(Relation):
    kind = word = "table"

    dropped: tuple[Column, ...] = ()
    """Columns that it had: rows that were written then have them still."""

    @property
    def stored(self) -> tuple[Column, ...]:
        if not self.dropped:
            return as_stored(self.columns)
        return as_stored(sorted((*self.columns, *self.dropped), key=lambda column: column.id))

    def fields(self) -> dict[str, Any]:
        return {"dropped": [vars(column) for column in self.dropped]}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Table:
        return cls(*head, columns, tuple([Column(**column) for column in record["dropped"]]))
