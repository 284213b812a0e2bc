"""The frames of window functions: how far RANGE reaches by an interval, said as the engines take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.typing.check_functions import signed
from trees import types as t
from trees.errors import unsupported
from trees.nodes import cast, data_type, number, position, unnest
from values.time.intervals import as_interval
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.zones import Zone

MICROS_A_DAY = 86_400_000_000


def check_frame(window: exp.Window, sorted_by: list[SqlType], zone: Zone | None = None) -> None:
    """Check the frame of ``window``, whose ORDER BY has the types ``sorted_by``, and rewrite the intervals in it."""
    spec = window.args.get("spec")
    if spec is None:
        return
    kind = str(spec.args.get("kind") or "").upper()
    _in_order(spec)
    if kind == "GROUPS" or spec.args.get("exclude"):
        word = "GROUPS" if kind == "GROUPS" else "EXCLUDE"
        raise unsupported(f"{word} in a window", position=position(window))
    if kind == "ROWS":
        for side in ("start", "end"):
            if isinstance(bound := spec.args.get(side), exp.Expression):
                spec.set(side, _rows(bound, "starting" if side == "start" else "ending"))
    reach: dict[str, tuple[int, int, int]] = {}
    for side in ("start", "end"):
        bound = spec.args.get(side)
        if kind != "RANGE" or not isinstance(bound, exp.Expression):
            continue
        if len(sorted_by) != 1:
            raise InvalidUsage(
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                sqlstate="42P20",
                position=position(window),
            )
        if t.is_time(sorted_by[0]):
            reach[side] = _reach(bound, sorted_by[0])
            if zone is not None and sorted_by[0] == t.TIMESTAMPTZ:
                zone.frame(any(reach[side][:2]), position(window))
        elif not t.is_number(sorted_by[0]) or sorted_by[0].is_free:
            raise unsupported(f"RANGE over {t.shown(sorted_by[0])}", position=position(window))
        else:
            spec.set(side, _distance(bound, sorted_by[0], "starting" if side == "start" else "ending"))
            _widen(window.args["order"].expressions[0], sorted_by[0])
    unit = _unit(list(reach.values()), sorted_by[0] if sorted_by else t.DATE, position(window))
    for side, (months, days, micros) in reach.items():
        spec.set(side, _native(months if unit == "MONTH" else days * MICROS_A_DAY + micros, unit))


_SIDES = ("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING")


def _in_order(spec: exp.WindowSpec) -> None:
    """42P20 where a frame ends before it begins, whatever the numbers are."""
    start, end = (_side(spec, side) for side in ("start", "end"))
    if start == "UNBOUNDED FOLLOWING":
        told = "frame start cannot be UNBOUNDED FOLLOWING"
    elif end == "UNBOUNDED PRECEDING":
        told = "frame end cannot be UNBOUNDED PRECEDING"
    elif start == "FOLLOWING" and end == "CURRENT ROW":
        told = "frame starting from following row cannot end with current row"
    elif start == "CURRENT ROW" and end == "PRECEDING":
        told = "frame starting from current row cannot have preceding rows"
    elif start == "FOLLOWING" and end == "PRECEDING":
        told = "frame starting from following row cannot have preceding rows"
    else:
        return
    raise InvalidUsage(told, sqlstate="42P20", position=position(spec))


def _side(spec: exp.WindowSpec, side: str) -> str:
    bound = spec.args.get(side) or "CURRENT ROW"  # without an end
    words = "" if isinstance(bound, exp.Expression) else str(bound).upper()
    return words if words == "CURRENT ROW" else f"{words} {spec.args.get(f'{side}_side') or ''}".strip().upper()


def _distance(bound: exp.Expression, sorted_by: SqlType, which: str) -> exp.Expression:
    """How far RANGE reaches from a number: a number that is known, of a type that goes with the column's."""
    if found := bound.find(exp.Column):
        raise InvalidUsage("argument of RANGE must not contain variables", sqlstate="42P10", position=position(found))
    if bound.find(exp.Parameter):
        raise unsupported("a parameter in a frame", hint="write the number", position=position(bound))
    value = unnest(bound)
    while isinstance(value, exp.Cast):
        value = unnest(value.this)
    if isinstance(value, exp.Null):
        raise InvalidUsage(f"frame {which} offset must not be null", sqlstate="22004")
    if isinstance(value, exp.Literal) and value.is_string:
        value = number(t.parse_literal(value.this, t.INT8)) if t.is_int(sorted_by) else bound.copy()
        if not isinstance(unnest(value), exp.Neg):
            return value
    if value.find(exp.Neg, exp.Sub):
        if isinstance(value, exp.Neg) and isinstance(unnest(value.this), exp.Literal):
            raise InvalidUsage("invalid preceding or following size in window function", sqlstate="22013")
        raise unsupported("a RANGE that is no literal", hint="write the number itself", position=position(bound))
    if t.is_int(sorted_by) and any("." in each.this for each in value.find_all(exp.Literal)):
        raise InvalidUsage(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type "
            f"{t.shown(sorted_by)} and offset type numeric",
            sqlstate="0A000",
            position=position(bound),
            hint="Cast the offset value to an appropriate type.",
        )
    return bound.copy()


