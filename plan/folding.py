"""What conditions and limits come to as they are written: less of a query, never another answer.  Pure.

``false AND x`` is false whatever ``x`` is, ``true AND x`` is ``x``, and so for OR; a filter that lets all rows through
goes, and filters over each other are one, also where what is between them merely picks columns.  That is more than
tidiness: Spark's optimizer fails on a subquery whose condition is false beside a column from around it.

``SELECT … FROM (… ORDER BY k) LIMIT 3`` is ``… ORDER BY k LIMIT 3``: any three rows would do, and everybody counts on
these, which PostgreSQL gives.
"""

from __future__ import annotations

from plan import relations as r
from plan import scalars as s
from plan.calls import call
from plan.columns import over
from plan.nodes import Node
from plan.types import BOOL

TRUE, FALSE = s.truth(True), s.truth(False)


def folded(node: Node) -> Node:
    """``node`` and all in it without what is true or false anyway."""
    found = node.with_parts(folded)
    if isinstance(found, s.Call) and found.name in ("and", "or"):
        return _junction(found)
    if isinstance(found, s.Call) and found.name == "not" and found.arguments[0] in (TRUE, FALSE):
        return s.truth(found.arguments[0] == FALSE)
    if isinstance(found, r.Filter):
        return _filter(found.input, found.condition)
    if isinstance(found, r.TopK) and not found.order:
        return _in_the_order_below(found)
    return found


def _in_the_order_below(keep: r.TopK) -> r.Relation:
    """The first rows in the order that is said further in, where nothing but outputs is between."""
    outputs, below = [], keep.input
    while isinstance(below, r.Project):
        outputs.append(below.outputs)
        below = below.input
    if not isinstance(below, r.TopK) or not below.order or below.limit is not None or below.offset is not None:
        return keep
    found: r.Relation = r.TopK(below.input, below.order, keep.limit, keep.offset)
    for each in reversed(outputs):
        found = r.Project(found, each)
    return found


def _junction(found: s.Call) -> s.Scalar:
    nothing, all_ = (TRUE, FALSE) if found.name == "and" else (FALSE, TRUE)
    if all_ in found.arguments:
        return all_
    left = tuple(each for each in found.arguments if each != nothing)
    if len(left) == len(found.arguments):
        return found
    return call(found.name, *left) if len(left) > 1 else left[0] if left else nothing


def _filter(input_: r.Relation, condition: s.Scalar) -> r.Relation:
    if condition == TRUE:
        return input_
    if isinstance(input_, r.Project) and all(isinstance(each, s.Column) and each.level == 0 for each in input_.outputs):
        return r.Project(_filter(input_.input, over(condition, input_.outputs)), input_.outputs)
    if isinstance(input_, r.Filter) and condition.type == input_.condition.type == BOOL:
        return r.Filter(input_.input, _junction(call("and", input_.condition, condition)))
    return r.Filter(input_, condition)
