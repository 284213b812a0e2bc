"""Spark SQL as trees: read without giving any function another meaning, printed with every name quoted.  Pure.

Promises: what :func:`text` prints of what :func:`parse` read says the same to Spark; a name of a tree is that name and
a literal is that literal, whatever characters they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ParseError

from lower.spark.lowering import SparkPrinted
from trees.budget import bounded, surveyed

_AGGREGATES = {name for f in exp.ALL_FUNCTIONS if issubclass(f, exp.AggFunc) for name in f.sql_names()}


def _as_written(self: SparkPrinted.Generator, node: exp.Expression) -> str:
    return self.function_fallback_sql(node)


def _within_group(self: SparkPrinted.Generator, node: exp.WithinGroup) -> str:
    return f"{self.sql(node, 'this')} WITHIN GROUP ({self.sql(node, 'expression').strip()})"


class SparkText(SparkPrinted):
    """Functions stay calls of a name, but for aggregates: DISTINCT and FILTER stand in and around them."""

    NORMALIZE_NOT_NULL = False

    class Parser(SparkPrinted.Parser):
        FUNCTIONS = {name: build for name, build in SparkPrinted.Parser.FUNCTIONS.items() if name in _AGGREGATES}
        JOINS_HAVE_EQUAL_PRECEDENCE = False  # sqlglot would write a comma as CROSS JOIN

    class Generator(SparkPrinted.Generator):
        TRANSFORMS = {
            **SparkPrinted.Generator.TRANSFORMS,
            exp.PercentileDisc: _as_written,
            exp.PercentileCont: _as_written,
            exp.WithinGroup: _within_group,
        }


DIALECT = SparkText()


def parse(sql: str) -> exp.Expression:
    """The one statement in ``sql``.  Raises ``SqlglotError``; 54001 beyond the bounds of :mod:`trees.budget`."""
    found = DIALECT.parse(sql)
    if len(found) != 1 or found[0] is None:
        raise ParseError("not one statement")
    surveyed(found[0], ())
    return found[0]


@bounded
def text(tree: exp.Expression) -> str:
    """``tree`` as Spark reads it."""
    return tree.sql(DIALECT, identify=True, comments=False)


def name(given: str) -> exp.Identifier:
    return exp.to_identifier(given, quoted=True)


def derived(query: exp.Expression, given: str | None = None, columns: Sequence[str] = ()) -> exp.Subquery:
    """``(query) AS given(columns)``; without a name where none is given."""
    alias = exp.TableAlias(this=name(given), columns=[name(c) for c in columns]) if given is not None else None
    return exp.Subquery(this=query, alias=alias)
