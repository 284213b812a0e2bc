"""What a query's aggregates would hold is asked before they do: by queries that stand alone and hold nothing."""

from __future__ import annotations

import pytest

from controllers.compute.gathering import ITEM_BYTES, questions
from controllers.compute.operators.lowered import Lowered
from plan import relations as r
from plan.columns import names_outside
from plan.nodes import walk
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(),
    "create table t (a int, b text, c timestamp, f float8, g int, h int, i int, q int, ok bool, l int[])",
)
[T] = IMAGE.objects()

LARGEST = " GROUP BY `t1`.`c1` ORDER BY 1 DESC LIMIT 128) AS `t2`"
SIZE = f"CAST({ITEM_BYTES} AS BIGINT)"
TOTAL = "SELECT COALESCE(SUM(`{}`.`c0`), CAST(0 AS BIGINT)) AS `held` FROM ("


def planned(sql: str) -> r.Query:
    return plan_select(parse(sql).ast, IMAGE, names()).query([])


def told(query: r.Query) -> str:
    return Lowered(query).spark_sql.replace(f"`{T.id}`", "`t`")


def asked(sql: str) -> list[str]:
    """What is asked exactly; what is asked first says the same of all rows together."""
    found = questions(planned(sql))
    for each in found:
        at_most = told(each.at_most)
        assert at_most.startswith(("SELECT COALESCE", "WITH ")) and "LIMIT" not in at_most and "DISTINCT" not in at_most
    return [told(each.exactly) for each in found]


def inner(question: str) -> str:
    """What reads the rows, in a question by groups."""
    assert question.startswith(TOTAL.format("t2") + "SELECT SUM(`t1`.`c0`) AS `c0` FROM (")
    assert question.endswith(LARGEST)
    return question.split(" AS `c0` FROM (", 1)[1].removesuffix(f") AS `t1`{LARGEST}")


def size(value: str) -> str:
    return f"COALESCE(OCTET_LENGTH(CAST({value} AS STRING)), 0)"


def item(value: str) -> str:
    """As ``array_agg`` has it that goes by its values."""
    return size(f"STRUCT({value} IS NULL AS `k0`, {value} AS `k1`)")


@pytest.mark.parametrize("sql", [
    "SELECT count(t.a), max(t.b), sum(DISTINCT t.a) FROM t GROUP BY t.c",
    "SELECT first_value(t.a) OVER (PARTITION BY t.b ORDER BY t.c) FROM t",
    "SELECT t.a FROM t",
])  # fmt: skip
def test_of_what_holds_nothing_nothing_is_asked(sql):
    assert asked(sql) == []


def test_the_largest_groups_count_and_all_lists_of_a_query_together():
    lists = "array_agg(t.a) AS x, string_agg(t.b, ',' ORDER BY t.b)"
    sql = f"SELECT t.g, {lists} FROM t WHERE t.a > 1 GROUP BY t.g"
    [question] = asked(sql + " HAVING count(*) > 1 ORDER BY x LIMIT 3")
    assert inner(question) == (
        f"SELECT {SIZE} + {item('`t0`.`a`')} + ({SIZE} + {size('`t0`.`b`')} + {size('`t0`.`b`')}) AS `c0`, "
        "`t0`.`g` AS `c1` FROM `t` AS `t0` WHERE `t0`.`a` > 1"
    )


def test_the_order_within_a_list_is_held_beside_its_values():
    [question] = asked("SELECT array_agg(t.a ORDER BY t.c) FROM t GROUP BY t.g")
    assert "`t0`.`c`" in inner(question) and "`t0`.`a`" in inner(question)


def test_only_the_rows_of_a_filter_count():
    [question] = asked("SELECT array_agg(t.a) FILTER (WHERE t.ok) FROM t")
    assert question.startswith(TOTAL.format("t1") + "SELECT CASE WHEN `t0`.`ok` THEN " + SIZE)
    assert "ELSE CAST(0 AS BIGINT) END AS `c0`" in question and "GROUP BY" not in question


@pytest.mark.parametrize(("aggregate", "value"), [
    ("string_agg(DISTINCT t.b, ',')", "STRUCT(`t0`.`b` IS NULL AS `k0`, `t0`.`b` AS `k1`)"),
    ("array_agg(DISTINCT t.b)", "STRUCT(`t0`.`b` IS NULL AS `k0`, `t0`.`b` AS `k1`)"),
    ("percentile_cont(0.5) WITHIN GROUP (ORDER BY t.f)", "`t0`.`f`"),
    ("percentile_disc(0.5) WITHIN GROUP (ORDER BY t.a)", "`t0`.`a`"),
])  # fmt: skip
def test_what_is_held_once_counts_once(aggregate, value):
    [question] = asked(f"SELECT {aggregate} FROM t GROUP BY t.g")
    assert inner(question) == (
        f"SELECT DISTINCT {SIZE} + {size(value)} AS `c0`, `t0`.`g` AS `c1`, {value} AS `c2` FROM `t` AS `t0`"
    )


def test_each_that_is_held_once_is_asked_by_itself():
    sql = "SELECT array_agg(DISTINCT t.a), array_agg(DISTINCT t.b), array_agg(t.a), array_agg(t.b) FROM t"
    assert len(asked(sql)) == 3


@pytest.mark.parametrize("over", ["(PARTITION BY t.g ORDER BY t.c)", "w"])
def test_a_list_over_a_window_goes_by_its_partition(over):
    [question] = asked(f"SELECT array_agg(t.a) OVER {over} FROM t WINDOW w AS (PARTITION BY t.g ORDER BY t.c)")
    assert "`t0`.`g` AS `c1` FROM `t` AS `t0`" in inner(question)


