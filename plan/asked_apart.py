"""What is asked once for all rows, beside them instead of inside a call that an engine runs in Python.  Pure.

Promises: the same rows.  ``f(x, (select … from b))``, whose subquery names nothing of the row around, is ``f(x, q)``
over the rows joined to the one row ``(select (select … from b) as q)``.  Spark hands the arguments of Python's
functions to its workers as they are written and compares them there, where a subquery's own plan has no relations any
more: it fails with a NullPointerException (``EvalPythonExec``, Spark 4.1).  Comparing numerics is such a function.
"""

from __future__ import annotations

from dataclasses import replace

from functions.registry import OWN
from plan import relations as r
from plan import scalars as s
from plan.below import More, input_of, over_more, without
from plan.columns import names_outside
from plan.nodes import Node


def asked_apart(node: Node) -> Node:
    """``node``, and all in it, with what is asked once beside the calls that engines run in Python."""
    found = node.with_parts(lambda part: asked_apart(part))
    if isinstance(found, r.Join):
        return _joined(found)
    input_ = input_of(found)
    return found if input_ is None else over_more(found, _Asked(len(input_.columns)))


def _joined(found: r.Join) -> r.Relation:
    """The columns are put on the right side, since the last places are its own."""
    width = len(found.columns)
    made = _Asked(width)
    condition = None if found.condition is None else made.within(found.condition)
    if not made.count:
        return found
    changed = replace(found, right=made.put_below(found.right), condition=condition)
    return without(changed, range(width, width + made.count))


class _Asked(More):
    def put_below(self, input_: r.Relation) -> r.Relation:
        return r.Join("cross", input_, r.Project(r.UNIT, tuple(self.values)))

    def within(self, part: Node) -> Node:
        if isinstance(part, r.Relation):
            return part
        inside = isinstance(part, s.Call) and part.name in OWN
        return part.with_parts(self._argument if inside else self.within)

    def _argument(self, part: Node) -> Node:
        """Something in an argument of a call of Python's."""
        if isinstance(part, (s.ScalarQuery, s.Exists)) and not names_outside(part.relation):
            return self.column(part)
        return part if isinstance(part, r.Relation) else part.with_parts(self._argument)
