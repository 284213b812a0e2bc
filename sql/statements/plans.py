"""What a statement is turned into: values that say what is to be done, without doing it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from sqlglot import exp

from catalog_log.model import Update
from catalog_log.objects import Column, Item
from journal.timestamps import CatalogTs
from lower.lookup.asked import Lookup, key_value
from lower.spark.lowering import spark_sql, with_params
from plan.codec import encode
from plan.relations import Query
from plan.scalars import Scalar
from sql.algebra.queries import Columns, plan_over, plan_values
from sql.algebra.scope import NotPlanned
from sql.binding.bind import OutputType
from sql.objects.uniques import Unique
from sql.statements.keys_seen import Seen
from sql.system.queries import SystemQuery
from trees.budget import bounded
from trees.errors import untold
from values.types import SqlType, takes_all

log = logging.getLogger(__name__)

_NO_TYPES: Mapping[int, SqlType] = MappingProxyType({})

LARGE_NODES = 500
"""Nodes of a tree from which it is printed beside the event loop: 500 take some 5 ms (measured)."""


@dataclass(frozen=True)
class PlanNotice:
    message: str
    sqlstate: str = "00000"
    detail: str | None = None


@dataclass(frozen=True)
class DdlPlan:
    """``updates`` are to be appended at the upper of the image that this was planned on; none for a no-op."""

    updates: tuple[Update, ...]
    tag: str
    notices: tuple[PlanNotice, ...] = ()
    created: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    described: tuple[str, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        """Ids of everything that it is about."""
        return (*self.created, *self.dropped, *self.described)


@dataclass(frozen=True)
class SelectPlan:
    """A query over user relations (or none).

    ``kind`` is ``constant`` (reads nothing), ``catalog`` (system relations; then ``system`` says what is asked),
    ``given`` (reads nothing but what other parts of its statement give: :mod:`sql.objects.given`) or ``peek``.
    ``tree`` still holds parameters; outputs have distinct names and exactly ``columns``' types.
    """

    kind: str
    tree: exp.Expression
    columns: tuple[OutputType, ...]
    inputs: tuple[str, ...]
    depends_on: tuple[str, ...]
    params: Mapping[int, SqlType]
    catalog_ts: CatalogTs
    lookup: Lookup | None = None
    one_row: Lookup | None = None
    """Of one without a ``lookup``: what finds the one row that it can see of the one table that it reads, by all
    columns of a constraint's key.  Its residual, if it has one, is for an adapter to evaluate, which else has an engine
    make of that row what the plan says."""
    system: SystemQuery | None = None
    """Of a ``catalog`` query: it with its types.  ``None`` where it reads no relation and is not the system's as a
    whole: ``tree`` is as the user wrote it then."""
    system_oids: Mapping[int, int] = field(default_factory=dict)
    """Of a ``catalog`` query: the oids of parameters whose types no column of a user's has."""
    volatile: bool = False
    """Whether the same parameters on the same rows may give another answer (``now()``, ``random()``)."""
    literals: bool = False
    """Whether a literal in it was read by the session's zone."""
    draws: bool = False
    """Whether calls of :mod:`sql.statements.sequence_calls` are in it: it is run with values in their places."""
    reads: SelectPlan | None = None
    """Of one that draws: the query whose rows it is run for.  Their values are parameters behind ``params``."""
    given: tuple[object | None, ...] = ()
    given_types: Mapping[int, SqlType] = field(default_factory=dict)
    """Values of the parameters in ``tree`` and ``lookup``, where its text had values in their places
    (:mod:`sql.statements.skeletons`).  Nobody else gives any then: ``params`` is empty."""
    keys_seen: tuple[Seen, ...] = ()
    """Of tables of which it sees rows by some of their keys alone."""
    columns_read: Columns | None = None
    """The columns of the relations that ``tree`` reads, as they are stored; none of constants.  ``None`` of a
    ``catalog`` query, and where something is known as Spark's text alone."""

    @property
    def reads_system(self) -> bool:
        """Whether it reads relations of the system's."""
        return self.system is not None and bool(self.system.relations)

    def values(self, params: Sequence[object | None]) -> tuple[Sequence[object | None], Mapping[int, SqlType]]:
        """The values of the parameters in ``tree``, where ``params`` are given, and their types."""
        return (params, self.params) if self.params else (self.given, self.given_types)

    @property
    def peeked(self) -> SelectPlan | None:
        """What of it a controller is asked for."""
        asked = self.reads or self
        return asked if asked.kind == "peek" else None

    @property
    def by_key(self) -> Lookup | None:
        """What finds all rows that it can see of the one relation that it reads, by values for columns of an index."""
        found = self.lookup or self.one_row
        return found if found is not None and found.key else None

    def for_row(
        self, params: Sequence[object | None], row: Sequence[object | None]
    ) -> tuple[list[object | None], dict[int, SqlType]]:
        """The parameters of ``tree`` and their types, for a row of ``reads``."""
        if self.reads is None:
            return list(params), dict(self.params)
        first = max(self.params, default=0)
        types = {first + place: column.type for place, column in enumerate(self.reads.columns, 1)}
        return [*params[:first], *row], {**self.params, **types}

    @cached_property
    def large(self) -> bool:
        """Whether printing it takes so long that others should not wait for it."""
        return next(islice(self.tree.walk(), LARGE_NODES, None), None) is not None

    def plan_text(self, params: Sequence[object | None]) -> str | None:
        """What a controller is asked for: the plan with these values (:mod:`plan.codec`); ``None`` where there is none,
        and :meth:`spark_sql` says it."""
        if self.params:
            return self._text_of(self.query(params))
        return self._plan_text

    @cached_property
    def _plan_text(self) -> str | None:
        """It where nobody gives any parameters: made once."""
        return self._text_of(self.query(()))

    @staticmethod
    def _text_of(query: Query | None) -> str | None:
        return None if query is None else encode(query)

    def query(self, params: Sequence[object | None]) -> Query | None:
        """The same, as a plan."""
        return self._query(params) if self.params else self._query_alone

    @cached_property
    def _query_alone(self) -> Query | None:
        """It where nobody gives any parameters: made once."""
        return self._query(())

    def _query(self, params: Sequence[object | None]) -> Query | None:
        if self.columns_read is None:
            return None
        try:
            return bounded(plan_over)(with_params(self.tree, *self.values(params)), self.columns_read)
        except NotPlanned as why:
            log.info("a query has no plan", extra={"why": str(why)})
            return None

    def each(self, params: Sequence[object | None], rows: Iterable[Sequence[object | None]]) -> Iterator[Query]:
        """The plan of what a query of constants gives for each of ``rows``, which ``reads`` gave."""
        for row in rows:
            values, types = self.for_row(params, row)
            yield replace(self, params=types).constant(values)

    def constant(self, params: Sequence[object | None]) -> Query:
        """The plan of a query of constants with these values.  0A000 where it has none, which is a mistake of ours."""
        assert self.kind == "constant", self.kind
        found = self.query(params)
        if found is None:
            raise untold("this query", "a query of constants has no plan")
        return found

    @property
    def shown(self) -> str:
        """It in Spark's words for a person to read, parameters as they are written."""
        return self.tree.sql("spark", identify=True, pretty=True, comments=False)

    def spark_sql(self, params: Sequence[object | None]) -> str:
        if not self.params:
            return self._spark_sql
        return spark_sql(with_params(self.tree, params, self.params))

    @cached_property
    def _spark_sql(self) -> str:
        """Its text where nobody gives any parameters: made once."""
        return spark_sql(with_params(self.tree, self.given, self.given_types))

    def asked(self, params: Sequence[object | None]) -> tuple[tuple[object, ...], str]:
        """Of a plan with a ``lookup`` or ``one_row``: ``(key values, residual text)`` for one execution."""
        found = self.lookup or self.one_row
        assert found is not None
        return found.filled(*self.values(params))


