"""Relations: what makes rows of rows.  A small closed set; each knows its columns by their places.

Names are only where the outside has them: on :class:`Get`, and on the outputs of a whole :class:`Query`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from plan.nodes import Node, rewritten
from plan.scalars import Aggregate, Column, Scalar, Sort, WindowCall
from plan.types import INT8, Type, common


class Kind(NamedTuple):
    """What is known of a column."""

    type: Type
    nullable: bool


@dataclass(frozen=True)
class Relation(Node):
    @property
    def columns(self) -> tuple[Kind, ...]:
        raise NotImplementedError(type(self))

    def column(self, position: int, level: int = 0) -> Column:
        """The column there, as a scalar of who reads this relation."""
        found = self.columns[position]
        return Column(found.type, found.nullable, position, level)


@dataclass(frozen=True)
class Get(Relation):
    """A relation of the catalog by its id, its columns by the names that engines know them by."""

    item_id: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]

    @property
    def columns(self) -> tuple[Kind, ...]:
        return self.kinds


@dataclass(frozen=True)
class Constant(Relation):
    """Rows that are written out.  One without columns is where a query begins that reads nothing."""

    rows: tuple[tuple[Scalar, ...], ...]

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        places = zip(*self.rows, strict=True)
        return tuple(Kind(common(v.type for v in place), any(v.nullable for v in place)) for place in places)


@dataclass(frozen=True)
class Project(Relation):
    """Each row's ``outputs``."""

    input: Relation
    outputs: tuple[Scalar, ...]

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        return _kinds(self.outputs)


@dataclass(frozen=True)
class Filter(Relation):
    """The rows of which ``condition`` is true."""

    input: Relation
    condition: Scalar

    @property
    def columns(self) -> tuple[Kind, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Join(Relation):
    """Pairs of rows: ``inner``, ``left``, ``right``, ``full`` by a condition over both, or ``cross``.

    Of a ``lateral`` one the right side sees the left side's row at level 1.
    """

    kind: str
    left: Relation
    right: Relation
    condition: Scalar | None = None
    lateral: bool = False

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        left, right = self.left.columns, self.right.columns
        if self.kind in ("right", "full"):
            left = tuple(each._replace(nullable=True) for each in left)
        if self.kind in ("left", "full"):
            right = tuple(each._replace(nullable=True) for each in right)
        return left + right


@dataclass(frozen=True)
class Reduce(Relation):
    """One row of each group: its keys, then its aggregates.  ``sets``: groups of each of these choices of keys."""

    input: Relation
    keys: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]
    sets: tuple[tuple[int, ...], ...] | None = None

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        keys = _kinds(self.keys)
        if self.sets is not None:
            keys = tuple(each._replace(nullable=True) for each in keys)
        return keys + _kinds(self.aggregates)


@dataclass(frozen=True)
class Distinct(Relation):
    """Of equal rows one."""

    input: Relation

    @property
    def columns(self) -> tuple[Kind, ...]:
        return self.input.columns


@dataclass(frozen=True)
class TopK(Relation):
    """The rows in an order, without the first ``offset`` and no more than ``limit`` of the others."""

    input: Relation
    order: tuple[Sort, ...]
    limit: Scalar | None = None
    offset: Scalar | None = None

    @property
    def columns(self) -> tuple[Kind, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Window(Relation):
    """Each row, and behind it what functions make of the rows around it."""

    input: Relation
    calls: tuple[WindowCall, ...]

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        return self.input.columns + _kinds(self.calls)


@dataclass(frozen=True)
class SetOp(Relation):
    """``union``, ``except`` or ``intersect``; ``all`` counts equal rows."""

    kind: str
    all: bool
    left: Relation
    right: Relation

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        pairs = zip(self.left.columns, self.right.columns, strict=True)
        return tuple(Kind(common((a.type, b.type)), a.nullable or b.nullable) for a, b in pairs)


@dataclass(frozen=True)
class TableFunction(Relation):
    """Each row as often as ``items`` has items, and behind it one of them; with ``ordinality`` its number, from 1."""

    input: Relation
    items: Scalar
    element: Kind
    ordinality: bool = False

    @cached_property
    def columns(self) -> tuple[Kind, ...]:
        made = (self.element, Kind(INT8, False)) if self.ordinality else (self.element,)
        return self.input.columns + made


@dataclass(frozen=True)
class Let(Relation):
    """``body``, in which :class:`Named` reads ``value``; so does ``value`` itself where it is ``recursive``."""

    name: str
    value: Relation
    body: Relation
    recursive: bool = False

    @property
    def columns(self) -> tuple[Kind, ...]:
        return self.body.columns


@dataclass(frozen=True)
class Named(Relation):
    """What a :class:`Let` around it calls so."""

    name: str
    kinds: tuple[Kind, ...]

    @property
    def columns(self) -> tuple[Kind, ...]:
        return self.kinds


@dataclass(frozen=True)
class Query:
    """A whole query: what it makes, and what its outputs are called."""

    relation: Relation
    names: tuple[str, ...]

    def with_gets(self, change: Callable[[Get], Relation]) -> Query:
        """The same query over what ``change`` makes of each relation that it reads."""
        return replace(self, relation=with_gets(self.relation, change))


def with_gets(relation: Relation, change: Callable[[Get], Relation]) -> Relation:
    """``relation`` over what ``change`` makes of each that it reads, in its subqueries too."""
    return rewritten(relation, lambda node: change(node) if isinstance(node, Get) else None)


def _kinds(scalars: tuple[Scalar, ...]) -> tuple[Kind, ...]:
    return tuple(Kind(each.type, each.nullable) for each in scalars)


UNIT = Constant(((),))
"""One row without columns."""


def row_of(values: Iterable[Scalar]) -> Query:
    """The query of one row of ``values``, which read nothing, called ``v0``, ``v1``…"""
    outputs = tuple(values)
    return Query(Project(UNIT, outputs), tuple(f"v{place}" for place in range(len(outputs))))
