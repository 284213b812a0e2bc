"""What is asked inside a call that an engine runs in Python, beside the rows or around the call instead.  Pure.

Promises: the same rows.  ``f(x, (select … from b))``, whose subquery names nothing of the row around, is ``f(x, q)``
over the rows joined to the one row ``(select (select … from b) as q)``.  Spark hands the arguments of Python's
functions to its workers as they are written and compares them there, where a subquery's own plan has no relations any
more: it fails with a NullPointerException (``EvalPythonExec``, Spark 4.1).  Comparing numerics is such a function.

What is asked for each row is asked with the call in it: ``f((select v from b where b.k = a.k))`` is ``(select f(v) from
b where b.k = a.k)``, since such a function gives NULL of NULL.  Spark takes any call of Python's into a join, whatever
stands in it (``canEvaluateWithinJoin``), and is left with a subquery there that it answers as if it named no row: with
21000, or not at all.  Calls that name other columns of the row as well are said so where rows are chosen by them:
elsewhere nothing is taken into joins, and Spark would join what it asks with all of those columns for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from functions.registry import OWN
from plan import relations as r
from plan import scalars as s
from plan.below import More, input_of, over_more, without
from plan.calls import is_definite
from plan.columns import moved, names_outside, over, own_columns
from plan.nodes import Node, walk


def asked_apart(node: Node, chosen: bool = False) -> Node:
    """``node``, and all in it, with what is asked beside the calls that engines run in Python, or around them.

    ``chosen``: whether rows of it may be chosen further out by what it makes of them.
    """
    below = chosen or not isinstance(node, r.Relation) or isinstance(node, (r.Filter, r.Join))
    found = node.with_parts(lambda part: asked_apart(part, below))
    if isinstance(found, r.Join):
        return _joined(found)
    if isinstance(found, r.Filter) and isinstance(found.input, r.Project) and _chooses_by_asked(found, found.input):
        outputs = found.input.outputs
        below_it = r.Filter(found.input.input, over(found.condition, outputs))
        return r.Project(asked_apart(below_it, chosen), outputs)
    input_ = input_of(found)
    if input_ is None:
        return found
    whole = below and isinstance(found, (r.Filter, r.Project))
    found = found.with_parts(lambda part: part if part is input_ else _around(part, whole))
    return over_more(found, _Asked(len(input_.columns)))


def _joined(found: r.Join) -> r.Relation:
    """The columns are put on the right side, since the last places are its own."""
    if found.condition is not None:
        found = replace(found, condition=_around(found.condition, True))
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


def _chooses_by_asked(found: r.Filter, below: r.Project) -> bool:
    """Whether a call of Python's in the condition is given a column that is asked for each row of ``below``, where
    Spark would write that in its place.  Not of what is another value each time."""
    given = [below.outputs[place] for each in _calls(found.condition) for place in own_columns(each)]
    if not any(isinstance(each, s.ScalarQuery) or any(_asked_in(each)) for each in given):
        return False
    return all(is_definite(each) for place in own_columns(found.condition) for each in walk(below.outputs[place]))


def _calls(part: Node) -> Iterator[s.Call]:
    """The outermost calls of Python's in a scalar, of its own row."""
    if isinstance(part, s.Call) and part.name in OWN:
        yield part
    elif not isinstance(part, r.Relation):
        for each in part.parts():
            yield from _calls(each)


def _around(part: Node, whole: bool) -> Node:
    """``part`` with the queries around Python's calls that are asked for each row in them.  ``whole``: also where a
    call names other columns of the row."""
    if isinstance(part, r.Relation):
        return part
    if isinstance(part, s.Call) and part.name in OWN:
        asked = set(_asked_in(part))
        if len(asked) == 1:
            (query,) = asked
            if whole or not set(_columns_beside(part)):
                return s.ScalarQuery(part.type, True, r.Project(query.relation, (_inside(part, query),)))
    return part.with_parts(lambda each: _around(each, whole))


def _is_strict(part: Node) -> bool:
    """Whether of a NULL in it nothing but NULL comes."""
    return isinstance(part, s.Cast) or isinstance(part, s.Call) and part.name in OWN


def _asked_in(part: Node) -> Iterator[s.ScalarQuery]:
    """What is asked for each row where a NULL of it makes all of ``part`` NULL."""
    for each in part.parts():
        if isinstance(each, s.ScalarQuery) and names_outside(each.relation):
            yield each
        elif _is_strict(each):
            yield from _asked_in(each)


def _columns_beside(part: Node) -> Iterator[Node]:
    """Columns and relations in ``part`` that are not those which :func:`_asked_in` gives."""
    for each in part.parts():
        if isinstance(each, (s.Column, r.Relation)):
            yield each
        elif not (isinstance(each, s.ScalarQuery) and names_outside(each.relation)):
            yield from _columns_beside(each)


def _inside(part: s.Scalar, query: s.ScalarQuery) -> s.Scalar:
    """``part``, whose value ``query`` is, as it is said over the rows of that."""
    if part == query:
        return query.relation.column(0)
    if _is_strict(part):
        return part.with_parts(lambda each: _inside(each, query))
    return moved(part, 1)
