"""What a subquery says of the row around it inside of an aggregate, a window or an order, as columns below.  Pure.

Promises: the same rows.  ``(select sum(b.v + a.k) from b)`` is ``(select sum(v + q) from (select v, a.k as q from b)
b)``, and so is ``a.k`` where rows are sorted or numbered by it.  Spark lets a subquery name the row around it where it
filters and where it says its outputs, and refuses to in these places (``CORRELATED_REFERENCE``, Spark 4.1).
"""

from __future__ import annotations

from plan import relations as r
from plan import scalars as s
from plan.below import More, input_of, over_more
from plan.columns import replaced
from plan.nodes import Node


def named_below(node: Node) -> Node:
    """``node``, and all in it, with columns below for those of rows around that it groups, numbers or sorts by."""
    found = node.with_parts(named_below)
    if not isinstance(found, (r.Reduce, r.TopK, r.Window)):
        return found
    return over_more(found, _Named(len(input_of(found).columns)))


class _Named(More):
    def put_below(self, input_: r.Relation) -> r.Relation:
        return r.Project(input_, (*map(input_.column, range(self.width)), *self.values))

    def within(self, part: Node) -> Node:
        return replaced(part, self._here)

    def _here(self, column: s.Column, depth: int) -> s.Column:
        if column.level <= depth:
            return column
        found = self.column(s.Column(column.type, column.nullable, column.position, column.level - depth))
        return s.Column(found.type, found.nullable, found.position, depth)
