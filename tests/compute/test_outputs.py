"""A grouped view's columns from its groups, in the process: the same as Spark's, or a refusal."""

from __future__ import annotations

import random
import re
from collections import Counter
from decimal import Decimal

import pytest

from catalog_log.settings import AUTO, SPARK
from collection.columns import DIFF
from controllers.arrangements.tuples import Row, schema_of, to_rows, to_table
from controllers.changes import consolidate
from controllers.compute import engines, expressions, groups
from controllers.compute.expressions import NotHere
from controllers.compute.groups import AggregateCall
from controllers.compute.operators.built import built
from controllers.compute.operators.prepared import Prepared
from controllers.compute.operators.small import TOLD_SPARK
from controllers.compute.spark_text import parse, text
from controllers.compute.strategy import Change
from controllers.compute.vectors import Compiled
from functions.registry import OWN
from plan.calls import _ROWS
from plan.deltas import DELTA
from tests.compute.spoken import planned
from values.functions import own
from values.types import SqlType, parse_type

KEYS = {"k": "int4", "s": "text", "n": "numeric(10,2)"}
U1 = {**KEYS, "x": "int4", "y": "int8", "p": "text"}

COLUMNS = [
    ("k", "int4"),
    ("CAST(k AS STRING)", "text"),
    ("CAST(SUM(x) AS STRING)", "text"),
    ("CAST(SUM(CAST(y AS DECIMAL(28, 0))) AS DECIMAL(38, 0))", "numeric(38,0)"),
    ("CAST(SUM(CAST(y AS DECIMAL(28, 0))) AS STRING)", "text"),
    ("CAST(AVG(n) AS STRING)", "text"),
    ("CAST(AVG(n) AS DECIMAL(11, 1))", "numeric(11,1)"),
    ("CAST(SUM(n) AS DECIMAL(20, 4))", "numeric(20,4)"),
    ("CAST(COUNT(*) AS INT)", "int4"),
    ("CAST(TM_NUMBER_SHOWN(CAST(CAST(SUM(x) AS STRING) AS STRING), CAST('999' AS STRING)) AS STRING)", "text"),
    ("TM_FORMAT('%s-%s', CAST(ARRAY(CAST(k AS STRING), CAST(COUNT(*) AS STRING)) AS ARRAY<STRING>))", "text"),
    ("UPPER(s)", "text"),
    ("TM_QUOTED_IDENTIFIER(s) || 'x'", "text"),
    ("COALESCE(SUM(x), 0)", "int8"),
    ("CASE WHEN COUNT(x) = 0 THEN CAST(NULL AS BIGINT) ELSE CAST(SUM(y) DIV COUNT(*) AS BIGINT) END", "int8"),
    ("SUM(x) + COUNT(*) * 2", "int8"),
    ("SUM(n) > 1.5", "bool"),
    ("TM_SPLIT(s, 'a')", "text[]"),
    ("AVG(x)", "float8"),
]
HAVINGS = ["", "", " HAVING COUNT(*) > 1", " HAVING SUM(n) > 0 OR SUM(x) IS NULL", " HAVING AVG(n) <= 1"]


def change_of(sql: str, *wanted: str) -> Change:
    types = [parse_type(each) for each in wanted]
    found = planned(sql, {"u1": U1}).strategy(types or None)
    assert found.name == "incremental: aggregate", found
    return found.change


class Columns:
    """What is done with groups, by kernels."""

    def __init__(self, change: Change) -> None:
        [summand] = change.linear.summands
        self.summand = Prepared(summand.plan, summand.leaf)
        [(self.name, groups)] = change.groups.items()
        self.types = groups.types

    @property
    def compiled(self) -> Compiled:
        if isinstance(self.summand.compiled, str):
            raise NotHere(self.summand.compiled)
        return self.summand.compiled

    def table(self, rows: list[Row]):
        names = [f"c{place}" for place in range(len(self.types))]
        return to_table(rows, schema_of([*self.types, SqlType("int8")], [*names, DIFF]))

    def run(self, before: list[Row], after: list[Row]):
        rows = [(*row, -1) for row in before] + [(*row, 1) for row in after]
        return consolidate(self.compiled.run({(self.name, DELTA): self.table(rows)}))


