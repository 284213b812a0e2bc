"""A planned query, its relations named by item id, as a query that Spark can run: the last gate before Spark.  Pure.

Promises: what comes out reads nothing but what is put in its relations' places, and calls nothing that reaches Spark's
process, its files or its settings, whoever made the text.  Relations are found as nodes of the tree and by SQL's rules
of which name means what; the query's own WITH queries get names of ours, so none can be in the place of a relation, or
of something inside what is put in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlglot
from sqlglot import exp

from controllers.compute.spark_text import derived, parse, text
from journal.errors import InvalidUsage
from sql.binding.ctes import rename_ctes
from sql.forms.spark_functions import LET_THROUGH, REACHING
from sql.trees.budget import bounded

_WHERE = {"this", "alias", "joins", "laterals"}
"""What a relation in FROM may carry.  (A sample, a version or a pivot reads it in a way that nobody planned.)"""


@bounded
def name_relations(sql: str, inputs: Collection[str], sources: Mapping[str, exp.Expression]) -> exp.Expression:
    """The query ``sql`` (as planned) with each relation in ``inputs`` replaced by its query, nothing else touched.

    Raises ``InvalidUsage`` for a text that is no query, reads anything but ``inputs`` (Spark would read files by path)
    or calls what is no function of its arguments.
    """
    try:
        tree = parse(sql)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidUsage("the query cannot be read", sqlstate="42601", detail=str(error)[:500]) from error
    if not isinstance(tree, exp.Query):
        raise InvalidUsage("only a query can be read from", sqlstate="42601", detail=f"it is {tree.key}")
    holder = exp.Paren(this=tree)
    for node in holder.walk():
        if isinstance(node, exp.Func) and (called := refused(node)) is not None:
            if called.lower() in REACHING:
                raise InvalidUsage(f"permission denied for function {called}", sqlstate="42501")
            raise InvalidUsage(f"function {called.lower()} does not exist", sqlstate="42883")
        if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.Hint)):
            raise InvalidUsage("the query cannot be read", sqlstate="42601", detail=f"it has a {node.key}")
    for table in rename_ctes(holder, lambda identifier: identifier.name, lambda n: f"w{n}"):
        if not isinstance(table.this, exp.Identifier) or table.name not in inputs or table.db:
            raise InvalidUsage(f"relation {text(table)} is not among the query's inputs", sqlstate="42P01")
        if more := {key for key, value in table.args.items() if value} - _WHERE:
            raise InvalidUsage(f"relation {table.name} is read with {min(more)}", sqlstate="0A000")
        filled = derived(sources[table.name].copy(), table.name)
        for key in ("alias", "joins", "laterals"):
            if table.args.get(key):
                filled.set(key, table.args[key])
        table.replace(filled)
    return holder.this


def refused(node: exp.Func) -> str | None:
    """The name of a function that is not let through; ``None`` for one that is."""
    if isinstance(node, exp.Anonymous):
        return None if node.name.lower() in LET_THROUGH else node.name
    names = [name.lower() for name in node.sql_names()]
    return None if any(name in LET_THROUGH for name in names) else names[0]
