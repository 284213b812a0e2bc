"""``jsonb_agg`` and ``jsonb_object_agg``: a list of JSON texts that is gathered as array_agg's is, and put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sql.typing.check_jsonb import as_json, check_key, key_text
from sql.typing.gathered import Arranged, arranged, distinct_jsonb, gathered
from sql.typing.keys import by_key, key_of
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import not_listed, unsupported, untyped
from trees.functions import display_name
from trees.nodes import JsonbAgg, cast, position, unnest
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


def _list(c: Checker, node: JsonbAgg, scope: Scope) -> SqlType:
    """``jsonb_agg(value)``; without an ORDER BY in the order of the values, so that it is definite."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        raise untyped(position(node))
    of = arranged(node.this)
    if got == t.JSONB and of.distinct:
        node.replace(own("tm_json_list", cast(distinct_jsonb(node, of), t.TEXT.array)))
        return t.JSONB
    value = of.value.copy()
    order = of.order or _by_itself(value, got)
    return _put_together(node, "tm_json_list", of._replace(value=as_json(c, value, got), order=order))


def _object(c: Checker, node: exp.JSONBObjectAgg, scope: Scope) -> SqlType:
    """``jsonb_object_agg(key, value)``: of a key that comes again the last counts, by the ORDER BY or the values."""
    kinds = [c.child(node, key, scope) for key in ("this", "expression")]
    key, of = arranged(node.this), arranged(node.expression)
    if of.distinct:
        raise unsupported(f"{display_name(node)}(…, DISTINCT …)", position=position(node))
    if key.distinct:
        of = of._replace(order=_of_pairs(key.value, of.value, kinds[1], of.order))
    check_key(kinds[0], node)
    parts = [own("tm_json_string", key_text(c, key.value, kinds[0])), as_json(c, of.value.copy(), kinds[1])]
    pair = own("tm_json_list", cast(exp.Array(expressions=parts), t.TEXT.array))
    return _put_together(node, "tm_json_of_pairs", of._replace(value=pair))


def _of_pairs(
    key: exp.Expression, value: exp.Expression, got: SqlType, order: list[exp.Ordered]
) -> list[exp.Ordered]:
    """The order of distinct pairs, which are sorted: of those of one key the last is that of the greatest value.

    Pairs that are equal say the same, so it does not matter that they are not made one."""
    if any(unnest(each.this) not in (unnest(key), unnest(value)) for each in order):
        raise not_listed(position(order[0]))
    return order or _by_itself(value, got)


def _by_itself(value: exp.Expression, got: SqlType) -> list[exp.Ordered]:
    """The order of ``value`` of type ``got``, where it has one."""
    if got.is_array or got == t.INTERVAL:
        return []
    return [exp.Ordered(this=key_of(value, got) if by_key(got) else value.copy())]


def _put_together(node: exp.Expression, by: str, of: Arranged) -> SqlType:
    node.replace(own(by, gathered(node, of._replace(value=cast(of.value, t.TEXT)), t.TEXT)))
    return t.JSONB


JSONB_AGGREGATES = {JsonbAgg: _list, exp.JSONBObjectAgg: _object}
