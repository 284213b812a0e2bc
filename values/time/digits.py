"""Types of time with fewer digits or fields: what a column or a cast makes of a value.  Pure.

Promises: what Postgres's ``AdjustTimestampForTypmod``, ``AdjustTimeForTypmod`` and ``AdjustIntervalForTypmod`` make of
it.  Halves are rounded away from zero, and a moment's zero is the beginning of 2000 (so one before it goes back).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from values.bad_text import BadText
from values.sql_type import SECOND_DIGITS, SqlType
from values.time.intervals import Interval

ORIGIN = 946_684_800_000_000
"""Of a moment, in microseconds since 1970: that from which Postgres counts."""

END = 253_402_300_800_000_000
"""Of the year 9999, the last that moments have here."""

_EPOCH, _MICRO = datetime(1970, 1, 1), timedelta(microseconds=1)
_HOUR, _MINUTE = 3_600_000_000, 60_000_000
_MICROS_END = 1 << 63
"""Of an interval's hours, minutes and seconds."""
_UNIT = {"hour": _HOUR, "minute": _MINUTE}


def rounded(micros: int, digits: int, origin: int = 0) -> int:
    """``micros`` with ``digits`` digits behind the second, counted from ``origin``."""
    unit = 10 ** (SECOND_DIGITS - digits)
    distance = micros - origin
    whole = (abs(distance) + unit // 2) // unit * unit
    return origin + (-whole if distance < 0 else whole)


def rounded_moment(micros: int, digits: int) -> int:
    """:func:`rounded`, of a moment's microseconds since 1970.  Raises ``BadText`` 22008 beyond the year 9999."""
    found = rounded(micros, digits, ORIGIN)
    if found >= END:
        raise BadText("timestamp out of range", "22008")
    return found


def fitted_interval(value: Interval, sql_type: SqlType) -> Interval:
    """``value`` with the fields and digits of ``sql_type``: what is smaller than its last field is cut off.

    Raises ``BadText`` 22008 where it is rounded beyond what an interval holds.
    """
    last = (sql_type.fields or "second").split()[-1]
    months, days, micros = value
    if last == "year":
        months = _cut(months, 12)
    if last in ("year", "month"):
        days = 0
    if last in ("year", "month", "day"):
        micros = 0
    elif last in _UNIT:
        micros = _cut(micros, _UNIT[last])
    elif sql_type.precision is not None:
        micros = rounded(micros, sql_type.precision)
        if not -_MICROS_END <= micros < _MICROS_END:
            raise BadText("interval out of range", "22008")
    return Interval(months, days, micros)


def _cut(number: int, unit: int) -> int:
    whole = abs(number) // unit * unit
    return -whole if number < 0 else whole


def fitted(value: object, sql_type: SqlType) -> object:
    """A value as Python has it (a datetime, microseconds of a time of day, an interval) with the digits and fields of
    ``sql_type``.  Raises as :func:`rounded_moment`."""
    if sql_type.name == "interval":
        return fitted_interval(value, sql_type)
    if sql_type.name == "time":
        return rounded(value, sql_type.precision)
    at = value - (_EPOCH if value.tzinfo is None else _EPOCH.replace(tzinfo=UTC))
    return value + (rounded_moment(at // _MICRO, sql_type.precision) - at // _MICRO) * _MICRO


def kept(values: pa.ChunkedArray, sql_type: SqlType) -> pa.ChunkedArray:
    """``values``, as Arrow has those of ``sql_type``, as a column of that type keeps them.

    Raises ``BadText`` 22008 for a moment that is rounded beyond the year 9999, and as :func:`fitted_interval`.
    """
    if sql_type == sql_type.plain:
        return values
    return pa.chunked_array([_kept(chunk, sql_type) for chunk in values.chunks], values.type)


def _kept(values: pa.Array, sql_type: SqlType) -> pa.Array:
    if sql_type.is_array:
        inner = _kept(values.flatten(), sql_type.element)
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, inner, values.type, mask=values.is_null())
    if sql_type.name == "interval":
        cut = [None if each is None else fitted_interval(Interval(**each), sql_type) for each in values.to_pylist()]
        return pa.array([None if each is None else each._asdict() for each in cut], values.type)
    assert sql_type.precision is not None, sql_type
    # In NumPy, whose integers wrap rather than fail where a NULL's place holds anything.
    micros = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    origin, unit = 0 if sql_type.name == "time" else ORIGIN, 10 ** (SECOND_DIGITS - sql_type.precision)
    distance = micros - origin
    whole = (np.abs(distance) + unit // 2) // unit * unit
    found = origin + np.where(distance < 0, -whole, whole)
    if origin and found.max(initial=0) >= END:
        raise BadText("timestamp out of range", "22008")
    return pa.array(found, pa.int64(), mask=values.is_null().to_numpy(False)).cast(values.type)
