"""A planned query's text, with its relations named by item id, as a text that Spark can run.  Pure."""

from __future__ import annotations

from collections.abc import Collection

import sqlglot
from sqlglot import exp

from journal.errors import InvalidUsage
from sql.budget import bounded
from sql.nodes import parse_spark

_ESCAPES = frozenset({"reflect", "java_method", "try_reflect"})
"""Spark functions that call any static Java method."""


def parse(sql: str) -> exp.Expression:
    """Raises ``SqlglotError``; 54001 beyond the bounds of :mod:`sql.budget`."""
    return parse_spark(sql)


@bounded
def name_relations(sql: str, inputs: Collection[str], sources: dict[str, str]) -> str:
    """``sql`` (a query as planned) with each relation in ``inputs`` replaced by its text, nothing else touched.

    Raises ``InvalidUsage`` for a text that is no query, reads anything but ``inputs`` (Spark would read files by path)
    or calls what runs code in Spark's process.
    """
    try:
        tree = parse(sql)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidUsage("the query cannot be read", sqlstate="42601", detail=str(error)[:500]) from error
    if not isinstance(tree, exp.Query):
        raise InvalidUsage("only a query can be read from", sqlstate="42601", detail=f"it is {tree.key}")
    for function in tree.find_all(exp.Anonymous):
        if function.name.lower() in _ESCAPES:
            raise InvalidUsage(f"permission denied for function {function.name}", sqlstate="42501")
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    found = []
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or (table.name in own and not table.db):
            continue
        if table.name not in inputs or table.db:
            raise InvalidUsage(f"relation {table.sql('spark')} is not among the query's inputs", sqlstate="42P01")
        at = table.this.meta
        alias = "" if table.alias else f" AS {table.this.sql('spark')}"
        found.append((at["start"], at["end"] + 1, sources[table.name] + alias))
    for start, end, text in sorted(found, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql
