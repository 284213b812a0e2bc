"""``jsonb_agg`` and ``jsonb_object_agg``: a list of JSON texts that is gathered as array_agg's is, and put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sql.forms.functions import display_name
from sql.trees import types as t
from sql.trees.errors import unsupported, untyped
from sql.trees.nodes import JsonbAgg, cast, position
from sql.trees.own import own
from sql.typing.check_arrays import gathered, is_ordered
from sql.typing.check_jsonb import as_json, check_key, key_text
from sql.typing.free_numerics import key_of
from sql.typing.scope import Scope
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


def _list(c: Checker, node: JsonbAgg, scope: Scope) -> SqlType:
    """``jsonb_agg(value)``; without an ORDER BY in the order of the values, so that it is definite."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        raise untyped(position(node))
    inner, order, distinct = _arranged(node.this)
    value = inner.copy()
    if not order and got.is_free:
        order = [exp.Ordered(this=key_of(value, got))]
    elif not order and not got.is_array and got not in (t.JSONB, t.INTERVAL):
        order = [exp.Ordered(this=value)]
    return _put_together(node, "tm_json_list", as_json(c, value, got), order, distinct)


def _object(c: Checker, node: exp.JSONBObjectAgg, scope: Scope) -> SqlType:
    """``jsonb_object_agg(key, value)``: of a key that comes again the last counts, by the ORDER BY or the values."""
    kinds = [c.child(node, key, scope) for key in ("this", "expression")]
    value, order, distinct = _arranged(node.expression)
    key, _, distinct_keys = _arranged(node.this)
    if distinct or distinct_keys:
        raise unsupported(f"{display_name(node)}(DISTINCT …)", position=position(node))
    check_key(kinds[0], node)
    parts = [own("tm_json_string", key_text(c, key, kinds[0])), as_json(c, value.copy(), kinds[1])]
    pair = own("tm_json_list", cast(exp.Array(expressions=parts), t.TEXT.array))
    return _put_together(node, "tm_json_of_pairs", pair, order, False)


def _arranged(argument: exp.Expression) -> tuple[exp.Expression, list[exp.Ordered], bool]:
    """What is gathered, in which order, and whether equal ones are once."""
    order: list[exp.Ordered] = []
    if isinstance(argument, exp.Order):
        argument, order = argument.this, list(argument.expressions)
    distinct = isinstance(argument, exp.Distinct)
    return argument.expressions[0] if distinct else argument, order, distinct


def _put_together(
    node: exp.Expression, by: str, item: exp.Expression, order: list[exp.Ordered], distinct: bool
) -> SqlType:
    in_order = isinstance(node.parent, exp.Window) and is_ordered(node.parent)  # rows come in the window's order
    made = cast(gathered(node, cast(item, t.TEXT), order, distinct, in_order), t.TEXT.array)
    # Of no rows it is NULL.
    some = cast(exp.Nullif(this=made, expression=cast(exp.Array(expressions=[]), t.TEXT.array)), t.TEXT.array)
    node.replace(own(by, some))
    return t.JSONB


JSONB_AGGREGATES = {JsonbAgg: _list, exp.JSONBObjectAgg: _object}
