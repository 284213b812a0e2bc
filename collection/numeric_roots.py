"""Roots, powers and logarithms of free numerics, to the digit that Postgres gives.  Pure.

How many digits a result has is ``numeric.c``'s rule of each function; they are worked out by :mod:`decimal`, whose
results are rounded correctly, with digits to spare.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal

from collection.bad_text import BadText
from collection.numerics import (
    CHOSEN_SCALE_MAX,
    EXACT,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    SIGNIFICANT_MIN,
    at_scale,
    context,
    decimals,
    first_digit,
    is_special,
    overflow,
    quotient,
    shown,
)

_LOG10_E = 0.434294481903252
_LN_10 = 2.302585092994046
_EXPONENT_MAX = 6_000
"""Beyond e to the power of this Postgres gives up: three times the places that it rounds to."""

_SPARE = 14
"""Digits worked out beyond those that are shown."""

_WHOLE_POWERS = 1 << 31
_ZERO, _ONE = Decimal(0), Decimal(1)


def _chosen(scale: int, *values: Decimal) -> int:
    return min(max(scale, 0, *map(decimals, values)), CHOSEN_SCALE_MAX)


def _room(digits: int) -> Context:
    return context(max(digits, 20) + _SPARE)


def root(value: Decimal, scale: int) -> Decimal:
    """The square root with ``scale`` digits behind the point, in integers, so that it is rounded once."""
    tenths = math.isqrt(int(value.scaleb(2 * scale + 2, EXACT)))
    return Decimal((tenths + 5) // 10).scaleb(-scale, EXACT)


def sqrt(a: str) -> str:
    """Raises ``BadText`` 2201F of a negative number."""
    if a in (NAN, INFINITY):
        return a
    if a[0] == "-":
        raise BadText("cannot take square root of a negative number", "2201F")
    value = Decimal(a)
    weight, _ = first_digit(value)
    half = math.trunc((weight + 1) * 4 / 2) - 1
    return shown(root(value, _chosen(SIGNIFICANT_MIN - half, value)))


def exp(a: str) -> str:
    """Raises ``BadText`` 22003 where it has no room."""
    if is_special(a):
        return "0" if a == NEGATIVE_INFINITY else a
    value = Decimal(a)
    power = min(max(float(value) * _LOG10_E, -2000.0), 2000.0)
    scale = _chosen(SIGNIFICANT_MIN - int(power), value)
    if value.copy_abs() >= _EXPONENT_MAX:
        if value > 0:
            raise overflow()
        return shown(at_scale(_ZERO, scale))
    whole = max(0, int(float(value) * _LOG10_E)) + 1
    return shown(at_scale(_room(scale + whole).exp(value), scale))


def _ln_weight(value: Decimal) -> int:
    """``estimate_ln_dweight``: about the power of ten of the logarithm."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        rest = EXACT.subtract(value, _ONE)
        if not rest:
            return 0
        weight, first = first_digit(rest)
        return weight * 4 + int(math.log10(first))
    weight, first = first_digit(value)
    power = 4 * weight
    behind = EXACT.subtract(value.scaleb(-4 * weight, EXACT), Decimal(first))
    if behind:
        first, power = first * 10_000 + int(behind.scaleb(4, EXACT)), power - 4
    found = math.log(first) + power * _LN_10
    return int(math.log10(abs(found))) if found else 0


def _check_logarithm(a: str) -> None:
    if a[0] == "-":
        raise BadText("cannot take logarithm of a negative number", "2201E")
    if not is_special(a) and not a.strip("0."):
        raise BadText("cannot take logarithm of zero", "2201E")


def ln(a: str) -> str:
    """Raises ``BadText`` 2201E of what is not above zero."""
    if a == NAN:
        return a
    _check_logarithm(a)
    if a == INFINITY:
        return a
    value = Decimal(a)
    weight = _ln_weight(value)
    scale = _chosen(SIGNIFICANT_MIN - weight, value)
    return shown(at_scale(_room(scale + max(weight, 0) + 2).ln(value), scale))


def log10(a: str) -> str:
    return log("10", a)


