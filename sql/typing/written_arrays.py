"""Arrays that a statement writes out, as the lists of values that they are.  Pure.

What is compared with one of a list may be asked for as a key; and Postgres casts each of what ``ARRAY[…]::type[]``
lists by itself, which is no array of another type before.
"""

from __future__ import annotations

from sqlglot import exp

from trees.nodes import unnest
from values.bad_text import BadText
from values.text.arrays import read_array

FEW = 64
"""Values of an array written as a text that are a list: of as many each is asked for as a key, as of a list
(``lower.lookup.among.MEMBERS_MAX``).  Of more it stays one value, however long."""

OF_ARRAY = "of_array"
"""In the ``meta`` of an IN that was written ``= ANY (ARRAY[…])``."""


def one_of_array(value: exp.Expression, values: list[exp.Expression]) -> exp.Expression:
    """``value = ANY (ARRAY[values])``."""
    if len(values) == 1:  # of a query alone IN would take all rows
        return exp.EQ(this=value.copy(), expression=values[0].copy())
    made = exp.In(this=value.copy(), expressions=[each.copy() for each in values])
    made.meta[OF_ARRAY] = True
    return made


def few_written(array: exp.Expression) -> list[exp.Expression]:
    """The values of ``array``, where it is a text such as ``'{1,2}'``, cast or not, and has one to ``FEW``; otherwise
    none, and who makes an array of it says what is wrong with it."""
    if (element := _cast_to(array)) is not None:
        return _each_cast(few_written(unnest(array.this)), element)
    if not isinstance(array, exp.Literal) or not array.is_string:
        return []
    try:
        texts = read_array(array.this)
    except BadText:
        return []
    found = []
    for each in texts if len(texts) <= FEW else ():
        value = array.copy()
        value.set("this", each)
        found.append(exp.null() if each is None else value)
    return found


def listed(array: exp.Expression) -> list[exp.Expression]:
    """What ``ARRAY[…]`` lists, each with the cast that the array has; nothing of what is none."""
    if (element := _cast_to(array)) is not None:
        values = listed(unnest(array.this))
        nested = any(isinstance(unnest(each), exp.Array) or _cast_to(unnest(each)) is not None for each in values)
        return [] if nested else _each_cast(values, element)
    return list(array.expressions) if isinstance(array, exp.Array) and rows_of_array(array) is None else []


def rows_of_array(array: exp.Expression) -> exp.Expression | None:
    """The query of ``ARRAY(SELECT …)``; what stands in ``ARRAY[(SELECT …)]`` is one value."""
    if not isinstance(array, exp.Array) or array.args.get("value_constructor") is not None:  # the parser's, of brackets
        return None
    return next((each for each in map(unnest, array.expressions) if isinstance(each, exp.Query)), None)


def _cast_to(node: exp.Expression) -> exp.DataType | None:
    """What elements become where ``node`` is a cast to an array of one dimension."""
    if type(node) is not exp.Cast or node.to.this != exp.DataType.Type.ARRAY or len(node.to.expressions) != 1:
        return None
    element = node.to.expressions[0]
    return None if element.this == exp.DataType.Type.ARRAY else element


def _each_cast(values: list[exp.Expression], to: exp.DataType) -> list[exp.Expression]:
    return [exp.Cast(this=each.copy(), to=to.copy()) for each in values]
