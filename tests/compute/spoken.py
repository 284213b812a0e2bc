"""Queries that tests write in Spark's words, as the trees that the binder would have left of them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from catalog_log.objects import Column, MaterializedView, SparkText
from controllers.compute.operators.planned import Planned
from controllers.compute.spark_text import parse
from controllers.compute.strategy import Strategy
from journal.errors import InvalidUsage
from plan.relations import Query
from sql.algebra.queries import plan_over
from sql.algebra.scope import NotPlanned
from sql.objects.called import Objects
from sql.views import kept_views
from trees.budget import bounded

ROWS = {
    "UPPER": "TM_UPPER_TEXT", "LOWER": "TM_LOWER_TEXT", "LENGTH": "TM_LENGTH_TEXT", "REVERSE": "TM_REVERSE_TEXT",
    "CBRT": "TM_CBRT_FLOAT8",
}  # fmt: skip

Columns = Mapping[str, Mapping[str, str]]
"""Types of columns by their names, by relation."""


def tree_of(sql: str, columns: Columns) -> exp.Expression:
    """Each column is named with its relation's name, and casts are casts."""
    tree = parse(sql)
    for node in list(tree.find_all(exp.TryCast)):
        node.replace(exp.Cast(this=node.this, to=node.to))
    for node in tree.find_all(exp.Anonymous):  # of functions that are rows the binder leaves their forms
        if node.name in ROWS:
            node.set("this", ROWS[node.name])
    for select in tree.find_all(exp.Select):
        _qualify(select, columns)
    return tree


def _qualify(select: exp.Select, columns: Columns) -> None:
    start = select.args.get("from_")
    sources = [] if start is None else [start.this, *(join.this for join in select.args.get("joins") or ())]
    known = [(source.alias_or_name, _columns_of(source, columns)) for source in sources]
    for node in select.walk(prune=lambda n: n is not select and isinstance(n, exp.Query)):
        if isinstance(node, exp.Column) and not node.table:
            found = [name for name, names in known if node.name in names]
            if len(found) == 1:
                node.set("table", exp.to_identifier(found[0], quoted=True))


def _columns_of(source: exp.Expression, columns: Columns) -> list[str]:
    if isinstance(source, exp.Table):
        return list(columns[source.name])
    alias = source.args.get("alias")
    return [each.name for each in alias.columns] if alias is not None and alias.columns else source.named_selects


def planned_query(view: MaterializedView, objects: Objects) -> Query | str:
    """As :func:`sql.views.kept_views.planned_query`, also of a view of which the catalog keeps Spark's text."""
    if not isinstance(view.query, SparkText):
        return kept_views.planned_query(view, objects)
    inputs = {i: objects.item(i) for i in view.inputs}
    return plan_of(view.query.sql, {i: {c.name: c.type for c in item.columns} for i, item in inputs.items()})


def plan_of(sql: str, columns: Columns) -> Query | str:
    """The plan of ``sql``, or why it has none."""
    return plan_of_tree(tree_of(sql, columns), columns)


def plan_of_tree(tree: exp.Expression, columns: Columns) -> Query | str:
    """The same of a bound tree."""
    kept = {relation: [Column(n, kind) for n, kind in names.items()] for relation, names in columns.items()}
    try:
        return bounded(plan_over)(tree, kept)
    except NotPlanned as why:
        return f"its query has no plan ({why})"
    except InvalidUsage as error:
        return error.message


def planned(sql: str, columns: Columns) -> Planned:
    return Planned(plan_of(sql, columns))


def strategy_of(sql: str, columns: Columns) -> Strategy:
    return planned(sql, columns).strategy()
