"""Scalars: what is worked out of one row, each with its type and whether it may be NULL.

Columns are named by their place: ``level`` 0 is the row of the operator that the scalar stands in, 1 the one of the
operator around the subquery that it stands in, and so on outwards (the left side's row on a lateral join's right).
``nullable`` false means that a value is certainly there; true says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plan.nodes import Node
from plan.types import BOOL, INT4, INT8, Type, common, field_of

if TYPE_CHECKING:
    from plan.relations import Relation


@dataclass(frozen=True)
class Scalar(Node):
    type: Type
    nullable: bool


@dataclass(frozen=True)
class Column(Scalar):
    position: int
    level: int = 0


@dataclass(frozen=True)
class Literal(Scalar):
    """A value as text; ``None`` is NULL."""

    value: str | None


@dataclass(frozen=True)
class Parameter(Scalar):
    """``$n``: a value that is known before anything runs."""

    number: int


@dataclass(frozen=True)
class Call(Scalar):
    """A function or an operator by its name (:mod:`plan.calls` has what each gives)."""

    name: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True)
class Variable(Scalar):
    """What a :class:`Lambda` is given."""

    name: str


@dataclass(frozen=True)
class Lambda(Scalar):
    """What is made of each item of a list, its type that of the body."""

    variables: tuple[str, ...]
    body: Scalar


@dataclass(frozen=True)
class Cast(Scalar):
    value: Scalar


@dataclass(frozen=True)
class Case(Scalar):
    """The value of the first condition that holds, or of the first that equals ``operand`` where there is one."""

    operand: Scalar | None
    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar | None


@dataclass(frozen=True)
class Struct(Scalar):
    """Values as a row: its fields' names are in its type.  ``bare``: they were given no names."""

    values: tuple[Scalar, ...]
    bare: bool = False


@dataclass(frozen=True)
class Field(Scalar):
    """One field of a row."""

    value: Scalar
    name: str


@dataclass(frozen=True)
class Exists(Scalar):
    """Whether there is a row."""

    relation: Relation


@dataclass(frozen=True)
class InRows(Scalar):
    """Whether ``values`` are one of the rows."""

    values: tuple[Scalar, ...]
    relation: Relation


@dataclass(frozen=True)
class ScalarQuery(Scalar):
    """The only value of the only row; NULL where there is none."""

    relation: Relation


@dataclass(frozen=True)
class Sort(Node):
    """Something to sort by."""

    key: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Aggregate(Scalar):
    """A function of a group's rows: of those that ``condition`` lets through; ``within`` is WITHIN GROUP's order.

    It stands among a :class:`~plan.relations.Reduce`'s, or is what a :class:`WindowCall` is of.
    """

    name: str
    arguments: tuple[Scalar, ...]
    distinct: bool = False
    condition: Scalar | None = None
    within: tuple[Sort, ...] = ()


@dataclass(frozen=True)
class Bound(Node):
    """Where a window's frame ends: ``amount`` rows, groups, or of ``unit`` away; all of them where it is ``None``."""

    way: str
    """``preceding``, ``current row`` or ``following``."""
    amount: Scalar | None = None
    unit: str = ""


@dataclass(frozen=True)
class Frame(Node):
    """Which rows around one a window function sees."""

    by: str
    """``rows`` or ``range``."""
    start: Bound
    end: Bound | None


@dataclass(frozen=True)
class WindowCall(Scalar):
    """A function of the rows around one.  ``function`` is an aggregate, or one that only windows have."""

    function: Aggregate
    partition: tuple[Scalar, ...]
    order: tuple[Sort, ...]
    frame: Frame | None


@dataclass(frozen=True)
class SequenceCall(Scalar):
    """``nextval`` or one of its kin.  No engine runs it: there is a value in its place before one is told of the plan
    (:mod:`plan.drawn`).

    ``sequence`` is an id: of ``lastval`` an empty one, ``None`` where NULL was said, for which the call gives NULL.
    ``number``: two calls of one number are one, written twice, and have one value.
    """

    name: str
    sequence: str | None
    number: int
    arguments: tuple[Scalar, ...] = ()
    """What stands behind the sequence."""


@dataclass(frozen=True)
class Choice(Scalar):
    """``value`` is a CASE, a COALESCE, an AND or an OR of the user's: calls of sequences in those of its parts that are
    not evaluated draw nothing.  In any other they are all evaluated, whatever the binder made of what was written."""

    value: Scalar


# -- how they are made ------------------------------------------------------------------------------------------------


def cast(value: Scalar, kind: Type) -> Cast:
    """A cast of what is not NULL gives a value, or refuses."""
    return Cast(kind, value.nullable, value)


def as_types(values: Iterable[Scalar], kinds: Iterable[Type]) -> tuple[Scalar, ...]:
    """``values``, each cast to its type where it is of another."""
    return tuple(v if v.type == kind else cast(v, kind) for v, kind in zip(values, kinds, strict=True))


def case(operand: Scalar | None, branches: tuple[tuple[Scalar, Scalar], ...], otherwise: Scalar | None) -> Case:
    values = [value for _, value in branches] + ([otherwise] if otherwise is not None else [])
    nullable = otherwise is None or any(each.nullable for each in values)
    return Case(common(each.type for each in values), nullable, operand, branches, otherwise)


def field(value: Scalar, name: str) -> Field:
    return Field(field_of(value.type, name), True, value, name)


def exists(relation: Relation) -> Exists:
    return Exists(BOOL, False, relation)


def in_rows(values: tuple[Scalar, ...], relation: Relation) -> InRows:
    certain = not any(each.nullable for each in values) and not any(each.nullable for each in relation.columns)
    return InRows(BOOL, not certain, values, relation)


def scalar_query(relation: Relation) -> ScalarQuery:
    return ScalarQuery(relation.columns[0].type, True, relation)


def number(value: int) -> Literal:
    return Literal(INT4 if -(1 << 31) <= value < 1 << 31 else INT8, False, str(value))


def truth(value: bool) -> Literal:
    return Literal(BOOL, False, "true" if value else "false")
