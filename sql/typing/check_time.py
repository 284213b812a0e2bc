"""Types of dates, timestamps and intervals, and how their arithmetic is said in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sql.typing import interval_parts as parts
from sql.typing.casts import micros_of
from sql.typing.own_signatures import moment
from sql.typing.scope import Scope
from sql.typing.time_units import FIELDS, LONG, cut, no_unit, truncated_to, unit_word
from sql.typing.zones import Zone, instant_at, instant_by, local_at, local_by, place_meant
from trees import types as t
from trees.errors import no_function, no_operator, unsupported
from trees.nodes import call, cast, interval_type, position, text_literal
from trees.own import own
from trees.said_once import said_once
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

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
    elif left == t.INTERVAL and right == t.UNKNOWN and op in "*/":
        right = t.FLOAT8
        c.coerce(node.expression, t.UNKNOWN, right)
    if not any(t.is_time(x) or x in (t.INTERVAL, t.TIME) for x in (left, right)):
        return None
    if op == "-" and t.is_time(left) and t.is_time(right) and t.TIMESTAMPTZ in (left, right):
        for key, got in (("this", left), ("expression", right)):
            if got != t.TIMESTAMPTZ and c.zone is not None:
                node.args[key].replace(c.recast(node.args[key], got, t.TIMESTAMPTZ))
    given = t.shown(left), op, t.shown(right)
    if op == "+" and (_order(left), 0) > (_order(right), 0):
        a, b = node.this.copy(), node.expression.copy()
        node.set("this", b)
        node.set("expression", a)
        left, right = right, left
    if t.is_time(left) and right == t.TIME and op in "+-":
        node.expression.replace(parts.of_time(node.expression))
        right = t.INTERVAL
    if left == t.TIMESTAMPTZ and right == t.INTERVAL and op in "+-" and c.zone is not None:
        made = c.zone.shifted(type(node), node.this, node.expression)
        if made is not None:
            node.replace(made)
            return left
    if t.is_time(left) and right == t.INTERVAL and op in "+-":
        moment = t.TIMESTAMP if left == t.DATE else left
        kind = type(node)

        def moved(time: exp.Expression, by: exp.Expression) -> exp.Expression:
            time = cast(time.copy(), moment) if left == t.DATE else time.copy()
            return kind(this=time, expression=parts.native(by))

        node.replace(said_once([node.this, node.expression], moved))
        return moment
    if left == t.DATE and t.is_int(right) and op in "+-":
        node.replace(call("DATE_ADD" if op == "+" else "DATE_SUB", node.this, cast(node.expression.copy(), t.INT4)))
        return t.DATE
    if op == "-" and left == right == t.DATE:
        node.replace(call("DATEDIFF", node.this, node.expression))
        return t.INT4
    made = _of_intervals(node, op, left, right)
    if made is None:
        raise no_operator(*given, position(node))
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
        return said_once([a, b], parts.between), t.INTERVAL
    if op == "-" and left == right == t.TIME:
        return parts.between_times(a, b), t.INTERVAL
    if left == t.TIME and right == t.INTERVAL and op in "+-":
        return parts.shifted(type(node), a, b), t.TIME
    if left == right == t.INTERVAL and op in "+-":
        return parts.joined(type(node), a.pop(), b.pop()), t.INTERVAL
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
            raise no_unit(node.name.lower(), got, position(node), known=unit_word(node.name) in FIELDS)
        result = SqlType("numeric", 20 + found[1], found[1])
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
    if word.startswith("timezone"):
        return _ahead(c, node, word, value, got)
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
    elif field == "ISOYEAR":
        made, scale = call("TM_ISOYEAR", value), 0
    elif field == "JULIAN" and got == t.DATE:
        made, scale = call("TM_DAY_NUMBER", value), 0
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
    result = SqlType("numeric", 12 + scale, scale)
    node.replace(cast(made, result))
    return result


def _ahead(c: Checker, node: exp.Extract, word: str, value: exp.Expression, got: SqlType) -> SqlType:
    """By how much the session's clocks are ahead of UTC at a moment: in seconds, or in the hours or minutes of that."""
    if got != t.TIMESTAMPTZ:
        raise no_unit(node.name.lower(), got, position(node), known=True)
    here = value if c.zone is None else c.zone.local(value)
    micros: exp.Expression = exp.Sub(this=micros_of(here), expression=micros_of(value))
    if word == "timezone_minute":
        micros = exp.Mod(this=exp.Paren(this=micros), expression=exp.Literal.number(3600 * MICROS))
    size = {"timezone": 1, "timezone_hour": 3600, "timezone_minute": 60}[word] * MICROS
    result = SqlType("numeric", 10, 0)
    node.replace(cast(exp.IntDiv(this=exp.Paren(this=micros), expression=exp.Literal.number(size)), result))
    return result


