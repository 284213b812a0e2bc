"""What a subquery with a LIMIT says of the row around it, such that Spark takes its first rows for each.  Pure.

Promises: the same rows.  ``(select … from b where b.n = a.k limit 1)``, where the one is cast to the other's type, is
``(… where coalesce(b.n, b.n) = a.k limit 1)``.  Spark takes first rows for each value of the columns that equal one of
the row around.  Where a column is cast for that it takes it for one that can be looked for above the LIMIT, but not for
one to tell rows apart by: it takes the first rows of all, for everybody (``DecorrelateInnerQuery``, Spark 4.1).
"""

from __future__ import annotations

from dataclasses import replace

from plan import relations as r
from plan import scalars as s
from plan.calls import call
from plan.columns import names_outside, own_columns
from plan.equal import EQUALITIES, conjunction, conjuncts
from plan.nodes import Node


def limited(node: Node, below: bool = False) -> Node:
    """``node`` and all in it; ``below``: it is below a LIMIT."""
    under = below or isinstance(node, r.TopK) and (node.limit is not None or node.offset is not None)
    found = node.with_parts(lambda part: limited(part, under))
    if not under or not isinstance(found, (r.Filter, r.Join)) or found.condition is None:
        return found
    if not names_outside(found.condition):
        return found
    return replace(found, condition=conjunction([_told_apart(each) for each in conjuncts(found.condition)]))


def _told_apart(condition: s.Scalar) -> s.Scalar:
    if not isinstance(condition, s.Call) or condition.name not in EQUALITIES:
        return condition
    one, other = condition.arguments
    return replace(condition, arguments=(_no_cast(one, other), _no_cast(other, one)))


def _no_cast(value: s.Scalar, equal: s.Scalar) -> s.Scalar:
    """``value``, where it is to be ``equal`` to one of the row around, as what is no cast of a column."""
    if names_outside(value) or not names_outside(equal) or next(own_columns(value), None) is None:
        return value
    return value if isinstance(value, s.Column) and value.type == equal.type else call("coalesce", value, value)
