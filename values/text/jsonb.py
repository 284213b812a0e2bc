"""``jsonb`` as text in Postgres's own form, and what its operators give.  Pure.

Promises: :func:`read_jsonb` gives the text that Postgres shows for the same value: keys by their length and then their
bytes, of a repeated key the last one, numbers as ``numeric`` shows them (``1.10`` stays, ``1e3`` becomes ``1000``).
Every other function takes and gives text of that form.

Values of different texts may be equal (``1.0`` and ``1.00``): :mod:`values.jsonb_keys` says which are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from json.encoder import encode_basestring

from values.bad_text import BadText, bad_text
from values.limits import check_bytes

DEPTH_MAX = 128
"""Deepest nesting: far above what people write, far below where a recursive reader meets its stack's end."""

_DIGITS_MAX = 131_072
"""Before the point, as in Postgres's numeric."""
_SCALE_MAX = 16_383

STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
"""One in JSON, from its first quote: without an end it goes to the end of the text, which is none then.  So none is
looked through twice: of one that never ends, each quote in it could begin another (20 KB of them took seconds)."""
_STRING = re.compile(STRING, re.DOTALL)

_EXPONENT = re.compile(r"\d[eE][+-]?0*(\d+)")


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _no_constant(name: str) -> object:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_no_constant)


_BLANKS, _ASCII = rb"[ \t\n\r]*", rb'[^"\\\0-\x1f\x80-\xff]*'
_PLAIN = re.compile(
    rb'%b(?:\{%b"(%b)"%b:%b)?(-?[1-9][0-9]{0,17}|0|"%b")%b(\}?)%b'
    % (_BLANKS, _BLANKS, _ASCII, _BLANKS, _BLANKS, _ASCII, _BLANKS, _BLANKS)
)
"""One value that is shown as it is written, or an object of one such."""

_LINES = re.compile(
    rb'(?:(?:\{"%b": ?(?:-?[1-9][0-9]{0,17}|0|"%b")\}|-?[1-9][0-9]{0,17}|0|"%b")\n)*+' % (_ASCII, _ASCII, _ASCII)
)
"""Of such, without blanks that nobody writes, each with a newline behind it."""
_NAME = re.compile(rb'^(\{"[^"]*":) ?', re.MULTILINE)


def plain_jsonb(data: bytes) -> str | None:
    """What :func:`read_jsonb` gives of ``data``, where that can be seen at a glance, as of most keys of messages."""
    found = _PLAIN.fullmatch(data)
    if found is None:
        return None
    name, value, closed = found.groups()
    if bool(closed) is (name is None):
        return None
    return (value if name is None else b'{"%b": %b}' % (name, value)).decode()


def plain_jsonbs(many: Sequence[bytes]) -> list[str] | None:
    """What :func:`plain_jsonb` gives of each, a tenth of the time each; ``None`` where one of them is in doubt."""
    lines = b"\n".join([*many, b""])
    if lines.count(b"\n") != len(many) or _LINES.fullmatch(lines) is None:
        return None
    return _NAME.sub(rb"\1 ", lines).decode().split("\n")[:-1]


def read_jsonb(text: str) -> str:
    """The normal form of any JSON text.  Raises ``BadText`` 22P02, 22P05 (U+0000), 22003, 54001 (too deep) or
    54000 (too long where its numbers are written out)."""
    return of_json(parse_jsonb(text))


def parse_jsonb(text: str) -> object:
    """What :func:`of_json` takes, of any JSON text.  Raises ``BadText`` as :func:`read_jsonb` does."""
    if too_deep(text):
        raise BadText(f"jsonb nested deeper than {DEPTH_MAX}", "54001")
    check_bytes(digits_meant(text))
    try:
        return _DECODER.decode(text)
    except ValueError:
        raise bad_text("json", text) from None


def of_json(value: object) -> str:
    """The normal form of a parsed JSON value whose numbers are still text of a ``str`` subclass.

    Raises ``BadText`` as :func:`read_jsonb` does.
    """
    try:
        shown = _show(value)
        shown.encode()
    except UnicodeEncodeError:
        raise BadText("text holds half of a surrogate pair") from None
    return shown


def too_deep(text: str) -> bool:
    """Whether it nests deeper than ``DEPTH_MAX`` outside of strings.  For text that is not JSON it may be wrong, and is
    the same for everyone."""
    if text.count("{") + text.count("[") <= DEPTH_MAX:
        return False
    depth = deepest = 0
    for char in _STRING.sub("", text):
        if char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]":
            depth -= 1
    return deepest > DEPTH_MAX


def digits_meant(text: str) -> int:
    """How many digits the exponents of its numbers stand for.  For text that is not JSON it may be wrong."""
    return _zeros(text) and _zeros(_STRING.sub("", text))


def _zeros(text: str) -> int:
    """How many digits its numbers' exponents stand for: ``1e131071`` is shown in full, and eight bytes of text."""
    exponents = _EXPONENT.findall(text) if "e" in text or "E" in text else ()
    return sum(min(int(each[:7]), _DIGITS_MAX) for each in exponents)


def _show(value: object) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value) if type(value) is str else _number(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_show, value)) + "]"
    keys = list(value) if len(value) == 1 else sorted(value, key=lambda key: (len(raw := key.encode()), raw))
    return "{" + ", ".join(f"{_text(key)}: {_show(value[key])}" for key in keys) + "}"


def _text(value: str) -> str:
    if "\0" in value:
        raise BadText("unsupported Unicode escape sequence: \\u0000 cannot be converted to text", "22P05")
    return encode_basestring(value)  # as ``json.dumps`` has it, which makes an encoder first