def _epoch(node: exp.Expression, value: exp.Expression, got: SqlType) -> SqlType:
    result = SqlType("numeric", 26, 0 if got == t.DATE else 6)
    counted = cast(micros_of(value), SqlType("numeric", 20, 0))
    node.replace(cast(exp.Div(this=counted, expression=exp.Literal.number(MICROS), typed=False, safe=False), result))
    return result


def truncated(c: Checker, node: exp.Anonymous, scope: Scope) -> SqlType:
    """``date_trunc(unit, x[, zone])``.  A unit that is no literal is read for each row, in Python."""
    got = [c.visit(each, scope) for each in list(node.expressions)]
    wrong = no_function(f"date_trunc({', '.join(map(t.shown, got))})", position=position(node))
    if not 2 <= len(got) <= 3:
        raise wrong
    kind = t.TIMESTAMPTZ if got[1] == t.UNKNOWN or len(got) == 3 else got[1]
    if got[1] == t.INTERVAL and len(got) == 2 and c.coerce(node.expressions[0], got[0], t.TEXT):
        node.replace(own("tm_interval_truncated", *node.expressions))
        return t.INTERVAL
    if not t.is_time(got[1]) and got[1] != t.UNKNOWN:
        raise wrong
    wanted = [t.TEXT, kind, t.TEXT][: len(got)]
    if got[1] in (t.DATE, t.TIMESTAMP) and kind == t.TIMESTAMPTZ:
        node.expressions[1].replace(c.recast(node.expressions[1], got[1], kind))
        got[1] = kind
    for each, actual, each_wanted in zip(list(node.expressions), got, wanted, strict=True):
        if not c.coerce(each, actual, each_wanted):
            raise wrong
    result = t.TIMESTAMPTZ if kind == t.DATE else kind
    if kind == t.DATE and c.zone is not None:
        node.expressions[1].replace(c.recast(node.expressions[1], kind, result))
    unit, value, *rest = node.expressions
    zone = Zone(_zone_of(rest[0])) if rest else c.zone
    if isinstance(unit, exp.Literal):
        word = truncated_to(unit.this, kind, position(node))
        made = zone.truncated(word, value) if zone is not None and result == t.TIMESTAMPTZ else cut(word, value)
    elif zone is not None and result == t.TIMESTAMPTZ:
        made = zone.truncated_by(unit, value)
    else:
        made = moment(own("tm_truncated", unit, micros_of(value)), result)
    node.replace(cast(made, result))
    return result


def _zone_of(node: exp.Expression) -> str:
    """The name of a zone that a literal is."""
    if not isinstance(node, exp.Literal):
        raise unsupported("date_trunc in a time zone that is not a literal", position=position(node))
    meant = place_meant(node)
    if not isinstance(meant, str) or meant == "MSK":
        raise unsupported("date_trunc in a time zone without a name of its own", position=position(node))
    return meant


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
    kind = c.child(node, "zone", scope)
    zone = node.args["zone"]
    if kind == t.INTERVAL:
        node.replace(local_by(node.this, zone) if got == t.TIMESTAMPTZ else instant_by(node.this, zone))
        return t.TIMESTAMP if got == t.TIMESTAMPTZ else t.TIMESTAMPTZ
    if kind != t.UNKNOWN and not t.is_text(kind):
        raise no_function(f"timezone({t.shown(kind)}, {t.shown(got)})", position=position(node))
    if kind == t.UNKNOWN and not isinstance(zone, exp.Literal):
        c.give(zone, t.TEXT)
        zone = node.args["zone"]
    if got == t.TIMESTAMPTZ:
        node.replace(cast(local_at(node.this, zone), t.TIMESTAMP))
        return t.TIMESTAMP
    node.replace(instant_at(node.this, zone))
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
    exp.AtTimeZone: _at_zone,
    exp.TimeToStr: _formatted,
}
