"""A cluster of relations and views without a log."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from catalog_log.objects import Column
from collection.columns import DIFF
from controllers.arrangements.tuples import schema_of, to_rows, to_table
from controllers.compute.operators.lowered import Lowered
from sql.views.kept_views import TEXT_ALONE
from tests.compute.spoken import plan_of, plan_of_tree, planned_query


@pytest.fixture(autouse=True, scope="package")
def views_in_sparks_words() -> Iterator[None]:
    """Views whose query is written as Spark's text here are kept by operators all the same."""
    from controllers.compute import view_plans

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_plans, "planned_query", planned_query)
        yield


class Bench:
    """Relations and views at a time of the test's own.  Rows are plain tuples."""

    _ids = itertools.count(1000)

    def __init__(self, spark, scratch: Path) -> None:
        from controllers.compute.maintainer import Maintainer

        self.spark = spark
        self.scratch = scratch
        self.gear = "auto"
        self.maintainer = Maintainer(spark, lambda: self.gear)
        self.now = 0
        self.relations = {}
        self.columns = {}
        self.plans = {}
        self.queries = {}

    def relation(self, columns: dict[str, str], relation_id: str | None = None):
        from controllers.compute.relation import Relation

        relation_id = relation_id or f"u{next(self._ids)}"
        found = Relation(self.spark, relation_id, [Column(n, t) for n, t in columns.items()], self.scratch)
        self.columns[relation_id] = columns
        self.relations[relation_id] = found
        return found

    def view(self, sql: str, columns: dict[str, str], *inputs, recompute=False, tree=None):
        """``sql`` names its inputs ``{0}``, ``{1}``…; ``tree`` is the same bound, by their ids; ``False`` where no
        plan is to be known."""
        relation = self.relation(columns)
        text = sql.format(*(i.id for i in inputs))
        columns = {i.id: self.columns[i.id] for i in inputs}
        if tree is None:
            query = plan_of(text, columns)
        else:
            query = plan_of_tree(tree, columns) if tree else TEXT_ALONE
        view = self.install(relation, Lowered(query, text), {i.id: i for i in inputs})
        if recompute:
            view.recompute("asked for")
        self.queries[relation.id] = text
        self.plans[relation.id] = query
        return view

    def again(self, view):
        """Maintain another view of the same query and output, as after a restart."""
        return self.install(view.relation, Lowered(self.plans[view.id], self.queries[view.id]), view.inputs)

    def install(self, *of):
        """Maintain the view that is made of these."""
        view = self.maintainer.make(*of)
        self.maintainer.install(view)
        return view

    def change(self, changes: dict) -> None:
        """At a new timestamp apply ``{relation: [(row, diff)…]}`` to the base relations."""
        from controllers.changes import stamp

        self.now += 1
        for relation in self.relations.values():
            if relation.id in self.queries:
                continue
            rows = changes.get(relation, [])
            table = self.table(relation, rows)
            relation.append([stamp(table, self.now, relation.types)] if rows else [], self.now + 1)

    def table(self, relation, rows) -> pa.Table:
        schema = schema_of(relation.types).append(pa.field(DIFF, pa.int64()))
        return to_table([(*row, diff) for row, diff in rows], schema)

    def tick(self):
        changes = self.maintainer.evaluate(list(self.queries), self.now)
        self.maintainer.accept(changes)
        return {c.view_id: c for c in changes}

    def held(self, view) -> Counter:
        """What the view's output collection says at the newest timestamp."""
        relation = view.relation
        found: Counter = Counter()
        for *row, diff in to_rows(relation.delta(-1, relation.upper - 1)):
            found[tuple(row)] += diff
        assert all(count > 0 for count in found.values()), found
        return found

    def truth(self, view) -> Counter:
        """What its query is now, of the rows that are there."""
        from controllers.compute.spark_text import text
        from sql.views.spark_gate import name_relations

        snapshots = {i: r.snapshot(self.now) for i, r in view.inputs.items()}
        query = name_relations(self.queries[view.id], view.inputs, {i: s.rows(True) for i, s in snapshots.items()})
        rows = self.rows(text(query), view)
        for snapshot in snapshots.values():
            snapshot.release()
        return rows

    def rows(self, sql: str, view) -> Counter:
        table = self.spark.sql(sql).toArrow()
        schema = schema_of(view.relation.types)
        arrays = [c.cast(f.type) for c, f in zip(table.columns, schema, strict=True)]
        return Counter(to_rows(pa.Table.from_arrays(arrays, schema=schema)))


@pytest.fixture
def bench(spark, tmp_path) -> Iterator[Bench]:
    found = Bench(spark, tmp_path)
    yield found
    found.maintainer.close()
    for relation in found.relations.values():
        relation.close()