def _number(text: str) -> str:
    if text.isdigit() and text.isascii() and len(text) <= _DIGITS_MAX:
        return str(text)  # as most are; JSON has no zeros before the others
    digits, _, exponent = text.lower().partition("e")
    if len(exponent) > 7 or len(digits) > _DIGITS_MAX + _SCALE_MAX:
        raise BadText("value overflows numeric format", "22003")
    number = Decimal(text)
    if number.adjusted() >= _DIGITS_MAX or -number.as_tuple().exponent > _SCALE_MAX:
        raise BadText("value overflows numeric format", "22003")
    shown = format(number, "f")
    return shown if number else shown.lstrip("-")


# --- what the operators give -----------------------------------------------------------------------------------------

_NOTHING = object()


def _load(text: str) -> object:
    return _DECODER.decode(text)


def _shown(value: object) -> str | None:
    return None if value is _NOTHING else _show(value)


def _as_text(value: object) -> str | None:
    """As ``->>`` shows it: a string without its quotes, and JSON's null is NULL."""
    if value is _NOTHING or value is None:
        return None
    return value if type(value) is str else _show(value)


def _field(value: object, key: str) -> object:
    return value.get(key, _NOTHING) if isinstance(value, dict) else _NOTHING


def _item(value: object, index: int) -> object:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        return _NOTHING
    return value[index]


def _walk(value: object, path: Sequence[str | None]) -> object:
    for step in path:
        if step is None:
            return _NOTHING
        if isinstance(value, list):
            if not re.fullmatch(r"\s*[+-]?\d{1,9}", step):
                return _NOTHING
            value = _item(value, int(step))
        else:
            value = _field(value, step)
        if value is _NOTHING:
            return _NOTHING
    return value


def is_number(value: object) -> bool:
    """Whether a part of what was loaded is a number, which is its text."""
    return isinstance(value, _Number)


load, show, as_string = _load, _show, _text
"""For what makes other values of these (:mod:`values.text.jsonb_changes`)."""


def field(text: str, key: str) -> str | None:
    """``text -> key``."""
    return _shown(_field(_load(text), key))


def field_text(text: str, key: str) -> str | None:
    """``text ->> key``."""
    return _as_text(_field(_load(text), key))


def item(text: str, index: int) -> str | None:
    """``text -> index``; a negative one counts from the end.  What is neither array nor object is its own only item."""
    return _shown(_item(_listed(text), index))


def item_text(text: str, index: int) -> str | None:
    """``text ->> index``."""
    return _as_text(_item(_listed(text), index))


def _listed(text: str) -> object:
    found = _load(text)
    return found if isinstance(found, (list, dict)) else [found]


def path(text: str, steps: Sequence[str | None]) -> str | None:
    """``text #> steps``."""
    return _shown(_walk(_load(text), steps))


def path_text(text: str, steps: Sequence[str | None]) -> str | None:
    """``text #>> steps``."""
    return _as_text(_walk(_load(text), steps))


def contains(left: str, right: str) -> bool:
    """``left @> right``."""
    a, b = _load(left), _load(right)
    if isinstance(a, list) and not isinstance(b, (list, dict)):
        return any(_equal(each, b) for each in a)
    return _contains(a, b)


def _contains(a: object, b: object) -> bool:
    if isinstance(b, dict):
        return isinstance(a, dict) and all(key in a and _contains(a[key], b[key]) for key in b)
    if isinstance(b, list):
        return isinstance(a, list) and all(any(_contains(x, y) for x in a) for y in b)
    return _equal(a, b)


def _equal(a: object, b: object) -> bool:
    if isinstance(a, (dict, list)) or type(a) is not type(b):
        return False
    return Decimal(a) == Decimal(b) if isinstance(a, _Number) else a == b


def has_key(text: str, key: str) -> bool:
    """``text ? key``: a key of an object, a string in an array, or the string itself."""
    value = _load(text)
    if isinstance(value, dict):
        return key in value
    return any(type(each) is str and each == key for each in (value if isinstance(value, list) else [value]))


def has_any_key(text: str, keys: Sequence[str | None]) -> bool:
    """``text ?| keys``."""
    return any(key is not None and has_key(text, key) for key in keys)


def has_all_keys(text: str, keys: Sequence[str | None]) -> bool:
    """``text ?& keys``."""
    return all(key is None or has_key(text, key) for key in keys)


def kind(text: str) -> str:
    """``jsonb_typeof``."""
    value = _load(text)
    if isinstance(value, str):
        return "string" if type(value) is str else "number"
    if isinstance(value, bool):
        return "boolean"
    return {dict: "object", list: "array", type(None): "null"}[type(value)]


def length(text: str) -> int:
    """``jsonb_array_length``.  Raises ``BadText`` 22023 where it is no array."""
    value = _load(text)
    if isinstance(value, list):
        return len(value)
    raise BadText(f"cannot get array length of {'an object' if isinstance(value, dict) else 'a scalar'}", "22023")


_KINDS = {
    "null": "null", "object": "object", "array": "array", "string": "string", "number": "numeric", "boolean": "boolean",
}  # fmt: skip


def number(text: str) -> str:
    """The text of a number, for a cast to a type of numbers.  Raises ``BadText`` 22023 of anything else."""
    return _scalar(text, "number", "numeric")


def boolean(text: str) -> bool:
    """The boolean.  Raises ``BadText`` 22023 of anything else."""
    return _scalar(text, "boolean", "boolean") == "true"


def _scalar(text: str, wanted: str, shown: str) -> str:
    found = kind(text)
    if found != wanted:
        raise BadText(f"cannot cast jsonb {_KINDS[found]} to type {shown}", "22023")
    return text
