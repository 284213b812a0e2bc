"""What names mean at one place of a query: the relations in reach, by alias, with the types of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from values.types import SqlType

CHECKED = "checked"
"""Where a node notes the type that it was found to have."""


@dataclass
class Scope:
    """``sources`` maps an alias to its columns; ``ctes`` a CTE's name to its columns; lookups go outwards."""

    parent: Scope | None = None
    sources: dict[str, dict[str, SqlType]] = field(default_factory=dict)
    ctes: dict[str, dict[str, SqlType]] = field(default_factory=dict)
    selects: bool = False
    """Whether this is the scope of a SELECT itself, and not of what is around one."""

    def column(self, table: str, name: str) -> SqlType | None:
        scope: Scope | None = self
        while scope is not None:
            if table in scope.sources:
                return scope.sources[table].get(name)
            scope = scope.parent
        return None

    def levels_out(self, table: str) -> int:
        """How many queries out of this one ``table`` is: 0 where it is of this query's own FROM."""
        levels = 0
        scope: Scope | None = self
        while scope is not None and table not in scope.sources:
            levels += scope.selects
            scope = scope.parent
        return levels

    def cte(self, name: str) -> dict[str, SqlType] | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.ctes:
                return scope.ctes[name]
            scope = scope.parent
        return None