def test_a_window_over_groups_sees_groups():
    windowed = "array_agg(sum(t.a)) OVER (PARTITION BY t.g)"
    [question] = asked(f"SELECT {windowed} FROM t GROUP BY t.g, t.h HAVING count(*) > 1")
    assert inner(question).endswith("`t0`.`g` AS `c1` FROM `t` AS `t0` GROUP BY `t0`.`g`, `t0`.`h` HAVING COUNT(*) > 1")


@pytest.mark.parametrize("group", ["ROLLUP (t.g, t.b)", "CUBE (t.g)", "GROUPING SETS ((t.g), ())"])
def test_where_one_group_may_be_all_rows_it_is(group):
    assert all("GROUP BY" not in question for question in asked(f"SELECT array_agg(t.a) FROM t GROUP BY {group}"))


@pytest.mark.parametrize("key", ["1", "x"])
def test_groups_by_place_and_by_an_outputs_name(key):
    [question] = asked(f"SELECT t.g + 1 AS x, array_agg(t.a) FROM t GROUP BY {key}")
    assert "`t0`.`g` + 1 AS `c1`" in inner(question)


def test_inner_ones_are_asked_first():
    sql = "SELECT string_agg(q.l, ',') FROM (SELECT array_agg(t.a)::text AS l FROM t GROUP BY t.g) AS q"
    first, second = asked(sql)
    assert "COLLECT_LIST" not in first
    assert "COLLECT_LIST" in second, "it reads what the inner one makes"


def test_with_queries_go_with_it_as_far_as_they_are_read():
    sql = (
        "WITH w0 AS (SELECT t.a FROM t), w1 AS (SELECT array_agg(w0.a) AS l FROM w0), w2 AS (SELECT 1 AS z FROM w0) "
        "SELECT (WITH w3 AS (SELECT w0.a FROM w0) SELECT array_agg(w3.a) FROM w3), w1.l, w1.l FROM w2, w1, w1 AS v"
    )
    found = asked(sql)
    assert len(found) == 2
    for question in found:
        assert question.startswith("WITH `cte0` AS (SELECT ") and question.count("AS (SELECT") == 1
        assert "FROM `cte0`" in question and "COLLECT_LIST" not in question


def test_a_with_query_that_reads_itself_is_asked_as_it_is():
    number = r.Kind(planned("SELECT t.a FROM t").relation.columns[0].type, True)
    again = r.Named("n", (number,))
    whole = planned("SELECT array_agg(t.a) AS l FROM t").relation
    [held] = [each for each in walk(whole) if isinstance(each, r.Reduce)]
    let = r.Let("n", r.SetOp("union", True, planned("SELECT t.a FROM t").relation, again),
                r.Reduce(r.Project(again, (again.column(0),) * 10), (), held.aggregates), recursive=True)  # fmt: skip
    [question] = questions(r.Query(let, ("l",)))
    assert not names_outside(question.exactly.relation)
    assert isinstance(question.exactly.relation, r.Let) and question.exactly.relation.recursive


def test_a_subquery_that_names_outer_columns_is_asked_by_what_it_compares():
    sql = (
        "SELECT (SELECT array_agg(x.a) FROM t AS x WHERE (x.b = o.b AND x.f > 3) AND o.q < x.g "
        "AND x.h IN (SELECT y.h FROM t AS y WHERE y.i = x.i)) FROM t AS o"
    )
    [question] = asked(sql)
    assert f"SELECT {SIZE} + {item('`t0`.`a`')} AS `c0`, `t0`.`b` AS `c1` FROM `t` AS `t0` WHERE " in question
    assert "`t0`.`f` > " in question and "`t0`.`h` IN (SELECT" in question
    assert "`q`" not in question and "`t0`.`g`" not in question


def test_what_a_join_in_a_subquery_compares_with_outer_columns_makes_groups_too():
    sql = (
        "SELECT (SELECT array_agg(x.a) FROM t AS x JOIN t AS y ON x.h = y.h AND y.i = o.i "
        "JOIN (SELECT * FROM t AS z WHERE z.q = o.q) AS v ON true WHERE x.b = o.b) FROM t AS o"
    )
    [question] = asked(sql)
    assert "GROUP BY `t3`.`c1`, `t3`.`c2`, `t3`.`c3` ORDER BY 1 DESC LIMIT 128" in question.replace("`t4`", "`t3`")
    assert "`h` = " in question and "`b` = " not in question and "`q` = " not in question and "`i` = " not in question


@pytest.mark.parametrize("sql", [
    "SELECT z.l FROM t AS o, LATERAL (SELECT array_agg(u.i) AS l FROM unnest(o.l) AS u(i)) AS z",
    "SELECT (SELECT array_agg(x.a + o.a) FROM t AS x) FROM t AS o",
    "SELECT z.l FROM t AS o, LATERAL (SELECT array_agg(v.a) AS l FROM (SELECT x.a FROM t AS x "
    "UNION SELECT o.a) AS v) AS z",
])  # fmt: skip
def test_what_only_an_outer_row_can_tell_is_not_asked(sql):
    assert asked(sql) == []


def test_many_conditions_are_asked_with_as_they_are():
    many = " AND ".join(f"(t.a <> {i} AND t.h <> {i})" for i in range(40))
    [question] = asked(f"SELECT array_agg(t.a) FROM t WHERE ({many})")
    assert question.count("<>") == 80
