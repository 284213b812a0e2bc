"""More columns below an operator, for what stands in it: how a pass puts something there.  Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

from plan import relations as r
from plan import scalars as s
from plan.nodes import Node


@dataclass
class More(ABC):
    """What a pass has found in one operator, to be put behind the ``width`` columns of its input."""

    width: int
    values: dict[s.Scalar, s.Column] = field(default_factory=dict)
    """Each with the column that it will be."""

    @property
    def count(self) -> int:
        """How many columns were found."""
        return len(self.values)

    def column(self, value: s.Scalar) -> s.Column:
        """The column that ``value`` will be."""
        if value not in self.values:
            self.values[value] = s.Column(value.type, value.nullable, self.width + self.count)
        return self.values[value]

    @abstractmethod
    def within(self, part: Node) -> Node:
        """A scalar of the operator, or what holds some, said by the columns that are put below."""

    @abstractmethod
    def put_below(self, input_: r.Relation) -> r.Relation:
        """``input_`` with them behind its own."""


def input_of(node: Node) -> r.Relation | None:
    """The rows that the scalars of ``node`` are worked out of; ``None`` of a join, which has two, and of what has no
    such scalars."""
    input_ = getattr(node, "input", None)
    return input_ if isinstance(node, r.Relation) and isinstance(input_, r.Relation) else None


def over_more(node: r.Relation, more: More) -> r.Relation:
    """``node``, which has an input, said by what ``more`` finds in it: the same rows and columns as before."""
    input_ = input_of(node)
    width = len(input_.columns)
    changed = node.with_parts(lambda part: part if part is input_ else more.within(part))
    if not more.count:
        return node
    changed = replace(changed, input=more.put_below(input_))
    if isinstance(node, (r.Project, r.Reduce)):
        return changed  # its columns are its own
    return without(changed, range(width, width + more.count))


def without(node: r.Relation, places: range) -> r.Relation:
    """``node`` without its columns at ``places``."""
    kept = (place for place in range(len(node.columns)) if place not in places)
    return r.Project(node, tuple(node.column(place) for place in kept))
