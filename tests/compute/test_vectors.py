"""Summands evaluated without Spark: the same rows as Spark's, or a refusal."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException

from collection.columns import DIFF
from controllers.arrangements.tuples import NAN, schema_of, to_rows, to_table
from controllers.changes import FEW_ROWS
from controllers.compute import vectors
from controllers.compute.expressions import NotHere
from controllers.compute.operators.prepared import Prepared
from controllers.compute.spark_text import parse, text
from controllers.compute.vectors import compile_summand, partial_groups
from tests.compute.spoken import strategy_of
from values.types import SqlType, parse_type

R = {"k": "int4", "b": "int8", "h": "int2", "s": "text", "t": "bool", "d": "date", "z": "timestamptz",
     "n": "numeric(10,2)", "f": "float8"}  # fmt: skip
S = {"k": "int8", "s": "text", "y": "int4"}
COLUMNS = {"u1": R, "u2": S}
VALUES = {
    "int4": [None, 0, 1, 2, -3, 2**31 - 1],
    "int8": [None, 1, 2, -5, 2**40],
    "int2": [None, 1, -2, 32767],
    "text": [None, "", "a", "b", "B", "ä"],
    "bool": [None, True, False],
    "date": [None, 0, 19000],
    "timestamptz": [None, 0, 1_700_000_000_000_000],
    "numeric(10,2)": [None, Decimal("1.00"), Decimal("-2.55")],
    "float8": [None, 0.0, NAN, 1.5],
}


def table_of(rng: random.Random, columns: dict[str, str], rows: int) -> pa.Table:
    types = [parse_type(t) for t in columns.values()]
    schema = schema_of(types).append(pa.field(DIFF, pa.int64()))
    made = [(*(rng.choice(VALUES[t]) for t in columns.values()), rng.choice([1, 1, 1, -1, 2])) for _ in range(rows)]
    return to_table(made, schema)


class Queries:
    """Random queries, most of them within the accepted language."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def integer(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice(["r.k", "r.b", "r.h", "(-r.b)", "1", "-2", "7", "3000000000"])
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        return self.rng.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"CAST({a} AS BIGINT)",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {a} ELSE {a} END",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {b} END", f"CAST({a} DIV 7 AS INT)", f"COALESCE({a}, {b})",
        ])  # fmt: skip

    def boolean(self, depth: int) -> str:
        operator = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        simple = [
            "r.t", "r.s IS NULL", "NOT r.t", f"r.s {operator} 'a'", f"r.d {operator} r.d", "r.z IS NOT NULL",
            "r.s IN ('a', 'B', 'ä')", "r.k BETWEEN -1 AND r.b", "TRUE",
            "r.s LIKE 'a%'", "r.s LIKE '%b'", "NOT r.s LIKE '%ä%'", "r.s LIKE 'B'", "r.t IS TRUE", "NOT r.t IS FALSE",
        ]  # fmt: skip
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice(simple)
        a, b = self.boolean(depth - 1), self.boolean(depth - 1)
        made = self.rng.choice([self.integer, self.integer, self.decimal, self.string])
        compared = f"{made(depth - 1)} {operator} {made(depth - 1)}"
        return self.rng.choice([compared, f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"])

    def decimal(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice(["r.n", "1.50", "-0.5", "CAST('-7.25' AS DECIMAL(20, 4))"])
        a = self.decimal(depth - 1)
        return self.rng.choice([
            f"CAST({self.integer(depth - 1)} AS DECIMAL({self.rng.choice(['28, 0', '30, 10', '38, 16', '22'])}))",
            f"CAST({a} AS DECIMAL({self.rng.choice(['38, 16', '12, 1', '20, 0', '10, 2'])}))",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {a} ELSE {a} END", f"COALESCE({a}, {a})",
        ])  # fmt: skip

    def string(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.2:
            return self.rng.choice(["r.s", "'1E-7'", "CAST(0.0000001 AS STRING)", "CAST(r.t AS STRING)"])
        a, b = self.string(depth - 1), self.string(depth - 1)
        return self.rng.choice([
            f"CAST({self.integer(depth - 1)} AS STRING)", f"CAST({self.decimal(depth - 1)} AS STRING)",
            f"({a} || {b})", f"CONCAT({a}, {b}, 'x')", f"UPPER(CAST({self.integer(1)} AS STRING) || 'a')",
            f"COALESCE({a}, {b})", f"TM_QUOTED_IDENTIFIER({a})", "TM_FLOAT8_SHOWN(r.f, CONCAT('99.9', ''))",
            f"ELEMENT_AT(ARRAY({a}, {b}), {self.rng.choice([1, 2])})", f"ELEMENT_AT(TM_SPLIT({a} || ',', ','), 1)",
            f"TM_JOIN_ALL(CAST(ARRAY({a}, {b}) AS ARRAY<STRING>), '-', '*')", "CAST(NULL AS STRING)",
            f"CASE WHEN NOT {a} IS NULL THEN TM_NUMBER_SHOWN(CAST({self.decimal(1)} AS STRING), '999.9') END",
            f"TM_INTERVAL_TEXT(TM_INTERVAL(CAST({self.integer(1)} AS STRING) || ' days'))",
        ])  # fmt: skip

    def linear(self) -> str:
        columns = [f"{self.integer(2)} AS i", f"{self.boolean(2)} AS q", "r.s AS s", "r.n AS n", "r.f AS f", "r.z AS z"]
        if self.rng.random() < 0.7:
            columns += [f"{self.decimal(2)} AS e", f"{self.string(2)} AS w"]
        source = self.rng.choice([
            "u1 AS r", "u1 AS r JOIN u2 AS w ON r.k = w.k", "u1 AS r JOIN u2 AS w ON w.s = r.s AND w.y > r.k",
            "(SELECT k, b, h, s, t, d, z, n, f FROM u1 WHERE k > 0) AS r",
            "(SELECT a.k, b, h, a.s, t, d, z, n, f FROM u1 AS a JOIN u2 AS c ON a.s = c.s AND a.k = c.k) AS r",
        ])  # fmt: skip
        return f"SELECT {', '.join(columns)} FROM {source} WHERE {self.boolean(2)}"


def summands_of(sql: str) -> list[Prepared]:
    strategy = strategy_of(sql, COLUMNS)
    assert strategy.name == "incremental: linear", strategy
    return [Prepared(summand.plan) for summand in strategy.change.linear.summands]


def tables_of(rng: random.Random, summand: Prepared) -> dict:
    # In an order of their own: a seed alone would not replay otherwise.
    keys = sorted(summand.reads.values())
    return {key: table_of(rng, R if key[0] == "u1" else S, rng.randrange(12)) for key in keys}


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_random_terms_give_what_spark_gives(spark, seed: int) -> None:
    rng = random.Random(seed)
    queries, compared, refused = Queries(rng), 0, 0
    while compared < 25:
        sql = queries.linear()
        for summand in summands_of(sql):
            try:
                compiled = compile_summand(summand.plan)
                tables = tables_of(rng, summand)
                mine = compiled.run(tables)
            except NotHere:
                refused += 1
                continue
            given = {}
            for key, (relation, version) in summand.reads.items():
                shown = tables[relation, version].rename_columns(list(summand.names_of(key)))
                spark.createDataFrame(shown).createOrReplaceTempView(f"x_{relation}_{version}")
                given[key] = parse(f"SELECT * FROM x_{relation}_{version}")
            try:
                theirs = spark.sql(text(summand.on_spark(given))).toArrow()
            except ArithmeticException as error:
                # Spark filters before it joins, so it may fail at a row that joins nothing.
                overflow = ("ARITHMETIC_OVERFLOW", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
                assert error.getCondition().startswith(overflow) and "JOIN" in sql, (seed, sql)
                continue
            assert Counter(to_rows(mine)) == Counter(to_rows(theirs)), (seed, sql)
            assert [str(t) for t in mine.schema.types] == [str(t) for t in theirs.schema.types], sql
            compared += 1
    assert refused < 40 * compared


@pytest.mark.parametrize("sql", [
    "SELECT REVERSE(s) AS s FROM u1", "SELECT k / 2 AS k FROM u1", "SELECT k FROM u1 WHERE f > 1",
    "SELECT n + 1 AS n FROM u1",
    "SELECT CAST(s AS INT) AS k FROM u1", "SELECT CAST(n AS INT) AS k FROM u1", "SELECT k FROM u1 WHERE k = '1'",
    "SELECT r.k FROM u1 AS r CROSS JOIN u2 AS w", "SELECT r.k FROM u1 AS r JOIN u2 AS w ON r.k < w.k",
    "SELECT k FROM u1 WHERE s LIKE 'a_b%'", "SELECT s || b AS s FROM u1",
    "SELECT r.f FROM u1 AS r JOIN (SELECT f FROM u1) AS w ON r.f = w.f",
])  # fmt: skip
def test_what_is_not_plain_is_left_to_an_engine(sql: str) -> None:
    for summand in summands_of(sql):
        with pytest.raises(NotHere):
            compile_summand(summand.plan)
        assert isinstance(summand.compiled, str)


def test_an_overflow_is_left_to_spark_which_says_what_it_is() -> None:
    [summand] = summands_of("SELECT k + k AS k FROM u1")
    compiled = compile_summand(summand.plan)
    row = (2**31 - 1, *[None] * 8, 1)
    table = to_table([row], schema_of([parse_type(t) for t in R.values()]).append(pa.field(DIFF, pa.int64())))
    with pytest.raises(NotHere):
        compiled.run({("u1", "delta"): table})


def test_a_join_of_too_many_pairs_is_left_to_an_engine(monkeypatch) -> None:
    [summand, _] = summands_of("SELECT r.k FROM u1 AS r JOIN u2 AS w ON r.s = w.s AND r.k = w.y")
    diffs = pa.field(DIFF, pa.int64())
    one, other = (schema_of([parse_type(t) for t in each.values()]).append(diffs) for each in (R, S))
    left = to_table([(n % 3, None, None, "a", *[None] * 5, 1) for n in range(90)], one)
    right = to_table([(None, "a", n % 4, 1) for n in range(40)], other)
    tables = {("u1", "delta"): left, ("u2", "new"): right}
    monkeypatch.setattr(vectors, "PAIRS_MAX", 899)
    with pytest.raises(NotHere):
        compile_summand(summand.plan).run(tables)
    monkeypatch.setattr(vectors, "PAIRS_MAX", 900)
    assert compile_summand(summand.plan).run(tables).num_rows == 900
    tables["u2", "new"] = right.slice(0, 1)
    assert compile_summand(summand.plan).run(tables).num_rows == 30


def test_groups_are_counted_and_summed_exactly() -> None:
    sql = "SELECT s, count(*) AS c, sum(n) AS t, sum(b) AS u, count(k) AS e FROM u1 GROUP BY s"
    [groups] = strategy_of(sql, COLUMNS).change.groups.values()
    [summand] = groups.input.linear.summands
    compiled = compile_summand(summand.plan)
    rng = random.Random(3)
    table = table_of(rng, R, 200)
    found = partial_groups(compiled.run({("u1", "delta"): table}), compiled.types, 1, frozenset({0, 1}))
    expected: dict = {}
    for row in to_rows(table):
        values = dict(zip([*R, DIFF], row, strict=True))
        group = expected.setdefault(((values["s"],), values[DIFF]), [0, 0, None, 0, None, 0, 0])
        group[0] += 1
        for place, name in ((1, "n"), (3, "b"), (5, "k")):
            if values[name] is not None:
                group[place] += 1
                if name != "k":
                    group[place + 1] = (group[place + 1] or 0) + values[name]
    assert {(key, diff): list(group) for key, diff, group in found} == expected


@pytest.mark.parametrize("kind, value", [("int8", 2**62), ("numeric(38,9)", Decimal(5 * 10**28))])
def test_a_sum_that_might_not_fit_is_left_to_spark_unless_its_rows_are_few(kind: str, value: object) -> None:
    schema = schema_of([parse_type(kind)]).append(pa.field(DIFF, pa.int64()))
    table, many = to_table([(value, 1), (value, 1)], schema), FEW_ROWS + 1
    with pytest.raises(NotHere):
        partial_groups(to_table([(value, 1)] * many, schema), [parse_type(kind)], 0, frozenset({0}))
    assert partial_groups(table, [parse_type(kind)], 0, frozenset({0})) == [((), 1, (2, 2, 2 * value))]
    assert partial_groups(table, [SqlType("int8")], 0, frozenset()) == [((), 1, (2, 2, 0))]


@pytest.mark.parametrize("rows", (1, FEW_ROWS + 1))
def test_a_sum_of_floats_is_left_to_spark(rows: int) -> None:
    table = to_table([(1.5, 1)] * rows, schema_of([SqlType("float8")]).append(pa.field(DIFF, pa.int64())))
    with pytest.raises(NotHere):
        partial_groups(table, [SqlType("float8")], 0, frozenset({0}))
    assert partial_groups(table, [SqlType("float8")], 0, frozenset()) == [((), 1, (rows, rows, 0))]


def test_a_sum_of_wide_decimals_that_fits_is_made_here() -> None:
    schema = schema_of([parse_type("numeric(38,9)")]).append(pa.field(DIFF, pa.int64()))
    table = to_table([(Decimal("1.5"), 1), (Decimal(-3 * 10**28), 1), (None, 1)], schema)
    [(key, diff, group)] = partial_groups(table, [parse_type("numeric(38,9)")], 0, frozenset({0}))
    assert (key, diff, group) == ((), 1, (3, 2, Decimal("-29999999999999999999999999998.5")))
