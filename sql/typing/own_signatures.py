"""Functions that are rows (:mod:`functions`), and those that the engines run in Python, as Postgres declares them.

sqlglot has nodes of its own for some: :data:`CALLS` says how they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from functions.registry import FUNCTIONS, MOMENTS
from functions.row import Function
from sql.trees import types as t
from sql.trees.errors import mismatch, no_function
from sql.trees.nodes import call, cast, position
from sql.trees.own import own
from sql.typing import regexes
from sql.typing.casts import micros_of, shown_text, text_of
from sql.typing.scope import Scope
from sql.typing.signatures import Build, Signature
from sql.typing.variadic import listed
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

I4, I8, F4, F8, N, T = t.INT4, t.INT8, t.FLOAT4, t.FLOAT8, t.NUMERIC, t.TEXT


def moment(micros: exp.Expression, kind: SqlType) -> exp.Expression:
    """Microseconds since 1970 as a timestamp with or without a zone."""
    return cast(call("TM_MOMENT", cast(micros.copy(), I8)), kind)


def _own(name: str) -> Build:
    return lambda *args: own(name, *args)


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


def _signatures() -> dict[str, tuple[Signature, ...]]:
    found: dict[str, tuple[Signature, ...]] = {}
    for row in FUNCTIONS:
        made = Signature(row.arguments, row.result, _run(row), row.variadic, row.lacking, row.many)
        found[row.name] = (*found.get(row.name, ()), made)
    return found


SIGNATURES = _signatures()
"""Of the functions that are rows (:mod:`functions`), in the order of these: the first of equals is taken."""

SHOWN_NUMBERS = (
    Signature((I4, T), T, _own("tm_int4_shown")),
    Signature((I8, T), T, lambda x, template: own("tm_number_shown", cast(x.copy(), T), template)),
    Signature((N, T), T, _own("tm_number_shown")),
    Signature((F8, T), T, _own("tm_float8_shown")),
    Signature((F4, T), T, _own("tm_float4_shown")),
)
"""``to_char`` of numbers."""

_ONE, _TWO = ("this",), ("this", "expression")

CALLS: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.MakeInterval: ("make_interval", ("year", "month", "week", "day", "hour", "minute", "second")),
    exp.Upper: ("upper", _ONE), exp.Lower: ("lower", _ONE), exp.Reverse: ("reverse", _ONE),
    exp.Length: ("length", _ONE), exp.MD5: ("md5", _ONE), exp.Chr: ("chr", ("expressions",)),
    exp.Ascii: ("ascii", _ONE), exp.Unicode: ("ascii", _ONE), exp.StartsWith: ("starts_with", _TWO),
    exp.StrPosition: ("strpos", ("this", "substr")), exp.Translate: ("translate", ("this", "from_", "to")),
    exp.Replace: ("replace", ("this", "expression", "replacement")), exp.Repeat: ("repeat", ("this", "times")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.Pad: ("rpad", ("this", "expression", "fill_pattern")), exp.Trim: ("btrim", _TWO),
    exp.Sqrt: ("sqrt", _ONE), exp.Cbrt: ("cbrt", _ONE), exp.Exp: ("exp", _ONE), exp.Ln: ("ln", _ONE),
    exp.Log: ("log", _TWO), exp.Pow: ("power", _TWO), exp.Sin: ("sin", _ONE), exp.Cos: ("cos", _ONE),
    exp.Tan: ("tan", _ONE), exp.Asin: ("asin", _ONE), exp.Acos: ("acos", _ONE), exp.Atan: ("atan", _ONE),
    exp.Atan2: ("atan2", _TWO), exp.Degrees: ("degrees", _ONE), exp.Radians: ("radians", _ONE), exp.Pi: ("pi", ()),
}  # fmt: skip
"""sqlglot's node, its name in Postgres and the keys of its arguments in order."""

_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def name_of(node: exp.Expression) -> str:
    """What ``node``, of a kind of :data:`CALLS`, is called in Postgres."""
    if isinstance(node, exp.Trim):
        return _TRIMS.get(str(node.args.get("position") or "").upper(), "btrim")
    if isinstance(node, exp.Pad) and node.args.get("is_left"):
        return "lpad"
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
            c.settle(each, T)
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
                c.settle(each, T)
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
            c.settle(node.expressions[0], T)
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
