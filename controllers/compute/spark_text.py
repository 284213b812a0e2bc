"""Spark SQL as trees: read without giving any function another meaning, printed with every name quoted.  Pure.

Promises: what :func:`text` prints of what :func:`parse` read says the same to Spark; a name of a tree is that name and
a literal is that literal, whatever characters they are made of.  All SQL of the compute controller is made here, from
trees: no text is put into another text, so nothing that a user wrote is ever looked at as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.errors import ParseError

from collection.columns import DIFF
from lower.spark.lowering import SparkPrinted
from trees.budget import bounded, surveyed
from values.types import SqlType, spark_type

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


# -- pieces -----------------------------------------------------------------------------------------------------------


def name(given: str) -> exp.Identifier:
    return exp.to_identifier(given, quoted=True)


def column(given: str) -> exp.Column:
    return exp.Column(this=name(given))


def called(tree: exp.Expression, given: str) -> exp.Alias:
    """``tree AS given``."""
    return exp.Alias(this=tree, alias=name(given))


def cast(tree: exp.Expression, sql_type: SqlType, given: str) -> exp.Alias:
    """``CAST(tree AS type) AS given``."""
    return called(exp.Cast(this=tree, to=_type(spark_type(sql_type))), given)


def number(value: int) -> exp.Expression:
    """``value`` as a BIGINT, which a bare literal is not."""
    literal = exp.Literal.number(abs(value))
    return exp.Cast(this=exp.Neg(this=literal) if value < 0 else literal, to=_type("BIGINT"))


def _type(spark: str) -> exp.DataType:
    return exp.DataType.build(spark, dialect=DIALECT)


def total(given: str) -> exp.Sum:
    """``SUM(given)``."""
    return exp.Sum(this=column(given))


def select(outputs: Iterable[exp.Expression], source: exp.Expression | None = None,
           where: exp.Expression | None = None) -> exp.Select:  # fmt: skip
    made = exp.Select(expressions=list(outputs))
    if source is not None:
        made.set("from_", exp.From(this=source))
    if where is not None:
        made.set("where", exp.Where(this=where))
    return made


def table(given: str) -> exp.Table:
    return exp.Table(this=name(given))


def derived(query: exp.Expression, given: str | None = None, columns: Sequence[str] = ()) -> exp.Subquery:
    """``(query) AS given(columns)``; without a name where none is given."""
    alias = exp.TableAlias(this=name(given), columns=[name(c) for c in columns]) if given is not None else None
    return exp.Subquery(this=query, alias=alias)


def union_all(queries: Sequence[exp.Expression]) -> exp.Expression:
    """Their UNION ALL, as a tree no deeper than their number's logarithm."""
    if len(queries) == 1:
        return queries[0]
    half = len(queries) // 2
    left, right = union_all(queries[:half]), union_all(queries[half:])
    return exp.Union(this=left, expression=derived(right) if isinstance(right, exp.Union) else right, distinct=False)


def grouped(query: exp.Select, keys: Sequence[str], having: exp.Expression | None = None) -> exp.Select:
    """``query GROUP BY keys HAVING having``."""
    if keys:
        query.set("group", exp.Group(expressions=[column(key) for key in keys]))
    if having is not None:
        query.set("having", exp.Having(this=having))
    return query


def fresh(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, or what is longer until nothing in ``taken`` is called so."""
    names = set(taken)
    while wanted in names:
        wanted += "_"
    return wanted


def diff_name(taken: Iterable[str]) -> str:
    """What a column of diffs is called among columns called ``taken``."""
    return fresh(DIFF, taken)
