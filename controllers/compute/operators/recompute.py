"""The whole query at a timestamp, compared with what the view holds: by DuckDB where all is small, otherwise by Spark.

Promises: either gear gives the change from what the view's output collection holds to what its query is then, equal
rows merged; where neither fails they give the same.  Which gear it was is told, with the reason where it was Spark.
Of a query that falls apart by keys DuckDB gives the change from the rows of the keys that were touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from sqlglot import exp

from catalog_log.settings import AUTO, PROCESS, SPARK
from collection.columns import DIFF
from controllers.changes import as_schema, canonical, consolidate, negated
from controllers.compute import spark_text as sp
from controllers.compute.naming import name_relations
from controllers.compute.operators.affected import Affected
from controllers.compute.operators.process import Left, Process, Rest
from controllers.compute.operators.small import TOLD_SPARK, Small, Told
from controllers.compute.relation import RESIDENT_ROWS_MAX, Relation
from controllers.compute.running import answered
from controllers.compute.sources import Sources
from journal.timestamps import DataTs


class Recompute:
    """Of one view, by one thread at a time.

    ``told`` is what DuckDB is told of the query ``sql``, ``schema`` the view's columns by position, then ``__diff``.
    """

    def __init__(
        self, relation: Relation, inputs: Mapping[str, Relation], sql: str, told: Told, schema: pa.Schema,
        process: Process, gear: Callable[[], str] = lambda: AUTO, affected: Affected | None = None,
    ) -> None:  # fmt: skip
        self._relation = relation
        self._inputs = inputs
        self._sql = sql
        self._told = told
        self._schema = schema
        self._process = process
        self._gear = gear
        self.affected = affected
        self._too_large = False
        """Whether it was when last looked at: it is small again at half of that."""
        self._rest = Rest()

    def compared(self, sources: Sources, t1: DataTs, on_left: Callable[[str], None]) -> pa.Table:
        """The change at ``t1``: columns by position, then ``__diff``.  Raises what Spark throws; before Spark is asked,
        ``on_left`` is told why."""
        try:
            return self._here(sources, t1)
        except Left as left:
            self._remember(left)
            on_left(str(left))
            return self._on_spark(sources, t1)

    def touched(self, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table:
        """The change of ``(t0, t1]`` of a query that falls apart by keys: columns by position, then ``__diff``.  Raises
        :class:`Left`.

        What floats add up to hangs on the order of rows in their last digits: a query with such is compared with what
        the view holds, not with what DuckDB would find again.
        """
        try:
            small = self._asked()
            if self.affected is None or small is not self._told.ordinary:
                raise Left("it does not fall apart by keys")
            found = self.affected.between(sources, t0, t1)
            now = self._given(small, found.now, 1)
            if found.rows is None:
                parts = [now, self._given(small, found.then(), -1)]
            else:
                parts = [found.rows(now), found.rows(self._held())]
        except Left as left:
            self._remember(left)
            raise
        self._rest.over()
        return consolidate(pa.concat_tables(parts))

    def _given(self, small: Small, tables: Mapping[str, pa.Table], diff: int) -> pa.Table:
        """What the query gives of ``tables``, each row ``diff`` times."""
        return _counted(canonical(self._process.rows(small, self._relation.types, tables)), diff, self._schema)

    def _remember(self, left: Left) -> None:
        if left.lasting:
            self._told = Told(str(left), str(left))
        self._rest.after(left)

    # -- in process ---------------------------------------------------------------------------------------------------

    def _asked(self) -> Small:
        """What DuckDB is asked.  Raises :class:`Left` where it is not asked now."""
        gear = self._gear()
        if gear == SPARK:
            raise Left(TOLD_SPARK)
        small = self._told.whatever if gear == PROCESS else self._told.ordinary
        if isinstance(small, str):
            raise Left(small)
        self._rest.check()
        return small

    def _here(self, sources: Sources, t1: DataTs) -> pa.Table:
        small = self._asked()
        self._check_size()
        tables = {input_id: self._there(sources, input_id, t1) for input_id in self._inputs}
        held = self._held()
        found = self._given(small, tables, 1)
        self._rest.over()
        return consolidate(pa.concat_tables([found, held]))

    def _there(self, sources: Sources, input_id: str, as_of: DataTs) -> pa.Table:
        table = sources.present(self._inputs[input_id], as_of)
        if table is None:
            raise self._large(self._inputs[input_id])
        return table

    def _check_size(self) -> None:
        bound = RESIDENT_ROWS_MAX // 2 if self._too_large else RESIDENT_ROWS_MAX
        for relation in (*self._inputs.values(), self._relation):
            if relation.rows > bound:
                raise self._large(relation)
        self._too_large = False

    def _large(self, relation: Relation) -> Left:
        self._too_large = True
        what = "what it holds" if relation is self._relation else f"its input {relation.id}"
        return Left(f"{what} has more changes than {RESIDENT_ROWS_MAX}")

    def _held(self) -> pa.Table:
        """What the view holds, to be taken away."""
        upper = self._relation.upper
        if not upper:
            return self._schema.empty_table()
        held = self._relation.resident(DataTs(upper - 1))
        if held is None:
            raise self._large(self._relation)
        return taken_away(held, self._schema)

    # -- by Spark -----------------------------------------------------------------------------------------------------

    def _on_spark(self, sources: Sources, t1: DataTs) -> pa.Table:
        rows_of = {i: sources.rows(r, t1) for i, r in self._inputs.items()}
        query = name_relations(self._sql, self._inputs.keys(), rows_of)
        held = sources.diffs(self._relation, DataTs(self._relation.upper - 1))
        names = self._schema.names[:-1]
        casts = [sp.cast(sp.column(n), t, n) for n, t in zip(names, self._relation.types, strict=True)]
        columns = [sp.column(n) for n in names]
        both = sp.union_all([
            sp.select([*casts, sp.called(sp.number(1), DIFF)], sp.derived(query, "q", names)),
            sp.select([*columns, sp.called(exp.Neg(this=sp.column(DIFF)), DIFF)],
                      sp.derived(held, "h", [*names, DIFF])),
        ])  # fmt: skip
        differ = exp.NEQ(this=sp.total(DIFF), expression=exp.Literal.number(0))
        merged = sp.select([*map(sp.column, names), sp.called(sp.total(DIFF), DIFF)], sp.derived(both, "b"))
        found = answered(sources.spark, sp.grouped(merged, names, differ), sources.large)
        return as_schema(found, self._schema)


def taken_away(held: pa.Table, schema: pa.Schema) -> pa.Table:
    """The changes that take away what ``held``, of a view's contents, has."""
    return as_schema(negated(held), schema)


def _counted(rows: pa.Table, diff: int, schema: pa.Schema) -> pa.Table:
    """``rows``, each ``diff`` times."""
    return as_schema(rows.append_column(DIFF, pa.repeat(pa.scalar(diff, pa.int64()), rows.num_rows)), schema)