@pytest.mark.spark
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_columns_are_what_spark_makes_of_the_same_groups(spark, seed: int) -> None:
    rng = random.Random(seed)
    here = 0
    for _ in range(12):
        chosen = rng.sample(COLUMNS, 5)
        outputs = ", ".join(f"{sql} AS c{i}" for i, (sql, _) in enumerate(chosen))
        sql = f"SELECT {outputs} FROM u1 GROUP BY k, s, n{rng.choice(HAVINGS)}"
        if rng.random() < 0.3:
            sql = f"SELECT q.c0, q.c1, q.c2, q.c3, q.c4 FROM ({sql}) AS q WHERE NOT q.c0 IS NULL"
        columns = Columns(change_of(sql, *(kind for _, kind in chosen)))
        rows = [tuple(_value(rng, kind) for kind in columns.types) for _ in range(8)]
        try:
            mine = columns.run(rows[:3], rows[3:])
        except NotHere:
            continue
        here += 1
        theirs: Counter = Counter()
        for diff, some in ((-1, rows[:3]), (1, rows[3:])):
            [name] = columns.summand.reads
            shown = columns.table([(*row, 1) for row in some]).rename_columns(list(columns.summand.names_of(name)))
            spark.createDataFrame(shown).createOrReplaceTempView("held_groups")
            found = spark.sql(text(columns.summand.on_spark({name: parse("SELECT * FROM held_groups")}))).toArrow()
            assert [str(t) for t in found.schema.types] == [
                str(t).replace("item", "element") for t in mine.schema.types
            ], sql
            for row in to_rows(found):
                theirs[row[:-1]] += diff
        assert {row[:-1]: row[-1] for row in to_rows(mine)} == {r: n for r, n in theirs.items() if n}, (seed, sql)
    assert here > 8


def _value(rng: random.Random, kind: SqlType) -> object:
    if rng.random() < 0.15:
        return None
    if kind.name == "numeric":
        return Decimal(rng.choice([0, 1, -1, 15, 255, 10 ** (min(kind.precision, 12) - 1)])).scaleb(-kind.scale)
    return rng.choice({"text": ["", "a", "bac", "A b"], "float8": [0.5, 1e300, 2.0]}.get(kind.name, [0, 1, 2, -7, 99]))


# -- pure -------------------------------------------------------------------------------------------------------------

def run(sql: str, rows: list[Row], *wanted: str) -> Counter:
    found = Columns(change_of(sql, *wanted)).run([], rows)
    return Counter({row[:-1]: row[-1] for row in to_rows(found)})


