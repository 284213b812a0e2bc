"""What a subquery compares with the row around it, said so that Spark takes it apart rightly.  Pure.

A limited subquery compares with a column of that row.

Promises: the same rows.  In ``(select … from b where b.k = <something of the row around> … limit 1)`` that something
becomes a column of the relation around, put there below.  Spark limits such a subquery for each row around it by the
columns that it is equal to; one that equals an expression, a cast to a wider integer among them, it limits as a whole
(``DecorrelateInnerQuery``, Spark 4.1): rows are missing then, and nothing says so.

Only equalities are: what else a subquery says of the row around joins both first.  They may be worked out where the
subquery asks for no row, as any engine may that takes conditions in an order of its own.

And whole numbers that are to equal a float are made one by way of a decimal (:func:`floats_by_decimals`).
"""

from __future__ import annotations

from dataclasses import replace

from plan import relations as r
from plan import scalars as s
from plan.below import More, input_of, over_more, without
from plan.calls import is_definite
from plan.columns import moved, replaced
from plan.equal import EQUALITIES
from plan.nodes import Node, walk
from plan.types import Type, common, decimal, is_float, is_integer


def compared_as_columns(node: Node) -> Node:
    """``node``, and all in it, with what its limited subqueries are equal to among the columns around them."""
    found = node.with_parts(lambda part: compared_as_columns(part))
    if isinstance(found, r.Join):
        return _joined(found) if found.lateral and _is_limited(found.right) else found
    input_ = input_of(found)
    return found if input_ is None else over_more(found, _Compared(len(input_.columns)))


def floats_by_decimals(node: Node, inside: bool = False) -> Node:
    """``node``, and all in it, with whole numbers in LATERAL and in the subqueries that give values made floats by way
    of a decimal where they are to equal one.

    Of a bigint several are one float.  Spark takes an inner column that is only made wider for as good as the wider one
    where it groups a subquery by what the row around equals (``DecorrelateInnerQuery``), and a bigint for made wider:
    a row around meets several groups then, and is there once for each.
    """
    if inside and isinstance(node, s.Call) and node.name in EQUALITIES:
        kind = common(each.type for each in node.arguments)
        if is_float(kind):
            node = replace(node, arguments=tuple(_by_decimal(each, kind) for each in node.arguments))
    right = node.right if isinstance(node, r.Join) and node.lateral else None
    return node.with_parts(
        lambda part: floats_by_decimals(part, inside or part is right or isinstance(node, s.ScalarQuery))
    )


def _by_decimal(side: s.Scalar, kind: Type) -> s.Scalar:
    value = side.value if isinstance(side, s.Cast) and is_float(side.type) else side
    if isinstance(value, s.Literal) or not is_integer(value.type):
        return side
    made = s.cast(s.cast(value, decimal(20, 0)), side.type if side is not value else kind)
    return made if made.type == kind else s.cast(made, kind)


def _joined(found: r.Join) -> r.Relation:
    width = len(found.left.columns)
    made = _Compared(width)
    right = made.changed(found.right, 1)
    if not made.count:
        return found

    def place(column: s.Column, depth: int) -> s.Column:
        behind = column.level == depth and column.position >= width
        return replace(column, position=column.position + made.count) if behind else column

    condition = None if found.condition is None else replaced(found.condition, place)
    changed = replace(found, left=made.put_below(found.left), right=right, condition=condition)
    return without(changed, range(width, width + made.count))


class _Compared(More):
    def put_below(self, input_: r.Relation) -> r.Relation:
        return r.Project(input_, (*map(input_.column, range(self.width)), *self.values))

    def within(self, part: Node) -> Node:
        if isinstance(part, r.Relation):
            return self.changed(part, 1) if _is_limited(part) else part
        return part.with_parts(self.within)

    def changed(self, node: Node, depth: int) -> Node:
        """``node`` in a subquery, where the row around is ``depth`` levels out."""
        if isinstance(node, s.Call) and node.name in EQUALITIES:
            kind = common(each.type for each in node.arguments)
            sides = tuple(self._side(each, kind, depth) for each in node.arguments)
            if any(one is not other for one, other in zip(sides, node.arguments, strict=True)):
                return replace(node, arguments=sides)
        lateral = isinstance(node, r.Join) and node.lateral

        def inside(part: Node) -> Node:
            enters = part is node.right if lateral else isinstance(node, s.Scalar) and isinstance(part, r.Relation)
            return self.changed(part, depth + enters)

        return node.with_parts(inside)

    def _side(self, side: s.Scalar, kind: Type, depth: int) -> s.Scalar:
        """One side of an equality of ``kind``."""
        value = side if side.type == kind else s.cast(side, kind)
        if isinstance(value, s.Column) or not self._is_around(value, depth):
            return side
        return moved(self.column(moved(value, -depth)), depth)

    def _is_around(self, side: s.Scalar, depth: int) -> bool:
        """Whether ``side`` is made of the row around and of nothing else."""
        parts = list(walk(side))
        if any(isinstance(each, r.Relation) or not is_definite(each) for each in parts):
            return False
        return {each.level for each in parts if isinstance(each, s.Column)} == {depth}


def _is_limited(relation: r.Relation) -> bool:
    return any(isinstance(each, r.TopK) and (each.limit or each.offset) for each in walk(relation))
