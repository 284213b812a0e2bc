"""Functions of numbers that engines lack or mean otherwise.  Pure."""

from __future__ import annotations

import math

from values.bad_text import BadText

_LIMITS = {4: (1 << 31, "integer out of range"), 8: (1 << 63, "bigint out of range")}


def _fit(value: int, width: int) -> int:
    limit, message = _LIMITS[width]
    if value >= limit:
        raise BadText(message, "22003")
    return value


def gcd(a: int, b: int, width: int) -> int:
    """Never negative; 0 of two zeros.  ``width`` in bytes; raises ``BadText`` 22003 where it does not fit."""
    return _fit(math.gcd(a, b), width)


def lcm(a: int, b: int, width: int) -> int:
    return _fit(math.lcm(a, b), width)


def width_bucket(operand: float, low: float, high: float, count: int) -> int:
    """Which of ``count`` equal parts of what lies between ``low`` and ``high`` the operand is in, from 1; 0 and
    ``count + 1`` are outside.  Raises ``BadText`` 2201G, 22003.
    """
    if count <= 0:
        raise BadText("count must be greater than zero", "2201G")
    if math.isnan(operand) or math.isnan(low) or math.isnan(high):
        raise BadText("operand, lower bound, and upper bound cannot be NaN", "2201G")
    if math.isinf(low) or math.isinf(high):
        raise BadText("lower and upper bounds must be finite", "2201G")
    if low == high:
        raise BadText("lower bound cannot equal upper bound", "2201G")
    if low > high:
        operand, low, high = -operand, -low, -high
    if operand < low:
        return 0
    if operand >= high:
        return _fit(count + 1, 4)
    span = high - low
    part = (operand - low) / span if math.isfinite(span) else (operand / 2 - low / 2) / (high / 2 - low / 2)
    return min(int(count * part), count - 1) + 1
