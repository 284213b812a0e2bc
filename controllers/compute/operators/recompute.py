"""The whole query at a timestamp, compared with what the view holds: by DuckDB where all is small, otherwise by Spark.

Promises: either gear gives the change from what the view's output collection holds to what its query is then, equal
rows merged; where neither fails they give the same.  Which gear it was is told, with the reason where it was Spark.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from collection.columns import DIFF
from controllers.changes import as_schema, consolidate, negated
from controllers.compute import spark_text as sp
from controllers.compute.operators.given import RESIDENT_ROWS_MAX, Given, Relation
from controllers.compute.operators.left import Left
from controllers.compute.operators.operator import Called, Explained
from controllers.compute.operators.whole_query import WholeQuery
from journal.timestamps import DataTs


class Recompute:
    """Of ``query``."""

    held = 0

    def __init__(self, query: WholeQuery) -> None:
        self._query = query
        self._too_large = False
        """Whether it was when last looked at: it is small again at half of that."""

    def explain(self, gear: str, called: Called) -> Explained:
        return Explained(self._query.spark(gear), "the view and its inputs are small", [])

    def delta(self, given: Given, t0: DataTs, t1: DataTs) -> pa.Table:
        """``t0`` is the timestamp of what the view holds, from which the change is.  Raises what Spark throws."""
        try:
            return self._here(given, t1)
        except Left as left:
            self._query.left(left)
            given.engines.left(str(left))
            return given.sources.answer(lambda sources: self._on_spark(given._replace(sources=sources), t1))

    def restore(self, given: Given, t1: DataTs) -> None:
        """It holds nothing."""

    def accept(self) -> None:
        """It holds nothing."""

    # -- in process ---------------------------------------------------------------------------------------------------

    def _here(self, given: Given, t1: DataTs) -> pa.Table:
        small = self._query.small(given.engines.gear())
        self._check_size(given)
        tables = {i: there(relation, given.sources.present(relation, t1)) for i, relation in given.inputs.items()}
        held = taken_away(given.output, self._query.schema)
        found = self._query.rows(small, given.engines, tables, 1)
        self._query.over()
        return consolidate(pa.concat_tables([found, held]))

    def _check_size(self, given: Given) -> None:
        bound = RESIDENT_ROWS_MAX // 2 if self._too_large else RESIDENT_ROWS_MAX
        too_large = [r for r in given.inputs.values() if r.rows > bound]
        self._too_large = bool(too_large) or given.output.rows > bound
        if self._too_large:
            raise _large(too_large[0].id if too_large else None)

    # -- by Spark -----------------------------------------------------------------------------------------------------

    def _on_spark(self, given: Given, t1: DataTs) -> pa.Table:
        sources, output, schema = given.sources, given.output, self._query.schema
        rows_of = {i: sources.rows(r, t1) for i, r in given.inputs.items()}
        query, before = self._query.on_spark(rows_of), self._query.asked_before(rows_of)
        names = schema.names[:-1]
        casts = [sp.cast(sp.column(n), t, n) for n, t in zip(names, self._query.types, strict=True)]
        new = sp.select([*casts, sp.called(sp.number(1), DIFF)], sp.derived(query, "q", names))
        if names and self._query.piles_up(given.inputs):  # less of them where they are added up as they are made
            added_up = [*map(sp.column, names), sp.called(sp.total(DIFF), DIFF)]
            new = sp.grouped(sp.select(added_up, sp.derived(new, "n")), names)
        if sources.outlet is not None and not output.rows:
            # All of it is new.  To add up equal rows would move each of many to another task first.
            return consolidate(as_schema(given.engines.on_spark(new, sources.much, sources.outlet, before), schema))
        held = sources.diffs(output, DataTs(output.upper - 1))
        columns = [sp.column(n) for n in names]
        both = sp.union_all([
            new,
            sp.select([*columns, sp.called(exp.Neg(this=sp.column(DIFF)), DIFF)],
                      sp.derived(held, "h", [*names, DIFF])),
        ])  # fmt: skip
        differ = exp.NEQ(this=sp.total(DIFF), expression=exp.Literal.number(0))
        merged = sp.select([*map(sp.column, names), sp.called(sp.total(DIFF), DIFF)], sp.derived(both, "b"))
        found = given.engines.on_spark(sp.grouped(merged, names, differ), sources.much, sources.outlet, before)
        return as_schema(found, schema)


def taken_away(output: Relation, schema: pa.Schema) -> pa.Table:
    """The changes, of ``schema``, that take away what a view holds.  Raises :class:`Left` where that is too much."""
    if not output.upper:
        return schema.empty_table()
    rows = output.resident(DataTs(output.upper - 1))
    if rows is None:
        raise _large(None)
    return as_schema(negated(rows), schema)


def there(relation: Relation, table: pa.Table | None) -> pa.Table:
    """``table``, of ``relation``, which is too large where there is none: raises :class:`Left`."""
    if table is None:
        raise _large(relation.id)
    return table


def _large(input_id: str | None) -> Left:
    what = "what it holds" if input_id is None else f"its input {input_id}"
    return Left(f"{what} has more changes than {RESIDENT_ROWS_MAX}")
