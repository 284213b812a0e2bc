"""Numbers of bytes as Postgres shows them to people, and reads them.  Pure."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from values.bad_text import BadText, cut_short

_UNITS = (("bytes", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50))
"""And by how many bits a number of bytes is moved to be in it."""

_BYTES_MAX = 10 * 1024
"""So many are no longer shown as bytes."""

_HALVES_MAX = 20 * 1024 - 1
"""So many halves of a unit are shown in the next one."""


def pretty(size: int) -> str:
    """``pg_size_pretty(bigint)``: in the smallest unit in which it is less than 10240, the half of one away from 0."""
    return f"{size} bytes" if abs(size) < _BYTES_MAX else _in_a_unit(size)


def pretty_numeric(size: str) -> str:
    """The same of a numeric, which is given as its text."""
    number = Decimal(size)
    if not number.is_finite():
        return f"{size} {_UNITS[-1][0]}"
    return f"{size} bytes" if number.copy_abs() < _BYTES_MAX else _in_a_unit(int(number))


def _in_a_unit(size: int) -> str:
    """What is less than a half of the unit is cut off first, so that there is one rounding."""
    for unit, bits in _UNITS[1:]:
        halves, name = abs(size) >> (bits - 1), unit
        if halves < _HALVES_MAX:
            break
    return f"{'-' if size < 0 else ''}{(halves + 1) // 2} {name}"


_BLANKS = r"[ \t\n\r\f\v]*"
_SAID = re.compile(
    rf"{_BLANKS}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?){_BLANKS}([^ \t\n\r\f\v]*){_BLANKS}"
)
_BITS = {unit.lower(): bits for unit, bits in _UNITS} | {"": 0}

_EXPONENT_DIGITS = 6
"""Of an exponent that a numeric may have."""

_ADJUSTED_MAX = 20
"""Places before the point that no bigint has."""


def read(text: str) -> int:
    """``pg_size_bytes(text)``: a number with a unit behind it, the half of a byte away from 0.  22023, 22003."""
    said = _SAID.fullmatch(text)
    bits = _BITS.get(said[3].lower()) if said is not None else None
    if said is None or bits is None:
        raise BadText(f'invalid size: "{cut_short(text)}"', "22023")
    if len((said[2] or "").lstrip("+-0")) > _EXPONENT_DIGITS:
        raise BadText("value overflows numeric format", "22003")
    number = Decimal(said[1])
    if number and number.adjusted() > _ADJUSTED_MAX:
        raise BadText("bigint out of range", "22003")
    if number.adjusted() < -_ADJUSTED_MAX:
        return 0
    exactly = Context(prec=len(text) + 2 * _ADJUSTED_MAX)
    found = int(exactly.multiply(number, Decimal(1 << bits)).to_integral_value(ROUND_HALF_UP, exactly))
    if not -(1 << 63) <= found < 1 << 63:
        raise BadText("bigint out of range", "22003")
    return found
