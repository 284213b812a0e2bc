"""What a query's aggregates would hold is asked before they do: by queries that stand alone and hold nothing."""

from __future__ import annotations

import pytest

from controllers.compute.gathering import ITEM_BYTES, questions
from controllers.compute.spark_text import parse, text

LARGEST = " GROUP BY `k0` ORDER BY `held` DESC LIMIT 128"
SIZE = f"CAST({ITEM_BYTES} AS BIGINT)"


def asked(sql: str) -> list[str]:
    """What is asked exactly; what is asked first says the same of all rows together."""
    found = questions(parse(sql))
    for each in found:
        assert "GROUP BY `k0`" not in text(each.at_most) and "DISTINCT" not in text(each.at_most)
    return [text(each.exactly) for each in found]


def inner(question: str) -> str:
    """What reads the rows, in a question."""
    total = "SELECT COALESCE(SUM(`held`), CAST(0 AS BIGINT)) AS `held` FROM ("
    return question.split(total)[2].rsplit(") AS `r`")[0].removesuffix(f") AS `r`{LARGEST}")


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(t.a), MAX(t.b), SUM(DISTINCT t.a) FROM t GROUP BY t.c",
    "SELECT FIRST_VALUE(t.a) OVER (PARTITION BY t.b ORDER BY t.c) FROM t",
    "SELECT 1",
])  # fmt: skip
def test_of_what_holds_nothing_nothing_is_asked(sql):
    assert asked(sql) == []


def test_the_largest_groups_count_and_all_lists_of_a_query_together():
    lists = "COLLECT_LIST(t.a) AS x, LISTAGG(t.b, ',') WITHIN GROUP (ORDER BY t.c)"
    sql = f"SELECT t.g, {lists} FROM t WHERE t.a > 1 GROUP BY t.g"
    [question] = asked(sql + " HAVING COUNT(*) > 1 ORDER BY x LIMIT 3")
    assert inner(question) == (
        f"SELECT `t`.`g` AS `k0`, {SIZE} + COALESCE(OCTET_LENGTH(CAST(`t`.`a` AS STRING)), 0) + "
        f"{SIZE} + COALESCE(OCTET_LENGTH(CAST(`t`.`b` AS STRING)), 0) + "
        "COALESCE(OCTET_LENGTH(CAST(`t`.`c` AS STRING)), 0) AS `held` FROM `t` WHERE `t`.`a` > 1"
    )
    assert question.endswith(f"AS `r`{LARGEST}) AS `r`")


def test_only_the_rows_of_a_filter_count():
    [question] = asked("SELECT COLLECT_LIST(t.a) FILTER (WHERE t.b) FROM t")
    assert inner(question).startswith("SELECT CASE WHEN `t`.`b` THEN " + SIZE)
    assert "ELSE CAST(0 AS BIGINT) END AS `held`" in question and "GROUP BY" not in question


@pytest.mark.parametrize("aggregate", [
    "COLLECT_SET(t.a)", "MODE() WITHIN GROUP (ORDER BY t.a)", "MODE(t.a)", "PERCENTILE(t.a, 0.5)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY t.a)",
])  # fmt: skip
def test_what_is_held_once_counts_once(aggregate):
    [question] = asked(f"SELECT {aggregate} FROM t GROUP BY t.g")
    assert inner(question) == (
        f"SELECT DISTINCT `t`.`g` AS `k0`, {SIZE} + COALESCE(OCTET_LENGTH(CAST(`t`.`a` AS STRING)), 0) AS `held`, "
        "`t`.`a` AS `v0` FROM `t`"
    )


def test_each_that_is_held_once_is_asked_by_itself():
    assert len(asked("SELECT COLLECT_SET(t.a), COLLECT_SET(t.b), COLLECT_LIST(t.a), COLLECT_LIST(t.b) FROM t")) == 3