_WIDE = {"int2": t.INT8, "int4": t.INT8, "int8": SqlType("numeric", 21, 0)}


def _widen(ordered: exp.Ordered, sorted_by: SqlType) -> None:
    """An engine adds in the type of the column, which overflows where Postgres stops at its end."""
    wide = _WIDE.get(sorted_by.name)
    if wide is not None and not (isinstance(ordered.this, exp.Cast) and ordered.this.to == data_type(wide)):
        ordered.set("this", cast(ordered.this.copy(), wide))


def _rows(bound: exp.Expression, which: str) -> exp.Expression:
    """A number of rows that is known, and not negative."""
    if found := bound.find(exp.Column):
        raise InvalidUsage("argument of ROWS must not contain variables", sqlstate="42P10", position=position(found))
    if bound.find(exp.Parameter):
        raise unsupported("a parameter in a frame", hint="write the number of rows", position=position(bound))
    if isinstance(unnest(bound), exp.Null):
        raise InvalidUsage(f"frame {which} offset must not be null", sqlstate="22004", position=position(bound))
    is_text = isinstance(bound, exp.Literal) and bound.is_string
    made = number(int(t.parse_literal(bound.this, t.INT8))) if is_text else bound.copy()
    count = signed(made)
    if count is not None and count < 0:
        raise InvalidUsage(f"frame {which} offset must not be negative", sqlstate="22013")
    return made


def _reach(bound: exp.Expression, sorted_by: SqlType) -> tuple[int, int, int]:
    """Months, days and microseconds of an offset."""
    text = _text(bound)
    if text is None:
        raise InvalidUsage(
            f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {t.shown(sorted_by)} with this "
            "offset type",
            sqlstate="0A000",
            position=position(bound),
            hint="write interval '…'",
        )
    found = as_interval(t.parse_literal(text, t.INTERVAL))
    if min(found) < 0:
        raise InvalidUsage(
            "invalid preceding or following size in window function", sqlstate="22013", position=position(bound)
        )
    return found


def _unit(reach: list[tuple[int, int, int]], sorted_by: SqlType, at: int | None) -> str:
    """The one field in which all offsets of a frame are said: Spark takes no two, and adds no hours to a date."""
    months = any(each[0] for each in reach)
    if months and any(each[1] or each[2] for each in reach):
        raise unsupported("a RANGE of months together with days or hours", position=at)
    if sorted_by == t.DATE and any(each[2] for each in reach):
        raise unsupported("a RANGE of hours over dates", hint="cast to timestamp", position=at)
    return "MONTH" if months else "DAY" if not any(each[2] for each in reach) else "SECOND"


def _native(amount: int, unit: str) -> exp.Interval:
    """``amount`` months, or microseconds, in ``unit``."""
    if unit == "SECOND":
        text = f"{amount // 1_000_000}.{amount % 1_000_000:06}"
        return exp.Interval(this=exp.Literal.string(text), unit=exp.Var(this=unit))
    return exp.Interval(this=number(amount if unit == "MONTH" else amount // MICROS_A_DAY), unit=exp.Var(this=unit))


def _text(bound: exp.Expression) -> str | None:
    """The text of an interval's literal, however it is written."""
    if isinstance(bound, exp.Cast) and bound.to.is_type("interval"):
        return _text(bound.this)
    if isinstance(bound, exp.Interval) and isinstance(bound.this, exp.Literal) and bound.this.is_string:
        unit = bound.args.get("unit")
        return f"{bound.this.this} {unit.name}" if unit is not None else bound.this.this
    return bound.this if isinstance(bound, exp.Literal) and bound.is_string else None
