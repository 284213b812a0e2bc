"""The change of groups: of their keys and of what aggregates give of them, from the change of their rows.

Promises: :meth:`Reduce.delta` takes away the rows of groups as they were and gives those of groups as they are; what it
holds (:mod:`controllers.compute.groups`) moves by :meth:`Reduce.accept`.  A change that is large is folded by Spark
before it comes here.  Raises ``TooManyGroups`` where they cannot be held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from collection.columns import DIFF
from controllers.arrangements.tuples import Row, to_rows, to_table
from controllers.changes import change_schema, consolidate
from controllers.compute import spark_text as sp
from controllers.compute.expressions import NotHere
from controllers.compute.groups import VALUES_MAX, Group, Groups, TooManyGroups, Values
from controllers.compute.operators.given import Given
from controllers.compute.operators.linear import Linear
from controllers.compute.operators.operator import NEVER, Called, Explained
from controllers.compute.strategy import Grouped
from controllers.compute.vectors import partial_groups, partial_values
from journal.timestamps import DataTs

LOOSE_ROWS_MAX = 1_000
"""Rows of changes beside those of few groups, before they are put together: some 0.2 ms of a join."""


@dataclass(frozen=True)
class _Pending:
    """What was found last: the groups that it touches, whether beside those there were, and its rows."""

    touched: dict[Row, Group | None]
    base: bool
    rows: pa.Table | None


class Reduce:
    """``input`` gives the rows that are grouped."""

    def __init__(self, grouped: Grouped, input_: Linear) -> None:
        self.types = grouped.types
        self._grouped = grouped
        self._input = input_
        self._groups = Groups(grouped.calls, grouped.arguments, len(grouped.keys))
        self._pending: _Pending | None = None
        self._contents: pa.Table | None = None
        """The rows of all groups, where somebody reads them."""
        self._schema = change_schema(grouped.types)

    @property
    def held(self) -> int:
        shown = self._contents.num_rows * len(self.types) if self._contents is not None else 0
        return self._groups.held + shown + self._input.held

    def explain(self, gear: str, called: Called) -> Explained:
        return self._input.explain(gear, called)

    def delta(self, given: Given, t0: DataTs, t1: DataTs) -> pa.Table:
        groups, base = self._groups, t0 != NEVER
        touched = self._merged(given, t0, t1)
        before = [row for key in touched if (row := groups.row(key)) is not None] if base else []
        after = [groups.row_of(key, group) for key, group in touched.items() if group is not None]
        same = set(before) & set(after)
        rows = [(*row, -1) for row in before if row not in same] + [(*row, 1) for row in after if row not in same]
        found = to_table(rows, self._schema)
        self._pending = _Pending(touched, base, found)
        return found

    def restore(self, given: Given, t1: DataTs) -> None:
        self._pending = _Pending(self._merged(given, NEVER, t1), False, None)

    def _merged(self, given: Given, t0: DataTs, t1: DataTs) -> dict[Row, Group | None]:
        return self._groups.merge(*self._partials(given, t0, t1), base=t0 != NEVER)

    def accept(self) -> None:
        if self._pending is not None:
            self._groups.accept(self._pending.touched, self._pending.base)
            self._contents = self._contents_after(self._pending)
            self._pending = None
        self._input.accept()

    def contents(self) -> pa.Table:
        if self._contents is None:
            rows = [(*row, 1) for row in self._groups.rows()]
            self._contents = to_table(rows, self._schema)
        return self._contents

    def _contents_after(self, pending: _Pending) -> pa.Table | None:
        """They move on by what changed, and are put together again once that is as much as they are."""
        if self._contents is None or pending.rows is None or not pending.base:
            return None
        made = pa.concat_tables([self._contents, pending.rows])
        return made if made.num_rows <= 2 * len(self._groups) + LOOSE_ROWS_MAX else consolidate(made)

    def _partials(self, given: Given, t0: DataTs, t1: DataTs) -> tuple[list[tuple[Row, int, Group]], list[Values]]:
        """Per group and diff: rows, and count and sum of each argument; and the values of those that are bagged."""
        grouped, bagged = self._grouped, self._groups.bagged
        summed = frozenset(c.argument for c in grouped.calls if c.function in ("sum", "avg"))
        with self._input.change(given, t0, t1) as (parts, reading):
            here = self._input.here(parts, reading, given.engines)
            if here is not None:
                try:
                    partials = partial_groups(here, [*grouped.keys, *grouped.arguments], len(grouped.keys), summed)
                    return partials, [partial_values(here, len(grouped.keys), argument) for argument in bagged]
                except NotHere as why:
                    given.engines.left(str(why))
            if not parts:
                return [], [[] for _ in bagged]
            return self._folded_by_spark(self._input.query(parts, reading), summed, given)

    def _folded_by_spark(
        self, query: exp.Expression, summed: frozenset[int | None], given: Given
    ) -> tuple[list[tuple[Row, int, Group]], list[Values]]:
        n = len(self._grouped.keys)
        names = [f"c{place}" for place in range(len(self._input.full.types) - 1)]
        keys, arguments = names[:n], names[n : n + len(self._grouped.arguments)]
        source = sp.derived(query, "d", [*names, DIFF])
        measures: list[exp.Expression] = [exp.Count(this=exp.Literal.number(1))]
        for place, argument in enumerate(arguments):
            measures.append(exp.Count(this=sp.column(argument)))
            measures.append(sp.total(argument) if place in summed else exp.Literal.number(0))

        def rows(by: Sequence[str], measures: Sequence[exp.Expression], most: int) -> list[Row]:
            outputs = [*map(sp.column, by), *(sp.called(each, f"m{i}") for i, each in enumerate(measures))]
            made = sp.grouped(sp.select(outputs, source.copy()), by)
            made.set("limit", exp.Limit(expression=exp.Literal.number(most + 1)))
            found = given.engines.on_spark(made, given.sources.much)
            if found.num_rows > most:
                raise TooManyGroups(f"the view has more than {self._groups.most} groups, or too many values in them")
            return to_rows(found)

        # Of a change there may be a row for each of the diffs of a group: few, of what grew that large.
        partials = [(row[:n], row[n], row[n + 1 :]) for row in rows([*keys, DIFF], measures, 2 * self._groups.most)]
        values = [
            rows([*keys, arguments[each]], [sp.total(DIFF)], VALUES_MAX) for each in self._groups.bagged
        ]  # fmt: skip
        return partials, [[(row[:n], row[n], row[n + 1]) for row in each] for each in values]
