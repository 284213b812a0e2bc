"""The change of groups: of their keys and of what aggregates give of them, from the change of their rows.

Promises: :meth:`Reduce.delta` takes away the rows of groups as they were and gives those of groups as they are; what it
holds (:mod:`controllers.compute.groups`) moves by :meth:`Reduce.accept`.  A change that is large is folded by Spark
before it comes here.  Raises ``TooManyGroups`` where they cannot be held.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import contextmanager

import pyarrow as pa
from sqlglot import exp

from collection.columns import DIFF
from controllers.arrangements.tuples import Row, schema_of, to_rows, to_table
from controllers.compute import spark_text as sp
from controllers.compute.expressions import NotHere
from controllers.compute.groups import Group, Groups, Values
from controllers.compute.handing import schema_sql
from controllers.compute.operators.linear import Linear
from controllers.compute.operators.operator import NEVER, Engines, Operator, Read
from controllers.compute.relation import own_name
from controllers.compute.running import answered
from controllers.compute.sources import Sources
from controllers.compute.strategy import Grouped
from controllers.compute.vectors import partial_groups, partial_values
from journal.timestamps import DataTs
from plan.deltas import Key
from plan.types import INT8
from values.types import SqlType

log = logging.getLogger(__name__)


class Reduce:
    """``input`` gives the rows that are grouped; ``below`` is what has a state under it, if anything has."""

    def __init__(self, grouped: Grouped, input_: Linear, below: Operator | None, engines: Engines) -> None:
        self._grouped = grouped
        self._input = input_
        self._below = below
        self._engines = engines
        self._groups = Groups(grouped.calls, grouped.arguments, has_keys=bool(grouped.keys))
        self._pending: tuple[dict[Row, Group | None], bool] | None = None
        names = [f"c{place}" for place in range(len(grouped.types))]
        self._schema = schema_of([*grouped.types, INT8], [*names, DIFF])

    @property
    def held(self) -> int:
        return self._groups.held + (self._below.held if self._below is not None else 0)

    def delta(self, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table:
        groups, base = self._groups, t0 != NEVER
        touched = self._merged(sources, t0, t1)
        before = [row for key in touched if (row := groups.row(key)) is not None] if base else []
        after = [groups.row_of(key, group) for key, group in touched.items() if group is not None]
        same = set(before) & set(after)
        rows = [(*row, -1) for row in before if row not in same] + [(*row, 1) for row in after if row not in same]
        return to_table(rows, self._schema)

    def rebuild(self, sources: Sources, t1: DataTs) -> None:
        self._merged(sources, NEVER, t1)

    def _merged(self, sources: Sources, t0: DataTs, t1: DataTs) -> dict[Row, Group | None]:
        base = t0 != NEVER
        touched = self._groups.merge(*self._partials(sources, t0, t1), base=base)
        self._pending = touched, base
        return touched

    def accept(self) -> None:
        if self._pending is not None:
            touched, base = self._pending
            self._groups.accept(touched, base)
            self._pending = None
        if self._below is not None:
            self._below.accept()

    def _partials(
        self, sources: Sources, t0: DataTs, t1: DataTs
    ) -> tuple[list[tuple[Row, int, Group]], list[Values]]:
        """Per group and diff: rows, and count and sum of each argument; and the values of those that are bagged."""
        grouped, bagged = self._grouped, self._groups.bagged
        summed = frozenset(c.argument for c in grouped.calls if c.function in ("sum", "avg"))
        with self._input.reading(sources, t0, t1) as (reading, parts):
            here = self._input.here(parts, reading)
            if here is not None:
                try:
                    partials = partial_groups(here, [*grouped.keys, *grouped.arguments], len(grouped.keys), summed)
                    return partials, [partial_values(here, len(grouped.keys), argument) for argument in bagged]
                except NotHere as why:
                    self._engines.left(str(why))
            query = self._input.query(parts, reading)
            if query is None:
                return [], [[] for _ in bagged]
            return self._folded_by_spark(query, summed)

    def _folded_by_spark(
        self, query: exp.Expression, summed: frozenset[int | None]
    ) -> tuple[list[tuple[Row, int, Group]], list[Values]]:
        n = len(self._grouped.keys)
        names = [f"c{place}" for place in range(len(self._input.full.types) - 1)]
        keys, arguments = names[:n], names[n : n + len(self._grouped.arguments)]
        source = sp.derived(query, "d", [*names, DIFF])
        measures: list[exp.Expression] = [exp.Count(this=exp.Literal.number(1))]
        for place, argument in enumerate(arguments):
            measures.append(exp.Count(this=sp.column(argument)))
            measures.append(sp.total(argument) if place in summed else exp.Literal.number(0))

        def rows(by: Sequence[str], measures: Sequence[exp.Expression]) -> list[Row]:
            outputs = [*map(sp.column, by), *(sp.called(each, f"m{i}") for i, each in enumerate(measures))]
            made = sp.grouped(sp.select(outputs, source.copy()), by)
            return to_rows(answered(self._engines.spark, made))

        partials = [(row[:n], row[n], row[n + 1 :]) for row in rows([*keys, DIFF], measures)]
        values = [rows([*keys, arguments[each]], [sp.total(DIFF)]) for each in self._groups.bagged]
        return partials, [[(row[:n], row[n], row[n + 1]) for row in each] for each in values]


class Rows:
    """A table in this process as what a linear query reads; Spark is shown it where it must be."""

    def __init__(self, table: pa.Table, columns: Sequence[tuple[str, SqlType]], engines: Engines) -> None:
        self._table = table
        self._columns = columns
        self._engines = engines
        self._shown: list[str] = []

    def changed(self, leaf: str) -> bool:
        return self._table.num_rows > 0

    def table(self, key: Key) -> pa.Table:
        return self._table

    def query(self, key: Key, diff: str) -> exp.Expression:
        view = own_name(f"rows_{self._engines.view_id}_{len(self._shown)}")
        held = [f"c{place}" for place in range(len(self._columns))]
        kinds = [kind for _, kind in self._columns]
        self._engines.handing.show(self._table, view, schema_sql(zip([*held, DIFF], [*kinds, INT8], strict=True)))
        self._shown.append(view)
        named = [sp.called(sp.column(c), name) for c, (name, _) in zip(held, self._columns, strict=True)]
        return sp.select([*named, sp.called(sp.column(DIFF), diff)], sp.table(view))

    def close(self) -> None:
        for view in self._shown:
            self._engines.handing.take_back(view)


def of_operator(below: Operator, columns: Sequence[tuple[str, SqlType]], engines: Engines) -> Read:
    """Reads the change of what is below, whatever it is called; ``columns`` by name and type."""

    @contextmanager
    def read(sources: Sources, t0: DataTs, t1: DataTs):
        rows = Rows(below.delta(sources, t0, t1), columns, engines)
        try:
            yield rows
        finally:
            rows.close()

    return read
