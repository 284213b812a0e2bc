"""Functions by name, as Postgres declares them: which arguments they take, what they give, and how Spark says it.

sqlglot leaves these calls as they were written.  A name may have several signatures; the first that the arguments fit
exactly is taken, then the first that they can become.  42883 where none fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from functions.aggregates import BY_NAME
from functions.registry import OF_ARRAYS, OF_THE_CLOCK, RULED, WORDS
from lower.forms.time_formats import is_native
from sql.typing.casts import micros_of, padded
from sql.typing.check_time import date_part, truncated
from sql.typing.free_numerics import freed
from sql.typing.own_signatures import signatures
from sql.typing.scope import Scope
from sql.typing.signatures import Build, Signature, choose, standing_for
from sql.typing.zones import instant_at, instant_by, local_at, local_by
from trees import types as t
from trees.errors import closest, no_function, unsupported
from trees.nodes import call, cast, position, swap
from trees.own import own
from trees.said_once import said_once
from values.sql_type import NUMERIC_PRECISION_MAX
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker


def _plain(name: str) -> Build:
    return lambda *args: call(name, *args)


def _encoded(value: exp.Expression, kind: exp.Expression) -> exp.Expression:
    """By the engine where the form is hexadecimal."""
    if isinstance(kind, exp.Literal) and kind.this.lower() == "hex":
        return call("TM_HEX", value)
    return own("tm_encode", value, kind)


def _shown_time(name: str, *zone: exp.Expression) -> Build:
    """``to_char`` of a timestamp, by the engine where it can."""

    def build(x: exp.Expression, template: exp.Expression) -> exp.Expression:
        return call("TM_TO_CHAR", x, template) if is_native(template) else own(name, micros_of(x), template, *zone)

    return build


_BUILDS: dict[tuple[str, ...], Build] = {
    ("encode", "bytea", "text"): _encoded,
    ("like", "text", "text"): lambda text, pattern: exp.Like(this=text.copy(), expression=pattern.copy()),
    ("timezone", "text", "timestamptz"): lambda zone, x: local_at(x, zone),
    ("timezone", "text", "timestamp"): lambda zone, x: instant_at(x, zone),
    ("timezone", "interval", "timestamptz"): lambda by, x: local_by(x, by),
    ("timezone", "interval", "timestamp"): lambda by, x: instant_by(x, by),
    ("to_char", "timestamp", "text"): _shown_time("tm_time_shown"),
    ("to_char", "timestamptz", "text"): _shown_time("tm_zone_shown", exp.Literal.string("UTC")),
}
"""Of rows of which engines are told one thing or another."""

NAMED: dict[str, tuple[Signature, ...]] = signatures(_BUILDS)

HERE = [name for name, all_ in NAMED.items() if not all(each.lacking for each in all_)]

KNOWN_ELSEWHERE = tuple(sorted({*(each.name for each in (*RULED, *OF_ARRAYS, *OF_THE_CLOCK)), *BY_NAME, *WORDS}))
"""Names of what is not chosen by signatures: what a misspelt name may have meant, too."""


def is_named(node: exp.Anonymous) -> bool:
    """Whether there is a function of that name here."""
    return (name := str(node.this).lower()) in NAMED or name in _RULES


def named_function(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """Type a call by name, and put what Spark says into its place."""
    name = str(node.this).lower()
    if (rule := _RULES.get(name)) is not None:
        return rule(c, node, scope)
    if name == "age" and len(node.expressions) == 1:
        node.set("expressions", [exp.CurrentDate(), node.expressions[0]])
    whole = bool(node.expressions) and isinstance(node.expressions[-1], exp.Variadic)
    if whole:
        swap(node.expressions[-1], node.expressions[-1].this.copy())
    got = [c.visit(each, scope) for each in list(node.expressions)]
    if name == "octet_length" and len(got) == 1 and got[0].name == "bpchar":  # the blanks at its end count here
        swap(node.expressions[0], padded(node.expressions[0], got[0]))
        got = [t.TEXT]
    args = list(node.expressions)
    if name not in NAMED:
        meant = closest(name, [*HERE, *KNOWN_ELSEWHERE])
        raise no_function(
            f"{name}({', '.join(map(t.shown, got))})",
            hint=f'did you mean "{meant}"?' if meant and name not in (*HERE, *KNOWN_ELSEWHERE) else None,
            position=position(node),
        )
    chosen = choose(NAMED[name] if c.zone is None else c.zone.preferred(NAMED[name]), got, whole)
    if chosen is None:
        raise no_function(f"{name}({', '.join(map(t.shown, got))})", position=position(node))
    if chosen.lacking:
        raise unsupported(f"this form of {name}", hint=chosen.lacking, position=position(node))
    for each, actual, wanted in zip(args, got, chosen.args, strict=True):
        if not c.coerce(each, actual, wanted):
            raise no_function(f"{name}({', '.join(map(t.shown, got))})", position=position(node))
    args = [
        each if actual in (wanted, t.UNKNOWN) or c.known(each, actual) == wanted else cast(each.copy(), wanted)
        for each, actual, wanted in zip(node.expressions, got, chosen.args, strict=True)
    ]
    build = chosen.build if c.zone is None else c.zone.build(name, chosen.args, chosen.build)
    node.replace(standing_for(build(*args), chosen.result, chosen.many))
    return chosen.result


def _trunc(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    got = [c.visit(each, scope) for each in list(node.expressions)]
    wrong = no_function(f"trunc({', '.join(map(t.shown, got))})", position=position(node))
    if len(got) == 1 and (row := next((each for each in NAMED["trunc"] if each.args == (got[0],)), None)) is not None:
        node.replace(cast(row.build(node.expressions[0]), row.result))
        return row.result
    if not 1 <= len(got) <= 2 or not (t.is_number(got[0]) or got[0] == t.UNKNOWN):
        raise wrong
    x = node.expressions[0]
    if len(got) == 1 and (t.is_float(got[0]) or t.is_int(got[0]) or got[0] == t.UNKNOWN):
        if got[0] == t.UNKNOWN:
            c.give(x, t.FLOAT8)
        node.replace(cast(call("TM_TRUNC_FLOAT", cast(node.expressions[0].copy(), t.FLOAT8)), t.FLOAT8))
        return t.FLOAT8
    if t.is_float(got[0]) or got[0] == t.UNKNOWN:
        raise wrong
    source = t.as_numeric(got[0])
    if source.is_free and len(got) == 1:
        node.replace(own("tm_numeric_trunc", x, exp.Literal.number(0)))
        return source
    if len(got) == 1:
        result = t.numeric(source.precision - source.scale + 1, 0)
        node.replace(cast(call("TM_TRUNC", x), result))
        return result
    places = signed(node.expressions[1])
    if source.is_free or places is None or not 0 <= places <= source.scale:
        if got[1] == t.UNKNOWN:
            c.give(node.expressions[1], t.INT4)
        elif not t.is_int(got[1]):
            raise wrong
        node.replace(own("tm_numeric_trunc", freed(x, got[0]), node.expressions[1]))
        return t.NUMERIC
    # Without a product, which may have more digits than Spark keeps, or a quotient, which is a double in DuckDB.
    result = t.numeric(min(source.precision - source.scale + places + 1, NUMERIC_PRECISION_MAX), places)
    if places == source.scale:
        node.replace(cast(x.copy(), result))
        return result
    unit = exp.Literal.number("0." + "0" * (places - 1) + "1" if places else "1")

    def without_rest(x: exp.Expression) -> exp.Expression:
        rest = exp.Paren(this=exp.Mod(this=x.copy(), expression=unit))
        return cast(exp.Paren(this=exp.Sub(this=x.copy(), expression=rest)), result)

    node.replace(said_once([x], without_rest))
    return result


EXACT_DIGITS = 15
"""Digits that any whole number may have which DuckDB divides to: it makes doubles of decimals for that."""


def _div(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    got = [c.visit(each, scope) for each in list(node.expressions)]
    if len(got) != 2 or any(t.is_float(g) or not (t.is_number(g) or g == t.UNKNOWN) for g in got):
        raise no_function(f"div({', '.join(map(t.shown, got))})", position=position(node))
    for each, kind in zip(list(node.expressions), got, strict=True):
        if kind == t.UNKNOWN:
            c.give(each, t.NUMERIC)
    a, b = (t.NUMERIC if g == t.UNKNOWN else t.as_numeric(g) for g in got)
    result = t.NUMERIC if a.is_free or b.is_free else t.numeric(a.precision - a.scale + b.scale, 0)
    if result.is_free or result.precision > EXACT_DIGITS:
        kinds = [t.NUMERIC if g == t.UNKNOWN else g for g in got]
        made = (freed(each, kind) for each, kind in zip(node.expressions, kinds, strict=True))
        node.replace(own("tm_numeric_int_div", *made))
        return t.NUMERIC

    def whole(left: exp.Expression, right: exp.Expression) -> exp.Expression:
        rest = exp.Paren(this=exp.Mod(this=left.copy(), expression=right.copy()))
        exact = exp.Paren(this=exp.Sub(this=left.copy(), expression=rest))
        return cast(exp.Div(this=exact, expression=right.copy(), typed=False, safe=False), result)

    node.replace(said_once(node.expressions, whole))
    return result


_RULES = {"date_part": date_part, "date_trunc": truncated, "div": _div, "trunc": _trunc}


def signed(node: exp.Expression) -> int | None:
    """The value of a whole number as it stands in a tree, ``None`` for anything else."""
    if isinstance(node, exp.Paren):
        return signed(node.this)
    if isinstance(node, exp.Neg):
        inner = signed(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and node.this.lstrip("-").isdigit():
        return int(node.this)
    return None
