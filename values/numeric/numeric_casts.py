"""``numeric`` texts (see ``numerics``) from floats, and to floats and integers, as PostgreSQL 15 casts them.  Pure."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from values.bad_text import BadText
from values.numeric.numerics import EXACT, INFINITY, NAN, NEGATIVE_INFINITY, is_special, read


def from_float8(value: float) -> str:
    """``float8::numeric``: 15 significant digits."""
    return _of_float(value, 15)


def from_float4(value: float) -> str:
    """``float4::numeric``: 6 significant digits."""
    return _of_float(value, 6)


def _of_float(value: float, digits: int) -> str:
    if math.isfinite(value):
        return read(f"{value:.{digits}g}")
    return NAN if value != value else INFINITY if value > 0 else NEGATIVE_INFINITY


_INTEGERS = {"int2": ("smallint", 1 << 15), "int4": ("integer", 1 << 31), "int8": ("bigint", 1 << 63)}


def to_int(text: str, name: str) -> int:
    """What an ``int2``, ``int4`` or ``int8`` makes of ``text``.  Raises ``BadText`` 22003 and 0A000."""
    shown_name, bound = _INTEGERS[name]
    if is_special(text):
        raise BadText(f"cannot convert {'NaN' if text == NAN else 'infinity'} to {shown_name}", "0A000")
    value = Decimal(text)
    if value.adjusted() < 20:  # before the memory is taken
        number = int(value.to_integral_value(ROUND_HALF_UP, EXACT))
        if -bound <= number < bound:
            return number
    raise BadText(f"{shown_name} out of range", "22003")
