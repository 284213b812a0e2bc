"""Functions that are rows (:mod:`functions`), and those that the engines run in Python, as Postgres declares them.

sqlglot has nodes of its own for some: :data:`CALLS` says how they were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from functions.registry import MOMENTS, OF_TYPES
from functions.row import Function
from sql.typing import regexes
from sql.typing.casts import micros_of, shown_text, text_of
from sql.typing.scope import Scope
from sql.typing.signatures import Build, Signature
from sql.typing.variadic import listed
from trees import types as t
from trees.errors import mismatch, no_function
from trees.nodes import call, cast, position
from trees.own import own
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

I4, I8, T = t.INT4, t.INT8, t.TEXT


def moment(micros: exp.Expression, kind: SqlType) -> exp.Expression:
    """Microseconds since 1970 as a timestamp with or without a zone."""
    return cast(call("TM_MOMENT", cast(micros.copy(), I8)), kind)


def _handed(node: exp.Expression, kind: SqlType) -> exp.Expression:
    """An argument as Python is given it."""
    return micros_of(node) if kind.name in MOMENTS else node


def _run(row: Function) -> Build:
    if row.pattern is not None:
        return regexes.of_row(row)
    if row.python is None:
        return lambda *args: call(row.form, *args)

    def build(*args: exp.Expression) -> exp.Expression:
        made = own(row.called, *map(_handed, args, row.arguments))
        return moment(made, row.result) if row.result.name in MOMENTS else made

    return build


def signatures(builds: Mapping[tuple[str, ...], Build]) -> dict[str, tuple[Signature, ...]]:
    """Of the functions that are rows, in the order of these: the first of equals is taken.

    ``builds``: what is made of calls of those of which a row does not say it, by its name and its arguments' types.
    """
    found: dict[str, tuple[Signature, ...]] = {}
    for row in OF_TYPES:
        build = builds.get((row.name, *(each.name for each in row.arguments))) if row.ruled else _run(row)
        if build is not None:
            made = Signature(row.arguments, row.result, build, row.variadic, row.lacking, row.many)
            found[row.name] = (*found.get(row.name, ()), made)
    return found


_ONE, _TWO = ("this",), ("this", "expression")

CALLS: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.MakeInterval: ("make_interval", ("year", "month", "week", "day", "hour", "minute", "second")),
    exp.StrPosition: ("strpos", ("this", "substr")), exp.Trim: ("btrim", _TWO),
    exp.Pow: ("power", _TWO), exp.StartsWith: ("starts_with", _TWO),
}  # fmt: skip
"""sqlglot's node of ``make_interval(years => 1)``, ``position(a in b)``, ``trim(both a from b)``, ``a ^ b`` and
``a ^@ b``, the name of what is called and the keys of its arguments in order."""

_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def name_of(node: exp.Expression) -> str:
    """What ``node``, of a kind of :data:`CALLS`, is called in Postgres."""
    if isinstance(node, exp.Trim):
        return _TRIMS.get(str(node.args.get("position") or "").upper(), "btrim")
    return CALLS[type(node)][0]


_INTERVAL_NAMES = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def as_call(node: exp.Expression) -> exp.Anonymous:
    """``node`` as it was written, in its place in the tree."""
    name, keys = name_of(node), CALLS[type(node)][1]
    given = [each for key in keys for each in _listed(node.args.get(key))]
    made = exp.Anonymous(this=name, expressions=_of_interval(given, node) if name == "make_interval" else given)
    made.meta.update(node.meta)
    node.replace(made)
    return made


def _listed(given: object) -> list[exp.Expression]:
    return given if isinstance(given, list) else [given] if isinstance(given, exp.Expression) else []


def _of_interval(given: list[exp.Expression], node: exp.Expression) -> list[exp.Expression]:
    """All seven parts; what is not given, by its place or by its name, is 0."""
    parts: dict[str, exp.Expression] = {}
    for name, each in zip(_INTERVAL_NAMES, given, strict=False):
        if isinstance(each, (exp.Kwarg, exp.PropertyEQ)):  # both `=>` and `:=`
            name, each = each.this.name.lower(), each.expression
        if name not in _INTERVAL_NAMES or name in parts:
            raise no_function(f"make_interval({name})", position=position(node))
        parts[name] = each
    return [parts.get(name, exp.Literal.number(0)) for name in _INTERVAL_NAMES]


def _formatted(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``format(template, anything…)``."""
    if (items := listed(c, node, 1, scope)) is not None:
        kind = c.visit(node.expressions[0], scope)
        if not c.coerce(node.expressions[0], kind, T):
            raise no_function(f"format({t.shown(kind)}, …)", position=position(node))
        given = call("COALESCE", items[0], cast(exp.Array(expressions=[]), T.array))
        node.replace(own("tm_format", node.expressions[0], given))
        return T
    got = [c.visit(each, scope) for each in list(node.expressions)]
    if not got or not c.coerce(node.expressions[0], got[0], T):
        raise no_function(f"format({', '.join(map(t.shown, got))})", position=position(node))
    texts = []
    for each, kind in list(zip(node.expressions, got, strict=True))[1:]:
        if kind == t.UNKNOWN:
            c.give(each, T)
    for each, kind in list(zip(node.expressions, got, strict=True))[1:]:
        texts.append(cast(each.copy(), T) if kind == t.UNKNOWN else shown_text(each, kind, c.zone))
    made = cast(exp.Array(expressions=texts), T.array)
    node.replace(own("tm_format", node.expressions[0], made))
    return T