@pytest.mark.parametrize("over", ["(PARTITION BY t.g ORDER BY t.c)", "w"])
def test_a_list_over_a_window_goes_by_its_partition(over):
    [question] = asked(f"SELECT COLLECT_LIST(t.a) OVER {over} FROM t WINDOW w AS (PARTITION BY t.g ORDER BY t.c)")
    assert inner(question).startswith("SELECT `t`.`g` AS `k0`")


def test_a_window_over_groups_sees_groups():
    windowed = "COLLECT_LIST(SUM(t.a)) OVER (PARTITION BY t.g)"
    [question] = asked(f"SELECT {windowed} FROM t GROUP BY t.g, t.h HAVING COUNT(*) > 1")
    assert inner(question).endswith("FROM `t` GROUP BY `t`.`g`, `t`.`h` HAVING COUNT(*) > 1")


@pytest.mark.parametrize("group", ["ROLLUP (t.a, t.b)", "CUBE (t.a)", "GROUPING SETS ((t.a), ())"])
def test_where_one_group_may_be_all_rows_it_is(group):
    [question] = asked(f"SELECT COLLECT_LIST(t.a) FROM t GROUP BY {group}")
    assert "GROUP BY" not in question


@pytest.mark.parametrize("key", ["1", "g"])
def test_groups_by_place_and_by_an_outputs_name(key):
    [question] = asked(f"SELECT t.b + 1 AS g, COLLECT_LIST(t.a) FROM t GROUP BY {key}")
    assert inner(question).startswith("SELECT `t`.`b` + 1 AS `k0`")


def test_inner_ones_are_asked_first():
    sql = "SELECT COLLECT_LIST(q.l) FROM (SELECT LISTAGG(t.a, ',') AS l FROM t GROUP BY t.g) AS q"
    first, second = asked(sql)
    assert "LISTAGG" not in first
    assert "LISTAGG" in second, "it reads what the inner one makes"


def test_with_queries_go_with_it_as_far_as_they_are_seen():
    sql = (
        "WITH w0 AS (SELECT t.a FROM t), w1 AS (SELECT COLLECT_LIST(w0.a) AS l FROM w0), w2 AS (SELECT 1 AS z) "
        "SELECT (WITH w3 AS (SELECT w0.a FROM w0) SELECT COLLECT_LIST(w3.a) FROM w3) FROM w2"
    )
    found = {question.count("AS (SELECT") for question in asked(sql)}
    assert found == {1, 4}


def test_a_subquery_that_names_outer_columns_is_asked_by_what_it_compares():
    sql = (
        "SELECT (SELECT COLLECT_LIST(x.a) FROM t AS x WHERE (x.b = o.b AND x.c > 3) AND o.q < x.g "
        "AND x.h IN (SELECT y.h FROM t AS y WHERE y.i = x.i)) FROM t AS o"
    )
    [question] = asked(sql)
    assert inner(question) == (
        f"SELECT `x`.`b` AS `k0`, {SIZE} + COALESCE(OCTET_LENGTH(CAST(`x`.`a` AS STRING)), 0) AS `held` "
        "FROM `t` AS `x` WHERE `x`.`c` > 3 AND `x`.`h` IN (SELECT `y`.`h` FROM `t` AS `y` WHERE `y`.`i` = `x`.`i`)"
    )


@pytest.mark.parametrize("sql", [
    "SELECT 1 FROM t AS o, LATERAL (SELECT COLLECT_LIST(u.i) AS l FROM (SELECT EXPLODE(o.a) AS i) AS u) AS z",
    "SELECT (SELECT COLLECT_LIST(x.a + o.a) FROM t AS x) FROM t AS o",
])  # fmt: skip
def test_what_only_an_outer_row_can_tell_is_not_asked(sql):
    assert asked(sql) == []


def test_many_conditions_are_asked_with_as_they_are():
    many = " AND ".join(f"(t.a <> {i} AND t.b <> {i})" for i in range(40))
    [question] = asked(f"SELECT COLLECT_LIST(t.a) FROM t WHERE ({many})")
    assert inner(question).endswith(text(parse(f"SELECT 1 FROM t WHERE ({many})")).split(" WHERE ")[1])
