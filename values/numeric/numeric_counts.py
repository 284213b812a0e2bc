"""Divisors, multiples, factorials and buckets of ``numeric`` texts (see ``numerics``), as in PostgreSQL 15.  Pure."""

from __future__ import annotations

import math
from decimal import Decimal

from values.bad_text import BadText
from values.numeric.numerics import (
    EXACT,
    NAN,
    at_scale,
    compare,
    decimals,
    is_special,
    overflow,
    quotient,
    quotient_scale,
    shown,
)


def gcd(a: str, b: str) -> str:
    if is_special(a) or is_special(b):
        return NAN
    return shown(_gcd(Decimal(a), Decimal(b)))


def _gcd(a: Decimal, b: Decimal) -> Decimal:
    scale_ = max(decimals(a), decimals(b))
    # As integers, which have a quicker way than dividing with a remainder at each step.
    x, y = int(a.scaleb(scale_, EXACT)), int(b.scaleb(scale_, EXACT))
    return EXACT.scaleb(Decimal(math.gcd(x, y)), -scale_)


def lcm(a: str, b: str) -> str:
    if is_special(a) or is_special(b):
        return NAN
    x, y = Decimal(a), Decimal(b)
    scale_ = max(decimals(x), decimals(y))
    if not x or not y:
        return shown(at_scale(Decimal(0), scale_))
    whole = EXACT.divide_int(x, _gcd(x, y))
    return shown(at_scale(EXACT.multiply(whole, y).copy_abs(), scale_))


FACTORIAL_MAX = 32_177
"""The last that has room."""


def factorial(n: int) -> str:
    if n < 0:
        raise BadText("factorial of a negative number is undefined", "22003")
    if n > FACTORIAL_MAX:
        raise overflow()
    return shown(Decimal(math.factorial(n)))


BUCKETS_MAX = 2_147_483_647


def width_bucket(operand: str, low: str, high: str, count: int) -> int:
    """Raises ``BadText`` 2201G and 22003."""
    if count <= 0:
        raise BadText("count must be greater than zero", "2201G")
    if NAN in (operand, low, high):
        raise BadText("operand, lower bound, and upper bound cannot be NaN", "2201G")
    if is_special(low) or is_special(high):
        raise BadText("lower and upper bounds must be finite", "2201G")
    order = compare(low, high)
    if order == 0:
        raise BadText("lower bound cannot equal upper bound", "2201G")
    if compare(operand, low) == order:
        return 0
    if compare(operand, high) != order:
        found = count
    else:
        x, from_, to = Decimal(operand), Decimal(low), Decimal(high)
        above = EXACT.multiply(EXACT.subtract(x, from_).copy_abs(), Decimal(count))
        width = EXACT.subtract(to, from_).copy_abs()
        # As Postgres 15 has it: rounded before it is cut, so that what is almost at the end is behind it.
        found = int(quotient(above, width, quotient_scale(above, width)))
    if found >= BUCKETS_MAX:
        raise BadText("integer out of range", "22003")
    return found + 1
