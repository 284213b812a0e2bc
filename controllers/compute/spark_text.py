"""The pieces that a cluster's SQL for Spark is put together of, as trees, beside what reads and prints them.  Pure.

Promises: all SQL of the compute controller is made here, from trees (:mod:`lower.spark.text`): no text is put into
another text, so nothing that a user wrote is ever looked at as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from collection.columns import DIFF
from lower.spark.text import DIALECT, derived, name, parse, text
from values.types import SqlType, spark_type

__all__ = [
    "called", "cast", "column", "derived", "diff_name", "fresh", "grouped", "name", "number", "parse", "select",
    "table", "text", "total", "union_all",
]  # fmt: skip


# -- pieces -----------------------------------------------------------------------------------------------------------


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
