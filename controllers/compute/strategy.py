"""How a view is maintained: what its query is a function of, decided from its text alone.

Promises: :func:`analyse` calls a query incremental only if its change can be computed from its inputs' changes by the
terms that it gives; everything else is recomputed, with the reason.  Pure: sqlglot, no Spark.  Whether a summed
expression's type is exact is not visible in text, so the engine asks Spark and falls back where it is not.

A query is *linear* if it is made of projection, filter, inner and cross join and UNION ALL over collections.  With
every row carrying its ``__diff``, the change of ``R1 ⋈ … ⋈ Rn`` between two timestamps is the sum over i of
``R1(old) … Ri-1(old) ⋈ ΔRi ⋈ Ri+1(new) … Rn(new)``, diffs multiplied: one *term* per place where a collection occurs.
A self-join has two.  In a term placeholders (:func:`placeholder`) stand for what it reads; the engine replaces them.

A query is an *aggregate* if it is projections and filters over one GROUP BY (or DISTINCT, or UNION) of count, sum and
avg over something linear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlglot
from sqlglot import exp

from controllers.compute.grouping import analyse_aggregate, find_aggregation
from controllers.compute.linear import analyse_linear
from controllers.compute.plans import Aggregate, Linear, NotIncremental, Recompute, Strategy
from controllers.compute.spark_text import diff_name, names_in, parse
from journal.errors import InvalidUsage
from sql.trees.budget import bounded
from sql.trees.nodes import only

__all__ = ["Aggregate", "Linear", "Recompute", "Strategy", "analyse"]


def analyse(sql: str, inputs: Collection[str], names: Iterable[str] = ()) -> Strategy:
    """The strategy for a view whose query is ``sql`` (Spark SQL, relations named by item id) over ``inputs``.

    ``names`` are those of the inputs' columns: the column of diffs that goes beside them is called like none of them.
    """
    try:
        return _analyse(sql, inputs, names)
    except sqlglot.errors.SqlglotError as error:
        return Recompute(f"the query's text could not be analysed ({str(error).splitlines()[0]})")
    except InvalidUsage as error:
        return Recompute(f"the query's text could not be analysed ({error.message})")


@bounded
def _analyse(sql: str, inputs: Collection[str], names: Iterable[str]) -> Strategy:
    tree = parse(sql)
    if not isinstance(tree, exp.Query):
        return Recompute("it is no query")
    try:
        tree = _strip(tree)
        if set(inputs) == set():
            raise NotIncremental("it reads no collection")
        diff = diff_name(names_in(tree) | set(names))
        layers, core = find_aggregation(tree)
        if core is None:
            return analyse_linear(tree, inputs, diff)
        return analyse_aggregate(layers, core, inputs, diff)
    except NotIncremental as no:
        return Recompute(str(no))


def _strip(tree: exp.Expression) -> exp.Expression:
    """Without outer parentheses and an ORDER BY that no LIMIT makes matter: a view has no order."""
    while isinstance(tree, exp.Subquery) and not tree.alias and only(tree, {"this"}):
        tree = tree.this
    if tree.args.get("order") and not (tree.args.get("limit") or tree.args.get("offset")):
        tree = tree.copy()
        tree.set("order", None)
    return tree
