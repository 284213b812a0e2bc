"""``VARIADIC array`` as the last argument of a function of any number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sql.typing.casts import texts_of
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import mismatch, no_function
from trees.functions import display_name
from trees.nodes import cast, position
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


def listed(c: Checker, node: exp.Func, before: int, scope: Scope) -> tuple[exp.Expression, SqlType] | None:
    """The items of the array behind ``before`` other arguments of ``node`` as texts, and its type; ``None`` where there
    is no VARIADIC.  42804 for what is no array."""
    given = node.expressions
    if not any(isinstance(each, exp.Variadic) for each in given):
        return None
    if len(given) != before + 1 or not isinstance(given[-1], exp.Variadic):
        raise no_function(f"{display_name(node)}(…, VARIADIC …)", position=position(node))
    holder = given[-1]
    got = c.child(holder, "this", scope)
    if got == t.UNKNOWN and isinstance(holder.this, exp.Null):
        c.give(holder.this, t.TEXT.array)
        got = t.TEXT.array
    if not got.is_array:
        raise mismatch("VARIADIC argument must be an array", position(node))
    return cast(texts_of(holder.this, got, c.zone), t.TEXT.array), got
