"""Postgres's ``numeric`` without a precision: values as their texts, and arithmetic to the digit.  Pure.

A value is carried as Postgres shows it, ``-?digits(.digits)?``, ``NaN``, ``Infinity`` or ``-Infinity``: the digits
behind the point are its display scale, so ``1.20`` and ``1.2`` are equal and shown apart.  There is no ``-0``.

Promises: results, their scales and what is refused are those of PostgreSQL 15.  Nothing here rounds but where Postgres
does, and no result has more than ``WHOLE_DIGITS_MAX`` digits before the point and ``SCALE_MAX`` behind it.
Roots and logarithms are in ``numeric_roots``, divisors and buckets in ``numeric_counts``, other types in
``numeric_casts``, sums that are kept in ``numeric_sums``.
"""

from __future__ import annotations

import re
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_05UP,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
)

from values.bad_text import BadText, bad_text
from values.blanks import BLANKS

WHOLE_DIGITS_MAX = 131_072
SCALE_MAX = 16_383

SIGNIFICANT_MIN = 16
"""Digits that a quotient, a root or a logarithm has at least."""

CHOSEN_SCALE_MAX = 1000
"""Of results whose scale Postgres chooses; operands may have more."""

NAN, INFINITY, NEGATIVE_INFINITY = "NaN", "Infinity", "-Infinity"
_SPECIAL = frozenset((NAN, INFINITY, NEGATIVE_INFINITY))

_TRAPS = [InvalidOperation, DivisionByZero]


def context(digits: int, rounding: str = ROUND_HALF_UP) -> Context:
    return Context(digits, rounding, MIN_EMIN, MAX_EMAX, traps=_TRAPS)


EXACT = context(3 * (WHOLE_DIGITS_MAX + SCALE_MAX))
"""Holds the product of any two values, so that nothing is rounded by itself."""

_QUOTIENTS = {digits: context(digits, ROUND_05UP) for digits in range(1, 80)}
_UNITS = [Decimal((0, (1,), -scale)) for scale in range(64)]
_ONE = Decimal(1)


# -- texts ------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([ \t\n\v\f\r]*[+-]?\d+))?", re.ASCII)
_WORDS = {"nan": NAN} | {
    sign + word: NEGATIVE_INFINITY if sign == "-" else INFINITY
    for sign in ("", "+", "-")
    for word in ("inf", "infinity")
}
_EXPONENT_END = 1_073_741_823


def read(text: str) -> str:
    """What ``text::numeric`` is.  Raises ``BadText`` 22P02 and 22003."""
    value = text.strip(BLANKS)
    found = _NUMBER.fullmatch(value)
    if found is None:
        word = _WORDS.get(value.lower())
        if word is None:
            raise bad_text("numeric", text)
        return word
    sign, digits, exponent = found.groups()
    whole, _, fraction = digits.partition(".")
    if exponent is not None:
        power = exponent.strip(BLANKS)
        places = power.lstrip("+-0") or "0"
        if len(places) > 10 or int(places) >= _EXPONENT_END:
            raise overflow()
        whole, fraction = _moved(whole, fraction, -int(places) if power[0] == "-" else int(places))
    whole = whole.lstrip("0")
    if len(whole) > WHOLE_DIGITS_MAX or len(fraction) > SCALE_MAX:
        raise overflow()
    minus = "-" if sign == "-" and (whole or fraction.strip("0")) else ""
    return f"{minus}{whole or '0'}.{fraction}" if fraction else minus + (whole or "0")


def _moved(whole: str, fraction: str, power: int) -> tuple[str, str]:
    """The digits before and behind the point once it has gone ``power`` places to the right."""
    digits = whole + fraction
    significant = digits.lstrip("0")
    scale = max(len(fraction) - power, 0)
    # Before the memory is taken.
    if scale > SCALE_MAX or (significant and len(significant) - len(fraction) + power > WHOLE_DIGITS_MAX):
        raise overflow()
    if not significant:
        return "0", "0" * scale
    if power > len(fraction):
        return significant + "0" * (power - len(fraction)), ""
    padded = significant.rjust(scale + 1, "0")
    return padded[: len(padded) - scale], padded[len(padded) - scale :]


def shown(value: Decimal) -> str:
    """The text of ``value``, whose exponent is its display scale.  Raises ``BadText`` 22003."""
    text = str(value)
    if "E" in text:
        if value and value.adjusted() >= WHOLE_DIGITS_MAX:
            raise overflow()
        if value.as_tuple().exponent > 0:
            value = value.quantize(_ONE, context=EXACT)
        text = format(value, "f")
    if len(text) > WHOLE_DIGITS_MAX and (
        value.adjusted() >= WHOLE_DIGITS_MAX or -value.as_tuple().exponent > SCALE_MAX
    ):
        raise overflow()
    return text[1:] if text[0] == "-" and not value else text


