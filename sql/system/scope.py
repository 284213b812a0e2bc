"""What names mean in one query: its relations and their columns, WITH queries, and the queries around it.  Pure.

What a name means is noted on the tree by places: which relation of FROM, and which of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from journal.errors import InvalidUsage
from sql.system.types import PgType
from trees.errors import ambiguous, no_column, no_from_entry

Columns = tuple[tuple[str, PgType], ...]

HIDDEN = "tableoid"
"""What every relation of pg_catalog also has, but ``*`` does not show: the oid of the relation itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a relation of FROM: relations have numbers, which are unique in a statement."""

    relation: int
    position: int


@dataclass(frozen=True, slots=True)
class Merged:
    """What a join has by USING: the first of both that is not NULL."""

    sides: tuple[Meaning, Meaning]
    kind: PgType


@dataclass(frozen=True, slots=True)
class Whole:
    """A row of a relation."""

    columns: tuple[Seen, ...]


Meaning = Place | Merged | Whole


class Seen(NamedTuple):
    """A column as it is called, its type, and what it is."""

    name: str
    kind: PgType
    meaning: Meaning


Row = tuple[Seen, ...]


def row_of(relation: int, columns: Columns) -> Row:
    """The columns of a relation by their places."""
    return tuple(Seen(name, kind, Place(relation, at)) for at, (name, kind) in enumerate(columns))


def columns_of(row: Row) -> Columns:
    return tuple((each.name, each.kind) for each in row)


class Named(NamedTuple):
    """A WITH query: what it is called in the whole statement, and its columns."""

    name: str
    columns: Columns


@dataclass
class Scope:
    """``seen``: the columns that a name alone may mean and ``*`` shows, in this order; those of a USING are once."""

    above: Scope | None = None
    queries: dict[str, Named] = field(default_factory=dict)
    relations: dict[str, Row] = field(default_factory=dict)
    hidden: dict[str, Seen] = field(default_factory=dict)
    """The column :data:`HIDDEN` of those relations that have it, by what these are called."""
    seen: Row = ()

    def query(self, name: str) -> Named | None:
        """The WITH query ``name``."""
        if name in self.queries:
            return self.queries[name]
        return self.above.query(name) if self.above is not None else None

    def add(self, alias: str, row: Row) -> None:
        """42712 where there is one of this name."""
        if alias and alias in self.relations:
            raise InvalidUsage(f'table name "{alias}" specified more than once', sqlstate="42712")
        self.relations[alias] = row

    def own(self, name: str, position: int | None = None) -> Seen | None:
        """What a name alone means in this query's own FROM.  42702."""
        found = [each for each in self.seen if each.name == name]
        if len(found) > 1:
            raise ambiguous(name, position)
        return found[0] if found else None

    def column(self, name: str, position: int | None = None) -> Seen:
        """What a name alone means: 42703, 42702."""
        found = self.own(name, position)
        if found is not None:
            return found
        if name == HIDDEN and self.hidden:
            if len(self.hidden) > 1:
                raise ambiguous(name, position)
            return next(iter(self.hidden.values()))
        if name in self.relations:
            row = self.relations[name]
            return Seen(name, PgType("record", columns_of(row)), Whole(row))
        if self.above is not None:
            return self.above.column(name, position)
        raise no_column(name, position=position)

    def of_relation(self, alias: str, name: str, position: int | None = None) -> Seen:
        """42P01, 42703, 42702."""
        found = [each for each in self.relation(alias, position) if each.name == name]
        if len(found) > 1:
            raise ambiguous(name, position)
        if found:
            return found[0]
        if name == HIDDEN and (hidden := self._hidden(alias)) is not None:
            return hidden
        raise no_column(f"{alias}.{name}", position=position)

    def _hidden(self, alias: str) -> Seen | None:
        if alias in self.relations:
            return self.hidden.get(alias)
        return self.above._hidden(alias) if self.above is not None else None

    def relation(self, alias: str, position: int | None = None) -> Row:
        """The columns of the relation that is called so here.  42P01."""
        if alias in self.relations:
            return self.relations[alias]
        if self.above is not None:
            return self.above.relation(alias, position)
        raise no_from_entry(alias, position)


def joined(left: Row, right: Row, merged: Iterable[Seen]) -> Row:
    """What is seen of both where ``merged`` are one: these first."""
    once = tuple(merged)
    names = {each.name for each in once}
    return once + tuple(each for each in (*left, *right) if each.name not in names)
