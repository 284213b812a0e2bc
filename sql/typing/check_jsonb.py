"""Types of what is done with ``jsonb``: its operators are functions of ours in every engine (:mod:`trees.own`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.typing.casts import padded, text_of
from sql.typing.check_array_functions import sides_alike
from sql.typing.scope import Scope
from sql.typing.variadic import listed
from trees import types as t
from trees.errors import mismatch, no_function, no_operator, unsupported, untyped
from trees.nodes import Put, call, cast, position
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


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
            c.give(node.expression, t.TEXT)
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
    path, _ = _path(c, node, steps, scope)
    node.replace(own("tm_jsonb_path", value, path))
    return t.JSONB


def put(
    c: Checker, node: Put, value: exp.Expression, steps: list[exp.Expression], scope: Scope
) -> SqlType:
    """``value`` with ``node.expression`` where ``steps`` lead.  Where it is NULL the first step's type says what it
    is, and an SQL NULL is JSON's."""
    path, first = _path(c, node.this, steps, scope)
    empty = exp.Literal.string("[]" if t.is_int(first) else "{}")
    there = exp.Coalesce(this=cast(value.copy(), t.TEXT), expressions=[empty])
    given = exp.Coalesce(this=cast(node.expression.copy(), t.TEXT), expressions=[exp.Literal.string("null")])
    node.replace(own("tm_jsonb_put", there, path, given))
    return t.JSONB


def _path(
    c: Checker, node: exp.Expression, steps: list[exp.Expression], scope: Scope
) -> tuple[exp.Expression, SqlType]:
    """``steps`` as texts, and the type of the first."""
    holder = exp.Array(expressions=[each.copy() for each in steps])
    for step in list(holder.expressions):
        if isinstance(step, exp.Slice):
            raise mismatch("jsonb subscript does not support slices", position(node))
    first = t.UNKNOWN
    for place, step in enumerate(list(holder.expressions)):
        got = c.visit(step, scope)
        first = got if place == 0 else first
        if got == t.UNKNOWN:
            c.give(step, t.TEXT)
        elif not (got in (t.INT2, t.INT4) or t.is_text(got)):
            raise mismatch(f"subscript type {t.shown(got)} is not supported", position(node))
        holder.expressions[place].replace(cast(holder.expressions[place].copy(), t.TEXT))
    return cast(holder, t.TEXT.array), first


_TEXTS = t.TEXT.array

JSONB = {
    exp.JSONExtract: _arrow("->", "", t.JSONB),
    exp.JSONExtractScalar: _arrow("->>", "_text", t.TEXT),
    exp.ArrayContainsAll: _contains,
    exp.ArrayContainedBy: _contains,
    exp.JSONBExtract: _operator("#>", "tm_jsonb_path", _TEXTS, t.JSONB),
    exp.JSONBExtractScalar: _operator("#>>", "tm_jsonb_path_text", _TEXTS, t.TEXT),
    exp.JSONBDeleteAtPath: _operator("#-", "tm_json_without_path", _TEXTS, t.JSONB),
    exp.JSONBContainsTopKey: _operator("?", "tm_jsonb_has_key", t.TEXT, t.BOOL),
    exp.JSONBContainsAnyTopKeys: _operator("?|", "tm_jsonb_has_any_key", _TEXTS, t.BOOL),
    exp.JSONBContainsAllTopKeys: _operator("?&", "tm_jsonb_has_all_keys", _TEXTS, t.BOOL),
}


def as_json(c: Checker, node: exp.Expression, got: SqlType) -> exp.Expression:
    """The JSON text of a value, NULL of NULL.  0A000 of types that JSON has a form of its own for."""
    if got == t.UNKNOWN:
        return own("tm_json_string", node)
    if got == t.JSONB:
        return cast(node.copy(), t.TEXT)
    if t.is_number(got):
        return own("tm_json_number", cast(text_of(node, got, c.zone), t.TEXT))
    if got == t.BOOL:
        words = [exp.If(this=node.copy(), true=exp.Literal.string("true"))]
        words.append(exp.If(this=exp.Not(this=node.copy()), true=exp.Literal.string("false")))
        return cast(exp.Case(ifs=words), t.TEXT)
    if got.is_array or got in (t.TIMESTAMP, t.TIMESTAMPTZ):
        raise unsupported(f"{t.shown(got)} as jsonb", position=position(node))
    text = padded(node, got) if got.name == "bpchar" else text_of(node, got, c.zone)
    return own("tm_json_string", cast(text, t.TEXT))


