"""Types of text functions and pattern matches, where Postgres's meaning has to be said in Spark's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lower.forms.filling import is_constant
from sql.typing.casts import padded, shown_text, text_of
from sql.typing.check_arrays import joined_arrays
from sql.typing.check_functions import signed
from sql.typing.check_jsonb import joined_values
from sql.typing.regexes import regex
from sql.typing.scope import Scope
from sql.typing.variadic import listed
from trees import types as t
from trees.errors import mismatch, no_function, no_operator, unsupported
from trees.functions import display_name
from trees.nodes import call, cast, position, swap, unnest
from trees.own import own
from trees.said_once import said_once
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

_OPERATORS = {exp.Like: "~~", exp.ILike: "~~*", exp.RegexpLike: "~", exp.RegexpILike: "~*", exp.SimilarTo: "SIMILAR TO"}


def _text(c: Checker, node: exp.Func, key: str, scope: Scope) -> exp.Expression:
    c.want(
        node, key, t.TEXT, scope, lambda got: no_function(f"{display_name(node)}({t.shown(got)})", None, position(node))
    )
    return node.args[key]


def _whole(c: Checker, node: exp.Func, key: str, scope: Scope) -> exp.Expression:
    """An integer argument, as int4."""
    got = c.child(node, key, scope)
    if not c.coerce(node.args[key], got, t.INT4):
        raise no_function(f"{display_name(node)}(…, {t.shown(got)})", position=position(node))
    inner = node.args[key]
    return inner if signed(inner) is not None or got == t.INT4 else cast(inner.copy(), t.INT4)


def _substring(c: Checker, node: exp.Substring, scope: Scope) -> SqlType:
    """Characters before the first count: ``substring(x from 0 for 3)`` has two.  A text in place of a number is a
    regular expression."""
    got = c.child(node, "this", scope)
    if got == t.BYTEA:
        return _part_of_bytes(c, node, scope)
    if not c.coerce(node.this, got, t.TEXT):
        raise no_function(f"substring({t.shown(got)}, …)", position=position(node))
    start, length = node.args.get("start"), node.args.get("length")
    if start is not None and length is None and _is_pattern(c, node, scope):
        pattern = node.args["start"]
        c.coerce(pattern, t.UNKNOWN, t.TEXT)
        node.replace(regex("TM_REGEX_TAKE", [node.this, node.args["start"], exp.Literal.string("")]))
        return t.TEXT
    first = _whole(c, node, "start", scope) if start is not None else exp.Literal.number(1)
    if length is None:
        known = signed(first)
        made = (
            exp.Anonymous(this="SUBSTRING", expressions=[node.this.copy(), exp.Literal.number(max(known, 1))])
            if known is not None
            else call("TM_SUBSTR_FROM", node.this, first)
        )
    else:
        count = _whole(c, node, "length", scope)
        known, width = signed(first), signed(count)
        if known is not None and width is not None and width >= 0:
            numbers = [max(known, 1), max(known + width - max(known, 1), 0)]
            made = exp.Anonymous(
                this="SUBSTRING", expressions=[node.this.copy(), *(exp.Literal.number(n) for n in numbers)]
            )
        else:
            made = call("TM_SUBSTR", node.this, first, count)
    node.replace(made)
    return t.TEXT


def _part_of_bytes(c: Checker, node: exp.Substring, scope: Scope) -> SqlType:
    parts = [_whole(c, node, key, scope) for key in ("start", "length") if node.args.get(key) is not None]
    if node.args.get("start") is None:
        parts.insert(0, exp.Literal.number(1))
    node.replace(own("tm_bytes_from" if len(parts) == 1 else "tm_bytes_part", node.this, *parts))
    return t.BYTEA


def _of_bytes(c: Checker, node: exp.Func, keys: tuple[str, str], scope: Scope) -> bool:
    """Whether the first argument is of bytes, as the other one has to be then."""
    if c.child(node, keys[0], scope) != t.BYTEA:
        return False
    if node.args.get(keys[1]) is not None:
        c.want(node, keys[1], t.BYTEA, scope, lambda got: _no_bytes(node, got))
    return True


def _no_bytes(node: exp.Func, got: SqlType) -> Exception:
    return no_function(f"{display_name(node)}(bytea, {t.shown(got)})", position=position(node))


def _normalized(c: Checker, node: exp.Normalize, scope: Scope) -> SqlType:
    form = node.args.get("form")
    x = _text(c, node, "this", scope)
    node.replace(own("tm_normalize", x, exp.Literal.string(form.name if isinstance(form, exp.Var) else "NFC")))
    return t.TEXT


def _is_pattern(c: Checker, node: exp.Substring, scope: Scope) -> bool:
    start = unnest(node.args["start"])
    if isinstance(start, exp.Literal) and start.is_string:
        return True
    if isinstance(start, (exp.Literal, exp.Neg, exp.Parameter)):
        return False
    return c.child(node, "start", scope) == t.TEXT


def _overlay(c: Checker, node: exp.Overlay, scope: Scope) -> SqlType:
    if _of_bytes(c, node, ("this", "expression"), scope):
        new, start = node.expression, _whole(c, node, "from_", scope)
        count = call("TM_LENGTH_BYTEA", new)
        if node.args.get("for_") is not None:
            count = _whole(c, node, "for_", scope)
        node.replace(own("tm_bytes_overlay", node.this, new, start, count))
        return t.BYTEA
    x, new = _text(c, node, "this", scope), _text(c, node, "expression", scope)
    start = _whole(c, node, "from_", scope)
    counted = [_whole(c, node, "for_", scope)] if node.args.get("for_") is not None else []

    def laid_over(
        x: exp.Expression, new: exp.Expression, start: exp.Expression, count: exp.Expression | None = None
    ) -> exp.Expression:
        count = count if count is not None else call("TM_LENGTH_TEXT", new)
        end = exp.Paren(this=exp.Add(this=start.copy(), expression=exp.Paren(this=count.copy())))
        length = exp.Paren(this=exp.Sub(this=start.copy(), expression=exp.Literal.number(1)))
        before = call("TM_SUBSTR", _unless_null(x, new, count), exp.Literal.number(1), length)
        after = call("TM_SUBSTR_FROM", x, end)
        return exp.Paren(this=exp.DPipe(this=exp.DPipe(this=before, expression=new.copy()), expression=after))

    node.replace(said_once([x, new, start, *counted], laid_over))
    return t.TEXT


def _unless_null(x: exp.Expression, *others: exp.Expression) -> exp.Expression:
    """``x``, NULL where one of the others is: nothing of it is refused then."""
    for other in others:
        if not isinstance(other, exp.Literal):
            absent = exp.Is(this=exp.Paren(this=other.copy()), expression=exp.null())
            x = exp.Case(ifs=[exp.If(this=exp.Not(this=absent), true=x.copy())])
    return x


def _joined(c: Checker, node: exp.DPipe, scope: Scope) -> SqlType:
    """``||`` of texts, of a text and anything, or of bytes."""
    types = [c.child(node, "this", scope), c.child(node, "expression", scope)]
    if any(got.is_array for got in types):
        return joined_arrays(c, node, types)
    if t.BYTEA in types and set(types) <= {t.BYTEA, t.UNKNOWN}:
        for key, got in zip(("this", "expression"), types, strict=True):
            if got == t.UNKNOWN:
                c.give(node.args[key], t.BYTEA)
        node.replace(exp.Anonymous(this="TM_BYTES_JOIN", expressions=[node.this.pop(), node.expression.pop()]))
        return t.BYTEA
    if t.JSONB in types and not any(t.is_text(got) for got in types):
        return joined_values(c, node, types)
    if not any(t.is_text(got) or got == t.UNKNOWN for got in types) or t.JSONB in types:
        raise no_operator(t.shown(types[0]), "||", t.shown(types[1]), position(node))
    for key, got in zip(("this", "expression"), types, strict=True):
        if got == t.UNKNOWN:
            c.give(node.args[key], t.TEXT)
        elif not t.is_text(got):
            node.args[key].replace(text_of(node.args[key], got, c.zone))
    return t.TEXT


def _concat(c: Checker, node: exp.Concat, scope: Scope) -> SqlType:
    if (items := listed(c, node, 0, scope)) is not None:
        node.replace(own("tm_join", items[0], exp.Literal.string("")))
        return t.TEXT
    texts = [exp.Coalesce(this=each, expressions=[exp.Literal.string("")]) for each in _outputs(c, node, scope)]
    node.replace(exp.Anonymous(this="CONCAT", expressions=texts))
    return t.TEXT


def _concat_ws(c: Checker, node: exp.ConcatWs, scope: Scope) -> SqlType:
    if (items := listed(c, node, 1, scope)) is not None:
        got = c.visit(node.expressions[0], scope)
        if not c.coerce(node.expressions[0], got, t.TEXT):
            raise no_function(f"concat_ws({t.shown(got)}, …)", position=position(node))
        node.replace(own("tm_join", items[0], node.expressions[0]))
        return t.TEXT
    node.replace(exp.Anonymous(this="CONCAT_WS", expressions=_outputs(c, node, scope)))
    return t.TEXT


def _outputs(c: Checker, node: exp.Func, scope: Scope) -> list[exp.Expression]:
    """The arguments as a client is shown values."""
    types = [c.visit(each, scope) for each in list(node.expressions)]
    return [shown_text(each, got, c.zone) for each, got in zip(node.expressions, types, strict=True)]


def _collated(c: Checker, node: exp.Collate, scope: Scope) -> SqlType:
    """Text is compared by its bytes: that is the collation C, and no other is known."""
    named = node.expression
    name = named.name if isinstance(named, (exp.Identifier, exp.Column, exp.Var)) else str(named.this)
    if name not in ("C", "POSIX", "ucs_basic", "default"):
        raise unsupported(f'collation "{name}"', hint='text is compared by its bytes, as COLLATE "C" does')
    got = c.child(node, "this", scope)
    if not c.coerce(node.this, got, t.TEXT):
        raise mismatch(f"collations are not supported by type {t.shown(got)}", position(node))
    node.replace(node.this.copy())
    return t.TEXT


def _matched(c: Checker, node: exp.Binary, scope: Scope) -> SqlType:
    """LIKE and its kin.  A regular expression is read here, and must therefore be a constant."""
    op = _OPERATORS[type(node)]
    right = node.expression
    if isinstance(right, (exp.Any, exp.All)):
        return c.each_of(node, right, scope)
    for key in ("this", "expression"):
        c.want(node, key, t.TEXT, scope, lambda got: no_operator(t.shown(got), op, "text", position(node)))
    if (got := c.visit(node.this, scope)).name == "bpchar":  # the blanks at its end count here
        swap(node.this, padded(node.this, got))
    if isinstance(node, (exp.Like, exp.ILike)):
        return t.BOOL
    escape = node.parent.expression if isinstance(node.parent, exp.Escape) and node.parent.this is node else None
    if escape is not None and not (isinstance(escape, exp.Literal) and escape.this == "\\"):
        raise unsupported("SIMILAR TO with another escape character", position=position(node))
    flags = {exp.RegexpILike: "i", exp.SimilarTo: " similar"}.get(type(node), "")
    if not is_constant(node.expression):
        raise unsupported("a regular expression that is not a constant", hint="use LIKE", position=position(node))
    made = regex("TM_MATCHES", [node.this, node.expression, exp.Literal.string(flags)])
    outer = node.parent if escape is not None else node
    outer.replace(exp.Not(this=made) if node.args.get("negate") or outer.args.get("negate") else made)
    return t.BOOL


TEXT = {
    exp.Substring: _substring,
    exp.Normalize: _normalized,
    exp.Overlay: _overlay,
    exp.DPipe: _joined,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Collate: _collated,
    exp.Like: _matched,
    exp.ILike: _matched,
    exp.RegexpLike: _matched,
    exp.RegexpILike: _matched,
    exp.SimilarTo: _matched,
}
