"""Whether the in-process engine has the functions that Tidemark is written in: asked once, when an adapter starts."""

from __future__ import annotations

import duckdb

from adapter.duck.calls import of_the_engine
from functions.registry import DUCKDB_CALLS
from journal.errors import InvalidUsage
from lower.duckdb.engine import SETTINGS

_GRAMMAR = frozenset({"coalesce"})
"""What is written like a function and is part of the grammar."""


def lacking() -> list[str]:
    """The functions that we call and this engine does not have."""
    with duckdb.connect(":memory:", config={**SETTINGS, "memory_limit": "256MB"}) as db:
        found = db.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return sorted((of_the_engine() | DUCKDB_CALLS) - _GRAMMAR - {name for (name,) in found})


def check_engine() -> None:
    """Raises ``InvalidUsage`` where the engine is not the one that we were written for."""
    if missing := lacking():
        raise InvalidUsage(
            f"DuckDB {duckdb.__version__} lacks functions that Tidemark is written in: {', '.join(missing)}",
            sqlstate="0A000",
            hint="install the version that requirements.lock names",
        )
