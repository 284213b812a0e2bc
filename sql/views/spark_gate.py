"""A query over relations by their ids, as one that Spark can run: the last gate before Spark.  Pure.

Promises: what comes out reads nothing but what is put in its relations' places, and calls nothing that reaches Spark's
process, its files or its settings, whoever made the plan or the text.  What is printed without quotes is a word or a
number, so no name of a plan says anything but itself.  WITH queries get names of ours, so none can be in the place of a
relation, or of something inside what is put in its place.

A plan is looked at twice: itself, for what it reads and calls, and the tree in Spark's words that the text is printed
of (:func:`over_plan`).  Of views that the catalog knows as Spark's text alone that is read (:func:`name_relations`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlglot
from sqlglot import exp

from journal.errors import InvalidUsage
from lower.plain_words import plain_words
from lower.spark.functions import LET_THROUGH, NODES_OF_FORMS, REACHING
from lower.spark.text import derived, parse, text
from plan import relations as r
from plan import scalars as s
from plan.calls import unknown
from plan.nodes import walk
from sql.binding.ctes import rename_ctes
from trees.budget import bounded, surveyed

_WHERE = {"this", "alias", "joins", "laterals"}
"""What a relation in FROM may carry.  (A sample, a version or a pivot reads it in a way that nobody planned.)"""


@bounded
def over_plan(query: r.Query, tree: exp.Expression, sources: Mapping[str, exp.Expression]) -> exp.Expression:
    """``query`` over ``sources``, which are queries for the relations that it reads.  ``tree`` is ``query`` in Spark's
    words; it is used up.

    Raises ``InvalidUsage`` for what reads anything else, calls what is no function of its arguments, or has something
    that nobody has given a value.
    """
    for node in walk(query.relation):
        if isinstance(node, r.Get) and node.item_id not in sources:
            raise _no_input(text(exp.to_identifier(node.item_id, quoted=True)))
        if (called := unknown(node)) is not None:
            raise _no_function(called)
        if isinstance(node, s.Parameter):
            raise _unread("it has a parameter")
    surveyed(tree, ())
    plain_words(tree)
    return _over(tree, sources.keys(), sources)


@bounded
def name_relations(sql: str, inputs: Collection[str], sources: Mapping[str, exp.Expression]) -> exp.Expression:
    """The query ``sql`` (as planned) with each relation in ``inputs`` replaced by its query, nothing else touched.

    Raises ``InvalidUsage`` for a text that is no query, reads anything but ``inputs`` (Spark would read files by path)
    or calls what is no function of its arguments.
    """
    try:
        tree = parse(sql)
    except sqlglot.errors.SqlglotError as error:
        raise _unread(str(error)[:500]) from error
    if not isinstance(tree, exp.Query):
        raise InvalidUsage("only a query can be read from", sqlstate="42601", detail=f"it is {tree.key}")
    return _over(tree, inputs, sources)


def _over(tree: exp.Expression, inputs: Collection[str], sources: Mapping[str, exp.Expression]) -> exp.Expression:
    holder = exp.Paren(this=tree)
    for node in holder.walk():
        if isinstance(node, exp.Func) and (called := refused(node)) is not None:
            raise _no_function(called)
        if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.Hint)):
            raise _unread(f"it has a {node.key}")
    for table in rename_ctes(holder, lambda identifier: identifier.name, lambda n: f"w{n}"):
        if not isinstance(table.this, exp.Identifier) or table.name not in inputs or table.db:
            raise _no_input(text(table))
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
    return None if any(name in LET_THROUGH or name in NODES_OF_FORMS for name in names) else names[0]


def _no_function(called: str) -> InvalidUsage:
    if called.lower() in REACHING:
        return InvalidUsage(f"permission denied for function {called}", sqlstate="42501")
    return InvalidUsage(f"function {called.lower()} does not exist", sqlstate="42883")


def _no_input(called: str) -> InvalidUsage:
    return InvalidUsage(f"relation {called} is not among the query's inputs", sqlstate="42P01")


def _unread(detail: str) -> InvalidUsage:
    return InvalidUsage("the query cannot be read", sqlstate="42601", detail=detail)
