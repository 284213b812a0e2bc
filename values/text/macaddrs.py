"""MAC addresses as their text in lower case with colons, which sorts and compares as their six bytes do.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from values.bad_text import BadText, bad_text

_FORMS = [
    re.compile(form.replace("N", r"\s*([0-9a-f]++)").replace("2", r"\s*([0-9a-f]{1,2}+)") + r"\s*", re.I | re.ASCII)
    for form in ("N:N:N:N:N:N", "N-N-N-N-N-N", "222:222", "222-222", r"22\.22\.22", "22-22-22", "222222")
]
"""As ``macaddr_in`` tries them: a digit takes what it can, and gives nothing back."""


def read_macaddr(text: str) -> str:
    """The address in any form that Postgres takes.  Raises ``BadText`` 22P02, and 22003 for a part above ``ff``."""
    match = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    if match is None:
        raise bad_text("macaddr", text)
    octets = [int(each, 16) for each in match.groups()]
    if max(octets) > 0xFF:
        raise BadText(f'invalid octet value in "macaddr" value: "{text}"', "22003")
    return bytes(octets).hex(":")


def truncated(address: str) -> str:
    """Its manufacturer's part, and zeros; of an address of any length, as all below."""
    return address[:8] + ":00" * (len(address[8:]) // 3)


def inverted(address: str) -> str:
    return bytes(0xFF - each for each in bytes.fromhex(address.replace(":", ""))).hex(":")


def both(left: str, right: str) -> str:
    return _joined(int.__and__, left, right)


def either(left: str, right: str) -> str:
    return _joined(int.__or__, left, right)


def _joined(join: Callable[[int, int], int], left: str, right: str) -> str:
    pairs = zip(*(bytes.fromhex(each.replace(":", "")) for each in (left, right)), strict=True)
    return bytes(join(*pair) for pair in pairs).hex(":")


def send_macaddr(address: str) -> bytes:
    return bytes.fromhex(address.replace(":", ""))


def receive_macaddr(raw: bytes) -> str:
    return raw.hex(":")
