"""What names mean in one query: its relations and their columns, WITH queries, and the queries around it.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from journal.errors import InvalidUsage
from sql.system.types import PgType
from trees.errors import ambiguous, no_column, no_from_entry

Columns = tuple[tuple[str, PgType], ...]

HIDDEN = "tableoid"
"""What every relation of pg_catalog also has, but ``*`` does not show: the oid of the relation itself."""


@dataclass
class Scope:
    """``seen``: the columns that a name alone may mean and ``*`` shows, in this order; those of a USING are once."""

    above: Scope | None = None
    queries: dict[str, Columns] = field(default_factory=dict)
    relations: dict[str, Columns] = field(default_factory=dict)
    hidden: dict[str, PgType] = field(default_factory=dict)
    """What a relation also has beside what is shown: of those that have it, by the name of the column."""
    with_hidden: set[str] = field(default_factory=set)
    seen: Columns = ()

    def query(self, name: str) -> Columns | None:
        """The columns of the WITH query ``name``."""
        if name in self.queries:
            return self.queries[name]
        return self.above.query(name) if self.above is not None else None

    def add(self, alias: str, columns: Columns) -> None:
        """42712 where there is one of this name."""
        if alias and alias in self.relations:
            raise InvalidUsage(f'table name "{alias}" specified more than once', sqlstate="42712")
        self.relations[alias] = columns

    def column(self, name: str, position: int | None = None) -> PgType:
        """What a name alone means: 42703, 42702."""
        found = [kind for seen, kind in self.seen if seen == name]
        if len(found) > 1:
            raise ambiguous(name, position)
        if found:
            return found[0]
        if name in self.hidden and self.with_hidden:
            return self.hidden[name]
        if name in self.relations:
            return PgType("record", self.relations[name])
        if self.above is not None:
            return self.above.column(name, position)
        raise no_column(name, position=position)

    def of_relation(self, alias: str, name: str, position: int | None = None) -> PgType:
        """42P01, 42703, 42702."""
        found = self.relation(alias, position)
        kinds = [kind for each, kind in found if each == name]
        if len(kinds) > 1:
            raise ambiguous(name, position)
        if kinds:
            return kinds[0]
        if (hidden := self._hidden(alias, name)) is not None:
            return hidden
        raise no_column(f"{alias}.{name}", position=position)

    def _hidden(self, alias: str, name: str) -> PgType | None:
        if alias in self.relations:
            return self.hidden.get(name) if alias in self.with_hidden else None
        return self.above._hidden(alias, name) if self.above is not None else None

    def relation(self, alias: str, position: int | None = None) -> Columns:
        """The columns of the relation that is called so here.  42P01."""
        if alias in self.relations:
            return self.relations[alias]
        if self.above is not None:
            return self.above.relation(alias, position)
        raise no_from_entry(alias, position)


def joined(left: Columns, right: Columns, names: Iterable[str], kinds: dict[str, PgType]) -> Columns:
    """What is seen of both where ``names`` are one, of ``kinds``: these first."""
    once = list(names)
    rest = tuple(each for each in (*left, *right) if each[0] not in once)
    return tuple((name, kinds[name]) for name in once) + rest