def log(base: str, a: str) -> str:
    """The logarithm of ``a`` to ``base``.  Raises ``BadText`` 2201E, and 22012 to the base of 1."""
    if NAN in (base, a):
        return NAN
    _check_logarithm(base)
    _check_logarithm(a)
    if is_special(base):
        return NAN if is_special(a) else "0"
    if is_special(a):
        return INFINITY
    of, value = Decimal(base), Decimal(a)
    weight = _ln_weight(value) - _ln_weight(of)
    scale = _chosen(SIGNIFICANT_MIN - weight, of, value)
    if of == 1:
        raise BadText("division by zero", "22012")
    room = _room(scale + abs(weight) + 12)
    return shown(at_scale(room.divide(room.ln(value), room.ln(of)), scale))


def power(a: str, b: str) -> str:
    """``a`` to the power of ``b``.  Raises ``BadText`` 2201F and 22003."""
    if is_special(a) or is_special(b):
        return _power_of_specials(a, b)
    base, by = Decimal(a), Decimal(b)
    whole = by == by.to_integral_value(context=EXACT)
    if not base and by < 0:
        raise BadText("zero raised to a negative power is undefined", "2201F")
    if base < 0 and not whole:
        raise BadText("a negative number raised to a non-integer power yields a complex result", "2201F")
    if whole and -_WHOLE_POWERS <= by < _WHOLE_POWERS:
        return shown(_whole_power(base, int(by), _chosen(SIGNIFICANT_MIN, base)))
    if not base:
        return shown(at_scale(_ZERO, SIGNIFICANT_MIN))
    minus = base < 0 and int(by) % 2 == 1
    base = base.copy_abs()
    guess = _room(40)
    rough = float(guess.multiply(guess.ln(base), by))
    if abs(rough) > _EXPONENT_MAX * 3.01:
        if rough > 0:
            raise overflow()
        return shown(at_scale(_ZERO, CHOSEN_SCALE_MAX))
    ten = int(rough * _LOG10_E)
    scale = _chosen(SIGNIFICANT_MIN - ten, base, by)
    if abs(rough) >= _EXPONENT_MAX:
        if rough > 0:
            raise overflow()
        return shown(at_scale(_ZERO, scale))
    room = _room(max(scale + ten, 0) + abs(by.adjusted()) + abs(_ln_weight(base)) + 24)
    found = at_scale(room.exp(room.multiply(room.ln(base), by)), scale)
    return shown(-found if minus else found)


def _whole_power(base: Decimal, by: int, scale: int) -> Decimal:
    """``power_var_int``."""
    if by == 0:
        return at_scale(_ONE, scale)
    if not base:
        return at_scale(_ZERO, scale)
    if by == 1:
        return at_scale(base, scale)
    if by == -1:
        return quotient(_ONE, base, scale)
    if by == 2:
        return at_scale(EXACT.multiply(base, base), scale)
    power_of_ten = base.adjusted()
    size = by * (math.log10(float(base.copy_abs().scaleb(-power_of_ten, EXACT))) + power_of_ten)
    if size > 4 * 32_768:
        raise overflow()
    if size + 1 < -scale or size + 1 < -CHOSEN_SCALE_MAX:
        return at_scale(_ZERO, scale)
    room = _room(scale + abs(int(size)) + len(str(by)) + 8)
    return at_scale(room.power(base, by), scale)


def _power_of_specials(a: str, b: str) -> str:
    """As POSIX declares pow()."""
    if a == NAN:
        return "1" if not is_special(b) and not b.strip("-0.") else NAN
    if b == NAN:
        return "1" if not is_special(a) and Decimal(a) == 1 else NAN
    if is_special(b):
        size = Decimal(a).copy_abs()
        if size == 1:
            return "1"
        if not size and b == NEGATIVE_INFINITY:
            raise BadText("zero raised to a negative power is undefined", "2201F")
        return INFINITY if (size > 1) == (b == INFINITY) else "0"
    by = Decimal(b)
    if not by:
        return "1"
    if a == INFINITY:
        return INFINITY if by > 0 else "0"
    if by != by.to_integral_value(context=EXACT):
        raise BadText("a negative number raised to a non-integer power yields a complex result", "2201F")
    if by < 0:
        return "0"
    return NEGATIVE_INFINITY if int(by) % 2 else INFINITY
