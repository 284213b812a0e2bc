"""Types of dates, timestamps and intervals, and how their arithmetic is said in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from collection.types import SqlType
from sql import types as t
from sql.errors import no_function, no_operator, unsupported
from sql.nodes import cast, position
from sql.scope import Scope

if TYPE_CHECKING:
    from sql.check import Checker

MICROS = 1_000_000


def _call(name: str, *args: exp.Expression) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[a.copy() for a in args])


def time_arithmetic(c: Checker, node: exp.Binary, op: str, left: SqlType, right: SqlType) -> SqlType | None:
    """The type of ``node`` if dates, timestamps or intervals are involved (rewriting it), otherwise ``None``."""
    if t.is_time(left) and right == t.UNKNOWN and op in "+-":
        right = left if op == "-" else t.INTERVAL
        c.coerce(node.expression, t.UNKNOWN, right)
    elif left == t.UNKNOWN and t.is_time(right) and op in "+-":
        left = right if op == "-" else t.INTERVAL
        c.coerce(node.this, t.UNKNOWN, left)
    if not any(t.is_time(x) or x == t.INTERVAL for x in (left, right)):
        return None
    wrong = no_operator(t.shown(left), op, t.shown(right), position(node))
    if op == "+" and not t.is_time(left) and t.is_time(right):
        a, b = node.this.copy(), node.expression.copy()
        node.set("this", b)
        node.set("expression", a)
        left, right = right, left
    if t.is_time(left) and right == t.INTERVAL and op in "+-":
        if left == t.DATE:
            node.this.replace(cast(node.this.copy(), t.TIMESTAMP))
            return t.TIMESTAMP
        return left
    if left == t.DATE and t.is_int(right) and op in "+-":
        node.replace(_call("DATE_ADD" if op == "+" else "DATE_SUB", node.this, cast(node.expression.copy(), t.INT4)))
        return t.DATE
    if op == "-" and left == right == t.DATE:
        node.replace(_call("DATEDIFF", node.this, node.expression))
        return t.INT4
    if op == "-" and t.is_time(left) and t.is_time(right):
        both = t.common(left, right)
        for key, got in (("this", left), ("expression", right)):
            if got != both:
                node.args[key].replace(cast(node.args[key].copy(), both))
        node.meta["time_difference"] = True
        return t.INTERVAL
    if left == right == t.INTERVAL and op in "+-":
        return t.INTERVAL
    if (left == t.INTERVAL and t.is_number(right) and op in "*/") or (
        t.is_number(left) and right == t.INTERVAL and op == "*"
    ):
        return t.INTERVAL
    raise wrong


_WHOLE = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "QUARTER", "WEEK", "DOY", "DECADE", "CENTURY"}


def _extract(c: Checker, node: exp.Extract, scope: Scope) -> SqlType:
    """``extract(field from x)``: numeric, as in Postgres 14 and later."""
    got = c.child(node, "expression", scope)
    if got == t.UNKNOWN or not (t.is_time(got) or got == t.INTERVAL):
        raise no_function(f"extract(unknown, {t.shown(got)})", position=position(node))
    field, value = node.name.upper(), node.expression
    if field == "EPOCH":
        return _epoch(node, value, got)
    if field in ("DOW", "DAYOFWEEK"):
        made, scale = exp.Sub(this=_call("DAYOFWEEK", value), expression=exp.Literal.number(1)), 0
    elif field == "ISODOW":
        made, scale = exp.Add(this=_call("WEEKDAY", value), expression=exp.Literal.number(1)), 0
    elif field == "SECOND":
        made, scale = node.copy(), 6
    elif field in ("MICROSECOND", "MICROSECONDS", "MILLISECOND", "MILLISECONDS"):
        factor = MICROS if field.startswith("MICRO") else 1000
        second = exp.Extract(this=exp.var("SECOND"), expression=value.copy())
        made, scale = exp.Mul(this=second, expression=exp.Literal.number(factor)), 0 if factor == MICROS else 3
    elif field in _WHOLE:
        made, scale = node.copy(), 0
    else:
        raise unsupported(f"extract of {field.lower()}", position=position(node))
    result = SqlType("numeric", 38, scale)
    node.replace(cast(made, result))
    return result


def _epoch(node: exp.Expression, value: exp.Expression, got: SqlType) -> SqlType:
    result = SqlType("numeric", 26, 6)

    def micros(each: exp.Expression) -> exp.Expression:
        return cast(_call("UNIX_MICROS", cast(each.copy(), t.TIMESTAMPTZ)), SqlType("numeric", 20, 0))

    if got == t.INTERVAL:
        inner = value.this if isinstance(value, exp.Paren) else value
        if not (isinstance(inner, exp.Sub) and inner.meta.get("time_difference")):
            raise unsupported(
                "the epoch of an interval that is not a difference of timestamps", position=position(node)
            )
        counted: exp.Expression = exp.Paren(this=exp.Sub(this=micros(inner.this), expression=micros(inner.expression)))
    else:
        counted = micros(value)
    node.replace(cast(exp.Div(this=counted, expression=exp.Literal.number(MICROS), typed=False, safe=False), result))
    return result


def _truncated(c: Checker, node: exp.TimestampTrunc, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.coerce(node.this, got, t.TIMESTAMPTZ)
        got = t.TIMESTAMPTZ
    if not t.is_time(got):
        raise no_function(f"date_trunc(unknown, {t.shown(got)})", position=position(node))
    result = t.TIMESTAMPTZ if got == t.DATE else got
    unit = node.args.get("unit")
    text = unit.name if unit is not None else ""
    made = _call("DATE_TRUNC", exp.Literal.string(text.upper()), node.this)
    node.replace(cast(made, result))
    return result


def _at_zone(c: Checker, node: exp.AtTimeZone, scope: Scope) -> SqlType:
    """Sessions of Spark run in UTC, so a zone is a shift to or from UTC."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN or got == t.DATE:
        if got == t.UNKNOWN:
            c.coerce(node.this, got, t.TIMESTAMPTZ)
        else:
            node.this.replace(cast(node.this.copy(), t.TIMESTAMPTZ))
        got = t.TIMESTAMPTZ
    if not t.is_time(got):
        raise no_function(f"timezone(unknown, {t.shown(got)})", position=position(node))
    zone = node.args["zone"]
    if got == t.TIMESTAMPTZ:
        node.replace(cast(_call("FROM_UTC_TIMESTAMP", node.this, zone), t.TIMESTAMP))
        return t.TIMESTAMP
    node.replace(cast(_call("TO_UTC_TIMESTAMP", cast(node.this.copy(), t.TIMESTAMPTZ), zone), t.TIMESTAMPTZ))
    return t.TIMESTAMPTZ


def _formatted(c: Checker, node: exp.TimeToStr, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.coerce(node.this, got, t.TIMESTAMPTZ)
    elif not t.is_time(got):
        raise unsupported(f"to_char of {t.shown(got)}", hint="use a cast to text", position=position(node))
    return t.TEXT


def _read_date(result: SqlType):
    def read(c: Checker, node: exp.Expression, scope: Scope) -> SqlType:
        c.want(
            node, "this", t.TEXT, scope, lambda got: no_function(f"{node.key}({t.shown(got)})", position=position(node))
        )
        node.replace(cast(node.copy(), result))
        return result

    return read


TIME = {
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.AtTimeZone: _at_zone,
    exp.TimeToStr: _formatted,
    exp.StrToDate: _read_date(t.DATE),
    exp.StrToTime: _read_date(t.TIMESTAMPTZ),
}
