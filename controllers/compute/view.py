"""One materialized view: its change between two timestamps, whatever its strategy.

Promises: :meth:`View.evaluate` gives the change of the view's output from what its own output collection holds to what
its query is at ``t1``, with equal rows merged, or the view's error; the two strategies give the same.  What the view
holds in memory moves only by :meth:`View.accept`, after the change is safely committed; a view that failed, or whose
memory is not of its upper, is brought back by comparing the whole query with its output.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from sqlglot import exp

from catalog_log.settings import PROCESS, SPARK
from collection.columns import DIFF
from controllers.arrangements.tuples import Row, schema_of, to_rows, to_table
from controllers.compute import plans as st
from controllers.compute import spark_text as sp
from controllers.compute.failures import Interrupted, of_spark, unexplained
from controllers.compute.groups import Group, Groups, TooManyGroups, Values, call_type, refusal
from controllers.compute.handing import schema_sql
from controllers.compute.operators.affected import affected_of
from controllers.compute.operators.process import Left, Process
from controllers.compute.operators.recompute import Recompute
from controllers.compute.operators.small import TOLD_SPARK, told
from controllers.compute.outputs import Outputs, compile_outputs
from controllers.compute.relation import Relation, own_name
from controllers.compute.rows import consolidate
from controllers.compute.running import answered
from controllers.compute.sources import Sources
from controllers.compute.strategy import analyse
from controllers.compute.vectors import Compiled, NotHere, compile_term, partial_groups, partial_values
from journal.errors import TidemarkError
from journal.timestamps import DataTs
from values.types import SqlType, from_arrow

log = logging.getLogger(__name__)

NEVER = DataTs(-1)
"""State of a view that holds nothing yet: everything is a change since then."""


@dataclass(frozen=True)
class Change:
    """What a tick found: ``rows`` (the view's columns by position, then ``__diff``), or ``error``."""

    view_id: str
    rows: pa.Table
    error: TidemarkError | None
    accept: Callable[[], None]


class Gears:
    """Which gear took each tick of a view, for who asks: ``process`` or ``spark``, and why it was Spark."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.reason: str | None = None
        self.counts = {PROCESS: 0, SPARK: 0}
        self._left: str | None = None

    def left(self, reason: str) -> None:
        """Something of the tick under way is left to Spark."""
        self._left = self._left or reason

    def begun(self) -> None:
        """A tick begins."""
        self._left = None

    def ended(self) -> None:
        """The tick has evaluated something."""
        self.last, self.reason = (PROCESS, None) if self._left is None else (SPARK, self._left)
        self.counts[self.last] += 1


class View:
    """``relation`` is the view's own output collection, ``inputs`` those that its query reads, by id.

    ``sql`` is its query as Spark is told it, ``tree`` the same for any engine, ``None`` where there is none.
    """

    def __init__(
        self, relation: Relation, sql: str, inputs: dict[str, Relation], sources: Sources,
        tree: exp.Expression | None, process: Process, gear: Callable[[], str],
    ) -> None:  # fmt: skip
        self.id = relation.id
        self.relation = relation
        self.inputs = inputs
        self._spark = sources.spark
        self._types = relation.types
        self._schema = schema_of(self._types, [f"c{i}" for i in range(len(self._types))]).append(
            pa.field(DIFF, pa.int64())
        )
        self.state_ts: DataTs | None = NEVER
        """Timestamp that the held state is of; ``None`` where it must be found again (after an error, a restart)."""
        self.compared = 0
        """How often the whole query was compared with the output."""
        self.gears = Gears()
        self.in_process = 0
        """How many changes of linear parts were found without Spark."""
        self.by_keys = 0
        """How many changes were found from the keys that were touched."""
        self.columns_in_spark = 0
        """How many times Spark was asked for the columns of groups that changed."""
        self._gear = gear
        self._compiled: dict[st.Term, Compiled] = {}
        self._groups: Groups | None = None
        self._outputs: Outputs | None = None
        self._key_types: list[SqlType] = []
        self._argument_types: list[SqlType] = []
        self._call_types: list[SqlType] = []
        columns = {i: each.names for i, each in inputs.items()}
        affected = affected_of(tree, inputs)
        self._recompute = Recompute(relation, inputs, sql, told(tree, columns), self._schema, process, gear, affected)
        names = [name for each in inputs.values() for name in each.names]
        self.strategy = self._install(analyse(sql, inputs.keys(), names))

    # -- installing ---------------------------------------------------------------------------------------------------

    def _install(self, strategy: st.Strategy) -> st.Strategy:
        """Let Spark's analyser confirm ``strategy``: its terms must resolve, and what is summed must be exact."""
        if isinstance(strategy, st.Recompute):
            return strategy
        linear = strategy if isinstance(strategy, st.Linear) else strategy.input
        try:
            whole = self._types_of(linear.full, linear.diff)
            for term in linear.terms:
                if self._types_of(term.tree, linear.diff) != whole:
                    return st.Recompute("branches of a UNION differ in type")
            if isinstance(strategy, st.Linear):
                # What Spark must still cast to the view's own types stays with Spark.
                self._compiled = self._compile(linear, whole) if whole == self._types else {}
                return strategy
            self._compiled = self._compile(linear, whole)
            types = whole[: strategy.keys + strategy.arguments]
            self._key_types, arguments = types[: strategy.keys], types[strategy.keys :]
            self._argument_types = arguments
            for call in strategy.calls:
                if (reason := refusal(call, arguments)) is not None:
                    return st.Recompute(reason)
            self._call_types = [call_type(c, arguments) for c in strategy.calls]
            self._groups = Groups(strategy.calls, arguments, has_keys=strategy.keys > 0)
            self._outputs = self._compile_outputs(strategy)
            return strategy
        except Exception as error:
            # The whole query may be fine where a rewritten one is not; it alone decides about errors.
            log.info("view is recomputed", extra={"view": self.id, "why": str(error)[:500]})
            return st.Recompute("its incremental form is not understood by spark")

    def _compile(self, linear: st.Linear, types: list[SqlType]) -> dict[st.Term, Compiled]:
        """The terms that need no Spark; of each, Spark's analyser and ours must see the same types."""
        columns = {
            i: [(n, t) for n, t in zip(r.names, r.types, strict=True)] for i, r in self.inputs.items()
        }
        found = {}
        for term in linear.terms:
            try:
                compiled = compile_term(term, columns)
            except NotHere as why:
                log.debug("a term is left to spark", extra={"view": self.id, "term": term.sql, "why": str(why)})
                continue
            if list(compiled.types) == types:
                found[term] = compiled
        return found

    def _types_of(self, tree: exp.Expression, diff: str) -> list[SqlType]:
        empty = {(i, v): self.inputs[i].nothing(diff) for i, v in st.placeholders(tree)}
        schema = self._spark.sql(sp.text(st.fill(tree, empty))).schema
        return [from_arrow(f.type) for f in to_arrow_schema(schema)][:-1]

    def _compile_outputs(self, plan: st.Aggregate) -> Outputs | None:
        """The view's columns over its groups; ``None`` where Spark must be asked."""
        try:
            return compile_outputs(plan.post, self._group_columns, self._types)
        except NotHere as why:
            log.info("a view's columns are left to spark", extra={"view": self.id, "why": str(why)})
            return None

    @property
    def _group_columns(self) -> list[tuple[str, SqlType]]:
        keys = [(f"k{i}", t) for i, t in enumerate(self._key_types)]
        return [*keys, *((f"a{i}", t) for i, t in enumerate(self._call_types))]

    # -- evaluating ---------------------------------------------------------------------------------------------------

    def evaluate(self, sources: Sources, t1: DataTs) -> Change:
        """The change of the output at ``t1``.  All inputs and the output are known through ``t1`` and ``upper - 1``."""
        nothing = self._schema.empty_table()
        self.gears.begun()
        if self._can_go_on():
            try:
                if self.state_ts != NEVER and not any(
                    sources.changed(r, self.state_ts, t1) for r in self.inputs.values()
                ):
                    return Change(self.id, nothing, None, lambda: self._reached(t1))
                if not isinstance(self.strategy, st.Recompute):
                    found = self._incremental(sources, t1)
                    self.gears.ended()
                    return found
                found = self._touched(sources, t1)
                if found is not None:
                    self.gears.ended()
                    return found
            except Exception as error:
                if isinstance(of_spark(error), Interrupted):
                    raise
                # A row that came and went within the delta may fail where the whole query does not: ask that.
                log.info("incremental step failed", extra={"view": self.id, "why": str(error)[:500]})
                if isinstance(error, TooManyGroups):
                    self.recompute(error.message)
        try:
            found = self._whole(sources, t1)
            self.gears.ended()
            return found
        except Exception as error:
            self.gears.ended()
            failure = of_spark(error)
            if isinstance(failure, Interrupted):
                raise
            if failure is None:
                # Not the query's fault by its looks.  One view must not stop all for ever, nor hide that Spark is dead.
                self._spark.sql("SELECT 1").collect()
                failure = unexplained(error)
            return Change(self.id, nothing, failure, self._forget)

    def fail(self, error: TidemarkError) -> Change:
        """The change when an input is in error: none, and the same error."""
        return Change(self.id, self._schema.empty_table(), error, self._forget)

    def recompute(self, reason: str) -> None:
        """Maintain it by recomputation from now on."""
        self.strategy, self._groups = st.Recompute(reason), None

    def _can_go_on(self) -> bool:
        if self.state_ts is None:
            return False
        return self.state_ts == NEVER or all(r.since <= self.state_ts for r in self.inputs.values())

    def _forget(self) -> None:
        self.state_ts = None

    def _reached(self, t1: DataTs) -> None:
        self.state_ts = t1

    def restore(self, sources: Sources, upper: DataTs) -> None:
        """After a restart: find again what is held at ``upper - 1``, if the inputs still tell that timestamp apart."""
        at = DataTs(upper - 1)
        self.state_ts = at
        if isinstance(self.strategy, st.Recompute):
            return
        if not self._can_go_on():
            self.state_ts = None
            return
        if self._groups is not None:
            try:
                self._groups.accept(self._groups.merge(*self._partials(sources, NEVER, at), base=False), base=False)
            except Exception as error:
                if of_spark(error) is None and not isinstance(error, TooManyGroups):
                    raise
                self.state_ts = None

    def _incremental(self, sources: Sources, t1: DataTs) -> Change:
        if isinstance(self.strategy, st.Linear):
            here = self._delta_here(self.strategy, sources, self.state_ts, t1)
            if here is not None:
                rows = consolidate(_cast_to(here, self._schema))
                return Change(self.id, rows, None, lambda: self._reached(t1))
            moved = self._moved(self.strategy, sources, self.state_ts, t1)
            if moved is not None:
                return Change(self.id, moved, None, lambda: self._reached(t1))
            delta = self._delta_query(self.strategy, sources, self.state_ts, t1)
            if delta is None:
                return Change(self.id, self._schema.empty_table(), None, lambda: self._reached(t1))
            source = sp.derived(delta, "d", [*self._names, DIFF])
            rows = self._run(sp.select([*self._casts(), sp.column(DIFF)], source))
            return Change(self.id, consolidate(rows), None, lambda: self._reached(t1))
        groups = self._groups
        is_new = self.state_ts == NEVER
        touched = groups.merge(*self._partials(sources, self.state_ts, t1))
        before = [] if is_new else [r for key in touched if (r := groups.row(key)) is not None]
        after = [groups.row_of(key, group) for key, group in touched.items() if group is not None]
        same = set(before) & set(after)
        rows = self._rows_of_groups([r for r in before if r not in same], [r for r in after if r not in same])

        def accept() -> None:
            groups.accept(touched)
            self._reached(t1)

        return Change(self.id, rows, None, accept)

    def _touched(self, sources: Sources, t1: DataTs) -> Change | None:
        """The change of the keys that changed, where the query falls apart by some and they are few."""
        if self.state_ts == NEVER or self._recompute.affected is None:
            return None
        try:
            rows = self._recompute.touched(sources, self.state_ts, t1)
        except Left as left:
            log.debug("more than what was touched is worked out", extra={"view": self.id, "why": str(left)})
            return None
        self.by_keys += 1
        return Change(self.id, rows, None, lambda: self._reached(t1))

    def _whole(self, sources: Sources, t1: DataTs) -> Change:
        """Compare the query at ``t1`` with the output held."""
        self.compared += 1
        rows = self._recompute.compared(sources, t1, self.gears.left)
        touched: dict[Row, Group | None] | None = None
        if self._groups is not None:
            try:
                touched = self._groups.merge(*self._partials(sources, NEVER, t1), base=False)
            except Exception as error:
                if of_spark(error) is None and not isinstance(error, TooManyGroups):
                    raise
                log.warning("view is recomputed from now on", extra={"view": self.id, "why": str(error)[:500]})
                self.recompute("its groups cannot be held")

        def accept() -> None:
            if touched is not None and self._groups is not None:
                self._groups.accept(touched, base=False)
            self._reached(t1)

        return Change(self.id, rows, None, accept)

    # -- pieces -------------------------------------------------------------------------------------------------------

    @property
    def _names(self) -> list[str]:
        return [f"c{i}" for i in range(len(self._types))]

    def _casts(self) -> list[exp.Expression]:
        """The columns, each cast to its type."""
        return [sp.cast(sp.column(n), t, n) for n, t in zip(self._names, self._types, strict=True)]

    def _run(self, query: exp.Expression) -> pa.Table:
        # Spark's own Arrow types differ in nothing but field names and nullability.
        return _cast_to(answered(self._spark, query), self._schema)

    def _delta_here(self, linear: st.Linear, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table | None:
        """The linear part's change of ``(t0, t1]``, found in this process; ``None`` where that needs Spark."""
        if t0 == NEVER:
            return None
        if self._gear() == SPARK:
            self.gears.left(TOLD_SPARK)
            return None
        parts = []
        for term in linear.terms:
            if not sources.changed(self.inputs[term.leaf], t0, t1):
                continue
            compiled = self._compiled.get(term)
            if compiled is None:
                return None
            tables = {}
            for relation_id, version in compiled.reads:
                relation = self.inputs[relation_id]
                if version == st.DELTA:
                    table = sources.table(relation, t0, t1)
                else:
                    table = relation.resident(t0 if version == st.OLD else t1)
                if table is None:
                    return None
                tables[relation_id, version] = table
            try:
                parts.append(compiled.run(tables))
            except NotHere as why:
                log.debug("a change is left to spark", extra={"view": self.id, "why": str(why)})
                return None
        self.in_process += 1
        return pa.concat_tables(parts) if parts else None

    def _moved(self, linear: st.Linear, sources: Sources, t0: DataTs, t1: DataTs) -> pa.Table | None:
        """The view's change, found by DuckDB in this process; ``None`` where that needs Spark."""
        leaves = [term.leaf for term in linear.terms]
        if t0 == NEVER or len(set(leaves)) < len(leaves):
            self.gears.left("its change is not of the small language")
            return None
        try:
            found = self._recompute.moved(sources, leaves, t0, t1)
        except Left as left:
            self.gears.left(str(left))
            return None
        self.in_process += 1
        return found

    def _delta_query(self, linear: st.Linear, sources: Sources, t0: DataTs, t1: DataTs) -> exp.Expression | None:
        """The linear part's change of ``(t0, t1]`` as a query; ``None`` if no input changed."""
        if t0 == NEVER:
            whole = {
                (i, v): sources.diffs(self.inputs[i], t1, linear.diff) for i, v in st.placeholders(linear.full)
            }  # fmt: skip
            return st.fill(linear.full, whole)
        changed = {i for i, r in self.inputs.items() if sources.changed(r, t0, t1)}
        parts = []
        for term in linear.terms:
            if term.leaf not in changed:
                continue
            read = {}
            for relation_id, version in st.placeholders(term.tree):
                relation = self.inputs[relation_id]
                if version == st.DELTA:
                    read[relation_id, version] = sources.delta(relation, t0, t1, linear.diff)
                else:
                    at = t0 if version == st.OLD else t1
                    read[relation_id, version] = sources.diffs(relation, at, linear.diff)
            parts.append(st.fill(term.tree, read))
        return sp.union_all(parts) if parts else None

    def _partials(
        self, sources: Sources, t0: DataTs, t1: DataTs
    ) -> tuple[list[tuple[Row, int, Group]], list[Values]]:
        """Per group and diff: rows, and count and sum of each argument; and the values of those that are bagged."""
        plan = self.strategy
        assert isinstance(plan, st.Aggregate)
        summed = frozenset(c.argument for c in plan.calls if c.function in ("sum", "avg"))
        bagged = self._groups.bagged
        here = self._delta_here(plan.input, sources, t0, t1)
        if here is not None:
            types = [*self._key_types, *self._argument_types]
            try:
                partials = partial_groups(here, types, plan.keys, summed)
                return partials, [partial_values(here, plan.keys, argument) for argument in bagged]
            except NotHere as why:
                log.debug("groups are left to spark", extra={"view": self.id, "why": str(why)})
        self.gears.left("the change of its groups is not of the small language")
        delta = self._delta_query(plan.input, sources, t0, t1)
        if delta is None:
            return [], [[] for _ in bagged]
        keys = [f"k{i}" for i in range(plan.keys)]
        arguments = [f"x{i}" for i in range(plan.arguments)]
        source = sp.derived(delta, "d", [*(keys + arguments or ["one"]), DIFF])
        one = exp.Literal.number(1)
        measures: list[exp.Expression] = [exp.Count(this=one)]
        for i, argument in enumerate(arguments):
            measures.append(exp.Count(this=sp.column(argument)))
            measures.append(sp.total(argument) if i in summed else exp.Literal.number(0))
        by = [*keys, DIFF]
        n = plan.keys

        def rows(by: Sequence[str], measures: Sequence[exp.Expression]) -> list[Row]:
            outputs = [*map(sp.column, by), *(sp.called(m, f"m{i}") for i, m in enumerate(measures))]
            return to_rows(answered(self._spark, sp.grouped(sp.select(outputs, source.copy()), by)))

        partials = [(row[:n], row[n], row[n + 1 :]) for row in rows(by, measures)]
        values = [rows([*keys, arguments[each]], [sp.total(DIFF)]) for each in bagged]
        return partials, [[(row[:n], row[n], row[n + 1]) for row in each] for each in values]

    def _rows_of_groups(self, before: Sequence[Row], after: Sequence[Row]) -> pa.Table:
        """The view's rows of groups as they were and as they are, as a change."""
        if not before and not after:
            return self._schema.empty_table()
        if self._outputs is not None:
            try:
                return self._outputs.run(before, after)
            except NotHere as why:
                log.debug("a change of columns is left to spark", extra={"view": self.id, "why": str(why)})
        self.columns_in_spark += 1
        self.gears.left("the columns of its groups are not of the small language")
        plan, columns = self.strategy, [*self._group_columns, (DIFF, SqlType("int8"))]
        names = [name for name, _ in columns[:-1]]
        schema = schema_of([kind for _, kind in columns], [name for name, _ in columns])
        table = to_table([(*r, -1) for r in before] + [(*r, 1) for r in after], schema)
        view = own_name(f"groups_{self.id}")
        self.relation.handing.show(table, view, schema_sql(columns))
        parts = []
        for diff, present in ((-1, before), (1, after)):
            if not present:
                continue
            outputs = [*map(sp.column, names)] or [sp.called(exp.Literal.number(1), "one")]
            chosen = exp.EQ(this=sp.column(DIFF), expression=sp.number(diff))
            post = st.fill(plan.post, {st.GROUPS: sp.select(outputs, sp.table(view), chosen)})
            source = sp.derived(post, "p", self._names)
            parts.append(sp.select([*self._casts(), sp.called(sp.number(diff), DIFF)], source))
        try:
            return consolidate(self._run(sp.union_all(parts)))
        finally:
            self.relation.handing.take_back(view)


def _cast_to(table: pa.Table, schema: pa.Schema) -> pa.Table:
    arrays = [c.cast(f.type) for c, f in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
