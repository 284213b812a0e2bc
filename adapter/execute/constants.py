"""What DuckDB works out of a statement without reading any relation: rows, values, arguments of sequence calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from adapter.duck.catalog_relations import CatalogRelations
from adapter.execute.beside import interruptible
from adapter.execute.draws import Evaluate as Argument
from adapter.execute.rows import Evaluate
from lower.duckdb.engine import Running
from sql.forms.transpile import with_params
from sql.statements.plans import InsertPlan, SelectPlan, Slot
from sql.trees.nodes import union_all
from values.types import arrow_type

VALUES_AT_ONCE_MAX = 100
"""Expressions of an INSERT that DuckDB is asked in one query: a query costs it as much as some dozens of them."""


class Constants:
    """Asks one engine; on threads but for :meth:`slots`, whose caller decides."""

    def __init__(self, relations: CatalogRelations) -> None:
        self._relations = relations

    async def rows(self, plan: SelectPlan, params: Sequence[object | None]) -> pa.Table:
        """What a query gives that reads nothing."""
        return await interruptible(self._rows, plan, params)

    def _rows(self, plan: SelectPlan, params: Sequence[object | None], running: Running) -> pa.Table:
        tree = with_params(plan.tree, params, plan.params)
        return self._relations.constant(tree, [(c.name, c.type) for c in plan.columns], running)

    async def for_rows(
        self, plan: SelectPlan, params: Sequence[object | None], trees: Sequence[exp.Expression], rows: Sequence[tuple]
    ) -> list[pa.RecordBatch]:
        """What a query gives for each of ``rows``, which is one of ``trees`` for each."""
        return await asyncio.to_thread(self._for_rows, plan, params, trees, rows)

    def _for_rows(
        self, plan: SelectPlan, params: Sequence[object | None], trees: Sequence[exp.Expression], rows: Sequence[tuple]
    ) -> list[pa.RecordBatch]:
        types = [(column.name, column.type) for column in plan.columns]
        whole = [with_params(tree, *plan.for_row(params, row)) for tree, row in zip(trees, rows, strict=True)]
        if not whole:
            return pa.schema([(name, arrow_type(kind)) for name, kind in types]).empty_table().to_batches()
        found = []
        for lower in range(0, len(whole), VALUES_AT_ONCE_MAX):
            query = union_all(whole[lower : lower + VALUES_AT_ONCE_MAX])
            found += self._relations.constant(query, types).to_batches()
        return found

    async def values(self, trees: Sequence[exp.Expression]) -> list[object]:
        """The value of each of ``trees``, in one query."""
        columns = [exp.alias_(tree, f"v{n}") for n, tree in enumerate(trees)]
        return await asyncio.to_thread(self._relations.values, with_params(exp.select(*columns), [], {}))

    def argument(
        self, plan: SelectPlan | InsertPlan, params: Sequence[object | None], row: Sequence[object] = ()
    ) -> Argument:
        """Evaluates arguments of sequence calls in ``plan``, for a row that it has read."""
        values, types = params, plan.params
        if isinstance(plan, SelectPlan):
            values, types = plan.for_row(params, row)

        async def evaluate(tree: exp.Expression) -> object:
            query = with_params(exp.select(exp.alias_(tree.copy(), "v")), values, types)
            return (await asyncio.to_thread(self._relations.values, query))[0]

        return evaluate

    def slots(self, plan: InsertPlan, params: Sequence[object | None]) -> Evaluate:
        """Evaluates what is neither a literal nor a parameter in an INSERT."""

        def evaluate(slots: Sequence[Slot]) -> list[object]:
            found: list[object] = []
            for lower in range(0, len(slots), VALUES_AT_ONCE_MAX):
                some = slots[lower : lower + VALUES_AT_ONCE_MAX]
                named = [exp.alias_(slot.tree.copy(), f"v{n}") for n, slot in enumerate(some)]
                found += self._relations.values(with_params(exp.select(*named), params, plan.params))
            return found

        return evaluate
