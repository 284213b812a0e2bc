"""``extract(field from x)`` as a scalar of a plan: a number with the digits that Postgres gives each field.  Pure."""

from __future__ import annotations

from plan import scalars as s
from plan.types import DATE, FLOAT8, INT8, TEXT
from sql.system.carriers import NUMERIC, SPAN, as_carried, call

_SECONDS = frozenset({"SECOND", "SECONDS"})
_MILLISECONDS = frozenset({"MILLISECOND", "MILLISECONDS"})


def extracted(field: str, value: s.Scalar) -> s.Scalar:
    """``field`` is in capitals."""
    if field in _SECONDS:
        return _counted(_part("MICROSECONDS", value), 6)
    if field in _MILLISECONDS:
        return _counted(_part("MICROSECONDS", value), 3)
    if field == "EPOCH" and value.type == SPAN:
        seconds = call(FLOAT8, "extract", _word(field), value)
        return call(NUMERIC, "tm_numeric_round", as_carried(seconds, NUMERIC), s.number(6))
    if field == "EPOCH" and value.type != DATE:
        return _counted(call(INT8, "epoch_us", value), 6)
    if field == "JULIAN" and value.type != DATE:
        return as_carried(call(FLOAT8, "extract", _word(field), value), NUMERIC)
    return as_carried(s.cast(_part(field, value), INT8), NUMERIC)


def _word(field: str) -> s.Scalar:
    return s.Literal(TEXT, False, field)


def _part(field: str, value: s.Scalar) -> s.Scalar:
    return call(INT8, "extract", _word(field), value)


def _counted(micros: s.Scalar, digits: int) -> s.Scalar:
    """So many of the smallest unit as units of ``10 ** digits`` of it, with ``digits`` behind the point."""
    quotient = call(NUMERIC, "tm_numeric_div", as_carried(micros, NUMERIC), s.Literal(NUMERIC, False, str(10**digits)))
    return call(NUMERIC, "tm_numeric_round", quotient, s.number(digits))