def overflow() -> BadText:
    return BadText("value overflows numeric format", "22003")


def is_special(text: str) -> bool:
    return text in _SPECIAL


def limited(text: str, precision: int, scale: int) -> str:
    """What a ``numeric(precision, scale)`` keeps of ``text``.  Raises ``BadText`` 22003."""
    if text in _SPECIAL:
        if text == NAN:
            return text
        raise BadText("numeric field overflow", "22003")
    value = Decimal(text).quantize(unit(scale), context=EXACT)
    if value and value.adjusted() >= precision - scale:
        raise BadText("numeric field overflow", "22003")
    return shown(value)


def unit(scale: int) -> Decimal:
    """One at the last of ``scale`` digits behind the point."""
    return _UNITS[scale] if 0 <= scale < 64 else Decimal((0, (1,), -scale))


def at_scale(value: Decimal, scale: int) -> Decimal:
    """``value`` with ``scale`` digits behind the point, halves away from zero."""
    return value.quantize(unit(scale), context=EXACT)


# -- arithmetic -------------------------------------------------------------------------------------------------------


def add(a: str, b: str) -> str:
    if a in _SPECIAL or b in _SPECIAL:
        return _sum_of_specials(a, b)
    return shown(EXACT.add(Decimal(a), Decimal(b)))


def sub(a: str, b: str) -> str:
    if a in _SPECIAL or b in _SPECIAL:
        return _sum_of_specials(a, neg(b))
    return shown(EXACT.subtract(Decimal(a), Decimal(b)))


def _sum_of_specials(a: str, b: str) -> str:
    if a == NAN or b == NAN:
        return NAN
    if a in _SPECIAL and b in _SPECIAL:
        return a if a == b else NAN
    return a if a in _SPECIAL else b


def mul(a: str, b: str) -> str:
    if a in _SPECIAL or b in _SPECIAL:
        return _infinite(a, b, signed(a) * signed(b))
    value = EXACT.multiply(Decimal(a), Decimal(b))
    if len(a) + len(b) > SCALE_MAX and -value.as_tuple().exponent > SCALE_MAX:
        value = at_scale(value, SCALE_MAX)
    return shown(value)


def _infinite(a: str, b: str, sign_: int) -> str:
    """The infinity of that sign; of none, no number."""
    if a == NAN or b == NAN or sign_ == 0:
        return NAN
    return INFINITY if sign_ > 0 else NEGATIVE_INFINITY


def signed(text: str) -> int:
    """-1, 0 or 1, of a NaN 0."""
    if text in _SPECIAL:
        return {NAN: 0, INFINITY: 1}.get(text, -1)
    return -1 if text[0] == "-" else 1 if text.strip("0.") else 0


def div(a: str, b: str) -> str:
    """``a / b``.  Raises ``BadText`` 22012."""
    if a in _SPECIAL or b in _SPECIAL:
        return _quotient_of_specials(a, b)
    x, y = Decimal(a), Decimal(b)
    if not y:
        raise _by_zero()
    return shown(quotient(x, y, quotient_scale(x, y)))


def _by_zero() -> BadText:
    return BadText("division by zero", "22012")


def _quotient_of_specials(a: str, b: str) -> str:
    if a == NAN or b == NAN:
        return NAN
    if b in _SPECIAL:
        return NAN if a in _SPECIAL else "0"
    if signed(b) == 0:
        raise _by_zero()
    return _infinite(a, b, signed(a) * signed(b))


def quotient_scale(a: Decimal, b: Decimal) -> int:
    """Of ``a / b``: enough for ``SIGNIFICANT_MIN`` digits by the first of each operand's digits of base 10000."""
    weight, first = first_digit(a)
    weight_below, first_below = first_digit(b)
    ahead = weight - weight_below - (first <= first_below)
    scale_ = max(SIGNIFICANT_MIN - 4 * ahead, decimals(a), decimals(b), 0)
    return min(scale_, CHOSEN_SCALE_MAX)


def first_digit(value: Decimal) -> tuple[int, int]:
    """The first digit of base 10000 that isn't zero, behind its weight: the power of 10000 that it counts."""
    if not value:
        return 0, 0
    weight, over = divmod(value.adjusted(), 4)
    return weight, abs(int(value.scaleb(-4 * weight, EXACT)))


def decimals(value: Decimal) -> int:
    """The display scale."""
    return max(-value.as_tuple().exponent, 0)


