"""What is incremental and what is not, from the plan alone; and the names that a query may have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlglot import exp

from collection.columns import DIFF
from controllers.compute.groups import AggregateCall
from controllers.compute.operators.planned import Planned
from controllers.compute.operators.prepared import Prepared
from controllers.compute.spark_text import parse, text
from controllers.compute.strategy import GROUPS, Incremental, Recompute
from journal.errors import InvalidUsage
from plan.deltas import reads
from plan.relations import Project, Query
from plan.scalars import cast
from plan.text import lines
from plan.types import INT4, ListOf
from sql.views.kept_views import TEXT_ALONE
from sql.views.spark_gate import name_relations
from tests.compute.spoken import strategy_of

INPUTS = ("u5", "u7")
U5 = {"a": "int4", "b": "text", "k": "int4", "x": "int8", "d": "timestamptz", "f": "float8", "n": "numeric(8,2)"}
COLUMNS = {"u5": U5, "u7": {"a": "int4", "b": "text", "k": "int4"}}


def of(sql: str):
    return strategy_of(sql, COLUMNS)


def shown(plan) -> str:
    return "\n".join(lines(Query(plan, tuple("c" * len(plan.columns)))))


@pytest.mark.parametrize("sql, reason", [
    ("SELECT a FROM u5 LIMIT 3", "LIMIT"),
    ("SELECT q.a FROM (SELECT a FROM u5 LIMIT 3) AS q WHERE q.a > 1", "LIMIT"),
    ("SELECT u5.a FROM u5 LEFT JOIN u7 ON u5.a > u7.a", "LEFT JOIN by more than equal columns"),
    ("SELECT u5.a FROM u5 FULL JOIN u7 ON u5.a = u7.a AND u5.x > u7.k", "FULL JOIN by more than equal columns"),
    ("SELECT u5.a FROM u5 RIGHT JOIN u7 ON u5.a = 1", "RIGHT JOIN by more than equal columns"),
    ("SELECT u5.a, q.k FROM u5 CROSS JOIN LATERAL (SELECT u7.k FROM u7 WHERE u7.a = u5.a) AS q", "LATERAL"),
    ("SELECT STDDEV(a) FROM u5", "stddev() cannot take back a row"),
    ("SELECT COLLECT_LIST(a) FILTER(WHERE b > 'a') FROM u5", "collect_list() cannot take back a row"),
    ("SELECT SUM(DISTINCT a) FROM u5", "an aggregate over DISTINCT values"),
    ("SELECT SUM(f) FROM u5", "sum over float8, whose addition cannot be taken back exactly"),
    ("SELECT MIN(f) FROM u5", "min over float8, whose order only spark knows"),
    ("SELECT a FROM u5 UNION SELECT a FROM u7 LIMIT 3", "LIMIT"),
    ("SELECT a FROM u5 EXCEPT ALL SELECT a FROM u7", "EXCEPT ALL"),
    ("SELECT a FROM u5 INTERSECT ALL SELECT a FROM u7", "INTERSECT ALL"),
    ("SELECT a, ROW_NUMBER() OVER (ORDER BY a) FROM u5", "a window function"),
    ("SELECT a FROM u5 WHERE EXISTS (SELECT 1 FROM u7)", "a subquery in an expression"),
    ("SELECT COUNT(*) FILTER (WHERE u5.a > (SELECT MAX(u7.a) FROM u7)) FROM u5", "a subquery in an expression"),
    ("SELECT a FROM u5 WHERE d > CURRENT_TIMESTAMP()", "current_timestamp() is not the same every time"),
    ("SELECT 1", "it reads no collection"),
    ("SELECT a, COUNT(*) FROM u5 GROUP BY ROLLUP (a)", "GROUP BY with grouping sets"),
    (" UNION ALL ".join(["SELECT a FROM u5"] * 33), "collections occur in 33 places, more than 32"),
    (" UNION ".join(["SELECT a FROM u5"] * 65), "collections occur in 65 places, more than 64"),
    ("SELECT u5.a FROM u5 " + " ".join(f"LEFT JOIN u7 AS t{n} ON t{n}.a = u5.a" for n in range(30)),
     "30 outer joins, more than 3"),
])  # fmt: skip
def test_recomputed_with_the_reason(sql, reason):
    assert of(sql) == Recompute(reason)


def test_what_has_no_plan_is_recomputed_and_says_so():
    assert Planned(TEXT_ALONE).strategy() == Recompute(TEXT_ALONE)


@pytest.mark.parametrize("sql", [
    "SELECT a FROM u5 ORDER BY a", "SELECT a FROM u5 ORDER BY x + 1 DESC", "SELECT a FROM u5 UNION ALL SELECT 1",
    "SELECT q.a FROM (SELECT a, x FROM u5 ORDER BY x) AS q WHERE q.a > 1",
    "SELECT u5.a, v.b FROM u5 JOIN (VALUES (1, 'x')) AS v(a, b) ON u5.a = v.a",
    "SELECT u5.a FROM u5, u7 WHERE u5.a = u7.a", " UNION ALL ".join(["SELECT a FROM u5"] * 32),
])  # fmt: skip
def test_these_are_linear(sql):
    assert of(sql).name == "incremental: linear"


@pytest.mark.parametrize("sql, leaves", [
    ("SELECT q.a, u7.b FROM (SELECT a, COUNT(*) AS n FROM u5 GROUP BY a) AS q JOIN u7 ON q.a = u7.a", "groups0 u7"),
    ("SELECT q.a, u7.b FROM u7 JOIN (SELECT DISTINCT a FROM u5) AS q ON q.a = u7.a", "u7 groups0"),
    ("SELECT u5.a, u7.b FROM u5 LEFT JOIN u7 ON u5.a = u7.a", "u5 u7 groups0"),
    ("SELECT u5.a, u7.b FROM u5 RIGHT JOIN u7 ON u7.a = u5.a AND u5.x > 1", "u5 u7 groups0"),
    ("SELECT u5.a, u7.b FROM u5 FULL JOIN u7 ON u5.a = u7.a", "u5 u7 groups0 groups1"),
    ("SELECT a FROM u5 EXCEPT SELECT a FROM u7", "groups0"), ("SELECT a FROM u5 INTERSECT SELECT a FROM u7", "groups0"),
    ("SELECT u5.a FROM u5 JOIN (SELECT MAX(a) AS m FROM u7) AS q ON q.m = u5.a", "u5 groups0"),
])  # fmt: skip
def test_these_are_linear_in_groups_too(sql, leaves):
    found = of(sql)
    assert found.name == "incremental: aggregate", found
    assert [summand.leaf for summand in found.change.linear.summands] == leaves.split()


def test_a_join_has_one_term_per_place():
    found = of("SELECT a.x FROM u5 AS a JOIN u7 AS b ON a.k = b.k JOIN u5 AS c ON c.k = b.k").change.linear
    assert [summand.leaf for summand in found.summands] == ["u5", "u7", "u5"]
    versions = [[key for key in reads(summand.plan).values()] for summand in found.summands]
    assert [sorted(each) for each in versions] == [
        [("u5", "delta"), ("u5", "new"), ("u7", "new")], [("u5", "new"), ("u5", "old"), ("u7", "delta")],
        [("u5", "delta"), ("u5", "old"), ("u7", "old")],
    ]  # fmt: skip
    assert [kind.type.name for kind in found.kinds] == ["int8"]
    assert set(reads(found.full).values()) == {("u5", "new"), ("u7", "new")}


def test_a_column_that_is_called_as_the_diffs_are_is_another():
    found = strategy_of(f"SELECT q.a FROM (SELECT k AS a, x AS `{DIFF}` FROM u5) AS q", {"u5": U5 | {DIFF: "int4"}})
    assert isinstance(found, Incremental) and found.diff != DIFF
    [summand] = found.change.linear.summands
    assert Prepared(summand.plan).names_of("u5 delta") == (*U5, DIFF, found.diff)


def test_an_aggregate_is_split_into_its_input_and_what_is_done_with_groups():
    found = of(
        "SELECT CAST(q.k AS BIGINT) AS k, q.n FROM (SELECT t.k AS k, COUNT(*) AS n FROM u5 AS t WHERE t.x > 0 "
        "GROUP BY t.k HAVING SUM(t.a) > 5) AS q WHERE q.n > 1"
    ).change
    [(name, groups)] = found.groups.items()
    assert groups.calls == (AggregateCall("count_star", None), AggregateCall("sum", 0))
    assert [each.name for each in groups.types] == ["int4", "int8", "int8"]
    [post], [summand] = found.linear.summands, groups.input.linear.summands
    assert (post.leaf, summand.leaf, groups.input.groups) == (name, "u5", {}) and name.startswith(GROUPS)
    assert "u5 delta" in shown(summand.plan) and "Filter" in shown(summand.plan)
    assert shown(post.plan).count("Filter") == 2 and "groups0 delta" in shown(post.plan)


@pytest.mark.parametrize("call, found", [
    ("COUNT(*)", ("count_star", None)), ("COUNT(1)", ("count_star", None)), ("COUNT(a)", ("count", 0)),
    ("COUNT(DISTINCT b)", ("count_distinct", 0)), ("MAX(b)", ("max", 0)), ("MIN(d)", ("min", 0)),
    ("MAX(DISTINCT a)", ("max", 0)), ("BOOL_AND(a > 1)", ("min", 0)), ("BOOL_OR(a > 1)", ("max", 0)),
    ("COUNT(*) FILTER (WHERE a > 1)", ("count", 0)), ("SUM(a) FILTER (WHERE a > 1)", ("sum", 0)),
])  # fmt: skip
def test_what_groups_hold(call, found):
    [groups] = of(f"SELECT k, {call} AS c FROM u5 GROUP BY k").change.groups.values()
    assert groups.calls == (AggregateCall(*found),) and len(groups.arguments) == (found[1] is not None)


def test_groups_of_groups():
    found = of("SELECT n, COUNT(*) AS c FROM (SELECT DISTINCT k, COUNT(*) AS n FROM u5 GROUP BY k) AS q GROUP BY n")
    depth, change = 0, found.change
    while change.groups:
        [groups] = change.groups.values()
        depth, change = depth + 1, groups.input
    assert (found.name, depth, change.linear.summands[0].leaf) == ("incremental: aggregate", 3, "u5")


@pytest.mark.parametrize("sql", [
    "SELECT a FROM u5 UNION SELECT a FROM u7 UNION SELECT k AS a FROM u5",
    "SELECT a FROM u5 UNION (SELECT a FROM u7 UNION ALL SELECT k AS a FROM u5)",
    "SELECT a FROM u5 UNION (SELECT DISTINCT a FROM u7 UNION SELECT k AS a FROM u5)",
])  # fmt: skip
def test_a_union_is_the_distinct_rows_of_all(sql):
    [groups] = of(sql).change.groups.values()
    assert (len(groups.keys), groups.calls, groups.input.groups) == (1, (), {})
    assert [summand.leaf for summand in groups.input.linear.summands] == ["u5", "u7", "u5"]


def test_the_last_of_a_chain_of_unions_may_keep_duplicates():
    found = of("SELECT q.a FROM (SELECT a FROM u5 UNION SELECT a FROM u7 UNION ALL SELECT a FROM u5) AS q").change
    assert [summand.leaf for summand in found.linear.summands] == ["groups0", "u5"]


SOURCES = {"u5": parse("SELECT 5 AS a"), "u7": parse("SELECT 7 AS a")}


def named(sql: str) -> str:
    return text(name_relations(sql, INPUTS, SOURCES))


def test_naming_relations_touches_nothing_else():
    sql = "SELECT u5.a, 'u5' AS u5, t.`u7` FROM u5 JOIN `u7` AS t ON u5.a = t.u5 -- u5"
    assert named(sql) == (
        "SELECT `u5`.`a`, 'u5' AS `u5`, `t`.`u7` FROM (SELECT 5 AS `a`) AS `u5` JOIN (SELECT 7 AS `a`) AS `t` "
        "ON `u5`.`a` = `t`.`u5`"
    )


@pytest.mark.parametrize("sql, state", [
    ("SELECT * FROM parquet.`/etc/passwd`", "42P01"),
    ("SELECT * FROM tm_u9_chunk1", "42P01"),
    ("SELECT reflect('java.lang.System', 'exit', 1)", "42501"),
    ("SELECT JAVA_METHOD('java.lang.System', 'exit', 1) FROM u5", "42501"),
    ("SELECT input_file_name(), version() FROM u5", "42883"),
    ("SELECT nobody_knows(a) FROM u5", "42883"),
    ("DROP VIEW u5", "42601"),
    ("SET spark.sql.ansi.enabled = false", "42601"),
    ("SELECT (", "42601"),
    ("", "42601"),
])  # fmt: skip
def test_what_is_no_query_over_its_inputs_is_refused(sql, state):
    with pytest.raises(InvalidUsage) as refused:
        name_relations(sql, INPUTS, SOURCES)
    assert refused.value.sqlstate == state


def test_names_of_a_query_of_its_own_are_not_relations():
    assert named("WITH u5x AS (SELECT a FROM u5) SELECT a FROM u5x, RANGE(3)") == (
        "WITH `w0` AS (SELECT `a` FROM (SELECT 5 AS `a`) AS `u5`) SELECT `a` FROM `w0` AS `u5x`, RANGE(3)"
    )


@pytest.mark.parametrize("sql, wanted", [
    # A WITH query that is called as a relation is itself in reach of what comes after it only.
    ("WITH u5 AS (SELECT a FROM u5) SELECT a FROM u5",
     "WITH `w0` AS (SELECT `a` FROM 5 AS `u5`) SELECT `a` FROM `w0` AS `u5`"),
    ("WITH u7 AS (SELECT 1 AS a), x AS (SELECT a FROM u7) SELECT a FROM x, u5",
     "WITH `w0` AS (SELECT 1 AS `a`), `w1` AS (SELECT `a` FROM `w0` AS `u7`) SELECT `a` FROM `w1` AS `x`, 5 AS `u5`"),
    ("WITH x AS (SELECT a FROM u7), u7 AS (SELECT 1 AS a) SELECT a FROM x, u7",
     "WITH `w0` AS (SELECT `a` FROM 7 AS `u7`), `w1` AS (SELECT 1 AS `a`) SELECT `a` FROM `w0` AS `x`, `w1` AS `u7`"),
    # What is put in a relation's place cannot be caught by a WITH query around it.
    ("WITH tm_u5_tail1 AS (SELECT 1 AS a) SELECT a FROM u5, tm_u5_tail1 AS t",
     "WITH `w0` AS (SELECT 1 AS `a`) SELECT `a` FROM 5 AS `u5`, `w0` AS `t`"),
    # An inner one hides an outer one, and a relation beside it does not see it.
    ("WITH q AS (SELECT 1 AS a) SELECT a FROM (WITH q AS (SELECT 2 AS a) SELECT a FROM q) AS s, q, u7",
     "WITH `w0` AS (SELECT 1 AS `a`) SELECT `a` FROM (WITH `w1` AS (SELECT 2 AS `a`) SELECT `a` FROM `w1` AS `q`)"
     " AS `s`, `w0` AS `q`, 7 AS `u7`"),
    ("SELECT a FROM (WITH u5 AS (SELECT 2 AS a) SELECT a FROM u5) AS s, u5",
     "SELECT `a` FROM (WITH `w0` AS (SELECT 2 AS `a`) SELECT `a` FROM `w0` AS `u5`) AS `s`, 5 AS `u5`"),
])  # fmt: skip
def test_which_with_query_a_name_means(sql, wanted):
    for each, number in (("u5", 5), ("u7", 7)):
        wanted = wanted.replace(f"FROM {number} AS `{each}`", f"FROM (SELECT {number} AS `a`) AS `{each}`")
        wanted = wanted.replace(f", {number} AS `{each}`", f", (SELECT {number} AS `a`) AS `{each}`")
    assert named(sql) == wanted


@pytest.mark.parametrize("sql", [
    "SELECT a FROM u5 TABLESAMPLE (50 PERCENT)", "SELECT a FROM u5 VERSION AS OF 1",
    "SELECT a FROM u5, u7 VERSION AS OF 1", "SELECT a FROM u5 PIVOT (SUM(a) FOR a IN (1))",
])  # fmt: skip
def test_a_relation_is_read_as_it_is(sql):
    with pytest.raises(InvalidUsage) as refused:
        named(sql)
    assert refused.value.sqlstate == "0A000"


NASTY = (Path(__file__).parent.parent / "sql" / "nasty.txt").read_text().splitlines()


@pytest.mark.parametrize("word", [json.loads(line) for line in NASTY])
def test_no_text_and_no_name_is_taken_for_anything_else(word):
    """A view over a text that looked like a placeholder of ours held our SQL."""
    quoted, literal = text(exp.to_identifier(word, quoted=True)), text(exp.Literal.string(word))
    source = parse(f"SELECT 1 AS {quoted}, 1 AS d")
    sql = f"SELECT u5.{quoted} AS {quoted}, {literal} AS t FROM u5 WHERE u5.{quoted} <> {literal}"
    again = parse(text(name_relations(sql, INPUTS, {"u5": source})))
    assert again.expressions[0].alias == word and again.expressions[0].this.name == word
    assert again.expressions[1].this == exp.Literal.string(word)
    assert again.find(exp.Table) is None
    found = strategy_of(sql, {"u5": {word: "text"}})
    summand = Prepared(found.change.linear.summands[0].plan)
    assert summand.reads == {"u5 delta": ("u5", "delta")} and found.diff not in (word, "t")
    again = parse(text(summand.on_spark({"u5 delta": source})))
    assert again.expressions[0].this.name == word and again.find(exp.Table) is None
    assert again.expressions[1].this == exp.Literal.string(word)
    grouped = f"SELECT u5.{quoted}, {literal} AS t, COUNT(*) AS n FROM u5 GROUP BY u5.{quoted}"
    post = Prepared(strategy_of(grouped, {"u5": {word: "text"}}).change.linear.summands[0].plan)
    assert parse(text(post.on_spark({"groups0 delta": source}))).expressions[1].this == exp.Literal.string(word)


def test_what_no_engine_can_be_told_is_refused_as_any_other():
    """A view is worked out again then: nobody takes it for a fault of the controller's."""
    [summand] = of("SELECT a FROM u5").change.linear.summands
    made = Prepared(Project(summand.plan, (cast(summand.plan.column(0), ListOf(INT4)), summand.plan.column(1))))
    assert "the query cannot be said" in made.small
    with pytest.raises(InvalidUsage):
        made.on_spark({"u5 delta": parse("SELECT 1 AS a")})
