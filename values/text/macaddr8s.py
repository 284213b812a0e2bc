"""MAC addresses of eight bytes as their text in lower case with colons, which sorts as the bytes do.  Pure."""

from __future__ import annotations

import re

from values.bad_text import BadText, bad_text

_PAIRS = re.compile(rb"(?:[0-9a-f]{2}[:.-]?)*+", re.IGNORECASE)
_SIGNS, _BLANKS = b":.-", b" \t\n\v\f\r"
_MIDDLE = b"\xff\xfe"
"""What stands in the middle of an address that was made of one of six bytes."""


def read_macaddr8(text: str) -> str:
    """The address in any form that Postgres takes, also one of six bytes.  Raises ``BadText`` 22P02.

    As ``macaddr8_in`` does: digits come in pairs, behind each of which the same sign may stand, and one character that
    is left over at the end is not looked at.
    """
    given = text.encode().lstrip(_BLANKS)
    pairs = _PAIRS.match(given)[0]
    digits, signs = pairs.translate(None, _SIGNS), set(pairs) & set(_SIGNS)
    rest = given[len(pairs) :]
    if (len(rest) > 1 and rest.strip(_BLANKS)) or len(digits) not in (12, 16) or len(signs) > 1:
        raise bad_text("macaddr8", text)
    return _whole(bytes.fromhex(digits.decode()))


def _whole(address: bytes) -> str:
    return (address if len(address) == 8 else address[:3] + _MIDDLE + address[3:]).hex(":")


def of_macaddr(address: str) -> str:
    """An address of six bytes as one of eight."""
    return _whole(send_macaddr8(address))


def to_macaddr(address: str) -> str:
    """An address that was made of one of six bytes as that one.  Raises ``BadText`` 22003 for any other."""
    found = send_macaddr8(address)
    if found[3:5] != _MIDDLE:
        raise BadText("macaddr8 data out of range to convert to macaddr", "22003")
    return (found[:3] + found[5:]).hex(":")


def with_seventh_bit(address: str) -> str:
    """With the bit that says that it is of one's own making, as an address of IPv6 has it."""
    first, rest = address[:2], address[2:]
    return f"{int(first, 16) | 2:02x}{rest}"


def send_macaddr8(address: str) -> bytes:
    return bytes.fromhex(address.replace(":", ""))


def receive_macaddr8(raw: bytes) -> str:
    return raw.hex(":")
