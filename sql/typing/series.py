"""``generate_series`` of exact numbers, timestamps and dates: rows of a list that Spark and DuckDB both can make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.typing.casts import micros_of
from sql.typing.check_functions import signed
from sql.typing.free_numerics import check_no_free, freed
from sql.typing.interval_parts import native
from sql.typing.own_signatures import moment
from sql.typing.scope import Scope
from sql.typing.signatures import standing_for
from trees import types as t
from trees.errors import no_function, unsupported
from trees.nodes import call, cast, interval, interval_parts, position, unnest
from trees.own import own
from values.limits import SERIES_MAX
from values.time.clock import MICROS_PER_DAY
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

_ZERO = exp.Literal.number(0)


def series(c: Checker, node: exp.GenerateSeries, scope: Scope) -> SqlType:
    """Type ``node`` and make it an EXPLODE.  22023 for a step of zero."""
    keys = [key for key in ("start", "end", "step") if node.args.get(key) is not None]
    types = {key: c.child(node, key, scope) for key in keys}
    if any(t.is_time(got) for got in types.values()):
        return _moments(c, node, types)
    found = t.UNKNOWN
    for got in types.values():
        both = t.common(found, got)
        if both is None or (both != t.UNKNOWN and not t.is_int(both) and both.name != "numeric"):
            raise unsupported("generate_series of anything but exact numbers and timestamps", position=position(node))
        found = both
    found = t.INT4 if found == t.UNKNOWN else found
    check_no_free(found, "generate_series", node)
    if found.name == "numeric":
        return _numerics(node, found, types)
    start, end = (cast(node.args[key].copy(), found) for key in ("start", "end"))
    step = cast((node.args.get("step") or exp.Literal.number(1)).copy(), found)
    if step.find(exp.Literal) and signed(unnest(step.this)) == 0:
        raise InvalidUsage("step size cannot equal zero", sqlstate="22023", position=position(node))
    listed = _sequence(start, end, step)
    known = isinstance(unnest(step.this), (exp.Literal, exp.Neg))
    rows = _guarded(start, end, step, listed, [] if known else [_no_step(step)])
    node.replace(standing_for(rows, found, many=True))  # DuckDB's would be int8 whatever it is of
    return found


def _numerics(node: exp.GenerateSeries, found: SqlType, types: dict[str, SqlType]) -> SqlType:
    """Of numerics: whole numbers of the smallest unit that any of them has.  22003 where these have over 18 digits.

    The first has the digits of where it starts, the others those of the step too, and none those of the end.
    """
    unit = exp.Literal.number("1" + "0" * found.scale)

    def counted(value: exp.Expression) -> exp.Expression:
        return cast(exp.Paren(this=exp.Mul(this=cast(value.copy(), found), expression=unit.copy())), t.INT8)

    start, end = counted(node.args["start"]), counted(node.args["end"])
    step = counted(node.args.get("step") or exp.Literal.number(1))
    exact = cast(exp.column("i"), t.numeric(38, 0))
    first = t.as_numeric(types["start"]) if types["start"] != t.UNKNOWN else found
    by = t.as_numeric(types["step"]) if types.get("step", t.UNKNOWN) != t.UNKNOWN else first
    result = SqlType("numeric", found.precision, max(first.scale, by.scale))
    value = cast(exp.Paren(this=exp.Div(this=exact, expression=unit.copy(), typed=False, safe=False)), result)
    if first.scale < result.scale:
        at_start = exp.EQ(this=exp.column("i"), expression=start.copy())
        shorter = cast(value.copy(), SqlType("numeric", found.precision, first.scale))
        ones = exp.If(this=at_start, true=freed(shorter, first))
        value = exp.Case(ifs=[ones], default=freed(value, result))
        result = t.NUMERIC
    listed = _each(_sequence(start, end, step), value)
    node.replace(call("EXPLODE", _guarded(start, end, step, listed, [_no_step(step)])))
    return result


def _sequence(start: exp.Expression, end: exp.Expression, step: exp.Expression) -> exp.Expression:
    """The list of a series, which is refused before it is made where it would be too long."""
    known = [signed(unnest(each.this)) for each in (start, end, step) if isinstance(each, exp.Cast)]
    if len(known) == 3 and None not in known and abs(known[1] - known[0]) < SERIES_MAX:
        return call("SEQUENCE", start, end, step)
    return call("SEQUENCE", start, call("TM_SERIES_END", start, end, step), step)


def _each(numbers: exp.Expression, made: exp.Expression) -> exp.Expression:
    """The list of ``made`` for each number ``i`` of a list."""
    return call("TRANSFORM", numbers, exp.Lambda(this=made, expressions=[exp.to_identifier("i")]))


def _moments(c: Checker, node: exp.GenerateSeries, types: dict[str, SqlType]) -> SqlType:
    """Of timestamps, by a step of days, hours and less: the first one, and so many steps behind it.

    Months are not of one length, so these are added one after the other.
    """
    moments = c.zone is not None and not {t.DATE, t.TIMESTAMPTZ}.isdisjoint(types.values())
    unknown = t.TIMESTAMPTZ if moments else t.TIMESTAMP
    for key, wanted in (("start", unknown), ("end", unknown), ("step", t.INTERVAL)):
        if types.get(key) == t.UNKNOWN:
            c.give(node.args[key], wanted)
    ends = [types[key] for key in ("start", "end") if types[key] != t.UNKNOWN]
    if types.get("step") not in (t.INTERVAL, t.UNKNOWN) or not all(t.is_time(got) for got in ends):
        shown = ", ".join(t.shown(got) for got in types.values())
        raise no_function(f"generate_series({shown})", position=position(node))
    # A date is taken for the midnight of the session's zone, as Postgres prefers.
    found = t.TIMESTAMP if set(ends) == {t.TIMESTAMP} else t.TIMESTAMPTZ
    start, end = (_end(c, node.args[key], types[key], found) for key in ("start", "end"))
    months, days, micros = interval_parts(node.args["step"])
    day = exp.Mul(this=cast(days, t.INT8), expression=exp.Literal.number(MICROS_PER_DAY))
    step = exp.Paren(this=exp.Add(this=day, expression=cast(micros, t.INT8)))
    first = micros_of(start)
    if found == t.TIMESTAMPTZ and c.zone is not None:
        by_clock = c.zone.stepped(first, micros_of(end), node.args["step"])
        if by_clock is not None:
            node.replace(call("EXPLODE", _each(by_clock, moment(exp.column("i"), found))))
            return found
    span = exp.Paren(this=exp.Sub(this=micros_of(end), expression=first.copy()))
    count = exp.IntDiv(this=span, expression=exp.Nullif(this=step.copy(), expression=_ZERO.copy()))
    numbers = _sequence(*(cast(each, t.INT8) for each in (_ZERO.copy(), count, exp.Literal.number(1))))
    passed = exp.Mul(this=exp.column("i"), expression=step.copy())
    listed = _each(numbers, cast(exp.Add(this=start.copy(), expression=native(_micros(passed))), found))
    stepped = _each(own("tm_series", first, micros_of(end), node.args["step"]), moment(exp.column("i"), found))
    by_month = exp.If(this=exp.NEQ(this=months, expression=_ZERO.copy()), true=stepped)
    node.replace(call("EXPLODE", _guarded(first, micros_of(end), step, listed, [by_month, _no_step(step)])))
    return found


def _end(c: Checker, node: exp.Expression, got: SqlType, found: SqlType) -> exp.Expression:
    return cast(node.copy(), found) if got in (t.UNKNOWN, found) else c.recast(node, got, found)


def _micros(node: exp.Expression) -> exp.Expression:
    """So many microseconds, which are known to be some: an interval without a question whether it is NULL."""
    guarded = interval(_ZERO.copy(), _ZERO.copy(), node)
    return guarded.args["ifs"][0].args["true"] if isinstance(guarded, exp.Case) else guarded


def _no_step(step: exp.Expression) -> exp.If:
    return exp.If(this=exp.EQ(this=step.copy(), expression=_ZERO.copy()), true=call("TM_NO_STEP"))


def _guarded(
    start: exp.Expression, end: exp.Expression, step: exp.Expression, listed: exp.Expression, first: list[exp.If]
) -> exp.Case:
    """``listed`` where there is anything in it: SEQUENCE refuses to run the other way."""
    upwards = exp.and_(_test(exp.GT, step, _ZERO), _test(exp.LTE, start, end))
    downwards = exp.and_(_test(exp.LT, step, _ZERO), _test(exp.GTE, start, end))
    runs = exp.or_(upwards, downwards)
    return exp.Case(ifs=[*first, exp.If(this=runs, true=listed)], default=call("ARRAY"))


def _test(kind: type[exp.Binary], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return kind(this=left.copy(), expression=right.copy())


SERIES = {exp.GenerateSeries: series, exp.ExplodingGenerateSeries: series}
