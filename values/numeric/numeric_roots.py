"""Roots, exponentials and logarithms of ``numeric`` texts (see ``numerics``), to the digit.  Pure.

Promises: results and their scales are PostgreSQL 15's.  It computes with eight digits more than it shows, so that a
last digit is off now and then; these go the same way and round where it does.  What has no room is refused before it is
computed, and no result has more than ``CHOSEN_SCALE_MAX`` digits behind the point, so that the work is bounded.
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, Decimal

from values.bad_text import BadText
from values.numeric.numerics import (
    CHOSEN_SCALE_MAX,
    EXACT,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    SIGNIFICANT_MIN,
    WHOLE_DIGITS_MAX,
    at_scale,
    context,
    decimals,
    first_digit,
    is_special,
    overflow,
    quotient,
    shown,
    signed,
    unit,
)

_LOG10_E, _LOG10_2, _LN_10 = 0.434294481903252, 0.301029995663981, 2.302585092994046
"""As many digits of them as Postgres estimates with."""

_EXPONENT_MAX = 6000
"""Of e: where Postgres ends."""

_ESTIMATE_MAX = 2000 * 3.01
"""Of the same, where it is estimated with few digits."""

_SMALL = 0.01
"""Exponents of e that need not be halved first for the series to end soon."""

_GUARD = 8
"""Digits that Postgres computes behind those it shows."""

_ONE, _HALF = Decimal(1), Decimal("0.5")
_NEAR, _FAR = Decimal("0.9"), Decimal("1.1")


def _chosen(scale: int, *operands: Decimal) -> int:
    """``scale``, or that of an operand with more digits behind the point."""
    return min(max(scale, 0, *map(decimals, operands)), CHOSEN_SCALE_MAX)


# -- square roots -----------------------------------------------------------------------------------------------------


def sqrt(a: str) -> str:
    """Raises ``BadText`` 2201F."""
    if signed(a) < 0:
        raise BadText("cannot take square root of a negative number", "2201F")
    if is_special(a):
        return a
    value = Decimal(a)
    weight, _ = first_digit(value)
    return shown(root(value, _chosen(SIGNIFICANT_MIN - (2 * weight + 1), value)))


def root(value: Decimal, scale: int) -> Decimal:
    """The square root with ``scale`` digits behind the point, halves away from zero."""
    if not value:
        return at_scale(value, scale)
    digits = max(value.adjusted() // 2 + scale + _GUARD, _GUARD)
    found = context(digits).sqrt(value).quantize(unit(scale + 1), ROUND_DOWN, EXACT)
    if EXACT.multiply(found, found) > value:  # it was rounded up to here
        found = EXACT.subtract(found, unit(scale + 1))
    return at_scale(found, scale)


# -- powers of e ------------------------------------------------------------------------------------------------------


def exp(a: str) -> str:
    """Raises ``BadText`` 22003."""
    if is_special(a):
        return "0" if a == NEGATIVE_INFINITY else a
    value = Decimal(a)
    weight = max(min(float(value) * _LOG10_E, 2000.0), -2000.0)
    return shown(_exp(value, _chosen(SIGNIFICANT_MIN - int(weight), value)))


def _exp(value: Decimal, scale: int) -> Decimal:
    """By the series of what is near zero, squared as often as the operand was halved."""
    estimate = float(value)
    if abs(estimate) >= _EXPONENT_MAX:
        if estimate > 0:
            raise overflow()
        return at_scale(Decimal(0), scale)
    places, halved = int(estimate * _LOG10_E), 0
    while abs(estimate) > _SMALL:
        estimate, halved = estimate / 2, halved + 1
    x = EXACT.multiply(value, EXACT.power(_HALF, halved)) if halved else value
    significant = max(1 + places + scale + int(halved * _LOG10_2), 0) + _GUARD
    inner = significant - 1
    found, term, n = EXACT.add(_ONE, x), x, 1
    while term:
        n += 1
        term = quotient(at_scale(EXACT.multiply(term, x), inner), Decimal(n), inner)
        found = EXACT.add(found, term)
    for _ in range(halved):
        found = at_scale(EXACT.multiply(found, found), max(significant - 8 * _weight(found), 0))
    return at_scale(found, scale)


def _weight(value: Decimal) -> int:
    """The power of 10000 that the first digit counts."""
    return value.adjusted() // 4 if value else 0


# -- logarithms -------------------------------------------------------------------------------------------------------


def ln(a: str) -> str:
    """Raises ``BadText`` 2201E."""
    if is_special(a):
        if a == NEGATIVE_INFINITY:
            raise _negative_logarithm()
        return a
    value = Decimal(a)
    return shown(_ln(value, _chosen(SIGNIFICANT_MIN - _ln_weight(value), value)))


def _negative_logarithm() -> BadText:
    return BadText("cannot take logarithm of a negative number", "2201E")


def _zero_logarithm() -> BadText:
    return BadText("cannot take logarithm of zero", "2201E")


def _leading(value: Decimal, most: int) -> tuple[int, int]:
    """The first digits of base 10000, as one number, and the power of ten that it counts: ``most`` of those digits, or
    all that there are up to the last that isn't zero."""
    weight = value.adjusted() // 4
    _, digits, exponent = value.normalize(EXACT).as_tuple()
    count = min(most, weight - exponent // 4 + 1)
    power = 4 * (weight - count + 1)
    return int(value.copy_abs().scaleb(-power, EXACT)), power


def _ln_weight(value: Decimal) -> int:
    """About the place of the first digit of the logarithm, as Postgres estimates it."""
    if value <= 0:
        return 0
    if _NEAR <= value <= _FAR:
        beyond = EXACT.subtract(value, _ONE)
        return beyond.adjusted() if beyond else 0
    digits, power = _leading(value, 2)
    return int(math.log10(abs(math.log(digits) + power * _LN_10)))


def _ln(value: Decimal, scale: int) -> Decimal:
    """By the series of what is near one, doubled as often as a root was taken."""
    if value <= 0:
        raise _negative_logarithm() if value else _zero_logarithm()
    x, halved = value, 0
    while x <= _NEAR:
        x, halved = root(x, scale - 2 * _weight(x) + _GUARD), halved + 1
    while x >= _FAR:
        x, halved = root(x, scale - 2 * _weight(x) + _GUARD), halved + 1
    inner = scale + int((halved + 1) * _LOG10_2) + _GUARD
    found = power_ = quotient(EXACT.subtract(x, _ONE), EXACT.add(x, _ONE), inner)
    square, n = at_scale(EXACT.multiply(found, found), inner), 1
    while True:
        n += 2
        power_ = at_scale(EXACT.multiply(power_, square), inner)
        term = quotient(power_, Decimal(n), inner)
        if not term:
            break
        found = EXACT.add(found, term)
        if _weight(term) < _weight(found) - inner // 2:
            break
    return at_scale(EXACT.multiply(found, Decimal(2 << halved)), scale)


def log10(a: str) -> str:
    return log("10", a)


def log(base: str, a: str) -> str:
    """The logarithm of ``a``.  Raises ``BadText`` 2201E and 22012."""
    if is_special(base) or is_special(a):
        return _log_of_specials(base, a)
    below, value = Decimal(base), Decimal(a)
    weight_below, weight = _ln_weight(below), _ln_weight(value)
    ahead = weight - weight_below
    scale = _chosen(SIGNIFICANT_MIN - ahead, below, value)
    ln_below = _ln(below, max(scale + ahead - weight_below + _GUARD, 0))
    ln_value = _ln(value, max(scale + ahead - weight + _GUARD, 0))
    if not ln_below:
        raise BadText("division by zero", "22012")
    return shown(quotient(ln_value, ln_below, scale))


def _log_of_specials(base: str, a: str) -> str:
    if base == NAN or a == NAN:
        return NAN
    if signed(base) < 0 or signed(a) < 0:
        raise _negative_logarithm()
    if signed(base) == 0 or signed(a) == 0:
        raise _zero_logarithm()
    if base == INFINITY:
        return NAN if a == INFINITY else "0"
    return INFINITY


# -- powers -----------------------------------------------------------------------------------------------------------


def power(a: str, b: str) -> str:
    """Raises ``BadText`` 2201F and 22003."""
    if is_special(a) or is_special(b):
        return _power_of_specials(a, b)
    if signed(a) == 0 and signed(b) < 0:
        raise _power_of_zero()
    base, exponent = Decimal(a), Decimal(b)
    if _is_whole(exponent) and exponent.adjusted() < 10:
        whole = int(exponent)
        if -(1 << 31) <= whole < 1 << 31:
            return shown(_whole_power(base, whole))
    return shown(_power(base, exponent))


def _power_of_zero() -> BadText:
    return BadText("zero raised to a negative power is undefined", "2201F")


def _complex() -> BadText:
    return BadText("a negative number raised to a non-integer power yields a complex result", "2201F")


def _is_whole(value: Decimal) -> bool:
    return value == value.to_integral_value(context=EXACT)


def _is_odd(value: Decimal) -> bool:
    return _is_whole(value) and EXACT.remainder(value, Decimal(2)) != 0


def _power_of_specials(a: str, b: str) -> str:
    base, exponent = Decimal(a), Decimal(b)
    if a == NAN or b == NAN:
        one = exponent == 0 if a == NAN else base == 1
        return "1" if one else NAN
    if signed(a) == 0 and signed(b) < 0:
        raise _power_of_zero()
    if signed(a) < 0 and not is_special(b) and not _is_whole(exponent):
        raise _complex()
    if base == 1 or exponent == 0:
        return "1"
    if signed(a) == 0:
        return "0"
    if is_special(b):
        if base == -1:
            return "1"
        grows = base.copy_abs() > 1
        return INFINITY if grows == (signed(b) > 0) else "0"
    if signed(b) < 0:
        return "0"
    return NEGATIVE_INFINITY if a == NEGATIVE_INFINITY and _is_odd(exponent) else INFINITY


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    """By logarithms."""
    if not base:
        return at_scale(base, SIGNIFICANT_MIN)
    negative = False
    if base < 0:
        if not _is_whole(exponent):
            raise _complex()
        negative, base = _is_odd(exponent), base.copy_abs()
    weight = _ln_weight(base)
    scale = max(_GUARD - weight, 0)
    estimate = float(at_scale(EXACT.multiply(_ln(base, scale), exponent), scale))
    if abs(estimate) > _ESTIMATE_MAX:
        if estimate > 0:
            raise overflow()
        return at_scale(Decimal(0), CHOSEN_SCALE_MAX)
    places = int(estimate * _LOG10_E)
    scale = _chosen(SIGNIFICANT_MIN - places, base, exponent)
    inner = max(max(scale + places, 0) - weight + _GUARD, 0)
    found = _exp(at_scale(EXACT.multiply(_ln(base, inner), exponent), inner), scale)
    return found.copy_negate() if negative else found


def _whole_power(base: Decimal, exponent: int) -> Decimal:
    """By multiplying, with as many digits at each step as the result has, and some more."""
    scale = _chosen(SIGNIFICANT_MIN, base)
    if exponent == 0:
        return at_scale(_ONE, scale)
    if not base:
        return at_scale(base, scale)
    if exponent == -1:
        return quotient(_ONE, base, scale)
    if exponent in (1, 2):
        return at_scale(EXACT.multiply(base, base if exponent == 2 else _ONE), scale)
    digits, ten = _leading(base, 4)
    places = exponent * (math.log10(digits) + ten)
    if places > 3 * WHOLE_DIGITS_MAX:
        raise overflow()
    if places + 1 < -scale:
        return at_scale(Decimal(0), scale)
    significant = 1 + scale + int(places) + int(math.log(abs(exponent))) + _GUARD
    bits, square = abs(exponent), base
    found = base if bits & 1 else _ONE
    while bits := bits >> 1:
        square = _product(square, square, significant)
        if bits & 1:
            found = _product(square, found, significant)
        if max(_weight(square), _weight(found)) * 4 >= WHOLE_DIGITS_MAX:
            if exponent > 0:
                raise overflow()
            return at_scale(Decimal(0), scale)
    return quotient(_ONE, found, scale) if exponent < 0 else at_scale(found, scale)


def _product(a: Decimal, b: Decimal, significant: int) -> Decimal:
    scale = max(min(significant - 4 * (_weight(a) + _weight(b)), decimals(a) + decimals(b)), 0)
    return at_scale(EXACT.multiply(a, b), scale)
