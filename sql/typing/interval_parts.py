"""How intervals and times of day are reckoned with, said in what Spark and DuckDB both have.

An interval is a struct of months, days and microseconds (:mod:`values.types`), a time its microseconds since
midnight.  Everything here takes and gives syntax trees.
"""

from __future__ import annotations

from sqlglot import exp

from sql.typing.casts import day_part, micros_of
from trees import types as t
from trees.nodes import cast, interval, interval_parts
from values.time.clock import MICROS_PER_DAY
from values.time.intervals import DAYS_PER_MONTH
from values.types import SqlType

_WIDE = {"months": SqlType("numeric", 11, 0), "days": SqlType("numeric", 11, 0), "micros": SqlType("numeric", 20, 0)}


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)


def _times(left: exp.Expression, factor: int) -> exp.Expression:
    return exp.Paren(this=exp.Mul(this=left, expression=cast(_number(factor), SqlType("numeric", 14, 0))))


def length(node: exp.Expression) -> exp.Expression:
    """By what Postgres compares intervals: microseconds, with months of 30 days and days of 24 hours."""
    months, days, micros = (cast(p, w) for p, w in zip(interval_parts(node), _WIDE.values(), strict=True))
    whole = exp.Add(this=_times(months, DAYS_PER_MONTH * MICROS_PER_DAY), expression=_times(days, MICROS_PER_DAY))
    return cast(exp.Paren(this=exp.Add(this=whole, expression=micros)), SqlType("numeric", 30, 0))


def native(node: exp.Expression) -> exp.Expression:
    """The engine's own interval, for adding it to a timestamp."""
    months, days, micros = interval_parts(node)
    seconds = exp.Div(
        this=cast(micros, SqlType("numeric", 20, 0)), expression=_number(1_000_000), typed=False, safe=False
    )
    parts = [_number(0), months, _number(0), days, _number(0), _number(0), cast(seconds, SqlType("numeric", 18, 6))]
    return exp.Anonymous(this="MAKE_INTERVAL", expressions=parts)


def joined(kind: type[exp.Binary], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``left + right`` or ``left - right`` of two intervals that are part of no tree, part by part."""
    pairs = zip(interval_parts(left, used_up=True), interval_parts(right, used_up=True), strict=True)
    return interval(*(kind(this=exp.Paren(this=a), expression=exp.Paren(this=b)) for a, b in pairs))


def negative(node: exp.Expression) -> exp.Expression:
    return interval(*(exp.Neg(this=exp.Paren(this=part)) for part in interval_parts(node)))


def between(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``left - right`` of two timestamps: whole days, and the rest of a day."""
    micros = exp.Paren(this=exp.Sub(this=micros_of(left), expression=micros_of(right)))
    days = exp.IntDiv(this=micros, expression=_number(MICROS_PER_DAY))
    rest = exp.Mod(this=micros.copy(), expression=_number(MICROS_PER_DAY))
    return interval(_number(0), days, rest)


def between_times(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``left - right`` of two times of day."""
    return interval(_number(0), _number(0), exp.Sub(this=left.copy(), expression=right.copy()))


def shifted(kind: type[exp.Binary], time: exp.Expression, by: exp.Expression) -> exp.Expression:
    """A time of day later or earlier, around midnight if need be."""
    micros = interval_parts(by)[2]
    day = _number(MICROS_PER_DAY)
    rest = exp.Paren(this=exp.Mod(this=exp.Paren(this=micros), expression=day))
    return day_part(kind(this=exp.Paren(this=time.copy()), expression=rest))


def of_time(time: exp.Expression) -> exp.Expression:
    """A time of day as an interval."""
    return interval(_number(0), _number(0), time)


def field(name: str, node: exp.Expression, got: SqlType) -> tuple[exp.Expression, int] | None:
    """``extract(name from …)`` of an interval or a time as ``(expression, digits behind the point)``; else ``None``."""
    months, days, micros = interval_parts(node if got == t.INTERVAL else of_time(node))

    def whole(part: exp.Expression, by: int) -> exp.Expression:
        return exp.Paren(this=exp.IntDiv(this=exp.Paren(this=part), expression=_number(by)))

    def rest(part: exp.Expression, by: int) -> exp.Expression:
        return exp.Paren(this=exp.Mod(this=exp.Paren(this=part), expression=_number(by)))

    def over(part: exp.Expression, by: int) -> exp.Expression:
        wide = cast(part, SqlType("numeric", 26, 0))
        return exp.Div(this=wide, expression=_number(by), typed=False, safe=False)

    found: dict[str, tuple[exp.Expression, int]] = {
        "HOUR": (whole(micros, 3_600_000_000), 0),
        "MINUTE": (rest(whole(micros, 60_000_000), 60), 0),
        "SECOND": (over(rest(micros, 60_000_000), 1_000_000), 6),
        "MILLISECONDS": (over(rest(micros, 60_000_000), 1000), 3),
        "MICROSECONDS": (rest(micros, 60_000_000), 0),
        "EPOCH": (over(_epoch(months, days, micros), 1_000_000), 6),
    }
    if got == t.INTERVAL:
        found |= {
            "DAY": (days, 0),
            "MONTH": (rest(months, 12), 0),
            "QUARTER": (exp.Add(this=whole(rest(months, 12), 3), expression=_number(1)), 0),
            "YEAR": (whole(months, 12), 0),
            "DECADE": (whole(months, 120), 0),
            "CENTURY": (whole(months, 1200), 0),
            "MILLENNIUM": (whole(months, 12_000), 0),
        }
    return found.get({"MILLISECOND": "MILLISECONDS", "MICROSECOND": "MICROSECONDS"}.get(name, name))


def _epoch(months: exp.Expression, days: exp.Expression, micros: exp.Expression) -> exp.Expression:
    """An interval in microseconds, a year taken for 365.25 days and what is left of one for months of 30."""
    wide = SqlType("numeric", 20, 0)

    def part(each: exp.Expression) -> exp.Expression:
        return cast(exp.Paren(this=each), SqlType("numeric", 11, 0))

    years = exp.IntDiv(this=exp.Paren(this=months.copy()), expression=_number(12))
    left = exp.Mod(this=exp.Paren(this=months.copy()), expression=_number(12))
    total: exp.Expression = _times(part(years), 31_557_600_000_000)
    total = exp.Add(this=total, expression=_times(part(left), DAYS_PER_MONTH * MICROS_PER_DAY))
    total = exp.Add(this=total, expression=_times(part(days.copy()), MICROS_PER_DAY))
    return exp.Paren(this=exp.Add(this=total, expression=cast(exp.Paren(this=micros.copy()), wide)))
