"""What is incremental and what is not, from the text alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlglot import exp

from collection.columns import DIFF
from controllers.compute import plans as st
from controllers.compute.naming import name_relations
from controllers.compute.spark_text import parse, text
from controllers.compute.strategy import analyse
from journal.errors import InvalidUsage

INPUTS = ("u5", "u7")


@pytest.mark.parametrize("sql, reason", [
    ("SELECT a FROM u5 LIMIT 3", "LIMIT"),
    ("SELECT * FROM u5", "SELECT *"),
    ("SELECT u5.a FROM u5 LEFT JOIN u7 ON u5.a = u7.a", "LEFT JOIN"),
    ("SELECT u5.a FROM u5 LEFT SEMI JOIN u7 ON u5.a = u7.a", "LEFT SEMI JOIN"),
    ("SELECT u5.a FROM u5 JOIN u7 USING (a)", "JOIN … USING"),
    ("SELECT STDDEV(a) FROM u5", "stddev() cannot take back a row"),
    ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a) FILTER(WHERE b > 1) FROM u5",
     "percentile_disc() cannot take back a row"),
    ("SELECT SUM(DISTINCT a) FROM u5", "an aggregate over DISTINCT values"),
    ("SELECT a FROM u5 UNION SELECT a FROM u7 LIMIT 3", "UNION that removes duplicates, orders or limits"),
    ("SELECT a, a FROM u5 UNION SELECT a, a FROM u7", "UNION that removes duplicates, orders or limits"),
    ("SELECT a FROM u5 UNION (SELECT a FROM u7 EXCEPT SELECT 1 AS a)", "it uses EXCEPT"),
    ("SELECT a FROM u5 INTERSECT SELECT a FROM u7", "it uses INTERSECT"),
    ("SELECT a, ROW_NUMBER() OVER (ORDER BY a) FROM u5", "a window function"),
    ("SELECT a FROM u5 WHERE EXISTS (SELECT 1 FROM u7)", "a subquery in an expression"),
    ("SELECT a, RAND() FROM u5", "rand() is not the same every time"),
    ("SELECT a FROM u5 WHERE d > CURRENT_TIMESTAMP()", "current_timestamp() is not the same every time"),
    ("SELECT EXPLODE(a) FROM u5", "a function that gives several rows"),
    ("WITH c AS (SELECT a FROM u5) SELECT a FROM c", "WITH"),
    ("SELECT 1", "it reads no collection"),
    ("SELECT a FROM u5 UNION ALL SELECT 1", "a branch that reads no collection"),
    ("SELECT a, COUNT(*) FROM u5 GROUP BY ROLLUP (a)", "GROUP BY with grouping sets"),
    ("SELECT a, b, COUNT(*) FROM u5 GROUP BY a", "`b` is neither grouped nor aggregated"),
    ("SELECT q.a, u7.b FROM (SELECT a, COUNT(*) AS n FROM u5 GROUP BY a) AS q JOIN u7 ON q.a = u7.a",
     "GROUP BY below another operator"),
    ("SELECT a FROM u9", "it reads `u9`, which is no collection"),
])  # fmt: skip
def test_recomputed_with_the_reason(sql, reason):
    found = analyse(sql, () if sql == "SELECT 1" else INPUTS)
    assert found == st.Recompute(reason)


def test_nonsense_is_recomputed_and_never_raises():
    for sql in ("", "SELEC", "SELECT (", "DROP TABLE x", "SELECT a FROM", "INSERT INTO u5 VALUES (1)"):
        assert isinstance(analyse(sql, INPUTS), st.Recompute)


def test_a_join_has_one_term_per_place():
    found = analyse("SELECT a.x FROM u5 AS a JOIN u7 AS b ON a.k = b.k JOIN u5 AS c ON c.k = b.k", INPUTS)
    assert [t.leaf for t in found.terms] == ["u5", "u7", "u5"]
    versions = [sorted(v for _, v in st.placeholders(t.tree)) for t in found.terms]
    assert versions == [["delta", "new", "new"][:len(v)] if i == 0 else v for i, v in enumerate(versions)]
    last = found.terms[-1].sql
    assert "`old`.`u5` AS `a`" in last and "`old`.`u7` AS `b`" in last and "`delta`.`u5` AS `c`" in last
    assert last.split(" FROM ")[0].endswith(f"`a`.`{DIFF}` * `b`.`{DIFF}` * `c`.`{DIFF}` AS `{DIFF}`")


def test_a_name_of_ours_in_a_query_is_another_name():
    found = analyse(f"SELECT q.a FROM (SELECT k AS a, x AS `{DIFF}` FROM u5) AS q", INPUTS)
    assert isinstance(found, st.Linear) and found.diff != DIFF


def test_an_aggregate_is_split_into_its_input_and_what_is_done_with_groups():
    found = analyse(
        "SELECT CAST(q.k AS INT) AS k, q.n FROM (SELECT t.k AS k, COUNT(*) AS n FROM u5 AS t WHERE t.x > 0 "
        "GROUP BY t.k HAVING SUM(t.x) > 5) AS q WHERE q.n > 1",
        INPUTS,
    )
    assert found.calls == (st.AggregateCall("count_star", None), st.AggregateCall("sum", 0))
    assert text(found.post) == (
        "SELECT CAST(`q`.`k` AS INT) AS `k`, `q`.`n` FROM (SELECT `k0` AS `k`, `a0` AS `n` FROM `tm`.`groups` "
        "WHERE `a1` > 5) AS `q` WHERE `q`.`n` > 1"
    )
    assert found.input.terms[0].sql == (
        f"SELECT `t`.`k` AS `k0`, `t`.`x` AS `x0`, `t`.`{DIFF}` AS `{DIFF}` FROM `delta`.`u5` AS `t` WHERE `t`.`x` > 0"
    )


def test_a_union_is_the_distinct_rows_of_all():
    found = analyse("SELECT q.a FROM (SELECT a FROM u5 UNION SELECT a FROM u7 UNION ALL SELECT a FROM u5) AS q", INPUTS)
    assert found == st.Recompute("UNION that removes duplicates, orders or limits"), "the last keeps duplicates"
    for sql in ("SELECT a FROM u5 UNION SELECT a FROM u7 UNION SELECT b AS a FROM u5",
                "SELECT a FROM u5 UNION (SELECT a FROM u7 UNION ALL SELECT b AS a FROM u5)"):  # fmt: skip
        found = analyse(sql, INPUTS)
        assert isinstance(found, st.Aggregate) and (found.keys, found.calls) == (1, ())
        assert [term.leaf for term in found.input.terms] == ["u5", "u7", "u5"]
        assert text(found.post) == "SELECT `k0` AS `a` FROM `tm`.`groups`"


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
    sql = f"SELECT u5.{quoted} AS {quoted}, {literal} AS t FROM u5 WHERE u5.{quoted} <> {literal}"
    found = analyse(sql, INPUTS, [word])
    assert isinstance(found, st.Linear) and st.placeholders(found.terms[0].tree) == {("u5", "delta")}
    source = parse(f"SELECT 1 AS {quoted}, 1 AS d")
    for tree in (st.fill(found.terms[0].tree, {("u5", "delta"): source}), name_relations(sql, INPUTS, {"u5": source})):
        again = parse(text(tree))
        assert again.expressions[0].alias == word and again.expressions[0].this.name == word
        assert again.expressions[1].this == exp.Literal.string(word)
        assert again.find(exp.Table) is None
    assert found.diff not in (word, "t")
    grouped = analyse(f"SELECT u5.{quoted}, {literal} AS t, COUNT(*) AS {quoted} FROM u5 GROUP BY u5.{quoted}", INPUTS)
    filled = st.fill(grouped.post, {st.GROUPS: source})
    assert parse(text(filled)).expressions[1].this == exp.Literal.string(word)
