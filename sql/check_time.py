"""Types of dates, timestamps and intervals, and how their arithmetic is said in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from collection.types import SqlType
from collection.zones import zone_named
from journal.errors import InvalidUsage
from sql import interval_parts as parts
from sql import types as t
from sql.casts import micros_of
from sql.errors import no_function, no_operator, unsupported
from sql.forms import is_constant
from sql.nodes import call, cast, interval_type, position, text_literal
from sql.own import own
from sql.scope import Scope
from sql.time_units import FIELDS, LONG, no_unit, truncated_to, unit_word
from sql.zones import at_zone, check_place

if TYPE_CHECKING:
    from sql.check import Checker

MICROS = 1_000_000


def interval_literal(c: Checker, node: exp.Interval, scope: Scope) -> SqlType:
    """``INTERVAL '1 day'``, which the parser may have cut into a number and a unit."""
    value = node.this
    if not (isinstance(value, exp.Literal) and value.is_string):
        raise unsupported("an interval of an expression", hint="write interval '…'", position=position(node))
    node.replace(text_literal(value.this, interval_type(node), position(node)))
    return t.INTERVAL


def time_arithmetic(c: Checker, node: exp.Binary, op: str, left: SqlType, right: SqlType) -> SqlType | None:
    """The type of ``node`` if dates, times or intervals are involved (rewriting it), otherwise ``None``."""
    if (t.is_time(left) or left == t.TIME) and right == t.UNKNOWN and op in "+-":
        right = left if op == "-" else t.INTERVAL
        c.coerce(node.expression, t.UNKNOWN, right)
    elif left == t.UNKNOWN and (t.is_time(right) or right == t.TIME) and op in "+-":
        left = right if op == "-" else t.INTERVAL
        c.coerce(node.this, t.UNKNOWN, left)
    elif t.UNKNOWN in (left, right) and t.INTERVAL in (left, right) and op in "+-":
        c.coerce(node.this if left == t.UNKNOWN else node.expression, t.UNKNOWN, t.INTERVAL)
        left = right = t.INTERVAL
    if not any(t.is_time(x) or x in (t.INTERVAL, t.TIME) for x in (left, right)):
        return None
    if op == "-" and t.is_time(left) and t.is_time(right) and t.TIMESTAMPTZ in (left, right):
        for key, got in (("this", left), ("expression", right)):
            if got != t.TIMESTAMPTZ and c.zone is not None:
                node.args[key].replace(c.recast(node.args[key], got, t.TIMESTAMPTZ))
    wrong = no_operator(t.shown(left), op, t.shown(right), position(node))
    if op == "+" and (_order(left), 0) > (_order(right), 0):
        a, b = node.this.copy(), node.expression.copy()
        node.set("this", b)
        node.set("expression", a)
        left, right = right, left
    if left == t.TIMESTAMPTZ and right == t.INTERVAL and op in "+-" and c.zone is not None:
        made = c.zone.shifted(type(node), node.this, node.expression)
        if made is not None:
            node.replace(made)
            return left
    if t.is_time(left) and right == t.INTERVAL and op in "+-":
        node.expression.replace(parts.native(node.expression))
        if left == t.DATE:
            node.this.replace(cast(node.this.copy(), t.TIMESTAMP))
            return t.TIMESTAMP
        return left
    if left == t.DATE and right == t.TIME and op == "+":
        node.this.replace(cast(node.this.copy(), t.TIMESTAMP))
        node.expression.replace(parts.native(parts.of_time(node.expression)))
        return t.TIMESTAMP
    if left == t.DATE and t.is_int(right) and op in "+-":
        node.replace(call("DATE_ADD" if op == "+" else "DATE_SUB", node.this, cast(node.expression.copy(), t.INT4)))
        return t.DATE
    if op == "-" and left == right == t.DATE:
        node.replace(call("DATEDIFF", node.this, node.expression))
        return t.INT4
    made = _of_intervals(node, op, left, right)
    if made is None:
        raise wrong
    node.replace(made[0])
    return made[1]


def _order(sql_type: SqlType) -> int:
    """What stands first in a sum: a day or a moment, then a time of day, then an interval, then a number."""
    if t.is_time(sql_type):
        return 0
    return {t.TIME: 1, t.INTERVAL: 2}.get(sql_type, 3)


def _of_intervals(node: exp.Binary, op: str, left: SqlType, right: SqlType) -> tuple[exp.Expression, SqlType] | None:
    """``(tree, type)`` of an operation whose result or whose both sides are intervals or times of day."""
    a, b = node.this, node.expression
    if op == "-" and t.is_time(left) and t.is_time(right):
        return parts.between(a, b), t.INTERVAL
    if op == "-" and left == right == t.TIME:
        return parts.between_times(a, b), t.INTERVAL
    if left == t.TIME and right == t.INTERVAL and op in "+-":
        return parts.shifted(type(node), a, b), t.TIME
    if left == right == t.INTERVAL and op in "+-":
        return parts.joined(type(node), a, b), t.INTERVAL
    if left == t.INTERVAL and t.is_number(right) and op in "*/":
        return own("tm_interval_times" if op == "*" else "tm_interval_divided", a, b), t.INTERVAL
    if t.is_number(left) and right == t.INTERVAL and op == "*":
        return own("tm_interval_times", b, a), t.INTERVAL
    return None


_WHOLE = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "QUARTER", "WEEK", "DOY"}
def date_part(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``date_part('field', x)``: what extract gives, as a float."""
    field = node.expressions[0] if len(node.expressions) == 2 else None
    if not isinstance(field, exp.Literal) or not field.is_string:
        raise no_function("date_part", "its field is a constant: date_part('year', x)", position(node))
    extract = exp.Extract(this=exp.var(field.this.upper()), expression=node.expressions[1].copy())
    made = exp.Cast(this=extract, to=exp.DataType.build("DOUBLE"))
    node.replace(made)
    c.visit(extract, scope)
    return t.FLOAT8