def check_key(kind: SqlType, node: exp.Expression) -> None:
    """22023 for what no object's key can be."""
    if kind.is_array or kind == t.JSONB:
        told = "key value must be scalar, not array, composite, or json"
        raise InvalidUsage(told, sqlstate="22023", position=position(node))


def key_text(c: Checker, node: exp.Expression, kind: SqlType) -> exp.Expression:
    """The text of an object's key.  0A000 of types that JSON has a form of its own for."""
    if kind == t.UNKNOWN:
        return cast(node.copy(), t.TEXT)
    if kind in (t.TIMESTAMP, t.TIMESTAMPTZ):
        raise unsupported(f"{t.shown(kind)} as jsonb", position=position(node))
    return cast(padded(node, kind) if kind.name == "bpchar" else text_of(node, kind, c.zone), t.TEXT)


def _built(name: str):
    """``jsonb_build_array`` and ``jsonb_build_object`` of anything."""

    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        if (items := listed(c, node, 0, scope)) is not None:
            kind = items[1].element
            if not (t.is_number(kind) or kind.name in ("text", "varchar")) or t.is_float(kind):
                raise unsupported(f"VARIADIC {t.shown(items[1])} as jsonb", position=position(node))
            node.replace(own(name if t.is_number(kind) else f"{name}_texts", items[0]))
            return t.JSONB
        got = [c.visit(each, scope) for each in list(node.expressions)]
        keyed = name == "tm_json_object"
        made = []
        for place, kind in enumerate(got):
            if kind == t.UNKNOWN:
                c.give(node.expressions[place], t.TEXT)
            each = node.expressions[place]
            if keyed and place % 2 == 0:
                check_key(kind, node)
                made.append(key_text(c, each, kind))
            else:
                made.append(as_json(c, each, kind))
        node.replace(own(name, cast(exp.Array(expressions=made), t.TEXT.array)))
        return t.JSONB

    return check


def _to_jsonb(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    got = [c.visit(each, scope) for each in list(node.expressions)]
    if len(got) != 1:
        raise no_function(f"to_jsonb({', '.join(map(t.shown, got))})", position=position(node))
    if got[0] == t.UNKNOWN:
        raise untyped(position(node))
    node.replace(cast(as_json(c, node.expressions[0], got[0]), t.JSONB))
    return t.JSONB


def joined_values(c: Checker, node: exp.DPipe, types: list[SqlType]) -> SqlType:
    """``jsonb || jsonb``."""
    for key, got in zip(("this", "expression"), types, strict=True):
        if not c.coerce(node.args[key], got, t.JSONB):
            raise no_operator(t.shown(types[0]), "||", t.shown(types[1]), position(node))
    node.replace(own("tm_json_joined", node.this.pop(), node.expression.pop()))
    return t.JSONB


def lessened(c: Checker, node: exp.Sub, right: SqlType) -> SqlType:
    """``jsonb - key``, ``jsonb - keys`` and ``jsonb - index``."""
    if right == t.UNKNOWN:
        c.give(node.expression, t.TEXT)
    name = "tm_json_without"
    if t.is_int(right) and right != t.INT8:
        name = "tm_json_without_item"
    elif right == t.TEXT.array:
        name = "tm_json_without_all"
    elif right != t.UNKNOWN and not t.is_text(right):
        raise no_operator("jsonb", "-", t.shown(right), position(node))
    node.replace(own(name, node.this, node.expression))
    return t.JSONB


NAMED = {
    "jsonb_build_array": _built("tm_json_list"),
    "jsonb_build_object": _built("tm_json_object"),
    "to_jsonb": _to_jsonb,
}
