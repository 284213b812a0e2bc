"""What DuckDB works out of a statement without reading any relation: rows, values, arguments of sequence calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from adapter.duck.catalog_relations import CatalogRelations
from adapter.encode.shown_rows import row_text
from adapter.execute.beside import interruptible
from adapter.execute.draws import Evaluate as Argument
from adapter.execute.held_checks import hold
from adapter.execute.rows import Evaluate
from catalog_log.objects import Item, Table, own_columns
from collection.columns import sql_type
from lower.duckdb.engine import Running
from plan import relations as r
from sql.statements.plans import InsertPlan, SelectPlan, Slot, row_of
from trees.errors import unsupported
from trees.types import BOOL
from values.types import SqlType, arrow_type

VALUES_AT_ONCE_MAX = 100
"""Expressions of an INSERT that DuckDB is asked in one query: a query costs it as much as some dozens of them."""

Types = Mapping[int, SqlType]
"""Of parameters, by their numbers."""


class Constants:
    """Asks one engine; on threads but for :meth:`slots`, whose caller decides."""

    def __init__(self, relations: CatalogRelations) -> None:
        self._relations = relations

    async def rows(self, plan: SelectPlan, params: Sequence[object | None]) -> pa.Table:
        """What a query gives that reads nothing."""
        return await interruptible(self._rows, plan, params)

    def _rows(self, plan: SelectPlan, params: Sequence[object | None], running: Running) -> pa.Table:
        return self._relations.constant(plan.constant(params), [(c.name, c.type) for c in plan.columns], running)

    async def for_rows(
        self, plan: SelectPlan, params: Sequence[object | None], trees: Sequence[exp.Expression], rows: Sequence[tuple]
    ) -> list[pa.RecordBatch]:
        """What a query gives for each of ``rows``, which is one of ``trees`` for each."""
        return await asyncio.to_thread(self._for_rows, plan, params, trees, rows)

    def _for_rows(
        self, plan: SelectPlan, params: Sequence[object | None], trees: Sequence[exp.Expression], rows: Sequence[tuple]
    ) -> list[pa.RecordBatch]:
        types = [(column.name, column.type) for column in plan.columns]
        if not rows:
            return pa.schema([(name, arrow_type(kind)) for name, kind in types]).empty_table().to_batches()
        found = []
        for lower in range(0, len(rows), VALUES_AT_ONCE_MAX):
            some = slice(lower, lower + VALUES_AT_ONCE_MAX)
            queries = [_of_row(plan, params, *each) for each in zip(trees[some], rows[some], strict=True)]
            whole = reduce(lambda above, below: r.SetOp("union", True, above, below), (q.relation for q in queries))
            found += self._relations.constant(r.Query(whole, queries[0].names), types).to_batches()
        return found

    def kept(
        self, plan: SelectPlan, table: Table, columns: Sequence[pa.Array | pa.ChunkedArray | None]
    ) -> list[pa.ChunkedArray]:
        """The rows of ``table``, whose columns these are, that a query over it gives."""
        query = plan.query(())
        if query is None:
            raise unsupported("this condition")
        return self._over(query, [(c.name, c.type) for c in plan.columns], table, columns).columns

    def _over(
        self,
        query: r.Query,
        types: Sequence[tuple[str, SqlType]],
        table: Table,
        columns: Sequence[pa.Array | pa.ChunkedArray | None],
    ) -> pa.Table:
        """What a query over ``table`` gives, where its rows are those with these ``columns``."""
        stored = list(columns)
        if table.dropped:  # the others have ids
            given = {column.id: values for column, values in zip(table.columns, columns, strict=True)}
            nothing = [pa.nulls(len(columns[0]), arrow_type(sql_type(each.type).plain)) for each in table.stored]
            stored = [given.get(each.id, none) for each, none in zip(table.stored, nothing, strict=True)]
        rows = pa.table(stored, names=[each.name for each in table.stored])
        return self._relations.of_rows(query, types, {table.id: rows})

    async def values(self, trees: Sequence[exp.Expression]) -> list[object]:
        """The value of each of ``trees``, in one query."""
        return await asyncio.to_thread(self._relations.values, row_of(trees))

    def argument(
        self, plan: SelectPlan | InsertPlan, params: Sequence[object | None], row: Sequence[object] = ()
    ) -> Argument:
        """Evaluates arguments of sequence calls in ``plan``, for a row that it has read."""
        values, types = params, plan.params
        if isinstance(plan, SelectPlan):
            values, types = plan.for_row(params, row)

        async def evaluate(tree: exp.Expression) -> object:
            return (await asyncio.to_thread(self._relations.values, row_of([tree], values, types)))[0]

        return evaluate

    def slots(self, plan: InsertPlan, params: Sequence[object | None], zone: str) -> Evaluate:
        """What makes rows of ``plan``, for a session in ``zone``."""
        return _Working(self, plan, params, zone)

    def slot_values(self, slots: Sequence[Slot], params: Sequence[object | None], types: Types) -> list[object]:
        """The values of slots that are trees."""
        found: list[object] = []
        for lower in range(0, len(slots), VALUES_AT_ONCE_MAX):
            trees = [slot.tree for slot in slots[lower : lower + VALUES_AT_ONCE_MAX]]
            found += self._relations.values(row_of(trees, params, types))
        return found

    def booleans(self, query: r.Query, count: int, table: Table, rows: pa.Table) -> pa.Table:
        """What a query over ``table`` that gives ``count`` of them gives for ``rows`` of it."""
        return self._over(query, [(f"c{at}", BOOL) for at in range(count)], table, rows.columns)


@dataclass(frozen=True)
class _Working:
    """See :class:`adapter.execute.rows.Evaluate`."""

    constants: Constants
    plan: InsertPlan
    params: Sequence[object | None]
    zone: str

    def __call__(self, slots: Sequence[Slot]) -> list[object]:
        return self.constants.slot_values(slots, self.params, self.plan.params)

    def hold(self, table: Table, rows: pa.Table) -> None:
        hold(table, rows, self.zone, self.constants.booleans)

    def shown(self, table: Item, rows: pa.Table, row: int) -> str:
        return row_text(own_columns(table), rows, row, self.zone)


def _of_row(
    plan: SelectPlan, params: Sequence[object | None], tree: exp.Expression, row: Sequence[object | None]
) -> r.Query:
    """The plan of ``tree``, which is what ``plan`` gives for ``row``."""
    values, types = plan.for_row(params, row)
    return replace(plan, tree=tree, params=types).constant(values)
