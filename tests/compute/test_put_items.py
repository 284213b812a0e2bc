"""``SET a[i] = v`` on Spark as in the small gear: which of them makes an item is nobody's choice."""

from __future__ import annotations

import pytest
from sqlglot import exp

from controllers.compute.failures import of_spark
from journal.errors import TidemarkError
from lower.duckdb.engine import Engine, Running
from lower.duckdb.lowering import for_duckdb, text_of
from lower.spark.lowering import spark_sql
from trees.nodes import call, cast, literal
from values.types import SqlType, parse_type

pytestmark = pytest.mark.spark

INTS, INT = parse_type("int4[]"), parse_type("int4")
TEXTS, TEXT = parse_type("text[]"), parse_type("text")

CASES = [
    (INTS, [1, 2, 3], 2, 9, [1, 9, 3]), (INTS, [1], 4, 9, [1, None, None, 9]), (INTS, [1, None], 1, None, [None, None]),
    (INTS, None, 1, 9, [9]), (INTS, [], 1, 9, [9]), (TEXTS, ["a", "é"], 3, "", ["a", "é", ""]),
    (TEXTS, None, 1, None, [None]), (INTS, [], 2, 9, "2202E"), (INTS, None, 2, 9, "2202E"), (INTS, [1], 0, 9, "2202E"),
    (INTS, [1], -1, 9, "2202E"), (INTS, [1], None, 9, "22004"), (INTS, [1], (1 << 31) - 1, 9, "54000"),
]  # fmt: skip


def on_spark(spark, tree: exp.Expression) -> object:
    try:
        return spark.sql(spark_sql(tree)).collect()[0][0]
    except Exception as error:
        found = of_spark(error)
        assert found is not None, error
        return found.sqlstate


def in_process(tree: exp.Expression) -> object:
    try:
        return Engine("64MB").ask(text_of(for_duckdb(tree, grows=False)), Running(), 1 << 20, tables={})[0][0].as_py()
    except TidemarkError as error:
        return error.sqlstate


def test_both_engines_put_items_alike(spark):
    for kind, given, at, value, wanted in CASES:
        parts = literal(given, kind), literal(at, INT), literal(value, SqlType(kind.element.name))
        tree = exp.select(exp.alias_(cast(call("TM_ARRAY_PUT", *parts), kind), "c0"))
        assert in_process(tree.copy()) == wanted, (given, at, value)
        assert on_spark(spark, tree) == wanted, (given, at, value)
