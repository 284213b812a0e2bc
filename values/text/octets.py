"""What is done with bytes, as Postgres does it.  Pure; ``BadText`` refuses."""

from __future__ import annotations

import base64
import hashlib
import re

from values.bad_text import BadText
from values.limits import check_bytes

_LINE = 76
"""Characters of base64 behind which a line ends."""

_BLANKS = " \n\t\r"
_DIGITS = "0123456789abcdefABCDEF"
_HEX = re.compile(r"[ \n\t\r]*(?:[0-9a-fA-F]{2}[ \n\t\r]*)*")
_HEX_BEFORE = re.compile(r"[ \n\t\r]*(?:[0-9a-fA-F]{2}[ \n\t\r]*)*+")


def encoded(value: bytes, form: str) -> str:
    """``encode(value, 'hex' | 'base64' | 'escape')``."""
    match form.lower():
        case "hex":
            check_bytes(2 * len(value))
            return value.hex()
        case "base64":
            check_bytes(len(value) * 4 // 3 + len(value) // 57)
            made = base64.b64encode(value).decode("ascii")
            return "\n".join(made[at : at + _LINE] for at in range(0, len(made), _LINE))
        case "escape":
            check_bytes(len(value) + 3 * sum(each == 0 or each > 127 for each in value) + value.count(b"\\"))
            return "".join(map(_escaped, value))
    raise _no_form(form)


def _escaped(byte: int) -> str:
    if byte == 0 or byte > 127:
        return f"\\{byte:03o}"
    return "\\\\" if byte == 92 else chr(byte)


def decoded(text: str, form: str) -> bytes:
    """``decode(text, 'hex' | 'base64' | 'escape')``."""
    match form.lower():
        case "hex":
            return _of_hex(text)
        case "base64":
            return _of_base64(text)
        case "escape":
            return _of_escape(text)
    raise _no_form(form)


def _no_form(form: str) -> BadText:
    return BadText(f'unrecognized encoding: "{form[:100]}"', "22023")


def _of_hex(text: str) -> bytes:
    """Blanks may be between two bytes, and not inside of one."""
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    rest = _HEX_BEFORE.match(text).end()
    wrong = next((each for each in text[rest : rest + 2] if each not in _DIGITS), None)
    if wrong is not None:
        raise BadText(f'invalid hexadecimal digit: "{wrong}"', "22023")
    raise BadText("invalid hexadecimal data: odd number of digits", "22023")


def _of_base64(text: str) -> bytes:
    text = text.translate({ord(each): None for each in _BLANKS})
    if found := re.search(r"[^A-Za-z0-9+/=]", text):
        raise BadText(f'invalid symbol "{found[0]}" found while decoding base64 sequence', "22023")
    bare = text.rstrip("=")
    marks = len(text) - len(bare)
    if "=" in bare or marks > (-len(bare)) % 4 or (marks and len(bare) % 4 == 1):
        raise BadText('unexpected "=" while decoding base64 sequence', "22023")
    if len(text) % 4:
        raise BadText("invalid base64 end sequence", "22023")
    return base64.b64decode(text)


def _of_escape(text: str) -> bytes:
    raw, made, at = text.encode(), bytearray(), 0
    for found in re.finditer(rb"\\(?:([0-3][0-7]{2})|(\\))?", raw):
        if found[1] is None and found[2] is None:
            raise BadText("invalid input syntax for type bytea")
        made += raw[at : found.start()]
        made.append(int(found[1], 8) if found[1] else 92)
        at = found.end()
    return bytes(made + raw[at:])


def _check_place(place: int, size: int) -> None:
    if not 0 <= place < size:
        raise BadText(f"index {place} out of valid range, 0..{size - 1}", "2202E")


def get_byte(value: bytes, place: int) -> int:
    _check_place(place, len(value))
    return value[place]


def set_byte(value: bytes, place: int, new: int) -> bytes:
    _check_place(place, len(value))
    return value[:place] + bytes([new & 255]) + value[place + 1 :]


def get_bit(value: bytes, place: int) -> int:
    _check_place(place, 8 * len(value))
    return value[place // 8] >> place % 8 & 1


def set_bit(value: bytes, place: int, new: int) -> bytes:
    _check_place(place, 8 * len(value))
    if new not in (0, 1):
        raise BadText("new bit must be 0 or 1", "22023")
    at, bit = place // 8, 1 << place % 8
    return value[:at] + bytes([value[at] | bit if new else value[at] & ~bit]) + value[at + 1 :]


def bit_count(value: bytes) -> int:
    return int.from_bytes(value, "big").bit_count()


def part_from(value: bytes, first: int) -> bytes:
    """``substring(value from first)``."""
    return bytes(value[max(first - 1, 0) :])


def part(value: bytes, first: int, count: int) -> bytes:
    """``substring(value from first for count)``; what is before the first byte counts."""
    if count < 0:
        raise BadText("negative substring length not allowed", "22011")
    return bytes(value[max(first - 1, 0) : max(first - 1 + count, 0)])


def overlaid(value: bytes, new: bytes, first: int, count: int) -> bytes:
    """``overlay(value placing new from first for count)``."""
    if first <= 0:
        raise BadText("negative substring length not allowed", "22011")
    check_bytes(len(value) + len(new))
    return value[: first - 1] + new + value[max(first - 1 + count, 0) :]


def place_of(value: bytes, wanted: bytes) -> int:
    """``position(wanted in value)``."""
    return value.find(wanted) + 1


def trimmed(value: bytes, these: bytes) -> bytes:
    return bytes(value).strip(these) if these else bytes(value)


def trimmed_left(value: bytes, these: bytes) -> bytes:
    return bytes(value).lstrip(these) if these else bytes(value)


def trimmed_right(value: bytes, these: bytes) -> bytes:
    return bytes(value).rstrip(these) if these else bytes(value)


def sha224(value: bytes) -> bytes:
    return hashlib.sha224(value).digest()


def sha384(value: bytes) -> bytes:
    return hashlib.sha384(value).digest()


def sha512(value: bytes) -> bytes:
    return hashlib.sha512(value).digest()


_ENCODINGS = {
    "utf8": "utf-8", "unicode": "utf-8", "latin1": "latin-1", "iso88591": "latin-1", "latin2": "iso8859-2",
    "iso88592": "iso8859-2", "latin9": "iso8859-15", "iso885915": "iso8859-15", "win1251": "cp1251",
    "win1252": "cp1252", "koi8r": "koi8-r", "koi8": "koi8-r",
}  # fmt: skip
"""By the letters and digits of Postgres's names, those that Python has just as Postgres does."""


def _encoding(name: str, which: str) -> str:
    found = _ENCODINGS.get(re.sub(r"[^a-z0-9]", "", name.lower()))
    if found is None:
        raise BadText(f'invalid {which} encoding name "{name[:100]}"', "22023")
    return found


def converted_from(value: bytes, name: str) -> str:
    """``convert_from(value, name)``."""
    codec = _encoding(name, "source")
    try:
        made = bytes(value).decode(codec)
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{each:02x}" for each in value[error.start : error.start + 4])
        raise BadText(f'invalid byte sequence for encoding "{name[:30].upper()}": {shown}', "22021") from None
    if "\0" in made:
        raise BadText(f'invalid byte sequence for encoding "{name[:30].upper()}": 0x00', "22021")
    return made


def converted_to(text: str, name: str) -> bytes:
    """``convert_to(text, name)``."""
    try:
        return text.encode(_encoding(name, "destination"))
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{each:02x}" for each in text[error.start].encode())
        told = f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in encoding "{name[:30]}"'
        raise BadText(told, "22P05") from None
