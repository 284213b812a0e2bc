"""What DuckDB is handed is one SELECT, in which nothing that is printed without quotes can be anything but a word.

Promises: :func:`plain_words` holds that of a tree whose functions the binder chose, before it is printed;
:func:`one_select` asks the engine's own parser what the text means, so no printer's mistake and no name that a client
made up comes between.
"""

from __future__ import annotations

import duckdb

from lower.plain_words import plain_words
from trees.errors import syntax

__all__ = ["one_select", "plain_words"]


def one_select(cursor: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """The one statement of ``text``.  42601 where the engine sees any other number of them, or none that reads."""
    found = cursor.extract_statements(text)
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise syntax(None, message="cannot insert multiple commands into a prepared statement")
    return found[0]
