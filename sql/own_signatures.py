"""Functions that the engines run in Python (:mod:`collection.functions`), as Postgres declares them.

sqlglot has nodes of its own for some: :data:`CALLS` says how they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from collection.types import SqlType
from sql import types as t
from sql.casts import micros_of, shown_text
from sql.errors import no_function
from sql.nodes import call, cast, position
from sql.own import own
from sql.scope import Scope
from sql.signatures import Build, Signature

if TYPE_CHECKING:
    from sql.check import Checker

I4, I8, F4, F8, N, T = t.INT4, t.INT8, t.FLOAT4, t.FLOAT8, t.NUMERIC, t.TEXT


def moment(micros: exp.Expression, kind: SqlType) -> exp.Expression:
    """Microseconds since 1970 as a timestamp with or without a zone."""
    return cast(call("TM_MOMENT", cast(micros.copy(), I8)), kind)


def _own(name: str) -> Build:
    return lambda *args: own(name, *args)


def _binned(kind: SqlType) -> Build:
    return lambda stride, x, origin: moment(own("tm_date_bin", stride, micros_of(x), micros_of(origin)), kind)


def _age(later: exp.Expression, earlier: exp.Expression) -> exp.Expression:
    return own("tm_age", micros_of(later), micros_of(earlier))


def _finite(x: exp.Expression) -> exp.Expression:
    """There are no infinite dates, timestamps and intervals here."""
    known = exp.Not(this=exp.Is(this=exp.Paren(this=x.copy()), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=known, true=exp.Boolean(this=True))])


def _exact_bucket(
    operand: exp.Expression, low: exp.Expression, high: exp.Expression, count: exp.Expression
) -> exp.Expression:
    return own("tm_width_bucket_exact", *(cast(each.copy(), T) for each in (operand, low, high)), count)


_MOMENTS = (t.TIMESTAMPTZ, t.TIMESTAMP)
"""Of dates and of untyped literals Postgres makes the first."""

SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "age": tuple(Signature((kind, kind), t.INTERVAL, _age) for kind in _MOMENTS),
    "date_bin": tuple(Signature((t.INTERVAL, kind, kind), kind, _binned(kind)) for kind in _MOMENTS),
    "make_timestamp": (
        Signature((I4, I4, I4, I4, I4, F8), t.TIMESTAMP, lambda *args: moment(own("tm_timestamp", *args), t.TIMESTAMP)),
    ),
    "make_time": (Signature((I4, I4, F8), t.TIME, _own("tm_made_time")),),
    "make_interval": (Signature((I4, I4, I4, I4, I4, I4, F8), t.INTERVAL, _own("tm_made_interval")),),
    "justify_hours": (Signature((t.INTERVAL,), t.INTERVAL, _own("tm_justify_hours")),),
    "justify_days": (Signature((t.INTERVAL,), t.INTERVAL, _own("tm_justify_days")),),
    "justify_interval": (Signature((t.INTERVAL,), t.INTERVAL, _own("tm_justify_interval")),),
    "isfinite": tuple(Signature((kind,), t.BOOL, _finite) for kind in (t.DATE, *_MOMENTS, t.INTERVAL)),
    "gcd": (Signature((I4, I4), I4, _own("tm_gcd4")), Signature((I8, I8), I8, _own("tm_gcd8"))),
    "lcm": (Signature((I4, I4), I4, _own("tm_lcm4")), Signature((I8, I8), I8, _own("tm_lcm8"))),
    "quote_ident": (Signature((T,), T, _own("tm_quoted_identifier")),),
    "width_bucket": (
        Signature((F8, F8, F8, I4), I4, _own("tm_width_bucket")),
        Signature((N, N, N, I4), I4, _exact_bucket),
    ),
}

SHOWN_NUMBERS = (
    Signature((I4, T), T, _own("tm_int4_shown")),
    Signature((I8, T), T, lambda x, template: own("tm_number_shown", cast(x.copy(), T), template)),
    Signature((N, T), T, lambda x, template: own("tm_number_shown", cast(x.copy(), T), template)),
    Signature((F8, T), T, _own("tm_float8_shown")),
    Signature((F4, T), T, _own("tm_float4_shown")),
)
"""``to_char`` of numbers."""

_PARTS = ("year", "month", "day", "hour", "min", "sec")
CALLS: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.DateBin: ("date_bin", ("this", "expression", "unit")),
    exp.TimestampFromParts: ("make_timestamp", _PARTS),
    exp.TimeFromParts: ("make_time", _PARTS[3:]),
    exp.MakeInterval: ("make_interval", ("year", "month", "week", "day", "hour", "minute", "second")),
    exp.JustifyHours: ("justify_hours", ("this",)),
    exp.JustifyDays: ("justify_days", ("this",)),
    exp.JustifyInterval: ("justify_interval", ("this",)),
}
"""sqlglot's node, its name in Postgres and the keys of its arguments in order."""

