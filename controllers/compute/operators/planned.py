"""How the query of a view falls apart (:mod:`plan.slices`), from the tree that it is bound as."""

from __future__ import annotations

from sqlglot import exp

from plan.slices import Slices, slices
from sql.algebra.queries import Columns, plan_over
from sql.algebra.scope import NotPlanned
from sql.trees.budget import bounded


@bounded
def slices_of(tree: exp.Expression | None, columns: Columns) -> Slices | None:
    """How the query that is bound as ``tree`` falls apart, over relations with ``columns``."""
    if tree is None:
        return None
    try:
        return slices(plan_over(tree, columns).relation)
    except NotPlanned:
        return None
