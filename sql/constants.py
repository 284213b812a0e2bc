"""Postgres's ways of writing a string constant, brought to one: ``E'…'``, ``U&'…'`` and ``$$…$$`` are plain literals.

After this a string is an :class:`exp.Literal`, whatever it looked like in the statement, and takes its type from its
context as every untyped literal does.  Bit strings (``B'101'``, ``X'1F'``) are refused: there is no type for them, and
reading ``X'1F'`` as bytes, as Spark does, would be a wrong answer.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sql.budget import surveyed
from sql.errors import syntax, unsupported

_ESCAPE = re.compile(r"\\(?:(\\)|\+([0-9a-fA-F]{6})|([0-9a-fA-F]{4})|(.?))", re.S)


_STRINGS = (exp.ByteString, exp.RawString, exp.UnicodeString, exp.BitString, exp.HexString)
_SIGNS = (exp.Parameter, exp.Placeholder, exp.SessionParameter)


def plain_constants(root: exp.Expression) -> exp.Expression:
    """``root`` with every string constant as a plain literal.  0A000 for bit strings, 42601 for a bad escape, for other
    systems' parameters (``:x``, ``?``, ``%s``) and for ``$n`` where a name has to be."""
    for node in surveyed(root, (*_STRINGS, *_SIGNS)):
        if isinstance(node, _SIGNS):
            _check_parameter(node)
            continue
        if isinstance(node, (exp.BitString, exp.HexString)):
            raise unsupported("a bit string", hint="bytes are written '\\x1f'::bytea")
        text = _unicode(node) if isinstance(node, exp.UnicodeString) else node.this
        made = exp.Literal.string(text)
        made.meta.update(node.meta)
        if node is root:
            return made
        node.replace(made)
    return root


def _check_parameter(node: exp.Expression) -> None:
    if not isinstance(node, exp.Parameter):
        raise syntax("?" if node.name in ("", "?") else f":{node.name}")
    number, parent = node.this, node.parent
    if not isinstance(number, exp.Literal) or number.is_string:
        raise syntax("$")
    named = node.arg_key == "alias" or isinstance(parent, (exp.TableAlias, exp.Table, exp.Column))
    if named or (isinstance(parent, exp.Dot) and node.arg_key == "expression"):
        raise syntax(f"${number.this}")


def _unicode(node: exp.UnicodeString) -> str:
    """The text of ``U&'d\\0061t\\+000061'``."""
    if node.args.get("escape"):
        raise unsupported("UESCAPE")

    def character(found: re.Match[str]) -> str:
        if found[1]:
            return "\\"
        digits = found[2] or found[3]
        if digits is None:
            raise syntax(None, None, "invalid Unicode escape")
        number = int(digits, 16)
        if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
            raise syntax(None, None, "invalid Unicode escape value")
        return chr(number)

    return _ESCAPE.sub(character, node.this)
