"""A table: rows that statements write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.item import Column, Record, Relation, as_stored


@dataclass(frozen=True)
class Table(Relation):
    kind = word = "table"

    dropped: tuple[Column, ...] = ()
    """Columns that it had: rows that were written then have them still."""
    reads: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """By the ids of columns: the sequences that the names in a column's DEFAULT mean, in their order."""

    @property
    def stored(self) -> tuple[Column, ...]:
        if not self.dropped:
            return as_stored(self.columns)
        return as_stored(sorted((*self.columns, *self.dropped), key=lambda column: column.id))

    @property
    def depends_on(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for _, ids in self.reads for each in ids))

    def reads_of(self, column: Column) -> tuple[str, ...]:
        """The sequences that the names in the DEFAULT of one of its columns mean."""
        return dict(self.reads).get(column.id, ()) if self.reads else ()

    def with_default(self, column: Column, reads: Sequence[str]) -> Table:
        """Itself with ``column`` in the place of the one of that id, whose DEFAULT reads the sequences ``reads``."""
        columns = tuple([column if each.id == column.id else each for each in self.columns])
        others = [each for each in self.reads if each[0] != column.id]
        if reads:
            others.append((column.id, tuple(reads)))
        return replace(self, columns=columns, reads=tuple(sorted(others)))

    def told(self, on: str | None = None) -> str:
        names = [column.name for column in self.columns if on in self.reads_of(column)]
        return f"default value for column {names[0]} of {super().told()}" if names else super().told()

    def left_without(self, gone: Collection[str]) -> Table:
        """Columns whose DEFAULT reads a sequence that goes have none."""
        found = self
        for column in self.columns:
            if not set(gone).isdisjoint(self.reads_of(column)):
                found = found.with_default(replace(column, default=None), ())
        return found

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Table:
        reads = tuple([(column_id, tuple(map(now, ids))) for column_id, ids in self.reads])
        return replace(super().with_ids(now, spark), reads=reads)

    def fields(self) -> dict[str, Any]:
        options = {f"{_READS}{column_id}": ",".join(ids) for column_id, ids in self.reads}
        return {"dropped": [vars(column) for column in self.dropped], "options": options}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Table:
        dropped = tuple([Column(**column) for column in record["dropped"]])
        said = {name.removeprefix(_READS): ids for name, ids in record["options"].items() if name.startswith(_READS)}
        reads = sorted((int(number), tuple(ids.split(","))) for number, ids in said.items() if number.isdigit())
        return cls(*head, columns, dropped, tuple(reads))


_READS = "reads/"
"""Begins the options of a table's record that say what DEFAULTs read; a column's id follows."""
