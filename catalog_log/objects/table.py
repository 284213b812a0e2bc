"""A table: rows that statements write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog_log.objects.check import Check
from catalog_log.objects.item import Column, Record, Relation, as_stored


@dataclass(frozen=True)
class Table(Relation):
    kind = word = "table"
    plural = "tables"

    dropped: tuple[Column, ...] = ()
    """Columns that it had: rows that were written then have them still."""
    reads: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """By the ids of columns: the sequences that the names in a column's DEFAULT mean, in their order."""
    identities: tuple[tuple[int, str, str], ...] = ()
    """Identity columns by their ids: :data:`ALWAYS` or :data:`BY_DEFAULT`, and the sequence that each counts by."""
    unchecked: tuple[tuple[int, str], ...] = ()
    """Columns that take no NULL any more while somebody looks whether there is one (SET NOT NULL), by their ids, each
    with what tells this time from any other.  They are ``nullable`` until that is known, and NOT NULL for code that
    knows nothing of this."""
    checks: tuple[Check, ...] = ()
    """What every row keeps, by name: in the order in which it is looked at."""

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

    def identity_of(self, column: Column) -> tuple[str, str] | None:
        """``(ALWAYS or BY_DEFAULT, sequence)`` of an identity column."""
        found = (each[1:] for each in self.identities if each[0] == column.id and column.id)
        return next(found, None)

    def takes_null(self, column: Column) -> bool:
        """Whether rows that are written may have a NULL in one of its columns."""
        return column.nullable and not (self.unchecked and any(each[0] == column.id for each in self.unchecked))

    def mark_of(self, column: Column) -> str | None:
        """What says of which column it is looked whether it has a NULL, and since when; ``None`` where it is not."""
        found = (f"{self.id}/{column_id}/{since}" for column_id, since in self.unchecked if column_id == column.id)
        return next(found, None)

    def marked(self, column: Column, since: str) -> Table:
        """Itself, with no NULL written into one of its columns any more; one that is marked stays so."""
        if self.mark_of(column) is not None:
            return self
        return replace(self, unchecked=tuple(sorted((*self.unchecked, (column.id, since)))))

    def not_marked(self, column: Column) -> Table:
        return replace(self, unchecked=tuple([each for each in self.unchecked if each[0] != column.id]))

    def with_check(self, check: Check) -> Table:
        """Itself with ``check``, in the place of one that is called so."""
        others = [each for each in self.checks if each.name != check.name]
        return replace(self, checks=tuple(sorted((*others, check), key=lambda each: each.name)))

    def without_check(self, name: str) -> Table:
        return replace(self, checks=tuple([each for each in self.checks if each.name != name]))

    def without(self, column: Column) -> Table:
        """Itself without a column, which it had, and without the checks that use it."""
        found = self.with_default(column, ()).not_marked(column)
        left = tuple([each for each in found.columns if each.id != column.id])
        identities = tuple([each for each in found.identities if each[0] != column.id])
        gone = replace(column, nullable=True, default=None)
        checks = tuple([each for each in found.checks if not each.uses(column.id)])
        return replace(found, columns=left, dropped=(*found.dropped, gone), identities=identities, checks=checks)

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
        identities = tuple([(column_id, kind, now(of)) for column_id, kind, of in self.identities])
        return replace(super().with_ids(now, spark), reads=reads, identities=identities)

    def fields(self) -> dict[str, Any]:
        options = {f"{_READS}{column_id}": ",".join(ids) for column_id, ids in self.reads}
        options |= {f"{_IDENTITY}{column_id}": f"{kind},{of}" for column_id, kind, of in self.identities}
        options |= {f"{_UNCHECKED}{column_id}": since for column_id, since in self.unchecked}
        options |= {f"{_CHECK}{each.name}": each.text for each in self.checks}
        found = {"dropped": [vars(column) for column in self.dropped], "options": options}
        if self.unchecked:
            found["columns"] = [vars(column) | {"nullable": self.takes_null(column)} for column in self.columns]
        return found

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Table:
        dropped = tuple([Column(**column) for column in record["dropped"]])
        reads = sorted((number, tuple(ids)) for number, ids in _by_column(record, _READS))
        identities = sorted((number, kind, of) for number, (kind, of) in _by_column(record, _IDENTITY))
        unchecked = tuple(sorted((number, since) for number, (since,) in _by_column(record, _UNCHECKED)))
        if unchecked:
            marked = dict(unchecked)
            columns = tuple([replace(each, nullable=True) if each.id in marked else each for each in columns])
        said = [each for each in record["options"].items() if each[0].startswith(_CHECK)]
        checks = tuple([Check.of_text(name.removeprefix(_CHECK), text) for name, text in sorted(said)])
        return cls(*head, columns, dropped, tuple(reads), tuple(identities), unchecked, checks)


ALWAYS, BY_DEFAULT = "always", "default"

_READS, _IDENTITY, _UNCHECKED = "reads/", "identity/", "unchecked/"
"""Begin the options of a table's record that say what a DEFAULT reads, what an identity column is, and since when it
is looked whether a column has a NULL; a column's id follows."""
_CHECK = "check/"
"""Begins the options that are its checks; the name of one follows."""


def _by_column(record: Record, prefix: str) -> Iterator[tuple[int, list[str]]]:
    for name, value in record["options"].items():
        if name.startswith(prefix):
            yield int(name.removeprefix(prefix)), value.split(",")
