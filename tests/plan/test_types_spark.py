"""The types that :mod:`plan.calls` gives are those that Spark finds, of the corpus's expressions and of their parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from sqlglot import exp

from lower.spark.lowering import spark_sql
from plan.relations import Project
from plan.scalars import Aggregate, Call, Scalar
from plan.types import NOTHING, NUMBER, SPAN, Type, list_of, row_of
from sql.algebra.queries import plan_query
from tests.differential.ours import TABLES, catalog
from tests.differential.sides import lines
from tests.plan.bound import bound
from trees.budget import bounded
from trees.nodes import Ordinality
from values.types import SqlType, parse_type, spark_type

pytestmark = pytest.mark.spark

EXPRESSIONS = lines(Path(__file__).parents[1] / "differential" / "expressions.txt")

EVERYDAY = 80
"""Each so manieth expression is asked every day."""

REFUSED = "refused"
REFUSED_MAX = 5
"""What Spark does not take although it is planned; ``known.txt`` has them."""


@pytest.fixture(scope="module")
def spark(spark):
    for item in catalog().objects():
        if item.name in TABLES:
            kinds = {column.stored_as: spark_type(parse_type(column.type)) for column in item.columns}
            nothing = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in kinds.items())
            spark.sql(f"SELECT {nothing}").createOrReplaceTempView(item.id)
    return spark


def of_spark(kind) -> Type:
    """A type of Spark's as a plan has it."""
    match kind.typeName():
        case "array":
            return list_of(of_spark(kind.elementType))
        case "struct":
            return row_of((field.name, of_spark(field.dataType)) for field in kind.fields)
        case "decimal":
            return SqlType("numeric", kind.precision, kind.scale)
        case "void":
            return NOTHING
        case "interval":
            return SPAN
    return SqlType({
        "boolean": "bool", "byte": "int2", "short": "int2", "integer": "int4", "long": "int8", "float": "float4",
        "double": "float8", "string": "text", "binary": "bytea", "date": "date", "timestamp": "timestamptz",
        "timestamp_ntz": "timestamp",
    }[kind.typeName()])  # fmt: skip


_NO_VALUES = (exp.Identifier, exp.Var, exp.If, exp.PropertyEQ, exp.Tuple, exp.Alias, exp.Interval, Ordinality)


def parts(select: exp.Select) -> list[exp.Expression]:
    """What values there are in the outputs of ``select``, without what lambdas give."""
    found: list[exp.Expression] = []
    stack = [each.unalias() for each in select.expressions]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.Lambda, exp.Query, exp.DataType)):
            continue
        half = isinstance(node, exp.Like) and isinstance(node.parent, exp.Escape)
        if not half and not isinstance(node, _NO_VALUES):
            found.append(node)
        stack.extend(node.iter_expressions())
    return found


def differences(spark, text: str) -> list[str]:
    made = bound(f"select {text} as v from t", catalog())
    if made is None or not made.relations or made.tree.find(exp.Window, exp.AggFunc):
        return []
    select = made.tree.copy()
    values = {each.sql(): each for each in parts(select)}
    outputs = [exp.alias_(each.copy(), f"e{place}") for place, each in enumerate(values.values())]
    select.set("expressions", outputs)
    relation = bounded(lambda: plan_query(select, made.relations, made.params))().relation
    if not isinstance(relation, Project):
        return []
    try:
        schema = spark.sql(spark_sql(select)).schema
    except AnalysisException:  # Spark refuses some (``known.txt``): then it has no type either
        return [REFUSED]
    return [
        f"{_said(ours)} is {ours.type}, Spark's is {of_spark(field.dataType)}"
        for ours, field in zip(relation.outputs, schema.fields, strict=True)
        if ours.type not in (NUMBER, of_spark(field.dataType))
    ]


def _said(scalar: Scalar) -> str:
    if isinstance(scalar, (Call, Aggregate)):
        return f"{scalar.name}({', '.join(str(each.type) for each in scalar.arguments)})"
    return type(scalar).__name__


def only_alike(spark, texts: list[str]) -> None:
    said = [(difference, text) for text in texts for difference in differences(spark, text)]
    found = {difference: text for difference, text in said if difference != REFUSED}
    refused = [text for difference, text in said if difference == REFUSED]
    assert len(refused) <= REFUSED_MAX, refused
    assert not found, "\n".join(f"{difference}: {text}" for difference, text in sorted(found.items()))


def test_types_are_those_of_spark(spark):
    only_alike(spark, EXPRESSIONS[::EVERYDAY])


@pytest.mark.long
def test_all_types_are_those_of_spark(spark):
    only_alike(spark, EXPRESSIONS)
