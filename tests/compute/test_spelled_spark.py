"""Spark answers a query that is spelled from its plan as it answers the tree that the binder made."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.errors import AnalysisException
from sqlglot import exp

from controllers.compute.failures import of_spark
from lower.spark.lowering import spark_sql
from sql.objects.called import Objects
from sql.views.kept_views import inline_views, planned_as
from tests.differential.ours import catalog, fill_spark
from tests.differential.sides import lines
from tests.plan.bound import bound
from tests.plan.test_whole_corpus import DIFFERENTIAL
from trees.budget import bounded

pytestmark = pytest.mark.spark

EVERYDAY = 50
"""Each so manieth statement is asked every day."""


def answer(spark, text: str, ours: bool = True) -> Counter | str:
    """The rows, whatever their order; or that it is an error, of whatever kind, or not taken by the analyser.  What is
    not in ``ours``, but as it was written, may also be what Spark stumbles over."""
    try:
        columns = spark.sql(text).toArrow().columns
    except AnalysisException as error:
        assert of_spark(error) is not None or not ours, text
        return "not taken"
    except Exception as error:
        known = of_spark(error) is not None
        assert known or not ours, text
        return "an error" if known else "not taken"
    return Counter(map(repr, zip(*(column.to_pylist() for column in columns), strict=True)))


def differing(spark, asked: list[str]) -> list[str]:
    image = catalog()
    objects = Objects.of(image)
    fill_spark(spark)
    found, compared = [], 0
    for text in asked:
        made = bound(text, image)
        if made is None or made.constant:
            continue
        tree = inline_views(made.tree, made.relations, objects)
        if rows_are_made_otherwise(tree):
            continue
        spelled = bounded(planned_as)(tree, made.params, objects)[0]
        assert spelled is not tree, text
        compared += 1
        before, after = answer(spark, spark_sql(tree), ours=False), answer(spark, spark_sql(spelled))
        # What Spark's analyser does not take of the tree a plan may say otherwise: PostgreSQL is asked of these texts.
        if before != after and before != "not taken":
            found.append(text)
    assert compared > len(asked) // 2
    return found


def rows_are_made_otherwise(tree: exp.Expression) -> bool:
    """Whether functions that make rows stand beside windows, which to Spark are of the rows made and to Postgres not,
    or beside one another: to Spark each makes rows for each row of the others, to Postgres they go in step."""
    for select in tree.find_all(exp.Select):
        makes = sum(each.this == "EXPLODE" for output in select.expressions for each in output.find_all(exp.Anonymous))
        if makes > 1 or makes and any(output.find(exp.Window) for output in select.expressions):
            return True
    return False


def corpus() -> list[str]:
    expressions = [f"select {text} as v from t" for text in lines(DIFFERENTIAL / "expressions.txt")]
    return [*lines(DIFFERENTIAL / "once_wrong.txt"), *lines(DIFFERENTIAL / "queries.txt"), *expressions]


def test_a_share_of_the_corpus_is_answered_alike(spark):
    assert differing(spark, corpus()[::EVERYDAY]) == []


@pytest.mark.long
def test_the_corpus_is_answered_alike(spark):
    assert differing(spark, corpus()) == []