def quotient(a: Decimal, b: Decimal, scale_: int) -> Decimal:
    """``a / b`` with ``scale_`` digits behind the point, halves away from zero; ``b`` isn't zero."""
    digits = max(a.adjusted() - b.adjusted() + scale_ + 4, 2)
    # Rounded so that rounding once more can't be misled: a last digit of 0 or 5 is exact.
    exact_enough = (_QUOTIENTS.get(digits) or context(digits, ROUND_05UP)).divide(a, b)
    return at_scale(exact_enough, scale_)


def int_div(a: str, b: str) -> str:
    """``div(a, b)``.  Raises ``BadText`` 22012."""
    if a in _SPECIAL or b in _SPECIAL:
        return _quotient_of_specials(a, b)
    x, y = Decimal(a), Decimal(b)
    if not y:
        raise _by_zero()
    return shown(EXACT.divide_int(x, y))


def mod(a: str, b: str) -> str:
    """``a % b``, of the sign of ``a``.  Raises ``BadText`` 22012."""
    if a in _SPECIAL or b in _SPECIAL:
        if a == NAN or b == NAN:
            return NAN
        if a in _SPECIAL:
            if signed(b) == 0:
                raise _by_zero()
            return NAN
        return a
    x, y = Decimal(a), Decimal(b)
    if not y:
        raise _by_zero()
    return shown(EXACT.remainder(x, y))


def neg(a: str) -> str:
    if a in _SPECIAL:
        return {NAN: NAN, INFINITY: NEGATIVE_INFINITY}.get(a, INFINITY)
    return a[1:] if a[0] == "-" else "-" + a if a.strip("0.") else a


def absolute(a: str) -> str:
    return a.removeprefix("-")


def sign(a: str) -> str:
    return NAN if a == NAN else str(signed(a))


# -- digits behind the point ------------------------------------------------------------------------------------------


def rounded(a: str, n: int) -> str:
    """``round(a, n)``: halves away from zero."""
    return _cut(a, n, ROUND_HALF_UP)


def truncated(a: str, n: int) -> str:
    """``trunc(a, n)``."""
    return _cut(a, n, ROUND_DOWN)


def _cut(a: str, n: int, rounding: str) -> str:
    if a in _SPECIAL:
        return a
    scale_ = max(min(n, SCALE_MAX), -WHOLE_DIGITS_MAX - 1)
    return shown(Decimal(a).quantize(unit(scale_), rounding, EXACT))


def ceiling(a: str) -> str:
    return a if a in _SPECIAL else shown(Decimal(a).to_integral_value(ROUND_CEILING, EXACT))


def floor(a: str) -> str:
    return a if a in _SPECIAL else shown(Decimal(a).to_integral_value(ROUND_FLOOR, EXACT))


def scale(a: str) -> int | None:
    return None if a in _SPECIAL else len(a.partition(".")[2])


def min_scale(a: str) -> int | None:
    return None if a in _SPECIAL else len(a.partition(".")[2].rstrip("0"))


def trim_scale(a: str) -> str:
    return a if a in _SPECIAL or "." not in a else a.rstrip("0").rstrip(".")


# -- order ------------------------------------------------------------------------------------------------------------


def compare(a: str, b: str) -> int:
    """-1, 0 or 1.  NaN equals itself and is greater than all else."""
    if a == b:
        return 0
    if a == NAN:
        return 1
    if b == NAN:
        return -1
    x, y = Decimal(a), Decimal(b)
    return -1 if x < y else 1 if x > y else 0


_KEYS_OF_SPECIALS = {NEGATIVE_INFINITY: "0", "0": "2", INFINITY: "4", NAN: "5"}
_EXPONENT_ORIGIN = 20_000
"""Makes exponents positive: from -16382 to 131072."""

_COMPLEMENT = str.maketrans("0123456789", "9876543210")
_END = "~"
"""Behind a negative number's digits: of two that begin alike, the longer one is the lesser."""


def key(text: str) -> str:
    """ASCII whose order by bytes is the order of values; equal values have equal keys.

    A class (0 to 5), and of numbers the place of the first digit in six digits and then the significant digits; both as
    their nines' complements of negative ones.
    """
    if text in _KEYS_OF_SPECIALS:
        return _KEYS_OF_SPECIALS[text]
    negative = text[0] == "-"
    whole, point, fraction = (text[1:] if negative else text).partition(".")
    if whole == "0":
        digits = fraction.lstrip("0")
        place = len(digits) - len(fraction) + _EXPONENT_ORIGIN
    else:
        digits = whole + fraction
        place = len(whole) + _EXPONENT_ORIGIN
    digits = digits.rstrip("0")
    if not digits:
        return "2"
    if negative:
        return f"1{999_999 - place:06}{digits.translate(_COMPLEMENT)}{_END}"
    return f"3{place:06}{digits}"
