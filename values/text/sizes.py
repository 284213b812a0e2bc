"""Numbers of bytes as Postgres shows them to people.  Pure."""

from __future__ import annotations

from decimal import Decimal

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
