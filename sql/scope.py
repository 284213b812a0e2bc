"""What names mean at one place of a query: the relations in reach, by alias, with the types of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from collection.types import SqlType


@dataclass
class Scope:
    """``sources`` maps an alias to its columns; ``ctes`` a CTE's name to its columns; lookups go outwards."""

    parent: Scope | None = None
    sources: dict[str, dict[str, SqlType]] = field(default_factory=dict)
    ctes: dict[str, dict[str, SqlType]] = field(default_factory=dict)

    def column(self, table: str, name: str) -> SqlType | None:
        scope: Scope | None = self
        while scope is not None:
            if table in scope.sources:
                return scope.sources[table].get(name)
            scope = scope.parent
        return None

    def cte(self, name: str) -> dict[str, SqlType] | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.ctes:
                return scope.ctes[name]
            scope = scope.parent
        return None
