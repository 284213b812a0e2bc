"""Numerics in Postgres's binary format (``numeric_send`` and ``numeric_recv``): groups of four digits.  Pure."""

from __future__ import annotations

from decimal import Decimal
from struct import Struct

from values.bad_text import BadText

_HEAD = Struct("!HhHH")
"""How many groups there are, by which power of 10,000 the first counts, the sign, how many digits behind the point."""

_NEGATIVE = 0x4000
_SPECIAL = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
_SPECIAL_CODES = {Decimal(text).as_tuple(): code for code, text in _SPECIAL.items()}

SCALE_MAX = 0x3FFF
"""Digits behind the point, as ``numeric_recv`` takes them."""

GROUPS_MAX = 300
"""1,200 digits; far beyond what a parameter is worth computing with."""


def send_numeric(value: Decimal | str) -> bytes:
    """A decimal, or the text of a free numeric, with the digits that it has."""
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        return _HEAD.pack(0, 0, _SPECIAL_CODES[number.as_tuple()], 0)
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    width = -len(whole) % 4
    digits = "0" * width + whole + fraction + "0" * (-len(fraction) % 4)
    groups = [int(digits[at : at + 4]) for at in range(0, len(digits), 4)]
    weight = (width + len(whole)) // 4 - 1
    while groups and groups[-1] == 0:
        groups.pop()
    leading = next((at for at, group in enumerate(groups) if group), len(groups))
    groups, weight = groups[leading:], weight - leading
    sign = _NEGATIVE if number.is_signed() and groups else 0
    head = _HEAD.pack(len(groups), weight if groups else 0, sign, len(fraction))
    return head + b"".join(group.to_bytes(2, "big") for group in groups)


def receive_numeric(raw: bytes) -> Decimal:
    """Raises ``ValueError`` where the bytes are no numeric, ``BadText`` 22003 where they are too many."""
    if len(raw) < _HEAD.size:
        raise ValueError
    count, weight, sign, scale = _HEAD.unpack_from(raw)
    groups = [int.from_bytes(raw[at : at + 2], "big") for at in range(_HEAD.size, len(raw), 2)]
    if len(raw) != _HEAD.size + 2 * count or any(group > 9999 for group in groups):
        raise ValueError
    if count > GROUPS_MAX:
        raise BadText(f'value "{len(raw)} bytes" is out of range for type numeric', "22003")
    if sign in _SPECIAL:
        return Decimal(_SPECIAL[sign])
    if sign not in (0, _NEGATIVE) or scale > SCALE_MAX:
        raise ValueError
    digits = "".join([f"{group:04d}" for group in groups])
    before = 4 * (weight + 1)
    digits = "0" * -before + digits
    before = max(before, 0)
    whole, fraction = digits[:before].ljust(before, "0"), digits[before:]
    return Decimal(f"{'-' if sign else ''}{whole or 0}.{fraction[:scale].ljust(scale, '0')}")
