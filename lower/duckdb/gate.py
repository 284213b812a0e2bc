"""What DuckDB is handed is one SELECT, in which nothing that is printed without quotes can be anything but a word.

Promises: :func:`plain_words` holds that of a tree whose functions the binder chose, before it is printed;
:func:`one_select` asks the engine's own parser what the text means, so no printer's mistake and no name that a client
made up comes between.
"""

from __future__ import annotations

import re

import duckdb
from sqlglot import exp

from journal.errors import InvalidUsage
from sql.trees.errors import no_function, syntax


def one_select(cursor: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """The one statement of ``text``.  42601 where the engine sees any other number of them, or none that reads."""
    found = cursor.extract_statements(text)
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise syntax(None, message="cannot insert multiple commands into a prepared statement")
    return found[0]


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
