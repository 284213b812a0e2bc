"""Types of what is done with ``jsonb``: its operators are functions of ours in every engine (:mod:`sql.own`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from collection.types import SqlType
from sql import types as t
from sql.check_array_functions import sides_alike
from sql.errors import mismatch, no_function, no_operator, unsupported
from sql.nodes import call, cast, position
from sql.own import own
from sql.scope import Scope

if TYPE_CHECKING:
    from sql.check import Checker


def _arrow(op: str, name: str, result: SqlType):
    """``->`` and ``->>``: by key or by index."""

    def check(c: Checker, node: exp.Expression, scope: Scope) -> SqlType:
        left = c.child(node, "this", scope)
        _only_jsonb(left, op, node)
        path = node.expression
        if isinstance(path, exp.JSONPath):  # a literal, which the parser has read as a path
            node.set("expression", _step(path, node))
        right = c.child(node, "expression", scope)
        if right == t.UNKNOWN:
            c.settle(node.expression, t.TEXT)
            right = t.TEXT
        if t.is_int(right):
            node.replace(own(f"tm_jsonb_item{name}", node.this, node.expression))
        elif t.is_text(right):
            node.replace(own(f"tm_jsonb_field{name}", node.this, node.expression))
        else:
            raise no_operator("jsonb", op, t.shown(right), position(node))
        return result

    return check


def _step(path: exp.JSONPath, node: exp.Expression) -> exp.Expression:
    steps = [each for each in path.expressions if not isinstance(each, exp.JSONPathRoot)]
    if len(steps) == 1 and isinstance(steps[0], exp.JSONPathKey) and isinstance(steps[0].this, str):
        return exp.Literal.string(steps[0].this)
    if len(steps) == 1 and isinstance(steps[0], exp.JSONPathSubscript) and isinstance(steps[0].this, int):
        index = steps[0].this
        made = exp.Literal.number(abs(index))
        return exp.Neg(this=made) if index < 0 else made
    raise unsupported("this key", hint="use #> with an array of keys", position=position(node))


def _only_jsonb(got: SqlType, op: str, node: exp.Expression) -> None:
    if got != t.JSONB:
        raise no_operator(t.shown(got), op, "unknown", position(node))


def _operator(op: str, name: str, wanted: SqlType, result: SqlType):
    """``jsonb op wanted``."""

    def check(c: Checker, node: exp.Expression, scope: Scope) -> SqlType:
        left = c.child(node, "this", scope)
        _only_jsonb(left, op, node)
        c.want(node, "expression", wanted, scope, lambda got: no_operator("jsonb", op, t.shown(got), position(node)))
        node.replace(own(name, node.this, node.expression))
        return result

    return check


def _contains(c: Checker, node: exp.Binary, scope: Scope) -> SqlType:
    """``@>``, and ``<@`` the other way round."""
    left, right = c.child(node, "this", scope), c.child(node, "expression", scope)
    inward = isinstance(node, exp.ArrayContainedBy)
    if t.JSONB not in (left, right):
        if left.is_array or right.is_array:
            sides_alike(c, node, [left, right], "<@" if inward else "@>")
            sides = (node.expression, node.this) if inward else (node.this, node.expression)
            node.replace(cast(call("TM_ARRAY_HAS_ALL", *sides), t.BOOL))
            return t.BOOL
        raise no_operator(t.shown(left), "<@" if inward else "@>", t.shown(right), position(node))
    for key, got in (("this", left), ("expression", right)):
        if not c.coerce(node.args[key], got, t.JSONB):
            raise no_operator(t.shown(left), "<@" if inward else "@>", t.shown(right), position(node))
    sides = (node.expression, node.this) if inward else (node.this, node.expression)
    node.replace(own("tm_jsonb_contains", *sides))
    return t.BOOL


def subscripted(
    c: Checker, node: exp.Bracket, value: exp.Expression, steps: list[exp.Expression], scope: Scope
) -> SqlType:
    """``value['key'][0]``: as ``#>``."""
    holder = exp.Array(expressions=[each.copy() for each in steps])
    for step in list(holder.expressions):
        if isinstance(step, exp.Slice):
            raise mismatch("jsonb subscript does not support slices", position(node))
    for place, step in enumerate(list(holder.expressions)):
        got = c.visit(step, scope)
        if got == t.UNKNOWN:
            c.settle(step, t.TEXT)
        elif not (t.is_int(got) or t.is_text(got)):
            raise mismatch(f"subscript type {t.shown(got)} is not supported", position(node))
        holder.expressions[place].replace(cast(holder.expressions[place].copy(), t.TEXT))
    node.replace(own("tm_jsonb_path", value, cast(holder, t.TEXT.array)))
    return t.JSONB


def _named(name: str, result: SqlType):
    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        types = [c.visit(each, scope) for each in list(node.expressions)]
        if len(types) == 1 and types[0] == t.UNKNOWN:
            c.settle(node.expressions[0], t.JSONB)
            types = [t.JSONB]
        if types != [t.JSONB]:
            raise no_function(f"{str(node.this).lower()}({', '.join(map(t.shown, types))})", position=position(node))
        node.replace(own(name, *node.expressions))
        return result

    return check


_TEXTS = t.TEXT.array

JSONB = {
    exp.JSONExtract: _arrow("->", "", t.JSONB),
    exp.JSONExtractScalar: _arrow("->>", "_text", t.TEXT),
    exp.ArrayContainsAll: _contains,
    exp.ArrayContainedBy: _contains,
    exp.JSONBExtract: _operator("#>", "tm_jsonb_path", _TEXTS, t.JSONB),
    exp.JSONBExtractScalar: _operator("#>>", "tm_jsonb_path_text", _TEXTS, t.TEXT),
    exp.JSONBContainsTopKey: _operator("?", "tm_jsonb_has_key", t.TEXT, t.BOOL),
    exp.JSONBContainsAnyTopKeys: _operator("?|", "tm_jsonb_has_any_key", _TEXTS, t.BOOL),
    exp.JSONBContainsAllTopKeys: _operator("?&", "tm_jsonb_has_all_keys", _TEXTS, t.BOOL),
}

NAMED = {
    "jsonb_typeof": _named("tm_jsonb_typeof", t.TEXT),
    "jsonb_array_length": _named("tm_jsonb_length", t.INT4),
}