def _long_unit(value: exp.Expression, unit: str) -> exp.Expression:
    """The number of the decade, century or millennium.  There is no year before 1 here."""
    year = exp.Extract(this=exp.var("YEAR"), expression=value.copy())
    span = exp.Literal.number(LONG[unit])
    if unit != "DECADE":
        year = exp.Paren(this=exp.Sub(this=year, expression=exp.Literal.number(1)))
    counted = exp.IntDiv(this=year, expression=span)
    return counted if unit == "DECADE" else exp.Add(this=counted, expression=exp.Literal.number(1))


def _extract(c: Checker, node: exp.Extract, scope: Scope) -> SqlType:
    """``extract(field from x)``: numeric, as in Postgres 14 and later."""
    got = c.child(node, "expression", scope)
    if got in (t.INTERVAL, t.TIME):
        found = parts.field(node.name.upper(), node.expression, got)
        if found is None:
            raise unsupported(f"extract of {node.name.lower()} from {t.shown(got)}", position=position(node))
        result = SqlType("numeric", 38, found[1])
        node.replace(cast(found[0], result))
        return result
    if got == t.UNKNOWN or not t.is_time(got):
        raise no_function(f"extract(unknown, {t.shown(got)})", position=position(node))
    field, value = node.name.upper(), node.expression
    word = unit_word(field)
    if word not in FIELDS:
        raise no_unit(field.lower(), got, position(node))
    if got == t.DATE and word in ("hour", "minute", "second", "microsecond", "millisecond"):
        raise no_unit(field.lower(), got, position(node), known=True)
    if field != "EPOCH":
        got = c.local(value, got)
        value = node.expression
    if field in LONG:
        if not t.is_time(got):
            raise unsupported(f"extract of {field.lower()} from an interval", position=position(node))
        result = SqlType("numeric", 10, 0)
        node.replace(cast(_long_unit(value, field), result))
        return result
    if field == "EPOCH":
        return _epoch(node, value, got)
    if field in ("DOW", "DAYOFWEEK"):
        made, scale = exp.Sub(this=call("DAYOFWEEK", value), expression=exp.Literal.number(1)), 0
    elif field == "ISODOW":
        made, scale = exp.Add(this=call("WEEKDAY", value), expression=exp.Literal.number(1)), 0
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
    counted = cast(micros_of(value), SqlType("numeric", 20, 0))
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
    if got == t.DATE and c.zone is not None:
        node.this.replace(c.recast(node.this, got, result))
    if node.args.get("zone") is not None:
        raise unsupported("date_trunc in another time zone", "use AT TIME ZONE before and after", position(node))
    if isinstance(unit, exp.Var) or (isinstance(unit, exp.Literal) and unit.is_string):
        cut = truncated_to(unit.name, got, position(node))
        if c.zone is not None and result == t.TIMESTAMPTZ:
            node.replace(c.zone.truncated(cut, node.this))
            return result
        made = call("DATE_TRUNC", exp.Literal.string(cut), node.this)
    elif c.zone is not None and result == t.TIMESTAMPTZ:
        raise c.zone.refused("date_trunc of timestamptz to a unit that is not a literal", position(node))
    elif unit is not None and is_constant(unit):
        c.want(node, "unit", t.TEXT, scope, lambda bad: no_function(f"date_trunc({t.shown(bad)}, {t.shown(got)})"))
        made = call("TM_DATE_TRUNC", node.args["unit"], node.this, exp.Literal.string(got.name))
    else:
        raise unsupported("a unit of date_trunc that is not a constant", position=position(node))
    node.replace(cast(made, result))
    return result


def _at_zone(c: Checker, node: exp.AtTimeZone, scope: Scope) -> SqlType:
    """Sessions of Spark run in UTC, so a zone is a shift to or from UTC."""
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN or got == t.DATE:
        if got == t.UNKNOWN:
            c.coerce(node.this, got, t.TIMESTAMPTZ)
        else:
            node.this.replace(c.recast(node.this, got, t.TIMESTAMPTZ))
        got = t.TIMESTAMPTZ
    if not t.is_time(got):
        raise no_function(f"timezone(unknown, {t.shown(got)})", position=position(node))
    zone = node.args["zone"]
    if isinstance(zone, exp.Literal) and zone.is_string and zone_named(zone.this) is None:
        raise InvalidUsage(f'time zone "{zone.this}" not recognized', sqlstate="22023", position=position(zone))
    check_place(zone)
    if got == t.TIMESTAMPTZ:
        node.replace(cast(call("FROM_UTC_TIMESTAMP", node.this, zone), t.TIMESTAMP))
        return t.TIMESTAMP
    node.replace(at_zone(node.this, zone))
    return t.TIMESTAMPTZ


def _formatted(c: Checker, node: exp.TimeToStr, scope: Scope) -> SqlType:
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN:
        c.coerce(node.this, got, t.TIMESTAMPTZ)
        got = t.TIMESTAMPTZ
    elif not t.is_time(got):
        raise unsupported(f"to_char of {t.shown(got)}", hint="use a cast to text", position=position(node))
    c.local(node.this, got)
    return t.TEXT


TIME = {
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.AtTimeZone: _at_zone,
    exp.TimeToStr: _formatted,
}
