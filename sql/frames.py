"""The frames of window functions: how far RANGE reaches by an interval, said as the engines take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from collection.types import SqlType
from journal.errors import InvalidUsage
from sql import types as t
from sql.check_functions import signed
from sql.errors import unsupported
from sql.nodes import number, position

if TYPE_CHECKING:
    from sql.zones import Zone

MICROS_A_DAY = 86_400_000_000


def check_frame(window: exp.Window, sorted_by: list[SqlType], zone: Zone | None = None) -> None:
    """Check the frame of ``window``, whose ORDER BY has the types ``sorted_by``, and rewrite the intervals in it."""
    spec = window.args.get("spec")
    if spec is None:
        return
    kind = str(spec.args.get("kind") or "").upper()
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
    unit = _unit(list(reach.values()), sorted_by[0] if sorted_by else t.DATE, position(window))
    for side, (months, days, micros) in reach.items():
        spec.set(side, _native(months if unit == "MONTH" else days * MICROS_A_DAY + micros, unit))


def _rows(bound: exp.Expression, which: str) -> exp.Expression:
    """A number of rows that is known, and not negative."""
    if found := bound.find(exp.Column):
        raise InvalidUsage("argument of ROWS must not contain variables", sqlstate="42P10", position=position(found))
    if bound.find(exp.Parameter):
        raise unsupported("a parameter in a frame", hint="write the number of rows", position=position(bound))
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
    found = t.as_interval(t.parse_literal(text, t.INTERVAL))
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
