"""What is printed without quotes is a word or a number, whoever made the tree: the part of each engine's gate that is
the same for all.  Pure.

Printers are not ours, and put what is no name and no text into a query as it stands.
"""

from __future__ import annotations

import re

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.errors import no_function, syntax

_WORD = re.compile(r"\w+")
_WORDS = re.compile(r"[\w ]*")
_NUMBER = re.compile(r"-?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9a-fA-F]*")


def plain_words(tree: exp.Expression) -> None:
    """Nothing, where all of ``tree`` that is printed without quotes is a word or a number.

    42883 for the name of a function, 42704 for a type's, 42601 for anything else."""
    for node in tree.walk():
        if isinstance(node, exp.Identifier) and node.args.get("quoted"):
            continue
        for key, given in node.args.items():
            for value in given if isinstance(given, list) else (given,):
                if isinstance(value, str) and not _is_plain(node, key, value):
                    raise _not_plain(node, value[:63])


def _is_plain(node: exp.Expression, key: str, value: str) -> bool:
    if isinstance(node, exp.Literal):
        return bool(node.is_string or _NUMBER.fullmatch(value))
    if isinstance(node, exp.HexString):
        return bool(_HEX.fullmatch(value))
    return bool((_WORD if key == "this" else _WORDS).fullmatch(value))


def _not_plain(node: exp.Expression, value: str) -> InvalidUsage:
    if isinstance(node, exp.Anonymous):
        return no_function(f'"{value}"')
    if isinstance(node, exp.DataType):
        return InvalidUsage(f'type "{value}" does not exist', sqlstate="42704")
    return syntax(value)