class Slot(NamedTuple):
    """Where a value of an inserted row comes from: a known ``value``, parameter ``param``, or ``scalar``, which is
    evaluated.  ``tree`` is one that is not planned yet, since parameters may be in it that have no values.

    A parameter's value is kept as a column of type ``through`` would keep it, before it is kept as its own column does.
    """

    value: object = None
    param: int | None = None
    tree: exp.Expression | None = None
    through: SqlType | None = None
    scalar: Scalar | None = None

    def planned(self) -> Slot:
        """The same of an expression without parameters.  0A000 as of :func:`scalars_of`."""
        return self if self.tree is None else Slot(scalar=scalars_of([self.tree])[0])


def scalars_of(
    trees: Sequence[exp.Expression], params: Sequence[object | None] = (), types: Mapping[int, SqlType] = _NO_TYPES
) -> list[Scalar]:
    """Bound expressions that read nothing, with these values of their parameters.  0A000 where one has no plan, which
    is a mistake of ours."""
    given = [with_params(tree, params, types) for tree in trees] if types else trees
    try:
        return bounded(plan_values)(given)
    except NotPlanned as why:
        raise untold("this expression", str(why)) from why


@dataclass(frozen=True)
class Returning:
    """What RETURNING gives of each row: of the values of its table's columns, with those that stand beside it behind.

    ``places`` are where its outputs are among those; where some are to be worked out, ``query`` gives all of them, and
    behind them which row each is of, over the rows as a relation (:mod:`sql.statements.returning`).
    """

    columns: tuple[OutputType, ...]
    places: tuple[int, ...] = ()
    query: SelectPlan | None = None


