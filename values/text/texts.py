"""What is done with texts, as Postgres does it.  Pure; ``BadText`` refuses."""

from __future__ import annotations

import re
import unicodedata

from values.bad_text import BadText
from values.limits import check_bytes

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def normalized(text: str, form: str) -> str:
    """``normalize(text, form)``."""
    _check_form(form)
    check_bytes(len(text))
    made = unicodedata.normalize(form.upper(), text)
    check_bytes(len(made))
    return made


def is_normalized(text: str, form: str) -> bool:
    """``text IS form NORMALIZED``."""
    _check_form(form)
    return unicodedata.is_normalized(form.upper(), text)


def _check_form(form: str) -> None:
    if form.upper() not in _FORMS:
        raise BadText(f"invalid normalization form: {form[:50]}", "22023")


_ESCAPE = re.compile(
    r"\\(?:(\\)|\+([0-9a-fA-F]{6})|u?([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)",
)


def unistr(text: str) -> str:
    """``unistr(text)``: ``\\0061``, ``\\+000061``, ``\\u0061`` and ``\\U00000061``."""
    made, at, high = [], 0, None
    for found in _ESCAPE.finditer(text):
        if high is not None and found.start() != at:
            raise BadText("invalid Unicode surrogate pair", "42601")
        made.append(text[at : found.start()])
        at = found.end()
        digits = found[2] or found[3] or found[4]
        if digits is None:
            if found[1] is None:
                raise BadText("invalid Unicode escape", "42601")
            if high is not None:
                raise BadText("invalid Unicode surrogate pair", "42601")
            made.append("\\")
            continue
        number = int(digits, 16)
        if number == 0 or number > 0x10FFFF:
            raise BadText(f"invalid Unicode code point: {number:04X}", "22023")
        low = 0xDC00 <= number <= 0xDFFF
        if low is not (high is not None):
            raise BadText("invalid Unicode surrogate pair", "42601")
        if 0xD800 <= number <= 0xDBFF:
            high = number
            continue
        if high is not None:
            number, high = 0x10000 + ((high - 0xD800) << 10) + number - 0xDC00, None
        made.append(chr(number))
    if high is not None:
        raise BadText("invalid Unicode surrogate pair", "42601")
    return "".join([*made, text[at:]])
