"""What is done with free numerics, in functions of our own: no engine has decimals of which each has its own scale.

A free numeric (``numeric`` without a precision) is carried as its text; the functions are
:mod:`values.numeric.numerics`. Two of them are equal, or one is less, where their *keys* are: texts that any engine
compares, groups and sorts by (:mod:`sql.typing.keys`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.typing.casts import text_of
from trees import types as t
from trees.errors import unsupported
from trees.nodes import call, cast, constant, loose, position
from trees.own import own
from values.numeric import numerics
from values.numeric.numeric_sums import PARTS
from values.types import SqlType

if TYPE_CHECKING:
    pass

OPERATORS = {
    "+": "tm_numeric_add", "-": "tm_numeric_sub", "*": "tm_numeric_mul", "/": "tm_numeric_div", "%": "tm_numeric_mod",
}  # fmt: skip


def freed(node: exp.Expression, got: SqlType) -> exp.Expression:
    """``node``, an exact number of type ``got``, as a free numeric."""
    known = None if got.is_free else constant(node)
    if known is not None and known[0] is not None and _has_room(known[0], got):
        return exp.Literal.string(numerics.read(known[0]))
    if not got.is_free:
        return cast(text_of(node, got), t.NUMERIC)
    return loose(node) if isinstance(node, exp.Literal) else cast(loose(node), t.NUMERIC)


def _has_room(text: str, kind: SqlType) -> bool:
    """Whether a constant is one of its type: one that is not fails where it is reckoned."""
    try:
        t.parse_literal(text, kind)
    except InvalidUsage:
        return False
    return True


def reckoned(op: str, left: exp.Expression, right: exp.Expression, types: Sequence[SqlType]) -> exp.Expression:
    """``left op right``, of operands that were taken out of their tree."""
    return own(OPERATORS[op], freed(left, types[0]), freed(right, types[1]))


def exact_sum(value: exp.Expression) -> exp.Expression:
    """``sum(value)`` of a free numeric: of its parts, which are integers, so that rows can be taken back."""
    parts = own("tm_numeric_parts", value)
    sums = [
        exp.Sum(this=call("ELEMENT_AT", parts, exp.Literal.number(place + 1))) for place in range(PARTS)
    ]
    return own("tm_numeric_total", exp.Array(expressions=sums))


def summed(value: exp.Expression, got: SqlType) -> tuple[exp.Expression, SqlType]:
    """``sum(value)`` of an exact number, or of its distinct ones, and its type."""
    if isinstance(value, exp.Order):  # of no consequence
        value = value.this
    if got.is_free:
        return exact_sum(value), t.NUMERIC
    if got in (t.INT2, t.INT4):
        return exp.Sum(this=value.copy()), t.INT8
    if got == t.INT8:
        made, wide = value.copy(), SqlType("numeric", 28, 0)
        if isinstance(made, exp.Distinct):
            made.set("expressions", [cast(each.copy(), wide) for each in made.expressions])
        else:
            made = cast(made, wide)
        return exp.Sum(this=made), SqlType("numeric", 38, 0)
    return exp.Sum(this=value.copy()), SqlType("numeric", min(38, got.precision + 10), got.scale)


def extreme(node: exp.AggFunc, argument: exp.Expression) -> exp.Expression:
    """``min`` or ``max`` of a free numeric: that of the key with the text behind it."""
    argument.replace(own("tm_numeric_keyed", argument.copy()))
    return own("tm_numeric_of_keyed", node.copy())


def outermost(node: exp.Func, arguments: Sequence[exp.Expression], types: Sequence[SqlType]) -> exp.Expression:
    """``greatest`` or ``least`` of exact numbers of which one is free."""
    keyed = [own("tm_numeric_keyed", freed(each, got)) for each, got in zip(arguments, types, strict=True)]
    if len(keyed) == 1:
        return freed(arguments[0], types[0])
    return own("tm_numeric_of_keyed", type(node)(**{**node.args, "this": keyed[0], "expressions": keyed[1:]}))


def deviation(kind: str, value: exp.Expression, got: SqlType) -> exp.Expression:
    """A variance or standard deviation of exact numbers: of their count, sum and sum of squares."""
    if got.is_free:
        squares = exact_sum(own("tm_numeric_mul", value, value))
        total = exact_sum(value)
    else:
        wide = SqlType("numeric", 38 if got.scale else 28, got.scale or 0)
        total = exp.Sum(this=cast(value.copy(), wide))
        squares = None
        if t.is_int(got) and got != t.INT8:
            wide_value = cast(value.copy(), SqlType("numeric", 10, 0))
            squares = exp.Sum(this=exp.Paren(this=exp.Mul(this=wide_value, expression=wide_value.copy())))
        elif not t.is_int(got) and 2 * got.precision + 1 + 10 <= 38:
            whole = exp.Paren(this=value.copy())  # a sum of its own may stand there
            squares = exp.Sum(this=exp.Paren(this=exp.Mul(this=whole, expression=whole.copy())))
        if squares is None:
            text = freed(value, got)
            squares = exact_sum(own("tm_numeric_mul", text, text))
    count = exp.Count(this=value.copy())
    return own("tm_numeric_deviation", exp.Literal.string(kind), count, cast(total, t.TEXT), cast(squares, t.TEXT))


def check_no_free(sql_type: SqlType, what: str, node: exp.Expression) -> None:
    """0A000 where equal numbers of different digits would be told apart."""
    if sql_type.is_free:
        hint = "cast to numeric(p,s), whose values have all the same digits behind the point"
        raise unsupported(f"{what} of {t.shown(sql_type)} without a precision", hint, position(node))