@dataclass(frozen=True)
class InsertPlan:
    """Rows for ``table`` from ``rows`` (VALUES), or from ``query`` whose outputs are ``query_columns`` of the table
    (``None``: it is for none).

    ``defaults`` are the slots of the columns that ``query`` does not give.
    """

    table: Item
    types: tuple[SqlType, ...]
    params: Mapping[int, SqlType]
    catalog_ts: CatalogTs
    rows: tuple[tuple[Slot, ...], ...] = ()
    query: SelectPlan | None = None
    query_columns: tuple[int | None, ...] = ()
    defaults: Mapping[int, Slot] = field(default_factory=dict)
    literals: bool = False
    """Whether a literal in it was read by the session's zone."""
    order: tuple[int, ...] = ()
    """Of the columns of a row of ``rows``: in which order they are evaluated."""
    returning: Returning | None = None
    uniques: tuple[Unique, ...] = ()
    """The constraints of ``table``."""
    conflict: ConflictPlan | None = None

    @cached_property
    def to_plan(self) -> list[Slot]:
        """What of ``rows`` is not planned yet: each slot once, whatever rows it is in."""
        return list({id(slot): slot for row in self.rows for slot in row if slot.tree is not None}.values())

    @cached_property
    def plain(self) -> bool:
        """Whether its rows are values and nothing else, of types that take each value that there is of them."""
        values = all(slot.tree is None and slot.scalar is None for row in self.rows for slot in row)
        return bool(self.rows) and values and all(map(takes_all, self.types))

    @cached_property
    def only_adds(self) -> bool:
        """Whether rows are written and nothing else: nobody is asked for a key, nothing is returned."""
        return not (self.query or self.uniques or self.conflict or self.returning)

    def given(self, params: Sequence[object | None]) -> InsertPlan:
        """The same with these values of its parameters, where expressions have some: all of them are planned."""
        if not self.to_plan:
            return self
        scalars = scalars_of([slot.tree for slot in self.to_plan], params, self.params)
        made = {id(slot): Slot(scalar=each) for slot, each in zip(self.to_plan, scalars, strict=True)}
        return replace(self, rows=tuple([tuple([made.get(id(slot), slot) for slot in row]) for row in self.rows]))


@dataclass(frozen=True)
class ConflictPlan:
    """ON CONFLICT: rows that have a key of ``arbiters`` which is there are left out, or are ``updates``.

    ``updates`` gives for the row that is there, with the columns ``beside`` of the one that was to come behind its own,
    what is set, and at last whether anything is; ``new`` makes the row that comes of that and of the row's own values.
    """

    arbiters: tuple[Unique, ...]
    updates: Returning | None = None
    new: InsertPlan | None = None
    beside: tuple[int, ...] = ()


@dataclass(frozen=True)
class Point:
    """The key of a constraint that a query fixes: expressions for its columns, as of :class:`LookupPlan`."""

    unique: Unique
    key: tuple[tuple[object, ...], ...]

    def filled(self, params: Sequence[object | None]) -> tuple[object | None, ...]:
        """Its values for one execution."""
        return tuple([key_value(part, params) for part in self.key])


@dataclass(frozen=True)
class TableChange:
    """Rows of ``table`` that go, and those that come in their places.

    ``query`` gives for each row that goes: at first what an UPDATE sets, from ``old`` on all of its values as they are
    stored (``stored`` are their columns), from ``beside`` on what RETURNING asks for.  ``number`` is the output that
    tells rows of the table apart, where ``query`` may give one several times.  ``new`` makes the rows that come of what
    ``query`` gives.
    """

    table: Item
    query: SelectPlan
    stored: tuple[Column, ...]
    old: int
    beside: int
    number: int | None = None
    new: InsertPlan | None = None
    uniques: tuple[Unique, ...] = ()
    """The constraints of ``table``."""
    point: Point | None = None
    """Where ``query`` reads the rows of one key alone, and nothing else."""


@dataclass(frozen=True)
class ChangePlan:
    """DELETE, UPDATE (of one table) or TRUNCATE."""

    changes: tuple[TableChange, ...]
    params: Mapping[int, SqlType]
    catalog_ts: CatalogTs
    returning: Returning | None = None
    literals: bool = False
    """Whether a literal in it was read by the session's zone."""
    restarts: tuple[tuple[str, int], ...] = ()
    """Of TRUNCATE … RESTART IDENTITY: the sequences that begin anew, and where."""
    given: tuple[object | None, ...] = ()
    """As of :class:`SelectPlan`: the values of the parameters in ``changes`` and ``returning``, where the statement's
    text had them."""

    def values(self, params: Sequence[object | None]) -> Sequence[object | None]:
        """The values of the parameters in ``changes`` and ``returning``, where ``params`` are given."""
        return params if self.params else self.given
