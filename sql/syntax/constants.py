"""String constants: what the escapes of ``E'…'`` and ``U&'…'`` mean, and what of another system's constants is left.

A string is an :class:`exp.Literal`, whatever it looked like in the statement (:mod:`sql.syntax.plain_tokens`), and
takes its type from its context as every untyped literal does.  Bit strings (``B'101'``, ``X'1F'``) are refused: there
is no type for them, and reading ``X'1F'`` as bytes, as Spark does, would be a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.errors import syntax, unsupported

_STRINGS = (exp.BitString, exp.HexString, exp.National)
_SIGNS = (exp.Parameter, exp.Placeholder, exp.SessionParameter)

CONSTANTS = (*_STRINGS, *_SIGNS)


def plain_constants(root: exp.Expression, nodes: Sequence[exp.Expression]) -> exp.Expression:
    """``root`` with ``N'…'`` as what it is.  0A000 for bit strings, 42601 for other systems' parameters (``:x``, ``?``,
    ``%s``) and for ``$n`` where a name has to be.

    ``nodes``: all in it of :data:`CONSTANTS`, and any others.
    """
    for node in nodes:
        if isinstance(node, _SIGNS):
            _check_parameter(node)
        if not isinstance(node, _STRINGS):
            continue
        if not isinstance(node, exp.National):
            raise unsupported("a bit string", hint="bytes are written '\\x1f'::bytea")
        made = exp.Cast(this=exp.Literal.string(node.name), to=exp.DataType(this=exp.DType.BPCHAR))  # ``N'…'``
        if node is root:
            return made
        node.replace(made)
    return root


_ESCAPED = re.compile(
    r"\\([0-7]{1,3})|\\x([0-9a-fA-F]{1,2})|\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|\\(.)|('')|([^\\']+)", re.S
)
_SIGN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NO_UNICODE = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX"


def escaped(inner: str) -> str:
    """The text of ``E'inner'``.  Its octal and hexadecimal escapes are bytes, as in Postgres: 22021 where these are no
    UTF-8, or one is zero.  22025 for an unfinished ``\\u``, 42601 for a number that is no character."""
    if "\\" not in inner:
        return inner.replace("''", "'")
    made, high = bytearray(), None
    for found in _ESCAPED.finditer(inner):
        octal, hexadecimal, short, long, sign, quote, plain = found.groups()
        number = int(short or long, 16) if short or long else None
        if high is not None:
            if number is None or not 0xDC00 <= number <= 0xDFFF:
                raise syntax(None, None, "invalid Unicode surrogate pair")
            number, high = 0x10000 + ((high - 0xD800) << 10) + number - 0xDC00, None
        elif number is not None and 0xD800 <= number <= 0xDBFF:
            high = number
            continue
        elif number is not None and (number == 0 or 0xDC00 <= number <= 0xDFFF or number > 0x10FFFF):
            raise syntax(None, None, "invalid Unicode escape value")
        if number is not None:
            made += chr(number).encode()
        elif octal is not None:
            made.append(int(octal, 8) & 0xFF)
        elif hexadecimal is not None:
            made.append(int(hexadecimal, 16))
        elif sign in ("u", "U"):
            raise InvalidUsage("invalid Unicode escape", sqlstate="22025", hint=_NO_UNICODE)
        else:
            made += (_SIGN.get(sign, sign) if sign else "'" if quote else plain).encode()
    if high is not None:
        raise syntax(None, None, "invalid Unicode surrogate pair")
    try:
        text = made.decode()
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise InvalidUsage(f'invalid byte sequence for encoding "UTF8": 0x{wrong:02x}', sqlstate="22021") from None
    if "\0" in text:
        raise InvalidUsage('invalid byte sequence for encoding "UTF8": 0x00', sqlstate="22021")
    return text


def _check_parameter(node: exp.Expression) -> None:
    if not isinstance(node, exp.Parameter):
        raise syntax("?" if node.name in ("", "?") else f":{node.name}")
    number, parent = node.this, node.parent
    if not isinstance(number, exp.Literal) or number.is_string:
        raise syntax("$")
    named = node.arg_key == "alias" or isinstance(parent, (exp.TableAlias, exp.Table, exp.Column))
    if named or (isinstance(parent, exp.Dot) and node.arg_key == "expression"):
        raise syntax(f"${number.this}")


def unicode_text(inner: str, sign: str = "\\") -> str:
    """The text of ``U&'inner'`` (``d\\0061t\\+000061``), whose escapes begin with ``sign``.  42601 for what is none."""
    made, at, high = [], 0, None
    by = re.escape(sign)
    for found in re.finditer(f"{by}(?:({by})|\\+([0-9a-fA-F]{{6}})|([0-9a-fA-F]{{4}}))?", inner):
        between, at = inner[at : found.start()], found.end()
        digits = found[2] or found[3]
        if not found[1] and digits is None:
            raise syntax(None, None, "invalid Unicode escape")
        number = int(digits, 16) if digits else None
        if high is not None:
            if between or number is None or not 0xDC00 <= number <= 0xDFFF:
                raise syntax(None, None, "invalid Unicode surrogate pair")
            number, high = 0x10000 + ((high - 0xD800) << 10) + number - 0xDC00, None
        elif number is not None and 0xD800 <= number <= 0xDBFF:
            high = number
        elif number is not None and (number == 0 or 0xDC00 <= number <= 0xDFFF or number > 0x10FFFF):
            raise syntax(None, None, "invalid Unicode escape value")
        made += [between, "" if high is not None else sign if number is None else chr(number)]
    if high is not None:
        raise syntax(None, None, "invalid Unicode surrogate pair")
    return "".join([*made, inner[at:]])
