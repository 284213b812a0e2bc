"""A query to a :class:`~sql.plans.SelectPlan`: bound, views inlined, and by lookup where an index can answer it."""

from __future__ import annotations

from sqlglot import exp

from collection.types import SqlType
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from sql.bind import Bound, bind_query, inline_views
from sql.lookup_plan import plan_lookup
from sql.names import ImageLike, Names
from sql.plans import SelectPlan


def plan_select(
    ast: exp.Expression, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None
) -> SelectPlan:
    """Plan a query.  A query over system relations (or constants that only the system knows) has kind ``catalog``;
    its columns and types are decided by whoever answers it."""
    try:
        bound = bind_query(ast, image, names, declared)
    except InvalidUsage as error:
        if error.sqlstate in ("42883", "0A000", "42704") and reads_nothing(ast):
            return _catalog(ast, image, declared)
        raise
    if bound.system:
        return _catalog(ast, image, declared)
    return plan_bound(bound, image, names)


def plan_bound(bound: Bound, image: ImageLike, names: Names) -> SelectPlan:
    """The plan of a bound query over user relations."""
    return SelectPlan(
        kind="constant" if bound.constant else "peek",
        tree=inline_views(bound.tree, bound.relations),
        columns=bound.columns,
        inputs=bound.inputs,
        depends_on=bound.depends_on,
        params=bound.params,
        catalog_ts=CatalogTs(image.upper - 1),
        lookup=plan_lookup(bound, image, names),
        volatile=bound.volatile is not None,
    )


def reads_nothing(ast: exp.Expression) -> bool:
    """Whether a query names no relation: ``select version()``."""
    return not any(isinstance(table.this, exp.Identifier) for table in ast.find_all(exp.Table))


def _catalog(ast: exp.Expression, image: ImageLike, declared: dict[int, SqlType] | None) -> SelectPlan:
    numbers = [int(p.this.this) for p in ast.find_all(exp.Parameter) if isinstance(p.this, exp.Literal)]
    params = {n: (declared or {}).get(n, SqlType("text")) for n in range(1, max(numbers, default=0) + 1)}
    return SelectPlan("catalog", ast, (), (), (), params, CatalogTs(image.upper - 1))
