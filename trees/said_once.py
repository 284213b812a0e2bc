"""What is made of operands that it names several times, each written once where it is large.

What is said twice at each of a dozen levels is said thousands of times, and no engine has a name for a value.  So large
operands are the fields of a row of which a lambda makes what is made of them.  Small ones stay where they stand.

Promises: as long as no operand is large, nothing is otherwise than without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from functions.registry import OWN
from trees.nodes import loose

LARGE_MIN = 500
"""Nodes of what is not said twice: a power of a float is some 150, written out, and engines know best what is small."""

ROW = "given"

Around = Callable[[Sequence[tuple[str, exp.Expression]], exp.Expression], exp.Expression]
"""Makes what a body gives of a row with these fields."""


def is_large(node: exp.Expression) -> bool:
    """Whether ``node`` has more than ``LARGE_MIN`` nodes."""
    return sum(1 for _, _ in zip(node.walk(), range(LARGE_MIN + 1), strict=False)) > LARGE_MIN


def said_once(
    operands: Sequence[exp.Expression], build: Callable[..., exp.Expression], around: Around | None = None
) -> exp.Expression:
    """``build(*operands)``, or the same of a row of them.  ``around``: :func:`of_row`, in words of another's."""
    large = {f"a{place}" for place, each in enumerate(operands) if is_large(each)}
    if not large:
        return build(*operands)
    given = {f"a{place}": each for place, each in enumerate(operands) if not _is_constant(each)}
    stands = [_field(name) if (name := f"a{place}") in given else each for place, each in enumerate(operands)]
    body = exp.Paren(this=build(*stands))
    places: dict[str, list[exp.Expression]] = {name: [] for name in given}
    for dot in body.find_all(exp.Dot):
        if is_field(dot):
            places[dot.name].append(dot)
    twice = any(len(places[name]) > 1 for name in large & given.keys())
    if twice and not any(_asks_outside(each) for each in body.walk()):
        fields = [(name, loose(each)) for name, each in given.items() if places[name]]
        return (around or of_row)(fields, body.this.pop())
    for name, each in given.items():
        for place in places[name]:
            place.replace(loose(each))
    return body.this.pop()


def of_row(fields: Sequence[tuple[str, exp.Expression]], body: exp.Expression) -> exp.Expression:
    """In a bound tree."""
    row = exp.Struct(expressions=[exp.PropertyEQ(this=_name(name), expression=each) for name, each in fields])
    asked = exp.Lambda(this=body, expressions=[exp.to_identifier(ROW)])
    rows = exp.Anonymous(this="ARRAY", expressions=[row])
    made = exp.Anonymous(this="TRANSFORM", expressions=[rows, asked])
    return exp.Anonymous(this="ELEMENT_AT", expressions=[made, exp.Literal.number(1)])


def _name(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _field(name: str) -> exp.Expression:
    return exp.Dot(this=exp.to_identifier(ROW), expression=_name(name))


def is_field(node: exp.Dot) -> bool:
    """Whether it is a field of the row that stands for operands."""
    return isinstance(node.this, exp.Identifier) and node.this.this == ROW


def _is_constant(node: exp.Expression) -> bool:
    while isinstance(node, (exp.Cast, exp.Paren, exp.Neg)):
        node = node.this
    return isinstance(node, (exp.Literal, exp.Null, exp.Boolean, exp.Parameter))


def _asks_outside(node: exp.Expression) -> bool:
    """Whether no function of a row may have ``node`` in it: what is of several rows, a query, what Python is asked."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in OWN
    return isinstance(node, (exp.AggFunc, exp.Window, exp.WithinGroup, exp.Query, exp.Subquery))