def _counted(nulls: bool):
    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        """``num_nulls(anything…)`` and ``num_nonnulls``."""
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Variadic):
            return _counted_items(c, node, nulls, scope)
        got = [c.visit(each, scope) for each in list(node.expressions)]
        if not got:
            raise no_function(f"{node.this}()", position=position(node))
        for each, kind in zip(list(node.expressions), got, strict=True):
            if kind == t.UNKNOWN:
                c.give(each, T)
        total: exp.Expression = exp.Literal.number(0)
        for each in node.expressions:
            is_null = exp.Is(this=exp.Paren(this=each.copy()), expression=exp.null())
            one = exp.If(this=is_null, true=exp.Literal.number(int(nulls)))
            total = exp.Add(this=total, expression=exp.Case(ifs=[one], default=exp.Literal.number(int(not nulls))))
        node.replace(cast(exp.Paren(this=total), I4))
        return I4

    return check


def _counted_items(c: Checker, node: exp.Anonymous, nulls: bool, scope: Scope) -> SqlType:
    """The same of ``VARIADIC array``, NULL of no array."""
    got = c.child(node.expressions[0], "this", scope)
    if not got.is_array:
        raise mismatch("VARIADIC argument must be an array", position(node))
    array = node.expressions[0].this
    some = call("SIZE", call("ARRAY_COMPACT", array))
    made = exp.Sub(this=call("SIZE", array), expression=some) if nulls else some
    absent = exp.If(this=exp.Is(this=array.copy(), expression=exp.null()), true=cast(exp.null(), I4))
    node.replace(cast(exp.Case(ifs=[absent], default=made), I4))
    return I4


def _quoted(nullable: bool):
    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        """``quote_literal(anything)`` and ``quote_nullable``."""
        got = [c.visit(each, scope) for each in list(node.expressions)]
        if len(got) != 1:
            raise no_function(f"{node.this.lower()}({', '.join(map(t.shown, got))})", position=position(node))
        if got[0] == t.UNKNOWN:
            c.give(node.expressions[0], T)
        each = node.expressions[0]
        text = cast(each.copy() if got[0] == t.UNKNOWN else text_of(each, got[0], c.zone), T)
        made: exp.Expression = call("TM_QUOTE_LITERAL_TEXT", text)
        if nullable:
            made = call("COALESCE", made, exp.Literal.string("NULL"))
        node.replace(cast(made, T))
        return T

    return check


NAMED = {
    "format": _formatted,
    "quote_literal": _quoted(False),
    "quote_nullable": _quoted(True),
    "num_nulls": _counted(True),
    "num_nonnulls": _counted(False),
}
"""Functions of any number of arguments."""