_INTERVAL_NAMES = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def as_call(node: exp.Expression) -> exp.Anonymous:
    """``node`` as it was written, in its place in the tree."""
    name, keys = CALLS[type(node)]
    given = [node.args[key] for key in keys if node.args.get(key) is not None]
    made = exp.Anonymous(this=name, expressions=_of_interval(given, node) if name == "make_interval" else given)
    made.meta.update(node.meta)
    node.replace(made)
    return made


def _of_interval(given: list[exp.Expression], node: exp.Expression) -> list[exp.Expression]:
    """All seven parts; what is not given, by its place or by its name, is 0."""
    parts: dict[str, exp.Expression] = {}
    for name, each in zip(_INTERVAL_NAMES, given, strict=False):
        if isinstance(each, exp.Kwarg):
            name, each = each.this.name.lower(), each.expression
        if name not in _INTERVAL_NAMES or name in parts:
            raise no_function(f"make_interval({name})", position=position(node))
        parts[name] = each
    return [parts.get(name, exp.Literal.number(0)) for name in _INTERVAL_NAMES]


def _formatted(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``format(template, anything…)``."""
    got = [c.visit(each, scope) for each in list(node.expressions)]
    if not got or not c.coerce(node.expressions[0], got[0], T):
        raise no_function(f"format({', '.join(map(t.shown, got))})", position=position(node))
    texts = []
    for each, kind in list(zip(node.expressions, got, strict=True))[1:]:
        if kind == t.UNKNOWN:
            c.settle(each, T)
    for each, kind in list(zip(node.expressions, got, strict=True))[1:]:
        texts.append(cast(each.copy(), T) if kind == t.UNKNOWN else shown_text(each, kind, c.zone))
    listed = cast(exp.Array(expressions=texts), T.array)
    node.replace(own("tm_format", node.expressions[0], listed))
    return T


def _counted(nulls: bool):
    def check(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
        """``num_nulls(anything…)`` and ``num_nonnulls``."""
        got = [c.visit(each, scope) for each in list(node.expressions)]
        if not got:
            raise no_function(f"{node.this}()", position=position(node))
        for each, kind in zip(list(node.expressions), got, strict=True):
            if kind == t.UNKNOWN:
                c.settle(each, T)
        total: exp.Expression = exp.Literal.number(0)
        for each in node.expressions:
            is_null = exp.Is(this=exp.Paren(this=each.copy()), expression=exp.null())
            one = exp.If(this=is_null, true=exp.Literal.number(int(nulls)))
            total = exp.Add(this=total, expression=exp.Case(ifs=[one], default=exp.Literal.number(int(not nulls))))
        node.replace(cast(exp.Paren(this=total), I4))
        return I4

    return check


NAMED = {"format": _formatted, "num_nulls": _counted(True), "num_nonnulls": _counted(False)}
"""Functions of any number of arguments."""
