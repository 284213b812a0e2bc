"""The portable residual gives what Spark gives for the same query over the same rows."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException

from controllers.arrangements.residual import compile_residual
from controllers.arrangements.tuples import NAN, schema_of, to_rows, to_table
from journal.errors import InvalidUsage
from values.types import parse_type, spark_type

pytestmark = pytest.mark.spark

TYPES = [parse_type(t) for t in ("int4", "int8", "numeric(10,2)", "float8", "text", "bool", "date")]
CHOICES = [
    [None, 0, 1, -7], [None, 5, 2**40], [None, Decimal("1.00"), Decimal("-2.35")],
    [None, 0.0, NAN, 1.5, float("inf")], [None, "", "a", "Ä", "b"], [None, True, False], [None, 0, -1, 19000],
]  # fmt: skip
LITERALS = ["1", "5", "1.00", "1.5", "a", "true", "1970-01-01"]


def expression(rng, kind):
    """A random expression of ``kind`` (a column number's type, or ``bool``) and its SQL."""
    if kind != "bool":
        if rng.random() < 0.3:
            text = rng.choice([LITERALS[kind], None])
            quoted = "NULL" if text is None else f"'{text}'"
            return ["lit", text, str(TYPES[kind])], f"CAST({quoted} AS {spark_type(TYPES[kind])})"
        if kind in (0, 1, 2) and rng.random() < 0.3:
            op = rng.choice("+-*")
            (a, sa), (b, sb) = expression(rng, rng.choice([0, 1, 2])), expression(rng, kind)
            return [op, a, b], f"({sa} {op} {sb})"
        return ["col", kind], f"c{kind}"
    pick = rng.randrange(6)
    if pick < 2:
        kind = rng.randrange(7)
        op = rng.choice(["=", "<>", "<", "<=", ">", ">="])
        (a, sa), (b, sb) = expression(rng, kind), expression(rng, kind)
        return [op, a, b], f"({sa} {op} {sb})"
    if pick == 2:
        kind = rng.randrange(7)
        parts = [expression(rng, kind) for _ in range(3)]
        return ["in", *(e for e, _ in parts)], f"({parts[0][1]} IN ({parts[1][1]}, {parts[2][1]}))"
    if pick == 3:
        kind = rng.randrange(7)
        e, s = expression(rng, kind)
        return ["is_null", e], f"({s} IS NULL)"
    if pick == 4:
        e, s = expression(rng, "bool")
        return ["not", e], f"(NOT {s})"
    op = rng.choice(["and", "or"])
    (a, sa), (b, sb) = expression(rng, "bool"), expression(rng, "bool")
    return [op, a, b], f"({sa} {op.upper()} {sb})"


def test_random_queries_agree(spark):
    rng = random.Random(11)
    rows = [tuple(rng.choice(c) for c in CHOICES) for _ in range(40)]
    spark.createDataFrame(to_table(rows, schema_of(TYPES))).createOrReplaceTempView("lookup_rows")
    counted = [(row, 1) for row in rows]
    # Many expressions in one query: columns for the projections, a filter of its own each for the conditions.
    pairs = [expression(rng, rng.choice([0, 1, 2, 3, 4, 5, 6, "bool", "bool", "bool"])) for _ in range(150)]

    def overflows(pair) -> bool:
        try:
            compile_residual(json.dumps({"project": [pair[0]]}), TYPES).run(counted)
        except InvalidUsage as error:
            assert error.sqlstate == "22003"
            return True
        return False

    failing = [p for p in pairs if overflows(p)]
    assert failing
    for _, s in failing[:3]:
        with pytest.raises(PySparkException, match="22003"):
            spark.sql(f"SELECT {s} FROM lookup_rows").toArrow()
    pairs = [p for p in pairs if p not in failing]
    residual = compile_residual(json.dumps({"filter": None, "project": [e for e, _ in pairs]}), TYPES)
    sql = ", ".join(f"{s} AS x{i}" for i, (_, s) in enumerate(pairs))
    theirs = spark.sql(f"SELECT {sql} FROM lookup_rows").toArrow()
    ours = residual.run(counted)
    for i, (e, s) in enumerate(pairs):
        assert ours.column(i).type == theirs.column(i).type, s
        assert repr(to_rows(ours.select([i]))) == repr(to_rows(theirs.select([i]))), (s, e)

    order, clauses = [], []
    for i in (4, 3, 2, 0):
        direction, nulls = rng.choice(["asc", "desc"]), rng.choice(["first", "last"])
        order.append([i, direction, nulls])
        clauses.append(f"c{i} {direction} NULLS {nulls}")
    fields = {"filter": None, "project": [["col", i] for i in range(5)], "order_by": order, "limit": 9, "offset": 3}
    theirs = spark.sql(f"SELECT c0, c1, c2, c3, c4 FROM lookup_rows ORDER BY {', '.join(clauses)} LIMIT 9 OFFSET 3")
    ours = to_rows(compile_residual(json.dumps(fields), TYPES).run(counted))
    assert [[r[i] for i in (4, 3, 2, 0)] for r in ours] == [
        [r[i] for i in (4, 3, 2, 0)] for r in to_rows(theirs.toArrow())
    ]

    calls = [["count_star"], *([f, ["col", i]] for f, i in (
        ("count", 0), ("sum", 0), ("sum", 1), ("sum", 2), ("min", 3), ("max", 3), ("min", 4), ("max", 4), ("max", 6)))]
    sql = "COUNT(*), " + ", ".join(f"{c[0]}(c{c[1][1]})" for c in calls[1:])
    for condition, where in ((None, ""), (["is_null", ["lit", "1", "int4"]], " WHERE FALSE")):
        text = json.dumps({"filter": condition, "project": [], "aggregate": calls})
        ours = compile_residual(text, TYPES).run(counted)
        theirs = spark.sql(f"SELECT {sql} FROM lookup_rows{where}").toArrow()
        assert ours.schema.types == theirs.schema.types
        assert repr(to_rows(ours)) == repr(to_rows(theirs))
