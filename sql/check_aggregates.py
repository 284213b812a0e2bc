"""Types of aggregates, and the casts that keep them exact in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from collection.types import SqlType
from sql import types as t
from sql.comparing import check_grouped, order_key
from sql.errors import no_function, unsupported
from sql.nodes import cast, position
from sql.scope import Scope

if TYPE_CHECKING:
    from sql.check import Checker


def _argument(node: exp.AggFunc) -> exp.Expression:
    """The expression that is aggregated, behind DISTINCT and ORDER BY."""
    inner = node.this
    while isinstance(inner, (exp.Distinct, exp.Order)):
        inner = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner.this
    return inner


def _count(c: Checker, node: exp.Count, scope: Scope) -> SqlType:
    if not isinstance(node.this, exp.Star) and node.this is not None:
        c.visit(node.this, scope)
    return t.INT8


def _distinct(c: Checker, node: exp.Distinct, scope: Scope) -> SqlType:
    types = [c.visit(each, scope) for each in list(node.expressions)]
    for got in types:
        check_grouped(got, "DISTINCT", position(node))
    return types[0] if types else t.UNKNOWN


def _ordered(c: Checker, node: exp.Order, scope: Scope) -> SqlType:
    for each in list(node.expressions):
        order_key(each.this, c.child(each, "this", scope))
    return c.child(node, "this", scope) if node.args.get("this") is not None else t.UNKNOWN


def _summed(c: Checker, node: exp.Sum, scope: Scope) -> SqlType:
    got = _number(c, node, scope)
    if got in (t.INT2, t.INT4):
        return t.INT8
    if got == t.INT8:
        inner = _argument(node)
        inner.replace(cast(inner.copy(), SqlType("numeric", 28, 0)))
        return SqlType("numeric", 38, 0)
    if got.name == "numeric":
        return SqlType("numeric", min(38, got.precision + 10), got.scale)
    return got


def _averaged(c: Checker, node: exp.Avg, scope: Scope) -> SqlType:
    """Integers average as numeric with 16 digits behind the point (as Postgres shows them): never as floats."""
    got = _number(c, node, scope)
    if t.is_float(got):
        return t.FLOAT8
    if t.is_int(got):
        inner = _argument(node)
        whole = 19 if got == t.INT8 else 10
        inner.replace(cast(inner.copy(), SqlType("numeric", whole + 12, 12)))
        return SqlType("numeric", 38, 16)
    return SqlType("numeric", min(38, got.precision + 4), min(38, got.scale + 4))


def _number(c: Checker, node: exp.AggFunc, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN or not t.is_number(got):
        raise no_function(f"{node.key}({t.shown(got)})", position=position(node))
    return got


def _joined(c: Checker, node: exp.GroupConcat, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    inner = _argument(node)
    if got == t.UNKNOWN:
        c.coerce(inner, got, t.TEXT)
    elif not t.is_text(got):
        raise no_function(f"string_agg({t.shown(got)}, unknown)", position=position(node))
    if node.args.get("separator") is not None:
        c.visit(node.args["separator"], scope)
    order = node.find(exp.Order)
    separator = node.args.get("separator") or exp.Literal.string("")
    value: exp.Expression = node.this.this if isinstance(node.this, exp.Order) else node.this
    listed: exp.Expression = exp.Anonymous(this="LISTAGG", expressions=[value.copy(), separator.copy()])
    if order is not None:
        listed = exp.WithinGroup(this=listed, expression=exp.Order(expressions=[e.copy() for e in order.expressions]))
    listed.meta["aggregate"] = True
    node.replace(listed)
    return t.TEXT


def _filtered(c: Checker, node: exp.Filter, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    c.boolean(node.expression, "this", scope, "FILTER")
    return got


def _within_group(c: Checker, node: exp.WithinGroup, scope: Scope) -> SqlType:
    order = node.expression
    types = [c.child(each, "this", scope) for each in list(order.expressions)]
    if isinstance(node.this, exp.PercentileCont) and len(types) == 1 and t.is_number(types[0]):
        c.child(node.this, "this", scope)
        node.replace(
            exp.Anonymous(this="PERCENTILE", expressions=[order.expressions[0].this.copy(), node.this.this.copy()])
        )
        return t.FLOAT8
    raise unsupported(f"WITHIN GROUP of {node.this.key}", position=position(node))


AGGREGATES = {
    exp.Count: _count,
    exp.Distinct: _distinct,
    exp.Order: _ordered,
    exp.Sum: _summed,
    exp.Avg: _averaged,
    exp.GroupConcat: _joined,
    exp.Filter: _filtered,
    exp.WithinGroup: _within_group,
}