def test_having_and_what_is_above_the_groups_are_filters() -> None:
    sql = "SELECT q.n + 1 AS m FROM (SELECT s, SUM(x) AS n FROM u1 GROUP BY s HAVING SUM(x) > 1) AS q WHERE q.n < 4"
    assert run(sql, [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", None)], "int8") == {(3,): 1, (4,): 1}


def test_rows_that_become_equal_are_one() -> None:
    assert run("SELECT UPPER(s) AS u FROM u1 GROUP BY s HAVING SUM(x) > 0", [("a", 1), ("A", 1)], "text") == {("A",): 2}


@pytest.mark.parametrize("sql, why", [
    ("SELECT ROUND(SUM(x), 2) AS r FROM u1 GROUP BY s", "round()"),
    ("SELECT s LIKE 'a%b' AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", "a pattern of more"),
    ("SELECT TM_SERIES(SUM(x), CAST(9 AS BIGINT), TM_INTERVAL(s)) AS r FROM u1 GROUP BY s", "tm_series()"),
    ("SELECT SUM(x) / 2 AS r FROM u1 GROUP BY s", "/()"),
    ("SELECT TM_SPLIT(s, 1) AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", "tm_split of other types"),
])  # fmt: skip
def test_what_is_not_known_is_left_to_an_engine(sql: str, why: str) -> None:
    with pytest.raises(NotHere, match=re.escape(why)):
        Columns(change_of(sql)).run([], [("a", 1)])


@pytest.mark.parametrize("sql, group", [
    ("SELECT TM_UUID(s) AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", ("no uuid", 1)),
    ("SELECT CAST(CAST(SUM(x) AS INT) AS STRING) AS r FROM u1 GROUP BY s", ("a", 2**40)),
    ("SELECT CAST(SUM(x) DIV 0 AS STRING) AS r FROM u1 GROUP BY s", ("a", 1)),
    ("SELECT ELEMENT_AT(TM_SPLIT(s, ','), 2) AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", ("a", 1)),
    ("SELECT UPPER(s) AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", ("straße", 1)),
])  # fmt: skip
def test_a_row_that_fails_is_sparks_to_tell(sql: str, group: Row) -> None:
    columns = Columns(change_of(sql, "text"))
    assert columns.compiled
    with pytest.raises(NotHere):
        columns.run([], [group])


def test_explain_tells_who_works_out_the_columns() -> None:
    told = built(change_of("SELECT k, ROUND(SUM(x), 2) AS a FROM u1 GROUP BY k")).explain(AUTO, no_name)
    assert told.gear == "process while what it reads is small, otherwise spark"
    assert told.lines == [
        "  change of u1: in process, by kernels",
        "changed groups: in process while it is small, by duckdb because of round()",
    ]
    told = built(change_of("SELECT k, UPPER(s) AS a FROM u1 GROUP BY k, s")).explain(AUTO, no_name)
    assert told.lines[1] == "changed groups: in process, by kernels"
    told = built(change_of("SELECT k, UPPER(s) AS a FROM u1 GROUP BY k, s")).explain(SPARK, no_name)
    assert (told.gear, told.lines[0]) == (f"spark because {TOLD_SPARK}", "  change of u1: by spark")


def no_name(*column: str) -> None:
    """No user calls it anything."""


def test_a_call_that_stands_in_several_columns_is_made_once(monkeypatch) -> None:
    asked = []
    counting = own(SqlType("text[]"), lambda t: asked.append(t) or t.split(","), SqlType("text"))
    monkeypatch.setitem(OWN, "tm_counted", counting)
    monkeypatch.setitem(_ROWS, "tm_counted", (counting.result, True))
    columns = ", ".join(f"ELEMENT_AT(TM_COUNTED(s), {i}) AS c{i}" for i in (1, 2, 3))
    sql = f"SELECT {columns}, ELEMENT_AT(TM_COUNTED(s || ''), 1) AS d FROM u1 GROUP BY s HAVING SUM(x) > 0"
    assert run(sql, [("a,b,c", 1), (None, 1)], *["text"] * 4) == {("a", "b", "c", "a"): 1, (None,) * 4: 1}
    assert asked == ["a,b,c", "a,b,c"], "the call of something else is another"


@pytest.mark.parametrize("given", [7, True, "x", [1], 1.0])
def test_what_is_not_of_the_promised_type_is_not_taken(monkeypatch, given: object) -> None:
    monkeypatch.setitem(OWN, "tm_wrong", own(SqlType("bytea"), lambda t: given, SqlType("text")))
    monkeypatch.setitem(_ROWS, "tm_wrong", (SqlType("bytea"), True))
    outputs = Columns(change_of("SELECT TM_WRONG(s) AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", "bytea"))
    with pytest.raises(NotHere):
        outputs.run([], [("a", 1)])


def test_calls_are_bounded_by_rows_and_by_bytes(monkeypatch) -> None:
    outputs = Columns(change_of("SELECT TM_QUOTED_IDENTIFIER(s) AS r FROM u1 GROUP BY s HAVING SUM(x) > 0", "text"))
    monkeypatch.setattr(expressions, "OWN_ROWS_MAX", 3)
    assert outputs.run([], [("a", 1)] * 3).num_rows == 1
    with pytest.raises(NotHere):
        outputs.run([], [("a", 1)] * 4)
    monkeypatch.setattr(expressions, "OWN_BYTES_MAX", 3)
    with pytest.raises(NotHere):
        outputs.run([], [("abcd", 1)])


def test_whole_decimals_are_summed_as_integers_and_bounded_by_what_they_take(monkeypatch) -> None:
    kinds = [parse_type("numeric(28,0)"), parse_type("numeric(10,2)")]
    held = groups.Groups([AggregateCall("sum", 0), AggregateCall("avg", 0), AggregateCall("sum", 1)], kinds, 1)
    partials = [(("a",), 1, (2, 2, Decimal(10**20), 1, Decimal("1.50"))), (("a",), -1, (1, 1, Decimal(7), 0, None))]
    touched = held.merge(partials)
    assert touched == {("a",): (1, 1, 10**20 - 7, 1, Decimal("1.50"))}
    assert type(touched[("a",)][2]) is int
    held.accept(touched)
    assert held.row(("a",)) == ("a", Decimal(10**20 - 7), Decimal(10**20 - 7), Decimal("1.50"))
    assert groups.Groups.width(1, 2) == 4 + 1 + 5
    monkeypatch.setattr(groups, "CELLS_MAX", 20)
    held.merge([(("b",), 1, (1, 0, None, 0, None))])
    with pytest.raises(groups.TooManyGroups):
        held.merge([((key,), 1, (1, 0, None, 0, None)) for key in "bc"])


# -- a view -----------------------------------------------------------------------------------------------------------

R = {"k": "int4", "s": "text", "x": "int4", "y": "int8", "p": "text"}

PART = "CAST(SUM(CAST(TM_JSONB_LENGTH(ELEMENT_AT(TM_SPLIT(p, ';'), {n})) AS DECIMAL(28, 0))) AS STRING)"
PARTS = ", ".join(PART.replace("{n}", str(n)) for n in range(1, 26))


@pytest.mark.spark
def test_views_of_calculated_columns_are_kept_without_spark(bench, monkeypatch) -> None:
    r = bench.relation(R)
    parts = ";".join(["[1, 2]", "[]"] * 12 + ["[7]"])
    bench.change({r: [((1, "a", 5, 1, parts), 1), ((2, "b", None, None, parts), 2), ((1, "c", 6, -4, parts), 1)]})
    views = [
        bench.view("SELECT k, UPPER(s) AS u, COUNT(*) AS n FROM {0} GROUP BY k, s",
                   {"k": "int4", "u": "text", "n": "int8"}, r),
        bench.view("SELECT k, TM_NUMBER_SHOWN(CAST(SUM(x) AS STRING), '999') AS t FROM {0} GROUP BY k",
                   {"k": "int4", "t": "text"}, r),
        bench.view("SELECT k, CAST(TM_NUMBER_SHOWN(CAST(SUM(CAST(y AS DECIMAL(28, 0))) AS STRING), CAST(COUNT(y) AS"
                   " STRING)) AS STRING) AS t FROM {0} GROUP BY k HAVING COUNT(*) < 5", {"k": "int4", "t": "text"}, r),
        bench.view(f"SELECT k, TM_JOIN(CAST(ARRAY({PARTS}) AS ARRAY<STRING>), '+') AS t FROM {{0}} GROUP BY k",
                   {"k": "int4", "t": "text"}, r),
    ]  # fmt: skip
    bench.tick()
    for each in views:
        assert bench.held(each) == bench.truth(each)
    monkeypatch.setattr(engines, "answered", None)  # who asks Spark fails, and would compare the whole with the output
    for changes in ([((1, "a", 5, 1, parts), -1), ((3, "z", 1, 2**40, parts), 1)], [((2, "b", None, None, parts), -1)]):
        bench.change({r: changes})
        bench.tick()
        assert not bench.maintainer.errors
        for each in views:
            assert bench.held(each) == bench.truth(each) and bench.held(each)
    assert not any(each.compared for each in views)


@pytest.mark.spark
def test_where_the_process_cannot_spark_does_and_tells_the_error(bench, monkeypatch) -> None:
    questions: list[str] = []
    ask = engines.answered

    def counted(spark, query, *more):
        questions.append(text(query))
        return ask(spark, query, *more)

    monkeypatch.setattr(engines, "answered", counted)

    def asked_of_groups() -> list[int]:
        """How often Spark was asked for the columns of the groups of each view that changed."""
        return [sum(word in each for each in questions) for word in ("TM_UUID", "CBRT", "UPPER")]

    r = bench.relation(R)
    bench.change({r: [((1, "00000000-0000-0000-0000-000000000000", 5, 1, None), 1)]})
    uuids = bench.view("SELECT TM_UUID(s) AS u, COUNT(*) AS n FROM {0} GROUP BY s", {"u": "text", "n": "int8"}, r)
    roots = "SELECT k, CBRT(CAST(SUM(x) AS DOUBLE)) AS n FROM {0} GROUP BY k"
    rooted = bench.view(roots, {"k": "int4", "n": "float8"}, r)
    upper = bench.view("SELECT UPPER(s) AS u, COUNT(*) AS n FROM {0} GROUP BY s", {"u": "text", "n": "int8"}, r)
    bench.tick()
    assert asked_of_groups() == [0, 1, 0]
    told = rooted._kept.operator.explain(AUTO, no_name)
    assert told.spark == rooted.gears.reason and told.lines[1] == f"changed groups: by spark because {told.spark}"
    bench.change({r: [((2, "straße", 6, 1, None), 1)]})
    bench.tick()
    assert bench.maintainer.errors.keys() == {uuids.id}
    assert bench.maintainer.errors[uuids.id].sqlstate == "22P02"
    assert asked_of_groups()[1:] == [2, 1]
    assert ("STRASSE", 1) in bench.held(upper)
    bench.change({r: [((2, "straße", 6, 1, None), -1)]})
    bench.tick()
    assert not bench.maintainer.errors
    for each in (uuids, rooted, upper):
        assert bench.held(each) == bench.truth(each)
