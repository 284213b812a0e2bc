"""What names mean while a bound tree becomes a plan: the rows in reach, the next one first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plan.relations import Kind
from plan.scalars import Column, Scalar


class NotPlanned(Exception):
    """The binder gave what no rule here knows: a mistake of ours, never the user's."""


class NotGrouped(NotPlanned):
    """A column of rows beside what is of their groups: where it is in the row."""

    def __init__(self, position: int) -> None:
        super().__init__(f"column {position} beside aggregates")
        self.position = position


class Unsorted(NotPlanned):
    """Distinct rows are sorted by what is not in them."""


@dataclass(frozen=True)
class Source:
    """A relation in FROM: what it is called, where its columns begin in the row, and their names."""

    alias: str
    start: int
    names: tuple[str, ...]

    def at(self, start: int) -> Source:
        return Source(self.alias, start, self.names)


@dataclass(frozen=True)
class Rows:
    """The row that scalars are worked out of, and the rows around it."""

    sources: tuple[Source, ...] = ()
    kinds: tuple[Kind, ...] = ()
    parent: Rows | None = None
    outputs: tuple[tuple[str, Scalar], ...] = field(default=(), compare=False)
    """What a name of no relation means: an output of the SELECT, which ORDER BY may name."""

    def column(self, table: str, name: str) -> Column:
        level, rows = 0, self
        while rows is not None:
            for source in rows.sources:
                if source.alias == table and name in source.names:
                    place = source.start + source.names.index(name)
                    return Column(*rows.kinds[place], place, level)
            level, rows = level + 1, rows.parent
        raise NotPlanned(f"column {table}.{name}")

    def output(self, name: str) -> Scalar:
        for called, value in self.outputs:
            if called == name:
                return value
        for called, value in self.outputs:
            if called.lower() == name.lower():
                return value
        raise NotPlanned(f"output {name}")


def beside(left: Sequence[Source], width: int, right: Sequence[Source]) -> tuple[Source, ...]:
    """The sources of a join whose left side has ``width`` columns."""
    return (*left, *(each.at(each.start + width) for each in right))
