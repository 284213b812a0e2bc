"""What DuckDB works out of a statement without reading any relation: rows, values, arguments of sequence calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice

import pyarrow as pa

from adapter.duck.catalog_relations import CatalogRelations
from adapter.encode.shown_rows import row_text
from adapter.execute.beside import interruptible, on_thread_if
from adapter.execute.draws import Draws
from adapter.execute.held_checks import hold
from adapter.execute.rows import Evaluate
from catalog_log.objects import Item, Table, own_columns
from collection.columns import sql_type
from lower.duckdb.decided import Undecided, decided
from lower.duckdb.engine import Running
from plan import relations as r
from plan.scalars import Scalar
from sql.statements.plans import SelectPlan
from trees.errors import unsupported, untold
from trees.types import BOOL
from values.types import SqlType, arrow_type

VALUES_AT_ONCE_MAX = 100
"""Expressions of an INSERT that DuckDB is asked in one query: a query costs it as much as some dozens of them."""


class Constants:
    """Asks one engine; on threads but for :meth:`evaluate`, whose caller decides."""

    def __init__(self, relations: CatalogRelations) -> None:
        self._relations = relations

    async def drawn(self, plan: SelectPlan, params: Sequence[object | None], draws: Draws) -> r.Query | None:
        """The plan of a query of constants that draws, with values in the places of its calls; ``None`` of any
        other."""
        return await draws.query(await on_thread_if(plan.large, plan.constant, params)) if plan.draws else None

    async def rows(
        self, plan: SelectPlan, params: Sequence[object | None], drawn: r.Query | None = None
    ) -> pa.Table:
        """What a query gives that reads nothing, where it draws by what it is :meth:`drawn`."""
        return await interruptible(self._whole, plan, params, drawn)

    async def over(
        self, plan: SelectPlan, params: Sequence[object | None], tables: Mapping[str, pa.Table]
    ) -> pa.Table:
        """What a query gives that reads ``tables`` alone, by the ids of their relations."""
        return await interruptible(self._over_given, plan, params, tables)

    async def decided_over(
        self, plan: SelectPlan, params: Sequence[object | None], tables: Mapping[str, pa.Table]
    ) -> pa.Table:
        """The same of what a cluster would be asked otherwise: 0A000 where another engine might choose another answer
        (:mod:`lower.duckdb.decided`)."""
        return await interruptible(self._over_given, plan, params, tables, as_decided=True)

    def _over_given(
        self, plan: SelectPlan, params: Sequence[object | None], tables: Mapping[str, pa.Table], running: Running,
        as_decided: bool = False,
    ) -> pa.Table:  # fmt: skip
        query = plan.query(params)
        if query is None:
            raise untold("this query", "what it reads has no plan")
        if as_decided:
            try:
                query = decided(query)
            except Undecided as why:
                raise untold("this query", str(why)) from why
        types = [(c.name, c.type) for c in plan.columns]
        return self._relations.of_rows(query, types, tables, running, again=not as_decided)

    def _whole(
        self, plan: SelectPlan, params: Sequence[object | None], drawn: r.Query | None, running: Running
    ) -> pa.Table:
        return self._rows(plan, drawn or plan.constant(params), running)

    def _rows(self, plan: SelectPlan, query: r.Query, running: Running | None = None) -> pa.Table:
        return self._relations.constant(query, [(c.name, c.type) for c in plan.columns], running)

    async def for_rows(self, plan: SelectPlan, queries: Iterable[r.Query]) -> list[pa.RecordBatch]:
        """What ``plan`` gives for rows, of which ``queries`` say it of one after another."""
        return await asyncio.to_thread(self._for_rows, plan, queries)

    def _for_rows(self, plan: SelectPlan, queries: Iterable[r.Query]) -> list[pa.RecordBatch]:
        found, left = [], iter(queries)
        while some := list(islice(left, VALUES_AT_ONCE_MAX)):
            whole = reduce(lambda above, below: r.SetOp("union", True, above, below), (each.relation for each in some))
            found += self._rows(plan, r.Query(whole, some[0].names)).to_batches()
        if found:
            return found
        return pa.schema([(c.name, arrow_type(c.type)) for c in plan.columns]).empty_table().to_batches()

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

    def evaluate(self, scalars: Sequence[Scalar]) -> list[object]:
        """The values of ``scalars``, which read nothing."""
        found: list[object] = []
        for lower in range(0, len(scalars), VALUES_AT_ONCE_MAX):
            found += self._relations.values(r.row_of(scalars[lower : lower + VALUES_AT_ONCE_MAX]))
        return found

    async def value(self, scalar: Scalar) -> object:
        """The value of one."""
        return (await asyncio.to_thread(self.evaluate, [scalar]))[0]

    def working(self, zone: str) -> Evaluate:
        """What is asked while rows are made, for a session in ``zone``."""
        return _Working(self, zone)

    def booleans(self, query: r.Query, count: int, table: Table, rows: pa.Table) -> pa.Table:
        """What a query over ``table`` that gives ``count`` of them gives for ``rows`` of it."""
        return self._over(query, [(f"c{at}", BOOL) for at in range(count)], table, rows.columns)


@dataclass(frozen=True)
class _Working:
    """See :class:`adapter.execute.rows.Evaluate`."""

    constants: Constants
    zone: str

    def __call__(self, scalars: Sequence[Scalar]) -> list[object]:
        return self.constants.evaluate(scalars)

    def hold(self, table: Table, rows: pa.Table) -> None:
        hold(table, rows, self.zone, self.constants.booleans)

    def shown(self, table: Item, rows: pa.Table, row: int) -> str:
        return row_text(own_columns(table), rows, row, self.zone)
